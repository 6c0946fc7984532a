"""Commits of many threads: who writes them, who is told of which sync, and what becomes of a waiter that leaves."""

from __future__ import annotations

import errno
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from eddyline.errors import DatabaseError
from eddyline.storage.directory import open_directory
from eddyline.storage.group_commit import GroupCommit, QueuedCommit
from eddyline.storage.log import Changes
from eddyline.storage.waiting import hear_of_waits
from eddyline.testing.torn_files import Faults, TornFiles
from tests.waiting import wait_until

PATIENCE_S = 30.0


@dataclass
class Syncs:
    """Each group waits here before its sync, until it is let go."""

    gates: list[threading.Event] = field(default_factory=list)
    open: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self) -> bool:
        gate = threading.Event()
        with self.changed:
            if self.open:
                return True
            self.gates.append(gate)
            self.changed.notify_all()
        assert gate.wait(PATIENCE_S)
        return True

    def reached(self, number: int) -> threading.Event:
        """The gate of the sync of that number, from 1, once a group waits for it."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.gates) >= number, PATIENCE_S)
            return self.gates[number - 1]

    def let_all_go(self) -> None:
        with self.changed:
            self.open = True
            for gate in self.gates:
                gate.set()


class Committer:
    """One thread that commits a document and waits.  ``publish``: what happens when it is made visible."""

    def __init__(self, database: Database, name: str, publish: Callable[[], None] = lambda: None) -> None:
        self._group = database.group
        self.visible = self.taken_back = False
        self.failure: BaseException | None = None
        self._publish = publish
        self.commit = QueuedCommit(None, {}, Changes(put={name: b"x"}), self._made_visible, self._taken_back)
        with database.order:
            self._group.add(self.commit, self._group.ticket())
        self.thread = threading.Thread(target=self._wait)
        self.thread.start()

    def _made_visible(self) -> None:
        self._publish()
        self.visible = True

    def _taken_back(self) -> None:
        self.taken_back = True

    def _wait(self) -> None:
        try:
            self._group.wait(self.commit)
        except BaseException as problem:  # noqa: BLE001 - it is what the test asks for
            self.failure = problem

    def ended(self) -> bool:
        self.thread.join(PATIENCE_S)
        return not self.thread.is_alive()


class Database:
    def __init__(self) -> None:
        self.files = TornFiles(random.Random(1))
        opened = open_directory(self.files, log_file_bytes=1 << 20)
        assert not list(opened.rows())
        self.log = opened.log
        self.syncs = Syncs()
        self.group = GroupCommit(self.log, to_disk=self.syncs)
        self.order = threading.Lock()

    def documents(self) -> set[str]:
        return set(self.log.state.documents)

    def until_waiting(self, commit: QueuedCommit) -> None:
        """Returns when somebody waits for the commit, behind a leader."""
        wait_until(lambda: commit in self.group._followers, "somebody waits")


@contextmanager
def database() -> Iterator[Database]:
    made = Database()
    try:
        yield made
    finally:
        made.syncs.let_all_go()
        made.group.close()


def following(db: Database, name: str) -> Committer:
    committer = Committer(db, name)
    db.until_waiting(committer.commit)
    return committer


def test_commits_that_come_during_a_sync_share_the_next_one() -> None:
    with database() as db:
        first = Committer(db, "first")
        gate = db.syncs.reached(1)
        others = [following(db, f"other {i}") for i in range(20)]
        gate.set()
        db.syncs.reached(2).set()
        assert all(c.ended() and c.visible for c in (first, *others))
        assert db.group.groups == 2


def test_nobody_waits_for_a_sync_that_is_not_theirs() -> None:
    with database() as db:
        first = Committer(db, "first")
        db.syncs.reached(1)
        others = [following(db, name) for name in ("a", "b", "c")]
        db.syncs.reached(1).set()
        db.syncs.reached(2)
        assert first.ended(), "while the second sync is under way"
        late = following(db, "late")
        db.syncs.reached(2).set()
        db.syncs.reached(3)
        assert all(c.ended() and c.visible for c in others), "while the third sync is under way"
        assert not late.visible
        db.syncs.reached(3).set()
        assert late.ended() and late.visible


def test_who_asks_while_a_group_is_being_made_visible_waits_for_that() -> None:
    """That it is marked for the case that this fails must not be seen."""
    with database() as db:
        half, go_on = threading.Event(), threading.Event()

        def publish() -> None:
            half.set()
            assert go_on.wait(PATIENCE_S)

        first = Committer(db, "first")
        db.syncs.reached(1)
        second = Committer(db, "second", publish)
        db.until_waiting(second.commit)
        third = QueuedCommit(None, {}, Changes(put={"third": b"x"}), lambda: None, lambda: None)
        db.group.add(third, db.group.ticket())
        db.syncs.reached(1).set()
        db.syncs.reached(2).set()
        assert half.wait(PATIENCE_S)
        outcome: list[BaseException | None] = []

        def ask() -> None:
            try:
                db.group.wait(third)
                outcome.append(None)
            except DatabaseError as problem:
                outcome.append(problem)

        asking = threading.Thread(target=ask)
        asking.start()
        db.until_waiting(third)
        assert not outcome
        go_on.set()
        asking.join(PATIENCE_S)
        assert outcome == [None]
        assert first.ended() and second.ended() and second.failure is None


def test_a_commit_that_cannot_be_made_visible_is_not_taken_for_visible() -> None:
    with database() as db:

        def fail() -> None:
            raise ZeroDivisionError

        first = Committer(db, "first")
        db.syncs.reached(1)
        broken = Committer(db, "broken", fail)
        db.until_waiting(broken.commit)
        behind = following(db, "behind")
        db.syncs.reached(1).set()
        db.syncs.reached(2).set()
        assert first.ended() and broken.ended() and behind.ended()
        assert first.failure is None
        assert isinstance(broken.failure, ZeroDivisionError), "it led"
        assert isinstance(behind.failure, DatabaseError) and behind.failure.sqlstate == "58000"


@pytest.mark.skipif(sys.platform == "win32", reason="signals to threads")
def test_a_waiter_that_a_signal_calls_away_leaves_its_commit_and_the_lead_to_others() -> None:
    class Away(Exception):
        pass

    def called(number: int, frame: object) -> None:
        raise Away

    before = signal.signal(signal.SIGUSR1, called)
    try:
        with database() as db:
            first = Committer(db, "first")
            db.syncs.reached(1)
            mine = QueuedCommit(None, {}, Changes(put={"mine": b"x"}), lambda: None, lambda: None)
            db.group.add(mine, db.group.ticket())
            main = threading.main_thread().ident
            assert main is not None

            def call_away() -> None:
                db.until_waiting(mine)
                signal.pthread_kill(main, signal.SIGUSR1)

            calling = threading.Thread(target=call_away)
            calling.start()
            with pytest.raises(Away):
                db.group.wait(mine)
            calling.join(PATIENCE_S)
            db.syncs.let_all_go()
            assert first.ended() and first.visible
            other = Committer(db, "other")
            assert other.ended() and other.visible
            assert db.documents() == {"first", "mine", "other"}
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_all_that_share_a_write_that_fails_are_told_and_later_commits_go_on() -> None:
    with database() as db:
        first = Committer(db, "first")
        db.syncs.reached(1)
        others = [following(db, f"other {i}") for i in range(5)]
        full = Faults(lambda operation, number: errno.ENOSPC if operation == "write" else None)
        db.syncs.reached(1).set()
        assert first.ended()
        db.syncs.reached(2)
        sound, db.files.faults = (
            db.files.faults,
            Faults(lambda operation, number: errno.ENOSPC if operation == "sync" and number == 0 else None),
        )
        db.syncs.reached(2).set()
        assert all(c.ended() and c.taken_back for c in others)
        assert {getattr(c.failure, "sqlstate", None) for c in others} == {"53100"}
        db.files.faults = full
        db.syncs.let_all_go()
        alone = Committer(db, "alone")
        assert alone.ended() and getattr(alone.failure, "sqlstate", None) == "53100"
        db.files.faults = sound
        last = Committer(db, "last")
        assert last.ended() and last.visible
        assert db.documents() == {"first", "last"}


def document_commit(name: str, state: dict[str, bool]) -> QueuedCommit:
    """One that says in ``state`` what became of it, and lets others run while it is made visible."""

    def publish() -> None:
        time.sleep(0)
        state["visible"] = True

    def take_back() -> None:
        state["gone"] = True

    return QueuedCommit(None, {}, Changes(put={name: b"x"}), publish, take_back)


@pytest.mark.parametrize("seed", range(3))
def test_what_a_waiter_is_told_is_so_whatever_fails(seed: int) -> None:
    with database() as db:
        db.syncs.let_all_go()
        draw = random.Random(seed)
        db.files.faults = Faults(
            lambda operation, number: errno.ENOSPC if operation in ("write", "sync") and draw.random() < 0.02 else None
        )
        wrong: list[str] = []
        written: set[str] = set()

        def write(writer: int) -> None:
            for i in range(40):
                name = f"{writer}.{i}"
                state = {"visible": False, "gone": False}
                commit = document_commit(name, state)
                try:
                    with db.order:
                        db.group.add(commit, db.group.ticket())
                    db.group.wait(commit)
                    told = True
                    written.add(name)
                except DatabaseError as problem:
                    told = False
                    if problem.sqlstate not in ("53100", "40001"):  # the other: it came while others were taken back
                        wrong.append(f"{name}: {problem}")
                if state != {"visible": told, "gone": not told}:
                    wrong.append(f"{name}: told {told}, {state}")

        threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)
        assert not wrong
        db.files.faults = Faults()
        assert db.documents() == written


def test_a_thread_that_is_lent_out_is_heard_of_while_it_waits() -> None:
    heard: list[str] = []

    @contextmanager
    def entered() -> Iterator[None]:
        heard.append("waits")
        yield
        heard.append("goes on")

    with database() as db:
        db.syncs.let_all_go()

        def commit() -> None:
            hear_of_waits(entered)
            done = QueuedCommit(None, {}, Changes(put={"x": b"x"}), lambda: heard.append("visible"), lambda: None)
            db.group.add(done, db.group.ticket())
            db.group.wait(done)

        thread = threading.Thread(target=commit)
        thread.start()
        thread.join(PATIENCE_S)
        other = Committer(db, "of a thread that nobody has spoken for")
        assert other.ended() and other.visible
    assert heard == ["waits", "visible", "goes on"]
