"""A directory whose disk is full when it is opened: it is read, and written to once there is room."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from eddyline.errors import DatabaseError
from eddyline.storage.directory import open_directory
from eddyline.storage.files import OsFiles
from eddyline.storage.log import Changes
from eddyline.testing.torn_files import Faults, TornFiles
from tests.storage.log_model import TYPES, Database, Rows

TABLE = Changes(put={"item/t": b"t"}, created={"t": TYPES})


def full_from(operation: int, wanting: tuple[str, ...] = ("write", "create", "sync")) -> Faults:
    """Nothing that may need room succeeds from that operation on."""
    return Faults(fail=lambda name, number: errno.ENOSPC if name in wanting and number >= operation else None)


def filled(seed: int, *, commits: int = 12) -> tuple[TornFiles, Database]:
    files = TornFiles(random.Random(seed))
    database = Database(files)
    draw = random.Random(seed)
    assert database.settle([database.queue({"t": {(0, "first"): 1}}, TABLE)]) is None
    for _ in range(commits):
        assert database.settle([database.queue(*database.random_commit(draw))]) is None
        database.compaction.step()
    return files, database


def insert(database: Database, rows: Rows) -> DatabaseError | None:
    problem = database.settle([database.queue({"t": rows} if "t" in database.visible.tables else {}, Changes())])
    assert problem is None or isinstance(problem, DatabaseError)
    return problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("carried", [True, False])
def test_what_was_committed_is_read_however_little_room_there_is(seed: int, carried: bool) -> None:
    file_bytes = 1 << 20 if carried else 600
    left, before = filled(seed)
    refused = written = 0
    for n in range(1, 14):  # the first operation makes safe what was written before
        files = left.kill()
        files.faults = full_from(n)
        database = Database(files, log_file_bytes=file_bytes)
        assert database.acknowledged == before.visible
        problem = database.settle([database.queue({}, Changes(put={"new": b"x"}))])
        assert problem is None or (isinstance(problem, DatabaseError) and problem.sqlstate == "53100")
        refused, written = refused + (problem is not None), written + (problem is None)
        assert Database(files.kill()).acknowledged in database.possible
        files.faults = Faults()
        assert database.settle([database.queue({}, Changes(put={"newer": b"y"}))]) is None
        database.compaction.step()
        database.close()
        assert Database(files.crash(random.Random(seed))).acknowledged == database.visible
    assert refused and written, "from no room at all to enough"


def test_opening_again_and_again_on_a_full_disk_leaves_nothing_behind() -> None:
    left, before = filled(1)
    files = left.kill()
    open_directory(files).log.close()
    names = sorted(files.names())
    for _ in range(5):
        files = files.kill()
        files.faults = full_from(1)
        database = Database(files)
        assert database.acknowledged == before.visible
        database.opened.log.close()
        assert sorted(files.names()) == names


def test_where_there_is_room_for_a_head_alone_a_table_can_be_dropped_and_its_files_go() -> None:
    files = TornFiles(random.Random(2))
    database = Database(files)
    assert database.settle([database.queue({"t": {(n, "v" * 200): 1 for n in range(50)}}, TABLE)]) is None
    files = files.kill()
    room = [3000]

    def fail(operation: str, _number: int) -> int | None:
        return errno.ENOSPC if operation == "write" and room[0] <= 0 else None

    files.faults = Faults(fail=fail)
    write = TornFiles.create

    def bounded(name: str) -> object:
        file = write(files, name)
        plain = file.write

        def counted(data: bytes | memoryview, offset: int) -> None:
            size = memoryview(data).nbytes
            if size > room[0]:
                raise OSError(errno.ENOSPC, "no space")
            room[0] -= size
            plain(data, offset)

        file.write = counted  # type: ignore[method-assign]  # of this one file
        return file

    files.create = bounded  # type: ignore[method-assign, assignment]  # of this folder
    database = Database(files)
    assert len(database.acknowledged.tables["t"]) == 50, "10 kB of rows do not fit and stay where they are"
    before = sum(len(files.open(n).read(0, 1 << 20)) for n in files.names())
    gone = Changes(removed=("item/t",), dropped=("t",))
    assert database.settle([database.queue({}, gone)]) is None
    while database.compaction.step():
        continue
    assert sum(len(files.open(n).read(0, 1 << 20)) for n in files.names()) < before / 2
    assert Database(files.crash(random.Random(3))).acknowledged == database.visible


def test_who_may_not_be_the_only_opener_needs_room_and_says_what_to_do() -> None:
    left, before = filled(3)
    files = left.kill()
    held = open_directory(files)
    files.take_over()
    files.faults = full_from(0)
    with pytest.raises(DatabaseError) as caught:
        open_directory(files)
    assert caught.value.sqlstate == "53100"
    assert caught.value.hint is not None and "open the directory again" in caught.value.hint
    assert files.locked_by is None
    files.faults = Faults()
    assert Database(files).acknowledged == before.visible
    held.log.close()


def test_a_directory_is_not_made_on_a_full_disk() -> None:
    files = TornFiles(random.Random(4))
    files.faults = full_from(0)
    with pytest.raises(DatabaseError) as caught:
        open_directory(files)
    assert caught.value.sqlstate == "53100" and caught.value.hint is not None
    files.faults = Faults()
    open_directory(files)


def test_an_opener_without_a_log_file_that_is_overtaken_before_it_begins_one_changes_nothing() -> None:
    """It has checked the lock, is stopped, and begins its file when the other has committed: whatever the number."""
    left, _ = filled(5)
    files = left.kill()
    files.faults = full_from(1, ("write", "sync"))
    old = Database(files)
    for _ in range(4):  # each takes a number
        assert insert(old, {(7, "old"): 1}) is not None
    files.faults = Faults()
    files.take_over()
    new = Database(files)
    assert insert(new, {(8, "new"): 1}) is None
    old.opened.log._begin_file()
    assert Database(files.kill()).acknowledged == new.visible


def test_a_lock_file_is_written_in_the_room_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = OsFiles(tmp_path)
    first = files.lock()
    first.settle()
    first.release()
    lengths = []
    monkeypatch.setattr("os.ftruncate", lambda fd, size: lengths.append(size))
    again = files.lock()
    assert again.sole
    again.release()
    assert lengths == [(tmp_path / "LOCK").stat().st_size]
