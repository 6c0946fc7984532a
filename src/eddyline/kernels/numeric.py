"""Arithmetic on 128-bit decimal coefficients, with 256-bit intermediate results.

A column of numerics is ``words``: int64[n, k], C order: the low and the high word of the two's-complement coefficient,
then, if k = 3, the display scale.  A scale argument gives the scale of the whole column, or ``PER_VALUE`` (k = 3).
Coefficients have at most 38 digits.  A sum, product or quotient with a scale of its own (k = 3) that needs more digits
is rounded to the largest scale at which 38 do; one in a column of one scale overflows.  A row's ``status`` is OK,
OVERFLOW (more than 38 digits), ZERO_DIVISOR or INVALID; where it is not OK, the output row is 0.  Rows are independent
of each other; cost O(n).  An operand of two may be a single row: it then stands for all.

Magnitudes are pairs of uint64 (high, low).  Every integer constant that meets one is a uint64 as well: Numba turns
uint64 mixed with int64 into float64.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.numeric_twins import (
    fitted,
    numeric_add_twin,
    numeric_compare_twin,
    numeric_divide_twin,
    numeric_format_twin,
    numeric_multiply_twin,
    numeric_parse_twin,
    numeric_remainder_twin,
    numeric_rescale_twin,
    numeric_text_sizes_twin,
    numeric_to_float_twin,
    words_twin,
)
from eddyline.kernels.signatures import BOOL, F64, I8, I64, U8, VOID, read, write

__all__ = [
    "CEIL",
    "FLOOR",
    "HALF_AWAY",
    "INVALID",
    "MAX_DIGITS",
    "OK",
    "OVERFLOW",
    "PER_VALUE",
    "TRUNCATE",
    "ZERO_DIVISOR",
    "fitted",
    "numeric_add",
    "numeric_add_twin",
    "numeric_compare",
    "numeric_compare_twin",
    "numeric_divide",
    "numeric_divide_twin",
    "numeric_format",
    "numeric_format_twin",
    "numeric_multiply",
    "numeric_multiply_twin",
    "numeric_parse",
    "numeric_parse_twin",
    "numeric_remainder",
    "numeric_remainder_twin",
    "numeric_rescale",
    "numeric_rescale_twin",
    "numeric_text_sizes",
    "numeric_text_sizes_twin",
    "numeric_to_float",
    "numeric_to_float_twin",
    "words_twin",
]

# Jitted functions use names of their own file alone: the twins' file says these again.
MAX_DIGITS = 38
OK, OVERFLOW, ZERO_DIVISOR, INVALID = 0, 1, 2, 3
HALF_AWAY, TRUNCATE, FLOOR, CEIL = 0, 1, 2, 3
MIN_SIGNIFICANT_DIGITS = 16  # of a quotient
PER_VALUE = -1
DIVIDEND_DIGITS = 77  # fit 256 bits

_WORDS: Final = read(I64, 2)
_OUT: Final = write(I64, 2)
_STATUS: Final = write(U8)
_0 = np.uint64(0)
_1 = np.uint64(1)
_10 = np.uint64(10)
_32 = np.uint64(32)
_40 = np.uint64(40)
_63 = np.uint64(63)
_LOW32 = np.uint64(0xFFFFFFFF)
_TOP = np.uint64(1 << 63)
_POW10 = np.array([10**i for i in range(20)], dtype=np.uint64)  # all that fit 64 bits
_NARROW_POW10 = np.array([10**i for i in range(19)], dtype=np.int64)  # all that fit int64
_NARROW_MOST = np.array([(2**62 - 1) // 10**i for i in range(19)], dtype=np.int64)  # times 10**i is below 2**62
_WIDE_HIGH = np.array([10**i >> 64 for i in range(39)], dtype=np.uint64)  # 10**i in 128 bits
_WIDE_LOW = np.array([10**i & (1 << 64) - 1 for i in range(39)], dtype=np.uint64)


# --- 64-, 128- and 256-bit steps --------------------------------------------------------------------------------


@subroutine
def _magnitude(low: Any, high: Any) -> Any:
    """(negative, high, low) of a two's-complement pair of int64."""
    l, h = np.uint64(low), np.uint64(high)  # noqa: E741 - low and high
    if high < 0:
        l, h = ~l + _1, ~h  # noqa: E741 - as above
        if l == _0:
            h = h + _1
        return True, h, l
    return False, h, l


