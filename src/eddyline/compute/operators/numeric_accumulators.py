"""Accumulators of numerics whose scale differs from value to value, and exact variances of integers and numerics."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.accumulators import (
    Accumulator,
    Failure,
    Shown,
    chain_words,
    present_weights,
    show_numeric,
)
from eddyline.compute.operators.values import from_words, words_of
from eddyline.kernels.numeric import MAX_DIGITS, fitted
from eddyline.kernels.reduce import add_integers, add_weights, digits_unscaled, digits_value
from eddyline.repr.batch import Int64s
from eddyline.repr.types import SqlType

__all__ = ["DeviationAccumulator", "ScaledSum", "division_scale", "numeric_deviation", "round_quotient"]

#: scales that a sum of numerics can hold; values with more digits after the point make it fail
SCALES = 64
_SUM_DIGITS = 13  # 38 digits and 63 more after the point, times 2**63
_SQUARE_DIGITS = 24
_STATIC_DIGITS = 6
_STATIC_SQUARE_DIGITS = 11
_MIN_SIGNIFICANT_DIGITS = 16
_WIDE_HIGH = 10**MAX_DIGITS >> 64


def division_scale(numerator: int, numerator_scale: int, denominator: int) -> int:
    """The display scale that PostgreSQL gives ``numerator / 10**numerator_scale / denominator`` (neither negative)."""
    weight_left, first_left = _leading(numerator, numerator_scale)
    weight_right, first_right = _leading(denominator, 0)
    weight = weight_left - weight_right - (1 if first_left <= first_right else 0)
    return max(_MIN_SIGNIFICANT_DIGITS - 4 * weight, numerator_scale, 0)


def _leading(value: int, scale: int) -> tuple[int, int]:
    """(weight, first digit) in base 10,000; (0, 0) of zero."""
    if value == 0:
        return 0, 0
    digits = str(value)
    exponent = len(digits) - 1 - scale
    weight = exponent // 4
    lead = exponent - weight * 4 + 1
    return weight, int(digits[:lead].ljust(lead, "0"))


def round_quotient(numerator: int, denominator: int) -> int:
    """The quotient rounded half away from zero; the denominator is positive."""
    size, rest = divmod(abs(numerator), denominator)
    if 2 * rest >= denominator:
        size += 1
    return -size if numerator < 0 else size


def numeric_deviation(count: int, total: int, squares: int, scale: int, sample: bool, root: bool) -> tuple[int, int]:
    """(coefficient, scale) of the variance, or of its root, of values whose sums are in units of ``10**-scale``.

    PostgreSQL's result to the last digit: the variance is rounded to its display scale before the root is taken.
    """
    numerator = count * squares - total * total
    if numerator <= 0:
        return 0, 0
    denominator = count * (count - 1) if sample else count * count
    shown = division_scale(numerator, 2 * scale, denominator)
    variance = round_quotient(numerator * 10 ** max(shown - 2 * scale, 0), denominator)
    if not root:
        return variance, shown
    square = variance * 10**shown
    result = math.isqrt(square)
    return result + (square - result * result > result), shown


class _ScaledAccumulator(Accumulator):
    """State: count, too-long values, count per scale (one column if the scale is fixed), sum, sum of squares."""

    def __init__(self, result: SqlType, argument: SqlType, *, squares: bool) -> None:
        self._argument = argument
        self._fixed = argument.scale if argument.scale is not None else (None if _is_numeric(argument) else 0)
        self._scales = SCALES if self._fixed is None else 0
        self._sum_digits = _SUM_DIGITS if self._fixed is None else _STATIC_DIGITS
        self._square_digits = 0
        if squares:
            self._square_digits = _SQUARE_DIGITS if self._fixed is None else _STATIC_SQUARE_DIGITS
        chains = (self._sum_digits, self._square_digits) if squares else (self._sum_digits,)
        super().__init__(result, plain=2 + self._scales, chains=chains)

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        out = np.zeros((count, self._width), np.int64)
        used = present_weights(args[0], weights)
        low, high, scales = words_of(args[0], self._argument)
        powers = np.zeros(len(low), np.int64)
        add_weights(used, segments, 0, out)
        if self._scales:
            long = (scales >= self._scales) | (scales < 0)
            add_weights(np.where(long, used, 0), segments, 1, out)
            used = np.where(long, 0, used)
            np.add.at(out, (segments, 2 + np.where(long, 0, scales)), used)
            powers = np.where(long, 0, self._scales - 1 - scales)
        first = 2 + self._scales
        add_integers(low, high, used, powers, 0, segments, first, self._sum_digits, out)
        if self._square_digits:
            column = first + self._sum_digits
            add_integers(low, high, used, powers, 1, segments, column, self._square_digits, out)
        return out

    def unit(self) -> int:
        """The sums are in units of 10**-unit."""
        return self._scales - 1 if self._fixed is None else self._fixed

    def display_scales(self, states: Int64s) -> Int64s:
        """int64[n]: the largest scale among a state's values."""
        if self._fixed is not None:
            return np.full(len(states), self._fixed, np.int64)
        held = states[:, 2 : 2 + self._scales] != 0
        return np.where(held.any(axis=1), self._scales - 1 - np.argmax(held[:, ::-1], axis=1), 0)

    def sums(self, states: Int64s, row: int) -> int:
        first = 2 + self._scales
        return digits_value(states[row, first : first + self._sum_digits])

    def squares(self, states: Int64s, row: int) -> int:
        first = 2 + self._scales + self._sum_digits
        return digits_value(states[row, first : first + self._square_digits])


