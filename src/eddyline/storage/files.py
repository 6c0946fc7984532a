"""The files of a durable directory, behind an interface small enough to be played by a file system that loses power.

Everything that storage writes goes through ``Files``: one flat folder of named files.  What is promised is only what
POSIX promises: written bytes survive the process at once, and a loss of power after ``File.sync``; a name that was
created, renamed or removed survives it after ``Files.sync_names``.  Between these any part of what was written may be
there, or not.

Errors of the system come as ``OSError`` out of these interfaces, and as ``file_error`` to whoever uses a database.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Protocol

from eddyline.errors import DatabaseError, make_error, unsupported

if sys.platform != "win32":
    import fcntl

__all__ = ["File", "Files", "FolderLock", "OsFiles", "corrupted", "file_error"]

_LOCK_NAME = "LOCK"
_CODES = {
    errno.EPERM: "42501",
    errno.EACCES: "42501",
    errno.EROFS: "42501",
    errno.ENOENT: "58P01",
    errno.EEXIST: "58P02",
    errno.ENOTDIR: "42809",
    errno.EISDIR: "42809",
    errno.ENOTEMPTY: "42809",
    errno.ENOSPC: "53100",
    errno.EDQUOT: "53100",
    errno.EFBIG: "53100",
    errno.ENFILE: "53000",
    errno.EMFILE: "53000",
    errno.EIO: "58030",
}
_HINTS = {
    "53100": "Free some space: the statement can then be run again, and nothing of it was kept.",
    "42501": "Opening a database writes to its directory, also when it is only read.",
    "58030": "The device reports a failure; look at the system's log.",
}


class File(Protocol):
    """One open file.  One thread at a time writes; reading is safe beside it."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer only at the end of the file."""
        ...

    def write(self, data: bytes | memoryview, offset: int) -> None:
        """All of ``data``; where it raises, any part of it may have been written."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Returns once all that was written survives a loss of power."""
        ...

    def close(self) -> None: ...


class FolderLock(Protocol):
    """Held by the one process that has the folder open."""

    @property
    def sole(self) -> bool:
        """Whether every earlier opener is known to be gone; False where it may live on, and not know what it lost."""
        ...

    def settle(self) -> None:
        """Notes that no earlier opener can change what the folder holds from here on: the next one is ``sole``."""
        ...

    def held(self) -> bool:
        """Whether the folder is still this opener's: False once somebody has replaced its lock file."""
        ...

    def release(self) -> None:
        """Twice is harmless."""
        ...


class Files(Protocol):
    """One folder.  ``title`` is how messages call it."""

    @property
    def title(self) -> str: ...

    def names(self) -> list[str]:
        """The files in the folder, in no order."""
        ...

    def create(self, name: str) -> File:
        """A new file; FileExistsError if there is one."""
        ...

    def open(self, name: str) -> File:
        """FileNotFoundError if there is none."""
        ...

    def rename(self, old: str, new: str) -> None:
        """In place of the file of that name, if there is one."""
        ...

    def remove(self, name: str) -> None: ...

    def sync_names(self) -> None:
        """Returns once all names that were made, changed or removed are so after a loss of power."""
        ...

    def lock(self) -> FolderLock:
        """55006 while somebody else has it; a lock whose owner is gone is taken over."""
        ...


def file_error(error: OSError, what: str, title: str) -> DatabaseError:
    """The typed error for a failed operation: ``file_error(e, "write", "live.eddy/000001.log")``.

    SQLSTATEs as PostgreSQL gives them to errors of files: 53100 where the disk is full, 42501 where permission is
    missing or the file system cannot be written, 58030 where the device fails.
    """
    sqlstate = _CODES.get(error.errno or 0, "58030")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return make_error(sqlstate, f'could not {what} file "{title}": {reason}', hint=_HINTS.get(sqlstate))


def corrupted(title: str, detail: str) -> DatabaseError:
    """XX001: the file is not what was written to it."""
    return make_error(
        "XX001",
        f'file "{title}" is damaged',
        detail=detail,
        hint="Restore the directory from a backup; nothing was changed in it.",
    )


