"""What each family of expressions can be made of: construct name -> a thunk that writes one."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Protocol

from eddyline.testing.fuzz.schema import Scoped, literal, plain_family

__all__ = ["Choices", "Draw", "fallible_choices", "scalar_choices", "scalar_families"]

Choices = dict[str, Callable[[], str]]

_DATE_FIELDS = ("year", "month", "day", "dow", "doy", "week")
_CLOCK_FIELDS = ("hour", "minute")
_ELAPSED = ("timestamp", "timestamptz", "interval")
_ZONES = ("Europe/Berlin", "America/New_York", "UTC", "Asia/Kolkata")


class Draw(Protocol):
    rng: random.Random

    def of(self, family: str, scope: list[Scoped], depth: int = 2) -> str: ...
    def predicate(self, scope: list[Scoped], depth: int = 2) -> str: ...


def scalar_choices(family: str, draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    """Expressions of ``family`` that can't fail on any row; their parts are at most ``depth`` deep."""
    return _MAKERS[family](draw, scope, depth)


def _drawer(draw: Draw, scope: list[Scoped], depth: int) -> Callable[[str], str]:
    return lambda family: draw.of(family, scope, depth)


def _int(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    rng = draw.rng
    a = partial(draw.of, "int", scope, depth)
    b = _drawer(draw, scope, depth)
    return {
        "add": lambda: f"({a()} + {a()})",
        "subtract": lambda: f"({a()} - {a()})",
        "multiply": lambda: f"({a()} * {rng.randint(-2, 3)})",
        "divide": lambda: f"({a()} / {rng.choice((2, 3, -2))})",
        "modulo": lambda: f"({a()} % {rng.choice((2, 3, -3))})",
        "abs": lambda: f"abs({a()})",
        "negate": lambda: f"(- {a()})",
        "bits": lambda: f"({a()} {rng.choice(('&', '|', '#'))} {a()})",
        "char_length": lambda: f"char_length({b('text')})",
        "octet_length": lambda: f"octet_length({b(rng.choice(('text', 'bytea', 'char')))})",
        "position": lambda: f"position('a' in {b('text')})",
        "strpos": lambda: f"strpos({b('text')}, {b('text')})",
        "ascii": lambda: f"ascii({b('text')})",
        "extract": lambda: f"extract({rng.choice(_DATE_FIELDS)} from {b('date')})::int",
        "extract_time": lambda: (
            f"extract({rng.choice(_CLOCK_FIELDS)} from {b(rng.choice(('time', 'timestamp')))})::int"
        ),
        "extract_interval": lambda: f"extract({rng.choice(('month', 'day', 'hour'))} from {b('interval')})::int",
        "date_minus_date": lambda: f"({b('date')} - {b('date')})",
        "operator_chain": lambda: _chain(rng, partial(draw.of, "int", scope, 0)),
        "guarded_divide": lambda: _guarded(rng, a(), a(), scope),
        "round_to_int": lambda: f"round({draw.of('numeric', scope, 0)})::int" if _tame(scope) else f"round({a()})::int",
    }


def _chain(rng: random.Random, operand: Callable[[], str]) -> str:
    """Operators without parentheses, of every precedence; small enough never to overflow."""
    text = f"({operand()} % 5)"
    for _ in range(rng.randint(2, 4)):
        operator = rng.choice(("+", "-", "*", "/ 2 +", "% 3 -", "&", "|", "#", "<< 1 |", ">> 1 +"))
        text += f" {operator} {rng.choice(('', '- ', '+ ', '~ ', '@ '))}({operand()} % 5)"
    return f"({text})"


def _boolean_chain(rng: random.Random, draw: Draw, scope: list[Scoped]) -> str:
    parts = []
    for _ in range(rng.randint(2, 3)):
        a, b, c = (draw.of("int", scope, 0) for _ in range(3))
        part = rng.choice(
            (
                f"{a} + 1 < {b} % 3", f"{a} = {b} IS NULL", f"{a} BETWEEN {b} AND {c} + 1", f"{a} < {b} IS NOT TRUE",
                f"{a} | 1 = {b}", f"{a} IN ({b}, {c}) IS NOT FALSE", f"({a})::text || 'x' LIKE '%1%'",
                f"{a} - {b} - {c} > 0", f"{a} IS DISTINCT FROM {b} + 1", f"({a})::text || {b} < 'b'",
            )
        )  # fmt: skip
        parts.append(f"{rng.choice(('', 'NOT '))}{part}")
    text = parts[0]
    for part in parts[1:]:
        text += f" {rng.choice(('AND', 'OR'))} {part}"
    return f"({text})"


def _tame(scope: list[Scoped]) -> bool:
    """No numeric in scope may be past the range of int."""
    return all(c.family != "free_numeric" and not c.derived for c in scope)


def _guarded(rng: random.Random, above: str, below: str, scope: list[Scoped]) -> str:
    """A division that the CASE around it keeps from failing; only a column is a guard that no engine folds early."""
    columns = [c.text for c in scope if c.family == "int"]
    if not columns:
        return f"({above} / nullif({below}, 0))"
    column = rng.choice(columns)
    return f"CASE WHEN {column} <> 0 THEN {above} / {column} ELSE {rng.randint(-1, 1)} END"


def _bigint(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    return {
        "cast_bigint": lambda: f"({draw.of('int', scope, depth)})::bigint",
        "add_bigint": lambda: f"({draw.of('bigint', scope, depth)} + {draw.of('int', scope, depth)})",
        "multiply_bigint": lambda: f"({draw.of('bigint', scope, depth)} * {draw.rng.randint(-2, 3)})",
        "shift": lambda: f"(({draw.of('int', scope, 0)})::bigint << {draw.rng.randint(0, 3)})",
    }


def _numeric(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    rng = draw.rng
    a = partial(draw.of, "numeric", scope, depth)
    return {
        "numeric_add": lambda: f"({a()} + {a()})",
        "numeric_subtract": lambda: f"({a()} - {draw.of('int', scope, depth)})",
        "numeric_multiply": lambda: f"({a()} * {rng.choice(('1.5', '2', '-0.25'))})",
        "numeric_divide": lambda: f"({a()} / {rng.choice(('3', '1.25', '-7'))})",
        "round": lambda: f"round({a()}, {rng.randint(-1, 1)})",
        "floor": lambda: f"floor({a()})",
        "ceil": lambda: f"ceil({a()})",
        "trunc": lambda: f"trunc({a()}, 1)",
        "sign": lambda: f"sign({a()})",
        "cast_numeric": lambda: f"({draw.of('int', scope, depth)})::numeric(12,1)",
        "mod": lambda: f"mod({a()}, 3)",
        "extract_epoch": lambda: f"extract(epoch from {draw.of(rng.choice(_ELAPSED), scope, depth)})",
        "power_numeric": lambda: f"power(({draw.of('int', scope, 0)} % 5)::numeric, 2)",
    }


def _float(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    a = partial(draw.of, "float", scope, depth)
    return {
        "float_add": lambda: f"({a()} + {a()})",
        "float_multiply": lambda: f"({a()} * 0.5)",
        "cast_float": lambda: f"({draw.of(draw.rng.choice(('int', 'real')), scope, depth)})::double precision",
        "sqrt": lambda: f"sqrt(abs({a()}))",
        "float_abs": lambda: f"abs({a()})",
        "float_floor": lambda: f"{draw.rng.choice(('floor', 'ceil', 'trunc', 'sign'))}({a()})",
        "exponent": lambda: f"({draw.of('int', scope, 0)} % 4)::float8 ^ 2",
    }


def _real(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    a = partial(draw.of, "real", scope, depth)
    return {
        "real_add": lambda: f"({a()} + {a()})",
        "real_multiply": lambda: f"({a()} * 0.5::real)",
        "cast_real": lambda: f"({draw.of('int', scope, depth)})::real",
    }


def _text(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    rng = draw.rng
    a = partial(draw.of, "text", scope, depth)
    casts = ("int", "bool", "date", "numeric", "timestamp", "interval", "uuid", "bytea", "char", "time", "real")
    return {
        "concat_operator": lambda: f"({a()} || {a()})",
        "concat_any": lambda: f"({a()} || {draw.of(rng.choice(('int', 'char', 'date', 'numeric')), scope, depth)})",
        "concat": lambda: f"concat({a()}, {draw.of(rng.choice(('int', 'bool', 'char', 'interval')), scope, depth)})",
        "concat_ws": lambda: f"concat_ws('-', {a()}, {a()})",
        "lower": lambda: f"lower({a()})",
        "upper": lambda: f"upper({a()})",
        "trim": lambda: f"{rng.choice(('trim', 'ltrim', 'rtrim'))}({a()})",
        "trim_characters": lambda: f"{rng.choice(('btrim', 'ltrim', 'rtrim'))}({a()}, 'ab')",
        "substring": lambda: f"substring({a()} from {rng.randint(-1, 2)} for {rng.randint(0, 2)})",
        "replace": lambda: f"replace({a()}, 'a', 'ou')",
        "split_part": lambda: f"split_part({a()}, 'b', {rng.choice((1, 2, -1))})",
        "left": lambda: f"left({a()}, {rng.randint(-1, 2)})",
        "right": lambda: f"right({a()}, {rng.randint(-1, 2)})",
        "lpad": lambda: f"{rng.choice(('lpad', 'rpad'))}({a()}, 3, '*')",
        "repeat": lambda: f"repeat({draw.of('text', scope, 0)}, 2)",
        "reverse": lambda: f"reverse({a()})",
        "md5": lambda: f"md5({a()})",
        "translate": lambda: f"translate({a()}, 'ab', 'x')",
        "regexp_replace": lambda: f"regexp_replace({a()}, '[ab]', '_'{rng.choice(('', ', ' + repr('g')))})",
        "cast_text": lambda: f"({draw.of(rng.choice(casts), scope, depth)})::text",
        "cast_varchar": lambda: f"({a()})::varchar(2)",
    }


def _char(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    return {"cast_char": lambda: f"({draw.of('text', scope, depth)})::char(3)"}


def _bytea(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    a = partial(draw.of, "bytea", scope, depth)
    return {
        "bytea_concat": lambda: f"({a()} || {a()})",
        "bytea_substring": lambda: f"substring({a()} from {draw.rng.randint(1, 2)} for 1)",
    }


def _bool(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    return {
        "predicate": lambda: f"({draw.predicate(scope, depth)})",
        "boolean_chain": lambda: _boolean_chain(draw.rng, draw, scope),
    }


def _date(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    return {
        "date_plus": lambda: f"({draw.of('date', scope, depth)} + {draw.rng.randint(-40, 40)})",
        "cast_date": lambda: f"({draw.of(draw.rng.choice(('timestamp', 'timestamptz')), scope, depth)})::date",
    }


def _time(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    return {
        "time_plus": lambda: f"({draw.of('time', scope, depth)} + {literal(draw.rng, 'interval')})",
        "cast_time": lambda: f"({draw.of('timestamp', scope, depth)})::time",
    }


def _timestamp(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    rng = draw.rng
    a = partial(draw.of, "timestamp", scope, depth)
    return {
        "date_trunc": lambda: f"date_trunc('{rng.choice(('month', 'day', 'hour', 'week', 'quarter'))}', {a()})",
        "plus_interval": lambda: f"({a()} {rng.choice('+-')} {draw.of('interval', scope, 0)})",
        "cast_timestamp": lambda: f"({draw.of('date', scope, depth)})::timestamp",
        "date_plus_interval": lambda: f"({draw.of('date', scope, depth)} + {literal(rng, 'interval')})",
        "date_plus_time": lambda: f"({draw.of('date', scope, depth)} + {draw.of('time', scope, depth)})",
        "date_bin": lambda: f"date_bin('{rng.choice(('15 minutes', '2 days'))}', {a()}, timestamp '2024-01-01')",
        "at_time_zone": lambda: f"({draw.of('timestamptz', scope, depth)} AT TIME ZONE '{rng.choice(_ZONES)}')",
    }


def _timestamptz(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    rng = draw.rng
    a = partial(draw.of, "timestamptz", scope, depth)
    return {
        "local_at_time_zone": lambda: f"({draw.of('timestamp', scope, depth)} AT TIME ZONE '{rng.choice(_ZONES)}')",
        "timestamptz_plus": lambda: f"({a()} + {draw.of('interval', scope, 0)})",
        "timestamptz_trunc": lambda: f"date_trunc('{rng.choice(('day', 'month'))}', {a()})",
        "trunc_in_zone": lambda: f"date_trunc('day', {a()}, '{rng.choice(_ZONES)}')",
        "cast_timestamptz": lambda: f"({draw.of('timestamp', scope, depth)})::timestamptz",
    }


def _interval(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    a = partial(draw.of, "interval", scope, depth)
    stamp = partial(draw.of, "timestamp", scope, depth)
    return {
        "interval_add": lambda: f"({a()} {draw.rng.choice('+-')} {a()})",
        "interval_multiply": lambda: f"({a()} * {draw.rng.randint(-2, 3)})",
        "interval_divide": lambda: f"({a()} / 2)",
        "timestamp_minus": lambda: f"({stamp()} - {stamp()})",
        "age": lambda: f"age({stamp()}, {stamp()})",
        "time_minus": lambda: f"({draw.of('time', scope, depth)} - {draw.of('time', scope, depth)})",
        "justify": lambda: f"{draw.rng.choice(('justify_days', 'justify_hours', 'justify_interval'))}({a()})",
    }


def _uuid(draw: Draw, scope: list[Scoped], depth: int) -> Choices:
    return {"cast_uuid": lambda: f"md5({draw.of('text', scope, depth)})::uuid"}


_MAKERS: dict[str, Callable[[Draw, list[Scoped], int], Choices]] = {
    "int": _int, "bigint": _bigint, "numeric": _numeric, "float": _float, "real": _real, "text": _text, "char": _char,
    "bytea": _bytea, "bool": _bool, "date": _date, "time": _time, "timestamp": _timestamp,
    "timestamptz": _timestamptz, "interval": _interval, "uuid": _uuid,
}  # fmt: skip


def scalar_families() -> tuple[str, ...]:
    return tuple(_MAKERS)


def fallible_choices(draw: Draw, scope: list[Scoped]) -> dict[str, tuple[str, str]]:
    """Expressions that fail on some rows: construct -> (text, family).

    They are made of columns only: a constant that fails does so in one engine when it plans, in another when it runs.
    """
    rng = draw.rng
    any_column = rng.choice(scope).text
    families = ("int", "text", "numeric", "float")
    found = {family: [c.text for c in scope if plain_family(c.family) == family] for family in families}
    i = rng.choice(found["int"] or [f"(char_length(({any_column})::text) - 2)"])
    t = rng.choice(found["text"] or [f"({any_column})::text"])
    n = rng.choice(found["numeric"] or [f"({i})::numeric"])
    f = rng.choice(found["float"] or [f"({i})::double precision"])
    column = rng.choice(scope).text
    return {
        "divide_by_zero": (f"(12 / {i})", "int"),
        "modulo_by_zero": (f"(7 % {i})", "int"),
        "numeric_by_zero": (f"(1.5 / {n})", "numeric"),
        "float_by_zero": (f"({f} / {f})", "float"),
        "int_overflow": (f"({i} * 900000000)", "int"),
        "bigint_overflow": (f"(({i})::bigint * 3000000000000000000)", "bigint"),
        "smallint_overflow": (f"({i} * 7000)::smallint", "int"),
        "numeric_overflow": (f"({n})::numeric(3,2)", "numeric"),
        "text_to_int": (f"({t})::int", "int"),
        "text_to_date": (f"({t} || '2024-01-01')::date::text", "text"),
        "text_to_numeric": (f"('1' || {t})::numeric", "numeric"),
        "text_to_uuid": (f"({t} || '0000000-0000-4000-8000-000000000001')::uuid", "uuid"),
        "text_to_bool": (f"({t})::bool", "bool"),
        "sqrt_of_negative": (f"sqrt({f})", "float"),
        "ln_of_zero": (f"ln({n})", "numeric"),
        "make_date": (f"make_date(2024, {i}, 28)", "date"),
        "substring_negative": (f"substring({t} from 1 for {i})", "text"),
        "chr_out_of_range": (f"chr({i})", "text"),
        "date_out_of_range": (f"(date '5874897-12-30' + {i})::text", "text"),
        "guarded_by_case": (f"CASE WHEN {column} IS NULL THEN 1 ELSE 6 / {i} END", "int"),
    }
