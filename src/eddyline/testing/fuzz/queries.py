"""Random queries whose answer is determined: no tie is left open, no float sum depends on its order."""

from __future__ import annotations

from eddyline.testing.fuzz.aggregates import aggregate
from eddyline.testing.fuzz.from_clause import Query, Source
from eddyline.testing.fuzz.schema import Scoped, plain_family
from eddyline.testing.fuzz.subqueries import SubqueryGenerator

__all__ = ["Query", "QueryGenerator", "Source"]

_SET_FAMILIES = ("int", "text", "date", "numeric", "bigint", "bool", "uuid")
_SET_OPERATIONS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


class QueryGenerator(SubqueryGenerator):
    """``query`` draws one of the shapes below."""

    def query(self, depth: int = 2) -> Query:
        shapes = {
            self.plain: 3,
            self.grouped: 5,
            self.grouping_sets: 1.5,
            self.global_aggregate: 1.5,
            self.distinct: 1,
            self.distinct_on: 1,
            self.top: 1.5,
            self.set_operation: 2.5 if depth > 0 else 0,
            self.with_subquery: 5 if depth > 0 else 0,
            self.common_table: 1 if depth > 0 else 0,
            self.common_table_reused: 0.6 if depth > 0 else 0,
            self.lateral: 1.4 if depth > 0 else 0,
            self.values: 0.5,
            self.series: 0.5,
        }
        shape = self.rng.choices(list(shapes), list(shapes.values()))[0]
        self.used[shape.__name__] += 1
        return shape(depth)

    def fallible_query(self) -> Query:
        """A query over tables that fails while certain rows are there, in an expression that no plan can leave out."""
        saved = self.sources
        self.sources = [s for s in saved if not s.derived]
        query = self._fallible_over_tables()
        self.sources = saved
        return query

    def _fallible_over_tables(self) -> Query:
        shape = self.rng.choice(("select", "select", "where", "aggregate", "filtered_aggregate", "key", "rows"))
        # PostgreSQL evaluates a WHERE before it joins, so it fails on rows that the join would have left out.
        source, scope = self.from_clause(0) if shape != "where" else self.item(0)
        text, family = self.exprs.fallible(scope)
        key = self.rng.choice(scope)
        self.used[f"fallible_{shape}"] += 1
        first = f"SELECT {key.text} AS c0"
        match shape:
            case "select":
                body = f"{first}, {text} AS c1 FROM {source}{self.where(scope, 0.3)}"
            case "where":
                body, family = f"{first} FROM {source} WHERE {text} IS NOT NULL", ""
            case "aggregate":
                where, family = self.where(scope, 0.3), "bigint"
                body = f"{first}, count({text}) AS c1 FROM {source}{where} GROUP BY {key.text}"
            case "filtered_aggregate":
                call = f"count({text}) FILTER (WHERE {self.exprs.predicate(scope, 1)})"
                body, family = f"{first}, {call} AS c1 FROM {source} GROUP BY {key.text}", "bigint"
            case "key":
                body = f"SELECT count(*) AS c0, {text} AS c1 FROM {source} GROUP BY 2"
                return Query(body, ("bigint", family), fallible=True)
            case _:
                inner, inner_scope, where = self._subquery_from(scope, 0)
                column = self.rng.choice(inner_scope)
                body, family = f"{first}, (SELECT {column.text} FROM {inner}{where}) AS c1 FROM {source}", column.family
        return Query(body, (plain_family(key.family), *((family,) if family else ())), fallible=True)

    def exercises(self) -> list[str]:
        """Queries that make each construct occur often enough: scalars, subqueries, set operations, failures."""
        source, scope = self.item(0)
        wide = [f"SELECT {self.select([self.exprs.made(scope) for _ in range(8)])} FROM {source}" for _ in range(2)]
        self.used["set_operation"] += 1
        return [
            *wide,
            self._asked(),
            self._asked(),
            self._aggregated(),
            self.set_operation(1).text,
            *(self.fallible_query().text for _ in range(3)),
        ]

    def _asked(self) -> str:
        """Each row with the answers of two subqueries."""
        source, scope = self.item(0)
        answers = [f"({self.subquery_predicate(scope, 1)})" for _ in range(2)]
        return f"SELECT {self.select([scope[0].text, *answers])} FROM {source}"

    def _aggregated(self) -> str:
        source, scope = self.item(0)
        calls = [aggregate(self.exprs, scope)[0] for _ in range(8)]
        return f"SELECT {self.select([scope[0].text, *calls])} FROM {source} GROUP BY {scope[0].text}"

    # -- shapes

    def plain(self, depth: int) -> Query:
        source, scope = self.from_clause(depth)
        texts, families = self.outputs(scope)
        return Query(f"SELECT {self.select(texts)} FROM {source}{self.where(scope)}", families)

    def distinct(self, depth: int) -> Query:
        source, scope = self.from_clause(depth)
        texts, families = self.outputs(scope)
        return Query(f"SELECT DISTINCT {self.select(texts)} FROM {source}{self.where(scope)}", families)

    def _keys(self, scope: list[Scoped]) -> tuple[list[str], tuple[str, ...]]:
        count = self.rng.choice((1, 1, 2))
        if self.rng.random() < 0.75:
            columns = [self.rng.choice(scope) for _ in range(count)]
            return [self.exprs.column(c) for c in columns], tuple(plain_family(c.family) for c in columns)
        families = tuple(self.rng.choice(("int", "text", "bool", "date", "interval", "uuid")) for _ in range(count))
        self.used["group_by_expression"] += 1
        # The cast keeps a bare number from being read as the position of an output column.
        return [f"({self.exprs.of(f, scope, 1)})::{f}" for f in families], families

    def _having(self, scope: list[Scoped], depth: int) -> str:
        if self.rng.random() > 0.3:
            return ""
        self.used["having"] += 1
        if self.rng.random() < 0.3:
            call, family = aggregate(self.exprs, scope)
            return f" HAVING {call} IS NOT NULL AND {call} >= {self.exprs.of(family, [], 0)}"
        if depth > 0 and self.rng.random() < 0.6:
            self.used["having_subquery"] += 1
            source = self.rng.choice(self.sources)
            return f" HAVING count(*) >= (SELECT count(*) / 3 FROM {source.name})"
        return f" HAVING {self.rng.choice(('count(*) > 1', 'count(*) < 4', 'min(1) IS NOT NULL'))}"

    def grouped(self, depth: int) -> Query:
        source, scope = self.from_clause(depth)
        keys, key_families = self._keys(scope)
        calls = [aggregate(self.exprs, scope) for _ in range(self.rng.randint(1, 3))]
        texts = [*keys, *(c[0] for c in calls)]
        group = ", ".join(str(i + 1) for i in range(len(keys))) if self.rng.random() < 0.3 else ", ".join(keys)
        where = self.where(scope, 0.3)
        text = f"SELECT {self.select(texts)} FROM {source}{where} GROUP BY {group}{self._having(scope, depth)}"
        return Query(text, (*key_families, *(c[1] for c in calls)))

    def grouping_sets(self, depth: int) -> Query:
        source, scope = self.from_clause(depth)
        columns = self.rng.sample(scope, min(2, len(scope)))
        call, family = aggregate(self.exprs, scope)
        names = ", ".join(c.text for c in columns)
        kind = self.rng.choice(("ROLLUP", "CUBE", "GROUPING SETS", "MIXED"))
        self.used["mixed_grouping" if kind == "MIXED" else kind.lower().replace(" ", "_")] += 1
        match kind:
            case "GROUPING SETS":
                clause = f"GROUPING SETS (({names}), ({columns[0].text}), ())"
            case "MIXED":
                clause = f"{columns[0].text}, ROLLUP ({columns[-1].text})"
            case _:
                clause = f"{kind} ({names})"
        texts = [*(c.text for c in columns), call]
        families = (*(plain_family(c.family) for c in columns), family)
        if self.rng.random() < 0.5:
            self.used["grouping"] += 1
            texts, families = [*texts, f"grouping({names})"], (*families, "int")
        return Query(f"SELECT {self.select(texts)} FROM {source}{self.where(scope, 0.3)} GROUP BY {clause}", families)

    def global_aggregate(self, depth: int) -> Query:
        source, scope = self.from_clause(depth)
        calls = [aggregate(self.exprs, scope) for _ in range(self.rng.randint(1, 3))]
        text = f"SELECT {self.select([c[0] for c in calls])} FROM {source}{self.where(scope)}"
        return Query(text, tuple(c[1] for c in calls))

    def directions(self, count: int, first: int = 0) -> str:
        """ORDER BY over output columns ``first`` … so that ties are between equal rows only."""
        parts = []
        for i in range(first, count):
            direction = self.rng.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
            parts.append(f"{i + 1}{direction}")
        self.rng.shuffle(parts)
        return ", ".join(parts)

    def limits(self) -> str:
        limit = f" LIMIT {self.rng.randint(0, 4)}" if self.rng.random() < 0.9 else ""
        if limit and self.rng.random() < 0.15:
            self.used["fetch_first"] += 1
            limit = f" FETCH FIRST {self.rng.randint(1, 4)} ROWS ONLY"
        offset = f" OFFSET {self.rng.randint(0, 2)}" if self.rng.random() < 0.4 else ""
        self.used["offset"] += bool(offset)
        return offset + limit if "FETCH" in limit else limit + offset

    def top(self, depth: int) -> Query:
        inner = self.query(depth - 1) if depth > 0 else self.plain(0)
        names = ", ".join(f"c{i}" for i in range(len(inner.families)))
        text = (
            f"SELECT {names} FROM ({inner.text}) AS {self.alias()}({names}) "
            f"ORDER BY {self.directions(len(inner.families))}{self.limits()}"
        )
        return Query(text, inner.families)

    def distinct_on(self, depth: int) -> Query:
        inner = self.query(depth - 1) if depth > 0 else self.plain(0)
        names = ", ".join(f"c{i}" for i in range(len(inner.families)))
        rest = self.directions(len(inner.families), 1)
        order = "1" + (f", {rest}" if rest else "")
        text = f"SELECT DISTINCT ON (c0) {names} FROM ({inner.text}) AS {self.alias()}({names}) ORDER BY {order}"
        return Query(text, inner.families)

    def set_operation(self, depth: int) -> Query:
        families = tuple(self.rng.choice(_SET_FAMILIES) for _ in range(self.rng.randint(1, 2)))
        sides = [self._of_families(families, depth - 1) for _ in range(self.rng.choice((2, 2, 3)))]
        text = f"({sides[0]})"
        for side in sides[1:]:
            kind = self.rng.choice(_SET_OPERATIONS)
            self.used[kind.lower().replace(" ", "_")] += 1
            text += f" {kind} ({side})"
        if self.rng.random() < 0.2:
            self.used["set_operation_limit"] += 1
            text += f" ORDER BY {self.directions(len(families))} LIMIT {self.rng.randint(1, 4)}"
        return Query(text, families)

    def _of_families(self, families: tuple[str, ...], depth: int) -> str:
        source, scope = self.from_clause(depth)
        texts = [self.exprs.of(f, scope) for f in families]
        return f"SELECT {self.select(texts)} FROM {source}{self.where(scope)}"

    def common_table(self, depth: int) -> Query:
        inner = self.query(depth - 1)
        name = self.alias()
        columns = tuple((f"c{i}", f) for i, f in enumerate(inner.families))
        outer = self._over([Source(name, columns)] * 2, depth)
        names = ", ".join(c for c, _ in columns)
        hint = self.rng.choice(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
        return Query(f"WITH {name}({names}) AS {hint}({inner.text}) {_bare(outer)}", outer.families)

    def common_table_reused(self, depth: int) -> Query:
        """The second common table reads the first; the query reads both."""
        first, second = self.alias(), self.alias()
        one = self.query(depth - 1)
        first_source = Source(first, tuple((f"c{i}", f) for i, f in enumerate(one.families)))
        two = self._over([first_source] * 3, depth)
        second_source = Source(second, tuple((f"c{i}", f) for i, f in enumerate(two.families)))
        outer = self._over([first_source, second_source] * 3, depth)
        ones, twos = (", ".join(n for n, _ in s.columns) for s in (first_source, second_source))
        text = f"WITH {first}({ones}) AS ({one.text}), {second}({twos}) AS ({two.text}) {_bare(outer)}"
        return Query(text, outer.families)

    def _over(self, more: list[Source], depth: int) -> Query:
        saved = self.sources
        self.sources = [*saved, *more]
        query = self.query(depth - 1)
        self.sources = saved
        return query

    def values(self, depth: int) -> Query:
        count = self.rng.randint(1, 3)
        rows = ", ".join(f"({self.rng.randint(-2, 3)}, {self.exprs.of('text', [], 0)})" for _ in range(count))
        return Query(f"SELECT v.a AS c0, v.b AS c1 FROM (VALUES {rows}) AS v(a, b)", ("int", "text"))

    def series(self, depth: int) -> Query:
        source, scope = self.item(0)
        alias = self.alias()
        ints = [c.text for c in scope if c.family == "int" and not c.derived]
        stop = self.rng.choice(ints) if ints and self.rng.random() < 0.6 else str(self.rng.randint(0, 3))
        start, step = self.rng.choice((("0", ""), ("-1", ", 2"), ("4", ", -1")))
        first = self.rng.choice(scope)
        numbers = f"generate_series({start}, {stop}{step}) AS {alias}(n)"
        text = f"SELECT {first.text} AS c0, {alias}.n AS c1 FROM {source}, {numbers}"
        return Query(text, (plain_family(first.family), "int"))


def _bare(query: Query) -> str:
    """A query that may follow a WITH clause: one that has its own goes into a FROM clause."""
    return f"SELECT * FROM ({query.text}) AS bare" if query.text.startswith("WITH") else query.text
