"""Multiset interpreters: what a relation means, and what a list of operators computes, row by row.

Plain Python, without the engine's evaluator, so that thousands of random plans take seconds; a sample is compared with
``eddyline.testing.interpret``.  Values are ints, bools, strings and None.  A row is a tuple, a collection a ``Counter``
that may go negative.
Evaluating a failing expression raises ``RowFailure``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any

from eddyline.expr import ir
from eddyline.plan import dataflow as df
from eddyline.plan import relation as rel
from eddyline.repr.types import TEXT

Value = Any
Row = tuple[Value, ...]
Bag = Counter[Row]


class RowFailure(Exception):
    """An expression failed on a row."""


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise RowFailure("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


STRICT: dict[str, Callable[..., Value]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "not": lambda a: not a,
    "int_add": lambda a, b: a + b,
    "int_div": _divide,
}
LENIENT: dict[str, Callable[..., Value]] = {
    "is_null": lambda a: a is None,
    "is_not_null": lambda a: a is not None,
    "is_true": lambda a: a is True,
    "is_not_distinct_from": lambda a, b: a == b,
    "is_distinct_from": lambda a, b: a != b,
}


def scalar(expr: ir.Expr, row: Row) -> Value:
    match expr:
        case ir.Column():
            return row[expr.index]
        case ir.Literal():
            return expr.value
        case ir.Cast():
            value = scalar(expr.input, row)
            return str(value) if value is not None and expr.type == TEXT else value
        case ir.Raise():
            raise RowFailure(expr.message)
        case ir.Case():
            for condition, result in expr.whens:
                if scalar(condition, row) is True:
                    return scalar(result, row)
            return scalar(expr.otherwise, row)
        case ir.Coalesce():
            for arg in expr.args:
                if (value := scalar(arg, row)) is not None:
                    return value
            return None
        case ir.And() | ir.Or():
            absorbing = isinstance(expr, ir.Or)
            seen: Value = not absorbing
            for arg in expr.args:
                value = scalar(arg, row)
                if value is absorbing:
                    return absorbing
                if value is None:
                    seen = None
            return seen
        case ir.Call():
            args = [scalar(a, row) for a in expr.args]
            if expr.func in LENIENT:
                return LENIENT[expr.func](*args)
            return None if None in args else STRICT[expr.func](*args)
        case _:
            raise AssertionError(expr)


def _passes(predicates: Iterable[ir.Expr], row: Row) -> bool:
    return all(scalar(p, row) is True for p in predicates)


def _mapped(exprs: Iterable[ir.Expr], row: Row) -> Row:
    for expr in exprs:
        row = (*row, scalar(expr, row))
    return row


def _compare(a: Value, b: Value, *, desc: bool, nulls_first: bool) -> int:
    if a == b:
        return 0
    if a is None or b is None:
        return -1 if (a is None) == nulls_first else 1
    return (-1 if a < b else 1) * (-1 if desc else 1)


def ordered(rows: Iterable[Row], order: Iterable[tuple[int, bool, bool]]) -> list[Row]:
    """By the order, ties by the canonical row order."""
    keys = list(order)

    def compare(a: Row, b: Row) -> int:
        for column, desc, nulls_first in keys:
            if result := _compare(a[column], b[column], desc=desc, nulls_first=nulls_first):
                return result
        for x, y in zip(a, b, strict=True):
            if result := _compare(x, y, desc=False, nulls_first=False):
                return result
        return 0

    return sorted(rows, key=cmp_to_key(compare))


def aggregate(call: ir.AggregateCall, rows: list[Row]) -> Value:
    if call.filter is not None:
        rows = [r for r in rows if scalar(call.filter, r) is True]
    if call.func == "count" and not call.args:
        return len(rows)
    tuples = [(*(scalar(a, r) for a in call.args), *(scalar(e, r) for e, _, _ in call.order_by)) for r in rows]
    tuples = [t for t in tuples if t[0] is not None]
    if call.distinct:
        tuples = list(dict.fromkeys(tuples))
    values = [t[0] for t in tuples]
    match call.func:
        case "count":
            return len(values)
        case "sum":
            return sum(values) if values else None
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
        case "bool_and":
            return all(values) if values else None
        case "string_agg":
            width = len(call.args)
            order = [(width + i, d, n) for i, (_, d, n) in enumerate(call.order_by)]
            return tuples[0][1].join(t[0] for t in ordered(tuples, order)) if tuples else None
        case _:
            raise AssertionError(call.func)


def _rows(bag: Bag) -> list[Row]:
    return [row for row, count in bag.items() for _ in range(count)]


def group(bag: Bag, key: Callable[[Row], Row]) -> dict[Row, list[Row]]:
    groups: dict[Row, list[Row]] = {}
    for row in _rows(bag):
        groups.setdefault(key(row), []).append(row)
    return groups


def reduce(bag: Bag, keys: tuple[ir.Expr, ...], calls: tuple[ir.AggregateCall, ...], *, global_row: bool) -> Bag:
    groups = group(bag, lambda row: tuple(scalar(k, row) for k in keys))
    if global_row:
        groups.setdefault((), [])
    return Counter((*key, *(aggregate(c, rows) for c in calls)) for key, rows in groups.items())


def top_k(bag: Bag, columns: tuple[int, ...], order: tuple[ir.SortKey, ...], limit: int | None, offset: int) -> Bag:
    out: Bag = Counter()
    keys = [(k.column, k.desc, k.nulls_first) for k in order]
    for rows in group(bag, lambda row: tuple(row[c] for c in columns)).values():
        out.update(ordered(rows, keys)[offset : None if limit is None else offset + limit])
    return out


def _each(bag: Bag, change: Callable[[Row], Row]) -> Bag:
    out: Bag = Counter()
    for row, count in bag.items():
        out[change(row)] += count
    return _live(out)


def _live(bag: Bag) -> Bag:
    return Counter({row: count for row, count in bag.items() if count})


def _series(bag: Bag, args: tuple[ir.Expr, ...]) -> Bag:
    out: Bag = Counter()
    for row, count in bag.items():
        bounds = [scalar(a, row) for a in args]
        if None not in bounds:
            for value in range(bounds[0], bounds[1] + 1):
                out[(*row, value)] += count
    return out


def relation(plan: rel.Relation, tables: Mapping[str, Bag], names: Mapping[str, Bag] | None = None) -> Bag:
    names = names or {}

    def of(node: rel.Relation) -> Bag:
        return relation(node, tables, names)

    match plan:
        case rel.Constant():
            return Counter(plan.rows)
        case rel.Get():
            return tables[plan.id]
        case rel.LocalGet():
            return names[plan.name]
        case rel.Let():
            return relation(plan.body, tables, {**names, plan.name: of(plan.value)})
        case rel.Recursive():
            raise NotImplementedError("plans have no recursion once they are unrolled")
        case rel.Project():
            return _each(of(plan.input), lambda row: tuple(row[c] for c in plan.columns))
        case rel.Map():
            return _each(of(plan.input), lambda row: _mapped(plan.exprs, row))
        case rel.Filter():
            return Counter({r: c for r, c in of(plan.input).items() if _passes(plan.predicates, r)})
        case rel.FlatMap():
            return _series(of(plan.input), plan.args)
        case rel.Join():
            return _join(plan, of(plan.left), of(plan.right))
        case rel.Reduce():
            return reduce(of(plan.input), plan.keys, plan.aggregates, global_row=plan.global_row)
        case rel.Distinct():
            return Counter({r: 1 for r, c in of(plan.input).items() if c > 0})
        case rel.Threshold():
            return +of(plan.input)
        case rel.Negate():
            return Counter({r: -c for r, c in of(plan.input).items()})
        case rel.TopK():
            limit = None if plan.limit is None else scalar(plan.limit, ())
            offset = 0 if plan.offset is None else scalar(plan.offset, ())
            return top_k(of(plan.input), plan.group, plan.order, limit, offset)
        case rel.Union():
            return _sum(of(i) for i in plan.inputs)


def _sum(bags: Iterable[Bag]) -> Bag:
    out: Bag = Counter()
    for bag in bags:
        for row, count in bag.items():
            out[row] += count
    return _live(out)


def _join(plan: rel.Join, left: Bag, right: Bag) -> Bag:
    pairs: Bag = Counter()
    matched_left: set[Row] = set()
    matched_right: set[Row] = set()
    for a, m in left.items():
        for b, n in right.items():
            if _passes(plan.on, (*a, *b)):
                pairs[(*a, *b)] += m * n
                matched_left.add(a)
                matched_right.add(b)
    kinds = rel.JoinKind
    if plan.kind is kinds.SEMI:
        return Counter({a: m for a, m in left.items() if a in matched_left})
    if plan.kind is kinds.ANTI:
        return Counter({a: m for a, m in left.items() if a not in matched_left})
    if plan.kind in (kinds.LEFT, kinds.FULL):
        pad = (None,) * len(plan.right.types)
        pairs.update({(*a, *pad): m for a, m in left.items() if a not in matched_left})
    if plan.kind in (kinds.RIGHT, kinds.FULL):
        pad = (None,) * len(plan.left.types)
        pairs.update({(*pad, *b): n for b, n in right.items() if b not in matched_right})
    return pairs


def apply_mfp(mfp: ir.Mfp, bag: Bag) -> Bag:
    out: Bag = Counter()
    for row, count in bag.items():
        dropped = False
        for step in mfp.steps:
            if isinstance(step, df.MapStep):
                row = (*row, scalar(step.expr, row))
            elif scalar(step.predicate, row) is not True:
                dropped = True
                break
        if not dropped:
            out[tuple(row[c] for c in mfp.projection)] += count
    return _live(out)


def operators(plan: tuple[df.Operator, ...], tables: Mapping[str, Bag], indexes: Mapping[str, str]) -> Bag:
    """The output of the last operator.  ``indexes``: index id -> the object it is on."""
    outputs: list[Bag] = []
    for operator in plan:
        outputs.append(_operator(operator, plan, outputs, tables, indexes))
    return outputs[-1]


def _operator(
    op: df.Operator,
    plan: tuple[df.Operator, ...],
    outputs: list[Bag],
    tables: Mapping[str, Bag],
    indexes: Mapping[str, str],
) -> Bag:
    match op:
        case df.ImportSource():
            return tables[op.id]
        case df.ImportIndex():
            return tables[indexes[op.id]]
        case df.ConstantSource():
            return Counter(op.rows)
        case df.BatchSource():
            raise NotImplementedError("rows at hand are put in when a plan is run")
        case df.MapFilterProject():
            return apply_mfp(op.mfp, outputs[op.input])
        case df.FlatMap():
            series = _series(outputs[op.input], op.args)
            return series if op.mfp is None else apply_mfp(op.mfp, series)
        case df.Union():
            return _sum(outputs[i] for i in op.inputs)
        case df.Negate():
            return Counter({r: -c for r, c in outputs[op.input].items()})
        case df.Join():
            return _equijoin(op, plan, outputs)
        case df.Reduce():
            keys = tuple(ir.Column(c, plan[op.input].types[c]) for c in op.key)
            return reduce(outputs[op.input], keys, op.aggregates, global_row=op.global_row)
        case df.Distinct():
            return Counter({r: 1 for r, c in outputs[op.input].items() if c > 0})
        case df.Threshold():
            return +outputs[op.input]
        case df.TopK():
            return top_k(outputs[op.input], op.group, op.order, op.limit, op.offset)
        case df.Arrange() | df.ExportIndex() | df.ExportMaterializedView() | df.ExportSubscribe():
            return outputs[op.input]


def _equijoin(op: df.Join, plan: tuple[df.Operator, ...], outputs: list[Bag]) -> Bag:
    left, right = plan[op.left], plan[op.right]
    assert isinstance(left, (df.Arrange, df.ImportIndex))
    assert isinstance(right, (df.Arrange, df.ImportIndex))
    left_key = [left.types[c] for c in left.key]
    assert left_key == [right.types[c] for c in right.key]
    assert len(op.null_safe) == len(left_key)
    pairs: Bag = Counter()
    for a, m in outputs[op.left].items():
        for b, n in outputs[op.right].items():
            keys = zip(left.key, right.key, op.null_safe, strict=True)
            if all(a[i] == b[j] and (safe or a[i] is not None) for i, j, safe in keys):
                pairs[(*a, *b)] += m * n
    return apply_mfp(op.mfp, _live(pairs))
