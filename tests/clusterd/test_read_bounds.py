"""Bounds and metrics of reads whose replica runs in processes of its own."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

import eddyline
from eddyline.protocol.codec import decode_from_process, encode
from eddyline.protocol.measures_messages import ProcessMeasures, RuntimeMeasures
from eddyline.protocol.messages import AllowCompaction
from eddyline.testing.stopped import stopped
from tests.waiting import wait_until


@pytest.mark.parametrize(("processes", "interactive"), [(1, True), (2, True), (2, False)])
def test_a_read_past_its_memory_ends_in_every_process(processes: int, interactive: bool) -> None:
    with eddyline.connect(processes=processes, interactive=interactive) as db:
        for name in ("a", "b"):
            db.execute(f"CREATE TABLE {name} (x{name} bigint)")
            db.append(name, pa.table({f"x{name}": range(10_000)}))
        db.execute("CREATE INDEX ai ON a (xa)")
        db.execute("SET query_max_memory = '8MB'")
        start = time.monotonic()
        with pytest.raises(eddyline.OperationalError) as error:
            db.execute("SELECT DISTINCT xa, xb FROM a, b")
        assert error.value.sqlstate == "53200"
        assert error.value.hint
        assert time.monotonic() - start < 60
        assert db.execute("SELECT count(*) FROM a, b WHERE xa = xb").fetchall() == [(10_000,)]
        found = db.execute("EXPLAIN ANALYZE SELECT sum(xa) FROM a, b WHERE xa = xb").fetchall()
        runtime, role = ("interactive", ',role="interactive"') if interactive else ("solo", "")
        assert (f"Runtime: {runtime}, lane: heavy",) in found
        assert f'eddyline_peek_phase_seconds_count{{phase="dataflow"{role}}}' in db.metrics()


def samples(db: eddyline.Connection) -> dict[tuple[str, str], float]:
    """Name and role: the sum of all samples that have them; read by the parser of another project."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(db.metrics()):
        for sample in family.samples:
            key = sample.name.removeprefix("eddyline_"), sample.labels.get("role", "")
            found[key] = found.get(key, 0) + sample.value
    return found


@pytest.mark.parametrize("interactive", [True, False], ids=["two runtimes", "solo"])
def test_what_the_processes_count_is_in_the_metrics_of_the_database(interactive: bool) -> None:
    with (
        eddyline.connect(interactive=interactive) as here,
        eddyline.connect(processes=2, interactive=interactive) as there,
    ):
        for db in (here, there):
            db.execute("CREATE TABLE t (a bigint, b bigint)")
            db.append("t", pa.table({"a": range(10_000), "b": range(10_000)}))
            db.execute("CREATE INDEX tb ON t (b)")
            db.wait_hydrated("tb")
            assert db.execute("SELECT count(*) FROM t x, t y WHERE x.a = y.b").fetchall() == [(10_000,)]
        one, other = samples(here), samples(there)
        assert one.keys() == other.keys(), "wherever the replica is, the series are the same"
        assert other["activation_duration_seconds_count", ""] > 0
        assert other["activation_duration_seconds_sum", ""] > 0

        # Each process has its share of the rows: together they are as many as in one, once the reads' own are gone.
        def alike() -> bool:
            mine, theirs = (samples(each)["arrangement_bytes", ""] for each in (here, there))
            return bool(theirs == pytest.approx(mine, rel=0.3))

        wait_until(alike, lambda: (samples(there), samples(here)))
        if interactive:
            assert other["activation_duration_seconds_count", "interactive"] > 0
            assert ("hold_gap_seconds", "interactive") in other
        before = other["activation_duration_seconds_count", ""]
        there.execute("INSERT INTO t VALUES (1, 1)")
        assert there.execute("SELECT count(*) FROM t WHERE b = 1").fetchall() == [(2,)]
        assert samples(there)["activation_duration_seconds_count", ""] > before


def test_metrics_do_without_a_process_that_does_not_answer() -> None:
    with eddyline.connect(processes=2) as db:
        assert ("arrangement_bytes", "") in samples(db)
        processes = db._engine.first_replica.processes
        assert processes is not None
        with stopped(processes.pids[1]):
            start = time.monotonic()
            partial = samples(db)
            assert time.monotonic() - start < 30
        assert ("arrangement_bytes", "") not in partial, "half of it would be a wrong figure"
        assert partial["replica_info", ""] == 1
        assert ("arrangement_bytes", "") in samples(db)


def test_measures_of_processes_add_up_by_role() -> None:
    parts = [
        ProcessMeasures(
            7, (RuntimeMeasures("maintenance", (1, 2), 0.5, 10), RuntimeMeasures("interactive", (0, 1), 1.0, 0)), 3
        ),
        ProcessMeasures(
            7, (RuntimeMeasures("maintenance", (4, 0), 0.25, 5), RuntimeMeasures("interactive", (1, 1), 2.0, 1)), 9
        ),
    ]
    assert [decode_from_process(encode(part)) for part in parts] == parts
    assert ProcessMeasures.of_runtimes(parts) == (
        (RuntimeMeasures("maintenance", (5, 2), 0.75, 15), RuntimeMeasures("interactive", (1, 2), 3.0, 1)),
        9,
    )
    assert ProcessMeasures.of_runtimes([ProcessMeasures(1, ())]) == ((), None)
    assert ProcessMeasures.of_runtimes([]) == ((), None), "while a process is replaced"


def counted(db: eddyline.Connection, name: str) -> dict[str, float]:
    """The series of that name: its value by process, "" for this one."""
    found = text_string_to_metric_families(db.metrics())
    return {s.labels.get("process", ""): s.value for f in found for s in f.samples if s.name == f"eddyline_{name}"}


def test_soft_assertions_and_holds_of_the_interpreter_are_counted_in_each_process() -> None:
    with eddyline.connect(processes=2, interactive=True) as db:
        before = counted(db, "soft_assertions_total")
        assert before.keys() == {"", "0", "1"}
        assert (before["0"], before["1"]) == (0, 0)
        assert counted(db, "gil_hold_seconds_count") == {"": 0, "0": 0, "1": 0}, "nobody samples until it is asked for"
        # A command that names nothing is a soft assertion of every runtime that takes it: two in each process.
        with db._engine.control():
            db._engine.first_replica.present.send(AllowCompaction("u999", 5))
        db.execute("ALTER SYSTEM SET enable_gil_sampling = on")
        wanted = {"": before[""], "0": 2, "1": 2}
        wait_until(lambda: counted(db, "soft_assertions_total") == wanted, lambda: counted(db, "soft_assertions_total"))
        wait_until(
            lambda: min(counted(db, "gil_hold_seconds_count").values()) >= 3,
            lambda: counted(db, "gil_hold_seconds_count"),
        )
        db.execute("ALTER SYSTEM RESET enable_gil_sampling")

        def at_rest() -> bool:
            seen = counted(db, "gil_hold_seconds_count")
            time.sleep(0.2)
            return counted(db, "gil_hold_seconds_count") == seen

        wait_until(at_rest, "it stops")
