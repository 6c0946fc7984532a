"""GROUP BY from reduce, distinct and top-k: one part per way of keeping state, joined on the keys.

Every part has every group, because FILTER and DISTINCT only turn arguments into NULLs, never drop rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from eddyline.expr.ir import AggregateCall, Case, Column, Expr, Literal, SortKey
from eddyline.plan.dataflow import ConstantSource, Distinct, Reduce, ReduceFunctions, TopK
from eddyline.plan.intern import expression_key
from eddyline.plan.lower_join import EquiPair, join_on_keys
from eddyline.plan.operators import OperatorList, Stream
from eddyline.plan.predicates import fallible

__all__ = ["lower_reduce"]

_BASIC = frozenset({"string_agg", "array_agg"})
_EXTREMES = frozenset({"min", "max"})
#: DISTINCT makes no difference to these
_IDEMPOTENT = frozenset({"min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"})


class _Part(NamedTuple):
    """``stream``: the keys, then the aggregates ``calls[i]`` (numbers in the relation)."""

    stream: Stream
    calls: tuple[int, ...]


def lower_reduce(
    source: Stream, keys: Sequence[Expr], aggregates: Sequence[AggregateCall], *, global_row: bool, single_time: bool
) -> Stream:
    """Keys then aggregates; one row for each group, or exactly one if ``global_row``.

    ``single_time``: for a dataflow with one time, in which min and max need no top-k of their own.
    """
    width = len(keys)
    if not aggregates:
        if global_row:
            return source.into.stream(ConstantSource(((),), ()))
        grouped = source.map(keys)
        before = len(source.types)
        only_keys = grouped.project(range(before, before + width))
        return source.into.stream(Distinct(only_keys.position(), only_keys.types))
    prepared, calls = _prepare(source, keys, aggregates)
    parts = _parts(prepared, width, calls, global_row=global_row, single_time=single_time)
    return _joined(parts, width, len(calls))


def _prepare(
    source: Stream, keys: Sequence[Expr], aggregates: Sequence[AggregateCall]
) -> tuple[Stream, list[AggregateCall]]:
    """The stream of key columns and argument columns, and the calls over columns of it."""
    exprs = list(keys)
    numbers = {expression_key(e): i for i, e in reversed(list(enumerate(exprs)))}

    def column(expr: Expr) -> Expr:
        if isinstance(expr, Literal):
            return expr
        key = expression_key(expr)
        if key not in numbers:
            numbers[key] = len(exprs)
            exprs.append(expr)
        return Column(numbers[key], expr.type)

    calls = [_over_columns(_guarded(a), column) for a in aggregates]
    before = len(source.types)
    prepared = source.map(exprs).project(range(before, before + len(exprs)))
    return prepared.rendered(), calls


def _guarded(call: AggregateCall) -> AggregateCall:
    """FILTER as a CASE in the arguments where the call cannot keep it, or where it guards a fallible argument."""
    call = msgspec.structs.replace(call, distinct=call.distinct and call.func not in _IDEMPOTENT)
    if call.filter is None or not call.args:
        return call
    own = (*call.args, *(e for e, _, _ in call.order_by))
    keeps = call.func not in _EXTREMES and not call.distinct
    if keeps and not any(fallible(e) for e in own):
        return call
    condition = call.filter

    def guard(expr: Expr) -> Expr:
        return Case(((condition, expr),), Literal(None, expr.type), expr.type)

    # The first argument decides: every aggregate skips rows where it is NULL, but for array_agg, which asks a second.
    if call.func == "array_agg":
        return _array_under(call, condition)
    args = (guard(call.args[0]), *(guard(a) if fallible(a) else a for a in call.args[1:]))
    # Under DISTINCT an ORDER BY item is an argument, and must stay the same one.
    changed = {expression_key(old): new for old, new in zip(call.args, args, strict=True)}
    order_by = tuple(
        (changed.get(expression_key(e), guard(e) if fallible(e) else e), d, n) for e, d, n in call.order_by
    )
    return msgspec.structs.replace(call, args=args, order_by=order_by, filter=None)


def _array_under(call: AggregateCall, condition: Expr) -> AggregateCall:
    """array_agg with its condition as its second argument."""

    def guard(expr: Expr) -> Expr:
        return Case(((condition, expr),), Literal(None, expr.type), expr.type) if fallible(expr) else expr

    changed = {expression_key(call.args[0]): guard(call.args[0])}
    order_by = tuple((changed.get(expression_key(e), guard(e)), d, n) for e, d, n in call.order_by)
    return msgspec.structs.replace(call, args=(guard(call.args[0]), condition), order_by=order_by, filter=None)


def _over_columns(call: AggregateCall, column: Callable[[Expr], Expr]) -> AggregateCall:
    return msgspec.structs.replace(
        call,
        args=tuple(column(a) for a in call.args),
        filter=None if call.filter is None else column(call.filter),
        order_by=tuple((column(e), desc, nulls_first) for e, desc, nulls_first in call.order_by),
    )


def _parts(
    prepared: Stream, width: int, calls: Sequence[AggregateCall], *, global_row: bool, single_time: bool
) -> list[_Part]:
    parts: list[_Part] = []
    groups: dict[tuple[str, tuple[Expr, ...] | None], list[int]] = {}
    for i, call in enumerate(calls):
        groups.setdefault(_way(call, single_time=single_time), []).append(i)
    for (way, arguments), members in groups.items():
        chosen = [calls[i] for i in members]
        if way in _EXTREMES:
            stream = _extreme(prepared, width, chosen[0], global_row=global_row)
            stream = stream.project((*range(width), *(width for _ in members)))
        else:
            over, chosen = (prepared, chosen) if arguments is None else _distinct(prepared, width, chosen)
            stream = _reduce(over, width, chosen, ReduceFunctions(way), global_row=global_row)
        parts.append(_Part(stream, tuple(members)))
    return parts


def _way(call: AggregateCall, *, single_time: bool) -> tuple[str, tuple[Expr, ...] | None]:
    """Calls with one way share a part: min or max of an argument, or functions over all or over distinct arguments."""
    if call.func in _EXTREMES and not single_time:
        return (call.func, call.args)
    functions = ReduceFunctions.BASIC if call.func in _BASIC else ReduceFunctions.ACCUMULABLE
    return (functions.value, call.args if call.distinct else None)


def _reduce(
    source: Stream, width: int, calls: Sequence[AggregateCall], functions: ReduceFunctions, *, global_row: bool
) -> Stream:
    types = (*source.types[:width], *(c.type for c in calls))
    position = source.position()
    key = tuple(range(width))
    return source.into.stream(Reduce(position, key, tuple(calls), functions, types, global_row=global_row))


def _distinct(prepared: Stream, width: int, calls: Sequence[AggregateCall]) -> tuple[Stream, list[AggregateCall]]:
    """Keys and arguments once each, and the calls over them.  The calls have the same arguments."""
    arguments = [a.index for a in calls[0].args if isinstance(a, Column)]
    columns = list(dict.fromkeys((*range(width), *arguments)))
    narrow = prepared.project(columns)
    distinct = prepared.into.stream(Distinct(narrow.position(), narrow.types))

    def moved(expr: Expr) -> Expr:
        return Column(columns.index(expr.index), expr.type) if isinstance(expr, Column) else expr

    plain = [msgspec.structs.replace(_over_columns(c, moved), distinct=False) for c in calls]
    return distinct, plain


def _extreme(prepared: Stream, width: int, call: AggregateCall, *, global_row: bool) -> Stream:
    """The top row of each group.  NULLs come last, so that they win only where there is nothing else."""
    (argument,) = call.args
    if isinstance(argument, Column):
        values = prepared.project((*range(width), argument.index))
    else:
        values = prepared.map([argument]).project((*range(width), len(prepared.types)))
    into: OperatorList = prepared.into
    if global_row:  # a NULL beside the values makes the one row that no input would leave out
        nothing = into.stream(ConstantSource(((None,),), values.types))
        values = into.union(values, nothing)
    order = (SortKey(width, desc=call.func == "max", nulls_first=False),)
    return into.stream(TopK(values.position(), tuple(range(width)), order, 1, 0, values.types, call.func))


def _joined(parts: Sequence[_Part], width: int, calls: int) -> Stream:
    """The parts joined on the keys, aggregates in the order of the relation."""
    stream, numbers = parts[0].stream, list(parts[0].calls)
    for part in parts[1:]:
        right = part.stream
        pairs = [EquiPair(Column(k, stream.types[k]), Column(k, right.types[k]), null_safe=True) for k in range(width)]
        left_width = len(stream.types)
        joined = join_on_keys(stream, right, pairs)
        right_values = range(left_width + width, left_width + len(right.types))
        stream = joined.project((*range(left_width), *right_values))
        numbers.extend(part.calls)
    return stream.project((*range(width), *(width + numbers.index(i) for i in range(calls))))
