"""COPY FROM's text and csv data as blocks of records with text fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import DatabaseError, make_error
from eddyline.kernels import copyscan
from eddyline.sql.statements import Copy, CopyFormat

__all__ = ["RecordBlock", "record_blocks"]

_BLOCK_BYTES = 1 << 20
_SHOWN_CHARS = 100  # of a line, in error details

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Records ``0 <= r < len(block)``, each with some fields.

    ``fields``: large_binary, NULL where a field is; record *r* has fields ``first[r] <= f < first[r + 1]``.
    ``plain``: all fields are ASCII without NUL.  ``lines``: where each record ends.  ``failure``: what is wrong after
    the last record; its line is ``lines[len]``.
    """

    data: bytes
    fields: pa.Array
    plain: bool
    first: Int64s
    lines: Int64s
    starts: Int64s
    stops: Int64s
    failure: DatabaseError | None
    failure_shows_line: bool = False

    def __len__(self) -> int:
        return len(self.first) - 1

    def raw(self, record: int) -> bytes:
        """The record as it stands in the data, with what ends it."""
        stop = int(self.starts[record + 1]) if record < len(self) else int(self.stops[record])
        return self.data[int(self.starts[record]) : stop]

    def shown(self, record: int) -> str:
        """The record's line as error contexts show it."""
        line = self.data[int(self.starts[record]) : int(self.stops[record])].decode(errors="replace")
        return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "..."

    def header_fields(self) -> list[bytes | None]:
        """The fields of the first record."""
        begin, end = int(self.first[0]), int(self.first[1])
        fields: list[bytes | None] = self.fields.slice(begin, end - begin).to_pylist()
        return fields

    def from_record(self, record: int) -> RecordBlock:
        """The block without its first ``record`` records."""
        return RecordBlock(
            self.data,
            self.fields,
            self.plain,
            self.first[record:],
            self.lines[record:],
            self.starts[record:],
            self.stops[record:],
            self.failure,
            self.failure_shows_line,
        )


def record_blocks(statement: Copy, pieces: Iterable[bytes]) -> Iterator[RecordBlock]:
    """Scans the pieces of the source, about a megabyte at a time; a longer record makes its block longer."""
    scanner = _Scanner(statement)
    waiting = bytearray()
    wanted = _BLOCK_BYTES
    for piece in pieces:
        waiting += piece
        if len(waiting) >= wanted:
            block, used = scanner.scan(bytes(waiting), final=False)
            del waiting[:used]
            # A record longer than the block: twice as much next time, so that all scans of it cost O(its length).
            wanted = max(_BLOCK_BYTES, 2 * len(waiting))
            if len(block) or block.failure is not None:
                yield block
            if scanner.ended:
                return
    block, _ = scanner.scan(bytes(waiting), final=True)
    if len(block) or block.failure is not None:
        yield block


class _Scratch:
    """What a scan of up to ``size`` bytes writes to, and is copied from: the kernel's worst case is far more than what
    it mostly touches, and to get such memory anew for each block costs more than a copy."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.out = np.empty(size, np.uint8)
        self.offsets = np.empty(size + 3, np.int64)
        self.nulls = np.empty(size + 2, np.uint8)
        self.records = np.empty((size + 2, 4), np.int64)


class _Scanner:
    def __init__(self, statement: Copy) -> None:
        self._csv = statement.format is CopyFormat.CSV
        quote, escape = (ord(statement.quote), ord(statement.escape)) if self._csv else (-1, -1)
        dialect = (int(self._csv), ord(statement.delimiter), quote, escape)
        self._dialect = np.array(dialect, np.int64)
        self._meaningful = copyscan.meaningful_bytes(dialect)
        self._scratch = _Scratch(0)
        self._null = np.frombuffer(statement.null.encode(), np.uint8)
        self._state = np.zeros(copyscan.STATE, np.int64)
        self.ended = False

    def scan(self, data: bytes, *, final: bool) -> tuple[RecordBlock, int]:
        if len(data) > self._scratch.size:
            self._scratch = _Scratch(len(data) + len(data) // 4)
        scratch, state = self._scratch, self._state
        out, offsets, nulls, records = scratch.out, scratch.offsets, scratch.nulls, scratch.records
        used = copyscan.scan_records(
            np.frombuffer(data, np.uint8),
            int(final),
            self._dialect,
            self._null,
            self._meaningful,
            state,
            out,
            offsets,
            nulls,
            records,
        )
        count, fields, status = (int(state[k]) for k in (copyscan.RECORDS, copyscan.FIELDS, copyscan.STATUS))
        self.ended = status != copyscan.MORE
        if not count and not self.ended:
            records[0] = 0
        marks = records[: count + 1].T.copy()
        first = marks[1].copy()
        first[count] = fields
        array = _binary(out, offsets[: fields + 1].copy(), nulls[:fields])
        failure = self._failure(status)
        unterminated = status == copyscan.UNTERMINATED
        plain = state[copyscan.ODD] == 0
        return RecordBlock(data, array, bool(plain), first, marks[0], marks[2], marks[3], failure, unterminated), used

    def _failure(self, status: int) -> DatabaseError | None:
        csv = self._csv
        match status:
            case copyscan.MORE | copyscan.END:
                return None
            case copyscan.BAD_CR:
                return _bad_newline("carriage return", "\\r", csv=csv)
            case copyscan.BAD_NEWLINE:
                return _bad_newline("newline", "\\n", csv=csv)
            case copyscan.BAD_MARKER:
                return make_error("22P04", "end-of-copy marker corrupt")
            case copyscan.BAD_MARKER_NEWLINE:
                return make_error("22P04", "end-of-copy marker does not match previous newline style")
            case _:
                return make_error("22P04", "unterminated CSV quoted field")


def _bad_newline(what: str, escape: str, *, csv: bool) -> DatabaseError:
    if csv:
        return make_error("22P04", f"unquoted {what} found in data", hint=f"Use quoted CSV field to represent {what}.")
    return make_error("22P04", f"literal {what} found in data", hint=f'Use "{escape}" to represent {what}.')


def _binary(out: npt.NDArray[np.uint8], offsets: Int64s, nulls: npt.NDArray[np.uint8]) -> pa.Array:
    used = out[: offsets[-1]].copy()  # the scratch space is as large as the data
    bitmap = None
    if nulls.any():
        bitmap = pa.array(nulls == 0).buffers()[1]
    return pa.Array.from_buffers(
        pa.large_binary(), len(offsets) - 1, [bitmap, pa.py_buffer(offsets), pa.py_buffer(used)]
    )
