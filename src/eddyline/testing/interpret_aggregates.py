"""Aggregates over literal rows, from scratch."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

from eddyline.errors import InternalError
from eddyline.expr.ir import AggregateCall, Call, Expr, Literal, LiteralValue
from eddyline.repr.types import BIGINT, BYTEA, NUMERIC, Kind, SqlType
from eddyline.testing.interpret_values import canonical_key, equality_key, sort_key

__all__ = ["aggregate_value"]

_EXACT = Context(prec=200)
Values = Callable[[Expr, Sequence[tuple[LiteralValue, ...]], Sequence[SqlType]], list[LiteralValue]]


def aggregate_value(
    call: AggregateCall,
    members: Sequence[tuple[tuple[LiteralValue, ...], int]],
    types: Sequence[SqlType],
    values: Values,
) -> LiteralValue:
    """``call`` over one group's rows and multiplicities."""
    rows = [row for row, _ in members]
    counts = [n for _, n in members]
    if call.filter is not None:
        truth = values(call.filter, rows, types)
        kept = [i for i, t in enumerate(truth) if t is True]
        rows, counts = [rows[i] for i in kept], [counts[i] for i in kept]
    if not call.args:
        return sum(counts)
    args = [values(a, rows, types) for a in call.args]
    orders = [values(e, rows, types) for e, _, _ in call.order_by]
    entries = [
        (tuple(a[i] for a in args), tuple(o[i] for o in orders), n)
        for i, n in enumerate(counts)
        if args[0][i] is not None
    ]
    if call.distinct:
        entries = _distinct(entries, [a.type for a in call.args])
    entries.sort(key=lambda e: _order(call, e))
    return _compute(call, [(e[0], e[2]) for e in entries], values)


def _distinct(entries: list[Any], types: Sequence[SqlType]) -> list[Any]:
    kept: dict[object, Any] = {}
    for values, order, _ in entries:
        kept.setdefault(tuple(equality_key(v, t) for v, t in zip(values, types, strict=True)), (values, order, 1))
    return list(kept.values())


def _order(call: AggregateCall, entry: Any) -> Any:
    keys = [
        sort_key(v, e.type, desc=desc, nulls_first=nulls)
        for v, (e, desc, nulls) in zip(entry[1], call.order_by, strict=True)
    ]
    return (keys, canonical_key(entry[0], [a.type for a in call.args]))


def _compute(call: AggregateCall, entries: Sequence[tuple[Any, int]], values: Values) -> LiteralValue:
    if call.func == "count":
        return sum(n for _, n in entries)
    if not entries:
        return None
    argument = call.args[0].type
    items = [(v[0], n) for v, n in entries]
    match call.func:
        case "min":
            return min((v for v, _ in items), key=lambda v: sort_key(v, argument))  # type: ignore[no-any-return]  # values come as Any
        case "max":
            return max((v for v, _ in items), key=lambda v: sort_key(v, argument))  # type: ignore[no-any-return]  # values come as Any
        case "bool_and":
            return all(v for v, _ in items)
        case "bool_or":
            return any(v for v, _ in items)
        case "bit_and":
            bits: int = functools.reduce(operator.and_, (v for v, _ in items))
            return bits
        case "bit_or":
            bits = functools.reduce(operator.or_, (v for v, _ in items))
            return bits
        case "bit_xor":
            bits = functools.reduce(operator.xor, (v for v, n in items for _ in range(n)))
            return bits
        case "sum":
            return _sum(items, argument, call.type)
        case "avg":
            return _average(items, argument, call.type, values)
        case "string_agg":
            return _string_agg(entries, call.type)
        case "stddev_samp" | "stddev_pop" | "var_samp" | "var_pop":
            return _deviation(call.func, [_decimal(v) for v, n in items for _ in range(n)], call.type)
    raise InternalError(f"no aggregate {call.func}")


def _sum(items: Sequence[tuple[Any, int]], argument: SqlType, result: SqlType) -> LiteralValue:
    if argument.kind in (Kind.REAL, Kind.DOUBLE):
        return math.fsum(v for v, n in items for _ in range(n))
    if argument.kind is Kind.INTERVAL:
        parts = [[int(p) * n for p in v.split()] for v, n in items]
        return " ".join(str(sum(column)) for column in zip(*parts, strict=True))
    total = Decimal(0)
    for value, n in items:
        total = _EXACT.add(total, _EXACT.multiply(Decimal(str(value)), Decimal(n)))
    return int(total) if result == BIGINT else f"{total:f}"


def _average(items: Sequence[tuple[Any, int]], argument: SqlType, result: SqlType, values: Values) -> LiteralValue:
    count = sum(n for _, n in items)
    if result.kind is Kind.DOUBLE:
        return math.fsum(v for v, n in items for _ in range(n)) / count
    if result.kind is Kind.INTERVAL:
        raise InternalError("no average of intervals here")
    total = str(_sum(items, argument, NUMERIC))
    divided = Call("numeric_div", (Literal(total, NUMERIC), Literal(str(count), NUMERIC)), NUMERIC)
    return values(divided, [()], ())[0]


def _decimal(value: Any) -> Decimal:
    return Decimal(value) if isinstance(value, float) else Decimal(str(value))


def _string_agg(entries: Sequence[tuple[Any, int]], result: SqlType) -> LiteralValue:
    """The first delimiter is not used; a NULL one is empty.  bytea literals are hex digits, which concatenate too."""
    out = ""
    first = True
    for (value, delimiter), n in entries:
        for _ in range(n):
            out += value if first else (delimiter or "") + value
            first = False
    assert result.kind is Kind.TEXT or result == BYTEA
    return out


def _deviation(func: str, items: Sequence[Decimal], result: SqlType) -> LiteralValue:
    """Right to 15 digits and more: compare with a tolerance."""
    count = len(items)
    if any(not item.is_finite() for item in items):
        return "NaN" if result.kind is Kind.NUMERIC else math.nan
    divisor = count * count if func.endswith("_pop") else count * (count - 1)
    if not divisor:
        return None
    total = sum(items, Decimal(0))
    squares = sum((_EXACT.multiply(i, i) for i in items), Decimal(0))
    spread = _EXACT.subtract(_EXACT.multiply(squares, Decimal(count)), _EXACT.multiply(total, total))
    variance = _EXACT.divide(spread, Decimal(divisor))
    value = variance.sqrt(_EXACT) if func.startswith("stddev") else variance
    return float(value) if result.kind is Kind.DOUBLE else f"{value.quantize(Decimal(1).scaleb(-20), context=_EXACT):f}"
