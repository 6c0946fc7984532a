"""The signatures of aggregates, with PostgreSQL's result types."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.expr.registry import AggregateOverload, declare_aggregate
from eddyline.repr.types import (
    ARRAY_KINDS,
    BIGINT,
    BOOLEAN,
    BYTEA,
    DOUBLE,
    ELEMENT_KINDS,
    INTERVAL,
    NUMERIC,
    REAL,
    TEXT,
    Kind,
    SqlType,
    is_array,
    numeric,
)

__all__: list[str] = []

K = Kind
_INTEGERS = (K.SMALLINT, K.INTEGER, K.BIGINT)
_EXACT = (*_INTEGERS, K.NUMERIC)
_ORDERED = (
    *_EXACT,
    K.REAL,
    K.DOUBLE,
    K.TEXT,
    K.BPCHAR,
    K.DATE,
    K.TIME,
    K.TIMESTAMP,
    K.TIMESTAMPTZ,
    K.INTERVAL,
    *ELEMENT_KINDS,
)
_DEVIATIONS = {
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
}


def _own_scale(types: Sequence[SqlType]) -> SqlType:
    return numeric(types[0].scale)


def _own_type(types: Sequence[SqlType]) -> SqlType:
    """The argument's without its modifiers, as far as the layout allows: arrays keep them."""
    own = types[0]
    if is_array(own):
        return own
    return numeric(own.scale) if own.kind is K.NUMERIC else SqlType(own.kind)


def _own_array(types: Sequence[SqlType]) -> SqlType:
    own = types[0]
    return SqlType(ARRAY_KINDS[own.kind], own.precision, own.scale, own.length, own.of_oids)


def _one(name: str, kind: Kind, result: SqlType, func: str | None = None) -> None:
    declare_aggregate(AggregateOverload(name, (kind,), result, func or name))


def _declare_sums() -> None:
    sums = {
        K.SMALLINT: BIGINT,
        K.INTEGER: BIGINT,
        K.BIGINT: numeric(0),
        K.REAL: REAL,
        K.DOUBLE: DOUBLE,
        K.INTERVAL: INTERVAL,
    }
    for kind, result in sums.items():
        _one("sum", kind, result)
    declare_aggregate(AggregateOverload("sum", (K.NUMERIC,), _own_scale, "sum"))
    for kind in _EXACT:
        _one("avg", kind, NUMERIC)
    for kind in (K.REAL, K.DOUBLE):
        _one("avg", kind, DOUBLE)
    _one("avg", K.INTERVAL, INTERVAL)


def _declare_others() -> None:
    declare_aggregate(
        AggregateOverload("count", (), BIGINT, "count"), AggregateOverload("count", None, BIGINT, "count")
    )
    for name in ("min", "max"):
        declare_aggregate(*(AggregateOverload(name, (kind,), _own_type, name) for kind in _ORDERED))
    for name, func in {"bool_and": "bool_and", "every": "bool_and", "bool_or": "bool_or"}.items():
        _one(name, K.BOOLEAN, BOOLEAN, func)
    for name in ("bit_and", "bit_or", "bit_xor"):
        declare_aggregate(*(AggregateOverload(name, (kind,), _own_type, name) for kind in _INTEGERS))
    for name, func in _DEVIATIONS.items():
        for kind in _EXACT:
            _one(name, kind, NUMERIC, func)
        for kind in (K.REAL, K.DOUBLE):
            _one(name, kind, DOUBLE, func)
    declare_aggregate(
        *(AggregateOverload("array_agg", (kind,), _own_array, "array_agg") for kind in ARRAY_KINDS),
        AggregateOverload("string_agg", (K.TEXT, K.TEXT), TEXT, "string_agg"),
        AggregateOverload("string_agg", (K.BYTEA, K.BYTEA), BYTEA, "string_agg"),
    )


_declare_sums()
_declare_others()
