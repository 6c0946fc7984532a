"""Random scalar expressions of a wanted family over the columns in scope.

Every expression is deterministic and, except where ``fallible`` is asked for, can't fail on any row.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

from eddyline.testing.fuzz.scalars import Choices, fallible_choices, scalar_choices, scalar_families
from eddyline.testing.fuzz.schema import Scoped, literal, plain_family

__all__ = ["Expressions", "Scoped"]

_COMPARABLE = ("int", "bigint", "numeric", "float", "text", "date", "timestamp", "bool")
_PATTERNS = ("'a%'", "'%b'", "'_b%'", "''", "'%a_%'", r"'%\%%'")
#: literals whose type must be written, and the type
_TYPED = {"numeric": "numeric(10,2)", "float": "double precision", "real": "real", "bigint": "bigint", "text": "text",
          "char": "char(3)"}  # fmt: skip


class Expressions:
    """``used`` counts the constructs generated so far."""

    def __init__(self, rng: random.Random, used: Counter[str]) -> None:
        self.rng = rng
        self.used = used

    def pick(self, construct: str, text: str) -> str:
        self.used[construct] += 1
        return text

    def of(self, family: str, scope: list[Scoped], depth: int = 2) -> str:
        """An expression of ``family``; smallint columns count as int, varchar as text."""
        rng = self.rng
        columns = [c for c in scope if plain_family(c.family) == family]
        if depth <= 0 or (columns and rng.random() < 0.45):
            if columns and rng.random() < 0.85:
                return self.column(rng.choice(columns))
            return self._literal(family)
        general = rng.random()
        if general < 0.1:
            return self.pick("case", self._case(family, scope, depth))
        if general < 0.16:
            first, second = self.of(family, scope, depth - 1), self.of(family, scope, depth - 1)
            return self.pick("coalesce", f"coalesce({first}, {second})")
        if general < 0.2:
            return self.pick("nullif", f"nullif({self.of(family, scope, depth - 1)}, {self._literal(family)})")
        if general < 0.25:
            which = rng.choice(("greatest", "least"))
            first, second = self.of(family, scope, depth - 1), self.of(family, scope, depth - 1)
            return self.pick(which, f"{which}({first}, {second})")
        return self._from(scalar_choices(family, self, scope, depth - 1))

    def made(self, scope: list[Scoped]) -> str:
        """A scalar construct over ``scope``, each about as likely as any other."""
        choices: Choices = {}
        for family in scalar_families():
            choices |= scalar_choices(family, self, scope, 1)
        return self._from(choices)

    def fallible(self, scope: list[Scoped]) -> tuple[str, str]:
        """(text, family) of an expression that fails on some rows."""
        choices = fallible_choices(self, scope)
        name = self.rng.choice(list(choices))
        self.used[name] += 1
        return choices[name]

    def column(self, column: Scoped) -> str:
        return self.pick(f"type_{column.family}", column.text)

    def _literal(self, family: str) -> str:
        text = literal(self.rng, family)
        return f"({text})::{_TYPED[family]}" if family in _TYPED else text

    def _case(self, family: str, scope: list[Scoped], depth: int) -> str:
        if self.rng.random() < 0.25:
            self.used["simple_case"] += 1
            subject = self.of("int", scope, 0)
            return f"CASE {subject} WHEN {self.of('int', scope, 0)} THEN {self.of(family, scope, depth - 1)} END"
        arms = " ".join(
            f"WHEN {self.predicate(scope, depth - 1)} THEN {self.of(family, scope, depth - 1)}"
            for _ in range(self.rng.randint(1, 2))
        )
        otherwise = f" ELSE {self.of(family, scope, depth - 1)}" if self.rng.random() < 0.7 else ""
        return f"CASE {arms}{otherwise} END"

    def predicate(self, scope: list[Scoped], depth: int = 2) -> str:
        rng = self.rng
        family = rng.choice(_COMPARABLE if not scope else [plain_family(c.family) for c in scope])
        a = partial(self.of, family, scope, max(depth - 1, 0))
        i = partial(self.of, "int", scope, 0)
        operator = partial(rng.choice, ("=", "<>", "<", "<=", ">", ">="))
        negation = partial(rng.choice, ("", "NOT "))
        choices: Choices = {
            "compare": lambda: f"{a()} {operator()} {a()}",
            "compare_numbers": lambda: self._compare_numbers(scope, operator()),
            "is_null": lambda: f"{a()} IS {negation()}NULL",
            "is_distinct_from": lambda: f"{a()} IS {negation()}DISTINCT FROM {a()}",
            "between": lambda: f"{a()} {negation()}BETWEEN {a()} AND {a()}",
            "between_symmetric": lambda: f"{i()} {negation()}BETWEEN SYMMETRIC {i()} AND {i()}",
            "in_list": lambda: (
                f"{a()} {negation()}IN ({a()}, {a()}, NULL)"
                if rng.random() < 0.3
                else f"{a()} {negation()}IN ({a()}, {a()})"
            ),
            "any_list": lambda: f"{a()} {operator()} {rng.choice(('ANY', 'ALL', 'SOME'))} (ARRAY[{a()}, {a()}])",
            "like": lambda: (
                f"{self.of('text', scope, 0)} {rng.choice(('LIKE', 'NOT LIKE', 'ILIKE'))} {rng.choice(_PATTERNS)}"
            ),
            "regex": lambda: (
                f"{self.of('text', scope, 0)} {rng.choice(('~', '!~', '~*'))} '{rng.choice(('^a', 'b$', '[ab]+'))}'"
            ),
            "row_compare": lambda: f"({a()}, {i()}) {operator()} ({a()}, {i()})",
            "row_distinct": lambda: f"({a()}, {i()}) IS {negation()}DISTINCT FROM ({a()}, {i()})",
            "row_in_list": lambda: f"({a()}, {i()}) {negation()}IN (({a()}, {i()}), ({a()}, {i()}))",
            "row_is_null": lambda: f"({a()}, {i()}) IS {negation()}NULL",
            "boolean_test": lambda: f"({self.of('bool', scope, 0)}) IS {rng.choice(('TRUE', 'NOT FALSE', 'UNKNOWN'))}",
        }
        if depth > 0:
            choices |= {
                "and": lambda: f"({self.predicate(scope, depth - 1)} AND {self.predicate(scope, depth - 1)})",
                "or": lambda: f"({self.predicate(scope, depth - 1)} OR {self.predicate(scope, depth - 1)})",
                "not": lambda: f"NOT ({self.predicate(scope, depth - 1)})",
            }
        return self._from(choices)

    def _compare_numbers(self, scope: list[Scoped], operator: str) -> str:
        """A comparison across number types, or of dates with timestamps."""
        pairs = (("int", "numeric"), ("bigint", "float"), ("int", "real"), ("date", "timestamp"), ("text", "char"))
        left, right = self.rng.choice(pairs)
        return f"{self.of(left, scope, 0)} {operator} {self.of(right, scope, 0)}"

    def _from(self, choices: Choices) -> str:
        name = self.rng.choice(list(choices))
        return self.pick(name, choices[name]())
