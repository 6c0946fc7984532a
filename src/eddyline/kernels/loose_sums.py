"""Sums per segment whose digits are added up without carrying: for pieces that cannot overflow a digit.

A *loose* wide integer has the digits of ``kernels.reduce``, any int64 each, which weigh the same.  Adding one to a
state with ``running_sums`` carries.  It is an error to add values whose weights add up, without their signs, to more
than ``MAX_WEIGHT``: a digit would not hold the sum.  (Digits are below 2**32 before they are weighted.)
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel
from eddyline.kernels.signatures import I64, U8, VOID, read, write

__all__ = [
    "MAX_WEIGHT", "add_decimal_digits", "add_decimal_digits_twin", "add_double_digits", "add_double_digits_twin",
    "add_word_digits", "add_word_digits_twin",
]  # fmt: skip

Int64s = npt.NDArray[np.int64]

#: so that a sum stays below 2**62, and the carry of a state's digit fits beside it
MAX_WEIGHT: Final = 1 << 30

_LOW = np.int64(0xFFFFFFFF)
_32 = np.int64(32)
_FRACTION = np.int64(0xFFFFFFFFFFFFF)


@kernel(VOID(read(I64), read(I64), read(I64), I64, write(I64, 2)))
def add_word_digits(values, weights, segments, column, out):  # type: ignore[no-untyped-def]
    """Adds ``values[i] * weights[i]`` to the two digits ``out[segments[i], column:column + 2]``.

    values, weights, segments: int64[n]; out: int64[m, w].  A digit after the two takes no part.
    """
    if len(out) == 1:  # in registers: each row would wait for the last one's store
        low = np.int64(0)
        high = np.int64(0)
        for i in range(len(values)):
            low += (values[i] & _LOW) * weights[i]
            high += (values[i] >> _32) * weights[i]
        out[0, column] += low
        out[0, column + 1] += high
        return
    for i in range(len(values)):
        segment = segments[i]
        out[segment, column] += (values[i] & _LOW) * weights[i]
        out[segment, column + 1] += (values[i] >> _32) * weights[i]


def add_word_digits_twin(values: Int64s, weights: Int64s, segments: Int64s, column: int, out: Int64s) -> None:
    for value, weight, segment in zip(values.tolist(), weights.tolist(), segments.tolist(), strict=True):
        high, low = divmod(value, 1 << 32)
        out[segment, column] += low * weight
        out[segment, column + 1] += high * weight


@kernel(U8(read(I64, 2), read(I64), read(I64), I64, write(I64, 2)))
def add_decimal_digits(words, weights, segments, column, out):  # type: ignore[no-untyped-def]
    """As ``add_word_digits`` for coefficients of 128 bits, words int64[n, 2], if the low word is all there is of each.

    1 if so; 0, and ``out`` is as it was, where one with a weight other than 0 needs the high word.
    """
    for i in range(len(words)):
        if words[i, 1] != words[i, 0] >> np.int64(63) and weights[i] != 0:
            return np.uint8(0)
    for i in range(len(words)):
        segment = segments[i]
        out[segment, column] += (words[i, 0] & _LOW) * weights[i]
        out[segment, column + 1] += (words[i, 0] >> _32) * weights[i]
    return np.uint8(1)


def add_decimal_digits_twin(words: Int64s, weights: Int64s, segments: Int64s, column: int, out: Int64s) -> int:
    values = [(high << 64) + (low & (1 << 64) - 1) for low, high in words.tolist()]
    if any(weight and not -(2**63) <= value < 2**63 for value, weight in zip(values, weights.tolist(), strict=True)):
        return 0
    add_word_digits_twin(words[:, 0], weights, segments, column, out)
    return 1


@kernel(VOID(read(I64), read(I64), read(I64), I64, I64, write(I64, 2)))
def add_double_digits(bits, weights, segments, base, column, out):  # type: ignore[no-untyped-def]
    """Adds ``value * weights[i]`` to its segment; NaN, infinities and zeros are left out.

    bits: int64[n], bit patterns of doubles; digits as in ``kernels.floatsum``, from digit ``base`` on, which must cover
    ``digit_range``; they begin at ``out[:, column]``.
    """
    for i in range(len(bits)):
        exponent = (bits[i] >> np.int64(52)) & np.int64(0x7FF)
        if weights[i] == 0 or exponent == 0x7FF or (bits[i] & np.int64(0x7FFFFFFFFFFFFFFF)) == 0:
            continue
        mantissa = bits[i] & _FRACTION
        if exponent > 0:
            mantissa |= np.int64(1) << np.int64(52)
            exponent -= 1
        weight = -weights[i] if bits[i] < 0 else weights[i]
        shift = exponent & np.int64(31)
        at = column + (exponent >> np.int64(5)) - base
        # 53 bits moved by at most 31 reach over three digits.
        low = (mantissa & _LOW) << shift
        high = ((mantissa >> _32) << shift) + (low >> _32)
        out[segments[i], at] += (low & _LOW) * weight
        out[segments[i], at + 1] += (high & _LOW) * weight
        out[segments[i], at + 2] += (high >> _32) * weight


def add_double_digits_twin(
    bits: Int64s, weights: Int64s, segments: Int64s, base: int, column: int, out: Int64s
) -> None:
    for pattern, weight, segment in zip(bits.tolist(), weights.tolist(), segments.tolist(), strict=True):
        exponent = (pattern >> 52) & 0x7FF
        if exponent == 0x7FF:
            continue
        mantissa = (pattern & (2**52 - 1)) | (2**52 if exponent else 0)
        offset = max(exponent - 1, 0)
        shifted = mantissa << (offset & 31)
        for digit in range(3):
            part = (shifted >> (32 * digit)) & 0xFFFFFFFF
            if part:
                out[segment, column + (offset >> 5) - base + digit] += part * (-weight if pattern < 0 else weight)
