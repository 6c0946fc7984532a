"""Random relations and tables over int columns: small domains, NULLs, duplicates, empty tables."""

from __future__ import annotations

import random
from collections import Counter

from eddyline.expr.ir import AggregateCall, And, Call, Case, Cast, Coalesce, Column, Expr, Literal, Or, SortKey
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
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, TEXT, SqlType

from . import naive

TABLES: dict[str, tuple[SqlType, ...]] = {
    "r": (INTEGER, INTEGER),
    "s": (INTEGER, INTEGER, INTEGER),
    "t": (INTEGER,),
    "u": (INTEGER, INTEGER),
}


#: declared unique keys, which ``random_tables`` keeps
KEYS = {"u": ((0,),)}
KINDS = (
    *("filter", "filter", "map", "project", "join", "join", "join", "reduce"),
    *("distinct", "top_k", "union", "set", "let", "flat_map"),
)


def random_tables(rng: random.Random) -> dict[str, naive.Bag]:
    tables: dict[str, naive.Bag] = {}
    for name, types in TABLES.items():
        rows = [tuple(rng.choice((None, 0, 1, 1, 2, 3)) for _ in types) for _ in range(rng.choice((0, 1, 3, 6)))]
        if name in KEYS:
            rows = list({row[0]: row for row in rows if row[0] is not None}.values())
        tables[name] = Counter(rows)
    return tables


