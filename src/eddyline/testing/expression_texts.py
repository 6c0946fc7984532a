"""Random expression texts without parentheses that only repeat what precedence says.

What an expression means then depends on every rule of the grammar and of typing at once.  Most are well typed; some
have an operator that does not fit, since refusing is a meaning too.
"""

from __future__ import annotations

import random

__all__ = ["COLUMNS", "ROWS", "TABLE", "ExpressionTexts"]

COLUMNS = {
    "i": "int", "s": "smallint", "b": "bigint", "n": "numeric(10,2)", "u": "numeric", "r": "real",
    "d": "double precision", "x": "text", "v": "varchar(8)", "c": "char(4)", "f": "boolean", "g": "boolean",
    "dt": "date", "tm": "time", "ts": "timestamp", "tz": "timestamptz", "iv": "interval", "by": "bytea", "uu": "uuid",
}  # fmt: skip
TABLE = "CREATE TABLE e (id int, " + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()) + ")"
ROWS = (
    "(1, 3, 2, 40, 2.50, 1.75, 0.5, 1.5, 'abc', 'Bc', 'ab', true, false, '2024-02-29', '10:11:12', "
    "'2024-01-31 12:00:00', '2024-03-01 00:30:00+00', '1 mon 2 days 03:00:00', '\\x00ff', "
    "'00000000-0000-0000-0000-00000000000a')",
    "(2, -7, 0, 5000000000, -12.25, 1000000.001, -2, 1e10, '', 'a%', 'a', false, NULL, '1999-12-31', '23:59:59.5', "
    "'1999-12-31 23:59:59.999', '1970-01-01 00:00:00+00', '-1 days +00:00:01', '', "
    "'ffffffff-ffff-ffff-ffff-ffffffffffff')",
    "(3, 0, -5, -1, 0.00, -0.5, 0, -3, 'A_b', 'é', 'b ', NULL, true, '2000-01-01', '00:00', '2000-01-01 00:00:00', "
    "'2030-06-15 12:00:00+00', '1 year', '\\x61', '12345678-1234-5678-1234-567812345678')",
    "(4" + ", NULL" * len(COLUMNS) + ")",
)

_ARITHMETIC = ("+", "-", "*", "/", "%", "+", "-", "*")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "!=")
_MATCHES = ("~", "!~", "~*", "~~", "!~~")
_PATTERNS = ("'^a'", "x", "'b|c$'")
_NUMBERS = ("i", "s", "b", "n", "u", "r", "d")
_TEXTS = ("x", "v", "c")
_TIMES = ("dt", "ts", "tz")


