"""COPY FROM: records to rows of a table, with PostgreSQL's first error and where it happened.

PostgreSQL goes through the data value by value.  Here a block of records is converted column by column, and of all
failures the one that PostgreSQL would have met first is raised: by record, then by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.adapter.computed_columns import evaluate_columns
from eddyline.adapter.copy_binary import Tuples, tuple_blocks
from eddyline.adapter.copy_scan import RecordBlock, record_blocks
from eddyline.adapter.copy_streams import read_pieces, seekable
from eddyline.adapter.ingest_rows import Incoming, table_rows
from eddyline.adapter.read import ReadContext
from eddyline.adapter.write import check_not_null, insert_rows, wait_capacity
from eddyline.errors import DatabaseError, make_error
from eddyline.expr.binary_io import read_column
from eddyline.expr.casts import cast_array
from eddyline.expr.ir import Literal
from eddyline.expr.layout import validity
from eddyline.expr.text_input import Slots, plain_numbers
from eddyline.expr.text_slices import bytes_of, offsets_of
from eddyline.repr.batch import Batch
from eddyline.repr.late_module import LateModule
from eddyline.repr.time import Time
from eddyline.repr.types import TEXT, SqlType
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.statements import Copy, CopyFormat

__all__ = ["copy_from"]

_parquet = LateModule("pyarrow.parquet")
_SHOWN_CHARS = 100
_LARGE = pa.large_string()
Bools = npt.NDArray[np.bool_]
_BEFORE_COLUMNS = -1  # where failures of a whole record stand among those of its columns


class _Failure(NamedTuple):
    """``column``: position among the statement's columns, or after them for what concerns the finished row."""

    record: int
    column: int
    error: DatabaseError


def copy_from(context: ReadContext, statement: Copy, file: Any) -> int:
    """Adds the rows to the transaction's writes, all or none; how many.

    22P04 for malformed data, the types' input errors, 23502; their context is the line and the column.
    """
    table = statement.table
    assert table is not None
    if context.transaction.read_only:
        raise make_error("25006", "cannot execute COPY FROM in a read-only transaction")
    wait_capacity(context, {table.id}, None)
    if statement.format is CopyFormat.PARQUET:
        batches = [_parquet_rows(context, statement, table, file)]
    elif statement.format is CopyFormat.BINARY:
        batches = list(_binary_rows(context, statement, table, file))
    else:
        batches = list(_text_rows(context, statement, table, file))
    rows = Batch.concat(table.types, batches)
    if len(rows):
        insert_rows(context, table, rows)
    return len(rows)


# -- parquet ----------------------------------------------------------------------------------------------------------


def _parquet_rows(context: ReadContext, statement: Copy, table: CatalogItem, file: Any) -> Batch:
    """Columns by name; those that the statement names must be there."""
    try:
        data = _parquet.read_table(seekable(statement.filename, file))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as problem:
        raise make_error("22P04", f"malformed parquet data: {problem}") from problem
    names = [table.columns[c].name for c in statement.columns]
    if len(names) < len(table.columns):
        missing = [n for n in names if n not in data.column_names]
        if missing:
            raise make_error("22P04", f'missing data for column "{missing[0]}"')
        data = data.select(names)
    return table_rows(context, table, Incoming(data))


# -- binary -----------------------------------------------------------------------------------------------------------


def _binary_rows(context: ReadContext, statement: Copy, table: CatalogItem, file: Any) -> Iterator[Batch]:
    loader = _Loader(context, statement, table)
    for block in tuple_blocks(read_pieces(statement.filename, file), len(statement.columns)):
        context.interrupt.check()
        yield loader.tuples(block)


# -- text and csv -----------------------------------------------------------------------------------------------------


def _text_rows(context: ReadContext, statement: Copy, table: CatalogItem, file: Any) -> Iterator[Batch]:
    loader = _Loader(context, statement, table)
    header = statement.header
    for block in record_blocks(statement, read_pieces(statement.filename, file)):
        context.interrupt.check()
        if header and len(block):
            loader.check_header(block.header_fields(), f'{loader.place(block, 0)}: "{block.shown(0)}"')
            block = block.from_record(1)
            header = False
        if len(block) or block.failure is not None:
            yield loader.rows(block)
    if header:
        loader.check_header([b""], f'COPY {table.name}, line 1: ""')


