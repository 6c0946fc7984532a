"""Roots, exponentials, logarithms and powers of numeric.

The display scales are PostgreSQL's: at least 16 significant digits as it estimates them from the argument's base-10,000
digits, and at least the arguments' scales; less where 38 digits would not hold the result.  Values are computed with
guard digits and rounded half away from zero.
Slow path: one Python step per distinct argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.layout import pack_numeric, unpack_numeric
from eddyline.expr.literals import decimal_parts
from eddyline.expr.registry import Arguments, Evaluated, Function, implements
from eddyline.expr.rowwise import map_rows
from eddyline.kernels.numeric import MAX_DIGITS, fitted
from eddyline.repr.types import NUMERIC, SqlType, arrow_type

__all__ = ["ln_weight", "select_sqrt_scale"]

_SIGNIFICANT: Final = 16
_MAX_SCALE: Final = 1000
_GUARD_DIGITS: Final = 12
_LOG10_E: Final = 0.434294481903252
_INT32: Final = 2**31
Parts = tuple[int, int]  # coefficient, display scale


def _base10000(parts: Parts) -> tuple[int, list[int]]:
    """(weight of the first digit, up to four digits) in base 10,000, aligned at the decimal point; (0, []) for 0."""
    coefficient, scale = abs(parts[0]), parts[1]
    if coefficient == 0:
        return 0, []
    text = str(coefficient)
    weight = (len(text) - 1 - scale) // 4
    lead = len(text) - 1 - scale - weight * 4 + 1
    text = text.ljust(lead + 12, "0")
    digits = [int(text[:lead]), *(int(text[lead + 4 * i : lead + 4 * i + 4]) for i in range(3))]
    while digits[-1] == 0:
        digits.pop()
    return weight, digits


def _shown(scale: int, *least: int) -> int:
    return min(max(scale, 0, *least), _MAX_SCALE)


def _overflow() -> Exception:
    return make_error("22003", "value overflows numeric format")


def _rounded(value: Decimal, scale: int) -> Parts:
    if value == 0:
        return 0, scale
    if value.adjusted() >= MAX_DIGITS:
        raise _overflow()
    return decimal_parts(_round_to(value, min(scale, MAX_DIGITS - 1 - value.adjusted())))


def _round_to(value: Decimal, scale: int) -> Decimal:
    context = Context(prec=_MAX_SCALE + 2 * MAX_DIGITS, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
    return value.quantize(Decimal(1).scaleb(-scale, context), context=context)


def _context(digits: int) -> Context:
    """Enough for ``digits`` significant digits of the result."""
    return Context(prec=max(digits, 1) + 2 * _GUARD_DIGITS, Emin=-999_999, Emax=999_999)


def _decimal(parts: Parts) -> Decimal:
    return Decimal(f"{parts[0]}e{-parts[1]}")


def select_sqrt_scale(parts: Parts) -> int:
    """The display scale of a square root."""
    weight, _ = _base10000(parts)
    half = (weight + 1) * 4 // 2 - 1
    return _shown(_SIGNIFICANT - half, parts[1])


def _sqrt(parts: Parts) -> Parts:
    if parts[0] < 0:
        raise make_error("2201F", "cannot take square root of a negative number")
    scale = select_sqrt_scale(parts)
    square = parts[0] * 10 ** (2 * scale - parts[1])
    root = math.isqrt(square)
    return root + (square - root * root > root), scale


def _exp(parts: Parts) -> Parts:
    weight = float(_decimal(parts)) * _LOG10_E
    if weight > MAX_DIGITS + 1:
        raise _overflow()
    scale = _shown(_SIGNIFICANT - int(max(weight, -2 * _MAX_SCALE)), parts[1])
    if weight + scale < -1:
        return 0, scale
    return _rounded(_context(scale + int(weight) + 2).exp(_decimal(parts)), scale)


def ln_weight(parts: Parts) -> int:
    """PostgreSQL's estimate of log10(|ln x|), truncated."""
    value = _decimal(parts)
    if value <= 0:
        return 0
    if Decimal("0.9") <= value <= Decimal("1.1"):
        gap = decimal_parts(Context(prec=2000).subtract(value, Decimal(1)))
        weight, digits = _base10000(gap)
        return weight * 4 + int(math.log10(digits[0])) if digits else 0
    weight, digits = _base10000(parts)
    lead, exponent = digits[0], weight * 4
    if len(digits) > 1:
        lead, exponent = lead * 10_000 + digits[1], exponent - 4
    return int(math.log10(abs(math.log(lead) + exponent * 2.302585092994046)))


