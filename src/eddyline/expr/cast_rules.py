"""Which casts exist and when they apply by themselves: PostgreSQL's ``pg_cast``, type categories, preferred types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from eddyline.expr.operators import same_type
from eddyline.repr.types import ELEMENT_KINDS, Kind, SqlType, numeric

__all__ = ["CastContext", "cast_context", "category", "coerced_type", "common_modifiers", "is_preferred"]

CastContext: TypeAlias = Literal["implicit", "assignment", "explicit"]

K = Kind
TEXTS: Final = frozenset({K.TEXT, K.VARCHAR, K.BPCHAR})
_INTEGERS: Final = frozenset({K.SMALLINT, K.INTEGER, K.BIGINT})

_CATEGORIES: Final[dict[Kind, str]] = {
    K.BOOLEAN: "B",
    **dict.fromkeys((K.SMALLINT, K.INTEGER, K.BIGINT, K.NUMERIC, K.REAL, K.DOUBLE), "N"),
    **dict.fromkeys(TEXTS, "S"),
    **dict.fromkeys((K.DATE, K.TIME, K.TIMESTAMP, K.TIMESTAMPTZ), "D"),
    K.INTERVAL: "T",
    K.BYTEA: "U",
    K.UUID: "U",
    K.JSON: "U",
    **dict.fromkeys(ELEMENT_KINDS, "A"),
    K.UNKNOWN: "X",
}
_PREFERRED: Final = frozenset({K.BOOLEAN, K.DOUBLE, K.TEXT, K.TIMESTAMPTZ, K.INTERVAL})

_CASTS: Final[dict[tuple[Kind, Kind], CastContext]] = {
    (K.SMALLINT, K.INTEGER): "implicit",
    (K.SMALLINT, K.BIGINT): "implicit",
    (K.INTEGER, K.BIGINT): "implicit",
    (K.INTEGER, K.SMALLINT): "assignment",
    (K.BIGINT, K.SMALLINT): "assignment",
    (K.BIGINT, K.INTEGER): "assignment",
    **{(source, target): "implicit" for source in _INTEGERS for target in (K.NUMERIC, K.REAL, K.DOUBLE)},
    **{(source, target): "assignment" for source in (K.NUMERIC, K.REAL, K.DOUBLE) for target in _INTEGERS},
    (K.NUMERIC, K.REAL): "implicit",
    (K.NUMERIC, K.DOUBLE): "implicit",
    (K.REAL, K.NUMERIC): "assignment",
    (K.DOUBLE, K.NUMERIC): "assignment",
    (K.REAL, K.DOUBLE): "implicit",
    (K.DOUBLE, K.REAL): "assignment",
    (K.INTEGER, K.BOOLEAN): "explicit",
    (K.BOOLEAN, K.INTEGER): "explicit",
    **{(source, target): "implicit" for source in TEXTS for target in TEXTS if source is not target},
    (K.DATE, K.TIMESTAMP): "implicit",
    (K.DATE, K.TIMESTAMPTZ): "implicit",
    (K.TIMESTAMP, K.TIMESTAMPTZ): "implicit",
    (K.TIMESTAMPTZ, K.TIMESTAMP): "assignment",
    (K.TIMESTAMP, K.DATE): "assignment",
    (K.TIMESTAMP, K.TIME): "assignment",
    (K.TIMESTAMPTZ, K.DATE): "assignment",
    (K.TIMESTAMPTZ, K.TIME): "assignment",
    (K.TIME, K.INTERVAL): "implicit",
    (K.INTERVAL, K.TIME): "assignment",
}


def cast_context(source: SqlType, target: SqlType) -> CastContext | None:
    """The weakest context in which ``source`` becomes ``target``; None if there is no cast."""
    return cast_context_of_kinds(source.kind, target.kind)


def cast_context_of_kinds(source: Kind, target: Kind) -> CastContext | None:
    if source is target or source is K.UNKNOWN:
        return "implicit"
    if source in ELEMENT_KINDS and target in ELEMENT_KINDS and not target.value.endswith("vector"):
        return cast_context_of_kinds(ELEMENT_KINDS[source], ELEMENT_KINDS[target])
    known = _CASTS.get((source, target))
    if known is not None:
        return known
    if target in TEXTS:
        return "assignment"  # through the output function
    readable = target not in (K.UNKNOWN, K.JSON)
    return "explicit" if source in TEXTS and readable else None  # through the input function


def category(kind: Kind) -> str:
    """``pg_type.typcategory``: B boolean, N numeric, S string, D date/time, T timespan, U other, X unknown."""
    return _CATEGORIES[kind]


def is_preferred(kind: Kind) -> bool:
    """``pg_type.typispreferred``: what its category's ambiguities resolve to."""
    return kind in _PREFERRED


def coerced_type(source: SqlType, kind: Kind) -> SqlType:
    """The type to cast ``source`` to when a value of ``kind`` is wanted without modifiers; ``source`` itself if it
    is of that kind.  An integer becomes numeric with scale 0."""
    if source.kind is kind:
        return source
    return numeric(0) if kind is K.NUMERIC and source.kind in _INTEGERS else SqlType(kind)


def common_modifiers(types: Sequence[SqlType]) -> SqlType:
    """The type that values of all ``types``, of one kind, can be relabelled or widened to."""
    return same_type(types)
