"""The runtime on its threads: waking, sharing, stopping."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from eddyline.compute.solo import Solo
from eddyline.controller.controller import Controller
from eddyline.controller.events import PeekAnswered, ReplicaFailed
from eddyline.protocol.messages import Peek, PeekResponse, Response
from eddyline.repr.time import Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.compute.runtime_harness import PAIR, identity, indexed, pairs, rows_of


class Database:
    """A controller behind a lock, fed by the runtime's threads, as an embedding program has it."""

    def __init__(self, workers: int) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.hasher = Hasher()
        self.store = TableStore(self.hasher, retention_us=0)
        self.controller = Controller(self.store, retention_us=0)
        self.answers: dict[str, PeekResponse] = {}
        self.failures: list[str] = []
        self.time = 0
        self.solo = Solo(self.store, self.hasher, workers=workers, listener=self.respond)
        self.controller.attach_replica(self.solo)

    def respond(self, response: Response) -> None:
        with self.changed:
            for event in self.controller.process_response(response):
                if isinstance(event, PeekAnswered):
                    self.answers[event.response.uuid] = event.response
                elif isinstance(event, ReplicaFailed):
                    self.failures.append(event.message)
            self.changed.notify_all()

    def table(self, id: str) -> None:
        with self.lock:
            self.controller.create_table(
                id, PAIR, key=None, names=("k", "v"), table=id, constraint="", at=Time(self.time)
            )

    def ask(self, target: str, key: int | None = None) -> str:
        with self.lock:
            keys = None if key is None else ((key,),)
            return self.controller.peek(target, Time(self.time), identity(PAIR), key_types=PAIR[:1], keys=keys)

    def read(self, target: str, key: int | None = None) -> PeekResponse:
        return self.answer(self.ask(target, key))

    def answer(self, uuid: str) -> PeekResponse:
        with self.changed:
            assert self.changed.wait_for(lambda: uuid in self.answers, 30)
            return self.answers.pop(uuid)

    def commit(self, rows: list[tuple[int | None, int | None]]) -> None:
        with self.lock:
            self.time += 1
            time = self.time
        self.store.append({"t": pairs(rows)}, Time(time))


@contextmanager
def database(workers: int) -> Iterator[Database]:
    db = Database(workers)
    try:
        yield db
    finally:
        db.solo.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_every_commit_is_read_back_at_once(workers: int) -> None:
    with database(workers) as db:
        db.table("t")
        db.commit([])
        with db.lock:
            db.controller.create_dataflow(indexed("i", "t"))
        model: Counter[tuple[object, ...]] = Counter()
        rng = np.random.default_rng(2)
        for _ in range(100):
            rows = [(int(k), int(v)) for k, v in rng.integers(0, 9, (5, 2))]
            model.update(rows)
            db.commit(rows)  # type: ignore[arg-type]  # lists are invariant
            key = int(rng.integers(9))
            assert rows_of(db.read("i", key)) == {r: n for r, n in model.items() if r[0] == key}
        assert rows_of(db.read("i")) == model


def test_threads_have_names_and_end_with_the_runtime() -> None:
    others = set(threading.enumerate())  # databases that other tests share
    with database(2):
        ours = set(threading.enumerate()) - others
        assert {"solo:0", "solo:1"} <= {t.name for t in ours}
    assert not {t.name for t in ours & set(threading.enumerate())} & {"solo:0", "solo:1"}


def test_an_idle_runtime_does_not_run() -> None:
    with database(1) as db:
        db.table("t")
        db.commit([(1, 1)])
        with db.lock:
            db.controller.create_dataflow(indexed("i", "t"))
        db.read("i")
        (worker,) = db.solo._threads
        clock = time.pthread_getcpuclockid(worker.ident or 0)

        def taken() -> int:
            """What it computes in a fifth of a second."""
            before = time.clock_gettime_ns(clock)
            time.sleep(0.2)
            return time.clock_gettime_ns(clock) - before

        # It may have things to put in order first.
        assert any(taken() < 1_000_000 for _ in range(100))


def test_readers_and_writers_on_many_threads_see_whole_commits() -> None:
    with database(2) as db:
        db.table("t")
        db.commit([])
        with db.lock:
            db.controller.create_dataflow(indexed("i", "t"))
        stop = threading.Event()
        torn: list[object] = []

        def reader() -> None:
            while not stop.is_set():
                total = sum(rows_of(db.read("i")).values())
                if total % 4:
                    torn.append(total)

        threads = [threading.Thread(target=reader) for _ in range(4)]
        for thread in threads:
            thread.start()
        for n in range(100):
            db.commit([(n, i) for i in range(4)])
        stop.set()
        for thread in threads:
            thread.join(30)
        assert not any(t.is_alive() for t in threads)
        assert not torn
        assert sum(rows_of(db.read("i")).values()) == 400


def test_a_failure_on_one_thread_ends_all_and_fails_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with database(2) as db:
        db.table("t")
        db.commit([(1, 1)])
        with db.lock:
            db.controller.create_dataflow(indexed("i", "t"))
        db.read("i")
        monkeypatch.setattr("eddyline.compute.operators.arrange.ArrangeOperator.step", _explode)
        with db.lock:
            db.time += 1
        uuid = db.ask("i")
        db.store.append({"t": pairs([(2, 2)])}, Time(db.time))
        error = db.answer(uuid).error
        assert error is not None
        assert error[0] == "58000"
        assert len(db.failures) == 1


def _explode(self: object) -> bool:
    raise RuntimeError("boom")


def test_answers_on_many_callers_threads_are_exact_while_the_index_changes() -> None:
    with database(2) as db:
        db.table("t")
        db.commit([(n, 0) for n in range(20)])
        with db.lock:
            db.controller.create_dataflow(indexed("i", "t"))
        db.read("i")
        stop = threading.Event()
        answered: Counter[bool] = Counter()
        wrong: list[object] = []

        def reader() -> None:
            while not stop.is_set():
                time = db.time
                answer = db.solo.answer_now(Peek("i", "u", time, PAIR[:1], ((7,),), identity(PAIR)))
                answered[answer is not None] += 1
                # Each commit adds one row with this key.
                if answer is not None and sum(rows_of(answer).values()) != time:
                    wrong.append((time, answer))

        threads = [threading.Thread(target=reader) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(300):
            db.commit([(7, n)])
        stop.set()
        for thread in threads:
            thread.join(30)
        assert not wrong
        assert sum(rows_of(db.read("i", 7)).values()) == 301
