"""Notes of processes that outlive their program, and what becomes of these."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from eddyline.controller.home import Home
from eddyline.controller.log_pipes import make_log_pipe, relay_log
from eddyline.controller.processes import ReplicaProcesses, ReplicaSpec, process_arguments
from eddyline.controller.spawning import Child
from eddyline.controller.survivors import Note, Survivor, note_of, process_start, read_note, remove_notes, write_note
from eddyline.errors import Error
from eddyline.repr.time import Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.waiting import wait_until

WAIT_SECONDS = 60.0


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "600"])
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def note(folder: Path, epoch: int, *pids: int, sockets: Path = Path("/nowhere")) -> Note:
    return note_of(folder, epoch, 1, sockets, pids, [["--process=0"]] * len(pids))


def none_started(_arguments: Sequence[str], _ready: int, _log: int) -> Child:
    raise OSError("enough")


def supervisor(folder: Path, epoch: int, *, held: bool = True) -> ReplicaProcesses:
    hasher = Hasher(1)
    home = Home(folder, epoch, Time(1), Time(1), lambda: held)
    return ReplicaProcesses(ReplicaSpec, TableStore(hasher), hasher, home=home, spawn=none_started)


def test_the_note_of_the_latest_opener_counts_and_one_that_is_written_late_is_nobodys(tmp_path: Path) -> None:
    assert read_note(tmp_path / "none") is None
    assert read_note(tmp_path) is None
    (tmp_path / "REPLICA-s1-12.new").write_text("half of")
    assert read_note(tmp_path) is None
    for epoch in (3, 10, 9):  # as numbers
        write_note(tmp_path, note(tmp_path, epoch, os.getpid()))
    found = read_note(tmp_path)
    assert found is not None
    assert found.epoch == 10
    assert found.usable()
    remove_notes(tmp_path, before=13)
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_was_damaged_or_copied_is_none(tmp_path: Path) -> None:
    there, copy = tmp_path / "there", tmp_path / "copy"
    there.mkdir()
    write_note(there, note(there, 3, os.getpid()))
    shutil.copytree(there, copy)
    assert read_note(there) is not None
    assert read_note(copy) is None, "the processes are the original's"
    there.rename(tmp_path / "moved")
    assert read_note(tmp_path / "moved") is not None
    (tmp_path / "moved" / "REPLICA-s1-3").write_bytes(b"{")
    assert read_note(tmp_path / "moved") is None


def test_a_process_is_known_by_its_start_and_ended_once(tmp_path: Path) -> None:
    with sleeper() as child:
        start = process_start(child.pid)
        assert start
        assert not note(tmp_path, 1, child.pid, 0).usable(), "one of them is none"
        another = Survivor(child.pid, start + "1")
        another.kill()
        assert another.poll() == -1
        assert child.poll() is None, "whoever has its id now is not it"
        survivor = Survivor(child.pid, start)
        assert survivor.poll() is None
        with pytest.raises(TimeoutError):
            survivor.wait(0.0)
        survivor.terminate()
        assert survivor.wait(WAIT_SECONDS) == -1
        assert process_start(child.pid) == "", "a zombie has ended"


def test_a_program_that_has_lost_its_directory_neither_starts_nor_ends_processes(tmp_path: Path) -> None:
    """Nor does it take its own note away, by which the next one may still find them."""
    with sleeper() as child:
        write_note(tmp_path, note(tmp_path, 3, child.pid))
        lost = supervisor(tmp_path, 3, held=False)
        for _ in range(2):
            with pytest.raises(Error, match="opened by somebody else") as refused:
                lost.connect(lambda _: None)
            assert refused.value.sqlstate == "55006"
        assert lost.starts == 0
        lost.close()
        assert child.poll() is None
        assert read_note(tmp_path) is not None


@pytest.mark.parametrize(
    ("epoch", "workers", "asked"),
    [
        pytest.param(4, 1, True, id="as these would be"),
        pytest.param(4, 2, False, id="otherwise"),
        # Their program may have lost the directory and feed them still: they lack what was committed since.
        pytest.param(5, 1, False, id="by an opening before the last one"),
    ],
)
def test_processes_that_were_started_otherwise_or_for_somebody_else_are_ended_unasked(
    epoch: int, workers: int, asked: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sockets = tmp_path / "eddyline-sockets"
    sockets.mkdir()
    with sleeper() as child:
        arguments = process_arguments(ReplicaSpec(workers=workers), 0, sockets, hash_seed=int(Hasher(1).seed))
        write_note(tmp_path, note_of(tmp_path, 3, 1, sockets, [child.pid], [arguments]))
        next_one = supervisor(tmp_path, epoch)
        # Whom the test has started it must also reap.
        reaper = threading.Thread(target=child.wait, daemon=True)
        reaper.start()
        with pytest.raises(Error, match="enough"):
            next_one.connect(lambda _: None)
        reaper.join(WAIT_SECONDS)
        assert child.returncode not in (None, 0)
        assert ("cannot be reached" in caplog.text) == asked
        assert not sockets.exists()
        next_one.close()
        assert read_note(tmp_path) is None


def test_a_program_that_ends_before_it_looks_leaves_the_note_to_the_next_one(tmp_path: Path) -> None:
    """That one ends the processes: they are of an opening before the last one."""
    with sleeper() as child:
        write_note(tmp_path, note(tmp_path, 3, child.pid))
        supervisor(tmp_path, 4).close()
        assert child.poll() is None
        found = read_note(tmp_path)
        assert found is not None
        assert found.usable()


_WRITER = r"""
import os, sys
for number in range(int(sys.argv[1])):
    try:
        os.write(2, b"%d %s\n" % (number, b"x" * 1000))
    except BlockingIOError:
        break
print(number, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(("lines", "kept"), [(3, 3), (100_000, 40)])
def test_what_a_process_logs_while_nobody_reads_is_kept_as_far_as_it_fits(
    lines: int, kept: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits for nobody."""
    path = tmp_path / "log0"
    log = make_log_pipe(path)
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(lines)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
    )
    os.close(log)
    assert writer.stdout is not None
    assert int(writer.stdout.readline()) < 2000, "the rest was left out"
    with caplog.at_level(logging.WARNING, "eddyline.controller"):
        relay_log(0, path)
        wait_until(lambda: len(caplog.messages) >= kept, "its lines come")
        writer.communicate(b"\n")
        wait_until(lambda: not any(t.name == "log:0" for t in threading.enumerate()), "nobody reads its lines any more")
    assert [m.split()[0] for m in caplog.messages[:kept]] == [str(n) for n in range(kept)]
    relay_log(0, path)  # of a process that is gone
    wait_until(lambda: not any(t.name == "log:0" for t in threading.enumerate()), "nobody reads its lines any more")