class Generator:
    """``fallible``: expressions may divide."""

    def __init__(self, rng: random.Random, *, fallible: bool) -> None:
        self._rng = rng
        self._fallible = fallible
        self._names = 0
        self._bound: list[LocalGet] = []

    def value(self, types: tuple[SqlType, ...], depth: int = 2) -> Expr:
        """An int expression."""
        rng = self._rng
        ints = [i for i, t in enumerate(types) if t == INTEGER]
        choice = rng.random()
        if depth == 0 or choice < 0.5:
            if ints and rng.random() < 0.8:
                return Column(rng.choice(ints), INTEGER)
            return Literal(rng.choice((None, 0, 1, 2)), INTEGER)
        if choice < 0.65 and self._fallible:
            return Call("int_div", (self.value(types, depth - 1), self.value(types, depth - 1)), INTEGER)
        if choice < 0.75 and self._fallible:
            return Call("int_add", (self.value(types, depth - 1), self.value(types, depth - 1)), INTEGER)
        if choice < 0.9:
            return Coalesce((self.value(types, depth - 1), self.value(types, depth - 1)), INTEGER)
        when = (self.predicate(types, depth - 1), self.value(types, depth - 1))
        return Case((when,), self.value(types, depth - 1), INTEGER)

    def predicate(self, types: tuple[SqlType, ...], depth: int = 2) -> Expr:
        rng = self._rng
        choice = rng.random()
        if depth == 0 or choice < 0.6:
            func = rng.choice(("eq", "eq", "eq", "ne", "lt", "ge", "is_not_distinct_from"))
            return Call(func, (self.value(types, max(depth - 1, 0)), self.value(types, max(depth - 1, 0))), BOOLEAN)
        if choice < 0.7:
            return Call(rng.choice(("is_null", "is_not_null")), (self.value(types, depth - 1),), BOOLEAN)
        parts = (self.predicate(types, depth - 1), self.predicate(types, depth - 1))
        if choice < 0.8:
            return And(parts)
        if choice < 0.93:
            return Or(parts)
        if choice < 0.96:
            return Literal(rng.choice((True, False, None)), BOOLEAN)
        return Call("not", (self.predicate(types, depth - 1),), BOOLEAN)

    def condition(self, left: int, types: tuple[SqlType, ...]) -> tuple[Expr, ...]:
        """A join condition: mostly equalities between the sides."""
        rng = self._rng
        out: list[Expr] = []
        ints_left = [i for i, t in enumerate(types[:left]) if t == INTEGER]
        ints_right = [i + left for i, t in enumerate(types[left:]) if t == INTEGER]
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            if ints_left and ints_right:
                sides = (Column(rng.choice(ints_left), INTEGER), Column(rng.choice(ints_right), INTEGER))
                sides = sides[::-1] if rng.random() < 0.3 else sides
                out.append(Call(rng.choice(("eq", "eq", "eq", "is_not_distinct_from")), sides, BOOLEAN))
        if rng.random() < 0.35:
            out.append(self.predicate(types))
        rng.shuffle(out)
        return tuple(out)

    def relation(self, depth: int) -> Relation:
        rng = self._rng
        if depth == 0:
            return self._leaf()
        kind = rng.choice(KINDS)
        if kind == "join":
            return self._join(depth)
        if kind == "let":
            return self._let(depth)
        source = self.relation(depth - 1)
        types = source.types
        match kind:
            case "filter":
                return Filter(source, tuple(self.predicate(types) for _ in range(rng.choice((1, 1, 2)))))
            case "map":
                first = self.value(types)
                return Map(source, (first, self.value((*types, first.type))))
            case "project":
                columns = [rng.randrange(len(types)) for _ in range(rng.choice((1, 2, 3)))] if types else []
                return Project(source, tuple(columns))
            case "reduce":
                return self._reduce(source)
            case "distinct":
                return Distinct(source)
            case "top_k":
                return self._top_k(source)
            case "union":
                other = Filter(source, (self.predicate(types),)) if rng.random() < 0.5 else self._same_types(types)
                return Union((source, other))
            case "set":
                return Threshold(Union((source, Negate(self._same_types(types)))))
            case _:
                if INTEGER not in types:
                    return source
                column = Column(types.index(INTEGER), INTEGER)
                return FlatMap(source, "generate_series", (Literal(1, INTEGER), column), (INTEGER,))

    def _leaf(self) -> Relation:
        rng = self._rng
        if self._bound and rng.random() < 0.5:
            return rng.choice(self._bound)
        if rng.random() < 0.1:
            rows = tuple((rng.choice((None, 0, 1)), 1) for _ in range(rng.choice((0, 1, 2))))
            return Constant(rows, (INTEGER, INTEGER))
        name = rng.choice(sorted(TABLES))
        return Get(name, TABLES[name])

    def _same_types(self, types: tuple[SqlType, ...]) -> Relation:
        name = self._rng.choice(sorted(TABLES))
        source: Relation = Get(name, TABLES[name])
        values: list[Expr] = []
        for t in types:
            if t == INTEGER:
                values.append(Column(self._rng.randrange(len(TABLES[name])), INTEGER))
            else:
                values.append(Literal(None, t))
        width = len(TABLES[name])
        return Project(Map(source, tuple(values)), tuple(range(width, width + len(types))))

    def _join(self, depth: int) -> Relation:
        kind = self._rng.choice((JoinKind.INNER, JoinKind.INNER, *JoinKind))
        left, right = self.relation(depth - 1), self.relation(self._rng.randrange(depth))
        types = (*left.types, *right.types)
        return Join(kind, left, right, self.condition(len(left.types), types))

    def _let(self, depth: int) -> Relation:
        value = self.relation(depth - 1)
        self._names += 1
        name = f"n{self._names}"
        self._bound.append(LocalGet(name, value.types))
        body = self.relation(depth - 1)
        self._bound.pop()
        return Let(name, value, body)

    def _reduce(self, source: Relation) -> Relation:
        rng = self._rng
        types = source.types
        keys = tuple(self.value(types, 1) for _ in range(rng.choice((0, 1, 1, 2))))
        calls = tuple(self._aggregate(types) for _ in range(rng.choice((0, 1, 2, 4))))
        return Reduce(source, keys, calls, global_row=not keys and rng.random() < 0.8)

    def _aggregate(self, types: tuple[SqlType, ...]) -> AggregateCall:
        rng = self._rng
        condition = self.predicate(types) if rng.random() < 0.3 else None
        func = rng.choice(("count", "count", "sum", "min", "max", "bool_and", "string_agg", "rows"))
        distinct = rng.random() < 0.3
        argument = self.value(types, 1)
        match func:
            case "rows":
                return AggregateCall("count", (), BIGINT, filter=condition)
            case "bool_and":
                return AggregateCall("bool_and", (self.predicate(types, 1),), BOOLEAN, distinct, condition)
            case "string_agg":
                text = Cast(argument, TEXT)
                args = (text, Literal(",", TEXT))
                order = text if distinct else self.value(types, 1)
                by = ((order, rng.random() < 0.5, False), (text, False, False))
                return AggregateCall("string_agg", args, TEXT, distinct, condition, by)
            case _:
                result = INTEGER if func in ("min", "max") else BIGINT
                return AggregateCall(func, (argument,), result, distinct, condition)

    def _top_k(self, source: Relation) -> Relation:
        rng = self._rng
        types = source.types
        columns = range(len(types))
        group = tuple(c for c in columns if rng.random() < 0.3)
        order = tuple(
            SortKey(c, desc=rng.random() < 0.5, nulls_first=rng.random() < 0.5) for c in columns if rng.random() < 0.5
        )
        limit = rng.choice((None, 0, 1, 2))
        offset = rng.choice((None, 0, 1))
        return TopK(
            source,
            group,
            order,
            None if limit is None else Literal(limit, BIGINT),
            None if offset is None else Literal(offset, BIGINT),
        )
