"""Numbers from texts as nearly everybody writes them: a minus at most, digits, a point.

Every other text (signs, blanks, exponents, words, too many digits, no number at all) is called *hard* and left to
whoever knows the whole grammar.  Rows are independent of each other; O(bytes), and at most ``_MOST_BYTES`` of a row
are looked at.  Row *i* is ``data[starts[i]:stops[i]]``; ``valid``: uint8[n], or empty if no row is NULL; a NULL is 0
and not hard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import F64, I64, U8, U64, read, write

__all__ = ["parse_doubles", "parse_doubles_twin", "parse_integers", "parse_integers_twin"]

_0 = np.uint64(0)
_1 = np.uint64(1)
_10 = np.uint64(10)
_MOST_DIGITS = 19  # fit uint64, whatever they are
_MOST_BYTES = 21  # of a row: those digits, a minus and a point
_EXACT = np.uint64(1 << 53)  # up to it integers are doubles, and up to 10**22 powers of ten
_TEN_TO = np.array([float(10**i) for i in range(20)], np.float64)


@subroutine
def _is_null(valid: Any, row: Any) -> Any:
    return valid.shape[0] > 0 and valid[row] == 0


@kernel(I64(read(U8), read(I64), read(I64), read(U8), U64, write(I64), write(U8)))
def parse_integers(data: Any, starts: Any, stops: Any, valid: Any, most: Any, out: Any, hard: Any) -> int:
    """out: int64[n], hard: uint8[n]; how many are hard, whose value is 0.

    ``most``: the largest value; the smallest is ``-most - 1``.  What is beyond is hard.
    """
    count = 0
    for i in range(out.shape[0]):
        out[i] = 0
        hard[i] = 0
        if _is_null(valid, i):
            continue
        at, end = starts[i], stops[i]
        negative = at < end and data[at] == 45
        if negative:
            at += 1
        plain = at < end and end - at <= _MOST_DIGITS
        value = _0
        if plain:
            for k in range(at, end):
                c = data[k]
                if c < 48 or c > 57:
                    plain = False
                    break
                value = value * _10 + np.uint64(c - 48)
        bound = most + _1 if negative else most
        if plain and value <= bound:
            out[i] = -np.int64(value) if negative else np.int64(value)
        else:
            hard[i] = 1
            count += 1
    return count


@kernel(I64(read(U8), read(I64), read(I64), read(U8), write(F64), write(U8)))
def parse_doubles(data: Any, starts: Any, stops: Any, valid: Any, out: Any, hard: Any) -> int:
    """out: float64[n], hard: uint8[n]; how many are hard, whose value is 0.

    A double and a power of ten that are exact have a quotient that is rounded once: the nearest double to the text.
    """
    count = 0
    for i in range(out.shape[0]):
        out[i] = 0.0
        hard[i] = 0
        if _is_null(valid, i):
            continue
        at, end = starts[i], stops[i]
        negative = at < end and data[at] == 45
        if negative:
            at += 1
        plain = end - at <= _MOST_BYTES
        point = False
        digits = decimals = 0
        value = _0
        if plain:
            for k in range(at, end):
                c = data[k]
                if c == 46 and not point:
                    point = True
                elif c < 48 or c > 57:
                    plain = False
                    break
                else:
                    value = value * _10 + np.uint64(c - 48)
                    digits += 1
                    decimals += point
        if plain and 0 < digits <= _MOST_DIGITS and value <= _EXACT:
            magnitude = np.float64(value) / _TEN_TO[decimals]
            out[i] = -magnitude if negative else magnitude
        else:
            hard[i] = 1
            count += 1
    return count


def parse_integers_twin(texts: Sequence[bytes | None], most: int) -> list[int | None]:
    """Each value; None for what is hard."""
    return [0 if text is None else _integer(text, most) for text in texts]


def _integer(text: bytes, most: int) -> int | None:
    if not re.fullmatch(rb"-?[0-9]{1,19}", text):
        return None
    value = int(text)
    return value if -most - 1 <= value <= most else None


def parse_doubles_twin(texts: Sequence[bytes | None]) -> list[float | None]:
    """Each value; None for what is hard."""
    return [0.0 if text is None else _double(text) for text in texts]


def _double(text: bytes) -> float | None:
    digits = text.replace(b".", b"").removeprefix(b"-")
    if not re.fullmatch(rb"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)", text) or len(digits) > 19 or int(digits) > 1 << 53:
        return None
    return float(text)