class ExpressionTexts:
    """``next()``: one more expression over the columns of ``TABLE``."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def next(self) -> str:
        rng = self._rng
        made = rng.choices(
            (self._number, self._text, self._truth, self._moment, self._span, self._mixed), (28, 14, 34, 10, 6, 8)
        )[0]()
        return made

    # -- numbers

    def _number(self) -> str:
        rng = self._rng
        parts = [self._number_operand()]
        for _ in range(rng.randint(1, 4)):
            if rng.random() < 0.12:
                parts.append(f"^ {rng.choice(('2', '3', '0.5', '-1', 's', '2::numeric'))}")
            else:
                parts.append(f"{rng.choice(_ARITHMETIC)} {self._number_operand()}")
        return " ".join(parts)

    def _number_operand(self) -> str:
        rng = self._rng
        base = self._number_atom()
        if rng.random() < 0.2:
            base = f"{base}::{rng.choice(('int', 'bigint', 'numeric', 'float8', 'real', 'numeric(12,3)', 'smallint'))}"
        if rng.random() < 0.18:
            base = rng.choice(("- ", "+ ", "-", "- - ")) + base
        return base

    def _number_atom(self) -> str:
        rng = self._rng
        match rng.randint(0, 9):
            case 0 | 1 | 2 | 3 | 4:
                return rng.choice(_NUMBERS)
            case 5 | 6:
                return rng.choice(("1", "2", "7", "10", "1.5", "0.25", "1e2", "100.00", "3000000000", "2147483647"))
            case 7:
                return f"'{rng.choice(('4', '2.5', '0', 'x'))}'"
            case 8:
                return rng.choice(
                    ("abs(i)", "round(n, 1)", "char_length(x)", "coalesce(i, n)", "greatest(s, b)", "floor(d)",
                     "nullif(i, 3)", "least(n, 1.0)", "round(u)", "mod(b, 7)", "sign(n)", "position('b' in x)",
                     "extract(year from dt)", "length(v)", "trunc(n, 1)", "ceil(r)", "power(i, 2)")
                )  # fmt: skip
            case _:
                then, otherwise = rng.choice(_NUMBERS), rng.choice((*_NUMBERS, "0", "1.5"))
                return f"CASE WHEN {self._predicate()} THEN {then} ELSE {otherwise} END"

    # -- texts

    def _text(self) -> str:
        rng = self._rng
        parts = [self._text_operand()]
        for _ in range(rng.randint(1, 3)):
            operand = self._text_operand() if rng.random() < 0.7 else self._number_operand()
            parts.append(f"|| {operand}")
        return " ".join(parts)

    def _text_operand(self) -> str:
        rng = self._rng
        match rng.randint(0, 8):
            case 0 | 1 | 2:
                return rng.choice(_TEXTS)
            case 3 | 4:
                return rng.choice(("'a'", "'%'", "''", "'Ab'", "'1'", "NULL", "U&'\\0061'", "E'\\t'"))
            case 5:
                return f"{rng.choice((*_NUMBERS, 'f', 'dt', 'ts', 'iv', 'uu', 'by'))}::text"
            case 6:
                return f"{rng.choice(_TEXTS)}::{rng.choice(('varchar(2)', 'char(3)', 'text', 'varchar', 'char'))}"
            case 7:
                return rng.choice(
                    ("upper(x)", "left(x, 2)", "substring(v from 2)", "coalesce(x, 'q')", "concat(i, x, f)",
                     "greatest(x, v)", "trim(c)", "repeat(v, 2)", "nullif(x, '')", "lpad(x, 5, '*')",
                     "replace(x, 'b', 'z')", "reverse(x)", "split_part(x, 'b', 1)")
                )  # fmt: skip
            case _:
                return f"CASE {rng.choice(('i', 's'))} WHEN 3 THEN x WHEN {rng.choice(('0', 's', '1.5'))} THEN v END"

    # -- truth values

    def _truth(self) -> str:
        rng = self._rng
        parts = [self._negated()]
        for _ in range(rng.randint(0, 3)):
            parts.append(f"{rng.choice(('AND', 'OR'))} {self._negated()}")
        return " ".join(parts)

    def _negated(self) -> str:
        return self._rng.choice(("", "", "", "NOT ", "NOT NOT ")) + self._predicate()

    def _predicate(self) -> str:
        rng = self._rng
        no = rng.choice(("", "NOT "))
        match rng.randint(0, 13):
            case 0 | 1 | 2:
                return f"{self._short_number()} {rng.choice(_COMPARISONS)} {self._short_number()}"
            case 3:
                return f"{self._short_number()} {no}BETWEEN {self._short_number()} AND {self._short_number()}"
            case 4:
                return f"{self._short_number()} {no}IN ({self._short_number()}, {rng.choice(_NUMBERS)}, NULL)"
            case 5:
                tested = rng.choice((self._short_number, self._short_text))()
                return f"{tested} IS {no}{rng.choice(('NULL', f'DISTINCT FROM {rng.choice(_NUMBERS)}'))}"
            case 6:
                return f"{rng.choice(('f', 'g', 'i = s'))} IS {no}{rng.choice(('TRUE', 'FALSE', 'UNKNOWN'))}"
            case 7:
                pattern = rng.choice(("'a%'", "'%b_'", "v", "x || '%'", "'A\\_b'"))
                return f"{self._short_text()} {no}{rng.choice(('LIKE', 'ILIKE', 'LIKE'))} {pattern}"
            case 8:
                return f"{self._short_text()} {rng.choice(_MATCHES)} {rng.choice(_PATTERNS)}"
            case 9:
                return f"{self._short_text()} {rng.choice(_COMPARISONS)} {self._short_text()}"
            case 10:
                return f"{self._short_moment()} {rng.choice(_COMPARISONS)} {self._short_moment()}"
            case 11:
                return f"({rng.choice(_NUMBERS)}, x) {rng.choice(_COMPARISONS)} ({self._short_number()}, v)"
            case 12:
                return rng.choice(("f", "g", "TRUE", "NULL", "i::bool", "f = g", "f < g", "'t'"))
            case _:
                compared = f"{self._short_number()} {rng.choice(_COMPARISONS)} {self._short_number()}"
                return f"{compared} {rng.choice(('IS NULL', 'IS NOT TRUE', '= f', '< 3', 'IS DISTINCT FROM f'))}"

    def _short_number(self) -> str:
        rng = self._rng
        if rng.random() < 0.5:
            return self._number_operand()
        return f"{self._number_operand()} {rng.choice(_ARITHMETIC)} {self._number_operand()}"

    def _short_text(self) -> str:
        rng = self._rng
        if rng.random() < 0.6:
            return self._text_operand()
        return f"{self._text_operand()} || {self._text_operand()}"

    # -- moments and spans

    def _moment(self) -> str:
        rng = self._rng
        parts = [self._moment_operand()]
        for _ in range(rng.randint(1, 3)):
            parts.append(f"{rng.choice('+-')} {self._span_operand()}")
        return " ".join(parts)

    def _short_moment(self) -> str:
        rng = self._rng
        return self._moment_operand() if rng.random() < 0.6 else f"{self._moment_operand()} + {self._span_operand()}"

    def _moment_operand(self) -> str:
        rng = self._rng
        match rng.randint(0, 6):
            case 0 | 1 | 2 | 3:
                return rng.choice((*_TIMES, "tm"))
            case 4:
                return rng.choice(
                    ("date '2024-02-29'", "'2024-01-01'", "timestamp '2001-02-03 04:05:06'", "time '01:02'")
                )
            case 5:
                return f"{rng.choice(_TIMES)}::{rng.choice(('date', 'timestamp', 'timestamptz', 'time'))}"
            case _:
                return rng.choice(
                    ("date_trunc('month', ts)", "ts AT TIME ZONE 'UTC'", "tz AT TIME ZONE 'Europe/Paris'",
                     "greatest(dt, ts)", "make_date(2024, 2, 29)", "date_trunc('day', tz)")
                )  # fmt: skip

    def _span_operand(self) -> str:
        return self._rng.choice(
            ("iv", "interval '1 day'", "interval '1 month'", "'1 hour'", "1", "i", "tm", "iv * 2", "iv / 3", "- iv",
             "interval '90 minutes' * d", "dt", "ts", "s")
        )  # fmt: skip

    def _span(self) -> str:
        rng = self._rng
        return rng.choice(
            (
                f"{self._moment_operand()} - {self._moment_operand()}",
                f"iv {rng.choice('+-')} {self._span_operand()} * {self._number_operand()}",
                f"{self._number_operand()} * iv",
                f"iv / {self._number_operand()}",
                f"- iv {rng.choice('+-')} {self._span_operand()}",
                f"iv {rng.choice(_COMPARISONS)} {self._span_operand()}",
                f"extract({rng.choice(('epoch', 'day', 'hour', 'month', 'dow'))} from {self._moment_operand()}) + i",
            )
        )

    # -- anything with anything

    def _mixed(self) -> str:
        rng = self._rng
        operators = (
            *_ARITHMETIC,
            "^",
            "||",
            *_COMPARISONS,
            "LIKE",
            "IS DISTINCT FROM",
            "~",
            "AND",
            "OR",
            "#",
            "&",
            "|",
            "<<",
        )
        parts = [self._any()]
        for _ in range(rng.randint(1, 3)):
            parts.append(f"{rng.choice(operators)} {self._any()}")
        return " ".join(parts)

    def _any(self) -> str:
        rng = self._rng
        base = rng.choice((*COLUMNS, "1", "1.5", "'a'", "NULL", "TRUE", "'2024-01-01'"))
        if rng.random() < 0.25:
            base += "::" + rng.choice(
                ("int", "text", "numeric", "float8", "bool", "date", "timestamp", "interval", "bytea")
            )
        return base
