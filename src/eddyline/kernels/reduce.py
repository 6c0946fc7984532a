"""Exact sums of wide integers per segment, and their running values; least and greatest words.

A wide integer is a row of int64 *digits*: base 2**32, least first, all in ``[0, 2**32)`` but the last, which is
signed and takes what the others cannot hold.  Additions carry at once, so that equal numbers have equal digits.
Magnitudes in between are uint64 digits of 32 bits.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import I64, U8, VOID, read, write

__all__ = [
    "add_integers",
    "add_integers_twin",
    "add_weights",
    "add_weights_twin",
    "digits_to_words",
    "digits_to_words_twin",
    "digits_unscaled",
    "digits_unscaled_twin",
    "digits_value",
    "extremes",
    "extremes_twin",
    "running_sums",
    "running_sums_twin",
]

Int64s = npt.NDArray[np.int64]

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@kernel(VOID(read(I64), read(I64), I64, write(I64, 2)))
def add_weights(weights, segments, column, out):  # type: ignore[no-untyped-def]
    """``out[segments[i], column] += weights[i]``, wrapping.  weights, segments: int64[n]; out: int64[m, w]."""
    for i in range(len(weights)):
        out[segments[i], column] += weights[i]


def add_weights_twin(weights: Int64s, segments: Int64s, column: int, out: Int64s) -> None:
    for weight, segment in zip(weights.tolist(), segments.tolist(), strict=True):
        out[segment, column] += weight


@kernel(VOID(read(I64), read(I64), read(I64), I64, write(I64), write(I64)))
def extremes(values, weights, segments, greatest, best, there):  # type: ignore[no-untyped-def]
    """``best[s]``: the least value of segment *s*, or the greatest if ``greatest``, and of what stood there before;
    ``there[s]`` is 1 where one was.  Rows of weight 0 do not count.

    values, weights, segments: int64[n]; best, there: int64[m].
    """
    flip = np.int64(-1) if greatest else np.int64(0)  # of all bits, which turns the order round
    for i in range(len(values)):
        if weights[i] != 0:
            segment = segments[i]
            best[segment] = min(best[segment] ^ flip, values[i] ^ flip) ^ flip
            there[segment] = 1


def extremes_twin(
    values: Int64s, weights: Int64s, segments: Int64s, greatest: bool, best: Int64s, there: Int64s
) -> None:
    choose = max if greatest else min
    for value, weight, segment in zip(values.tolist(), weights.tolist(), segments.tolist(), strict=True):
        if weight:
            best[segment] = choose(int(best[segment]), value)
            there[segment] = 1


@subroutine
def _multiply(left: Any, left_digits: Any, right: Any, right_digits: Any, result: Any) -> Any:
    for i in range(left_digits + right_digits):
        result[i] = np.uint64(0)
    for i in range(left_digits):
        carry = np.uint64(0)
        for j in range(right_digits):
            value = left[i] * right[j] + result[i + j] + carry
            result[i + j] = value & _MASK
            carry = value >> _SHIFT
        result[i + right_digits] = carry


@subroutine
def _add_magnitude(magnitude: Any, digits: Any, negative: Any, out: Any, row: Any, column: Any, width: Any) -> Any:
    """Adds or subtracts a magnitude to the digits ``out[row, column:column + width]``."""
    carry = np.int64(0)
    for i in range(width):
        if i >= digits and carry == 0:
            break
        digit = np.int64(magnitude[i]) if i < digits else np.int64(0)
        value = out[row, column + i] + (-digit if negative else digit) + carry
        if i < width - 1:
            out[row, column + i] = value & np.int64(0xFFFFFFFF)
            carry = value >> np.int64(32)
        else:
            out[row, column + i] = value


@kernel(VOID(read(I64), read(I64), read(I64), read(I64), U8, read(I64), I64, I64, write(I64, 2)))
def add_integers(low, high, weights, powers, squared, segments, column, width, out):  # type: ignore[no-untyped-def]
    """Adds ``value * 10**powers[i] * weights[i]`` (the scaled value squared if ``squared``) to its segment.

    low, high: int64[n], the two words of a 128-bit two's complement value; weights: int64[n]; powers: int64[n] in
    0..57; segments: int64[n]; ``out[:, column:column + width]``: digits, wide enough for the sum.
    """
    value = np.zeros(48, np.uint64)
    other = np.zeros(48, np.uint64)
    factor = np.zeros(2, np.uint64)
    for i in range(len(low)):
        if weights[i] == 0:
            continue
        negative = high[i] < 0
        word_low = np.uint64(low[i])
        word_high = np.uint64(high[i])
        if negative:
            word_low = np.uint64(0) - word_low
            word_high = ~word_high + (np.uint64(1) if word_low == np.uint64(0) else np.uint64(0))
        value[0] = word_low & _MASK
        value[1] = word_low >> _SHIFT
        value[2] = word_high & _MASK
        value[3] = word_high >> _SHIFT
        digits = 4
        while digits > 1 and value[digits - 1] == np.uint64(0):
            digits -= 1
        power = powers[i]
        while power > 0:
            step = min(power, 9)
            multiplier = np.uint64(1)
            for _ in range(step):
                multiplier = multiplier * np.uint64(10)
            carry = np.uint64(0)
            for j in range(digits):
                product = value[j] * multiplier + carry
                value[j] = product & _MASK
                carry = product >> _SHIFT
            if carry != np.uint64(0):
                value[digits] = carry
                digits += 1
            power -= step
        if squared:
            _multiply(value, digits, value, digits, other)
            digits = 2 * digits
            for j in range(digits):
                value[j] = other[j]
            negative = False
        weight = np.uint64(weights[i])
        if weights[i] < 0:
            weight = np.uint64(0) - weight
            negative = not negative
        factor[0] = weight & _MASK
        factor[1] = weight >> _SHIFT
        used = 2 if factor[1] != np.uint64(0) else 1
        _multiply(value, digits, factor, used, other)
        _add_magnitude(other, digits + used, negative, out, segments[i], column, width)


def add_integers_twin(
    low: Int64s,
    high: Int64s,
    weights: Int64s,
    powers: Int64s,
    squared: bool,
    segments: Int64s,
    column: int,
    width: int,
    out: Int64s,
) -> None:
    for i, segment in enumerate(segments.tolist()):
        value = ((int(high[i]) << 64) | (int(low[i]) & (2**64 - 1))) * 10 ** int(powers[i])
        part = out[segment, column : column + width]
        part[:] = _digits_of(digits_value(part) + (value * value if squared else value) * int(weights[i]), width)


def digits_value(digits: Int64s) -> int:
    """The integer that a row of digits stands for."""
    value = 0
    for digit in reversed(digits.tolist()):
        value = (value << 32) + digit
    return value


def _digits_of(value: int, width: int) -> list[int]:
    return [(value >> (32 * i)) & 0xFFFFFFFF for i in range(width - 1)] + [value >> (32 * (width - 1))]


@kernel(VOID(write(I64, 2), read(I64), read(I64), read(I64, 2), I64, read(I64), write(I64, 2), write(I64, 2)))
def running_sums(state, slots, starts, delta, plain, chains, before, after):  # type: ignore[no-untyped-def]
    """Adds each group's deltas in order; ``before[s]`` and ``after[s]`` are the group's state around segment *s*.

    state: int64[slots, w], updated; slots: int64[g], no repeats; starts: int64[g + 1], group *j* has the segments
    ``starts[j] <= s < starts[j + 1]``; delta: int64[m, w]; before, after: int64[m, w], or int64[0, w] if nobody asks
    for them.  The first ``plain`` columns are counters;
    ``chains``: int64[c + 1], ascending column bounds of c wide integers.  Cost: m × w.
    """
    width = delta.shape[1]
    told = width if len(before) else 0
    for j in range(len(slots)):
        slot = slots[j]
        for segment in range(starts[j], starts[j + 1]):
            for k in range(told):
                before[segment, k] = state[slot, k]
            for k in range(plain):
                state[slot, k] += delta[segment, k]
            for chain in range(len(chains) - 1):
                carry = np.int64(0)
                for k in range(chains[chain], chains[chain + 1]):
                    value = state[slot, k] + delta[segment, k] + carry
                    if k < chains[chain + 1] - 1:
                        state[slot, k] = value & np.int64(0xFFFFFFFF)
                        carry = value >> np.int64(32)
                    else:
                        state[slot, k] = value
            for k in range(told):
                after[segment, k] = state[slot, k]


def running_sums_twin(
    state: Int64s,
    slots: Int64s,
    starts: Int64s,
    delta: Int64s,
    plain: int,
    chains: Int64s,
    before: Int64s,
    after: Int64s,
) -> None:
    bounds = chains.tolist()
    for j, slot in enumerate(slots.tolist()):
        for segment in range(int(starts[j]), int(starts[j + 1])):
            if len(before):
                before[segment] = state[slot]
            state[slot, :plain] += delta[segment, :plain]
            for first, stop in pairwise(bounds):
                total = digits_value(state[slot, first:stop]) + digits_value(delta[segment, first:stop])
                state[slot, first:stop] = _digits_of(total, stop - first)
            if len(after):
                after[segment] = state[slot]


@kernel(VOID(read(I64, 2), I64, I64, write(I64), write(I64), write(U8)))
def digits_to_words(digits, column, width, low, high, fits):  # type: ignore[no-untyped-def]
    """Each row's wide integer as a 128-bit two's complement value; ``fits[i]``: 0 no, 1 in 128 bits, 2 in 64.

    digits: int64[n, w], of which ``column:column + width`` count; low, high: int64[n]; fits: uint8[n].
    """
    for i in range(digits.shape[0]):
        negative = digits[i, column + width - 1] < 0
        fill = np.uint64(0xFFFFFFFF) if negative else np.uint64(0)
        word_low = np.uint64(0)
        word_high = np.uint64(0)
        good = True
        top = digits[i, column + width - 1]
        for k in range(max(width, 4)):
            if k < width - 1:
                digit = np.uint64(digits[i, column + k])
            elif k == width - 1:
                digit = np.uint64(top) & _MASK
            elif k == width:
                digit = np.uint64(top >> np.int64(32)) & _MASK
            else:
                digit = fill
            if k < 2:
                word_low |= digit << np.uint64(32 * k)
            elif k < 4:
                word_high |= digit << np.uint64(32 * (k - 2))
            elif digit != fill:
                good = False
        if width >= 4 and (top >> np.int64(32)) != (np.int64(-1) if negative else np.int64(0)):
            good = False
        if (np.int64(word_high) < 0) != negative:
            good = False
        low[i] = np.int64(word_low)
        high[i] = np.int64(word_high)
        if not good:
            fits[i] = 0
        elif np.int64(word_high) == (np.int64(word_low) >> np.int64(63)):
            fits[i] = 2
        else:
            fits[i] = 1


def digits_to_words_twin(
    digits: Int64s, column: int, width: int, low: Int64s, high: Int64s, fits: npt.NDArray[np.uint8]
) -> None:
    for i in range(digits.shape[0]):
        value = digits_value(digits[i, column : column + width])
        fits[i] = 2 if -(2**63) <= value < 2**63 else 1 if -(2**127) <= value < 2**127 else 0
        if fits[i]:
            words = np.frombuffer(value.to_bytes(16, "little", signed=True), np.int64)
            low[i], high[i] = words[0], words[1]


@kernel(VOID(read(I64, 2), I64, I64, read(I64), write(I64, 2)))
def digits_unscaled(digits, column, width, powers, out):  # type: ignore[no-untyped-def]
    """Each row's wide integer over ``10**powers[i]``, truncated toward zero, as digits of the same width.

    digits: int64[n, w], of which ``column:column + width`` count; powers: int64[n], not negative; out: int64[n, width].
    """
    magnitude = np.zeros(width + 1, np.uint64)
    for i in range(digits.shape[0]):
        negative = digits[i, column + width - 1] < 0
        borrow = np.int64(0)
        for k in range(width):
            value = digits[i, column + k]
            if negative:
                value = -value + borrow
            if k < width - 1:
                magnitude[k] = np.uint64(value & np.int64(0xFFFFFFFF))
                borrow = value >> np.int64(32) if negative else np.int64(0)
            else:
                magnitude[k] = np.uint64(value) & _MASK
                magnitude[k + 1] = np.uint64(value) >> _SHIFT
        power = powers[i]
        while power > 0:
            step = min(power, 9)
            divisor = np.uint64(1)
            for _ in range(step):
                divisor = divisor * np.uint64(10)
            rest = np.uint64(0)
            for k in range(width, -1, -1):
                part = (rest << _SHIFT) | magnitude[k]
                magnitude[k] = part // divisor
                rest = part - magnitude[k] * divisor
            power -= step
        borrow = np.int64(0)
        for k in range(width):
            value = np.int64(magnitude[k])
            if k == width - 1:
                value = np.int64(magnitude[k] | (magnitude[k + 1] << _SHIFT))
            if negative:
                value = -value + borrow
            if k < width - 1:
                out[i, k] = value & np.int64(0xFFFFFFFF)
                borrow = value >> np.int64(32) if negative else np.int64(0)
            else:
                out[i, k] = value


def digits_unscaled_twin(digits: Int64s, column: int, width: int, powers: Int64s, out: Int64s) -> None:
    for i in range(digits.shape[0]):
        value = digits_value(digits[i, column : column + width])
        size = abs(value) // 10 ** int(powers[i])
        out[i] = _digits_of(-size if value < 0 else size, width)