class ScaledSum(_ScaledAccumulator):
    """sum and avg of numerics of any scales; the sum shows the largest scale among its values, as PostgreSQL's."""

    def __init__(self, result: SqlType, argument: SqlType, func: str) -> None:
        super().__init__(result, argument, squares=False)
        self._average = func == "avg"

    def sharing(self) -> Hashable:
        return ScaledSum

    def show(self, states: Int64s) -> Shown:
        scales = self.display_scales(states)
        counts = states[:, 0]
        first = 2 + self._scales
        digits = np.zeros((len(states), self._sum_digits), np.int64)
        digits_unscaled(np.ascontiguousarray(states), first, self._sum_digits, self.unit() - scales, digits)
        words, fits = chain_words(digits, 0, self._sum_digits)
        scales = self._shorten(states, words, fits, scales)
        values, failures = show_numeric(words, fits > 0, scales, counts, self._average, self.result)
        long = Failure((counts > 0) & (states[:, 1] != 0), "22003", "value overflows numeric format")
        return Shown(values, (long, *failures))

    def _shorten(self, states: Int64s, words: Int64s, fits: npt.NDArray[np.uint8], scales: Int64s) -> Int64s:
        """Sums that 38 digits do not hold are rounded to fewer digits after the point, in place; their scales.
        A Python step per such sum."""
        # 10**38 is 5421010862427522170 * 2**64 and a bit: whatever may reach it is looked at
        high = words[:, 1]
        wide = (fits == 0) | (high >= _WIDE_HIGH) | (high < -_WIDE_HIGH)
        if not wide.any():
            return scales
        scales = scales.copy()
        for row in np.flatnonzero(wide).tolist():
            scale = int(scales[row])
            total = self.sums(states, row)
            unit = 10 ** (self.unit() - scale)
            short = fitted(-(-total // unit) if total < 0 else total // unit, scale)
            if short is not None:
                words[row] = np.frombuffer(short[0].to_bytes(16, "little", signed=True), np.int64)
                fits[row], scales[row] = 1, short[1]
        return scales


class DeviationAccumulator(_ScaledAccumulator):
    """stddev_pop, stddev_samp, var_pop, var_samp of integers and numerics: exact sums, PostgreSQL's rounding."""

    def __init__(self, result: SqlType, argument: SqlType, func: str) -> None:
        super().__init__(result, argument, squares=True)
        self._sample = func.endswith("_samp")
        self._root = func.startswith("stddev")

    def show(self, states: Int64s) -> Shown:
        scales = self.display_scales(states)
        valid = states[:, 0] > (1 if self._sample else 0)
        values: list[tuple[int, int]] = []
        unit = self.unit()
        for row in range(len(states)):
            if not valid[row]:
                values.append((0, 0))
                continue
            scale = int(scales[row])
            total = self.sums(states, row) // 10 ** (unit - scale)
            squares = self.squares(states, row) // 10 ** (2 * (unit - scale))
            values.append(numeric_deviation(int(states[row, 0]), total, squares, scale, self._sample, self._root))
        return show_decimals(values, valid, states[:, 1] != 0, self.result)


def show_decimals(
    values: Sequence[tuple[int, int]], valid: npt.NDArray[np.bool_], refused: npt.NDArray[np.bool_], result: SqlType
) -> Shown:
    """(coefficient, scale) pairs as a column of ``result``, a numeric with a scale per value or a fixed one."""
    limit = 10**MAX_DIGITS
    words = np.zeros((len(values), 3), np.int64)
    wide = refused.copy()
    for row, (coefficient, scale) in enumerate(values):
        if result.scale is not None and scale != result.scale:
            shift = result.scale - scale
            coefficient = coefficient * 10**shift if shift > 0 else round_quotient(coefficient, 10**-shift)
        if abs(coefficient) >= limit and result.scale is None:
            coefficient, scale = fitted(coefficient, scale) or (coefficient, scale)
        if abs(coefficient) >= limit:
            wide[row] = True
            continue
        image = coefficient.to_bytes(16, "little", signed=True)
        words[row, :2] = np.frombuffer(image, np.int64)
        words[row, 2] = scale
    image_words = words if result.scale is None else words[:, :2]
    failure = Failure(valid & wide, "22003", "value overflows numeric format")
    return Shown(from_words(image_words, valid, result), (failure,))


def _is_numeric(sql_type: SqlType) -> bool:
    return sql_type.kind.value == "numeric"
