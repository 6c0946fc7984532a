"""Whoever has lost a directory while it was stopped, in the midst of whatever step, changes nothing in it any more."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.errors import DatabaseError, Error
from eddyline.storage.backup import copy_database
from eddyline.storage.directory import begun_logs
from eddyline.storage.files import OsFiles
from eddyline.storage.log import Changes
from eddyline.testing.stopped import stopped
from eddyline.testing.torn_files import Faults, TornFiles
from tests.storage.log_model import TYPES, Database

TABLE = Changes(put={"item/t": b"t"}, created={"t": TYPES})
FILE_BYTES = 1500


class Overtaken:
    """Somebody who is stopped at operation ``stop_at`` on the files, while another opens the directory and commits.

    Then the operation goes on, or fails with ``code``, and so does whoever was stopped.
    """

    def __init__(self, seed: int, stop_at: int, code: int | None) -> None:
        self.rng = random.Random(seed)
        self.files = TornFiles(self.rng)
        self.stop_at, self.code = stop_at, code
        self.new: Database | None = None
        self.taking_over = False
        self.seen = 0
        self.old = Database(self.files, log_file_bytes=FILE_BYTES)
        self.files.faults = Faults(fail=self.operation)

    def operation(self, _operation: str, _number: int) -> int | None:
        if self.taking_over or self.new is not None:
            return None
        self.seen += 1
        if self.seen <= self.stop_at:
            return None
        self.taking_over = True
        self.files.take_over()
        self.new = Database(self.files, log_file_bytes=FILE_BYTES)
        found = self.new.acknowledged
        assert found == self.old.acknowledged or any(found == each for each in self.old.possible)
        self.write(self.new)
        self.taking_over = False
        return self.code

    def write(self, database: Database, steps: int = 3) -> list[Error]:
        """A few commits, with compaction between them; what fails."""
        problems: list[Error] = []
        for _ in range(steps):
            problem = database.settle([database.queue(*database.random_commit(self.rng))])
            problems += [] if problem is None else [problem]
            try:
                database.compaction.step()
            except Error as error:
                problems.append(error)
        return problems


@pytest.mark.parametrize("code", [None, errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("seed", range(4))
def test_an_opener_that_was_stopped_at_any_operation_changes_nothing_afterwards(seed: int, code: int | None) -> None:
    stop_at = 0
    while True:
        case = Overtaken(seed, stop_at, code)
        case.write(case.old, steps=12)
        if case.new is None:
            break  # it has fewer operations
        problems = case.write(case.old)
        assert problems
        assert {p.sqlstate for p in problems} == {"55006"}
        assert not case.write(case.new, steps=5), "the new one does not notice"
        case.old.close()
        case.new.close()
        last = Database(case.files, log_file_bytes=FILE_BYTES)
        assert last.acknowledged == case.new.acknowledged, f"stopped at operation {stop_at}"
        assert not case.write(last)
        stop_at += 1
    assert stop_at > 30, "the steps of commits, new files and compaction"


@pytest.mark.parametrize("killed_between", [False, True])
def test_what_was_found_of_a_commit_that_failed_is_not_cut_off_by_its_writer(killed_between: bool) -> None:
    """Who was stopped just before taking back what could not be synced; the file is too large to be carried over.

    Also where the first one to take the directory over was killed before it had got anywhere.
    """
    files = TornFiles(random.Random(1))
    old = Database(files, log_file_bytes=1 << 20)
    old.settle([old.queue({"t": {(1, "a" * FILE_BYTES): 1}}, TABLE)])
    late: list[Database] = []

    def stopped(operation: str, _number: int) -> int | None:
        if operation == "truncate":
            files.take_over()
            files.faults = Faults()
            if killed_between:
                files.lock().release()
            late.append(Database(files, log_file_bytes=FILE_BYTES))
        return errno.EIO if operation == "sync" else None

    files.faults = Faults(fail=stopped)
    problem = old.settle([old.queue({"t": {(2, "b"): 1}}, Changes())])
    assert problem is not None
    (new,) = late
    expected = {(1, "a" * FILE_BYTES): 1, (2, "b"): 1}
    assert new.acknowledged.tables["t"] == expected
    new.close()
    assert Database(files, log_file_bytes=FILE_BYTES).acknowledged.tables["t"] == expected


def test_a_log_file_begun_by_somebody_who_has_lost_the_directory_counts_for_nothing() -> None:
    """Though it has the highest number of all."""
    files = TornFiles(random.Random(1))
    old = Database(files, log_file_bytes=FILE_BYTES)
    old.settle([old.queue({"t": {(1, "a"): 1}}, TABLE)])
    old.opened.log.state.next_file += 5  # as after attempts that failed
    old.opened.log.next_file()
    late: list[Database] = []

    def stopped(operation: str, _number: int) -> int | None:
        if operation == "create" and not late:
            files.take_over()
            files.faults = Faults()
            late.append(Database(files, log_file_bytes=FILE_BYTES))
        return None

    files.faults = Faults(fail=stopped)
    problem = old.settle([old.queue({"t": {(2, "b"): 1}}, Changes())])
    (new,) = late
    assert problem is not None
    stale = max(int(n[:12]) for n in files.names() if n.endswith(".log"))
    present = begun_logs(files)[0]
    assert present < stale
    assert new.settle([new.queue({"t": {(3, "c"): 1}}, Changes())]) is None
    expected = {(1, "a"): 1, (3, "c"): 1}

    copy = TornFiles(random.Random(2))
    copy_database(files, copy)
    assert Database(copy).acknowledged.tables["t"] == expected

    for _ in range(2 * (stale - present)):  # past the number that is taken
        new.opened.log.next_file()
        assert new.settle([new.queue({"t": {(4, "d"): 1}}, Changes())]) is None
    new.close()
    last = Database(files, log_file_bytes=FILE_BYTES)
    assert last.acknowledged.tables["t"] == {**expected, (4, "d"): 2 * (stale - present)}


def test_a_lock_is_known_to_be_the_only_one_where_the_former_owner_had_the_same_file(tmp_path: Path) -> None:
    def sole(*, settled: bool = True) -> bool:
        lock = OsFiles(tmp_path).lock()
        if settled:
            lock.settle()
        lock.release()
        return lock.sole

    assert not sole(settled=False), "there was no file: somebody may have one that was removed"
    assert not sole(), "nor has that one got far enough"
    assert sole(settled=False)
    assert sole()
    (tmp_path / "copy").write_bytes((tmp_path / "LOCK").read_bytes())
    (tmp_path / "copy").replace(tmp_path / "LOCK")
    assert not sole(), "a copy of the file is another one"
    assert sole()


_CHILD = """
import sys
from eddyline.storage.files import OsFiles
from eddyline.storage.log import Changes
from tests.storage.log_model import TYPES, Database

