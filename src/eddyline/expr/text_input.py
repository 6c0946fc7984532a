"""Columns from PostgreSQL's input text.

Malformed text is 22P02 (dates, times and intervals: 22007), a value that does not fit 22003 (22008).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.arithmetic import INTEGER_LIMITS
from eddyline.expr.datetime_text import (
    dates_from_text,
    intervals_from_text,
    times_from_text,
    timestamps_from_text,
    timestamptzs_from_text,
)
from eddyline.expr.layout import Words, fixed_array, validity, values_of
from eddyline.expr.registry import Evaluated, RowErrors, failures, merge_errors
from eddyline.expr.rowwise import map_rows
from eddyline.expr.text_slices import bytes_of, offsets_of
from eddyline.expr.timezone import UTC, Zone
from eddyline.kernels.numeric import INVALID, OVERFLOW, PER_VALUE, numeric_parse
from eddyline.kernels.plain_numbers import parse_doubles, parse_integers
from eddyline.repr.types import Kind, SqlType, arrow_type

__all__ = ["Slots", "bad_syntax", "numeric_words_from_text", "plain_numbers", "values_from_text"]

Int64s = npt.NDArray[np.int64]

_BLANKS: Final = " \t\n\r\f\v"
_WIDE: Final = pa.int64()
_INTEGER_DTYPES: Final = {Kind.SMALLINT: np.int16, Kind.INTEGER: np.int32, Kind.BIGINT: np.int64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEX_FLOAT: Final = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?")
_FLOAT_WORD: Final = re.compile(r"[+-]?(inf|infinity)|[+-]?nan(\([0-9a-z_]*\))?")
_UUID: Final = re.compile(r"([0-9a-fA-F]{4}-?){8}")
_SPECIAL_NUMERICS: Final = frozenset({"nan", "inf", "infinity", "+inf", "+infinity", "-inf", "-infinity"})
_BOOLEANS: Final = {
    **{"true"[:i]: True for i in range(1, 5)},
    **{"false"[:i]: False for i in range(1, 6)},
    **{"yes"[:i]: True for i in range(1, 4)},
    **{"no"[:i]: False for i in range(1, 3)},
    "on": True,
    "off": False,
    "of": False,
    "1": True,
    "0": False,
}


def bad_syntax(type_name: str, text: str) -> DatabaseError:
    return make_error("22P02", f'invalid input syntax for type {type_name}: "{text}"')


def values_from_text(array: pa.Array, sql_type: SqlType, zone: Zone = UTC) -> Evaluated:
    """Each text read as a value of ``sql_type``'s kind, which is neither numeric nor a text type; no typmod.

    ``zone``: that of a timestamptz whose text names none.
    """
    kind = sql_type.kind
    if kind in INTEGER_LIMITS:
        return _integers(array, kind)
    if kind is Kind.TIMESTAMPTZ:
        return timestamptzs_from_text(array, zone)
    if kind in _COLUMNS:
        return _COLUMNS[kind](array)
    if kind is Kind.DOUBLE:
        return _doubles(array)
    return map_rows([array], _VALUES[kind], arrow_type(sql_type))


class Slots(NamedTuple):
    """Texts wherever they lie: row *i* is ``data[starts[i]:stops[i]]``.  ``valid``: bool[n]; None if no row is NULL."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    stops: Int64s
    valid: npt.NDArray[np.bool_] | None

    @staticmethod
    def of(array: pa.Array) -> Slots:
        """Those of a large_string column."""
        offsets = offsets_of(array)
        return Slots(bytes_of(array), offsets[:-1], offsets[1:], validity(array))

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """``valid`` as kernels have it."""
        return np.empty(0, np.uint8) if self.valid is None else self.valid.view(np.uint8)