@subroutine
def _signed(negative: Any, high: Any, low: Any) -> Any:
    """The pair (low, high) of int64 of a magnitude below 2**127."""
    if negative:
        low, high = ~low + _1, ~high
        if low == _0:
            high = high + _1
    return np.int64(low), np.int64(high)


@subroutine
def _multiply64(a: Any, b: Any) -> Any:
    """(high, low) of a 64 × 64 product."""
    a1, a0, b1, b0 = a >> _32, a & _LOW32, b >> _32, b & _LOW32
    low = a0 * b0
    middle = a1 * b0 + (low >> _32)
    other = a0 * b1 + (middle & _LOW32)
    return a1 * b1 + (middle >> _32) + (other >> _32), (other << _32) | (low & _LOW32)


@subroutine
def _add_carry(a: Any, b: Any, carry: Any) -> Any:
    total = a + b
    out = _1 if total < a else _0
    total2 = total + carry
    if total2 < total:
        out = out + _1
    return total2, out


@subroutine
def _multiply128(ah: Any, al: Any, bh: Any, bl: Any) -> Any:
    """Four words, highest first, of a 128 × 128 product."""
    h00, w0 = _multiply64(al, bl)
    h01, l01 = _multiply64(al, bh)
    h10, l10 = _multiply64(ah, bl)
    h11, l11 = _multiply64(ah, bh)
    w1, c1 = _add_carry(h00, l01, _0)
    w1, c2 = _add_carry(w1, l10, _0)
    w2, c3 = _add_carry(h01, h10, c1)
    w2, c4 = _add_carry(w2, l11, c2)
    return h11 + c3 + c4, w2, w1, w0


@subroutine
def _below(ah: Any, al: Any, bh: Any, bl: Any) -> Any:
    return ah < bh or (ah == bh and al < bl)


@subroutine
def _times_ten_to(high: Any, low: Any, exponent: Any) -> Any:
    """Four words of the magnitude × 10**exponent, and whether even those were too few."""
    w3, w2, w1, w0 = _0, _0, high, low
    if high == _0 and low == _0:
        return w3, w2, w1, w0, False
    while exponent > 0:
        step = min(exponent, np.int64(19))
        factor = _POW10[step]
        h0, w0 = _multiply64(w0, factor)
        h1, l1 = _multiply64(w1, factor)
        h2, l2 = _multiply64(w2, factor)
        h3, l3 = _multiply64(w3, factor)
        w1, carry = _add_carry(l1, h0, _0)
        w2, carry = _add_carry(l2, h1, carry)
        w3, carry = _add_carry(l3, h2, carry)
        if h3 + carry != _0:
            return w3, w2, w1, w0, True
        exponent -= step
    return w3, w2, w1, w0, False


@subroutine
def _divide_words(carry: Any, w1: Any, w0: Any, divisor: Any) -> Any:
    """(high, low, remainder) of two words, after a carry below the divisor, by a divisor below 2**32."""
    t = (carry << _32) | (w1 >> _32)
    b1, r = t // divisor, t % divisor
    t = (r << _32) | (w1 & _LOW32)
    b0, r = t // divisor, t % divisor
    t = (r << _32) | (w0 >> _32)
    c1, r = t // divisor, t % divisor
    t = (r << _32) | (w0 & _LOW32)
    c0, r = t // divisor, t % divisor
    return (b1 << _32) | b0, (c1 << _32) | c0, r


