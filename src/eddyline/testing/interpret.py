"""A from-scratch evaluator of relational plans over bags of literal rows: the recompute oracle.

It follows ``plan.relation``'s meaning word by word and shares nothing with the engine but the scalar expressions.
Rows are tuples of ``LiteralValue``; a bag maps each row (by identity, so 1.0 and 1.00 differ) to its multiplicity.
Cost: quadratic joins, Python objects everywhere; for tests of at most a few thousand rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from eddyline.errors import InternalError, make_error
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Call, Column, Expr, Literal, LiteralValue, Parameter, SortKey, columns_of, rewrite
from eddyline.expr.literals import literal_scalar, scalar_literal
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
    Let,
    LocalGet,
    Map,
    Negate,
    Project,
    Recursive,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from eddyline.repr.types import Kind, SqlType, arrow_type
from eddyline.testing.interpret_aggregates import aggregate_value
from eddyline.testing.interpret_values import canonical_key, equality_key, sort_key

__all__ = ["Bag", "Row", "evaluate_rows", "interpret", "order_rows"]

Row: TypeAlias = tuple[LiteralValue, ...]
Bag: TypeAlias = Counter[Row]


def interpret(
    relation: Relation,
    tables: Mapping[str, Bag | Sequence[Row]],
    parameters: Mapping[int, LiteralValue] | None = None,
) -> Bag:
    """The bag that ``relation`` denotes; ``tables`` by the id of ``Get``.

    The first row error met is raised.
    """
    return _Interpreter(tables, parameters or {}).run(relation)


def evaluate_rows(expr: Expr, rows: Sequence[Row], types: Sequence[SqlType]) -> list[LiteralValue]:
    """``expr`` on each row; the first row's error is raised."""
    needed = columns_of(expr)
    columns = [
        pa.array([literal_scalar(r[i], t) for r in rows], arrow_type(t))
        if i in needed
        else pa.nulls(len(rows), arrow_type(t))
        for i, t in enumerate(types)
    ]
    result = evaluate(expr, columns, len(rows))
    if result.errors is not None and len(result.errors.rows):
        raise make_error(result.errors.sqlstates[0], result.errors.messages[0])
    return [scalar_literal(value, expr.type) for value in result.array]


def order_rows(bag: Bag, types: Sequence[SqlType], order: Sequence[SortKey]) -> list[Row]:
    """The rows of ``bag``, each as often as its multiplicity, in ``order``, ties in canonical row order."""
    return sorted(bag.elements(), key=lambda row: _order_key(row, types, order))