def plain_numbers(slots: Slots, sql_type: SqlType) -> pa.Array | None:
    """What ``values_from_text`` gives, if each is a number as nearly everybody writes it; else None.

    None for types other than integers and double precision.
    """
    if sql_type.kind in INTEGER_LIMITS:
        integers, hard = _plain_integers(slots, sql_type.kind)
        return None if hard.any() else _integer_column(integers, slots, sql_type.kind)
    if sql_type.kind is Kind.DOUBLE:
        doubles, hard = _plain_doubles(slots)
        return None if hard.any() else fixed_array(doubles, SqlType(Kind.DOUBLE), slots.valid)
    return None


def _plain_integers(slots: Slots, kind: Kind) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """The values, and which are still to be read."""
    rows = len(slots.starts)
    values, hard = np.empty(rows, np.int64), np.empty(rows, np.uint8)
    parse_integers(*slots[:3], slots.flags, np.uint64(INTEGER_LIMITS[kind][1]), values, hard)
    return values, hard.view(np.bool_)


def _plain_doubles(slots: Slots) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """As ``_plain_integers``."""
    rows = len(slots.starts)
    values, hard = np.empty(rows, np.float64), np.empty(rows, np.uint8)
    parse_doubles(*slots[:3], slots.flags, values, hard)
    return values, hard.view(np.bool_)


def _integer_column(values: Int64s, slots: Slots, kind: Kind) -> pa.Array:
    return fixed_array(values.astype(_INTEGER_DTYPES[kind], copy=False), SqlType(kind), slots.valid)


def _integers(array: pa.Array, kind: Kind) -> Evaluated:
    """By a kernel; the few texts that are no plain numbers one by one."""
    slots = Slots.of(array)
    values, hard = _plain_integers(slots, kind)
    errors = None
    if hard.any():
        again, errors = _again(array, hard, lambda texts: map_rows([texts], lambda text: _integer(text, kind), _WIDE))
        values[hard] = values_of(again, np.int64)
    return Evaluated(_integer_column(values, slots, kind), errors)


def _again(
    array: pa.Array, chosen: npt.NDArray[np.bool_], read: Callable[[pa.Array], Evaluated]
) -> tuple[pa.Array, RowErrors | None]:
    """What ``read`` makes of the chosen rows alone, and its errors by the rows of ``array``."""
    rows = np.flatnonzero(chosen)
    made = read(array.take(pa.array(rows)))
    return made.array, None if made.errors is None else made.errors._replace(rows=rows[made.errors.rows])


def _integer(text: str, kind: Kind) -> int:
    trimmed = text.strip(_BLANKS)
    if not _INTEGER.fullmatch(trimmed):
        raise bad_syntax(kind.value, text)
    low, high = INTEGER_LIMITS[kind]
    # More digits than any integer type has: do not convert megabytes of them.
    value = int(trimmed) if len(trimmed.lstrip("+-0")) <= 20 else high + 1
    if not low <= value <= high:
        raise make_error("22003", f'value "{text}" is out of range for type {kind.value}')
    return value


def _float(text: str, type_name: str) -> float:
    trimmed = text.strip(_BLANKS)
    word = trimmed.lower()
    if _FLOAT_WORD.fullmatch(word):
        return float(word.partition("(")[0])
    if _FLOAT.fullmatch(trimmed):
        value = float(trimmed)
        nonzero = any(digit in trimmed.lower().partition("e")[0] for digit in "123456789")
    elif _HEX_FLOAT.fullmatch(trimmed):
        value, nonzero = float.fromhex(trimmed), False
    else:
        raise bad_syntax(type_name, text)
    if type_name == "real":
        with np.errstate(over="ignore", under="ignore"):
            value = float(np.float32(value))
    if value in (float("inf"), float("-inf")) or (value == 0 and nonzero):
        raise make_error("22003", f'"{trimmed}" is out of range for type {type_name}')
    return value


def _doubles(array: pa.Array) -> Evaluated:
    """By a kernel; what is no plain number, or has more digits than are exact, once more."""
    slots = Slots.of(array)
    values, hard = _plain_doubles(slots)
    errors = None
    if hard.any():
        again, errors = _again(array, hard, _hard_doubles)
        values[hard] = values_of(again, np.float64)
    return Evaluated(fixed_array(values, SqlType(Kind.DOUBLE), slots.valid), errors)