@subroutine
def _divide256_by(w3: Any, w2: Any, w1: Any, w0: Any, divisor: Any) -> Any:
    """Four words and the remainder of 256 bits by a divisor below 2**32."""
    q3, r = w3 // divisor, w3 % divisor
    t = (r << _32) | (w2 >> _32)
    a1, r = t // divisor, t % divisor
    t = (r << _32) | (w2 & _LOW32)
    a0, r = t // divisor, t % divisor
    q1, q0, r = _divide_words(r, w1, w0, divisor)
    return q3, (a1 << _32) | a0, q1, q0, r


@subroutine
def _divide_ten_to(high: Any, low: Any, exponent: Any, mode: Any, negative: Any) -> Any:
    """The magnitude / 10**exponent (exponent >= 1), rounded by ``mode``."""
    if high == _0 and exponent <= 19:
        power = _POW10[exponent]
        quotient, rest = low // power, low % power
        up = rest >= power - rest if mode == HALF_AWAY else rest != _0
        qh = _0
    else:
        sticky = False
        qh, quotient = high, low
        left = min(exponent - 1, np.int64(40))
        while left > 0:
            step = min(left, np.int64(9))
            qh, quotient, rest = _divide_words(_0, qh, quotient, _POW10[step])
            sticky = sticky or rest != _0
            left -= step
        qh, quotient, digit = _divide_words(_0, qh, quotient, _10)
        up = digit >= np.uint64(5) if mode == HALF_AWAY else (digit != _0 or sticky)
    if up and (mode == HALF_AWAY or (mode == CEIL and not negative) or (mode == FLOOR and negative)):
        quotient = quotient + _1
        if quotient == _0:
            qh = qh + _1
    return qh, quotient


@subroutine
def _divide256(w3: Any, w2: Any, w1: Any, w0: Any, bh: Any, bl: Any) -> Any:
    """Quotient (four words) and remainder (two) of 256 bits by a non-zero magnitude below 2**127."""
    if bh == _0 and bl <= _LOW32:
        q3, q2, q1, q0, r = _divide256_by(w3, w2, w1, w0, bl)
        return q3, q2, q1, q0, _0, r
    rh, rl = _0, _0
    bits = 256
    # Leading zero words shift in nothing.
    while bits > 64 and w3 == _0:
        w3, w2, w1, w0 = w2, w1, w0, _0
        bits -= 64
    q3, q2, q1, q0 = _0, _0, _0, _0
    for _ in range(bits):
        rh = (rh << _1) | (rl >> _63)
        rl = (rl << _1) | (w3 >> _63)
        w3 = (w3 << _1) | (w2 >> _63)
        w2 = (w2 << _1) | (w1 >> _63)
        w1 = (w1 << _1) | (w0 >> _63)
        w0 = w0 << _1
        q3 = (q3 << _1) | (q2 >> _63)
        q2 = (q2 << _1) | (q1 >> _63)
        q1 = (q1 << _1) | (q0 >> _63)
        q0 = q0 << _1
        if not _below(rh, rl, bh, bl):
            borrow = _1 if rl < bl else _0
            rl = rl - bl
            rh = rh - bh - borrow
            q0 = q0 | _1
    return q3, q2, q1, q0, rh, rl


@subroutine
def _fit256(w3: Any, w2: Any, w1: Any, w0: Any, scale: Any) -> Any:
    """(it fits, high, low, scale): the magnitude rounded half away to the largest scale at which 38 digits hold it."""
    # While it is above 2**168 (50 digits), nine digits can go at once and more than 38 are left.
    while scale >= 9 and (w3 != _0 or w2 >> _40 != _0):
        w3, w2, w1, w0, _ = _divide256_by(w3, w2, w1, w0, _POW10[9])
        scale -= 9
    digit = _0
    while scale >= 1 and (w3 != _0 or w2 != _0 or _too_wide(w1, w0, MAX_DIGITS)):
        w3, w2, w1, w0, digit = _divide256_by(w3, w2, w1, w0, _10)
        scale -= 1
    if digit >= np.uint64(5):
        w0 = w0 + _1
        if w0 == _0:
            w1 = w1 + _1
        if _too_wide(w1, w0, MAX_DIGITS) and scale >= 1:  # 10**38: its last digit is a zero
            w1, w0, _ = _divide_words(_0, w1, w0, _10)
            scale -= 1
    return w3 == _0 and w2 == _0 and not _too_wide(w1, w0, MAX_DIGITS), w1, w0, scale


