"""Calls of SQL functions and casts on values written as text, as PostgreSQL's answers are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.expr.casts import coerced_type
from eddyline.expr.evaluate import evaluate
from eddyline.expr.functions import overloads
from eddyline.expr.ir import Call, Cast, Column, Expr, Literal
from eddyline.expr.text_io import format_column, literal_array, parse_literal
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BPCHAR,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    numeric,
)

TYPES: dict[str, SqlType] = {
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "numeric": NUMERIC,
    "float4": REAL,
    "float8": DOUBLE,
    "text": TEXT,
    "bpchar": BPCHAR,
    "bytea": BYTEA,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "interval": INTERVAL,
    "uuid": UUID,
}


def sql_type(name: str) -> SqlType:
    """``int4``, ``numeric(5,2)``, ``numeric#2`` (unconstrained, every value with scale 2), ``varchar(3)``."""
    base, _, modifiers = name.rstrip(")").partition("(")
    if base.startswith("numeric#"):
        return numeric(int(base[8:]))
    if not modifiers:
        return TYPES[base]
    numbers = [int(part) for part in modifiers.split(",")]
    if base == "numeric":
        return numeric(numbers[1] if len(numbers) > 1 else 0, numbers[0])
    return SqlType({"varchar": Kind.VARCHAR, "bpchar": Kind.BPCHAR}[base], length=numbers[0])


def column(values: Sequence[str | None], declared: SqlType) -> pa.Array:
    arrays = [literal_array(None if v is None else parse_literal(v, declared), declared, 1) for v in values]
    return pa.concat_arrays(arrays)


def resolve(name: str, types: Sequence[SqlType], args: Sequence[Expr]) -> Call:
    """The overload whose kinds are exactly those of ``types``."""
    kinds = tuple(t.kind for t in types)
    found = [o for o in overloads(name) if o.args == kinds]
    if not found:
        found = [o for o in overloads(name) if o.variadic is not None and set(kinds) == {o.variadic}]
    chosen = found[0]
    wanted = chosen.evaluated or kinds
    cast = tuple(a if t.kind is k else Cast(a, coerced_type(t, k)) for a, t, k in zip(args, types, wanted, strict=True))
    return Call(chosen.impl, cast, chosen.result_type([c.type for c in cast]))


def answer(expr: Expr, columns: Sequence[pa.Array], rows: int) -> list[str | None]:
    """Output text per row, NULL as None, a failure as ``!sqlstate message``."""
    array, errors = evaluate(expr, columns, rows)
    array.validate(full=expr.type.kind is not Kind.TIME)  # 24:00:00 is beyond Arrow
    assert len(array) == rows
    texts: list[str | None] = format_column(array, expr.type).to_pylist()
    if errors is not None:
        assert np.all(np.diff(errors.rows) > 0)
        for row, sqlstate, message in zip(errors.rows.tolist(), errors.sqlstates, errors.messages, strict=True):
            texts[row] = f"!{sqlstate} {message}"
    return texts


def call(name: str, types: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[str | None]:
    """``name`` over rows of argument texts, as columns; checked against the same call over single constants."""
    declared = [sql_type(t) for t in types]
    columns = [column([row[i] for row in rows], t) for i, t in enumerate(declared)]
    expr = resolve(name, declared, [Column(i, t) for i, t in enumerate(declared)])
    results = answer(expr, columns, len(rows))
    for row, result in zip(rows, results, strict=True):
        literals = [Literal(None if v is None else parse_literal(v, t), t) for v, t in zip(row, declared, strict=True)]
        assert answer(resolve(name, declared, literals), [], 1) == [result], row
    return results


def cast(source: str, target: str, values: Sequence[str | None], *, explicit: bool = True) -> list[str | None]:
    declared, wanted = sql_type(source), sql_type(target)
    expr = Cast(Column(0, declared), wanted, explicit)
    return answer(expr, [column(values, declared)], len(values))
