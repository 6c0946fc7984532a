"""numeric arithmetic over both layouts, on 128-bit kernels.

A result of more than 38 digits is rounded to fewer digits after the point, where its scale is its own, and otherwise
22003 (PostgreSQL goes further: a documented limit).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expr.arithmetic import ZERO_DIVISION, int_column
from eddyline.expr.layout import Bools, Int64s, Words, numeric_array, numeric_words, validity
from eddyline.expr.numeric_casts import NUMERIC_OVERFLOW, rescaled
from eddyline.expr.registry import Arguments, Evaluated, Function, RowErrors, failures, implements, merge_errors
from eddyline.kernels.numeric import (
    CEIL,
    FLOOR,
    HALF_AWAY,
    OVERFLOW,
    PER_VALUE,
    TRUNCATE,
    ZERO_DIVISOR,
    numeric_add,
    numeric_divide,
    numeric_multiply,
    numeric_remainder,
)
from eddyline.repr.types import Kind, SqlType

__all__ = ["divide", "status_errors"]

Status = npt.NDArray[np.uint8]
_MOST_SCALE: Final = 1000  # digits after the point that round and trunc go to


def status_errors(status: Status) -> RowErrors | None:
    """The failures that a kernel's status stands for."""
    if not status.any():
        return None
    return merge_errors(
        failures(status == ZERO_DIVISOR, *ZERO_DIVISION), failures(status == OVERFLOW, *NUMERIC_OVERFLOW)
    )


def divide(left: Words, right: Words) -> tuple[Int64s, Status]:
    """(words int64[n, 3], status) of left / right with the display scale that PostgreSQL gives a quotient, which
    is an average's as well."""
    out = np.empty((len(left.words), 3), np.int64)
    status = np.empty(len(left.words), np.uint8)
    numeric_divide(*left, *right, out, status)
    return out, status


def _width(result: SqlType) -> int:
    return 3 if result.scale is None else 2


def _operand(args: Arguments, index: int, sql_type: SqlType) -> Words:
    """The words of an argument; a constant's are one row, which stands for all."""
    scalar = args.constant(index)
    return numeric_words(args[index] if scalar is None else pa.repeat(scalar, 1), sql_type)


def _binary(kernel: Callable[..., Any], *extra: Any) -> Function:
    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        out = np.empty((rows, _width(result)), np.int64)
        status = np.empty(rows, np.uint8)
        kernel(*_operand(args, 0, types[0]), *_operand(args, 1, types[1]), *extra, out, status)
        return Evaluated(numeric_array(out, result), status_errors(status))

    return apply


implements("numeric_add", fallible=True)(_binary(numeric_add, False))
implements("numeric_sub", fallible=True)(_binary(numeric_add, True))
implements("numeric_mul", fallible=True)(_binary(numeric_multiply))
implements("numeric_div", fallible=True)(_binary(numeric_divide))
implements("numeric_mod", fallible=True)(_binary(numeric_remainder))


def _negated(words: Int64s, where: Bools | None = None) -> Int64s:
    """Coefficients with the other sign (where the mask says so)."""
    out = words.copy()
    low = ~words[:, 0] + 1
    high = ~words[:, 1] + (low == 0)
    out[:, 0] = low if where is None else np.where(where, low, words[:, 0])
    out[:, 1] = high if where is None else np.where(where, high, words[:, 1])
    return out


@implements("numeric_neg")
def numeric_neg(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return numeric_array(_negated(numeric_words(args[0], types[0]).words), result)


@implements("numeric_abs")
def numeric_abs(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    words = numeric_words(args[0], types[0]).words
    return numeric_array(_negated(words, words[:, 1] < 0), result)


@implements("numeric_sign")
def numeric_sign(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    words = numeric_words(args[0], types[0]).words
    out = np.zeros((rows, 2), np.int64)
    negative = words[:, 1] < 0
    out[:, 0] = np.where(negative, -1, ((words[:, 0] | words[:, 1]) != 0).astype(np.int64))
    out[:, 1] = np.where(negative, -1, 0)
    return numeric_array(out, result)


def _to_whole(mode: int) -> Function:
    """Dropping digits after the point never makes a number longer than 38 digits, so this cannot fail."""

    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        out, _ = rescaled(numeric_words(args[0], types[0]), np.zeros(1, np.int64), 2, mode=mode)
        return numeric_array(out, result)

    return apply


implements("numeric_round")(_to_whole(HALF_AWAY))
implements("numeric_trunc")(_to_whole(TRUNCATE))
implements("numeric_floor")(_to_whole(FLOOR))
implements("numeric_ceil")(_to_whole(CEIL))


def _to_digits(mode: int) -> Function:
    """round(x, n), trunc(x, n): n digits after the point, before it if n < 0."""

    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        digits = np.clip(int_column(args[1], Kind.INTEGER).astype(np.int64), -_MOST_SCALE, _MOST_SCALE)
        valid = validity(args[1])
        target = digits if valid is None else np.where(valid, digits, 0)
        out, status = rescaled(numeric_words(args[0], types[0]), target, _width(result), mode=mode)
        return Evaluated(numeric_array(out, result), status_errors(status))

    return apply


implements("numeric_round_to", fallible=True)(_to_digits(HALF_AWAY))
implements("numeric_trunc_to", fallible=True)(_to_digits(TRUNCATE))


@implements("numeric_quotient", fallible=True)
def numeric_quotient(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """div(a, b): the quotient's whole part, (a - a % b) / b."""
    left, right = numeric_words(args[0], types[0]), numeric_words(args[1], types[1])
    rest, status = np.empty((rows, 3), np.int64), np.empty(rows, np.uint8)
    numeric_remainder(*left, *right, rest, status)
    whole, whole_status = np.empty((rows, 3), np.int64), np.empty(rows, np.uint8)
    numeric_add(*left, rest, PER_VALUE, True, whole, whole_status)
    quotient, quotient_status = divide(Words(whole, PER_VALUE), right)
    out, out_status = rescaled(Words(quotient, PER_VALUE), np.zeros(1, np.int64), 2)
    for later in (whole_status, quotient_status, out_status):
        status = np.where(status == 0, later, status).astype(np.uint8)
    return Evaluated(numeric_array(out, result), status_errors(status))
