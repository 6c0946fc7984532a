"""Reads that are stopped part-way, by a timeout, a cancellation or a bound: what they held is given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.clusters import Cluster
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.pair import Pair
from eddyline.compute.runtime import Runtime
from eddyline.compute.worker import Worker
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from tests.waiting import wait_until

_ROWS = 10_000
_CROSS_JOIN = "SELECT * FROM a, b"
#: takes far longer than a test waits, and holds next to nothing
_ENDLESS = "SELECT count(*) FROM a, b WHERE xa + xb = -7"


@pytest.fixture(params=[(True, 1), (False, 1), (True, 2), (False, 2)], ids=["pair", "solo", "pair of 2", "solo of 2"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    interactive, workers = request.param
    with eddyline.connect(interactive=interactive, workers=workers) as connection:
        for name in ("a", "b"):
            connection.execute(f"CREATE TABLE {name} (x{name} bigint, y{name} bigint)")
            connection.append(name, pa.table({f"x{name}": range(_ROWS), f"y{name}": range(_ROWS)}))
        connection.execute("CREATE INDEX ai ON a (xa)")
        connection.wait_hydrated("ai")
        yield connection


def workers(db: eddyline.Connection) -> list[Worker]:
    """Those that render reads."""
    replica = db._engine.first_replica.client
    runtime = replica.interactive if isinstance(replica, Pair) else replica
    assert isinstance(runtime, Runtime)
    return [w.lane if isinstance(w, InteractiveWorker) else w for w in runtime._commanded]  # type: ignore[misc]  # both


def assert_given_back(db: eddyline.Connection) -> None:
    """No dataflow, walk or hold of a read is left, and the tables compact as if there had been none."""
    controller = db._engine._control.controller
    wait_until(
        lambda: all(not w._reads and not w._walks and not w.peeks.waiting for w in workers(db)),
        "nothing is read any more",
    )
    wait_until(
        lambda: all(d.read is None for w in workers(db) for d in list(w._agenda)), "no dataflow of a read is left"
    )
    replica = controller._instances[FIRST_CLUSTER].replicas[FIRST_REPLICA]
    wait_until(lambda: not controller._peeks and not replica.leaving, "no peek is left")
    assert len(controller._dataflows) == 1, "that of the index"
    store = db._engine.store
    table = next(id for id, c in controller._collections.items() if c.role.value == "table")
    before, now = store.since(table), db._engine.timeline.newest

    def forgotten() -> bool:
        db.execute("INSERT INTO a VALUES (-1, -1)")
        return store.since(table) > now

    wait_until(forgotten, f"since goes on from {before} past {now}, the newest time")


def refused(db: eddyline.Connection, statement: str) -> eddyline.Error:
    with pytest.raises(eddyline.OperationalError) as error:
        db.execute(statement)
    return error.value


def test_a_cross_join_past_its_memory_is_stopped_and_others_go_on(db: eddyline.Connection) -> None:
    db.execute("SET query_max_memory = '20MB'")
    other, stop, found = db.session(), threading.Event(), [0]

    def look_up() -> None:
        while not stop.is_set():
            assert other.execute("SELECT ya FROM a WHERE xa = 77").fetchall() == [(77,)]
            found[0] += 1

    looking = threading.Thread(target=look_up)
    looking.start()
    wait_until(lambda: found[0] > 0, "it is read")
    start = time.thread_time()
    error = refused(db, _CROSS_JOIN)
    assert time.thread_time() - start < 1, "the reader only waits"
    seen = found[0]
    wait_until(lambda: found[0] > seen, "others go on")
    stop.set()
    looking.join()
    assert error.sqlstate == "53200"
    assert "query_max_memory" in error.message
    assert error.hint and "SET" in error.hint
    assert_given_back(db)
    assert db.execute("SELECT count(*) FROM a, b WHERE xa = yb AND xa < 5").fetchall() == [(5,)]


def test_a_stopped_read_holds_little_more_than_its_bound(db: eddyline.Connection) -> None:
    bound = 8 << 20
    db.execute(f"SET query_max_memory = {bound}")
    error = refused(db, "SELECT DISTINCT xa, xb FROM a, b")
    assert error.sqlstate == "53200"
    assert error.detail is not None
    held = int("".join(c for c in error.detail if c.isdigit()))
    # One activation may add what 64 Ki rows take, on each worker and in each operator that they pass.
    assert bound < held < bound + (64 << 20)
    assert_given_back(db)


def test_a_read_that_is_rendered_as_maintained_is_stopped_too(db: eddyline.Connection) -> None:
    db.execute("ALTER SYSTEM SET enable_compute_interactive_dataflows = off")
    db.execute("SET query_max_memory = '8MB'")
    error = refused(db, _CROSS_JOIN)
    assert error.sqlstate == "53200"
    assert "query_max_memory" in error.message
    assert_given_back(db)


@pytest.mark.parametrize("setting", ["query_max_memory", "max_result_size"])
def test_a_walk_is_stopped_in_its_slices(db: eddyline.Connection, setting: str) -> None:
    db.execute(f"SET {setting} = '64kB'")
    error = refused(db, "SELECT xa, ya FROM a")
    assert error.sqlstate == {"query_max_memory": "53200", "max_result_size": "54000"}[setting]
    assert setting in error.message
    db.execute(f"RESET {setting}")
    assert len(db.execute("SELECT xa, ya FROM a").fetchall()) == _ROWS
    assert_given_back(db)


def test_a_limit_is_measured_by_what_it_leaves(db: eddyline.Connection) -> None:
    db.execute("SET max_result_size = '4kB'")
    assert db.execute("SELECT xa FROM a ORDER BY xa DESC LIMIT 2").fetchall() == [(_ROWS - 1,), (_ROWS - 2,)]
    assert refused(db, "SELECT xa FROM a ORDER BY xa LIMIT 1000").sqlstate == "54000"


def test_a_finishing_is_stopped_before_multiplicities_are_spelled_out(db: eddyline.Connection) -> None:
    many = "SELECT 7 AS seven FROM a, b"
    db.execute("SET max_result_size = '1MB'")
    assert refused(db, many).sqlstate == "54000"
    assert db.execute(f"{many} LIMIT 3").fetchall() == [(7,)] * 3
    db.execute("SET max_result_size = 0")
    db.execute("SET query_max_memory = '50MB'")
    assert refused(db, many).sqlstate == "53200"


@pytest.mark.parametrize("statement", [_ENDLESS, "SELECT DISTINCT xa, xb FROM a, b"])
def test_a_timeout_stops_a_dataflow(db: eddyline.Connection, statement: str) -> None:
    db.execute("SET statement_timeout = '300ms'")
    assert refused(db, statement).sqlstate == "57014"
    db.execute("RESET statement_timeout")
    assert_given_back(db)


def test_a_cancellation_stops_a_dataflow(db: eddyline.Connection) -> None:
    def cancel_once_it_runs() -> None:
        wait_until(lambda: any(d.read is not None for w in workers(db) for d in list(w._agenda)), "it is read")
        db.cancel()

    canceler = threading.Thread(target=cancel_once_it_runs)
    canceler.start()
    assert refused(db, _ENDLESS).sqlstate == "57014"
    canceler.join()
    assert_given_back(db)


@pytest.mark.parametrize("on_caller", [True, False], ids=["caller", "lane"])
def test_a_timeout_stops_a_walk(db: eddyline.Connection, on_caller: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer would take some hundred slices of 64 rows, and eight seconds."""
    original = Cluster.answer_now
    monkeypatch.setattr("eddyline.compute.peek._SLICE_ROWS", 64)
    slices = []

    def slow(self: object, batch: object) -> None:
        slices.append(batch)
        time.sleep(0.05)

    monkeypatch.setattr("eddyline.compute.peek.PeekTask._take", slow)
    if not on_caller:
        monkeypatch.setattr(Cluster, "answer_now", lambda self, peek, cancelled: None)
    db.execute("SET statement_timeout = '100ms'")
    assert refused(db, "SELECT ya FROM a").sqlstate == "57014"
    assert len(slices) < _ROWS // 64
    monkeypatch.undo()
    assert original is Cluster.answer_now
    db.execute("RESET statement_timeout")
    assert_given_back(db)


def test_bounds_are_settings_of_the_session_over_those_of_the_database(db: eddyline.Connection) -> None:
    def show(connection: eddyline.Connection) -> object:
        return connection.execute("SHOW query_max_memory").fetchall()[0][0]

    assert show(db) == "0"
    assert db.execute("SHOW max_result_size").fetchall() == [("1GB",)]
    db.execute("ALTER SYSTEM SET query_max_memory = '1024kB'")
    assert show(db) == "1MB"
    db.execute("SET query_max_memory = '2048B'")
    assert (show(db), show(db.session())) == ("2kB", "1MB")
    assert ("query_max_memory", "2kB") in db.execute("SHOW ALL").fetchall()
    db.execute("RESET query_max_memory")
    db.execute("ALTER SYSTEM RESET query_max_memory")
    assert show(db) == "0"
    for wrong in ("'5 parsecs'", "'-1'", "'4096PB'"):
        with pytest.raises(eddyline.DatabaseError) as invalid:
            db.execute(f"SET query_max_memory = {wrong}")
        assert invalid.value.sqlstate == "22023"
