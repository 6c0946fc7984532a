"""What the frames of a durable directory say, and the state that they add up to.

A *log file* begins with a ``LogHead``: the whole state but for the tables' rows, so that nothing older is read for it.
Then come commits: the ``Part`` frames of a commit's rows, then its ``Commit``.  Without that last frame there was no
commit.  A *rows file* holds one table's rows at one time: ``Part`` frames and a ``RowsEnd``.

Documents are what the layers above keep beside tables (the catalog, settings): bytes by name, of which storage knows
nothing but which were put last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType, arrow_type

__all__ = [
    "FORMAT",
    "HEAD",
    "PART",
    "PART_BYTES",
    "PART_ROWS",
    "RECORD",
    "Commit",
    "Installed",
    "LogHead",
    "LogSpan",
    "Part",
    "Record",
    "Released",
    "RowsEnd",
    "RowsFile",
    "State",
    "TableState",
    "decode_head",
    "decode_part",
    "decode_record",
    "decode_rows",
    "encode_part",
    "encode_record",
    "epoch_of",
    "format_of",
    "slices",
]

#: the newest format of a directory that is understood, and the one that is written
FORMAT: Final = 1

HEAD: Final = 1
PART: Final = 2
RECORD: Final = 3

PART_ROWS: Final = 1 << 16
#: about so many bytes of columns make a part, if its rows are large
PART_BYTES: Final = 8 << 20


class RowsFile(msgspec.Struct, frozen=True):
    """All rows of a table at ``time``, in file ``number``."""

    number: int
    time: int
    rows: int
    bytes: int


class TableState(msgspec.Struct, frozen=True):
    """``rows``: where it begins; the log has the rest.  None: it began empty."""

    types: tuple[SqlType, ...]
    rows: RowsFile | None = None

    @property
    def start(self) -> int:
        """Changes at or before it are in the rows file."""
        return -1 if self.rows is None else self.rows.time


class LogSpan(msgspec.Struct, frozen=True):
    """An earlier log file that is still needed: valid up to ``end``, whatever is behind."""

    number: int
    end: int


class Part(msgspec.Struct, frozen=True):
    """Rows of one table at ``time``; ``ones``: each diff is 1 and is not stored.  An Arrow message follows."""

    table: str
    time: int
    rows: int
    ones: bool


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """One commit: the ``parts`` frames before it, and what it does to documents and tables.

    ``time`` None: it changes documents only.  ``reserved``: times up to it may have been given out, later ones not.
    """

    time: int | None
    reserved: int
    put: dict[str, bytes] = {}
    removed: tuple[str, ...] = ()
    created: dict[str, tuple[SqlType, ...]] = {}
    dropped: tuple[str, ...] = ()


class Installed(msgspec.Struct, frozen=True, tag="installed"):
    """The table begins with these rows from now on."""

    table: str
    rows: RowsFile


class Released(msgspec.Struct, frozen=True, tag="released"):
    """Earlier log files that nothing needs any more."""

    logs: tuple[int, ...]


class RowsEnd(msgspec.Struct, frozen=True, tag="end"):
    """The last frame of a rows file."""

    parts: int
    rows: int


Record: TypeAlias = Commit | Installed | Released | RowsEnd


class State(msgspec.Struct):
    """What the records so far add up to.  ``newest``: the last commit's time; ``next_file``: a number never used."""

    documents: dict[str, bytes]
    tables: dict[str, TableState]
    logs: tuple[LogSpan, ...]
    newest: int
    reserved: int
    next_file: int

    @staticmethod
    def initial() -> State:
        return State({}, {}, (), newest=0, reserved=0, next_file=1)

    def apply(self, record: Record) -> None:
        """O(what the record says)."""
        match record:
            case Commit():
                self.newest = max(self.newest, record.time or 0)
                self.reserved = max(self.reserved, record.reserved)
                self.documents.update(record.put)
                for name in record.removed:
                    self.documents.pop(name, None)
                self.tables.update({id: TableState(types) for id, types in record.created.items()})
                for id in record.dropped:
                    self.tables.pop(id, None)
            case Installed():
                if record.table in self.tables:
                    self.tables[record.table] = TableState(self.tables[record.table].types, record.rows)
                self.next_file = max(self.next_file, record.rows.number + 1)
            case Released():
                self.logs = tuple(log for log in self.logs if log.number not in record.logs)
            case RowsEnd():
                raise ValueError("a log has no end of rows")


