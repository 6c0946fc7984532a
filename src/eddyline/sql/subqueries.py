"""Subqueries in expressions: columns attached to the outer rows, or semi and anti joins where a condition allows.

The value of ``x op ANY (subquery)`` is computed from what decides it, kept per value of the correlated columns and not
per outer row: whether a row matches, whether there is a row at all, whether one of its values is NULL.  These are
booleans (or an extreme), so that they change rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from eddyline.expr.ir import AggregateCall, And, Call, Case, Column, Expr, Literal, Or, Raise
from eddyline.expr.properties import can_fail
from eddyline.plan import relation as plan
from eddyline.plan.relation import JoinKind
from eddyline.repr.types import BIGINT, BOOLEAN
from eddyline.sql.algebra import (
    Filter,
    FreeIds,
    Ids,
    Map,
    Node,
    Reduce,
    Subquery,
    SubqueryKind,
    aggregate_exprs,
)
from eddyline.sql.comparison import mentions
from eddyline.sql.lowered import Lowered, add_columns, filtered, join_lowered, trimmed
from eddyline.sql.peel import equality_keys, is_rowwise, peel, substitute

__all__ = ["Attachment"]

_TRUE = Literal(True, BOOLEAN)
_FALSE = Literal(False, BOOLEAN)
_UNKNOWN = Literal(None, BOOLEAN)
_MANY_ROWS = "more than one row returned by a subquery used as an expression"
#: for ``x op ANY``: the extremes of the subquery's values with which comparing decides
_EXTREMES = {"lt": ("max",), "le": ("max",), "gt": ("min",), "ge": ("min",), "ne": ("min", "max")}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _not(expr: Expr) -> Expr:
    return Call("not", (expr,), BOOLEAN)


def _is_null(expr: Expr) -> Expr:
    return Call("is_null", (expr,), BOOLEAN)


def _is_not_true(expr: Expr) -> Expr:
    return Call("is_not_true", (expr,), BOOLEAN)


def _is_not_in(subquery: Subquery, *, negated: bool) -> bool:
    """NOT (x = ANY …) or x <> ALL …, of one column."""
    kind, operator = (SubqueryKind.ANY, "eq") if negated else (SubqueryKind.ALL, "ne")
    return subquery.kind is kind and subquery.operator == operator and len(subquery.tests) == 1


class Lowers(Protocol):
    """What attaching asks of the lowering of nodes (``sql.decorrelate``)."""

    ids: Ids
    free: FreeIds

    def lower(self, node: Node, domain: Lowered | None) -> Lowered: ...

    def mapped(self, below: Lowered, exprs: Sequence[tuple[int, Expr]]) -> Lowered: ...

    def rowwise(self, below: Lowered, node: Node) -> Lowered: ...

    def shared(self, value: Lowered, build: Callable[[Lowered], Lowered]) -> Lowered: ...

    def over_domain(
        self, outer: Lowered, needed: Iterable[int], build: Callable[[Lowered, Lowered], Lowered]
    ) -> Lowered: ...

    @staticmethod
    def with_defaults(joined: Lowered, aggregates: Iterable[tuple[int, AggregateCall]]) -> Lowered: ...


class Attachment:
    """Attaches the subqueries of one lowering."""

    def __init__(self, lowering: Lowers) -> None:
        self._lowering = lowering
        self._ids = lowering.ids
        self._free = lowering.free

    def prepared(self, lowered: Lowered, exprs: Sequence[Expr]) -> tuple[Lowered, list[Expr]]:
        """See ``Lowering.prepared``."""
        values: dict[int, Expr] = {}
        for number in dict.fromkeys(n for e in exprs for n in sorted(mentions(e))):
            subquery = self._ids.subqueries.get(number)
            if subquery is not None:
                lowered, values[number] = self._attach(lowered, subquery)
        return lowered, [substitute(e, values) for e in exprs]

    def _attach(self, lowered: Lowered, subquery: Subquery) -> tuple[Lowered, Expr]:
        """``lowered`` with columns added, and the subquery's value as an expression over them."""
        match subquery.kind:
            case SubqueryKind.EXISTS:
                return self._exists(lowered, subquery.node)
            case SubqueryKind.SCALAR:
                return self._scalar(lowered, subquery)
        if subquery.operator is None or len(subquery.tests) != 1:
            return self._any_row_by_row(lowered, subquery)
        wide, tests = self._test_columns(lowered, subquery.tests)
        operator = subquery.operator
        every = subquery.kind is SubqueryKind.ALL
        if every:
            operator = _NEGATED[operator]  # x op ALL = NOT (x negated-op ANY)
        attach = self._any_equal if operator == "eq" else self._any_extreme
        result, value = attach(wide, subquery, tests[0], operator)
        return result, (_not(value) if every else value)

    def _test_columns(self, lowered: Lowered, tests: Sequence[Expr]) -> tuple[Lowered, list[Expr]]:
        """The outer sides of a comparison as columns, so that they are computed once."""
        wide, plain = self.prepared(lowered, tests)
        named: list[tuple[int, Expr]] = []
        columns: list[Expr] = []
        for expr in plain:
            if isinstance(expr, Column | Literal):
                columns.append(expr)
            else:
                named.append((self._ids.new(expr.type), expr))
                columns.append(self._ids.column(named[-1][0]))
        return add_columns(wide, named), columns

    def _outer(self, lowered: Lowered, node: Node) -> frozenset[int]:
        return self._free.of_node(node) & lowered.layout.keys()

    def _per_domain(
        self,
        lowered: Lowered,
        node: Node,
        kind: JoinKind,
        build: Callable[[Lowered, tuple[int, ...]], Lowered],
        needed: frozenset[int] | None = None,
    ) -> Lowered:
        """``lowered`` joined with ``build(subquery's rows, domain ids)``, whose result keeps the domain ids."""
        outer = self._outer(lowered, node) if needed is None else needed
        if not outer:
            right = build(self._lowering.lower(node, None), ())
            return join_lowered(kind, lowered, right, ())

        def over(first: Lowered, domain: Lowered) -> Lowered:
            return join_lowered(kind, first, build(self._lowering.lower(node, domain), tuple(domain.layout)), ())

        return self._lowering.over_domain(lowered, outer, over)

    def _grouped(self, rows: Lowered, keys: Sequence[int], calls: Sequence[tuple[int, AggregateCall]]) -> Lowered:
        """One row per key of ``keys`` (exactly one without keys); the calls' expressions are over ids."""
        placed = tuple(
            AggregateCall(c.func, tuple(rows.place(a) for a in c.args), c.type, c.distinct) for _, c in calls
        )
        relation = plan.Reduce(rows.relation, tuple(rows.column(k) for k in keys), placed, global_row=not keys)
        return Lowered(relation, {n: i for i, n in enumerate((*keys, *(n for n, _ in calls)))})

    # -- EXISTS ----------------------------------------------------------------------------------------------------

    def _exists(self, lowered: Lowered, node: Node) -> tuple[Lowered, Expr]:
        flag = self._ids.new(BOOLEAN)
        if not self._outer(lowered, node):
            count = self._ids.new(BIGINT)
            rows = self._grouped(self._lowering.lower(node, None), (), ((count, AggregateCall("count", (), BIGINT)),))
            some = Call("gt", (self._ids.column(count), Literal(0, BIGINT)), BOOLEAN)
            right = trimmed(add_columns(rows, ((flag, some),)), (flag,))
            return join_lowered(JoinKind.INNER, lowered, right, ()), self._ids.column(flag)
        keyed = self._keyed(lowered, node)
        if keyed is not None:
            core, pairs = keyed
            rows, inner = self._key_columns(self._lowering.lower(core, None), [i for _, i in pairs])
            right = self._flagged(trimmed(rows, inner), flag)
            on = [Call("eq", (o, self._ids.column(i)), BOOLEAN) for (o, _), i in zip(pairs, inner, strict=True)]
            joined = join_lowered(JoinKind.LEFT, lowered, right, on)
        else:
            joined = self._per_domain(
                lowered, node, JoinKind.LEFT, lambda rows, keys: self._flagged(trimmed(rows, keys), flag)
            )
        return joined, Call("is_not_null", (self._ids.column(flag),), BOOLEAN)

    def _flagged(self, rows: Lowered, flag: int) -> Lowered:
        distinct = Lowered(plan.Distinct(rows.relation), rows.layout)
        return add_columns(distinct, ((flag, _TRUE),))

    def _keyed(self, lowered: Lowered, node: Node) -> tuple[Node, list[tuple[Expr, Expr]]] | None:
        """The uncorrelated core of ``node`` and its equalities with the outer row, when that is all that ties them."""
        peeled = peel(node, lowered.layout, self._ids, self._free)
        if peeled is None:
            return None
        pairs = equality_keys(peeled.predicates, lowered.layout)
        if pairs is None or any(can_fail(inner) for _, inner in pairs):
            return None
        return peeled.core, pairs

    def _key_columns(self, rows: Lowered, exprs: Sequence[Expr]) -> tuple[Lowered, list[int]]:
        columns: list[tuple[int, Expr]] = [(self._ids.new(e.type), e) for e in exprs]
        wide = self._lowering.mapped(rows, columns)
        return wide, [n for n, _ in columns]

    # -- scalar ----------------------------------------------------------------------------------------------------

    def _scalar(self, lowered: Lowered, subquery: Subquery) -> tuple[Lowered, Expr]:
        value = subquery.ids[0]
        alias = self._ids.new(subquery.type)  # the same subquery may be attached twice
        if subquery.single_row and is_rowwise(subquery.node):
            wide = self._lowering.rowwise(lowered, subquery.node)
            return add_columns(wide, ((alias, self._ids.column(value)),)), self._ids.column(alias)
        if subquery.single_row:
            keyed = self._keyed_aggregate(lowered, subquery.node, value, alias)
            if keyed is not None:
                return keyed, self._ids.column(alias)
            joined = self._per_domain(
                lowered,
                subquery.node,
                JoinKind.INNER,
                lambda rows, keys: trimmed(add_columns(rows, ((alias, self._ids.column(value)),)), (*keys, alias)),
            )
            return joined, self._ids.column(alias)
        count = self._ids.new(BIGINT)
        calls = (
            (count, AggregateCall("count", (), BIGINT)),
            (alias, AggregateCall("min", (self._ids.column(value),), subquery.type)),
        )
        kind = JoinKind.LEFT if self._outer(lowered, subquery.node) else JoinKind.INNER
        joined = self._per_domain(lowered, subquery.node, kind, lambda rows, keys: self._grouped(rows, keys, calls))
        many = Call("gt", (self._ids.column(count), Literal(1, BIGINT)), BOOLEAN)
        failure = Raise("21000", _MANY_ROWS, subquery.type)
        return joined, Case(((many, failure),), self._ids.column(alias), subquery.type)

    def _keyed_aggregate(self, lowered: Lowered, node: Node, value: int, alias: int) -> Lowered | None:
        """``(SELECT f(agg) FROM t WHERE t.k = outer.k)``: group t by k, join once.  Only where grouping rows that no
        outer row asks for cannot fail."""
        maps: list[Map] = []
        inner = node
        while isinstance(inner, Map):
            maps.append(inner)
            inner = inner.input
        if not (isinstance(inner, Reduce) and inner.global_row) or not self._outer(lowered, inner):
            return None
        parts = [e for _, c in inner.aggregates for e in aggregate_exprs(c)]
        if any(can_fail(e) for e in parts) or self._free.of_exprs(parts) & lowered.layout.keys():
            return None
        if any(n in self._ids.subqueries for e in parts for n in mentions(e)):
            return None
        peeled = peel(inner.input, lowered.layout, self._ids, self._free)
        if peeled is None or peeled.computed:
            return None
        keyed = equality_keys(peeled.predicates, lowered.layout)
        if keyed is None or any(can_fail(e) for _, e in keyed) or _filters_fail(peeled.core):
            return None
        keys = tuple((self._ids.new(e.type), e) for _, e in keyed)
        grouped = self._lowering.lower(Reduce(peeled.core, keys, inner.aggregates, False), None)
        on = [Call("eq", (outer, self._ids.column(n)), BOOLEAN) for (outer, _), (n, _) in zip(keyed, keys, strict=True)]
        joined = self._lowering.with_defaults(join_lowered(JoinKind.LEFT, lowered, grouped, on), inner.aggregates)
        for step in reversed(maps):
            joined = self._lowering.mapped(joined, step.exprs)
        return add_columns(joined, ((alias, self._ids.column(value)),))

    # -- ANY and ALL -----------------------------------------------------------------------------------------------

    def _any_equal(self, lowered: Lowered, subquery: Subquery, test: Expr, operator: str) -> tuple[Lowered, Expr]:
        """``x = ANY (subquery)``: an equijoin finds the match, flags say whether NULLs make it unknown."""
        value = subquery.values[0]
        item, matched = self._ids.new(value.type), self._ids.new(BOOLEAN)
        some, with_null = self._ids.new(BOOLEAN), self._ids.new(BOOLEAN)

        def attach(first: Lowered, rows: Lowered, keys: tuple[int, ...]) -> Lowered:
            narrow = trimmed(self._lowering.mapped(rows, ((item, value),)), (*keys, item))

            def both(local: Lowered) -> Lowered:
                known = filtered(local, (Call("is_not_null", (self._ids.column(item),), BOOLEAN),))
                match = self._flagged(known, matched)
                on = (Call("eq", (test, self._ids.column(item)), BOOLEAN),)
                joined = join_lowered(JoinKind.LEFT, first, match, on)
                return self._with_flags(joined, local, keys, item=item, some=some, with_null=with_null)

            return self._lowering.shared(narrow, both)

        joined = self._over(lowered, subquery.node, attach)
        hit = Call("is_not_null", (self._ids.column(matched),), BOOLEAN)
        return joined, self._three_valued(hit, test, some, with_null)

    def _over(
        self, lowered: Lowered, node: Node, attach: Callable[[Lowered, Lowered, tuple[int, ...]], Lowered]
    ) -> Lowered:
        """``attach(outer rows, subquery's rows, domain ids)`` with the subquery over its domain."""
        outer = self._outer(lowered, node)
        if not outer:
            return attach(lowered, self._lowering.lower(node, None), ())
        return self._lowering.over_domain(
            lowered, outer, lambda first, d: attach(first, self._lowering.lower(node, d), tuple(d.layout))
        )

    def _with_flags(
        self, joined: Lowered, rows: Lowered, keys: tuple[int, ...], *, item: int, some: int, with_null: int
    ) -> Lowered:
        """Adds per domain value: is there a row, is one of its items NULL.  Both NULL or false without rows.

        Of the rows only the kinds are counted, so that one more of a kind changes nothing behind them.
        """
        count, null = self._ids.new(BIGINT), self._ids.new(BOOLEAN)
        calls = (
            (count, AggregateCall("count", (), BIGINT)),
            (with_null, AggregateCall("bool_or", (self._ids.column(null),), BOOLEAN)),
        )
        wide = self._lowering.mapped(rows, ((null, _is_null(self._ids.column(item))),))
        kinds = trimmed(wide, (*keys, null))
        grouped = self._grouped(Lowered(plan.Distinct(kinds.relation), kinds.layout), keys, calls)
        flag = Call("gt", (self._ids.column(count), Literal(0, BIGINT)), BOOLEAN)
        right = trimmed(add_columns(grouped, ((some, flag),)), (*keys, some, with_null))
        return join_lowered(JoinKind.LEFT if keys else JoinKind.INNER, joined, right, ())

    def _three_valued(self, hit: Expr, test: Expr, some: int, with_null: int) -> Expr:
        unknown = Or(
            (
                self._ids.column(with_null),
                And((self._ids.column(some), _is_null(test))),
            )
        )
        return Case(((hit, _TRUE), (unknown, _UNKNOWN)), _FALSE, BOOLEAN)

    def _any_extreme(self, lowered: Lowered, subquery: Subquery, test: Expr, operator: str) -> tuple[Lowered, Expr]:
        """``x < ANY (subquery)`` is ``x < max``, and so on."""
        value = subquery.values[0]
        item = self._ids.new(value.type)
        some, with_null, count = self._ids.new(BOOLEAN), self._ids.new(BOOLEAN), self._ids.new(BIGINT)
        extremes = [(self._ids.new(value.type), name) for name in _EXTREMES[operator]]
        calls = [
            (count, AggregateCall("count", (), BIGINT)),
            (with_null, AggregateCall("bool_or", (_is_null(self._ids.column(item)),), BOOLEAN)),
            *((n, AggregateCall(name, (self._ids.column(item),), value.type)) for n, name in extremes),
        ]

        def build(rows: Lowered, keys: tuple[int, ...]) -> Lowered:
            wide = trimmed(self._lowering.mapped(rows, ((item, value),)), (*keys, item))
            grouped = self._grouped(wide, keys, calls)
            flag = Call("gt", (self._ids.column(count), Literal(0, BIGINT)), BOOLEAN)
            return trimmed(add_columns(grouped, ((some, flag),)), (*keys, some, with_null, *(n for n, _ in extremes)))

        kind = JoinKind.LEFT if self._outer(lowered, subquery.node) else JoinKind.INNER
        joined = self._per_domain(lowered, subquery.node, kind, build)
        hits = tuple(Call(operator, (test, self._ids.column(n)), BOOLEAN) for n, _ in extremes)
        hit: Expr = hits[0] if len(hits) == 1 else Or(hits)
        return joined, self._three_valued(hit, test, some, with_null)

    def _any_row_by_row(self, lowered: Lowered, subquery: Subquery) -> tuple[Lowered, Expr]:
        """Any other comparison: evaluated for each value of the outer columns with each row of the subquery."""
        assert subquery.comparison is not None
        every = subquery.kind is SubqueryKind.ALL
        needed = self._free.of_subquery(subquery) & lowered.layout.keys()
        verdict, decided, unknown = (self._ids.new(BOOLEAN) for _ in range(3))
        calls = (
            (decided, AggregateCall("bool_and" if every else "bool_or", (self._ids.column(verdict),), BOOLEAN)),
            (unknown, AggregateCall("bool_or", (_is_null(self._ids.column(verdict)),), BOOLEAN)),
        )
        comparison = subquery.comparison

        def build(rows: Lowered, keys: tuple[int, ...]) -> Lowered:
            return self._grouped(self._lowering.mapped(rows, ((verdict, comparison),)), keys, calls)

        kind = JoinKind.LEFT if needed else JoinKind.INNER
        joined = self._per_domain(lowered, subquery.node, kind, build, needed)
        column = self._ids.column(decided)
        unsure = self._ids.column(unknown)
        if every:
            return joined, Case(((_not(column), _FALSE), (unsure, _UNKNOWN)), _TRUE, BOOLEAN)
        return joined, Case(((column, _TRUE), (unsure, _UNKNOWN)), _FALSE, BOOLEAN)

    # -- conditions ------------------------------------------------------------------------------------------------

    def as_join(self, lowered: Lowered, predicate: Expr) -> Lowered | None:
        """``lowered`` restricted to a condition that is a whole [NOT] EXISTS or IN; None for any other."""
        negated = isinstance(predicate, Call) and predicate.func == "not"
        inner = predicate.args[0] if isinstance(predicate, Call) and negated else predicate
        subquery = self._ids.subqueries.get(inner.index) if isinstance(inner, Column) else None
        if subquery is None:
            return None
        if subquery.kind is SubqueryKind.EXISTS:
            return self._semi(lowered, subquery.node, JoinKind.ANTI if negated else JoinKind.SEMI, (), ())
        if subquery.kind is SubqueryKind.ANY and subquery.operator == "eq" and not negated:
            wide, tests = self._test_columns(lowered, subquery.tests)
            return self._semi(wide, subquery.node, JoinKind.SEMI, tests, subquery.values)
        if _is_not_in(subquery, negated=negated) and not self._outer(lowered, subquery.node):
            return self._not_in(lowered, subquery)
        return None

    def _not_in(self, lowered: Lowered, subquery: Subquery) -> Lowered:
        """``x NOT IN (subquery)``, uncorrelated: without NULLs an anti join.

        What the flags decide comes first: it changes rarely, and then a change of the subquery meets one join.
        """
        wide, (test,) = self._test_columns(lowered, subquery.tests)
        value = subquery.values[0]
        item = self._ids.new(value.type)
        some, with_null = self._ids.new(BOOLEAN), self._ids.new(BOOLEAN)
        rows = trimmed(self._lowering.mapped(self._lowering.lower(subquery.node, None), ((item, value),)), (item,))

        def both(local: Lowered) -> Lowered:
            flagged = self._with_flags(wide, local, (), item=item, some=some, with_null=with_null)
            nobody = And((self._ids.column(some), _is_null(test)))
            open_rows = filtered(flagged, [_is_not_true(self._ids.column(with_null)), _is_not_true(nobody)])
            return join_lowered(JoinKind.ANTI, open_rows, local, (Call("eq", (test, self._ids.column(item)), BOOLEAN),))

        return self._lowering.shared(rows, both)

    def _semi(
        self, lowered: Lowered, node: Node, kind: JoinKind, tests: Sequence[Expr], values: Sequence[Expr]
    ) -> Lowered:
        peeled = peel(node, lowered.layout, self._ids, self._free)
        if peeled is not None:
            right = self._lowering.lower(peeled.core, None)
            pairs = [
                Call("eq", (t, substitute(v, peeled.computed)), BOOLEAN) for t, v in zip(tests, values, strict=True)
            ]
            return join_lowered(kind, lowered, right, (*peeled.predicates, *pairs))
        pairs = [Call("eq", (t, v), BOOLEAN) for t, v in zip(tests, values, strict=True)]
        wanted = sorted({n for v in values for n in mentions(v)})

        def over(first: Lowered, domain: Lowered) -> Lowered:
            rows = trimmed(self._lowering.lower(node, domain), (*domain.layout, *wanted))
            return join_lowered(kind, first, rows, pairs)

        return self._lowering.over_domain(lowered, self._outer(lowered, node), over)


def _filters_fail(node: Node) -> bool:
    """Whether evaluating the core for keys that no outer row has might fail where the original would not."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Filter) and any(can_fail(p) for p in current.predicates):
            return True
        if isinstance(current, Map) and any(can_fail(e) for _, e in current.exprs):
            return True
        stack.extend(child for child in (getattr(current, "input", None),) if child is not None)
    return False