@subroutine
def _add256(a: Any, b: Any, subtract: Any) -> Any:
    """(negative, four words) of |a| ± |b|, each four words below 2**255."""
    if not subtract:
        w0, carry = _add_carry(a[3], b[3], _0)
        w1, carry = _add_carry(a[2], b[2], carry)
        w2, carry = _add_carry(a[1], b[1], carry)
        return False, a[0] + b[0] + carry, w2, w1, w0
    negative = _below(a[0], a[1], b[0], b[1]) or (a[0] == b[0] and a[1] == b[1] and _below(a[2], a[3], b[2], b[3]))
    if negative:
        a, b = b, a
    # a - b = a + ~b + 1
    w0, carry = _add_carry(a[3], ~b[3], _1)
    w1, carry = _add_carry(a[2], ~b[2], carry)
    w2, carry = _add_carry(a[1], ~b[1], carry)
    return negative, a[0] + ~b[0] + carry, w2, w1, w0


@subroutine
def _too_wide(high: Any, low: Any, digits: Any) -> Any:
    """The magnitude has more than ``digits`` digits (0 <= digits <= 38)."""
    return not _below(high, low, _WIDE_HIGH[digits], _WIDE_LOW[digits])


@subroutine
def _digits(high: Any, low: Any) -> Any:
    """How many decimal digits the magnitude has; 0 for 0."""
    count = 0
    while count < 39 and _too_wide(high, low, count):
        count += 1
    return count


@subroutine
def _scale_of(words: Any, row: Any, scale: Any) -> Any:
    return words[row, 2] if scale < 0 else scale


@subroutine
def _row(words: Any, i: Any) -> Any:
    """Where row *i* of an operand stands."""
    return i if words.shape[0] > 1 else 0


@subroutine
def _narrow(low: Any, high: Any) -> Any:
    """The coefficient is the int64 ``low``."""
    return high == low >> np.int64(63)


@subroutine
def _half_word(value: Any) -> Any:
    """The int64 fits 32 bits."""
    return value == np.int64(np.int32(value))


@subroutine
def _put_narrow(out: Any, row: Any, value: Any, scale: Any) -> Any:
    out[row, 0] = value
    out[row, 1] = value >> np.int64(63)
    if out.shape[1] == 3:
        out[row, 2] = scale