class LogHead(msgspec.Struct, frozen=True):
    """The first frame of log file ``number``.  ``epoch``: rises with each opening of the directory.

    ``carried``: bytes of ``Part`` frames behind it that come from an earlier log file; without them it does not count.
    """

    format: int
    epoch: int
    number: int
    state: State
    carried: int = 0


_encoder = msgspec.msgpack.Encoder()
_heads = msgspec.msgpack.Decoder(LogHead)
_records: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_parts = msgspec.msgpack.Decoder(Part)
_LENGTH_BYTES: Final = 8  # keeps the Arrow message aligned
_FORMATS = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


def encode_record(record: Record | LogHead) -> bytes:
    return _encoder.encode(record)


def decode_record(payload: memoryview) -> Record:
    """Raises ``msgspec.MsgspecError`` for anything else; so do the others."""
    return _records.decode(payload)


def decode_head(payload: memoryview) -> LogHead:
    return _heads.decode(payload)


def format_of(payload: memoryview) -> int:
    """The format that a head says it has, also where the rest cannot be read."""
    return msgspec.msgpack.decode(_FORMATS.decode(payload)["format"], type=int)


def epoch_of(payload: memoryview) -> int:
    """The epoch of a head, without the rest."""
    return msgspec.msgpack.decode(_FORMATS.decode(payload)["epoch"], type=int)


def encode_part(table: str, time: int, batch: Batch) -> list[bytes | memoryview]:
    """The payload of a part: rows and diffs of ``batch``, whose own times do not count.  One copy of the columns."""
    ones = bool((batch.diffs == 1).all())
    arrays = [*batch.columns] if ones else [*batch.columns, pa.array(batch.diffs)]
    record = pa.RecordBatch.from_arrays(arrays, names=[""] * len(arrays)) if arrays else None
    head = _encoder.encode(Part(table, time, len(batch), ones))
    padding = -(len(head) + _LENGTH_BYTES) % 64
    prefix = len(head).to_bytes(_LENGTH_BYTES, "little") + head + b"\0" * padding
    return [prefix] if record is None else [prefix, memoryview(record.serialize())]


def decode_part(payload: memoryview) -> tuple[Part, memoryview]:
    """The part, and the Arrow message of its columns."""
    length = int.from_bytes(payload[:_LENGTH_BYTES], "little")
    end = _LENGTH_BYTES + length
    return _parts.decode(payload[_LENGTH_BYTES:end]), payload[end + (-end % 64) :]


def decode_rows(part: Part, message: memoryview, types: tuple[SqlType, ...]) -> Batch:
    """The part's updates.  One copy of the message, which keeps nothing else alive and is aligned.

    pa.ArrowException if it is something else.
    """
    fields = [pa.field("", arrow_type(t)) for t in types]
    if not part.ones:
        fields.append(pa.field("", pa.int64()))
    columns: tuple[pa.Array, ...] = ()
    if fields:
        record = pa.ipc.read_record_batch(pa.py_buffer(message.tobytes()), pa.schema(fields))
        columns = tuple(record.columns)
        if record.num_rows != part.rows:
            raise pa.ArrowInvalid(f"{record.num_rows} rows instead of {part.rows}")
    if part.ones:
        diffs = np.ones(part.rows, np.int64)
    else:
        diffs, columns = np.asarray(columns[-1].to_numpy(zero_copy_only=True)), columns[:-1]
    return Batch(types, columns, np.full(part.rows, part.time, np.int64), diffs)


def slices(batch: Batch) -> Iterator[Batch]:
    """``batch`` in pieces that fit a part."""
    if len(batch) == 1:
        yield batch
        return
    row_bytes = max(1, batch.column_bytes // max(1, len(batch)))
    step = max(1, min(PART_ROWS, PART_BYTES // row_bytes))
    for start in range(0, len(batch), step):
        yield batch.slice(start, min(start + step, len(batch)))