class _Interpreter:
    def __init__(self, tables: Mapping[str, Bag | Sequence[Row]], parameters: Mapping[int, LiteralValue]) -> None:
        self._tables = tables
        self._parameters = parameters
        self._locals: dict[str, Bag] = {}

    def run(self, relation: Relation) -> Bag:
        bag = self._run(relation)
        return Counter({row: count for row, count in bag.items() if count})

    def _run(self, relation: Relation) -> Bag:
        match relation:
            case Constant():
                return Counter(relation.rows)
            case Get():
                return Counter(self._tables[relation.id])
            case LocalGet():
                return self._locals[relation.name]
            case Let():
                self._locals[relation.name] = self.run(relation.value)
                return self.run(relation.body)
            case Recursive():
                return self._recursive(relation)
            case Project():
                return _rebag((tuple(r[c] for c in relation.columns), n) for r, n in self.run(relation.input).items())
            case Map():
                return self._map(relation)
            case Filter():
                return self._filter(relation)
            case FlatMap():
                return self._flat_map(relation)
            case Join():
                return self._join(relation)
            case Reduce():
                return self._reduce(relation)
            case Distinct():
                return Counter({row: 1 for row, n in self._by_equality(relation.input) if n > 0})
            case TopK():
                return self._top_k(relation)
            case Union():
                return _rebag(item for i in relation.inputs for item in self.run(i).items())
            case Negate():
                return Counter({r: -n for r, n in self.run(relation.input).items()})
            case Threshold():
                return Counter({row: n for row, n in self._by_equality(relation.input) if n > 0})

    def _recursive(self, relation: Recursive) -> Bag:
        types, seen, out = relation.types, set[object](), Counter[Row]()
        fresh = self.run(relation.base)
        while True:
            if not relation.every:
                first = {_keys(row, types): row for row in reversed(list(fresh))}
                fresh = Counter({row: 1 for key, row in first.items() if key not in seen})
                seen.update(first)
            if not fresh:
                return out
            out.update(fresh)
            self._locals[relation.name] = fresh
            fresh = self.run(relation.step)

    def _by_equality(self, relation: Relation) -> list[tuple[Row, int]]:
        """Rows that SQL calls equal as one, the first in canonical order, with the sum of their multiplicities."""
        types = relation.types
        kept: dict[object, Row] = {}
        counts: Counter[object] = Counter()
        for row, n in self._in_order(relation):
            key = _keys(row, types)
            kept.setdefault(key, row)
            counts[key] += n
        return [(row, counts[key]) for key, row in kept.items()]

    def _in_order(self, relation: Relation) -> list[tuple[Row, int]]:
        types = relation.types
        return sorted(self.run(relation).items(), key=lambda item: canonical_key(item[0], types))

    def _values(self, expr: Expr, rows: Sequence[Row], types: Sequence[SqlType]) -> list[LiteralValue]:
        return evaluate_rows(self._bound(expr), rows, types)

    def _bound(self, expr: Expr) -> Expr:
        def replace(node: Expr) -> Expr:
            return Literal(self._parameters[node.index], node.type) if isinstance(node, Parameter) else node

        return rewrite(expr, replace)

    def _constant(self, expr: Expr | None) -> int | None:
        if expr is None:
            return None
        (value,) = self._values(expr, [()], ())
        return int(value) if value is not None else None

    def _map(self, relation: Map) -> Bag:
        items = list(self.run(relation.input).items())
        rows = [r for r, _ in items]
        types = list(relation.input.types)
        for expr in relation.exprs:
            values = self._values(expr, rows, types)
            rows = [(*r, v) for r, v in zip(rows, values, strict=True)]
            types.append(expr.type)
        return _rebag((r, n) for r, (_, n) in zip(rows, items, strict=True))

    def _filter(self, relation: Filter) -> Bag:
        items = list(self.run(relation.input).items())
        for predicate in relation.predicates:
            truth = self._values(predicate, [r for r, _ in items], relation.types)
            items = [item for item, t in zip(items, truth, strict=True) if t is True]
        return Counter(dict(items))

    def _flat_map(self, relation: FlatMap) -> Bag:
        if relation.func != "generate_series":
            raise InternalError(f"no table function {relation.func}")
        items = list(self.run(relation.input).items())
        rows = [r for r, _ in items]
        args = [self._values(a, rows, relation.input.types) for a in relation.args]
        arg_types = [a.type for a in relation.args]
        out: list[tuple[Row, int]] = []
        for position, (row, n) in enumerate(items):
            series = _series([a[position] for a in args], arg_types, relation.output[0])
            out.extend(((*row, value), n) for value in series)
        return _rebag(out)

    def _join(self, relation: Join) -> Bag:
        left, right = list(self.run(relation.left).items()), list(self.run(relation.right).items())
        types = (*relation.left.types, *relation.right.types)
        pairs = _candidates(relation, left, right)
        for predicate in relation.on:
            rows = [(*left[i][0], *right[j][0]) for i, j in pairs]
            truth = self._values(predicate, rows, types)
            pairs = [p for p, t in zip(pairs, truth, strict=True) if t is True]
        matched_left, matched_right = {i for i, _ in pairs}, {j for _, j in pairs}
        if relation.kind is JoinKind.SEMI:
            return Counter({r: n for i, (r, n) in enumerate(left) if i in matched_left})
        if relation.kind is JoinKind.ANTI:
            return Counter({r: n for i, (r, n) in enumerate(left) if i not in matched_left})
        out = [((*left[i][0], *right[j][0]), left[i][1] * right[j][1]) for i, j in pairs]
        if relation.kind in (JoinKind.LEFT, JoinKind.FULL):
            nulls = (None,) * len(relation.right.types)
            out += [((*r, *nulls), n) for i, (r, n) in enumerate(left) if i not in matched_left]
        if relation.kind in (JoinKind.RIGHT, JoinKind.FULL):
            nulls = (None,) * len(relation.left.types)
            out += [((*nulls, *r), n) for j, (r, n) in enumerate(right) if j not in matched_right]
        return _rebag(out)

    def _reduce(self, relation: Reduce) -> Bag:
        items = self._in_order(relation.input)
        rows = [r for r, _ in items]
        types = relation.input.types
        keys = [self._values(k, rows, types) for k in relation.keys]
        key_types = [k.type for k in relation.keys]
        groups: dict[object, tuple[Row, list[int]]] = {}
        for position in range(len(rows)):
            key = tuple(k[position] for k in keys)
            groups.setdefault(_keys(key, key_types), (key, []))[1].append(position)
        if relation.global_row and not groups:
            groups[()] = ((), [])
        columns: list[dict[object, LiteralValue]] = []
        for call in relation.aggregates:
            bound = {name: (key, [(rows[i], items[i][1]) for i in members]) for name, (key, members) in groups.items()}
            columns.append(
                {name: aggregate_value(call, members, types, self._values) for name, (_, members) in bound.items()}
            )
        return Counter({(*key, *(c[name] for c in columns)): 1 for name, (key, _) in groups.items()})

    def _top_k(self, relation: TopK) -> Bag:
        types = relation.types
        limit, offset = self._constant(relation.limit), self._constant(relation.offset) or 0
        groups: dict[object, list[tuple[Row, int]]] = {}
        for row, n in sorted(self.run(relation.input).items(), key=lambda i: _order_key(i[0], types, relation.order)):
            group_types = [types[g] for g in relation.group]
            groups.setdefault(_keys([row[g] for g in relation.group], group_types), []).append((row, n))
        out: list[tuple[Row, int]] = []
        for members in groups.values():
            position = 0
            for row, n in members:
                first, last = max(position, offset), position + n
                if limit is not None:
                    last = min(last, offset + limit)
                if last > first:
                    out.append((row, last - first))
                position += n
        return _rebag(out)


