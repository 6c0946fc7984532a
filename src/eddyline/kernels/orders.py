"""SQL order of two values that kernels hold or point at: -1, 0, 1.

Like the loads of ``kernels.memory`` these are parts of the kernels that call them, whose cached code they are compiled
into: what a name means never changes (add a new name instead).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from eddyline.kernels.kernel import subroutine
from eddyline.kernels.memory import load_i64, load_u8, load_u64

__all__ = ["bit", "compare_bytes", "compare_floats", "compare_ints", "compare_numeric", "compare_wide", "unpadded"]

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_10: Final = np.uint64(10)
_32: Final = np.uint64(32)
_LOW32: Final = np.uint64(0xFFFFFFFF)
_BLANK: Final = np.uint64(0x20)


@subroutine
def bit(address: Any, position: Any) -> Any:
    """uint64 0 or 1."""
    return (load_u8(address + (position >> 3)) >> np.uint64(position & 7)) & _ONE


@subroutine
def compare_wide(a: Any, b: Any) -> Any:
    """Two 128-bit integers by address."""
    x = load_i64(a + 8)
    y = load_i64(b + 8)
    if x != y:
        return -1 if x < y else 1
    p = load_u64(a)
    q = load_u64(b)
    if p != q:
        return -1 if p < q else 1
    return 0


@subroutine
def compare_numeric(a: Any, b: Any) -> Any:
    """By value: the magnitude with fewer decimals is scaled up until it is as fine or has outgrown 128 bits."""
    a_high = load_i64(a + 8)
    b_high = load_i64(b + 8)
    a_scale = load_i64(a + 16)
    b_scale = load_i64(b + 16)
    if a_scale == b_scale:
        return compare_wide(a, b)
    a_low = load_u64(a)
    b_low = load_u64(b)
    a_sign = -1 if a_high < 0 else (0 if a_high == 0 and a_low == _ZERO else 1)
    b_sign = -1 if b_high < 0 else (0 if b_high == 0 and b_low == _ZERO else 1)
    if a_sign != b_sign:
        return -1 if a_sign < b_sign else 1
    if a_sign == 0:
        return 0
    ah = np.uint64(a_high)
    bh = np.uint64(b_high)
    if a_sign < 0:
        a_low = ~a_low + _ONE
        ah = ~ah + (_ONE if a_low == _ZERO else _ZERO)
        b_low = ~b_low + _ONE
        bh = ~bh + (_ONE if b_low == _ZERO else _ZERO)
    scale_a = a_scale < b_scale
    high = ah if scale_a else bh
    low = a_low if scale_a else b_low
    steps = b_scale - a_scale if scale_a else a_scale - b_scale
    outgrown = False
    while steps > 0:
        p0 = (low & _LOW32) * _10
        p1 = (low >> _32) * _10 + (p0 >> _32)
        p2 = (high & _LOW32) * _10 + (p1 >> _32)
        p3 = (high >> _32) * _10 + (p2 >> _32)
        if p3 >> _32 != _ZERO:
            outgrown = True
            break
        low = (p1 << _32) | (p0 & _LOW32)
        high = (p3 << _32) | (p2 & _LOW32)
        steps -= 1
    order = 1
    if not outgrown:
        other_high = bh if scale_a else ah
        other_low = b_low if scale_a else a_low
        if high == other_high and low == other_low:
            return 0
        order = -1 if high < other_high or (high == other_high and low < other_low) else 1
    if not scale_a:
        order = -order
    return order * a_sign


@subroutine
def compare_bytes(a: Any, a_size: Any, b: Any, b_size: Any) -> Any:
    """As unsigned bytes, a prefix first; addresses and lengths."""
    size = min(a_size, b_size)
    at = 0
    while at + 8 <= size and load_u64(a + at) == load_u64(b + at):
        at += 8
    while at < size:
        x = load_u8(a + at)
        y = load_u8(b + at)
        if x != y:
            return -1 if x < y else 1
        at += 1
    if a_size != b_size:
        return -1 if a_size < b_size else 1
    return 0


@subroutine
def compare_floats(x: Any, y: Any) -> Any:
    """-0 and 0 are equal, so are all NaNs, which come last."""
    if x < y:
        return -1
    if x > y:
        return 1
    if x == y:
        return 0
    x_nan = np.isnan(x)
    y_nan = np.isnan(y)
    if x_nan and y_nan:
        return 0
    return 1 if x_nan else -1


@subroutine
def compare_ints(x: Any, y: Any) -> Any:
    """Two int64."""
    if x == y:
        return 0
    return -1 if x < y else 1


@subroutine
def unpadded(address: Any, size: Any) -> Any:
    """The size of a char value without the blanks at its end, which are shown and not compared."""
    while size > 0 and load_u8(address + size - 1) == _BLANK:
        size -= 1
    return size
