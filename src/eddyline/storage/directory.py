"""Opening a durable directory: what was committed, and a log to go on with.

====================  ==================================================================================
file                  what it is
====================  ==================================================================================
``FORMAT``            the format's number; there once the directory has been made
``LOCK``              the process that has it open
``000000000042.log``  commits; the newest one with a good head is where reading begins
``000000000043.rows`` all rows of one table at one time
====================  ==================================================================================

Reading begins with the newest log file whose head is good, of the highest epoch: it has the state, and names the
earlier log files and the rows files that are still needed.  Whatever else is there was left by a crash, or by somebody
who had lost the directory, and is removed.

*Fencing.*  Each opening has an epoch above all earlier ones, in the head of every log file that it begins.  An opener
that was stopped while another took the directory over may go on in the midst of any step.  What it still does reaches
nothing: its log file is followed by another one, and is put in a file of its own before it counts, so that neither a
write nor a cut that was under way changes it (``_detach``); a file that it begins has a lower epoch, whatever its
number.

*A full disk.*  Where there is no room to carry parts over, the log file that has them is kept; where there is none for
a log file either, the first commit begins it, and until then the directory is read.  Such an opener's epoch stands
nowhere yet: therefore whoever cannot be sure to be the only one left skips one, and must have room for a log file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from eddyline.errors import Error, make_error
from eddyline.repr.batch import Batch
from eddyline.storage.files import Files, corrupted, file_error
from eddyline.storage.frames import FrameReader
from eddyline.storage.log import DurableLog, Spans, log_name, rows_name
from eddyline.storage.records import (
    FORMAT,
    HEAD,
    PART,
    RECORD,
    LogHead,
    LogSpan,
    RowsEnd,
    RowsFile,
    State,
    decode_head,
    decode_part,
    decode_record,
    decode_rows,
    epoch_of,
    format_of,
)

__all__ = [
    "LOG_FILE_BYTES",
    "Opened",
    "begun_logs",
    "is_database",
    "open_directory",
    "read_rows_file",
    "recovered_state",
    "write_format",
]

_log = logging.getLogger("eddyline.storage")
LOG_FILE_BYTES = 16 << 20
_FORMAT_NAME = "FORMAT"
_NEW_FORMAT_NAME = "FORMAT.new"
_LOCK_NAME = "LOCK"
_COPY_NAME = "COPY.new"
_COPY_BYTES = 1 << 20
_NUMBERED = re.compile(r"(\d{12})\.(log|rows)")


@dataclass(frozen=True, slots=True)
class Recovered:
    """``state`` at the end of log file ``newest``, the newest one (0: there is none), which is good up to ``end``."""

    state: State
    epoch: int
    newest: int
    end: int

    def spans(self) -> tuple[LogSpan, ...]:
        """All log files with rows, oldest first."""
        return (*self.state.logs, LogSpan(self.newest, self.end)) if self.newest else self.state.logs


class Opened:
    """A directory that has been opened: ``log`` to go on with, and the rows of its tables.

    They are to be read once, to the end, before anything is written: which files are needed is known by then.
    """

    def __init__(self, files: Files, log: DurableLog, *, after: int) -> None:
        self.log = log
        #: the epoch of the last opening that began a log file; 0: there was none
        self.after = after
        self.state = log.state
        self._files = files
        self._spans = (*log.state.logs, log.present) if log.present.number else log.state.logs

    def told_apart_from(self) -> int:
        """Commits behind this time are told apart by ``rows``; of a table, those up to it may have become one."""
        return max((table.start for table in self.state.tables.values()), default=-1)

    def rows(self) -> Iterator[tuple[str, Batch]]:
        """All updates of all tables that are there: (table, a part of its rows), in no order.  Each has the time of its
        commit, or of the file of rows that has it.

        XX001 for a file that is damaged or missing.  Holds one part at a time.
        """
        for id, table in self.state.tables.items():
            if table.rows is not None:
                for batch in read_rows_file(self._files, table.rows, id, table.types):
                    yield id, batch
        for span in self._spans:
            yield from self._logged(span)
        self.log.spans.complete = True

    def _logged(self, span: LogSpan) -> Iterator[tuple[str, Batch]]:
        title = f"{self._files.title}/{log_name(span.number)}"
        with _reading(self._files, log_name(span.number), end=span.end) as frames:
            for frame in frames:
                if frame.kind != PART:
                    continue
                with _understood(title, frame.offset):
                    part, message = decode_part(frame.payload)
                    table = self.state.tables.get(part.table)
                    if table is None or part.time <= table.start:
                        continue
                    batch = decode_rows(part, message, table.types)
                self.log.spans.add(span.number, part.table, part.time, frame.end - frame.offset)
                yield part.table, batch
            if frames.offset != span.end:
                raise corrupted(title, f"It is not readable at byte {frames.offset} of {span.end}.")


def open_directory(files: Files, *, log_file_bytes: int = LOG_FILE_BYTES) -> Opened:
    """Opens the directory, which is made if nothing is there.

    On a full disk it is opened all the same, and commits fail until there is room.

    Raises 55006 while it is open elsewhere, 0A000 for a newer format, 42809 for something else than a database, XX001
    where a file is damaged, 53100 where the disk is full and a directory is to be made, or was taken from somebody who
    may live on, and ``file_error``'s where the system refuses.
    """
    with _told_of_space(), _system_errors("open", files.title):
        lock = files.lock()
        try:
            recovered = _recover(files, sole=lock.sole) if is_database(files) else _no_state()
            fresh = recovered.newest == 0
            if not fresh:
                _make_safe(files, recovered.newest)
            carried = _carried(files, recovered) if recovered.end < log_file_bytes // 2 else None
            logs = recovered.spans() if carried is None else recovered.state.logs
            state = msgspec.structs.replace(recovered.state, logs=logs)
            epoch = recovered.epoch + (1 if lock.sole else 2)
            log = DurableLog(files, lock, state=state, epoch=epoch, spans=Spans(), file_bytes=log_file_bytes)
            numbered = [name for name in files.names() if _NUMBERED.fullmatch(name)]
            # A name that a crash left is never used for something else before it is gone.
            used = [int(name[:12]) for name in numbered]
            state.next_file = max([state.next_file, *(number + 1 for number in used)])
            _begin(log, recovered, carried, waits=lock.sole and not fresh)
            if fresh:
                write_format(files)
            keep = {rows_name(t.rows.number) for t in log.state.tables.values() if t.rows is not None}
            keep |= {log_name(span.number) for span in log.state.logs}
            log.discard(name for name in numbered if name not in keep)
            log.remove_leftover()
            lock.settle()
        except BaseException:
            lock.release()
            raise
    return Opened(files, log, after=recovered.epoch)


def _begin(log: DurableLog, recovered: Recovered, carried: list[memoryview] | None, *, waits: bool) -> None:
    """Begins the log, with what there is room for.  ``waits``: it may be left to the first commit."""
    try:
        log.begin(carried or ())
        return
    except Error as problem:
        if not _is_space(problem) or not (carried or waits):
            raise
    if not log.present.number and carried:
        log.state = msgspec.structs.replace(log.state, logs=recovered.spans())
        try:
            log.begin(())
        except Error as problem:
            if not _is_space(problem) or not waits:
                raise
    if not log.present.number:
        _log.warning('the disk of directory "%s" is full: it can be read, and written once there is room', log.title)


def _is_space(problem: Error) -> bool:
    return problem.sqlstate == "53100"


def _carried(files: Files, recovered: Recovered) -> list[memoryview]:
    """The parts of the newest log file that are still needed, so that many openings do not make many small files."""
    if not recovered.newest:
        return []
    title = f"{files.title}/{log_name(recovered.newest)}"
    kept: list[memoryview] = []
    with _reading(files, log_name(recovered.newest), end=recovered.end) as frames:
        for frame in frames:
            if frame.kind == PART:
                with _understood(title, frame.offset):
                    part, _ = decode_part(frame.payload)
                table = recovered.state.tables.get(part.table)
                if table is not None and part.time > table.start:
                    kept.append(frame.payload)
    return kept


def _recover(files: Files, *, sole: bool) -> Recovered:
    """What is there.  Unless this is the ``sole`` opener left, from a log file that nobody else can change."""
    recovered = recovered_state(files)
    detached: set[int] = set()
    while not sole and recovered.newest not in detached:
        _detach(files, log_name(recovered.newest))
        detached.add(recovered.newest)
        recovered = recovered_state(files)
    return recovered


def _detach(files: Files, name: str) -> None:
    """Puts another file with the same bytes in the place of one that somebody may still write to, or cut.  O(bytes)."""
    if _COPY_NAME in files.names():
        files.remove(_COPY_NAME)
    reading = files.open(name)
    try:
        writing = files.create(_COPY_NAME)
        try:
            offset = 0
            while block := reading.read(offset, _COPY_BYTES):
                writing.write(block, offset)
                offset += len(block)
            writing.sync()
        finally:
            writing.close()
    finally:
        reading.close()
    files.rename(_COPY_NAME, name)
    files.sync_names()


def _make_safe(files: Files, number: int) -> None:
    """What a killed process had written, and not synced, was read like the rest: from here on it counts."""
    file = files.open(log_name(number))
    try:
        file.sync()
    finally:
        file.close()


def is_database(files: Files) -> bool:
    """Whether a directory was made here before.

    0A000 for a newer format, 42809 where something else is, XX001 where a database has lost the file of its format.
    """
    names = set(files.names())
    if _FORMAT_NAME in names:
        _check_format(files)
        return True
    if any(not _NUMBERED.fullmatch(n) and n not in (_LOCK_NAME, _NEW_FORMAT_NAME, _COPY_NAME) for n in names):
        raise make_error(
            "42809",
            f'directory "{files.title}" is not a database',
            detail="There are other files in it.",
            hint="Give a database a directory of its own, one that is empty or not there yet.",
        )
    if any(_holds_something(files, name) for name in sorted(names) if _NUMBERED.fullmatch(name)):
        raise make_error(
            "XX001",
            f'file "{files.title}/{_FORMAT_NAME}" is missing',
            detail="Without it this is a damaged database, or a copy that was not finished.",
            hint="Restore the directory from a backup; nothing was changed in it.",
        )
    return False


def _holds_something(files: Files, name: str) -> bool:
    """Whether a file has more than what a directory is begun with: by then its format is there, and was lost since."""
    if name.endswith(".rows"):
        return True
    with _reading(files, name) as frames:
        head = next(iter(frames), None)
        if head is None:
            return not frames.torn()
        title = f"{files.title}/{name}"
        with _understood(title, 0):
            begun = decode_head(head.payload)
        state = _followed(title, begun, frames).state
        return bool(state.newest or state.documents or state.tables or state.logs)


def _check_format(files: Files) -> None:
    file = files.open(_FORMAT_NAME)
    try:
        text = file.read(0, 64).decode("ascii", "replace")
    finally:
        file.close()
    found = re.fullmatch(r"eddyline directory, format (\d+)\n", text)
    if found is None:
        raise corrupted(f"{files.title}/{_FORMAT_NAME}", "It does not name a format.")
    _check_version(files.title, int(found[1]))


def _check_version(title: str, version: int) -> None:
    if version > FORMAT:
        raise make_error(
            "0A000",
            f'directory "{title}" has format {version}, which this version does not read',
            detail=f"The newest format that it reads is {FORMAT}.",
            hint="Open it with the version that wrote it, or a newer one.",
        )


def write_format(files: Files) -> None:
    """The last step of making a directory."""
    if _NEW_FORMAT_NAME in files.names():
        files.remove(_NEW_FORMAT_NAME)
    file = files.create(_NEW_FORMAT_NAME)
    try:
        file.write(f"eddyline directory, format {FORMAT}\n".encode("ascii"), 0)
        file.sync()
    finally:
        file.close()
    files.rename(_NEW_FORMAT_NAME, _FORMAT_NAME)
    files.sync_names()


def _no_state() -> Recovered:
    """Of a directory that was never made whole: nothing can have been committed to it."""
    return Recovered(State.initial(), 0, 0, 0)


def recovered_state(files: Files) -> Recovered:
    """What the newest log file with a good head adds up to.  XX001 if it is damaged, or there is none."""
    for number in begun_logs(files):
        title = f"{files.title}/{log_name(number)}"
        with _reading(files, log_name(number)) as frames:
            head = next(iter(frames), None)
            if head is None:
                raise corrupted(title, "Its head is not readable.")
            with _understood(title, 0):
                found = decode_head(head.payload)
            carried_end = frames.offset + found.carried
            while frames.offset < carried_end and next(iter(frames), None) is not None:
                continue
            if frames.offset < carried_end:
                if frames.torn():
                    _log.info("%s was never begun", title)
                    continue
                raise corrupted(title, f"It is not readable at byte {frames.offset}.")
            return _followed(title, found, frames)
    raise corrupted(files.title, "It has no log file with a readable head.")


def begun_logs(files: Files) -> list[int]:
    """The numbers of the log files that have a head, newest first: those of the highest epoch before all others.

    XX001 if a head behind the newest one is damaged, 0A000 for a newer format.  Reads all heads.
    """
    found: list[tuple[int, int]] = []
    damaged: list[int] = []
    for name in files.names():
        if not (_NUMBERED.fullmatch(name) and name.endswith(".log")):
            continue
        title = f"{files.title}/{name}"
        try:
            file = files.open(name)
        except FileNotFoundError:
            continue  # it was removed since: a later one is there
        try:
            frames = FrameReader(file)
            head = next(iter(frames), None)
            if head is None and frames.torn():
                _log.info("%s was never begun", title)
                continue
        finally:
            file.close()
        if head is None or head.kind != HEAD:
            damaged.append(int(name[:12]))
            continue
        with _understood(title, 0):
            _check_version(files.title, format_of(head.payload))
            found.append((epoch_of(head.payload), int(name[:12])))
    numbers = [number for _, number in sorted(found, reverse=True)]
    # An earlier one is read with the rows, if it is needed.
    if damaged and max(damaged) > (numbers[0] if numbers else 0):
        raise corrupted(f"{files.title}/{log_name(max(damaged))}", "Its head is not readable.")
    return numbers


def _followed(title: str, head: LogHead, frames: FrameReader) -> Recovered:
    """The head's state with what follows it."""
    state, end = head.state, frames.offset
    for frame in frames:
        if frame.kind == RECORD:
            with _understood(title, frame.offset):
                state.apply(decode_record(frame.payload))
            end = frame.end
    if not frames.whole and not frames.torn():
        raise corrupted(title, f"It is not readable at byte {frames.offset}, and is good behind that.")
    return Recovered(state, head.epoch, head.number, end)