def _hard_doubles(array: pa.Array) -> Evaluated:
    """Texts without NULLs: through Arrow, which reads a part of what PostgreSQL reads; zeros and what is not finite
    are looked at again."""
    try:
        parsed = array.cast(pa.float64())
    except pa.ArrowInvalid:
        return map_rows([array], lambda text: _float(text, "double precision"), pa.float64())
    values = values_of(parsed, np.float64)
    doubtful = (values == 0) | ~np.isfinite(values)
    if not doubtful.any():
        return Evaluated(parsed)
    again, errors = _again(
        array,
        doubtful,
        lambda texts: map_rows([texts], lambda text: _float(text, "double precision"), pa.float64()),
    )
    made = values.astype(np.float64)
    made[doubtful] = values_of(again, np.float64)
    return Evaluated(fixed_array(made, SqlType(Kind.DOUBLE)), errors)


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip(_BLANKS).lower())
    if value is None:
        raise bad_syntax("boolean", text)
    return value


def _uuid(text: str) -> bytes:
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not _UUID.fullmatch(inner) or inner.endswith("-"):
        raise bad_syntax("uuid", text)
    return bytes.fromhex(inner.replace("-", ""))


def _bytea(text: str) -> bytes:
    if not text.startswith("\\x"):
        return _escaped(text)
    digits = "".join(c for c in text[2:] if c not in " \n\t\r")
    for digit in digits:
        if digit not in "0123456789abcdefABCDEF":
            raise make_error("22023", f'invalid hexadecimal digit: "{digit}"')
    if len(digits) % 2:
        raise make_error("22023", "invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(digits)


_ESCAPE: Final = re.compile(rb"\\(\\|[0-3][0-7]{2})?")


def _escaped(text: str) -> bytes:
    def replace(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        if code is None:
            raise make_error("22P02", "invalid input syntax for type bytea")
        return b"\\" if code == b"\\" else bytes([int(code, 8)])

    return _ESCAPE.sub(replace, text.encode())


_COLUMNS: Final[dict[Kind, Callable[[pa.Array], Evaluated]]] = {
    Kind.DATE: dates_from_text,
    Kind.TIME: times_from_text,
    Kind.TIMESTAMP: timestamps_from_text,
    Kind.INTERVAL: intervals_from_text,
}
_VALUES: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.REAL: lambda text: _float(text, "real"),
    Kind.UUID: _uuid,
    Kind.BYTEA: _bytea,
}


def numeric_words_from_text(array: pa.Array) -> tuple[Words, RowErrors | None]:
    """Each text read as a numeric with its own scale."""
    rows = len(array)
    out = np.zeros((rows, 3), np.int64)
    status = np.zeros(rows, np.uint8)
    if rows:
        offsets = np.frombuffer(array.buffers()[1], np.int64, rows + 1, array.offset * 8)
        buffer = array.buffers()[2]
        data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
        numeric_parse(data, offsets, out, status)
    valid = validity(array)
    if valid is not None:
        status = np.where(valid, status, 0).astype(np.uint8)
    words = Words(out, PER_VALUE)
    if not status.any():
        return words, None
    invalid = np.flatnonzero(status == INVALID)
    texts = array.take(pa.array(invalid)).to_pylist()
    special = np.array([text.strip(_BLANKS).lower() in _SPECIAL_NUMERICS for text in texts], np.bool_)
    messages = [bad_syntax("numeric", text).message for text, s in zip(texts, special.tolist(), strict=True) if not s]
    return words, merge_errors(
        failures(status == OVERFLOW, "22003", "value overflows numeric format"),
        failures(invalid[~special], "22P02", messages),
        failures(invalid[special], "0A000", "numeric NaN and Infinity are not supported"),
    )
