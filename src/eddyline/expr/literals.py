"""Literals: their physical scalars as Arrow scalars and as Python values, and back.

Python values: bool, int, float, ``Decimal`` (with its display scale), str, bytes, ``date``, ``time``, ``datetime``
(naive, or aware for timestamptz), ``Interval``, ``UUID``, lists of such for arrays.
Dates and timestamps outside Python's range, infinities
included, stay text as PostgreSQL prints it.
"""

from __future__ import annotations

import datetime
import functools
import uuid
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.array_layout import literal_from_nested, nested_of
from eddyline.expr.datetime_text import (
    format_date,
    format_timestamp,
    format_timestamptz,
    parse_date,
    parse_time,
    parse_timestamp,
    parse_timestamptz,
)
from eddyline.expr.interval import INTERVAL_DTYPE
from eddyline.expr.interval_text import parse_interval
from eddyline.expr.ir import LiteralValue
from eddyline.expr.layout import EXACT, pack_numeric, unpack_numeric
from eddyline.repr.interval import Interval
from eddyline.repr.types import Kind, SqlType, arrow_type, element_type, is_array

__all__ = [
    "PythonValue",
    "decimal_parts",
    "literal_from_python",
    "literal_scalar",
    "literal_to_python",
    "scalar_literal",
]

PythonValue: TypeAlias = (
    bool
    | int
    | float
    | Decimal
    | str
    | bytes
    | datetime.date
    | datetime.time
    | datetime.datetime
    | Interval
    | uuid.UUID
    | list[Any]
    | None
)

_REMEMBERED_CHARS: Final = 256
_EPOCH_DAY: Final = datetime.date(1970, 1, 1)
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_DAY_MICROS: Final = 86_400_000_000
_TEMPORAL: Final[dict[Kind, pa.DataType]] = {
    Kind.DATE: pa.int32(),
    Kind.TIME: pa.int64(),
    Kind.TIMESTAMP: pa.int64(),
    Kind.TIMESTAMPTZ: pa.int64(),
}


def decimal_parts(value: Decimal) -> tuple[int, int]:
    """(coefficient, display scale) of a finite Decimal."""
    sign, digits, exponent = value.as_tuple()
    coefficient = int("".join(map(str, digits)) or "0")
    if not isinstance(exponent, int):
        raise make_error("0A000", f"numeric {value} is not supported")
    if exponent > 0:
        coefficient, exponent = coefficient * 10**exponent, 0
    return (-coefficient if sign else coefficient), -exponent


def literal_scalar(value: LiteralValue, sql_type: SqlType) -> pa.Scalar:
    """The Arrow scalar of a literal, in the layout of ``sql_type``.

    The scalars of short literals are remembered: a plan asks for the same ones for every batch.
    """
    # 0.0 and -0.0 are one key, so floats are made anew.
    if isinstance(value, float) or (isinstance(value, str) and len(value) > _REMEMBERED_CHARS):
        return _made_scalar(value, sql_type)
    return _remembered_scalar(value, sql_type)


@functools.lru_cache(maxsize=4096)
def _remembered_scalar(value: LiteralValue, sql_type: SqlType) -> pa.Scalar:
    return _made_scalar(value, sql_type)


def _made_scalar(value: LiteralValue, sql_type: SqlType) -> pa.Scalar:
    layout = arrow_type(sql_type)
    if value is None:
        return pa.scalar(None, layout)
    kind = sql_type.kind
    if kind is Kind.NUMERIC:
        return _numeric_scalar(str(value), sql_type)
    if kind in _TEMPORAL:
        return pa.array([value], _TEMPORAL[kind]).view(layout)[0]
    if kind is Kind.INTERVAL:
        parts = tuple(int(part) for part in str(value).split())
        return pa.scalar(np.array([parts], INTERVAL_DTYPE).tobytes(), layout)
    if kind in (Kind.BYTEA, Kind.UUID) or is_array(sql_type):
        return pa.scalar(bytes.fromhex(str(value)), layout)
    return pa.scalar(value, layout)


