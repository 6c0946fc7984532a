"""Random subqueries of every kind, correlated with the query around them two times out of three."""

from __future__ import annotations

from eddyline.testing.fuzz.aggregates import aggregate
from eddyline.testing.fuzz.from_clause import FromGenerator, Query
from eddyline.testing.fuzz.schema import Scoped, plain_family

__all__ = ["SubqueryGenerator"]

_KINDS = (
    "exists", "not_exists", "in", "not_in", "any", "all", "scalar_compare", "row_in", "in_limited", "nested_exists",
)  # fmt: skip
#: families with max()
_ORDERED = frozenset({"int", "bigint", "numeric", "text", "date", "timestamp", "float", "real", "time", "timestamptz"})


class SubqueryGenerator(FromGenerator):
    """Adds subqueries in expressions and LATERAL to FROM clauses."""

    def _subquery_from(self, outer: list[Scoped], depth: int) -> tuple[str, list[Scoped], str]:
        """FROM, its scope, and WHERE of a subquery."""
        source, scope = self.from_clause(depth - 1)
        if self.rng.random() < 0.67:
            pairs = [(a, b) for a in scope for b in outer if a.family == b.family and a.family != "bool"]
            if pairs:
                a, b = self.rng.choice(pairs)
                self.used["correlated"] += 1
                operator = self.rng.choices(("=", "<", "IS NOT DISTINCT FROM"), (6, 1, 1))[0]
                extra = f" AND {self.exprs.predicate(scope, 1)}" if self.rng.random() < 0.3 else ""
                return source, scope, f" WHERE {a.text} {operator} {b.text}{extra}"
        return source, scope, self.where(scope)

    def subquery_predicate(self, outer: list[Scoped], depth: int) -> str:
        rng = self.rng
        source, scope, where = self._subquery_from(outer, depth)
        kind = rng.choice(_KINDS)
        self.used[kind] += 1
        family = rng.choice([plain_family(c.family) for c in scope])
        inner = self.exprs.of(family, scope, 1)
        value = self.exprs.of(family, outer, 1)
        operator = rng.choice(("=", "<", ">=", "<>"))
        match kind:
            case "exists":
                return f"EXISTS (SELECT 1 FROM {source}{where})"
            case "not_exists":
                return f"NOT EXISTS (SELECT 1 FROM {source}{where})"
            case "nested_exists":
                deeper_source, _, deeper_where = self._subquery_from([*scope, *outer], 0)
                both = f"{where} AND" if where else " WHERE"
                return f"EXISTS (SELECT 1 FROM {source}{both} NOT EXISTS (SELECT 1 FROM {deeper_source}{deeper_where}))"
            case "in" | "not_in":
                return f"{value} {'NOT ' * (kind == 'not_in')}IN (SELECT {inner} FROM {source}{where})"
            case "in_limited":
                limit = f"ORDER BY 1 DESC NULLS LAST LIMIT {rng.randint(1, 3)}"
                return f"{value} IN (SELECT {inner} FROM {source}{where} {limit})"
            case "any" | "all":
                return f"{value} {operator} {kind.upper()} (SELECT {inner} FROM {source}{where})"
            case "row_in":
                left = self.exprs.of("int", outer, 0)
                right = self.exprs.of("int", scope, 0)
                membership = rng.choice(("IN", "NOT IN"))
                return f"({value}, {left}) {membership} (SELECT {inner}, {right} FROM {source}{where})"
            case _:
                call = f"{rng.choice(('max', 'min'))}({inner})"
                if family not in _ORDERED:
                    call, value = f"count({inner})", self.exprs.of("bigint", outer, 1)
                return f"{value} {operator} (SELECT {call} FROM {source}{where})"

    def scalar_subquery(self, outer: list[Scoped], depth: int) -> tuple[str, str]:
        source, scope, where = self._subquery_from(outer, depth)
        if self.rng.random() < 0.3:
            self.used["scalar_limit_one"] += 1
            column = self.rng.choice(scope)
            direction = self.rng.choice(("", " DESC", " DESC NULLS LAST"))
            text = f"(SELECT {column.text} FROM {source}{where} ORDER BY 1{direction} LIMIT 1)"
            return text, plain_family(column.family)
        self.used["scalar_subquery"] += 1
        call, family = aggregate(self.exprs, scope)
        return f"(SELECT {call} FROM {source}{where})", family

    def with_subquery(self, depth: int) -> Query:
        source, scope = self.from_clause(depth - 1)
        texts, families = self.outputs(scope)
        where = ""
        if self.rng.random() < 0.6:
            where = f" WHERE {self.subquery_predicate(scope, depth)}"
            if self.rng.random() < 0.3:
                where += f" {self.rng.choice(('AND', 'OR'))} {self.exprs.predicate(scope, 1)}"
        if not where or self.rng.random() < 0.4:
            if self.rng.random() < 0.7:
                text, family = self.scalar_subquery(scope, depth)
            else:
                text, family = f"({self.subquery_predicate(scope, depth)})", "bool"
                self.used["subquery_in_select"] += 1
            texts, families = [*texts, text], (*families, family)
        return Query(f"SELECT {self.select(texts)} FROM {source}{where}", families)

    def lateral(self, depth: int) -> Query:
        source, scope = self.item(0)
        inner_source, inner_scope, where = self._subquery_from(scope, depth)
        alias = self.alias()
        if self.rng.random() < 0.5:
            call, family = aggregate(self.exprs, inner_scope)
            body = f"SELECT {call} AS x FROM {inner_source}{where}"
        else:
            column = self.rng.choice(inner_scope)
            body = f"SELECT {column.text} AS x FROM {inner_source}{where} ORDER BY 1 LIMIT 2"
            family = plain_family(column.family)
        if self.rng.random() < 0.5:
            self.used["lateral_expression"] += 1
            outer = self.rng.choice(scope)
            body, family = f"SELECT {outer.text} AS x FROM {inner_source}{where}", plain_family(outer.family)
        join = self.rng.choice(("CROSS JOIN LATERAL", "LEFT JOIN LATERAL"))
        on = " ON true" if join.startswith("LEFT") else ""
        first = self.rng.choice(scope)
        text = f"SELECT {first.text} AS c0, {alias}.x AS c1 FROM {source} {join} ({body}) AS {alias}{on}"
        return Query(text, (plain_family(first.family), family))