def _rebag(items: Iterable[tuple[Row, int]]) -> Bag:
    bag: Bag = Counter()
    for row, n in items:
        bag[row] += n
    return Counter({r: n for r, n in bag.items() if n})


def _keys(values: Sequence[LiteralValue], types: Sequence[SqlType]) -> object:
    return tuple(equality_key(v, t) for v, t in zip(values, types, strict=True))


def _order_key(row: Row, types: Sequence[SqlType], order: Sequence[SortKey]) -> Any:
    keys = [sort_key(row[k.column], types[k.column], desc=k.desc, nulls_first=k.nulls_first) for k in order]
    return (keys, canonical_key(row, types))


def _candidates(
    relation: Join, left: Sequence[tuple[Row, int]], right: Sequence[tuple[Row, int]]
) -> list[tuple[int, int]]:
    """Pairs to test: those that agree on the column equalities (by SQL equality, so none is missed)."""
    width = len(relation.left.types)
    keys: list[tuple[int, int, SqlType]] = []
    for predicate in relation.on:
        if isinstance(predicate, Call) and predicate.func in ("eq", "is_not_distinct_from"):
            a, b = predicate.args
            if isinstance(a, Column) and isinstance(b, Column) and (a.index < width) != (b.index < width):
                low, high = sorted((a.index, b.index))
                keys.append((low, high - width, a.type))
    table: dict[object, list[int]] = {}
    for j, (row, _) in enumerate(right):
        table.setdefault(tuple(equality_key(row[b], t) for _, b, t in keys), []).append(j)
    return [
        (i, j)
        for i, (row, _) in enumerate(left)
        for j in table.get(tuple(equality_key(row[a], t) for a, _, t in keys), ())
    ]


def _series(args: Sequence[LiteralValue], types: Sequence[SqlType], output: SqlType) -> list[LiteralValue]:
    if any(a is None for a in args):
        return []
    start, stop = args[0], args[1]
    step: LiteralValue = args[2] if len(args) > 2 else (1 if types[0].kind is not Kind.NUMERIC else "1")
    step_type = types[2] if len(types) > 2 else types[0]
    columns = (types[0], step_type, types[1])
    name = {Kind.NUMERIC: "numeric_add", Kind.INTEGER: "int_add", Kind.BIGINT: "int_add"}.get(types[0].kind)
    add = _adder(name, columns, output)
    zero = "0 0 0" if step_type.kind is Kind.INTERVAL else "0" if step_type.kind is Kind.NUMERIC else 0
    if equality_key(step, step_type) == equality_key(zero, step_type):
        raise make_error("22023", "step size cannot equal zero")
    up = sort_key(step, step_type) > sort_key(zero, step_type)
    out: list[LiteralValue] = []
    value = start
    while (
        (sort_key(value, output) <= sort_key(stop, output))
        if up
        else (sort_key(value, output) >= sort_key(stop, output))
    ):
        out.append(value)
        value = add(value, step)
    return out


def _adder(
    name: str | None, columns: Sequence[SqlType], output: SqlType
) -> Callable[[LiteralValue, LiteralValue], LiteralValue]:
    impl = name or ("timestamp_add_interval" if output.kind is Kind.TIMESTAMP else "timestamptz_add_interval")

    def add(value: LiteralValue, step: LiteralValue) -> LiteralValue:
        call = Call(impl, (Column(0, output), Column(1, columns[1])), output)
        return evaluate_rows(call, [(value, step)], (output, columns[1]))[0]

    return add
