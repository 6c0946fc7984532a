"""Single values and whole columns as text and as Python values: the engine's edge towards people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.casts import cast_array
from eddyline.expr.ir import LiteralValue
from eddyline.expr.literals import (
    PythonValue,
    literal_from_python,
    literal_scalar,
    literal_to_python,
    scalar_literal,
)
from eddyline.expr.rowwise import SLICE_ROWS
from eddyline.expr.text_output import text_of
from eddyline.expr.timezone import UTC, Zone
from eddyline.repr.types import TEXT, Kind, SqlType, arrow_type

__all__ = [
    "PythonValue",
    "format_column",
    "format_value",
    "from_python",
    "literal_array",
    "literal_from_python",
    "literal_scalar",
    "literal_to_python",
    "parse_literal",
    "sample_rows",
    "scalar_literal",
    "to_python",
]

_SAMPLE_CHARS = 200
_BARE = (Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)


def parse_literal(text: str, sql_type: SqlType, zone: Zone = UTC) -> LiteralValue:
    """``text`` read with the type's input syntax, modifiers applied as a cast of an untyped literal applies them.

    ``zone`` is the session's, here and below.

    Raises the type's input error (22P02, 22003, 22007, 22008 …).
    """
    array, errors = cast_array(pa.array([text], pa.large_string()), TEXT, sql_type, zone=zone)
    if errors is not None:
        raise make_error(errors.sqlstates[0], errors.messages[0])
    return scalar_literal(array[0], sql_type)


def format_value(value: LiteralValue, sql_type: SqlType, zone: Zone = UTC) -> str | None:
    """A literal as PostgreSQL prints it; None for NULL."""
    text: str | None = format_column(literal_array(value, sql_type, 1), sql_type, zone)[0].as_py()
    return text


def format_column(array: pa.Array, sql_type: SqlType, zone: Zone = UTC) -> pa.Array:
    """large_string: the output text of each value, char(n) padded to its length; NULL stays NULL."""
    text = text_of(array, sql_type, zone)
    if sql_type.kind is Kind.BPCHAR and sql_type.length is not None:
        padded = [None if v is None else v.ljust(sql_type.length) for v in text.to_pylist()]
        return pa.array(padded, pa.large_string())
    return text


def literal_array(value: LiteralValue, sql_type: SqlType, rows: int) -> pa.Array:
    """A column of ``rows`` times the literal."""
    if rows == 1 and value is not None and sql_type.kind in _AS_THEY_ARE:
        return pa.array((value,), arrow_type(sql_type))  # seldom twice the same: its scalar is not worth remembering
    return pa.repeat(literal_scalar(value, sql_type), rows)


def to_python(array: pa.Array, sql_type: SqlType) -> list[PythonValue]:
    """The column's values as Python objects, converted in slices of 2,000 rows.

    Cost: Python objects for every row; for display and for row-wise clients.
    """
    values: list[PythonValue] = []
    convert = None if sql_type.kind in _NATIVE else sql_type
    if sql_type.kind is Kind.NUMERIC and sql_type.scale is not None:
        convert = None
    for start in range(0, len(array), SLICE_ROWS):
        part = array if len(array) <= SLICE_ROWS else array.slice(start, SLICE_ROWS)
        values.extend(part.to_pylist() if convert is None else _converted(part, convert))
    return values


#: kinds whose literals are the values of their Arrow arrays
_AS_THEY_ARE = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE, Kind.TEXT, Kind.VARCHAR}
)
#: kinds whose arrays' values are the Python values
_NATIVE = frozenset(
    {
        Kind.BOOLEAN,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.REAL,
        Kind.DOUBLE,
        Kind.TEXT,
        Kind.VARCHAR,
        Kind.BYTEA,
    }
)


def _converted(array: pa.Array, sql_type: SqlType) -> list[PythonValue]:
    """By way of the literal encoding, which every kind has."""
    if sql_type.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        stored = array.view(pa.int32() if sql_type.kind is Kind.DATE else pa.int64()).to_pylist()
        return [literal_to_python(value, sql_type) for value in stored]
    if sql_type.kind is Kind.BPCHAR:
        return [literal_to_python(value, sql_type) for value in array.to_pylist()]
    return [literal_to_python(scalar_literal(value, sql_type), sql_type) for value in array]


def from_python(values: Sequence[PythonValue], sql_type: SqlType) -> pa.Array:
    """A column of Python values (see ``literals``); a str for a type that is not text is read with its input syntax.

    No modifier is applied.  Raises 42804 for a value of another kind, else the type's input error.
    """
    length = sql_type.length if sql_type.kind is Kind.BPCHAR else None  # says how its blanks are stored
    kind_only = SqlType(sql_type.kind, scale=sql_type.scale, length=length)
    texts = sql_type.kind in (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)
    literals = [
        parse_literal(v, kind_only) if isinstance(v, str) and not texts else literal_from_python(v, kind_only)
        for v in values
    ]
    return pa.array([literal_scalar(v, kind_only) for v in literals], arrow_type(sql_type))


def sample_rows(
    columns: Sequence[pa.Array], types: Sequence[SqlType], rows: int | None = None, *, names: Sequence[str] = ()
) -> list[str]:
    """Each row as ``(1, NULL, 'x')``, or with names as ``id = 1, at = NULL, name = 'x'``, cut to 200 characters: what
    error details show.

    ``rows``: how many there are; must be given where there may be no columns.
    """
    if not columns:
        return ["()"] * (rows or 0)
    rows = len(columns[0])
    shown: list[str] = []
    for start in range(0, rows, SLICE_ROWS):
        texts: list[list[Any]] = [
            format_column(c.slice(start, SLICE_ROWS), t).to_pylist() for c, t in zip(columns, types, strict=True)
        ]
        for row in zip(*texts, strict=True):
            shown.append(_sample(row, types, names))
    return shown


def _sample(row: Sequence[str | None], types: Sequence[SqlType], names: Sequence[str]) -> str:
    parts: list[str] = []
    for text, sql_type in zip(row, types, strict=True):
        if text is None:
            parts.append("NULL")
        elif sql_type.kind in _BARE:
            parts.append(text)
        else:
            cut = text[:_SAMPLE_CHARS].replace("'", "''")
            parts.append(f"'{cut}'")
    if names:
        joined = ", ".join(f"{name} = {part}" for name, part in zip(names, parts, strict=True))
    else:
        joined = f"({', '.join(parts)})"
    return joined if len(joined) <= _SAMPLE_CHARS else joined[: _SAMPLE_CHARS - 1] + "…"