def _numeric_scalar(text: str, sql_type: SqlType) -> pa.Scalar:
    coefficient, scale = decimal_parts(EXACT.create_decimal(text))
    if abs(coefficient) >= 10**38:
        raise make_error("22003", "value overflows numeric format")
    if sql_type.scale is None:
        return pa.scalar(pack_numeric(coefficient, scale), arrow_type(sql_type))
    exact = Decimal(coefficient).scaleb(-scale, EXACT)
    return pa.scalar(exact.quantize(Decimal(1).scaleb(-sql_type.scale), context=EXACT), arrow_type(sql_type))


def scalar_literal(scalar: pa.Scalar, sql_type: SqlType) -> LiteralValue:
    """The literal of an Arrow scalar: the inverse of ``literal_scalar``."""
    if not scalar.is_valid:
        return None
    kind = sql_type.kind
    if kind in _TEMPORAL:
        stored: int = pa.array([scalar], scalar.type).view(_TEMPORAL[kind])[0].as_py()
        return stored
    value: Any = scalar.as_py()
    if kind is Kind.NUMERIC:
        return format(value if sql_type.scale is not None else unpack_numeric(value), "f")
    if kind is Kind.INTERVAL:
        months, days, micros = np.frombuffer(value, INTERVAL_DTYPE)[0].tolist()
        return f"{months} {days} {micros}"
    if kind in (Kind.BYTEA, Kind.UUID) or is_array(sql_type):
        text: str = value.hex()
        return text
    result: LiteralValue = value
    return result


def literal_to_python(value: LiteralValue, sql_type: SqlType) -> PythonValue:
    """The Python value of a literal."""
    if value is None:
        return None
    if is_array(sql_type):
        return _mapped(nested_of(value, sql_type), element_type(sql_type))
    match sql_type.kind:
        case Kind.NUMERIC:
            return Decimal(str(value))
        case Kind.DATE:
            return _python_date(int(value))
        case Kind.TIME:
            return _python_time(int(value))
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _python_timestamp(int(value), sql_type.kind)
        case Kind.INTERVAL:
            months, days, micros = (int(part) for part in str(value).split())
            return Interval(months, days, micros)
        case Kind.BYTEA:
            return bytes.fromhex(str(value))
        case Kind.UUID:
            return uuid.UUID(hex=str(value))
        case Kind.BPCHAR:
            return str(value).ljust(sql_type.length or 0)
    return value


def _mapped(values: list[Any], element: SqlType) -> list[Any]:
    """Lists of literals as lists of Python values."""
    return [_mapped(v, element) if isinstance(v, list) else literal_to_python(v, element) for v in values]


def _python_date(days: int) -> PythonValue:
    try:
        return _EPOCH_DAY + datetime.timedelta(days=days)
    except OverflowError:
        return format_date(days)


def _python_time(micros: int) -> PythonValue:
    """24:00:00, which Python's ``time`` lacks, stays text."""
    if micros >= _DAY_MICROS:
        return "24:00:00"
    return (_EPOCH + datetime.timedelta(microseconds=micros)).time()


def _python_timestamp(micros: int, kind: Kind) -> PythonValue:
    aware = kind is Kind.TIMESTAMPTZ
    try:
        return (_EPOCH_UTC if aware else _EPOCH) + datetime.timedelta(microseconds=micros)
    except OverflowError:
        return format_timestamptz(micros) if aware else format_timestamp(micros)


