"""A commit that is being written: nobody sees it, everybody who writes takes it into account."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from eddyline.adapter.durability import Durability
from eddyline.adapter.restoring import restored_engine
from eddyline.errors import DatabaseError
from eddyline.frontends.connection import Connection
from eddyline.testing.torn_files import Faults, TornFiles


class SlowDisk:
    """Stops the thread that syncs, from ``hold`` to ``release``."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self.stopped = threading.Event()
        self.files = TornFiles(random.Random(0), Faults(fail=self._fail))
        self.code: int | None = None

    def _fail(self, operation: str, number: int) -> int | None:
        if operation == "sync" and not self._open.is_set():
            self.stopped.set()
            assert self._open.wait(60)
            return self.code
        return None

    def hold(self, code: int | None = None) -> None:
        """``code``: the errno that the syncs fail with in the end."""
        self.code = code
        self.stopped.clear()
        self._open.clear()

    def release(self) -> None:
        self._open.set()


@pytest.fixture
def disk() -> Iterator[SlowDisk]:
    disk = SlowDisk()
    yield disk
    disk.release()


@pytest.fixture
def db(disk: SlowDisk) -> Iterator[Connection]:
    with Connection(restored_engine(Durability(disk.files)), owner=True) as db:
        db.executescript("CREATE TABLE a (x int PRIMARY KEY); CREATE TABLE b (x int); INSERT INTO a VALUES (1)")
        yield db


def in_background(db: Connection, statement: str) -> tuple[threading.Thread, list[DatabaseError]]:
    """The statement on a session of its own."""
    failures: list[DatabaseError] = []
    session = db.session()

    def run() -> None:
        try:
            session.execute(statement)
        except DatabaseError as error:
            failures.append(error)
        session.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failures


def test_a_commit_is_seen_once_it_is_safe_and_not_before(db: Connection, disk: SlowDisk) -> None:
    disk.hold()
    thread, failures = in_background(db, "INSERT INTO a VALUES (2)")
    assert disk.stopped.wait(60)
    assert db.execute("SELECT x FROM a").fetchall() == [(1,)]
    disk.release()
    thread.join()
    assert failures == []
    assert sorted(db.execute("SELECT x FROM a").fetchall()) == [(1,), (2,)]


def test_a_commit_that_failed_was_never_seen_and_leaves_its_key_free(db: Connection, disk: SlowDisk) -> None:
    disk.hold(28)
    thread, failures = in_background(db, "INSERT INTO a VALUES (2)")
    assert disk.stopped.wait(60)
    second, others = in_background(db, "INSERT INTO a VALUES (2)")
    second.join()  # the first one holds its key, though it is not safe yet
    assert [f.sqlstate for f in others] == ["23505"]
    disk.release()
    thread.join()
    assert [f.sqlstate for f in failures] == ["53100"]
    disk.code = None
    assert db.execute("SELECT x FROM a").fetchall() == [(1,)]
    db.execute("INSERT INTO a VALUES (2)")


def test_a_transaction_that_read_what_is_being_written_is_refused(db: Connection, disk: SlowDisk) -> None:
    db.execute("BEGIN")
    assert db.execute("SELECT count(*) FROM a").fetchall() == [(1,)]
    db.execute("INSERT INTO b VALUES (1)")
    disk.hold()
    thread, failures = in_background(db, "INSERT INTO a VALUES (2)")
    assert disk.stopped.wait(60)
    with pytest.raises(DatabaseError) as caught:
        db.execute("COMMIT")
    assert caught.value.sqlstate == "40001"
    disk.release()
    thread.join()
    assert failures == []


def test_a_definition_waits_for_the_commits_before_it(db: Connection, disk: SlowDisk) -> None:
    disk.hold()
    thread, failures = in_background(db, "INSERT INTO b VALUES (1), (2)")
    assert disk.stopped.wait(60)
    dropping, others = in_background(db, "DROP TABLE b")
    disk.release()
    thread.join()
    dropping.join()
    assert failures == others == []
    with pytest.raises(DatabaseError) as caught:
        db.execute("SELECT * FROM b")
    assert caught.value.sqlstate == "42P01"
