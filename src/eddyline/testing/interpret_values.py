"""Equality and order of literal values as SQL has them, by plain Python keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from eddyline.expr.ir import LiteralValue
from eddyline.repr.types import Kind, SqlType

__all__ = ["canonical_key", "equality_key", "sort_key"]

_MICROS_PER_DAY = 86_400_000_000


def comparable(value: LiteralValue, sql_type: SqlType) -> Any:
    """A Python value that orders and compares as SQL does; ``value`` is not NULL."""
    match sql_type.kind:
        case Kind.NUMERIC:
            number = Decimal(str(value))
            return (1, 0) if number.is_nan() else (0, number)
        case Kind.REAL | Kind.DOUBLE:
            real = float(value)  # type: ignore[arg-type]  # not NULL
            return (1, 0.0) if math.isnan(real) else (0, real + 0.0)
        case Kind.INTERVAL:
            months, days, micros = (int(p) for p in str(value).split())
            return (months * 30 + days) * _MICROS_PER_DAY + micros
        case Kind.BPCHAR:
            return str(value).rstrip(" ")
    return value


def equality_key(value: LiteralValue, sql_type: SqlType) -> object:
    """Equal exactly for values that SQL calls equal, NULLs included."""
    return None if value is None else comparable(value, sql_type)


def sort_key(value: LiteralValue, sql_type: SqlType, *, desc: bool = False, nulls_first: bool = False) -> Any:
    """Orders values of one ORDER BY item."""
    if value is None:
        return (0 if nulls_first else 2, 0)
    key = comparable(value, sql_type)
    return (1, _Reversed(key) if desc else key)


def canonical_key(row: Sequence[LiteralValue], types: Sequence[SqlType]) -> Any:
    """Canonical row order: SQL order of the columns left to right, NULL last, then image."""
    keys = [sort_key(v, t) for v, t in zip(row, types, strict=True)]
    return (keys, [_image(v, t) for v, t in zip(row, types, strict=True)])


def _image(value: LiteralValue, sql_type: SqlType) -> tuple[object, ...]:
    """Identity among equal values: a numeric's scale, an interval's parts, the sign of zero."""
    if value is None:
        return ()
    match sql_type.kind:
        case Kind.NUMERIC:
            return (len(str(value).partition(".")[2]),)
        case Kind.INTERVAL:
            return tuple(int(p) for p in str(value).split())
        case Kind.REAL | Kind.DOUBLE:
            return (math.copysign(1.0, float(value)),)
        case Kind.BPCHAR:
            return (len(str(value)),)
    return ()


class _Reversed:
    """A key in descending order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)