@subroutine
def _put(out: Any, row: Any, negative: Any, high: Any, low: Any, scale: Any) -> Any:
    out[row, 0], out[row, 1] = _signed(negative, high, low)
    if out.shape[1] == 3:
        out[row, 2] = scale


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(VOID(_WORDS, I64, _WORDS, I64, BOOL, _OUT, _STATUS))
def numeric_add(left: Any, left_scale: Any, right: Any, right_scale: Any, subtract: Any, out: Any, status: Any) -> None:
    """left ± right at the larger of the two scales, or what 38 digits hold of it."""
    for i in range(out.shape[0]):
        l, r = _row(left, i), _row(right, i)  # noqa: E741 - left and right
        ls, rs = _scale_of(left, l, left_scale), _scale_of(right, r, right_scale)
        scale = max(ls, rs)
        a, b = left[l, 0], right[r, 0]
        if scale - min(ls, rs) < 19 and _narrow(a, left[l, 1]) and _narrow(b, right[r, 1]):
            a_most, b_most = _NARROW_MOST[scale - ls], _NARROW_MOST[scale - rs]
            if -a_most <= a <= a_most and -b_most <= b <= b_most:
                a, b = a * _NARROW_POW10[scale - ls], b * _NARROW_POW10[scale - rs]
                status[i] = OK
                _put_narrow(out, i, a - b if subtract else a + b, scale)
                continue
        ln, lh, ll = _magnitude(left[l, 0], left[l, 1])
        rn, rh, rl = _magnitude(right[r, 0], right[r, 1])
        rn = rn != subtract
        bad = False
        negative = False
        high, low = _0, _0
        if ls != rs:
            a3, a2, a1, a0, over = _times_ten_to(lh, ll, scale - ls)
            b3, b2, b1, b0, over2 = _times_ten_to(rh, rl, scale - rs)
            bad = over or over2 or a3 >= _TOP or b3 >= _TOP
        else:
            a3, a2, a1, a0 = _0, _0, lh, ll
            b3, b2, b1, b0 = _0, _0, rh, rl
        if bad:
            pass
        elif a3 != _0 or a2 != _0 or b3 != _0 or b2 != _0 or a1 >= _TOP or b1 >= _TOP:
            less, w3, w2, w1, w0 = _add256((a3, a2, a1, a0), (b3, b2, b1, b0), ln != rn)
            negative = ln != less
            if out.shape[1] == 3:
                fits, high, low, scale = _fit256(w3, w2, w1, w0, scale)
            else:
                fits, high, low = w3 == _0 and w2 == _0 and not _too_wide(w1, w0, MAX_DIGITS), w1, w0
            bad = not fits
        else:
            lh, ll, rh, rl = a1, a0, b1, b0
            if ln == rn:
                negative = ln
                low, carry = _add_carry(ll, rl, _0)
                high = lh + rh + carry
            elif _below(lh, ll, rh, rl):
                negative = rn
                low = rl - ll
                high = rh - lh - (_1 if rl < ll else _0)
            else:
                negative = ln
                low = ll - rl
                high = lh - rh - (_1 if ll < rl else _0)
            bad = _too_wide(high, low, MAX_DIGITS)
            if bad and out.shape[1] == 3:
                fits, high, low, scale = _fit256(_0, _0, high, low, scale)
                bad = not fits
        if bad:
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, scale)
        else:
            status[i] = OK
            _put(out, i, negative, high, low, scale)


@kernel(VOID(_WORDS, I64, _WORDS, I64, _OUT, _STATUS))
def numeric_multiply(left: Any, left_scale: Any, right: Any, right_scale: Any, out: Any, status: Any) -> None:
    """left × right at the sum of the scales, or what 38 digits hold of it."""
    for i in range(out.shape[0]):
        l, r = _row(left, i), _row(right, i)  # noqa: E741 - left and right
        scale = _scale_of(left, l, left_scale) + _scale_of(right, r, right_scale)
        a, b = left[l, 0], right[r, 0]
        if _half_word(a) and _half_word(b) and _narrow(a, left[l, 1]) and _narrow(b, right[r, 1]):
            status[i] = OK
            _put_narrow(out, i, a * b, scale)
            continue
        ln, lh, ll = _magnitude(left[l, 0], left[l, 1])
        rn, rh, rl = _magnitude(right[r, 0], right[r, 1])
        if lh == _0 and rh == _0:
            w3, w2 = _0, _0
            w1, w0 = _multiply64(ll, rl)
        else:
            w3, w2, w1, w0 = _multiply128(lh, ll, rh, rl)
        bad = w3 != _0 or w2 != _0 or _too_wide(w1, w0, MAX_DIGITS)
        if bad and out.shape[1] == 3:
            fits, w1, w0, scale = _fit256(w3, w2, w1, w0, scale)
            bad = not fits
        if bad:
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, scale)
        else:
            status[i] = OK
            _put(out, i, ln != rn, w1, w0, scale)