class _Loader:
    """Rows of one table from record blocks."""

    def __init__(self, context: ReadContext, statement: Copy, table: CatalogItem) -> None:
        self._context = context
        self._statement = statement
        self._table = table
        self._columns = [table.columns[c] for c in statement.columns]
        self._force_null = self._forced(statement.force_null, "FORCE_NULL")
        self._force_not_null = self._forced(statement.force_not_null, "FORCE_NOT_NULL")

    def _forced(self, names: Sequence[str], option: str) -> frozenset[int]:
        mine = [c.name for c in self._columns]
        every = {c.name for c in self._table.columns}
        for name in names:
            if name not in every:
                raise make_error("42703", f'column "{name}" of relation "{self._table.name}" does not exist')
            if name not in mine:
                raise make_error("42P10", f'{option} column "{name}" not referenced by COPY')
        return frozenset(mine.index(n) for n in names)

    # -- the header

    def check_header(self, given: Sequence[bytes | None], where: str) -> None:
        """HEADER MATCH: 22P04 unless ``given`` names the columns."""
        if not self._statement.header_match:
            return
        if len(given) != len(self._columns):
            problem = f"wrong number of fields in header line: got {len(given)}, expected {len(self._columns)}"
            raise make_error("22P04", problem, context=where)
        for i, (name, column) in enumerate(zip(given, self._columns, strict=True), 1):
            if name is None:
                got = f'null value ("{self._statement.null}")'
            elif name.decode(errors="replace") == column.name:
                continue
            else:
                got = f'"{name.decode(errors="replace")}"'
            problem = f'column name mismatch in header line field {i}: got {got}, expected "{column.name}"'
            raise make_error("22P04", problem, context=where)

    # -- records

    def rows(self, block: RecordBlock) -> Batch:
        """The block's rows; raises its first failure."""
        counts = np.diff(block.first)
        odd = np.flatnonzero(counts != len(self._columns))
        whole = int(odd[0]) if len(odd) else len(block)  # records before the first with a wrong number of fields
        text, failures = self._texts(block, whole)
        valid = validity(text)
        arrays: dict[int, pa.Array] = {}
        for i, position in enumerate(self._statement.columns):
            arrays[position] = self._column(block, text, valid, i, failures)
        batch = self._filled(arrays, whole)
        self._check_not_null(batch, failures)
        if not failures and whole < len(block):
            failures.append(self._ragged(block, whole, int(counts[whole])))
        if failures:
            self._raise_first(block, failures)
        if block.failure is not None:
            shown = f': "{block.shown(len(block))}"' if block.failure_shows_line else ""
            block.failure.context = self.place(block, len(block)) + shown
            raise block.failure
        return batch

    def tuples(self, block: Tuples) -> Batch:
        """The rows of binary data; raises the first failure, by row and then by column."""
        arrays: dict[int, pa.Array] = {}
        failures: list[_Failure] = []
        for i, position in enumerate(self._statement.columns):
            target = self._columns[i].type
            array, bad = read_column(block.data, block.starts[:, i], block.lengths[:, i], target.kind)
            if bad is not None:
                failures.append(_Failure(bad.row, i, bad.error))
                continue
            arrays[position], errors = cast_array(array, SqlType(target.kind), target, explicit=False)
            if errors is not None:
                failures.append(_Failure(int(errors.rows[0]), i, make_error(errors.sqlstates[0], errors.messages[0])))
        if not failures:
            batch = self._filled(arrays, len(block))
            self._check_not_null(batch, failures)
            if not failures:
                return batch
        record, column, error = min(failures, key=lambda f: f[:2])
        where = f"COPY {self._table.name}, line {block.first + record}"
        if column < len(self._columns):
            where += f", column {self._columns[column].name}"
        error.context = where
        raise error

    def _texts(self, block: RecordBlock, whole: int) -> tuple[pa.Array, list[_Failure]]:
        """large_string[whole × columns], record by record; NULL from the first record on that is not UTF-8."""
        width = len(self._columns)
        begin = int(block.first[0])
        fields = block.fields.slice(begin, whole * width)
        failures: list[_Failure] = []
        text = fields.view(_LARGE) if block.plain else _decoded(fields)
        if text is None:
            bad = _first_undecodable(fields)
            failures.append(self._undecodable(block, bad // width, fields[bad].as_py()))
            good = bad // width * width
            unknown = pa.nulls(len(fields) - good, _LARGE)
            text = pa.concat_arrays([fields.slice(0, good).cast(_LARGE), unknown])
        return text, failures

    def _column(
        self, block: RecordBlock, text: pa.Array, valid: Bools | None, column: int, failures: list[_Failure]
    ) -> pa.Array:
        """The column's values; of plain numbers without making an array of their texts first."""
        width = len(self._columns)
        if column not in self._force_null and column not in self._force_not_null:
            offsets = offsets_of(text)
            starts, stops = (np.ascontiguousarray(o[column::width]) for o in (offsets[:-1], offsets[1:]))
            flags = None if valid is None else np.ascontiguousarray(valid[column::width])
            plain = plain_numbers(Slots(bytes_of(text), starts, stops, flags), self._columns[column].type)
            if plain is not None:
                return plain
        own = text.take(pa.array(np.arange(column, len(text), width, dtype=np.int64)))
        return self._converted(block, self._forced_nulls(own, column), column, failures)

    def _forced_nulls(self, text: pa.Array, column: int) -> pa.Array:
        null = pa.scalar(self._statement.null, _LARGE)
        forced = text
        if column in self._force_null:
            forced = pc.if_else(pc.equal(text, null), pa.scalar(None, _LARGE), text)
        if column in self._force_not_null:
            forced = pc.if_else(pc.is_null(text), null, forced)
        return forced

    def _converted(self, block: RecordBlock, text: pa.Array, column: int, failures: list[_Failure]) -> pa.Array:
        target = self._columns[column].type
        array, errors = cast_array(text, TEXT, target, explicit=False)
        if errors is not None:
            record = int(errors.rows[0])
            where = self._at_column(block, record, column, text[record].as_py())
            error = make_error(errors.sqlstates[0], errors.messages[0], context=where)
            failures.append(_Failure(record, column, error))
        return array

    def _filled(self, arrays: dict[int, pa.Array], rows: int) -> Batch:
        columns = []
        for i, column in enumerate(self._table.columns):
            if i in arrays:
                columns.append(arrays[i])
            else:
                default = column.default if column.default is not None else Literal(None, column.type)
                columns.append(evaluate_columns((default,), (), rows, (), self._context)[0])
        return Batch.at(self._table.types, tuple(columns), rows, Time(0))

    def _check_not_null(self, batch: Batch, failures: list[_Failure]) -> None:
        """The first row before every other failure that holds a NULL where none may be."""
        before = min((f.record for f in failures), default=len(batch))
        wrong = np.zeros(before, np.bool_)
        for column, array in zip(self._table.columns, batch.columns, strict=True):
            if column.not_null and array.null_count:
                wrong |= np.asarray(array.slice(0, before).is_null())
        if wrong.any():
            record = int(wrong.argmax())
            try:
                check_not_null(self._table, batch.slice(record, record + 1))
            except DatabaseError as error:
                failures.append(_Failure(record, len(self._columns), error))

    def _ragged(self, block: RecordBlock, record: int, count: int) -> _Failure:
        """What PostgreSQL says of a record with a wrong number of fields."""
        width = len(self._columns)
        if count > width:
            return _Failure(record, _BEFORE_COLUMNS, make_error("22P04", "extra data after last expected column"))
        fields = block.fields.slice(int(block.first[record]), count)
        texts = _decoded(fields)
        if texts is None:
            return self._undecodable(block, record, fields[_first_undecodable(fields)].as_py())
        failures: list[_Failure] = []
        for i in range(count):
            # the earlier fields are converted first, so their failures are met first
            self._converted(block.from_record(record), self._forced_nulls(texts.slice(i, 1), i), i, failures)
            if failures:
                return _Failure(record, i, failures[0].error)
        name = self._columns[count].name
        return _Failure(record, _BEFORE_COLUMNS, make_error("22P04", f'missing data for column "{name}"'))

    def _undecodable(self, block: RecordBlock, record: int, field: bytes) -> _Failure:
        """22021: the data themselves are not UTF-8 (then the line is not shown), or escapes have made such bytes."""
        raw = _bad_bytes(block.raw(record))
        bad = _bad_bytes(field) if raw is None else raw
        shown = f': "{block.shown(record)}"' if raw is None else ""
        error = make_error(
            "22021", f'invalid byte sequence for encoding "UTF8": {bad}', context=self.place(block, record) + shown
        )
        return _Failure(record, _BEFORE_COLUMNS, error)

    def _raise_first(self, block: RecordBlock, failures: list[_Failure]) -> None:
        record, column, error = min(failures, key=lambda f: f[:2])
        if not 0 <= column < len(self._columns) and error.sqlstate != "22021":
            error.context = f'{self.place(block, record)}: "{block.shown(record)}"'
        raise error

    # -- places

    def place(self, block: RecordBlock, record: int) -> str:
        return f"COPY {self._table.name}, line {int(block.lines[record])}"

    def _at_column(self, block: RecordBlock, record: int, column: int, text: str | None) -> str:
        place = f"{self.place(block, record)}, column {self._columns[column].name}"
        if text is None:
            return f"{place}: null input"
        shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
        return f'{place}: "{shown}"'


# -- encoding ---------------------------------------------------------------------------------------------------------


def _decoded(fields: pa.Array) -> pa.Array | None:
    """large_string, or None where a field is not UTF-8 or holds a NUL."""
    try:
        text = fields.cast(_LARGE)
    except pa.ArrowInvalid:
        return None
    data = fields.buffers()[2]
    if data is not None and data.size and not np.frombuffer(data, np.uint8).all():
        return None if pc.any(pc.match_substring(text, "\x00")).as_py() else text
    return text


def _first_undecodable(fields: pa.Array) -> int:
    """The first field that ``_decoded`` refuses, found by halving."""
    low, high = 0, len(fields)
    while high - low > 1:
        middle = (low + high) // 2
        if _decoded(fields.slice(low, middle - low)) is None:
            high = middle
        else:
            low = middle
    return low


def _bad_bytes(value: bytes) -> str | None:
    """The bytes PostgreSQL shows, as many as the first one announces; None if all is well."""
    try:
        start = value.decode().encode().find(0)
    except UnicodeDecodeError as problem:
        start = problem.start
    if start < 0:
        return None
    lead = value[start]
    length = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0) if lead < 0xF8 else 1
    return " ".join(f"0x{b:02x}" for b in value[start : start + length])
