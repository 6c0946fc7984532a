"""Random scalar expressions of a wanted family over the columns in scope.

Every expression is deterministic and, except where ``fallible`` is asked for, can't fail on any row.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from eddyline.testing.fuzz.schema import literal

__all__ = ["Expressions", "Scoped"]

_COMPARABLE = ("int", "bigint", "numeric", "float", "text", "date", "timestamp", "bool")
_NUMBERS = ("int", "bigint", "numeric", "float")


@dataclass(frozen=True, slots=True)
class Scoped:
    """A column that an expression may name."""

    text: str
    family: str


class Expressions:
    """``used`` counts the constructs generated so far."""

    def __init__(self, rng: random.Random, used: Counter[str]) -> None:
        self.rng = rng
        self.used = used

    def pick(self, construct: str, text: str) -> str:
        self.used[construct] += 1
        return text

    def of(self, family: str, scope: list[Scoped], depth: int = 2) -> str:
        """An expression of ``family``; smallint columns count as int."""
        rng = self.rng
        columns = [c for c in scope if _family(c.family) == family]
        if depth <= 0 or (columns and rng.random() < 0.45):
            return rng.choice(columns).text if columns and rng.random() < 0.85 else self._literal(family)
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
            return self.pick(
                which, f"{which}({self.of(family, scope, depth - 1)}, {self.of(family, scope, depth - 1)})"
            )
        return getattr(self, f"_{family}")(scope, depth - 1)

    def _literal(self, family: str) -> str:
        text = literal(self.rng, family)
        match family:
            case "numeric":
                return f"{text}::numeric(10,2)"
            case "float":
                return f"{text}::double precision"
            case "bigint":
                return f"{text}::bigint"
            case "text":
                return f"{text}::text"
            case _:
                return text

    def _case(self, family: str, scope: list[Scoped], depth: int) -> str:
        arms = " ".join(
            f"WHEN {self.predicate(scope, depth - 1)} THEN {self.of(family, scope, depth - 1)}"
            for _ in range(self.rng.randint(1, 2))
        )
        otherwise = f" ELSE {self.of(family, scope, depth - 1)}" if self.rng.random() < 0.7 else ""
        return f"CASE {arms}{otherwise} END"

    def _int(self, scope: list[Scoped], depth: int) -> str:
        rng = self.rng
        a = lambda: self.of("int", scope, depth)  # noqa: E731 - each call draws afresh
        choices = {
            "add": lambda: f"({a()} + {a()})",
            "subtract": lambda: f"({a()} - {a()})",
            "multiply": lambda: f"({a()} * {rng.randint(-2, 3)})",
            "divide": lambda: f"({a()} / {rng.choice((2, 3, -2))})",
            "modulo": lambda: f"({a()} % {rng.choice((2, 3, -3))})",
            "abs": lambda: f"abs({a()})",
            "char_length": lambda: f"char_length({self.of('text', scope, depth)})",
            "position": lambda: f"position('a' in {self.of('text', scope, depth)})",
            "extract": lambda: (
                f"extract({rng.choice(('year', 'month', 'day', 'dow'))} from {self.of('date', scope, depth)})::int"
            ),
            "date_minus_date": lambda: f"({self.of('date', scope, depth)} - {self.of('date', scope, depth)})",
            "negate": lambda: f"(- {a()})",
        }
        return self._from(choices)

    def _bigint(self, scope: list[Scoped], depth: int) -> str:
        return self._from(
            {
                "cast_bigint": lambda: f"({self.of('int', scope, depth)})::bigint",
                "add_bigint": lambda: f"({self.of('bigint', scope, depth)} + {self.of('int', scope, depth)})",
                "multiply_bigint": lambda: f"({self.of('bigint', scope, depth)} * {self.rng.randint(-2, 3)})",
            }
        )

    def _numeric(self, scope: list[Scoped], depth: int) -> str:
        rng = self.rng
        a = lambda: self.of("numeric", scope, depth)  # noqa: E731
        return self._from(
            {
                "numeric_add": lambda: f"({a()} + {a()})",
                "numeric_subtract": lambda: f"({a()} - {self.of('int', scope, depth)})",
                "numeric_multiply": lambda: f"({a()} * {rng.choice(('1.5', '2', '-0.25'))})",
                "numeric_divide": lambda: f"({a()} / {rng.choice(('3', '1.25', '-7'))})",
                "round": lambda: f"round({a()}, {rng.randint(0, 1)})",
                "floor": lambda: f"floor({a()})",
                "ceil": lambda: f"ceil({a()})",
                "trunc": lambda: f"trunc({a()}, 1)",
                "sign": lambda: f"sign({a()})",
                "cast_numeric": lambda: f"({self.of('int', scope, depth)})::numeric(12,1)",
                "mod": lambda: f"mod({a()}, 3)",
            }
        )

    def _float(self, scope: list[Scoped], depth: int) -> str:
        a = lambda: self.of("float", scope, depth)  # noqa: E731
        return self._from(
            {
                "float_add": lambda: f"({a()} + {a()})",
                "float_multiply": lambda: f"({a()} * 0.5)",
                "cast_float": lambda: f"({self.of('int', scope, depth)})::double precision",
                "sqrt": lambda: f"sqrt(abs({a()}))",
                "float_abs": lambda: f"abs({a()})",
            }
        )

    def _text(self, scope: list[Scoped], depth: int) -> str:
        rng = self.rng
        a = lambda: self.of("text", scope, depth)  # noqa: E731
        return self._from(
            {
                "concat_operator": lambda: f"({a()} || {a()})",
                "concat": lambda: f"concat({a()}, {self.of('int', scope, depth)})",
                "concat_ws": lambda: f"concat_ws('-', {a()}, {a()})",
                "lower": lambda: f"lower({a()})",
                "upper": lambda: f"upper({a()})",
                "trim": lambda: f"{rng.choice(('trim', 'ltrim', 'rtrim'))}({a()})",
                "substring": lambda: f"substring({a()} from {rng.randint(0, 2)} for {rng.randint(0, 2)})",
                "replace": lambda: f"replace({a()}, 'a', 'ou')",
                "split_part": lambda: f"split_part({a()}, 'b', 1)",
                "left": lambda: f"left({a()}, {rng.randint(-1, 2)})",
                "right": lambda: f"right({a()}, {rng.randint(-1, 2)})",
                "lpad": lambda: f"lpad({a()}, 3, '*')",
                "repeat": lambda: f"repeat({a()}, 2)",
                "reverse": lambda: f"reverse({a()})",
                "md5": lambda: f"md5({a()})",
                "cast_text": lambda: f"({self.of(rng.choice(('int', 'bool', 'date', 'numeric')), scope, depth)})::text",
            }
        )

    def _bool(self, scope: list[Scoped], depth: int) -> str:
        return f"({self.predicate(scope, depth)})"

    def _date(self, scope: list[Scoped], depth: int) -> str:
        return self._from(
            {
                "date_plus": lambda: f"({self.of('date', scope, depth)} + {self.rng.randint(-40, 40)})",
                "cast_date": lambda: f"({self.of('timestamp', scope, depth)})::date",
            }
        )

    def _timestamp(self, scope: list[Scoped], depth: int) -> str:
        rng = self.rng
        return self._from(
            {
                "date_trunc": lambda: (
                    f"date_trunc('{rng.choice(('month', 'day', 'hour', 'week'))}', {self.of('timestamp', scope, depth)})"
                ),
                "plus_interval": lambda: (
                    f"({self.of('timestamp', scope, depth)} + interval '{rng.choice(('1 month', '2 days', '-3 hours'))}')"
                ),
                "cast_timestamp": lambda: f"({self.of('date', scope, depth)})::timestamp",
            }
        )

    def predicate(self, scope: list[Scoped], depth: int = 2) -> str:
        rng = self.rng
        family = rng.choice(_COMPARABLE if not scope else [_family(c.family) for c in scope])
        a = lambda: self.of(family, scope, max(depth - 1, 0))  # noqa: E731
        choices = {
            "compare": lambda: f"{a()} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {a()}",
            "is_null": lambda: f"{a()} IS {rng.choice(('', 'NOT '))}NULL",
            "is_distinct_from": lambda: f"{a()} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {a()}",
            "between": lambda: f"{a()} {rng.choice(('', 'NOT '))}BETWEEN {a()} AND {a()}",
            "in_list": lambda: (
                f"{a()} {rng.choice(('', 'NOT '))}IN ({a()}, {a()}, NULL)"
                if rng.random() < 0.3
                else f"{a()} IN ({a()}, {a()})"
            ),
            "like": lambda: (
                f"{self.of('text', scope, 0)} {rng.choice(('LIKE', 'NOT LIKE', 'ILIKE'))} {rng.choice(_PATTERNS)}"
            ),
            "regex": lambda: (
                f"{self.of('text', scope, 0)} {rng.choice(('~', '!~', '~*'))} '{rng.choice(('^a', 'b$', '[ab]+'))}'"
            ),
            "row_compare": lambda: (
                f"({a()}, {self.of('int', scope, 0)}) {rng.choice(('=', '<', '>=', '<>'))} "
                f"({a()}, {self.of('int', scope, 0)})"
            ),
            "boolean_test": lambda: f"({self.of('bool', scope, 0)}) IS {rng.choice(('TRUE', 'NOT FALSE', 'UNKNOWN'))}",
        }
        if depth > 0:
            choices |= {
                "and": lambda: f"({self.predicate(scope, depth - 1)} AND {self.predicate(scope, depth - 1)})",
                "or": lambda: f"({self.predicate(scope, depth - 1)} OR {self.predicate(scope, depth - 1)})",
                "not": lambda: f"NOT ({self.predicate(scope, depth - 1)})",
            }
        return self._from(choices)

    def _from(self, choices: dict[str, object]) -> str:
        name = self.rng.choice(list(choices))
        make = choices[name]
        assert callable(make)
        return self.pick(name, make())


_PATTERNS = ("'a%'", "'%b'", "'_b%'", "''", "'%a_%'")


def _family(family: str) -> str:
    return "int" if family == "smallint" else family