@kernel(VOID(_WORDS, I64, _WORDS, I64, write(I8)))
def numeric_compare(left: Any, left_scale: Any, right: Any, right_scale: Any, out: Any) -> None:
    """out: int8[n]: -1, 0, 1 by value."""
    for i in range(left.shape[0]):
        ln, lh, ll = _magnitude(left[i, 0], left[i, 1])
        rn, rh, rl = _magnitude(right[i, 0], right[i, 1])
        ls, rs = _scale_of(left, i, left_scale), _scale_of(right, i, right_scale)
        lzero, rzero = lh == _0 and ll == _0, rh == _0 and rl == _0
        if lzero and rzero:
            out[i] = 0
            continue
        if ln != rn or lzero or rzero:
            left_less = (ln and not lzero) or (lzero and not rn)
            out[i] = -1 if left_less else 1
            continue
        scale = max(ls, rs)
        a3, a2, a1, a0, over = _times_ten_to(lh, ll, scale - ls)
        b3, b2, b1, b0, over2 = _times_ten_to(rh, rl, scale - rs)
        if over or over2:
            order = 1 if over else -1  # only one side was scaled
        elif a3 == b3 and a2 == b2:
            order = 0
            if a1 != b1 or a0 != b0:
                order = -1 if _below(a1, a0, b1, b0) else 1
        else:
            order = -1 if _below(a3, a2, b3, b2) else 1
        out[i] = -order if ln else order


@kernel(VOID(_WORDS, I64, read(I64), I64, I64, _OUT, _STATUS))
def numeric_rescale(words: Any, scale: Any, target: Any, mode: Any, digits: Any, out: Any, status: Any) -> None:
    """Rounds to ``target`` digits after the point (negative: before it) and shows max(target, 0) of them.

    ``target``: int64[n], or int64[1] for all rows.  ``digits``: the most digits a result may have (<= 38).
    """
    for i in range(words.shape[0]):
        own = _scale_of(words, i, scale)
        goal = target[i] if target.shape[0] > 1 else target[0]
        shown = max(goal, np.int64(0))
        negative, high, low = _magnitude(words[i, 0], words[i, 1])
        bad = False
        up = np.int64(0)
        if goal < own:
            high, low = _divide_ten_to(high, low, own - goal, mode, negative)
            up = shown - goal
        else:
            up = goal - own
        if up > 0:
            w3, w2, high, low, over = _times_ten_to(high, low, up)
            bad = over or w3 != _0 or w2 != _0
        if bad or _too_wide(high, low, digits):
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, shown)
        else:
            status[i] = OK
            _put(out, i, negative, high, low, shown)


@subroutine
def _base10000(high: Any, low: Any, scale: Any) -> Any:
    """(weight, first digit) of the value in base 10,000, digits aligned at the decimal point; (0, 0) for 0."""
    count = _digits(high, low)
    if count == 0:
        return np.int64(0), np.int64(0)
    exponent = np.int64(count) - np.int64(1) - scale
    weight = exponent // 4
    # The first base-10,000 digit holds the leading 1 to 4 decimal digits.
    lead = exponent - weight * 4 + 1
    drop = np.int64(count) - lead
    if drop > 0:
        _, first = _divide_ten_to(high, low, drop, TRUNCATE, False)
        return weight, np.int64(first)
    return weight, np.int64(low) * np.int64(_POW10[-drop])


