"""Arrow tables as rows of a table: columns by name, cast as on assignment, defaults filled in.

A table that is given may share memory that its owner changes later (Arrow arrays made from NumPy do).  A commit copies
every row into storage's own columns before the call returns; what outlives the call otherwise is copied here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.adapter.computed_columns import evaluate_columns
from eddyline.adapter.read import ReadContext
from eddyline.errors import DataError, make_error, unsupported
from eddyline.expr.array_layout import arrays_of
from eddyline.expr.casts import cast_array, cast_context
from eddyline.expr.ir import Expr, Literal
from eddyline.repr.batch import Batch, concat_arrays
from eddyline.repr.time import Time
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    arrow_type,
    element_type,
    is_array,
    numeric,
)
from eddyline.sql.catalog_view import CatalogItem

__all__ = ["Incoming", "assigned_column", "key_rows", "table_rows"]

Place = Callable[[int], str]


def _row(row: int) -> str:
    return f"row {row + 1}"


def _all_given(name: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows that are given from outside.

    ``given``: bool[rows] of a column, False where the row does not have it, which takes its DEFAULT there; None: all
    have it.  Asked only for columns that have a default.  ``place``: where a row is, counted from 0, as errors say it.
    """

    table: pa.Table
    given: Callable[[str], npt.NDArray[np.bool_] | None] = _all_given
    place: Place = _row


def table_rows(context: ReadContext, table: CatalogItem, incoming: Incoming) -> Batch:
    """The rows as ``table`` has them.  42703 for unknown columns, 42701 for repeated ones; see ``assigned_column``."""
    data = _owned(context, incoming.table)
    names = data.column_names
    known = {c.name for c in table.columns}
    for i, name in enumerate(names):
        if name not in known:
            raise make_error(
                "42703",
                f'column "{name}" of relation "{table.name}" does not exist',
                hint="columns match by name; the table has " + ", ".join(sorted(known)),
            )
        if name in names[:i]:
            raise make_error("42701", f'column "{name}" specified more than once')
    columns = []
    for column in table.columns:
        default = column.default if column.default is not None else Literal(None, column.type)
        if column.name not in names:
            columns.append(evaluate_columns((default,), (), data.num_rows, (), context)[0])
            continue
        values = assigned_column(data[column.name], column.type, column.name, incoming.place)
        given = None if column.default is None else incoming.given(column.name)
        columns.append(values if given is None else _with_defaults(context, values, given, default))
    return Batch.at(table.types, tuple(columns), data.num_rows, Time(0))


def _with_defaults(context: ReadContext, values: pa.Array, given: npt.NDArray[np.bool_], default: Expr) -> pa.Array:
    """``values`` where they are given, and the default, evaluated for each of the others, where not."""
    missing = np.flatnonzero(~given)
    if not len(missing):
        return values
    filled = evaluate_columns((default,), (), len(missing), (), context)[0]
    positions = np.arange(len(values))
    positions[missing] = len(values) + np.arange(len(missing))
    return concat_arrays([values, filled]).take(pa.array(positions))


def key_rows(context: ReadContext, table: CatalogItem, incoming: Incoming) -> tuple[pa.Array, ...]:
    """The key columns or, for a table without a primary key, all its columns.  42703 for missing ones."""
    data = _owned(context, incoming.table)
    wanted = table.primary_key or tuple(range(len(table.columns)))
    columns = []
    for position in wanted:
        column = table.columns[position]
        if column.name not in data.column_names:
            raise make_error("42703", f'the rows to delete need the column "{column.name}"')
        columns.append(assigned_column(data[column.name], column.type, column.name, incoming.place))
    return tuple(columns)


