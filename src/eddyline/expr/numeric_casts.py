"""Numeric from and to the other numbers, and between its layouts and scales."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.layout import EXACT, Bools, Int64s, Words, numeric_array, numeric_words, pack_numeric, validity
from eddyline.expr.literals import decimal_parts
from eddyline.expr.registry import Evaluated, RowErrors, failures, merge_errors
from eddyline.expr.rowwise import map_rows
from eddyline.kernels.numeric import (
    HALF_AWAY,
    MAX_DIGITS,
    PER_VALUE,
    numeric_rescale,
    numeric_to_float,
)
from eddyline.repr.types import NUMERIC, Kind, SqlType, arrow_type

__all__ = [
    "NUMERIC_OVERFLOW",
    "floats_to_numeric",
    "integers_to_numeric",
    "numeric_to_floats",
    "numeric_to_integers",
    "numeric_to_numeric",
    "rescaled",
    "words_to_numeric",
]

NUMERIC_OVERFLOW: Final = ("22003", "numeric field overflow")


def rescaled(
    words: Words, target: Int64s, width: int, *, mode: int = HALF_AWAY, digits: int = MAX_DIGITS
) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """(words int64[n, width], status) of the values rounded to ``target`` (int64[n] or [1]) digits after the point."""
    rows = len(words.words)
    out = np.empty((rows, width), np.int64)
    status = np.empty(rows, np.uint8)
    numeric_rescale(words.words, words.scale, target, mode, digits, out, status)
    return out, status


def words_to_numeric(words: Words, target: SqlType, valid: Bools | None) -> Evaluated:
    """A numeric column of type ``target``, rounded half away from zero; 22003 past its precision or 38 digits."""
    if target.scale is None:
        return Evaluated(numeric_array(_with_scales(words), target, valid))
    digits = MAX_DIGITS if target.precision is None else min(target.precision, MAX_DIGITS)
    out, status = rescaled(words, np.array([target.scale], np.int64), 2, digits=digits)
    return Evaluated(numeric_array(out, target, valid), _overflows(status, valid))


def _overflows(status: npt.NDArray[np.uint8], valid: Bools | None) -> RowErrors | None:
    bad = status != 0
    return failures(bad if valid is None else bad & valid, *NUMERIC_OVERFLOW)


def _with_scales(words: Words) -> Int64s:
    if words.scale == PER_VALUE:
        return words.words
    out = np.empty((len(words.words), 3), np.int64)
    out[:, :2] = words.words
    out[:, 2] = words.scale
    return out


def numeric_to_numeric(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    if source.scale == target.scale and (
        target.precision is None or (source.precision is not None and source.precision <= target.precision)
    ):
        return Evaluated(array)
    return words_to_numeric(numeric_words(array, source), target, validity(array))


def integers_to_numeric(values: npt.NDArray[Any], target: SqlType, valid: Bools | None) -> Evaluated:
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = words[:, 0] >> 63
    if target.scale == 0 and target.precision is None:
        return Evaluated(numeric_array(words, target, valid))
    return words_to_numeric(Words(words, 0), target, valid)


def floats_to_numeric(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    """By way of 15 significant digits (real: 6), as PostgreSQL does it."""
    digits = 6 if source.kind is Kind.REAL else 15
    too_wide = NUMERIC_OVERFLOW if target.precision is not None else ("22003", "value overflows numeric format")

    def packed(value: float) -> bytes:
        if not math.isfinite(value):
            raise make_error("0A000", "numeric NaN and Infinity are not supported")
        coefficient, scale = decimal_parts(EXACT.create_decimal(f"{value:.{digits}g}"))
        if abs(coefficient) >= 10**MAX_DIGITS:
            raise make_error(*too_wide)
        return pack_numeric(coefficient, scale)

    made = map_rows([array], packed, arrow_type(NUMERIC))
    if target.scale is None:
        return made
    rounded = words_to_numeric(numeric_words(made.array, NUMERIC), target, validity(made.array))
    return Evaluated(rounded.array, merge_errors(made.errors, rounded.errors))


def numeric_to_integers(words: Words) -> tuple[Int64s, Bools]:
    """(values rounded half away from zero, whether they fit 64 bits)."""
    out, status = rescaled(words, np.zeros(1, np.int64), 2)
    return out[:, 0].copy(), (status == 0) & (out[:, 1] == out[:, 0] >> 63)


def numeric_to_floats(words: Words) -> npt.NDArray[np.float64]:
    """The nearest doubles."""
    rows = len(words.words)
    out = np.empty(rows, np.float64)
    exact = np.empty(rows, np.bool_)
    numeric_to_float(words.words, words.scale, out, exact)
    rest = np.flatnonzero(~exact)
    if len(rest):
        scales = words.words[rest, 2] if words.scale == PER_VALUE else np.full(len(rest), words.scale)
        lows, highs = words.words[rest, 0].tolist(), words.words[rest, 1].tolist()
        # int / int is correctly rounded in Python.
        out[rest] = [
            ((high << 64) | (low & 0xFFFFFFFFFFFFFFFF)) / 10**scale
            for low, high, scale in zip(lows, highs, scales.tolist(), strict=True)
        ]
    return out