@kernel(VOID(_WORDS, I64, _WORDS, I64, _OUT, _STATUS))
def numeric_divide(left: Any, left_scale: Any, right: Any, right_scale: Any, out: Any, status: Any) -> None:
    """left / right, rounded half away from zero, with at least 16 significant digits and at least both scales: the
    display scale that PostgreSQL's ``select_div_scale`` picks.  ``out``: int64[n, 3]."""
    for i in range(out.shape[0]):
        l, r = _row(left, i), _row(right, i)  # noqa: E741 - left and right
        ls, rs = _scale_of(left, l, left_scale), _scale_of(right, r, right_scale)
        ln, lh, ll = _magnitude(left[l, 0], left[l, 1])
        rn, rh, rl = _magnitude(right[r, 0], right[r, 1])
        if rh == _0 and rl == _0:
            status[i] = ZERO_DIVISOR
            _put(out, i, False, _0, _0, np.int64(0))
            continue
        lweight, lfirst = _base10000(lh, ll, ls)
        rweight, rfirst = _base10000(rh, rl, rs)
        weight = lweight - rweight
        if lfirst <= rfirst:
            weight -= 1
        scale = max(MIN_SIGNIFICANT_DIGITS - weight * 4, ls, rs, np.int64(0))
        # quotient = left × 10**shift / right; shift >= right's scale >= 0
        shift = scale - ls + rs
        # 256 bits hold 77 digits.  A longer dividend's quotient has more than 38 digits: it loses the last ones anyway.
        excess = max(np.int64(_digits(lh, ll)) + shift - DIVIDEND_DIGITS, np.int64(0))
        scale -= excess
        w3, w2, w1, w0, over = _times_ten_to(lh, ll, shift - excess)
        if over or scale < 0:
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, np.int64(0))
            continue
        q3, q2, q1, q0, mh, ml = _divide256(w3, w2, w1, w0, rh, rl)
        if q3 != _0 or q2 != _0 or _too_wide(q1, q0, MAX_DIGITS):
            fits, q1, q0, scale = _fit256(q3, q2, q1, q0, scale)
            status[i] = OK if fits else OVERFLOW
            _put(out, i, ln != rn, q1 if fits else _0, q0 if fits else _0, scale if fits else np.int64(0))
            continue
        # remainder >= divisor - remainder
        gap_low = rl - ml
        gap_high = rh - mh - (_1 if rl < ml else _0)
        if not _below(mh, ml, gap_high, gap_low):
            q0 = q0 + _1
            if q0 == _0:
                q1 = q1 + _1
        fits = True
        if _too_wide(q1, q0, MAX_DIGITS):  # 10**38 after rounding
            fits, q1, q0, scale = _fit256(_0, _0, q1, q0, scale)
        if not fits:
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, np.int64(0))
        else:
            status[i] = OK
            _put(out, i, ln != rn, q1, q0, scale)


@kernel(VOID(_WORDS, I64, _WORDS, I64, _OUT, _STATUS))
def numeric_remainder(left: Any, left_scale: Any, right: Any, right_scale: Any, out: Any, status: Any) -> None:
    """left - trunc(left / right) × right at the larger of the scales; the sign is the dividend's."""
    for i in range(out.shape[0]):
        l, r = _row(left, i), _row(right, i)  # noqa: E741 - left and right
        ls, rs = _scale_of(left, l, left_scale), _scale_of(right, r, right_scale)
        scale = max(ls, rs)
        ln, lh, ll = _magnitude(left[l, 0], left[l, 1])
        _, rh, rl = _magnitude(right[r, 0], right[r, 1])
        if rh == _0 and rl == _0:
            status[i] = ZERO_DIVISOR
            _put(out, i, False, _0, _0, scale)
            continue
        a3, a2, a1, a0, over = _times_ten_to(lh, ll, scale - ls)
        b3, b2, b1, b0, over2 = _times_ten_to(rh, rl, scale - rs)
        if over or over2 or b3 != _0 or b2 != _0 or b1 >= _TOP:
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, scale)
            continue
        _, _, _, _, mh, ml = _divide256(a3, a2, a1, a0, b1, b0)
        if _too_wide(mh, ml, MAX_DIGITS):
            status[i] = OVERFLOW
            _put(out, i, False, _0, _0, scale)
        else:
            status[i] = OK
            _put(out, i, ln, mh, ml, scale)


@kernel(VOID(_WORDS, I64, write(F64), write(BOOL)))
def numeric_to_float(words: Any, scale: Any, out: Any, exact: Any) -> None:
    """out: float64[n]; exact: bool[n], false where the result may be off by rounding twice (redo those slowly)."""
    for i in range(words.shape[0]):
        own = _scale_of(words, i, scale)
        negative, high, low = _magnitude(words[i, 0], words[i, 1])
        exact[i] = high == _0 and low < (_1 << np.uint64(53)) and own <= 19
        if exact[i]:
            value = np.float64(low) / np.float64(_POW10[own])
            out[i] = -value if negative else value
        else:
            out[i] = 0.0


