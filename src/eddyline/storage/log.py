"""The log of a durable directory: commits, appended to one file after the other by one writer.

Invariants:
I1  what is before ``end`` of the present file is safe, or as safe as the settings ask for; every part there belongs to
    a commit that is there too;
I2  the state is what the records before ``end`` add up to, and the head of each new file has it;
I3  a file is removed only when a frame that is safe, and was written behind a head that was safe, says that it is
    not needed, so that a damaged head is never taken for one that was being written;
I4  whoever has lost the directory's lock, at whatever moment, changes nothing that the next opener reads: that one has
    put the file that was written to in another one's place, notes where each file ends, and has a higher epoch.

After a failed write or sync the file is cut back to ``end``.  Where that fails too, or the device failed to sync,
nobody knows what the file holds: a new one is begun, whose head says where this one ends.

Thread: one at a time, by ``GroupCommit``.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from eddyline.errors import Error, make_error
from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType
from eddyline.storage.files import File, Files, FolderLock, file_error
from eddyline.storage.frames import HEADER_BYTES, encode_frame, write_buffers
from eddyline.storage.records import (
    FORMAT,
    HEAD,
    PART,
    RECORD,
    Commit,
    Installed,
    LogHead,
    LogSpan,
    Record,
    Released,
    State,
    encode_part,
    encode_record,
    slices,
)

__all__ = ["Changes", "DurableLog", "Spans", "log_name", "rows_name"]

_log = logging.getLogger("eddyline.storage")
_WRITE_BYTES = 1 << 20
#: times that may be given out ahead of the last safe commit: about one sync a second where commits are empty
RESERVED_US = 1_000_000


def log_name(number: int) -> str:
    return f"{number:012d}.log"


def rows_name(number: int) -> str:
    return f"{number:012d}.rows"


@dataclass(frozen=True, slots=True)
class Changes:
    """What a commit does beside writing rows: documents put and removed, tables created and dropped."""

    put: Mapping[str, bytes] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    created: Mapping[str, tuple[SqlType, ...]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.removed or self.created or self.dropped)


class Spans:
    """Which tables have rows in which log files: what must be kept.  ``bytes``: of each table's parts, by file."""

    def __init__(self) -> None:
        #: whether all rows of all files have been looked at; before that no file may go
        self.complete = False
        self.newest: dict[int, dict[str, int]] = {}
        self.bytes: dict[int, dict[str, int]] = {}

    def add(self, number: int, table: str, time: int, size: int) -> None:
        newest = self.newest.setdefault(number, {})
        newest[table] = max(newest.get(table, 0), time)
        sizes = self.bytes.setdefault(number, {})
        sizes[table] = sizes.get(table, 0) + size

    def forget(self, number: int) -> None:
        self.newest.pop(number, None)
        self.bytes.pop(number, None)

    def tables(self, number: int, state: State) -> list[str]:
        """Those that need file ``number``."""
        assert self.complete, "the rows were read before anything was written"
        newest = self.newest.get(number, {})
        return [t for t, time in newest.items() if t in state.tables and time > state.tables[t].start]


class _Group:
    """What one ``write`` puts behind ``end``."""

    def __init__(self, file: File, start: int) -> None:
        self._file = file
        self._start = start
        self._buffers: list[bytes | memoryview] = []
        self._buffered = 0
        self._written = start
        self.end = start

    def add(self, kind: int, parts: Sequence[bytes | memoryview], synced: int) -> int:
        """The frame's bytes.  OSError where they had to be written and could not."""
        frame = encode_frame(kind, parts, offset=self.end, synced=synced)
        size = sum(memoryview(b).nbytes for b in frame)
        self._buffers += frame
        self._buffered += size
        self.end += size
        if self._buffered >= _WRITE_BYTES:
            self.flush()
        return size

    def flush(self) -> None:
        if self._buffers:
            write_buffers(self._file, self._buffers, self._written)
            self._written += self._buffered
            self._buffers, self._buffered = [], 0


