"""Random FROM clauses: tables, views, derived tables, joins of every kind."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass

from eddyline.testing.fuzz.expressions import Expressions
from eddyline.testing.fuzz.schema import Scoped, plain_family

__all__ = ["FromGenerator", "Query", "Source"]

_FAMILIES = ("int", "int", "bigint", "numeric", "text", "bool", "date", "timestamp", "float")
_EXTRA = ("real", "char", "bytea", "time", "timestamptz", "interval", "uuid")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "USING", "NATURAL", "NESTED")
#: equality of these is not hashable or mergeable between PostgreSQL's types as we mix them
_UNJOINED = frozenset({"bool"})


@dataclass(frozen=True, slots=True)
class Query:
    """``families`` of the output columns, which are named c0, c1, …  ``fallible``: some rows may raise."""

    text: str
    families: tuple[str, ...]
    fallible: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Something to select from: a table, an earlier view, a common table."""

    name: str
    columns: tuple[tuple[str, str], ...]  # (name, family)
    derived: bool = True


class FromGenerator(ABC):
    """``sources``: what may be selected from now."""

    def __init__(self, rng: random.Random, sources: list[Source], used: Counter[str]) -> None:
        self.rng = rng
        self.sources = sources
        self.used = used
        self.exprs = Expressions(rng, used)
        self._aliases = 0

    @abstractmethod
    def query(self, depth: int = 2) -> Query: ...

    def alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    def item(self, depth: int) -> tuple[str, list[Scoped]]:
        alias = self.alias()
        if depth > 0 and self.rng.random() < 0.25:
            inner = self.query(depth - 1)
            self.used["derived_table"] += 1
            names = ", ".join(f"c{i}" for i in range(len(inner.families)))
            scope = [Scoped(f"{alias}.c{i}", f, derived=True) for i, f in enumerate(inner.families)]
            return f"({inner.text}) AS {alias}({names})", scope
        source = self.rng.choice(self.sources)
        return f"{source.name} AS {alias}", [Scoped(f"{alias}.{n}", f, source.derived) for n, f in source.columns]

    def from_clause(self, depth: int) -> tuple[str, list[Scoped]]:
        """A FROM clause of one to three items, and its scope."""
        text, scope = self.item(depth)
        for _ in range(self.rng.choices((0, 1, 2), (5, 4, 1))[0]):
            kind = self.rng.choices(_JOINS, (4, 3, 1.5, 1.5, 0.5, 1, 0.7, 0.7))[0]
            self.used[f"{kind.lower().replace(' ', '_')}_join".replace("join_join", "join")] += 1
            match kind:
                case "USING" | "NATURAL":
                    text, scope = self._named_join(kind, text, scope, depth)
                case "NESTED":
                    text, scope = self._nested_join(text, scope, depth)
                case _:
                    right, right_scope = self.item(depth - 1)
                    text, scope = f"{text} {self._joined(kind, right, scope, right_scope)}", scope + right_scope
        return text, scope

    def _joined(self, kind: str, right: str, left_scope: list[Scoped], right_scope: list[Scoped]) -> str:
        if kind == "CROSS JOIN":
            return f"CROSS JOIN {right}"
        return f"{kind} {right} ON {self._join_condition(kind, left_scope, right_scope)}"

    def _nested_join(self, text: str, scope: list[Scoped], depth: int) -> tuple[str, list[Scoped]]:
        """a JOIN (b JOIN c)."""
        second, second_scope = self.item(depth - 1)
        third, third_scope = self.item(0)
        inner, outer = (self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")) for _ in range(2))
        inside = f"({second} {self._joined(inner, third, second_scope, third_scope)})"
        right_scope = second_scope + third_scope
        return f"{text} {self._joined(outer, inside, scope, right_scope)}", scope + right_scope

    def _named_join(self, kind: str, text: str, scope: list[Scoped], depth: int) -> tuple[str, list[Scoped]]:
        """A join of derived tables that share exactly one column name."""
        alias = self.alias()
        shared = f"j{alias}"
        right, right_scope = self.item(0)
        pairs = self._pairs(scope, right_scope)
        if not pairs:
            return f"{text} CROSS JOIN {right}", scope + right_scope
        a, b = self.rng.choice(pairs)
        left_query, left_out = self._renamed(text, scope, a, shared, f"l{alias}")
        right_query, right_out = self._renamed(right, right_scope, b, shared, f"r{alias}")
        join = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        merged = [Scoped(shared, plain_family(a.family), derived=True), *left_out, *right_out]
        if kind == "NATURAL":
            return f"{left_query} NATURAL {join} {right_query}", merged
        return f"{left_query} {join} {right_query} USING ({shared})", merged

    def _renamed(
        self, text: str, scope: list[Scoped], key: Scoped, shared: str, alias: str
    ) -> tuple[str, list[Scoped]]:
        others = [c for c in scope if c is not key][:3]
        columns = ", ".join([f"{key.text} AS {shared}", *(f"{c.text} AS {alias}x{i}" for i, c in enumerate(others))])
        out = [Scoped(f"{alias}.{alias}x{i}", c.family, c.derived) for i, c in enumerate(others)]
        return f"(SELECT {columns} FROM {text}) AS {alias}", out

    def _pairs(self, left: list[Scoped], right: list[Scoped]) -> list[tuple[Scoped, Scoped]]:
        return [(a, b) for a in left for b in right if a.family == b.family and a.family not in _UNJOINED]

    def _join_condition(self, kind: str, left: list[Scoped], right: list[Scoped]) -> str:
        pairs = self._pairs(left, right)
        if not pairs:
            return "true" if kind != "FULL JOIN" else "1 = 1"
        a, b = self.rng.choice(pairs)
        condition = f"{self.exprs.column(a)} = {self.exprs.column(b)}"
        # PostgreSQL takes a FULL JOIN only on conditions that it can merge or hash.
        if kind != "FULL JOIN" and self.rng.random() < 0.35:
            self.used["residual_condition"] += 1
            condition += f" AND {self.exprs.predicate(left + right, 1)}"
        elif kind != "FULL JOIN" and self.rng.random() < 0.15:
            self.used["theta_join"] += 1
            condition = self.exprs.predicate(left + right, 1)
        return condition

    # -- the parts every query has

    def where(self, scope: list[Scoped], chance: float = 0.5) -> str:
        return f" WHERE {self.exprs.predicate(scope)}" if self.rng.random() < chance else ""

    def outputs(self, scope: list[Scoped], count: int | None = None) -> tuple[list[str], tuple[str, ...]]:
        families = tuple(self._output_family(scope) for _ in range(count or self.rng.randint(1, 3)))
        return [self.exprs.of(f, scope) for f in families], families

    def _output_family(self, scope: list[Scoped]) -> str:
        choice = self.rng.random()
        if choice < 0.3:
            return self.rng.choice(_FAMILIES)
        return self.rng.choice(_EXTRA if choice < 0.42 else [plain_family(c.family) for c in scope])

    def select(self, texts: list[str]) -> str:
        return ", ".join(f"{t} AS c{i}" for i, t in enumerate(texts))
