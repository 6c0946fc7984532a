"""Random aggregate calls whose value does not depend on the order of their input."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.testing.fuzz.expressions import Expressions
from eddyline.testing.fuzz.schema import Scoped

__all__ = ["aggregate"]

_ORDERED = ("int", "bigint", "numeric", "text", "date", "timestamp", "float")
_ANY = (*_ORDERED, "bool", "uuid", "bytea", "char", "interval", "timestamptz", "time", "real")
_NAMES = (
    "count_star", "count", "count_distinct", "sum_int", "sum_bigint", "sum_numeric", "sum_float", "sum_real", "avg_int",
    "avg_numeric", "avg_float", "avg_distinct", "sum_distinct", "min", "max", "min_any", "bool_and", "bool_or", "every",
    "stddev", "variance", "stddev_float", "string_agg", "string_agg_descending", "string_agg_distinct",
    "string_agg_bytea", "sum_interval", "avg_interval", "count_distinct_ordered",
)  # fmt: skip


def aggregate(exprs: Expressions, scope: list[Scoped]) -> tuple[str, str]:
    """(text, family) of one aggregate call."""
    rng = exprs.rng
    name = rng.choice(_NAMES)
    exprs.used[name] += 1
    text, family = _call(exprs, scope, name)
    around = "round(({})::numeric, 2)" if name == "stddev_float" and family == "numeric" else "{}"
    if rng.random() < 0.25:
        exprs.used["filter"] += 1
        text += f" FILTER (WHERE {exprs.predicate(scope, 1)})"
    return around.format(text), family


def _call(exprs: Expressions, scope: list[Scoped], name: str) -> tuple[str, str]:
    rng = exprs.rng
    ordered = rng.choice(_ORDERED)
    arg = _drawer(exprs, scope)
    match name:
        case "count_star":
            return "count(*)", "bigint"
        case "count":
            return f"count({arg(rng.choice(_ANY))})", "bigint"
        case "count_distinct":
            return f"count(DISTINCT {arg(rng.choice(_ANY))})", "bigint"
        case "count_distinct_ordered":
            value = arg(ordered)
            return f"count(DISTINCT {value} ORDER BY {value} DESC)", "bigint"
        case "sum_int":
            return f"sum({arg('int')})", "bigint"
        case "sum_bigint":
            return f"sum({arg('bigint')})", "numeric"
        case "sum_distinct":
            return f"sum(DISTINCT {arg('int')})", "bigint"
        case "sum_numeric" | "avg_numeric":
            return f"{name[:3]}({arg('numeric')})", "numeric"
        case "sum_float" | "avg_float":
            return f"{name[:3]}({_dyadic(exprs, scope)})", "float"
        case "sum_real":
            return f"sum(({arg('int')})::real)", "real"
        case "avg_int":
            return f"avg({arg('int')})", "numeric"
        case "avg_distinct":
            return f"avg(DISTINCT {arg('int')})", "numeric"
        case "min" | "max":
            return f"{name}({arg(ordered)})", ordered
        case "min_any":
            family = rng.choice(("interval", "timestamptz", "time", "char", "real"))
            return f"{rng.choice(('min', 'max'))}({arg(family)})", family
        case "bool_and" | "bool_or" | "every":
            return f"{name}({arg('bool')})", "bool"
        case "stddev":
            return f"{rng.choice(('stddev', 'stddev_pop', 'stddev_samp'))}({arg('int')})", "numeric"
        case "variance":
            return f"{rng.choice(('variance', 'var_pop', 'var_samp'))}({arg('int')})", "numeric"
        case "stddev_float" if any(c.family == "odd_float" for c in scope):
            return f"count({_dyadic(exprs, scope)})", "bigint"
        case "stddev_float":
            return f"{rng.choice(('stddev_pop', 'var_samp'))}({_dyadic(exprs, scope)})", "numeric"
        case "sum_interval" | "avg_interval":
            return f"{name[:3]}({arg('interval')})", "interval"
        case "string_agg_bytea":
            value = arg("bytea")
            return rf"string_agg({value}, '\x2c'::bytea ORDER BY {value})", "bytea"
        case _:
            value = arg("text")
            distinct = "DISTINCT " if name == "string_agg_distinct" else ""
            descending = " DESC" if name == "string_agg_descending" else ""
            return f"string_agg({distinct}{value}, ',' ORDER BY {value}{descending})", "text"


def _drawer(exprs: Expressions, scope: list[Scoped]) -> Callable[[str], str]:
    return lambda family: exprs.of(family, scope, 1)


def _dyadic(exprs: Expressions, scope: list[Scoped]) -> str:
    """A float whose sums are exact in any order, so that the oracle's order does not matter."""
    columns = [c for c in scope if c.family == "float" and not c.derived]
    odd = [c for c in scope if c.family == "odd_float"]
    if odd and exprs.rng.random() < 0.5:
        # Infinities and NaN are exact in any order; of the rest, zero is left.
        return f"trunc({exprs.column(exprs.rng.choice(odd))})"
    if columns:
        return f"round({exprs.column(exprs.rng.choice(columns))} * 4) / 4"
    return f"(({exprs.of('int', scope, 1)}) % 1000)::double precision / 4"