def _owned(context: ReadContext, data: pa.Table) -> pa.Table:
    """A deep copy, if the rows wait for a later COMMIT or storage might keep them as they are (a single one)."""
    if not context.transaction.explicit and data.num_rows > 1:
        return data
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def assigned_column(data: pa.ChunkedArray | pa.Array, target: SqlType, name: str, place: Place = _row) -> pa.Array:
    """``data`` in the layout of ``target``, as INSERT would assign it; text is read with the type's input syntax.

    Raises 42804 for an Arrow type that does not go there, and the conversion's own error (22P02, 22003, 22001 …).
    """
    if isinstance(data, pa.ChunkedArray):
        array = concat_arrays(data.chunks) if data.num_chunks else pa.array([], data.type)
    else:
        array = data
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(target))
    source, array = _engine_column(array, target, name, place)
    if source == target:
        return array
    if source != TEXT and cast_context(source, target) not in ("implicit", "assignment"):
        raise make_error(
            "42804",
            f'column "{name}" is of type {target} but expression is of type {source}',
            hint="Cast the data first.",
        )
    try:
        cast, errors = cast_array(array, source, target, explicit=False)
    except pa.ArrowException as problem:
        raise DataError(f'column "{name}": {problem}') from problem
    if errors is not None:
        where = f'column "{name}", {place(int(errors.rows[0]))}'
        raise make_error(errors.sqlstates[0], errors.messages[0], detail=where)
    return cast


def _engine_column(array: pa.Array, target: SqlType, name: str, place: Place) -> tuple[SqlType, pa.Array]:
    """The SQL type that an Arrow type stands for, and the array in that type's layout."""
    t = array.type
    if is_array(target) and _is_list(t):
        return target, _arrays(array, target, name)
    match target.kind:
        case Kind.UUID if _is_bytes(t):
            return target, _uuids(array, name)
        case Kind.INTERVAL if t == pa.binary(16):
            return target, array
        case Kind.INTERVAL if t == pa.month_day_nano_interval():
            return target, _intervals(array, name)
        case Kind.INTERVAL if pa.types.is_duration(t):
            return target, _durations(array, name)
        case _:
            pass
    found = _source_type(t)
    if found is None:
        raise make_error("42804", f'column "{name}" is of type {target} but the data is of Arrow type {t}')
    layout = arrow_type(found)
    try:
        column = array if t == layout else _from_its_start(array).cast(layout)
    except pa.ArrowInvalid as problem:
        raise make_error("22003", f'column "{name}": {problem}') from problem
    if found == TEXT:
        _check_text(column, name, place)
    return found, column


def _from_its_start(array: pa.Array) -> pa.Array:
    """The same strings with no rows before them: a cast's cost follows the rows before a slice too."""
    if array.offset == 0 or array.type != pa.string() or array.null_count:
        return array
    _, offsets, data = array.buffers()
    if data is None:
        return array
    return pa.Array.from_buffers(array.type, len(array), [None, offsets.slice(4 * array.offset), data])


def _bytes_of(column: pa.Array) -> np.ndarray | None:
    """int8: the bytes of a text column's values; None if there are none or the offsets do not ascend."""
    _, offsets_buffer, data = column.buffers()
    if not len(column) or data is None:
        return None
    offsets = np.frombuffer(offsets_buffer, np.int64, len(column) + 1, column.offset * 8)
    first, last = int(offsets[0]), int(offsets[-1])
    if not 0 <= first < last <= data.size or (offsets[1:] < offsets[:-1]).any():
        return None
    return np.frombuffer(data, np.int8, last - first, first)


def _check_text(column: pa.Array, name: str, place: Place) -> None:
    """22021 for what is not UTF-8 (Arrow does not look) and for NUL.  O(the rows' bytes), whatever it is a slice of."""
    found = _bytes_of(column)
    # As signed bytes NUL and whatever is not ASCII are not positive.
    if found is not None and found.min() > 0:
        return
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as problem:
        where = f'column "{name}", {place(_first_undecodable(column))}'
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8"', detail=where) from problem
    # a NULL may have a zero behind it, so that one is only a reason to look closer
    if found is not None and found.all():
        return
    zeros = pc.fill_null(pc.match_substring(column, "\x00"), False)
    if pc.any(zeros).as_py():
        where = f'column "{name}", {place(pc.index(zeros, True).as_py())}'
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": 0x00', detail=where)