database = Database(OsFiles(sys.argv[1]))
changes = Changes(put={"item/t": b"t"}, created={"t": TYPES})
for number, _ in enumerate(sys.stdin):
    problem = database.settle([database.queue({"t": {(number, "old"): 1}}, changes)])
    print("written" if problem is None else problem.sqlstate, flush=True)
    changes = Changes()
"""


def test_a_process_that_was_stopped_while_its_directory_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:

        def ask() -> str:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("\n")
            child.stdin.flush()
            return child.stdout.readline().strip()

        assert ask() == "written"
        with stopped(child.pid):
            with pytest.raises(DatabaseError, match=f"Process {child.pid} has it open") as caught:
                Database(OsFiles(tmp_path))
            assert caught.value.sqlstate == "55006", "a process that is stopped still has it"
            (tmp_path / "LOCK").unlink()
            new = Database(OsFiles(tmp_path))
            before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        assert ask() == "55006"
        assert ask() == "55006"
        child.stdin.close()
        assert child.wait(60) == 0
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
        assert new.settle([new.queue({"t": {(7, "new"): 1}}, Changes())]) is None
        new.close()
    finally:
        child.kill()
        child.wait()
    assert Database(OsFiles(tmp_path)).acknowledged.tables["t"] == {(0, "old"): 1, (7, "new"): 1}
