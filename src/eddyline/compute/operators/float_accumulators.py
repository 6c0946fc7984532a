"""Exact sums, averages and variances of floats; NaN and infinities are counted apart, so that they can leave again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.accumulators import Accumulator, Failure, Shown, add_to_segments, light, present_weights
from eddyline.compute.operators.values import floats_of, from_numbers
from eddyline.kernels.floatsum import SQUARE_UNIT, VALUE_UNIT, add_floats, digit_range, round_digits
from eddyline.kernels.loose_sums import add_double_digits
from eddyline.kernels.reduce import add_weights, digits_value
from eddyline.repr.batch import Int64s
from eddyline.repr.types import Kind, SqlType

__all__ = ["FloatDeviation", "FloatSum"]

_PLAIN = 4  # values, NaNs, +infinities, -infinities
_HEADROOM = 2  # digits above the highest touched, for carries
_OVERFLOW = "value out of range: overflow"


class _Window:
    """The digits of one sum that are stored: ``base <= k < base + width``, the same for all groups.

    It widens when a value falls outside, which costs a pass over the groups but happens rarely: data of one kind
    keep to a few digits.
    """

    def __init__(self, *, squared: bool) -> None:
        self.squared = int(squared)
        self.base = (-(SQUARE_UNIT if squared else VALUE_UNIT)) >> 5
        self.width = _HEADROOM

    @property
    def exponent(self) -> int:
        """The lowest stored digit weighs 2**exponent."""
        return (SQUARE_UNIT if self.squared else VALUE_UNIT) + 32 * self.base

    def covering(self, low: int, high: int) -> tuple[int, int]:
        """(base, width) of the least window over this one and the digits ``low <= k < high``."""
        if high == 0:
            return self.base, self.width
        base = min(self.base, low)
        return base, max(self.base + self.width, high + _HEADROOM) - base


class _FloatAccumulator(Accumulator):
    def __init__(self, result: SqlType, argument: SqlType, *, squares: bool) -> None:
        self._argument = argument
        self._windows = [_Window(squared=squared) for squared in ((False, True) if squares else (False,))]
        super().__init__(result, _PLAIN, [w.width for w in self._windows])

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        used = present_weights(args[0], weights)
        values = floats_of(args[0], self._argument)
        bits = values.view(np.int64)
        self._cover(bits, used)
        out = np.zeros((count, self._width), np.int64)
        add_to_segments(used, segments, out)
        special = np.flatnonzero(~np.isfinite(values) & (used != 0))
        if len(special):
            odd, weight, segment = values[special], used[special], segments[special]
            for column, mask in ((1, np.isnan(odd)), (2, odd == np.inf), (3, odd == -np.inf)):
                add_weights(np.where(mask, weight, 0), segment, column, out)
        loose = light(used)
        for window, column in zip(self._windows, self._columns(), strict=True):
            if loose and not window.squared:
                add_double_digits(bits, used, segments, window.base, column, out)
            else:
                add_floats(bits, used, window.squared, segments, window.base, column, window.width, out)
        return out

    def _columns(self) -> list[int]:
        return [int(c) for c in self._chains[:-1]]

    def _cover(self, bits: Int64s, weights: Int64s) -> None:
        wanted = [w.covering(*map(int, digit_range(bits, weights, w.squared))) for w in self._windows]
        if wanted == [(w.base, w.width) for w in self._windows]:
            return
        parts = [self._state[:, :_PLAIN]]
        for window, column, (base, width) in zip(self._windows, self._columns(), wanted, strict=True):
            parts.append(_widened(self._state[:, column : column + window.width], window.base - base, width))
            window.base, window.width = base, width
        self._state = np.ascontiguousarray(np.concatenate(parts, axis=1))
        self._set_chains([w.width for w in self._windows])


def _widened(digits: Int64s, below: int, width: int) -> Int64s:
    """The same numbers with ``below`` more digits at the low end, ``width`` digits in all."""
    out = np.zeros((len(digits), width), np.int64)
    last = below + digits.shape[1] - 1
    out[:, below : last + 1] = digits
    for k in range(last, width - 1):
        out[:, k + 1] = out[:, k] >> 32
        out[:, k] &= 0xFFFFFFFF
    return out


class FloatSum(_FloatAccumulator):
    """sum and avg of real and double precision; the sum is rounded once."""

    def __init__(self, result: SqlType, argument: SqlType, func: str) -> None:
        super().__init__(result, argument, squares=False)
        self._average = func == "avg"

    def show(self, states: Int64s) -> Shown:
        window = self._windows[0]
        sums = np.zeros(len(states), np.float64)
        single = self.result.kind is Kind.REAL
        precision, least = (24, -149) if single else (53, VALUE_UNIT)
        round_digits(states, _PLAIN, window.width, window.exponent, precision, least, sums)
        count, nan, positive, negative = (states[:, k] for k in range(_PLAIN))
        undefined = (nan > 0) | ((positive > 0) & (negative > 0))
        infinite = (positive > 0) | (negative > 0)
        valid = count > 0
        overflow = np.isinf(sums) & valid & ~undefined & ~infinite
        sums[infinite] = np.where(positive[infinite] > 0, np.inf, -np.inf)
        sums[undefined] = np.nan
        if self._average:
            sums = sums / np.where(valid, count, 1)
        values = sums.astype(np.float32) if single else sums
        return Shown(from_numbers(values, valid, self.result), (Failure(overflow, "22003", _OVERFLOW),))


class FloatDeviation(_FloatAccumulator):
    """stddev_pop, stddev_samp, var_pop, var_samp of floats: the variance is rounded once, from exact sums."""

    def __init__(self, result: SqlType, argument: SqlType, func: str) -> None:
        super().__init__(result, argument, squares=True)
        self._sample = func.endswith("_samp")
        self._root = func.startswith("stddev")

    def show(self, states: Int64s) -> Shown:
        valid = states[:, 0] > (1 if self._sample else 0)
        special = (states[:, 1:_PLAIN] > 0).any(axis=1)
        values = np.full(len(states), np.nan)
        overflow = np.zeros(len(states), np.bool_)
        for row in np.flatnonzero(valid & ~special).tolist():
            variance = self._variance(states[row])
            if variance is None:
                overflow[row] = True
            else:
                values[row] = math.sqrt(variance) if self._root else variance
        return Shown(from_numbers(values, valid, self.result), (Failure(overflow, "22003", _OVERFLOW),))

    def _variance(self, state: npt.NDArray[np.int64]) -> float | None:
        """None: past the range of doubles."""
        first, second = self._windows
        at = _PLAIN + first.width
        count = int(state[0])
        total = digits_value(state[_PLAIN:at]) << (32 * first.base)
        squares = digits_value(state[at : at + second.width]) << (32 * second.base)
        numerator = count * squares - total * total
        denominator = (count * (count - 1) if self._sample else count * count) << -SQUARE_UNIT
        try:
            return numerator / denominator
        except OverflowError:
            return None