def _first_undecodable(column: pa.Array) -> int:
    """The first row that is not UTF-8, found by halving.  Requires that there is one."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).validate(full=True)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low


def _is_list(t: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(t)
        or types.is_large_list(t)
        or types.is_fixed_size_list(t)
        or types.is_list_view(t)
        or types.is_large_list_view(t)
    )


def _arrays(array: pa.Array, target: SqlType, name: str) -> pa.Array:
    """Lists as arrays of one dimension; 0A000 for lists of lists."""
    if _is_list(array.type.value_type):
        raise unsupported(f'lists of lists for column "{name}"', hint="Give them as text, as in '{{1,2},{3,4}}'.")
    element = element_type(target)
    lists = array.cast(pa.large_list(array.type.value_type))
    offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(lists), 0)))])
    values = assigned_column(pc.list_flatten(lists), element, name)
    valid = None if not array.null_count else np.asarray(array.is_valid())
    return arrays_of(values, offsets.astype(np.int64), element, valid)


def _is_bytes(t: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(t) or types.is_large_binary(t) or types.is_fixed_size_binary(t) or types.is_binary_view(t)
    )


def _uuids(array: pa.Array, name: str) -> pa.Array:
    """Binary values of 16 bytes."""
    if array.type == pa.binary(16):
        return array
    wide = array.cast(pa.large_binary())
    if not pc.all(pc.equal(pc.binary_length(wide), 16)).as_py() and len(wide) > wide.null_count:
        raise make_error("22P02", f'column "{name}": a uuid has 16 bytes')
    # a NULL has no bytes in a varlen column, but 16 in a fixed one
    filled = pc.fill_null(wide, pa.scalar(bytes(16), pa.large_binary()))
    filled = pa.Array.from_buffers(pa.binary(16), len(filled), [None, _value_bytes(filled)])
    return pc.if_else(pc.is_valid(wide), filled, pa.scalar(None, pa.binary(16)))


def _value_bytes(column: pa.Array) -> pa.Buffer:
    """All values of a large_binary column without NULLs behind one another."""
    first = np.frombuffer(column.buffers()[1], np.int64, 1, column.offset * 8)[0] if len(column) else 0
    return column.buffers()[2].slice(int(first))


_NANOS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_MICROS = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])


def _intervals(array: pa.Array, name: str) -> pa.Array:
    """month_day_nano values; 22008 for nanoseconds that are no whole microseconds."""
    rows = len(array)
    valid = np.asarray(array.is_valid())
    given = np.frombuffer(array.buffers()[1], _NANOS, rows, array.offset * _NANOS.itemsize) if rows else None
    out = np.zeros(rows, _MICROS)
    if given is not None:
        nanos = np.where(valid, given["nanos"], 0)
        if (nanos % 1000).any():
            raise make_error("22008", f'column "{name}": an interval has whole microseconds')
        out["months"], out["days"], out["micros"] = given["months"], given["days"], nanos // 1000
    return _interval_array(out, valid)


def _durations(array: pa.Array, name: str) -> pa.Array:
    """Durations as Python's timedelta splits them: days and the rest.  22008 for parts of a µs, or too many."""
    valid = np.asarray(array.is_valid())
    try:
        whole = array.cast(pa.duration("us"))
    except pa.ArrowInvalid as problem:
        raise make_error("22008", f'column "{name}": {problem}') from problem
    micros = np.asarray(whole.cast(pa.int64()).fill_null(0))
    out = np.zeros(len(array), _MICROS)
    out["days"], out["micros"] = np.divmod(micros, 86_400_000_000)
    return _interval_array(out, valid)


def _interval_array(values: np.ndarray, valid: np.ndarray) -> pa.Array:
    values[~valid] = 0
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.binary(16), len(values), [bitmap, pa.py_buffer(values)])


def _source_type(t: pa.DataType) -> SqlType | None:
    types = pa.types
    if types.is_boolean(t):
        return BOOLEAN
    if types.is_int8(t) or types.is_int16(t) or types.is_uint8(t):
        return SMALLINT
    if types.is_int32(t) or types.is_uint16(t):
        return INTEGER
    if types.is_integer(t):
        return BIGINT
    if types.is_float16(t) or types.is_float32(t):
        return REAL
    if types.is_float64(t):
        return DOUBLE
    if types.is_decimal(t):
        return numeric(max(t.scale, 0))
    if types.is_string(t) or types.is_large_string(t) or types.is_string_view(t):
        return TEXT
    if _is_bytes(t):
        return BYTEA
    if types.is_date(t):
        return DATE
    if types.is_time(t):
        return TIME
    if types.is_timestamp(t):
        return TIMESTAMP if t.tz is None else TIMESTAMPTZ
    return None