def _check_logarithm(parts: Parts) -> None:
    if parts[0] == 0:
        raise make_error("2201E", "cannot take logarithm of zero")
    if parts[0] < 0:
        raise make_error("2201E", "cannot take logarithm of a negative number")


def _ln(parts: Parts) -> Parts:
    _check_logarithm(parts)
    scale = _shown(_SIGNIFICANT - ln_weight(parts), parts[1])
    return _rounded(_context(scale + 4).ln(_decimal(parts)), scale)


_TEN: Final[Parts] = (10, 0)


def _log(base: Parts, parts: Parts) -> Parts:
    _check_logarithm(base)
    _check_logarithm(parts)
    scale = _shown(_SIGNIFICANT - (ln_weight(parts) - ln_weight(base)), base[1], parts[1])
    context = _context(scale + MAX_DIGITS)
    divisor = context.ln(_decimal(base))
    if divisor == 0:
        raise make_error("22012", "division by zero")
    return _rounded(context.divide(context.ln(_decimal(parts)), divisor), scale)


def _power(base: Parts, exponent: Parts) -> Parts:
    power = _decimal(exponent)
    whole = power == power.to_integral_value()
    if base[0] == 0 and power < 0:
        raise make_error("2201F", "zero raised to a negative power is undefined")
    if base[0] < 0 and not whole:
        raise make_error("2201F", "a negative number raised to a non-integer power yields a complex result")
    if whole and -_INT32 <= power < _INT32:
        return _power_whole(base, int(power))
    if base[0] == 0:
        return 0, _SIGNIFICANT
    size = abs(_decimal(base))
    # The estimate is PostgreSQL's to the digit, because the display scale hangs on it: a logarithm of few digits.
    few = max(8 - ln_weight((abs(base[0]), base[1])), 0)
    logarithm = _round_to(_context(few + 4).ln(size), few)
    weight = float(_round_to(_context(2 * MAX_DIGITS).multiply(logarithm, power), few)) * _LOG10_E
    if weight > MAX_DIGITS + 1:
        raise _overflow()
    scale = _shown(_SIGNIFICANT - int(max(weight, -2 * _MAX_SCALE)), base[1], exponent[1])
    if weight + scale < -1:
        return 0, scale
    # ln's error is multiplied by the exponent: as many more digits as that has.
    context = _context(scale + abs(int(weight)) + len(str(exponent[0])) + 4)
    coefficient, scale = _rounded(context.exp(context.multiply(context.ln(size), power)), scale)
    return (-coefficient if base[0] < 0 and int(power) % 2 else coefficient), scale


def _power_whole(base: Parts, power: int) -> Parts:
    scale = _shown(_SIGNIFICANT, base[1])
    value = _decimal(base)
    if power == 0:
        return 10**scale, scale
    if value == 0:
        return 0, scale
    weight = power * float(_context(20).log10(abs(value)))
    if weight > MAX_DIGITS + 1:
        raise _overflow()
    if weight + scale < -1:
        return 0, scale
    return _rounded(_context(scale + abs(int(weight)) + 12).power(value, power), scale)


# --- registration -----------------------------------------------------------------------------------------------


def _parts(value: Any) -> Parts:
    return decimal_parts(unpack_numeric(value) if isinstance(value, bytes) else value)


def _packed(parts: Parts) -> bytes:
    fitting = fitted(*parts)
    if fitting is None:
        raise _overflow()
    return pack_numeric(*fitting)


def _rowwise(function: Callable[..., Parts]) -> Function:
    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        columns: list[pa.Array] = [args[i] for i in range(len(args))]
        return map_rows(columns, lambda *values: _packed(function(*map(_parts, values))), arrow_type(NUMERIC))

    return apply


implements("numeric_sqrt", fallible=True)(_rowwise(_sqrt))
implements("numeric_exp", fallible=True)(_rowwise(_exp))
implements("numeric_ln", fallible=True)(_rowwise(_ln))
implements("numeric_log10", fallible=True)(_rowwise(lambda parts: _log(_TEN, parts)))
implements("numeric_log", fallible=True)(_rowwise(_log))
implements("numeric_power", fallible=True)(_rowwise(_power))
