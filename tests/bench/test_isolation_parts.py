"""The parts of a read's time, as they are measured."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import eddyline
from bench.isolation import anatomy
from bench.isolation.anatomy import PARTS, Probe, RunQueue, noting_phases, stage
from bench.isolation.arms import SENT, sent_by_name
from bench.isolation.load import Stream, capacity, measured_rates, run_streams
from eddyline.protocol.read_costs import PHASES, PeekPhases

MS = 1_000_000


class Clocks:
    """Made-up nanoseconds: of the world, of this thread's core, of its waits for one, and of who answers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.world = self.cpu = self.core = self.answering = 0
        patch.setattr(time, "perf_counter_ns", lambda: self.world)
        patch.setattr(time, "thread_time_ns", lambda: self.cpu)

    def probe(self) -> Probe:
        return Probe(self.queue("core"), [self.queue("answering")])

    def queue(self, name: str) -> Any:
        clocks = self

        class Queue:
            def waited_ns(self) -> int:
                return int(getattr(clocks, name))

            def close(self) -> None: ...

        return Queue()

    def spend(self, ms: int, *, cpu: int = 0, core: int = 0, answering: int = 0) -> None:
        self.world += ms * MS
        self.cpu += cpu * MS
        self.core += core * MS
        self.answering += answering * MS


def answered(**phases_ms: int) -> None:
    """As the database notes it on the thread that asked."""
    lane = "lookup"
    anatomy._noted.phases.append(PeekPhases("interactive", lane, **{f"{p}_ns": ms * MS for p, ms in phases_ms.items()}))


def test_a_reads_time_is_the_sum_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    probe = clocks.probe()
    clocks.world = 10 * MS  # it was due at 4 ms, when its client was still busy
    probe.wait()
    clocks.spend(5, core=3)
    probe.begin()
    clocks.spend(2, cpu=2)
    clocks.spend(30, answering=12)
    answered(queue=20, walk=10)
    clocks.spend(4, core=4)
    clocks.spend(7)
    parts = probe.end(4 * MS)
    probe.close()
    assert parts == {
        "busy": 6, "late_core": 3, "late_lock": 2, "cpu": 2, "core": 4, "queue": 20, "walk": 10, "lock": 7,
        anatomy.WITHIN_PHASES: 12,
    }  # fmt: skip
    assert sum(ms for part, ms in parts.items() if part in PARTS) == (clocks.world - 4 * MS) / MS


def test_a_stage_has_waits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    probe = clocks.probe()
    probe.wait()
    probe.begin()
    clocks.spend(9, cpu=1)
    stage("write")
    clocks.spend(3, cpu=1)
    answered(wait_seal=1)
    parts = probe.end(0)
    probe.close()
    assert parts == {"write": 8, "cpu": 2, "wait_seal": 1, "lock": 1}
    stage("write")  # nobody measures


def test_phases_on_the_asking_thread_are_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    probe = clocks.probe()
    probe.wait()
    probe.begin()
    clocks.spend(5, cpu=4)
    anatomy._noted.phases.append(PeekPhases("interactive", "caller", walk_ns=4 * MS))
    assert probe.end(0) == {"cpu": 4, "lock": 1}
    probe.close()


def test_a_thread_that_computes_is_told_from_one_that_waits() -> None:
    """By the operating system's own counts."""
    queue = RunQueue(threading.get_native_id())
    before, begun = queue.ran_ns(), time.thread_time_ns()
    while time.thread_time_ns() - begun < 20 * MS:
        pass
    computed = queue.ran_ns() - before
    assert 15 * MS < computed < 200 * MS
    before = queue.ran_ns()
    time.sleep(0.05)
    assert queue.ran_ns() - before < 15 * MS
    queue.close()


@pytest.mark.parametrize("interactive", [True, False])
def test_reads_of_a_database_have_parts_that_add_up(interactive: bool) -> None:
    with eddyline.connect(interactive=interactive) as db, sent_by_name(), noting_phases():
        db.execute("CREATE TABLE t (k int, v int)")
        db.execute("INSERT INTO t VALUES (1, 10)")
        db.execute("CREATE INDEX t_k ON t (k)")
        db.wait_hydrated("t_k")

        def body(session: eddyline.Connection) -> Any:
            return lambda n: session.execute("SELECT v FROM t WHERE k = 1").fetchall()

        sent, here = Stream(f"{SENT} reads", 50.0, body, clients=1), Stream("here", 50.0, body, clients=1)
        rates = measured_rates(db, [sent, here], 0.1)
        assert all(rate >= 1.0 for rate in rates.values())
        found = run_streams(db, [sent, here], 0.3)
    for name, samples in found.items():
        assert samples.parts
        for queued, served, parts in zip(samples.queued_ms, samples.served_ms, samples.parts, strict=True):
            assert set(parts) <= {*PARTS, anatomy.WITHIN_PHASES}
            # What is taken off may be more than what there was by the clocks' own errors, never less.
            assert sum(ms for part, ms in parts.items() if part in PARTS) >= queued + served - 0.2
        by_runtime = any(part in parts for parts in samples.parts for part in PHASES)
        assert by_runtime == name.startswith(SENT)


def test_a_capacity_is_that_of_reads_that_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ended = [0], [0]
    end = Probe.end

    def counted(probe: Probe, due_ns: int) -> dict[str, float]:
        ended[0] += 1
        return end(probe, due_ns)

    monkeypatch.setattr(Probe, "end", counted)
    with eddyline.connect(interactive=True) as db, noting_phases():

        def body(session: eddyline.Connection) -> Any:
            def ask(n: int) -> object:
                asked[0] += 1
                return session.execute("SELECT 1").fetchall()

            return ask

        assert capacity(db, Stream("here", 1.0, body, clients=1), 0.05) > 0
        assert asked == ended != [0]
        measured_rates(db, [Stream("here", 1.0, body, clients=1)], 0.05)
        assert asked == ended