class _OsFile:
    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, offset: int, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            part = os.pread(self._fd, size, offset)
            if not part:
                break
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)

    def write(self, data: bytes | memoryview, offset: int) -> None:
        left = memoryview(data).cast("B")
        while left:
            written = os.pwrite(self._fd, left, offset)
            left, offset = left[written:], offset + written

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        if sys.platform == "darwin":  # where fsync alone leaves the data in the drive's own cache
            fcntl.fcntl(self._fd, fcntl.F_FULLFSYNC)
        elif hasattr(os, "fdatasync"):
            os.fdatasync(self._fd)
        else:
            os.fsync(self._fd)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _OsLock:
    """``flock`` on a file that holds the owner's process id.  The system drops it with the process, however it ends.

    The second line is the file's own inode, once its owner has settled: one that is missing, or another's, tells that
    somebody has put this file in the place of the one that an earlier opener has locked, or may have.
    """

    __slots__ = ("__weakref__", "_fd", "_mutex", "_path", "sole")

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd
        self._mutex = threading.Lock()
        self.sole = False

    def owner(self) -> str:
        """The process id that the file holds; empty if there is none."""
        return (self._lines() or [""])[0]

    def sign(self) -> None:
        """Once it is locked: notes whether its former owner was the last one, and writes this process into it."""
        self.sole = self._lines()[1:] == [self._inode()]
        self._write(os.getpid(), *([self._inode()] if self.sole else []))

    def settle(self) -> None:
        if not self.sole:
            self._write(os.getpid(), self._inode())

    def _inode(self) -> str:
        return str(os.fstat(self._fd).st_ino)

    def _write(self, *lines: object) -> None:
        """In the room that the file has, since a full disk may give no other.  A process that is killed in the midst of
        it leaves a third line, or the inode of another file, which both say less."""
        text = "".join(f"{line}\n" for line in lines).encode("ascii")
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))

    def _lines(self) -> list[str]:
        return os.pread(self._fd, 64, 0).decode("ascii", "replace").split()

    def held(self) -> bool:
        try:
            mine, there = os.fstat(self._fd), os.stat(self._path)
        except OSError:
            return False
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)

    def release(self) -> None:
        """A child that was forked just now may still have its copy, with which the lock would last: it is given up."""
        with self._mutex:
            fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_UN)
        finally:
            os.close(fd)

    def forget(self) -> None:
        """In a forked child: closes its copy, with which the lock would outlive the parent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


#: so that a forked child can let go of them
_LOCKS: weakref.WeakSet[_OsLock] = weakref.WeakSet()


def _forget_locks() -> None:
    for lock in list(_LOCKS):
        lock.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_locks)


class OsFiles:
    """``Files`` in a folder of the operating system's."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    @property
    def title(self) -> str:
        return str(self._folder)

    def make_folder(self) -> None:
        """Makes the folder unless it is there."""
        try:
            self._folder.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            if not self._folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
            return
        self._sync_folder(self._folder.parent)

    def names(self) -> list[str]:
        return [entry.name for entry in os.scandir(self._folder)]

    def create(self, name: str) -> File:
        return _OsFile(os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def open(self, name: str) -> File:
        return _OsFile(os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC))

    def rename(self, old: str, new: str) -> None:
        os.replace(self._folder / old, self._folder / new)

    def remove(self, name: str) -> None:
        os.unlink(self._folder / name)

    def sync_names(self) -> None:
        self._sync_folder(self._folder)

    @staticmethod
    def _sync_folder(folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self) -> FolderLock:
        if sys.platform == "win32":
            raise unsupported("a database in a directory, on this system,", hint="connect() opens one in memory.")
        path = self._folder / _LOCK_NAME
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            lock = _OsLock(path, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = lock.owner()
                lock.release()
                raise _in_use(self.title, owner) from None
            except OSError:
                lock.release()
                raise
            if lock.held():
                break
            lock.release()  # replaced between opening and locking it
        lock.sign()
        _LOCKS.add(lock)
        return lock


def _in_use(title: str, owner: str) -> DatabaseError:
    here = owner == str(os.getpid())
    return make_error(
        "55006",
        f'directory "{title}" is open already',
        detail="This process has it open." if here else f"Process {owner or 'unknown'} has it open.",
        hint="Use session() of the connection that opened it." if here else "One process at a time may open it.",
    )
