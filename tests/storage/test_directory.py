"""Durable directories: what is refused and how, full disks, damage, reopening, compaction."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from eddyline.errors import DatabaseError, Error
from eddyline.storage.directory import open_directory
from eddyline.storage.files import OsFiles
from eddyline.storage.log import Changes
from eddyline.testing.torn_files import Faults, TornFiles
from tests.storage.log_model import TYPES, Contents, Database, Rows

TABLE = Changes(put={"item/t": b"t"}, created={"t": TYPES})


NOTHING = Changes()


def commit(database: Database, *writes: Rows, changes: Changes = NOTHING) -> Error | None:
    return database.settle([database.queue({"t": rows}, changes) for rows in writes])


def filled(files: TornFiles, seed: int, steps: int = 30) -> Contents:
    """Random commits and compaction, then closed."""
    rng = random.Random(seed)
    database = Database(files)
    for _ in range(steps):
        database.settle([database.queue(*database.random_commit(rng))])
        database.compaction.step()
    database.close()
    return database.acknowledged


def test_what_was_committed_is_there_after_reopening_twenty_times() -> None:
    rng = random.Random(1)
    files = TornFiles(rng)
    expected = Contents()
    for _ in range(20):
        database = Database(files, log_file_bytes=1 << 20)
        assert database.acknowledged == expected
        for _ in range(5):
            database.settle([database.queue(*database.random_commit(rng))])
        expected = database.acknowledged
        database.close()
    assert len(files.names()) < 10, "files that nothing needs are removed"


def test_a_database_that_lost_the_file_of_its_format_is_left_as_it_is() -> None:
    files = TornFiles(random.Random(1))
    filled(files, seed=1)
    files.remove("FORMAT")
    before = sorted(files.names())
    for _ in range(2):
        with pytest.raises(Error, match="FORMAT") as caught:
            Database(files)
        assert caught.value.sqlstate == "XX001"
        assert sorted(files.names()) == before


def test_a_directory_whose_making_was_interrupted_is_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    files = TornFiles(random.Random(1))

    def full(files: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    for _ in range(2):
        with monkeypatch.context() as patched, pytest.raises(Error) as caught:
            patched.setattr("eddyline.storage.directory.write_format", full)
            open_directory(files)
        assert caught.value.sqlstate == "53100"
        assert any(name.endswith(".log") for name in files.names())
    Database(files).close()
    assert "FORMAT" in files.names()


def test_times_rise_over_reopening_also_those_of_commits_that_were_only_reserved() -> None:
    files = TornFiles(random.Random(1))
    database = Database(files)
    commit(database, {(1, "a"): 1}, changes=TABLE)
    database.group.reserve(5_000_000)
    reserved = database.opened.log.reserved
    assert reserved >= 5_000_000
    assert open_directory(files.kill()).state.reserved == reserved


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("operation", ["write", "sync", "create", "sync_names", "truncate", "remove"])
def test_a_statement_that_cannot_be_written_fails_alone_at_every_operation(operation: str, code: int) -> None:
    """Each n-th operation fails once; whatever failed left no trace, and the database goes on."""
    failures = 0
    for n in range(0, 90, 3 if operation != "create" else 1):
        rng = random.Random(n)
        files = TornFiles(rng)
        files.faults = Faults(fail=_fails(operation, n, code, times=rng.choice((1, 2, 7))))
        try:
            database = Database(files, log_file_bytes=900, least_bytes=1200)
        except DatabaseError as refusal:
            assert refusal.sqlstate == ("53100" if code == errno.ENOSPC else "58030")
            failures += 1
            files.faults = Faults()
            database = Database(files, log_file_bytes=900, least_bytes=1200)
        for _ in range(25):
            before = database.visible.copy()
            problem = database.settle([database.queue(*database.random_commit(rng))])
            if problem is not None:
                failures += 1
                assert problem.sqlstate == ("53100" if code == errno.ENOSPC else "58030")
                assert database.visible == before
                assert Database(files.kill()).acknowledged in database.possible
            try:
                database.compaction.step()
            except Error as trouble:
                failures += 1
                assert trouble.sqlstate == ("53100" if code == errno.ENOSPC else "58030")
        files.faults = Faults()
        assert commit(database, changes=Changes()) is None
        database.settle([database.queue(*database.random_commit(rng))])
        database.close()
        assert Database(files.crash(rng)).acknowledged == database.visible
    if operation not in ("truncate", "remove"):
        assert failures > 5


def _fails(operation: str, first: int, code: int, *, times: int) -> Callable[[str, int], int | None]:
    left = [times]

    def fail(name: str, number: int) -> int | None:
        if name != operation or number < first or not left[0]:
            return None
        left[0] -= 1
        return code

    return fail


def test_a_failed_commit_takes_those_back_that_were_checked_against_it() -> None:
    files = TornFiles(random.Random(3))
    database = Database(files)
    commit(database, {(1, "a"): 1}, changes=TABLE)
    files.faults = Faults(fail=lambda operation, _: errno.ENOSPC if operation == "write" else None)
    first, second = database.queue({"t": {(2, "b"): 1}}, Changes()), database.queue({"t": {(2, "b"): -1}}, Changes())
    with pytest.raises(DatabaseError, match="No space left") as caught:
        database.group.wait(second)
    assert caught.value.sqlstate == "53100"
    assert first.failure is second.failure
    assert database.visible.tables["t"] == {(1, "a"): 1}
    files.faults = Faults()
    assert commit(database, {(3, "c"): 1}) is None
    assert Database(files.crash(random.Random(4))).acknowledged.tables["t"] == {(1, "a"): 1, (3, "c"): 1}


def test_commits_that_were_acknowledged_early_are_kept_until_there_is_space() -> None:
    files = TornFiles(random.Random(3))
    database = Database(files)
    commit(database, {(1, "a"): 1}, changes=TABLE)
    files.faults = Faults(fail=lambda operation, _: errno.ENOSPC if operation == "write" else None)
    early = database.queue({"t": {(2, "b"): 1}}, Changes(), wait=False)
    assert early.early
    late = database.queue({"t": {(3, "c"): 1}}, Changes())
    with pytest.raises(DatabaseError):
        database.group.wait(late)
    with pytest.raises(DatabaseError):
        database.group.flush()
    assert database.visible.tables["t"] == {(1, "a"): 1, (2, "b"): 1}
    files.faults = Faults()
    database.group.flush()
    assert Database(files.crash(random.Random(4))).acknowledged.tables["t"] == {(1, "a"): 1, (2, "b"): 1}


def test_any_flipped_bit_is_noticed_or_changes_nothing() -> None:
    noticed = 0
    for seed in range(6):
        rng = random.Random(seed)
        files = TornFiles(rng)
        expected = filled(files, seed)
        for name in files.names():
            if name == "LOCK":
                continue
            for _ in range(25):
                damaged = files.kill()
                damaged.flip(name, rng.randrange(files.size(name)))
                try:
                    found = Database(damaged).acknowledged
                except DatabaseError as error:
                    assert error.sqlstate in ("XX001", "0A000")
                    assert name in str(error) or name == "FORMAT"
                    noticed += 1
                else:
                    assert found == expected, name
    assert noticed > 100


def test_a_missing_file_is_named() -> None:
    files = TornFiles(random.Random(0))
    filled(files, 2)
    for name in [n for n in files.names() if n.endswith(".rows")]:
        damaged = files.kill()
        damaged.remove(name)
        with pytest.raises(DatabaseError, match=name) as caught:
            Database(damaged)
        assert caught.value.sqlstate == "XX001"


def test_compaction_keeps_the_directory_proportional_and_commits_go_on_between_its_steps() -> None:
    rng = random.Random(5)
    files = TornFiles(rng)
    database = Database(files, log_file_bytes=4000, least_bytes=8000)
    commit(database, {(i, "v"): 1 for i in range(100)}, changes=TABLE)
    largest = 0
    for i in range(400):
        row = rng.choice(sorted(database.visible.tables["t"]))
        assert commit(database, {row: -1, (i, "w" * 50): 1}) is None
        database.compaction.step()
        largest = max(largest, sum(files.size(n) for n in files.names()))
    assert database.compaction.tables_written > 3
    assert largest < 60_000
    database.close()
    assert Database(files).acknowledged == database.visible


def test_a_dropped_table_gives_its_space_back() -> None:
    files = TornFiles(random.Random(5))
    database = Database(files, log_file_bytes=4000, least_bytes=8000)
    commit(database, {(i, "v" * 100): 1 for i in range(300)}, changes=TABLE)
    database.compaction.run()
    full = sum(files.size(n) for n in files.names())
    database.settle([database.queue({}, Changes(removed=("item/t",), dropped=("t",)))])
    assert sum(files.size(n) for n in files.names()) < full / 10


# -- in the file system ---------------------------------------------------------------------------------------------


def test_commits_behind_the_last_file_of_rows_are_told_apart_by_their_times() -> None:
    files = TornFiles(random.Random(4))
    database = Database(files)
    commit(database, {(1, "a"): 1}, changes=TABLE)
    commit(database, {(2, "a"): 1})
    times = [database.time - 1, database.time]
    database.close()
    opened = open_directory(files)
    assert opened.told_apart_from() < times[0]
    assert [(part.columns[0].to_pylist(), part.times.tolist()) for _, part in opened.rows()] == [
        ([1], times[:1]),
        ([2], times[1:]),
    ]
    opened.log.close()

    database = Database(files)
    database.compaction.run()
    compacted = database.visible.time
    commit(database, {(3, "a"): 1}, {(1, "a"): -1})
    times = [database.time - 1, database.time]
    database.close()
    opened = open_directory(files)
    assert opened.told_apart_from() == compacted < times[0]
    found = [(sorted(part.columns[0].to_pylist()), set(part.times.tolist())) for _, part in opened.rows()]
    assert found == [([1, 2], {compacted}), ([3], {times[0]}), ([1], {times[1]})]
    opened.log.close()


def test_a_directory_is_opened_once_at_a_time(tmp_path: Path) -> None:
    files = OsFiles(tmp_path)
    first = Database(files)
    with pytest.raises(DatabaseError, match="open already") as caught:
        Database(OsFiles(tmp_path))
    assert caught.value.sqlstate == "55006"
    assert str(os.getpid()) == (tmp_path / "LOCK").read_text().splitlines()[0]
    first.close()
    Database(files).close()


def test_a_lock_file_of_a_process_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "LOCK").write_text("999999999\n")
    Database(OsFiles(tmp_path)).close()


def test_a_writer_whose_directory_was_taken_over_writes_nothing_more(tmp_path: Path) -> None:
    old = Database(OsFiles(tmp_path))
    commit(old, {(1, "a"): 1}, changes=TABLE)
    (tmp_path / "LOCK").unlink()
    new = Database(OsFiles(tmp_path))
    problem = commit(old, {(2, "b"): 1})
    assert problem is not None
    assert problem.sqlstate == "55006"
    assert old.visible.tables["t"] == {(1, "a"): 1}
    assert commit(new, {(3, "c"): 1}) is None
    new.close()
    assert Database(OsFiles(tmp_path)).acknowledged.tables["t"] == {(1, "a"): 1, (3, "c"): 1}


def test_a_newer_format_is_refused_with_its_number(tmp_path: Path) -> None:
    Database(OsFiles(tmp_path)).close()
    (tmp_path / "FORMAT").write_text("eddyline directory, format 7\n")
    with pytest.raises(DatabaseError, match="format 7") as caught:
        Database(OsFiles(tmp_path))
    assert caught.value.sqlstate == "0A000"


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(DatabaseError, match="is not a database") as caught:
        Database(OsFiles(tmp_path))
    assert caught.value.sqlstate == "42809"
    assert (tmp_path / "letter.txt").read_text() == "dear"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the open files are looked up there")
def test_a_copy_of_the_lock_that_a_child_has_yet_to_close_keeps_nobody_out(tmp_path: Path) -> None:
    files = OsFiles(tmp_path)
    lock = files.lock()
    path = str(tmp_path.resolve() / "LOCK")
    (fd,) = [int(e.name) for e in Path("/proc/self/fd").iterdir() if os.path.realpath(e) == path]
    copy = os.dup(fd)
    try:
        lock.release()
        files.lock().release()
    finally:
        os.close(copy)
