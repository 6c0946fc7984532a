"""A folder in memory that loses power: what was not synced is there afterwards, or not, or in part.

``TornFiles`` implements ``storage.files.Files`` with the least that POSIX promises.  ``crash`` gives the folder as it
may be found after a loss of power at this moment: of each file's writes since its last sync any subset of its 512-byte
sectors, and of the changed names any that a file system might have kept.  ``kill`` gives it as a killed process leaves
it: all that was written.  The old folder is left to whoever still writes to it, as a process that is gone would not.

``faults``, which may be replaced, makes operations fail: the disk is full, or refuses to sync, at the n-th operation
that it counts.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from eddyline.errors import make_error
from eddyline.storage.files import File, FolderLock

__all__ = ["Faults", "PowerLoss", "TornFiles"]

_SECTOR = 512


class PowerLoss(Exception):
    """Raised in the midst of an operation at which power is lost; everything afterwards raises it too."""


@dataclass
class Faults:
    """``fail``: what an operation does instead of succeeding: given its name ("write", "sync", "create", "truncate",
    "rename", "remove", "sync_names") and its number, from 0, an errno or None.  ``lose_power_at``: the operation in
    whose midst power is lost."""

    fail: Callable[[str, int], int | None] = lambda operation, number: None
    lose_power_at: int | None = None
    operations: int = 0
    lost: bool = False

    def next(self, operation: str) -> tuple[int | None, bool]:
        """(the errno it fails with, whether power is lost in its midst)."""
        if self.lost:
            raise PowerLoss
        number, self.operations = self.operations, self.operations + 1
        if number == self.lose_power_at:
            self.lost = True
            return None, True
        return self.fail(operation, number), False


@dataclass
class _Inode:
    """``safe``: what is on the disk; ``now``: what a read gives.  ``dirty``: sectors written since the last sync."""

    safe: bytearray = field(default_factory=bytearray)
    now: bytearray = field(default_factory=bytearray)
    dirty: set[int] = field(default_factory=set)

    def synced(self) -> None:
        self.safe = bytearray(self.now)
        self.dirty = set()

    def after_power_loss(self, rng: random.Random) -> _Inode:
        shortest, longest = sorted((len(self.safe), len(self.now)))
        size = rng.choice((len(self.safe), len(self.now), rng.randint(shortest, longest)))
        found = bytearray(size)
        found[: len(self.safe)] = self.safe[:size]
        keep = rng.choice((0.0, 0.5, 0.9, 1.0))
        for sector in sorted(self.dirty):
            if rng.random() < keep:
                start, stop = sector * _SECTOR, min((sector + 1) * _SECTOR, size, len(self.now))
                if start < stop:
                    found[start:stop] = self.now[start:stop]
        return _Inode(bytearray(found), bytearray(found))


class _TornFile:
    def __init__(self, inode: _Inode, folder: TornFiles, rng: random.Random) -> None:
        self._inode = inode
        self._folder = folder
        self._rng = rng

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._inode.now[offset : offset + size])

    def write(self, data: bytes | memoryview, offset: int) -> None:
        code, power = self._folder.faults.next("write")
        data = bytes(data)
        if code is not None or power:
            data = data[: self._rng.randint(0, len(data))]
        now = self._inode.now
        if len(now) < offset:
            now.extend(bytes(offset - len(now)))
        now[offset : offset + len(data)] = data
        if data:
            self._inode.dirty.update(range(offset // _SECTOR, (offset + len(data) - 1) // _SECTOR + 1))
        _give_up(code, power=power)

    def size(self) -> int:
        return len(self._inode.now)

    def truncate(self, size: int) -> None:
        code, power = self._folder.faults.next("truncate")
        _give_up(code, power=power)
        now = self._inode.now
        if size < len(now):
            # What was cut may come back; a sector that is cut in two is as good as written.
            del now[size:]
            self._inode.dirty.add(size // _SECTOR)
        else:
            now.extend(bytes(size - len(now)))

    def sync(self) -> None:
        code, power = self._folder.faults.next("sync")
        _give_up(code, power=power)
        self._inode.synced()

    def close(self) -> None:
        """Nothing is kept open."""


def _give_up(code: int | None, *, power: bool) -> None:
    if power:
        raise PowerLoss
    if code is not None:
        raise OSError(code, os.strerror(code))


class _TornLock:
    def __init__(self, owner: TornFiles, *, sole: bool) -> None:
        self._owner = owner
        self.sole = sole

    def settle(self) -> None:
        self._owner.overtaken = False

    def held(self) -> bool:
        return self._owner.locked_by is self

    def release(self) -> None:
        if self.held():
            self._owner.locked_by = None


class TornFiles:
    """See the module.  ``rng`` decides how much of a failing write is written."""

    def __init__(self, rng: random.Random, faults: Faults | None = None) -> None:
        self.faults = Faults() if faults is None else faults
        self.locked_by: _TornLock | None = None
        #: whether an owner that has lost the lock may still change files
        self.overtaken = False
        self._rng = rng
        self._names: dict[str, _Inode] = {}
        self._safe_names: dict[str, _Inode] = {}

    @property
    def title(self) -> str:
        return "torn"

    def names(self) -> list[str]:
        return list(self._names)

    def create(self, name: str) -> File:
        code, power = self.faults.next("create")
        if name in self._names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        if code is None:
            self._names[name] = _Inode()
        _give_up(code, power=power)
        return _TornFile(self._names[name], self, self._rng)

    def open(self, name: str) -> File:
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return _TornFile(self._names[name], self, self._rng)

    def rename(self, old: str, new: str) -> None:
        code, power = self.faults.next("rename")
        if code is None:
            self._names[new] = self._names.pop(old)
        _give_up(code, power=power)

    def remove(self, name: str) -> None:
        code, power = self.faults.next("remove")
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if code is None:
            del self._names[name]
        _give_up(code, power=power)

    def sync_names(self) -> None:
        code, power = self.faults.next("sync_names")
        _give_up(code, power=power)
        self._safe_names = dict(self._names)

    def lock(self) -> FolderLock:
        if self.locked_by is not None:
            raise make_error("55006", 'directory "torn" is open already')
        self.locked_by = _TornLock(self, sole=not self.overtaken)
        return self.locked_by

    def take_over(self) -> None:
        """Takes the lock from its owner, who goes on and has not been told: the next ``lock`` succeeds."""
        self.locked_by, self.overtaken = None, True

    # -- the end of a process, or of power --------------------------------------------------------------------------

    def kill(self) -> TornFiles:
        """The folder as a killed process leaves it."""
        left = TornFiles(self._rng)
        copies = {id(i): _Inode(bytearray(i.safe), bytearray(i.now), set(i.dirty)) for i in self._all()}
        left._names = {name: copies[id(inode)] for name, inode in self._names.items()}
        left._safe_names = {name: copies[id(inode)] for name, inode in self._safe_names.items()}
        return left

    def crash(self, rng: random.Random) -> TornFiles:
        """The folder as it may be found after a loss of power now."""
        left = TornFiles(rng)
        found = {id(inode): inode.after_power_loss(rng) for inode in self._all()}
        keep = rng.choice((0.0, 0.5, 1.0))
        for name in {**self._safe_names, **self._names}:
            before, now = self._safe_names.get(name), self._names.get(name)
            inode = now if before is now or rng.random() < keep else before
            if inode is not None:
                left._names[name] = found[id(inode)]
        left._safe_names = dict(left._names)
        return left

    def flip(self, name: str, position: int) -> None:
        """One bit of a file, on the disk too, becomes its opposite."""
        inode = self._names[name]
        for content in (inode.now, inode.safe):
            if position < len(content):
                content[position] ^= 1

    def size(self, name: str) -> int:
        return len(self._names[name].now)

    def _all(self) -> list[_Inode]:
        return [*self._names.values(), *self._safe_names.values()]