class DurableLog:
    """``files``: the directory, which ``lock`` keeps.  ``state``: as recovered; the log owns it from here on.

    ``file_bytes``: a log file of that size is followed by another one.
    """

    def __init__(
        self, files: Files, lock: FolderLock, *, state: State, epoch: int, spans: Spans, file_bytes: int
    ) -> None:
        self.state = state
        self.spans = spans
        self._files = files
        self._lock = lock
        #: above that of every earlier opening of the directory
        self.epoch = epoch
        self._file_bytes = file_bytes
        self._file: File | None = None
        self._number = 0
        self._head_bytes = 0
        self._end = 0  # safe up to here
        self._written = 0
        self._synced = 0  # really on the disk, whatever the settings ask for
        self._next_wanted = False
        self._uncertain = False
        self._unapplied: list[Record] = []
        self._unsafe_spans: list[tuple[str, int, int]] = []
        self._leftover: list[str] = []  # names to be removed
        #: how many want files to stay, though nothing else needs them
        self.pins = 0

    @property
    def title(self) -> str:
        """How messages call the directory."""
        return self._files.title

    @property
    def present(self) -> LogSpan:
        """The file that is written to, as far as it is safe; number 0 before one was begun."""
        return LogSpan(self._number, self._end)

    def held(self) -> bool:
        """Whether the directory is still this opener's."""
        return self._lock.held()

    def check_held(self) -> None:
        """55006 if it is not.  Any thread."""
        self._check_lock()

    # -- size -----------------------------------------------------------------------------------------------------

    @property
    def log_bytes(self) -> int:
        """Bytes of all log files that are kept, the present one's head not counted."""
        return sum(span.end for span in self.state.logs) + self._end - self._head_bytes

    @property
    def rows_bytes(self) -> int:
        return sum(t.rows.bytes for t in self.state.tables.values() if t.rows is not None)

    @property
    def reserved(self) -> int:
        """Times up to it may be given out."""
        return self.state.reserved

    # -- writing --------------------------------------------------------------------------------------------------

    def write_commits(self, commits: Iterable[tuple[int | None, Mapping[str, Batch], Changes]]) -> None:
        """Appends commits, (time, rows per table, changes) each: all of them or none.

        ``sync`` must follow.  Raises what ``file_error`` makes of the system's errors, and 55006 when the lock is lost.
        """
        self._check_lock()
        self._ready()
        assert self._file is not None
        group = _Group(self._file, self._end)
        try:
            for time, writes, changes in commits:
                self._add_commit(group, time, writes, changes)
            group.flush()
        except OSError as error:
            title = self._title()
            self._cut()
            raise file_error(error, "write", title) from error
        except BaseException:
            self._cut()
            raise
        self._written = group.end

    def write_record(self, record: Installed | Released) -> None:
        """As ``write_commits``, for what compaction has to say."""
        self._check_lock()
        self._ready()
        assert self._file is not None
        group = _Group(self._file, self._end)
        try:
            group.add(RECORD, [encode_record(record)], self._synced)
            group.flush()
        except OSError as error:
            title = self._title()
            self._cut()
            raise file_error(error, "write", title) from error
        self._unapplied.append(record)
        self._written = group.end

    def _add_commit(self, group: _Group, time: int | None, writes: Mapping[str, Batch], changes: Changes) -> None:
        for table, batch in writes.items():
            for piece in slices(batch):
                assert time is not None, "rows are written at a time"
                size = group.add(PART, encode_part(table, time, piece), self._synced)
                self._unsafe_spans.append((table, time, size))
        # A time that is only reserved may be written before commits of earlier times that were acknowledged early: it
        # says nothing about them.
        record = Commit(
            time if writes or changes else None,
            0 if time is None else time + RESERVED_US,
            dict(changes.put),
            changes.removed,
            dict(changes.created),
            changes.dropped,
        )
        group.add(RECORD, [encode_record(record)], self._synced)
        self._unapplied.append(record)

    def sync(self, *, to_disk: bool = True) -> None:
        """Makes what was written safe, against a loss of power too with ``to_disk``, and the state follow.

        If it raises nothing of that is kept, and the next write begins a new file.
        """
        if self._file is None or self._written == self._end:
            return
        try:
            if to_disk:
                self._file.sync()
                self._synced = self._written
        except OSError as error:
            title = self._title()
            # A device that failed to sync may say the next time that all is well, whatever became of the data.
            self._uncertain = error.errno not in (errno.ENOSPC, errno.EDQUOT)
            self._cut()
            raise file_error(error, "sync", title) from error
        except BaseException:
            self._uncertain = True
            self._cut()
            raise
        self._check_lock("What was being committed is there if the other one found it.")
        self._end = self._written
        for record in self._unapplied:
            self._apply(record)
        for table, time, size in self._unsafe_spans:
            self.spans.add(self._number, table, time, size)
        self._unapplied, self._unsafe_spans = [], []

    def _apply(self, record: Record) -> None:
        """Also notes which files nothing needs once it is applied."""
        before = self.state.tables
        match record:
            case Commit() if record.dropped:
                gone = [before[id].rows for id in record.dropped if id in before]
                self._leftover += [rows_name(rows.number) for rows in gone if rows is not None]
            case Installed():
                old = before.get(record.table)
                if old is None:
                    self._leftover.append(rows_name(record.rows.number))
                elif old.rows is not None:
                    self._leftover.append(rows_name(old.rows.number))
            case Released():
                self._leftover += [log_name(number) for number in record.logs]
                for number in record.logs:
                    self.spans.forget(number)
        self.state.apply(record)

    def _cut(self) -> None:
        """Takes back what was written and is not safe, also against a loss of power: it was never committed.

        Where the file cannot be cut, a new one that says where it ends does as well.  If neither can be done, the next
        write tries again, and until then a crash may bring back what failed, whole or not at all.
        """
        self._unapplied, self._unsafe_spans = [], []
        self._written = self._end
        assert self._file is not None
        if not self._lock.held():
            return
        try:
            self._file.truncate(self._end)
            self._file.sync()
            return
        except OSError as error:
            self._uncertain = True
            _log.warning('could not cut file "%s" back to %d bytes: %s', self._title(), self._end, error)
        try:
            self._begin_file()
        except Error as problem:
            _log.warning("%s", problem.message)

    def _check_lock(self, outcome: str = "Nothing of the statement was kept.") -> None:
        if not self._lock.held():
            raise make_error(
                "55006",
                f'directory "{self._files.title}" was taken over by somebody else',
                detail=f"Its lock file was replaced while it was open here. {outcome}",
                hint="Close this database and open the directory again.",
            )

    def _title(self) -> str:
        return f"{self._files.title}/{log_name(self._number)}"

    # -- files ----------------------------------------------------------------------------------------------------

    def next_file(self) -> None:
        """Has the next write begin a new log file."""
        self._next_wanted = True

    def _ready(self) -> None:
        full = self._end >= max(self._file_bytes, 4 * self._head_bytes)
        if self._file is None or self._uncertain or full or (self._next_wanted and self._end > self._head_bytes):
            self._begin_file()
        self._next_wanted = False

    def begin(self, carried: Sequence[memoryview]) -> None:
        """The first file, which begins with parts that an earlier one had, and with a record behind its head (I3)."""
        self._begin_file(carried)
        self.write_record(Released(()))
        self.sync()

    def _begin_file(self, carried: Sequence[memoryview] = ()) -> None:
        """A new log file that begins with the state.  If it raises, the present one stays."""
        if self._file is not None and self._synced < self._end and not self._uncertain:
            self._sync_old()
        logs = self.state.logs
        # While it is opened nobody knows yet who needs which file.
        if self._file is not None and (not self.spans.complete or self.spans.tables(self._number, self.state)):
            logs = (*logs, LogSpan(self._number, self._end))
        file, number = self._create_file()
        state = msgspec.structs.replace(self.state, logs=logs, next_file=number + 1)
        title = f"{self._files.title}/{log_name(number)}"
        size = sum(HEADER_BYTES + part.nbytes for part in carried)
        head = encode_record(LogHead(FORMAT, self.epoch, number, state, size))
        try:
            group = _Group(file, 0)
            group.add(HEAD, [head], 0)
            head_bytes = group.end
            for part in carried:
                group.add(PART, [part], 0)
            group.flush()
            file.sync()
            self._files.sync_names()
        except OSError as error:
            file.close()
            self.state.next_file = number + 1  # whatever became of it, the name is not used again
            self._remove(log_name(number))
            raise file_error(error, "write", title) from error
        if self._file is not None:
            self._file.close()
            if not logs or logs[-1].number != self._number:
                self._leftover.append(log_name(self._number))
                self.spans.forget(self._number)
        self.state = state
        self._file, self._number, self._uncertain = file, number, False
        self._head_bytes = head_bytes
        self._end = self._written = self._synced = group.end

    def _create_file(self) -> tuple[File, int]:
        """A file of a number that nobody has used; whoever has lost this directory may have used some since."""
        while True:
            number = self.state.next_file
            try:
                return self._files.create(log_name(number)), number
            except FileExistsError:
                self._check_lock()
                self.state.next_file = number + 1
            except OSError as error:
                raise file_error(error, "create", f"{self._files.title}/{log_name(number)}") from error

    def _sync_old(self) -> None:
        """Puts on the disk what settings had left to the system, before a later file counts on it."""
        assert self._file is not None
        try:
            self._file.sync()
        except OSError as error:
            raise file_error(error, "sync", self._title()) from error
        self._synced = self._end

    def released(self) -> tuple[int, ...]:
        """The log files that no table needs any more."""
        return tuple(log.number for log in self.state.logs if not self.spans.tables(log.number, self.state))

    def remove_leftover(self) -> None:
        """Removes what nothing needs, provided that a safe frame behind the present head stands for it (I3).

        A file that cannot be removed is left for the next opening.
        """
        if self.pins or not self._lock.held():
            return
        if self._synced <= self._head_bytes or self._synced < self._end:
            return  # just begun; or what says that they are not needed is left to the system to write
        names, self._leftover = self._leftover, []
        for name in names:
            self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            self._files.remove(name)
        except FileNotFoundError:
            _log.debug("%s is gone already", name)
        except OSError as error:
            _log.warning('could not remove file "%s/%s": %s', self._files.title, name, error)

    def discard(self, names: Iterable[str]) -> None:
        """Notes files for ``remove_leftover``."""
        self._leftover += names

    def new_number(self) -> int:
        """A file number never used before in this directory."""
        number, self.state.next_file = self.state.next_file, self.state.next_file + 1
        return number

    def close(self) -> None:
        """Closes the file and gives the lock back.  Twice is harmless."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()