def read_rows_file(files: Files, rows: RowsFile, table: str, types: tuple[pa.DataType, ...]) -> Iterator[Batch]:
    """The rows of a rows file, part by part.  XX001 unless it is whole."""
    title = f"{files.title}/{rows_name(rows.number)}"
    parts = count = 0
    with _reading(files, rows_name(rows.number)) as frames:
        for frame in frames:
            with _understood(title, frame.offset):
                if frame.kind == RECORD:
                    break
                part, message = decode_part(frame.payload)
                batch = decode_rows(part, message, types)
            if part.table != table:
                raise corrupted(title, f"It has rows of {part.table} instead of {table}.")
            parts, count = parts + 1, count + len(batch)
            yield batch
        else:
            raise corrupted(title, f"It is not readable at byte {frames.offset}.")
        with _understood(title, frame.offset):
            end = decode_record(frame.payload)
        if end != RowsEnd(parts, count) or count != rows.rows:
            raise corrupted(title, f"It has {count} rows instead of {rows.rows}.")


@contextmanager
def _reading(files: Files, name: str, *, end: int | None = None) -> Iterator[FrameReader]:
    try:
        file = files.open(name)
    except FileNotFoundError as error:
        raise corrupted(f"{files.title}/{name}", "It is missing.") from error
    try:
        yield FrameReader(file, end=end)
    finally:
        file.close()


@contextmanager
def _understood(title: str, offset: int) -> Iterator[None]:
    """Whole frames that say something else than they should are damage too."""
    try:
        yield
    except (msgspec.MsgspecError, pa.ArrowException, KeyError, ValueError) as error:
        raise corrupted(title, f"The frame at byte {offset} is not understood: {error}") from error


@contextmanager
def _told_of_space() -> Iterator[None]:
    try:
        yield
    except Error as problem:
        if not _is_space(problem):
            raise
        hint = "Free some space, and open the directory again: nothing in it was changed."
        raise make_error("53100", problem.message, detail=problem.detail, hint=hint) from problem


@contextmanager
def _system_errors(what: str, title: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise file_error(error, what, title) from error
