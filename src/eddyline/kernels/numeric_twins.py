"""What the kernels of ``kernels.numeric`` compute, one row each, over (coefficient, scale) in Python's integers."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

__all__ = [
    "CEIL",
    "FLOOR",
    "HALF_AWAY",
    "INVALID",
    "MAX_DIGITS",
    "MIN_SIGNIFICANT_DIGITS",
    "OK",
    "OVERFLOW",
    "TRUNCATE",
    "ZERO_DIVISOR",
    "fitted",
    "numeric_add_twin",
    "numeric_compare_twin",
    "numeric_divide_twin",
    "numeric_format_twin",
    "numeric_multiply_twin",
    "numeric_parse_twin",
    "numeric_remainder_twin",
    "numeric_rescale_twin",
    "numeric_text_sizes_twin",
    "numeric_to_float_twin",
    "words_twin",
]

MAX_DIGITS = 38
OK, OVERFLOW, ZERO_DIVISOR, INVALID = 0, 1, 2, 3
HALF_AWAY, TRUNCATE, FLOOR, CEIL = 0, 1, 2, 3
MIN_SIGNIFICANT_DIGITS = 16  # of a quotient

Decimal128 = tuple[int, int]


def fitted(coefficient: int, scale: int) -> Decimal128 | None:
    """The value, rounded half away to the largest scale at which 38 digits hold it; None if none does."""
    size, digit = abs(coefficient), 0
    while scale and size >= 10**MAX_DIGITS:
        size, digit = divmod(size, 10)
        scale -= 1
        if size < 10**MAX_DIGITS and digit >= 5:
            size += 1
    if size >= 10**MAX_DIGITS:
        return None
    return (-size if coefficient < 0 else size), scale


def _fits(coefficient: int, scale: int) -> Decimal128 | int:
    return (coefficient, scale) if abs(coefficient) < 10**MAX_DIGITS else OVERFLOW


def numeric_add_twin(left: Decimal128, right: Decimal128, subtract: bool) -> Decimal128 | int:
    """The sum, or a status.  The kernel may also report OVERFLOW where a rescaled operand has more than 255 bits."""
    scale = max(left[1], right[1])
    a, b = (c * 10 ** (scale - s) for c, s in (left, right))
    return fitted(a - b if subtract else a + b, scale) or OVERFLOW


def numeric_multiply_twin(left: Decimal128, right: Decimal128) -> Decimal128 | int:
    return fitted(left[0] * right[0], left[1] + right[1]) or OVERFLOW


def numeric_compare_twin(left: Decimal128, right: Decimal128) -> int:
    a: int = left[0] * 10 ** right[1]
    b: int = right[0] * 10 ** left[1]
    return (a > b) - (a < b)


def numeric_rescale_twin(value: Decimal128, target: int, mode: int, digits: int) -> Decimal128 | int:
    coefficient, scale = value
    size, shown = abs(coefficient), max(target, 0)
    if target < scale:
        divisor = 10 ** (scale - target)
        size, rest = divmod(size, divisor)
        negative = coefficient < 0
        up = {HALF_AWAY: 2 * rest >= divisor, FLOOR: rest and negative, CEIL: rest and not negative}.get(mode, False)
        size = (size + bool(up)) * 10 ** (shown - target)
    else:
        size *= 10 ** (target - scale)
    if size >= 10**digits:
        return OVERFLOW
    return (-size if coefficient < 0 else size, shown)


def _base10000_twin(value: Decimal128) -> Decimal128:
    coefficient, scale = value
    if coefficient == 0:
        return 0, 0
    digits = str(abs(coefficient))
    exponent = len(digits) - 1 - scale
    weight = exponent // 4
    lead = exponent - weight * 4 + 1
    return weight, int(digits[:lead].ljust(lead, "0"))


def numeric_divide_twin(left: Decimal128, right: Decimal128) -> Decimal128 | int:
    """The quotient, or a status."""
    if right[0] == 0:
        return ZERO_DIVISOR
    (lweight, lfirst), (rweight, rfirst) = _base10000_twin(left), _base10000_twin(right)
    weight = lweight - rweight - (lfirst <= rfirst)
    scale = max(MIN_SIGNIFICANT_DIGITS - weight * 4, left[1], right[1], 0)
    size, rest = divmod(abs(left[0]) * 10 ** (scale - left[1] + right[1]), abs(right[0]))
    if size < 10**MAX_DIGITS:  # a longer one is rounded at its own last digit
        size += 2 * rest >= abs(right[0])
    return fitted(-size if (left[0] < 0) != (right[0] < 0) else size, scale) or OVERFLOW


def numeric_remainder_twin(left: Decimal128, right: Decimal128) -> Decimal128 | int:
    if right[0] == 0:
        return ZERO_DIVISOR
    scale = max(left[1], right[1])
    a, b = (abs(c) * 10 ** (scale - s) for c, s in (left, right))
    return _fits(-(a % b) if left[0] < 0 else a % b, scale)


def numeric_to_float_twin(value: Decimal128) -> float:
    """The nearest double."""
    return float(f"{value[0]}e{-value[1]}")


def numeric_format_twin(value: Decimal128) -> str:
    coefficient, scale = value
    digits = str(abs(coefficient)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return ("-" if coefficient < 0 else "") + whole + (f".{fraction}" if scale else "")


def numeric_text_sizes_twin(value: Decimal128) -> int:
    return len(numeric_format_twin(value))


def numeric_parse_twin(text: str) -> Decimal128 | int:
    match = re.fullmatch(r"([+-]?)(?=[.]?[0-9])([0-9]*)[.]?([0-9]*)(?:[eE]([+-]?[0-9]+))?", text.strip(" \t\n\r\f\v"))
    if match is None:
        return INVALID
    sign, whole, fraction, exponent = match.groups()
    coefficient, scale = int(sign + whole + fraction), len(fraction) - int(exponent or 0)
    if abs(coefficient) >= 10**MAX_DIGITS:
        return OVERFLOW
    if scale < 0:
        coefficient, scale = coefficient * 10**-scale, 0
    return _fits(coefficient, scale) if scale <= 16383 else OVERFLOW


def words_twin(values: list[Decimal128]) -> npt.NDArray[np.int64]:
    """int64[n, 3] of coefficients and scales."""
    raw = b"".join(c.to_bytes(16, "little", signed=True) + s.to_bytes(8, "little") for c, s in values)
    return np.frombuffer(raw, np.int64).reshape(-1, 3)
