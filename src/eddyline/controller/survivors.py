"""Processes of a replica that outlive the program that has spawned them: the note of them, and what is left of them.

Each opener of a database's directory has a note of its own there for each replica, named by the replica's id and the
opener's epoch: ``REPLICA-s1-7``.  It says which processes there are, when each began (a process id is used again), and
what they were started with.  Only the note of the latest epoch counts, so that one that is written late, by somebody
who has lost the directory, is nobody's; and only where it was written: a copy of the directory has no replica.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from eddyline._version import __version__
from eddyline.controller.instance import FIRST_REPLICA
from eddyline.protocol.handshake import PROTOCOL_VERSION

__all__ = ["Note", "Survivor", "note_of", "noted_seed", "process_start", "read_note", "remove_notes", "write_note"]

_NAME: Final = re.compile(r"REPLICA-(\w+)-(\d+)(\.new)?")
_LOOK_SECONDS: Final = 0.02
_RELEASE: Final = f"{__version__}, protocol {PROTOCOL_VERSION}"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Note(msgspec.Struct, frozen=True):
    """``place``: the directory, and the boot of the system, in which it was written.

    ``sockets``: the folder with theirs.  ``processes``: process id and start of each, by ordinal.
    """

    release: str
    place: str
    epoch: int
    hash_seed: int
    sockets: str
    processes: tuple[tuple[int, str], ...]
    arguments: tuple[tuple[str, ...], ...]

    def usable(self) -> bool:
        """Whether they are of this release, and all alive."""
        return self.release == _RELEASE and all(start and process_start(pid) == start for pid, start in self.processes)


def note_of(
    folder: Path, epoch: int, hash_seed: int, sockets: Path, pids: Sequence[int], arguments: Sequence[Sequence[str]]
) -> Note:
    processes = tuple((pid, process_start(pid)) for pid in pids)
    commands = tuple(tuple(each) for each in arguments)
    return Note(_RELEASE, _place(folder), epoch, hash_seed, str(sockets), processes, commands)


def _place(folder: Path) -> str:
    found = folder.stat()
    try:
        boot = _BOOT.read_text().strip()
    except OSError:  # such a system does not say when a process began either: nothing of the note is used
        boot = ""
    return f"{found.st_dev}/{found.st_ino} {boot}"


def read_note(folder: Path, replica: str = FIRST_REPLICA) -> Note | None:
    """The latest one of the replica; None if there is none, or none that can be read, or it was written elsewhere."""
    return _read(folder, [(epoch, path) for id, epoch, path in _notes(folder) if id == replica and not path.suffix])


def noted_seed(folder: Path) -> int | None:
    """The hash seed that the latest note of any replica has: all replicas of a program have the same."""
    note = _read(folder, [(epoch, path) for _, epoch, path in _notes(folder) if not path.suffix])
    return None if note is None else note.hash_seed


def _read(folder: Path, notes: Sequence[tuple[int, Path]]) -> Note | None:
    """The latest of the notes, by epoch."""
    if not notes:
        return None
    try:
        note = msgspec.json.decode(max(notes)[1].read_bytes(), type=Note)
        return note if note.place == _place(folder) else None
    except (OSError, msgspec.MsgspecError):
        return None


def write_note(folder: Path, note: Note, replica: str = FIRST_REPLICA) -> None:
    """In place of all earlier ones of the replica, whole or not at all.

    A loss of power ends the processes too, so that nothing is synced.
    """
    path = folder / f"REPLICA-{replica}-{note.epoch}"
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(note))
    new.replace(path)
    remove_notes(folder, before=note.epoch, replica=replica)


def remove_notes(folder: Path, *, before: int, replica: str = FIRST_REPLICA) -> None:
    """The replica's, of earlier epochs."""
    for id, epoch, path in _notes(folder):
        if id == replica and epoch < before:
            path.unlink(missing_ok=True)


def _notes(folder: Path) -> Iterator[tuple[str, int, Path]]:
    """What there is by these names, whole or not, with replicas and epochs."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        if found := _NAME.fullmatch(name):
            yield found[1], int(found[2]), folder / name


def process_start(pid: int) -> str:
    """Tells a process from a later one of the same id; empty if there is none, or the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # behind the name, which may have anything in it
    return "" if fields[0] in "ZX" else fields[19]


class Survivor:
    """One such process, with the part of ``subprocess.Popen`` that its supervisor needs."""

    def __init__(self, pid: int, start: str) -> None:
        self.pid = pid
        self._start = start

    def poll(self) -> int | None:
        """None while it runs; how it ended nobody says."""
        return None if self._start and process_start(self.pid) == self._start else -1

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def wait(self, timeout: float = 60.0) -> int:
        """TimeoutError if it still runs then."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_LOOK_SECONDS)
        return -1

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return  # it has ended meanwhile