def literal_from_python(value: PythonValue, sql_type: SqlType) -> LiteralValue:
    """The literal of a Python value for a column of ``sql_type``; no typmod is applied.

    A str is read with the type's input syntax where the type is not a text type, which ``parse_literal`` does: it
    is an error to pass one here except for temporal types.  42804 for a value of another kind.
    """
    if value is None:
        return None
    if is_array(sql_type):
        return _from_list(value, sql_type)
    kind = sql_type.kind
    converted = _CONVERSIONS[kind](value) if kind in _CONVERSIONS else _plain(value, sql_type)
    if converted is None:
        raise make_error("42804", f"a value of type {type(value).__name__} cannot be used as {sql_type}")
    return converted


def _from_list(value: PythonValue, sql_type: SqlType) -> LiteralValue:
    """Of a list, a tuple or a NumPy array, nested as deep as there are dimensions."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise make_error("42804", f"a value of type {type(value).__name__} cannot be used as {sql_type}")
    return literal_from_nested(_literals(value, element_type(sql_type)), sql_type)


def _literals(values: Any, element: SqlType) -> list[Any]:
    return [_literals(v, element) if isinstance(v, list | tuple) else literal_from_python(v, element) for v in values]


def _plain(value: PythonValue, sql_type: SqlType) -> LiteralValue:
    kind = sql_type.kind
    if kind is Kind.BOOLEAN:
        return bool(value) if isinstance(value, bool | np.bool_) else None
    if kind in (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR):
        if not isinstance(value, str):
            return None
        return value.rstrip(" ") if kind is Kind.BPCHAR and sql_type.length is not None else value
    if kind in (Kind.REAL, Kind.DOUBLE):
        return float(value) if isinstance(value, int | float | Decimal | np.floating) else None
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def _from_numeric(value: Any) -> LiteralValue:
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, int | Decimal | np.integer):
        return None
    coefficient, scale = decimal_parts(Decimal(int(value)) if not isinstance(value, Decimal) else value)
    return format(Decimal(coefficient).scaleb(-scale, EXACT), "f")


def _from_date(value: Any) -> LiteralValue:
    if isinstance(value, str):
        return parse_date(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return (value - _EPOCH_DAY).days
    return None


def _from_time(value: Any) -> LiteralValue:
    if isinstance(value, str):
        return parse_time(value)
    if not isinstance(value, datetime.time) or value.tzinfo is not None:
        return None
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _from_timestamp(value: Any) -> LiteralValue:
    if isinstance(value, str):
        return parse_timestamp(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return (value - _EPOCH) // _MICROSECOND
    if type(value) is datetime.date:
        return (value - _EPOCH_DAY).days * _DAY_MICROS
    return None


def _from_timestamptz(value: Any) -> LiteralValue:
    """A naive datetime is taken as UTC, a date as its midnight there."""
    if isinstance(value, str):
        return parse_timestamptz(value)
    if type(value) is datetime.date:
        return (value - _EPOCH_DAY).days * _DAY_MICROS
    if not isinstance(value, datetime.datetime):
        return None
    return ((value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - _EPOCH_UTC) // _MICROSECOND


def _from_interval(value: Any) -> LiteralValue:
    if isinstance(value, str):
        span = parse_interval(value)
        return f"{span.months} {span.days} {span.micros}"
    if isinstance(value, Interval):
        return f"{value.months} {value.days} {value.microseconds}"
    if isinstance(value, datetime.timedelta):
        return f"0 {value.days} {value.seconds * 1_000_000 + value.microseconds}"
    return None


def _from_bytea(value: Any) -> LiteralValue:
    return bytes(value).hex() if isinstance(value, bytes | bytearray | memoryview) else None


def _from_uuid(value: Any) -> LiteralValue:
    return value.hex if isinstance(value, uuid.UUID) else None


_CONVERSIONS: Final = {
    Kind.NUMERIC: _from_numeric,
    Kind.DATE: _from_date,
    Kind.TIME: _from_time,
    Kind.TIMESTAMP: _from_timestamp,
    Kind.TIMESTAMPTZ: _from_timestamptz,
    Kind.INTERVAL: _from_interval,
    Kind.BYTEA: _from_bytea,
    Kind.UUID: _from_uuid,
}