@kernel(VOID(_WORDS, I64, write(I64)))
def numeric_text_sizes(words: Any, scale: Any, out: Any) -> None:
    """out: int64[n], the length in bytes of each value's text."""
    for i in range(words.shape[0]):
        own = _scale_of(words, i, scale)
        negative, high, low = _magnitude(words[i, 0], words[i, 1])
        whole = max(np.int64(_digits(high, low)) - own, np.int64(1))
        out[i] = whole + (own + 1 if own > 0 else 0) + (1 if negative else 0)


@kernel(VOID(_WORDS, I64, read(I64), write(U8)))
def numeric_format(words: Any, scale: Any, offsets: Any, out: Any) -> None:
    """Writes each value's text at ``offsets[i]`` (int64[n + 1]) of ``out`` (uint8[offsets[n]])."""
    for i in range(words.shape[0]):
        own = _scale_of(words, i, scale)
        negative, high, low = _magnitude(words[i, 0], words[i, 1])
        start, at = offsets[i], offsets[i + 1] - 1
        written = np.int64(0)
        first = start + (1 if negative else 0)
        while at >= first:
            if own > 0 and written == own:
                out[at] = 46
                at -= 1
                written += 1
                continue
            if high == _0:
                digit, low = low % _10, low // _10
            else:
                high, low, digit = _divide_words(_0, high, low, _10)
            out[at] = 48 + np.int64(digit)
            at -= 1
            written += 1
        if negative:
            out[start] = 45


@kernel(VOID(read(U8), read(I64), _OUT, _STATUS))
def numeric_parse(data: Any, offsets: Any, out: Any, status: Any) -> None:
    """Decimal text (blanks around, sign, digits, point, exponent) to out: int64[n, 3].

    ``data``: uint8[…]; row *i* is ``data[offsets[i]:offsets[i + 1]]``.
    """
    for i in range(out.shape[0]):
        at, end = offsets[i], offsets[i + 1]
        while at < end and (data[at] == 32 or (data[at] >= 9 and data[at] <= 13)):
            at += 1
        while end > at and (data[end - 1] == 32 or (data[end - 1] >= 9 and data[end - 1] <= 13)):
            end -= 1
        out[i, 0], out[i, 1], out[i, 2] = 0, 0, 0
        status[i] = INVALID
        negative = False
        if at < end and (data[at] == 43 or data[at] == 45):
            negative = data[at] == 45
            at += 1
        high, low = _0, _0
        scale = np.int64(0)
        seen = np.int64(0)
        point = False
        wide = False
        while at < end:
            byte = data[at]
            if byte == 46 and not point:
                point = True
            elif byte >= 48 and byte <= 57:
                seen += 1
                if point:
                    scale += 1
                if not wide:
                    h0, low = _multiply64(low, _10)
                    high = high * _10 + h0
                    low, carry = _add_carry(low, np.uint64(byte - 48), _0)
                    high = high + carry
                    wide = _too_wide(high, low, MAX_DIGITS)
            else:
                break
            at += 1
        if seen == 0:
            continue
        if at < end and (data[at] == 101 or data[at] == 69):
            at += 1
            down = False
            if at < end and (data[at] == 43 or data[at] == 45):
                down = data[at] == 45
                at += 1
            exponent = np.int64(0)
            count = 0
            while at < end and data[at] >= 48 and data[at] <= 57:
                exponent = min(exponent * 10 + np.int64(data[at] - 48), np.int64(100000))
                count += 1
                at += 1
            if count == 0:
                continue
            scale = scale + exponent if down else scale - exponent
        if at < end:
            continue
        if not wide and scale < 0:
            w3, w2, high, low, over = _times_ten_to(high, low, -scale)
            wide = over or w3 != _0 or w2 != _0 or _too_wide(high, low, MAX_DIGITS)
            scale = np.int64(0)
        if wide or scale > 16383:
            status[i] = OVERFLOW
            continue
        status[i] = OK
        _put(out, i, negative, high, low, scale)
