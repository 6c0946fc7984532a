"""Exact, invertible sums of floats and of their squares: wide integers in units of the smallest subnormal.

A double is ``m * 2**e`` with integers |m| < 2**53 and e >= -1074, so that every double is an integer multiple of
2**-1074 and every square one of 2**-2148.  A sum is a row of base 2**32 digits (``kernels.reduce`` has the form) of
which only the window from digit ``base`` on is stored.  Digit *k* weighs 2**(32 k + unit).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import F64, I64, U8, VOID, pair, read, write

__all__ = [
    "SQUARE_UNIT",
    "VALUE_UNIT",
    "add_floats",
    "add_floats_twin",
    "digit_range",
    "digit_range_twin",
    "round_digits",
    "round_digits_twin",
]

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

VALUE_UNIT = -1074
SQUARE_UNIT = -2148

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_FRACTION = np.int64(0xFFFFFFFFFFFFF)


@kernel(pair(I64)(read(I64), read(I64), U8))
def digit_range(bits, weights, squared):  # type: ignore[no-untyped-def]
    """(first digit, one past the last digit) that the finite values with a weight touch; (0, 0) if there are none.

    bits: int64[n], the values' bit patterns.  Weights below 2**32 are counted in; larger ones take two digits more,
    which the caller's headroom must hold.
    """
    low = np.int64(1 << 30)
    high = np.int64(0)
    for i in range(len(bits)):
        exponent = (bits[i] >> np.int64(52)) & np.int64(0x7FF)
        if weights[i] == 0 or exponent == 0x7FF or (bits[i] & np.int64(0x7FFFFFFFFFFFFFFF)) == 0:
            continue
        offset = max(exponent - 1, 0)
        if squared:
            offset = 2 * offset
        digit = offset >> 5
        low = min(low, digit)
        high = max(high, digit + (7 if squared else 5))
    if high == 0:
        low = np.int64(0)
    return low, high


def digit_range_twin(bits: Int64s, weights: Int64s, squared: bool) -> tuple[int, int]:
    digits = [
        _offset_twin(b, squared) >> 5
        for b, w in zip(bits.tolist(), weights.tolist(), strict=True)
        if w and _finite_twin(b)
    ]
    return (min(digits), max(digits) + (7 if squared else 5)) if digits else (0, 0)


def _finite_twin(bits: int) -> bool:
    return (bits >> 52) & 0x7FF != 0x7FF and bits & (2**63 - 1) != 0


def _offset_twin(bits: int, squared: bool) -> int:
    offset = max(((bits >> 52) & 0x7FF) - 1, 0)
    return 2 * offset if squared else offset


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


@kernel(VOID(read(I64), read(I64), U8, read(I64), I64, I64, I64, write(I64, 2)))
def add_floats(bits, weights, squared, segments, base, column, width, out):  # type: ignore[no-untyped-def]
    """Adds ``value * weights[i]`` (``value**2 * weights[i]``) to its segment; NaN and infinities are left out.

    bits: int64[n], bit patterns of doubles; weights, segments: int64[n]; ``out[:, column:column + width]``: the
    window of digits from ``base`` on, which must cover ``digit_range`` and leave room for carries.
    """
    value = np.zeros(8, np.uint64)
    other = np.zeros(8, np.uint64)
    factor = np.zeros(2, np.uint64)
    for i in range(len(bits)):
        exponent = (bits[i] >> np.int64(52)) & np.int64(0x7FF)
        if weights[i] == 0 or exponent == 0x7FF or (bits[i] & np.int64(0x7FFFFFFFFFFFFFFF)) == 0:
            continue
        mantissa = np.uint64(bits[i] & _FRACTION)
        if exponent > 0:
            mantissa |= np.uint64(1) << np.uint64(52)
        offset = max(exponent - 1, 0)
        negative = bits[i] < 0
        value[0] = mantissa & _MASK
        value[1] = mantissa >> _SHIFT
        digits = 2
        if squared:
            _multiply(value, 2, value, 2, other)
            for j in range(4):
                value[j] = other[j]
            digits = 4
            offset = 2 * offset
            negative = False
        shift = np.uint64(offset & np.int64(31))
        carry = np.uint64(0)
        for j in range(digits):
            shifted = (value[j] << shift) | carry
            value[j] = shifted & _MASK
            carry = shifted >> _SHIFT
        value[digits] = carry
        digits += 1
        weight = np.uint64(weights[i])
        if weights[i] < 0:
            weight = np.uint64(0) - weight
            negative = not negative
        factor[0] = weight & _MASK
        factor[1] = weight >> _SHIFT
        _multiply(value, digits, factor, 2, other)
        digits += 2
        first = (offset >> 5) - base
        moved = np.int64(0)
        for k in range(first, width):
            j = k - first
            if j >= digits and moved == 0:
                break
            digit = np.int64(other[j]) if j < digits else np.int64(0)
            total = out[segments[i], column + k] + (-digit if negative else digit) + moved
            if k < width - 1:
                out[segments[i], column + k] = total & np.int64(0xFFFFFFFF)
                moved = total >> np.int64(32)
            else:
                out[segments[i], column + k] = total


def add_floats_twin(
    bits: Int64s, weights: Int64s, squared: bool, segments: Int64s, base: int, column: int, width: int, out: Int64s
) -> None:
    for i, segment in enumerate(segments.tolist()):
        pattern = int(bits[i])
        if not _finite_twin(pattern):
            continue
        mantissa = (pattern & (2**52 - 1)) | (2**52 if (pattern >> 52) & 0x7FF else 0)
        value = mantissa * mantissa if squared else -mantissa if pattern < 0 else mantissa
        part = out[segment, column : column + width]
        total = sum(digit << (32 * k) for k, digit in enumerate(part.tolist()))
        total += (value * int(weights[i]) << _offset_twin(pattern, squared)) >> (32 * base)
        part[:] = [(total >> (32 * k)) & 0xFFFFFFFF for k in range(width - 1)] + [total >> (32 * (width - 1))]


@kernel(VOID(read(I64, 2), I64, I64, I64, I64, I64, write(F64)))
def round_digits(digits, column, width, exponent, precision, least, out):  # type: ignore[no-untyped-def]
    """Each row's wide integer times ``2**exponent``, rounded once, half to even; past the range: an infinity.

    digits: int64[n, w], of which ``column:column + width`` count; precision: bits of the significand (53 or 24);
    least: exponent of the smallest subnormal (-1074 or -149); out: float64[n].
    """
    magnitude = np.zeros(width + 1, np.uint64)
    for i in range(digits.shape[0]):
        top = digits[i, column + width - 1]
        negative = top < 0
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
        last = width
        while last >= 0 and magnitude[last] == np.uint64(0):
            last -= 1
        if last < 0:
            out[i] = 0.0
            continue
        bits = 0
        head = magnitude[last]
        while head != np.uint64(0):
            bits += 1
            head >>= np.uint64(1)
        bits += 32 * last
        drop = max(bits - precision, least - exponent, 0)
        # The kept part has at most 53 bits; the bit below it and whether any lower one is set decide the rounding.
        kept = np.uint64(0)
        for k in range(last, -1, -1):
            low_bit = 32 * k
            if low_bit + 32 <= drop:
                break
            if low_bit >= drop:
                kept |= magnitude[k] << np.uint64(low_bit - drop)
            else:
                kept |= magnitude[k] >> np.uint64(drop - low_bit)
        if drop > 0:
            half_at = drop - 1
            half = (
                (magnitude[half_at >> 5] >> np.uint64(half_at & 31)) & np.uint64(1)
                if half_at < 32 * (width + 1)
                else np.uint64(0)
            )
            sticky = False
            for k in range(min(half_at >> 5, width) + 1):
                part = magnitude[k]
                if k == half_at >> 5:
                    part = part & ((np.uint64(1) << np.uint64(half_at & 31)) - np.uint64(1))
                if part != np.uint64(0):
                    sticky = True
                    break
            if half != np.uint64(0) and (sticky or (kept & np.uint64(1)) != np.uint64(0)):
                kept += np.uint64(1)
        scale = exponent + drop
        value_float = float(np.int64(kept))
        highest = 1024 if precision == 53 else 128
        size = 0
        head = kept
        while head != np.uint64(0):
            size += 1
            head >>= np.uint64(1)
        result = np.inf if size + scale > highest else math.ldexp(value_float, scale)
        out[i] = -result if negative else result


def round_digits_twin(
    digits: Int64s, column: int, width: int, exponent: int, precision: int, least: int, out: Floats
) -> None:
    for i in range(digits.shape[0]):
        value = sum(digit << (32 * k) for k, digit in enumerate(digits[i, column : column + width].tolist()))
        size = abs(value)
        drop = max(size.bit_length() - precision, least - exponent, 0)
        kept, rest = size >> drop, size & ((1 << drop) - 1)
        half = (1 << drop) >> 1
        if rest > half or (rest == half and drop and kept & 1):
            kept += 1
        highest = 1024 if precision == 53 else 128
        result = math.inf if kept.bit_length() + exponent + drop > highest else math.ldexp(float(kept), exponent + drop)
        out[i] = -result if value < 0 else result
