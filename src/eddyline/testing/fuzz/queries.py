"""Random queries whose answer is determined: no tie is left open, no float sum depends on its order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from eddyline.testing.fuzz.expressions import Expressions, Scoped

__all__ = ["Query", "QueryGenerator", "Source"]

_FAMILIES = ("int", "int", "bigint", "numeric", "text", "bool", "date", "timestamp", "float")
_ORDERED = ("int", "bigint", "numeric", "text", "date", "timestamp", "float")


@dataclass(frozen=True, slots=True)
class Query:
    """``families`` of the output columns, which are named c0, c1, …"""

    text: str
    families: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Something to select from: a table or an earlier view."""

    name: str
    columns: tuple[tuple[str, str], ...]  # (name, family)


class QueryGenerator:
    def __init__(self, rng: random.Random, sources: list[Source], used: Counter[str]) -> None:
        self.rng = rng
        self.sources = sources
        self.used = used
        self.exprs = Expressions(rng, used)
        self._aliases = 0

    def query(self, depth: int = 2) -> Query:
        shapes = {
            self._plain: 3,
            self._grouped: 5,
            self._grouping_sets: 1,
            self._global_aggregate: 1.5,
            self._distinct: 1,
            self._distinct_on: 1,
            self._top: 1.5,
            self._set_operation: 2 if depth > 0 else 0,
            self._with_subquery: 4 if depth > 0 else 0,
            self._common_table: 1 if depth > 0 else 0,
            self._lateral: 1 if depth > 0 else 0,
            self._values: 0.3,
            self._series: 0.5,
        }
        shape = self.rng.choices(list(shapes), list(shapes.values()))[0]
        self.used[shape.__name__.strip("_")] += 1
        return shape(depth)

    # -- FROM

    def _alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    def _item(self, depth: int) -> tuple[str, list[Scoped]]:
        alias = self._alias()
        if depth > 0 and self.rng.random() < 0.25:
            inner = self.query(depth - 1)
            self.used["derived_table"] += 1
            names = ", ".join(f"c{i}" for i in range(len(inner.families)))
            scope = [Scoped(f"{alias}.c{i}", f) for i, f in enumerate(inner.families)]
            return f"({inner.text}) AS {alias}({names})", scope
        source = self.rng.choice(self.sources)
        return f"{source.name} AS {alias}", [Scoped(f"{alias}.{n}", f) for n, f in source.columns]

    def _from(self, depth: int) -> tuple[str, list[Scoped]]:
        """A FROM clause of one to three items, and its scope."""
        text, scope = self._item(depth)
        for _ in range(self.rng.choices((0, 1, 2), (5, 4, 1))[0]):
            right, right_scope = self._item(depth - 1)
            kind = self.rng.choices(
                ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"), (4, 3, 1.5, 1.5, 0.5)
            )[0]
            self.used[kind.lower().replace(" ", "_")] += 1
            if kind == "CROSS JOIN":
                text, scope = f"{text} CROSS JOIN {right}", scope + right_scope
                continue
            condition = self._join_condition(kind, scope, right_scope)
            text, scope = f"{text} {kind} {right} ON {condition}", scope + right_scope
        return text, scope

    def _join_condition(self, kind: str, left: list[Scoped], right: list[Scoped]) -> str:
        pairs = [(a, b) for a in left for b in right if a.family == b.family and a.family != "bool"]
        if not pairs:
            return "true" if kind != "FULL JOIN" else "1 = 1"
        a, b = self.rng.choice(pairs)
        condition = f"{a.text} = {b.text}"
        # PostgreSQL takes a FULL JOIN only on conditions that it can merge or hash.
        if kind != "FULL JOIN" and self.rng.random() < 0.35:
            self.used["residual_condition"] += 1
            condition += f" AND {self.exprs.predicate(left + right, 1)}"
        return condition

    def _where(self, scope: list[Scoped], chance: float = 0.5) -> str:
        return f" WHERE {self.exprs.predicate(scope)}" if self.rng.random() < chance else ""

    def _outputs(self, scope: list[Scoped], count: int | None = None) -> tuple[list[str], tuple[str, ...]]:
        families = tuple(
            self.rng.choice(_FAMILIES if self.rng.random() < 0.4 else [_plain_family(c.family) for c in scope])
            for _ in range(count or self.rng.randint(1, 3))
        )
        return [self.exprs.of(f, scope) for f in families], families

    def _select(self, texts: list[str]) -> str:
        return ", ".join(f"{t} AS c{i}" for i, t in enumerate(texts))

    # -- shapes

    def _plain(self, depth: int) -> Query:
        source, scope = self._from(depth)
        texts, families = self._outputs(scope)
        return Query(f"SELECT {self._select(texts)} FROM {source}{self._where(scope)}", families)

    def _distinct(self, depth: int) -> Query:
        source, scope = self._from(depth)
        texts, families = self._outputs(scope)
        return Query(f"SELECT DISTINCT {self._select(texts)} FROM {source}{self._where(scope)}", families)

    def _keys(self, scope: list[Scoped]) -> tuple[list[str], tuple[str, ...]]:
        count = self.rng.choice((1, 1, 2))
        if self.rng.random() < 0.75:
            columns = [self.rng.choice(scope) for _ in range(count)]
            return [c.text for c in columns], tuple(_plain_family(c.family) for c in columns)
        families = tuple(self.rng.choice(("int", "text", "bool", "date")) for _ in range(count))
        return [self.exprs.of(f, scope, 1) for f in families], families

    def _aggregate(self, scope: list[Scoped]) -> tuple[str, str]:
        """(text, family) of one aggregate call."""
        rng = self.rng
        name = rng.choice(
            ("count_star", "count", "count_distinct", "sum_int", "sum_numeric", "sum_float", "avg_int", "avg_numeric", "min",
             "max", "bool_and", "bool_or", "stddev", "variance", "string_agg", "sum_distinct", "avg_float")
        )  # fmt: skip
        self.used[name] += 1
        family = rng.choice(_ORDERED)
        arg = lambda f: self.exprs.of(f, scope, 1)  # noqa: E731
        match name:
            case "count_star":
                text, out = "count(*)", "bigint"
            case "count":
                text, out = f"count({arg(family)})", "bigint"
            case "count_distinct":
                text, out = f"count(DISTINCT {arg(family)})", "bigint"
            case "sum_int":
                text, out = f"sum({arg('int')})", "bigint"
            case "sum_distinct":
                text, out = f"sum(DISTINCT {arg('int')})", "bigint"
            case "sum_numeric":
                text, out = f"sum({arg('numeric')})", "numeric"
            case "sum_float":
                text, out = f"sum({self._dyadic(scope)})", "float"
            case "avg_int":
                text, out = f"avg({arg('int')})", "numeric"
            case "avg_numeric":
                text, out = f"avg({arg('numeric')})", "numeric"
            case "avg_float":
                text, out = f"avg({self._dyadic(scope)})", "float"
            case "min" | "max":
                text, out = f"{name}({arg(family)})", family
            case "bool_and" | "bool_or":
                text, out = f"{name}({arg('bool')})", "bool"
            case "stddev":
                text, out = f"{rng.choice(('stddev', 'stddev_pop', 'stddev_samp'))}({arg('int')})", "numeric"
            case "variance":
                text, out = f"{rng.choice(('variance', 'var_pop', 'var_samp'))}({arg('int')})", "numeric"
            case _:
                value = arg("text")
                distinct = rng.choice(("", "DISTINCT "))
                text, out = f"string_agg({distinct}{value}, ',' ORDER BY {value})", "text"
        if rng.random() < 0.25:
            self.used["filter"] += 1
            text += f" FILTER (WHERE {self.exprs.predicate(scope, 1)})"
        return text, out

    def _dyadic(self, scope: list[Scoped]) -> str:
        """A float whose sums are exact in any order, so that the oracle's order does not matter."""
        columns = [c.text for c in scope if c.family == "float"]
        if columns:
            return f"round({self.rng.choice(columns)} * 4) / 4"
        return f"({self.exprs.of('int', scope, 1)})::double precision / 4"

    def _having(self, scope: list[Scoped]) -> str:
        if self.rng.random() > 0.25:
            return ""
        self.used["having"] += 1
        return f" HAVING {self.rng.choice(('count(*) > 1', 'count(*) < 4', 'min(1) IS NOT NULL'))}"

    def _grouped(self, depth: int) -> Query:
        source, scope = self._from(depth)
        keys, key_families = self._keys(scope)
        calls = [self._aggregate(scope) for _ in range(self.rng.randint(1, 3))]
        texts = [*keys, *(c[0] for c in calls)]
        group = ", ".join(str(i + 1) for i in range(len(keys))) if self.rng.random() < 0.3 else ", ".join(keys)
        if any(k.lstrip("-").isdigit() for k in keys):
            group = ", ".join(str(i + 1) for i in range(len(keys)))
        where = self._where(scope, 0.3)
        text = f"SELECT {self._select(texts)} FROM {source}{where} GROUP BY {group}{self._having(scope)}"
        return Query(text, (*key_families, *(c[1] for c in calls)))

    def _grouping_sets(self, depth: int) -> Query:
        source, scope = self._from(depth)
        columns = self.rng.sample(scope, min(2, len(scope)))
        call, family = self._aggregate(scope)
        names = ", ".join(c.text for c in columns)
        kind = self.rng.choice(("ROLLUP", "CUBE", "GROUPING SETS"))
        self.used[kind.lower().replace(" ", "_")] += 1
        clause = (
            f"{kind} ({names})" if kind != "GROUPING SETS" else f"GROUPING SETS (({names}), ({columns[0].text}), ())"
        )
        texts = [*(c.text for c in columns), call]
        families = (*(_plain_family(c.family) for c in columns), family)
        return Query(f"SELECT {self._select(texts)} FROM {source}{self._where(scope, 0.3)} GROUP BY {clause}", families)

    def _global_aggregate(self, depth: int) -> Query:
        source, scope = self._from(depth)
        calls = [self._aggregate(scope) for _ in range(self.rng.randint(1, 3))]
        text = f"SELECT {self._select([c[0] for c in calls])} FROM {source}{self._where(scope)}"
        return Query(text, tuple(c[1] for c in calls))

    def _directions(self, count: int, first: int = 0) -> str:
        """ORDER BY over output columns ``first`` … so that ties are between equal rows only."""
        parts = []
        for i in range(first, count):
            direction = self.rng.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
            parts.append(f"{i + 1}{direction}")
        self.rng.shuffle(parts)
        return ", ".join(parts)

    def _top(self, depth: int) -> Query:
        inner = self.query(depth - 1) if depth > 0 else self._plain(0)
        names = ", ".join(f"c{i}" for i in range(len(inner.families)))
        limit = f" LIMIT {self.rng.randint(0, 4)}" if self.rng.random() < 0.9 else ""
        offset = f" OFFSET {self.rng.randint(0, 2)}" if self.rng.random() < 0.4 else ""
        self.used["offset"] += bool(offset)
        text = (
            f"SELECT {names} FROM ({inner.text}) AS {self._alias()}({names}) "
            f"ORDER BY {self._directions(len(inner.families))}{limit}{offset}"
        )
        return Query(text, inner.families)

    def _distinct_on(self, depth: int) -> Query:
        inner = self.query(depth - 1) if depth > 0 else self._plain(0)
        names = ", ".join(f"c{i}" for i in range(len(inner.families)))
        rest = self._directions(len(inner.families), 1)
        order = "1" + (f", {rest}" if rest else "")
        text = f"SELECT DISTINCT ON (c0) {names} FROM ({inner.text}) AS {self._alias()}({names}) ORDER BY {order}"
        return Query(text, inner.families)

    def _set_operation(self, depth: int) -> Query:
        families = tuple(
            self.rng.choice(("int", "text", "date", "numeric", "bigint")) for _ in range(self.rng.randint(1, 2))
        )
        sides = [self._of_families(families, depth - 1) for _ in range(2)]
        kind = self.rng.choice(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
        self.used[kind.lower().replace(" ", "_")] += 1
        return Query(f"({sides[0]}) {kind} ({sides[1]})", families)

    def _of_families(self, families: tuple[str, ...], depth: int) -> str:
        source, scope = self._from(depth)
        texts = [self.exprs.of(f, scope) for f in families]
        return f"SELECT {self._select(texts)} FROM {source}{self._where(scope)}"

    def _subquery_from(self, outer: list[Scoped], depth: int) -> tuple[str, list[Scoped], str]:
        """FROM and WHERE of a subquery, correlated with ``outer`` two times out of three."""
        source, scope = self._from(depth - 1)
        if self.rng.random() < 0.67:
            pairs = [(a, b) for a in scope for b in outer if a.family == b.family and a.family != "bool"]
            if pairs:
                a, b = self.rng.choice(pairs)
                self.used["correlated"] += 1
                operator = self.rng.choices(("=", "<"), (4, 1))[0]
                extra = f" AND {self.exprs.predicate(scope, 1)}" if self.rng.random() < 0.3 else ""
                return source, scope, f" WHERE {a.text} {operator} {b.text}{extra}"
        return source, scope, self._where(scope)

    def subquery_predicate(self, outer: list[Scoped], depth: int) -> str:
        rng = self.rng
        source, scope, where = self._subquery_from(outer, depth)
        kind = rng.choice(("exists", "not_exists", "in", "not_in", "any", "all", "scalar_compare", "row_in"))
        self.used[kind] += 1
        family = rng.choice([_plain_family(c.family) for c in scope])
        inner = self.exprs.of(family, scope, 1)
        value = self.exprs.of(family, outer, 1)
        match kind:
            case "exists":
                return f"EXISTS (SELECT 1 FROM {source}{where})"
            case "not_exists":
                return f"NOT EXISTS (SELECT 1 FROM {source}{where})"
            case "in":
                return f"{value} IN (SELECT {inner} FROM {source}{where})"
            case "not_in":
                return f"{value} NOT IN (SELECT {inner} FROM {source}{where})"
            case "any":
                return f"{value} {rng.choice(('=', '<', '>=', '<>'))} ANY (SELECT {inner} FROM {source}{where})"
            case "all":
                return f"{value} {rng.choice(('=', '<', '>=', '<>'))} ALL (SELECT {inner} FROM {source}{where})"
            case "row_in":
                left = self.exprs.of("int", outer, 0)
                right = self.exprs.of("int", scope, 0)
                return (
                    f"({value}, {left}) {rng.choice(('IN', 'NOT IN'))} (SELECT {inner}, {right} FROM {source}{where})"
                )
            case _:
                call = rng.choice((f"max({inner})", f"min({inner})")) if family != "bool" else f"bool_or({inner})"
                return f"{value} {rng.choice(('=', '<', '>='))} (SELECT {call} FROM {source}{where})"

    def _scalar_subquery(self, outer: list[Scoped], depth: int) -> tuple[str, str]:
        source, scope, where = self._subquery_from(outer, depth)
        self.used["scalar_subquery"] += 1
        call, family = self._aggregate(scope)
        return f"(SELECT {call} FROM {source}{where})", family

    def _with_subquery(self, depth: int) -> Query:
        source, scope = self._from(depth - 1)
        texts, families = self._outputs(scope)
        where = ""
        if self.rng.random() < 0.6:
            where = f" WHERE {self.subquery_predicate(scope, depth)}"
            if self.rng.random() < 0.3:
                where += f" {self.rng.choice(('AND', 'OR'))} {self.exprs.predicate(scope, 1)}"
        if not where or self.rng.random() < 0.4:
            if self.rng.random() < 0.7:
                text, family = self._scalar_subquery(scope, depth)
            else:
                text, family = f"({self.subquery_predicate(scope, depth)})", "bool"
                self.used["subquery_in_select"] += 1
            texts, families = [*texts, text], (*families, family)
        return Query(f"SELECT {self._select(texts)} FROM {source}{where}", families)

    def _lateral(self, depth: int) -> Query:
        source, scope = self._item(0)
        inner_source, inner_scope, where = self._subquery_from(scope, depth)
        alias = self._alias()
        if self.rng.random() < 0.5:
            call, family = self._aggregate(inner_scope)
            body, families = f"SELECT {call} AS x FROM {inner_source}{where}", (family,)
        else:
            column = self.rng.choice(inner_scope)
            body = f"SELECT {column.text} AS x FROM {inner_source}{where} ORDER BY 1 LIMIT 2"
            families = (_plain_family(column.family),)
        join = self.rng.choice(("CROSS JOIN LATERAL", "LEFT JOIN LATERAL"))
        on = " ON true" if join.startswith("LEFT") else ""
        first = self.rng.choice(scope)
        text = f"SELECT {first.text} AS c0, {alias}.x AS c1 FROM {source} {join} ({body}) AS {alias}{on}"
        return Query(text, (_plain_family(first.family), *families))

    def _common_table(self, depth: int) -> Query:
        inner = self.query(depth - 1)
        name = self._alias()
        columns = tuple((f"c{i}", f) for i, f in enumerate(inner.families))
        saved = self.sources
        self.sources = [*saved, Source(name, columns), Source(name, columns)]
        outer = self.query(depth - 1)
        self.sources = saved
        names = ", ".join(c for c, _ in columns)
        return Query(f"WITH {name}({names}) AS ({inner.text}) {outer.text}", outer.families)

    def _values(self, depth: int) -> Query:
        rows = ", ".join(
            f"({self.rng.randint(-2, 3)}, {self.exprs.of('text', [], 0)})" for _ in range(self.rng.randint(1, 3))
        )
        return Query(f"SELECT v.a AS c0, v.b AS c1 FROM (VALUES {rows}) AS v(a, b)", ("int", "text"))

    def _series(self, depth: int) -> Query:
        source, scope = self._item(0)
        alias = self._alias()
        ints = [c.text for c in scope if c.family == "int"]
        stop = self.rng.choice(ints) if ints and self.rng.random() < 0.6 else str(self.rng.randint(0, 3))
        first = self.rng.choice(scope)
        text = f"SELECT {first.text} AS c0, {alias}.n AS c1 FROM {source}, generate_series(0, {stop}) AS {alias}(n)"
        return Query(text, (_plain_family(first.family), "int"))


def _plain_family(family: str) -> str:
    return "int" if family == "smallint" else family
