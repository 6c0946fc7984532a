"""The registry: every overload runs, result types are PostgreSQL's, numeric scales are known where they can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from eddyline.expr.evaluate import evaluate
from eddyline.expr.functions import aggregate_overloads, implementation, overloads, registered_names
from eddyline.expr.ir import Call, Literal
from eddyline.expr.registry import Arguments, failures, implements, merge_errors
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    Kind,
    SqlType,
    arrow_type,
    numeric,
)

PREDICATES = [
    "eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "is_null", "is_not_null", "not",
    "is_true", "is_not_true", "is_false", "is_not_false", "is_unknown", "is_not_unknown",
]  # fmt: skip


def test_every_overload_has_an_implementation() -> None:
    for name in registered_names():
        for overload in overloads(name):
            assert implementation(overload.impl).name == overload.impl
            assert overload.evaluated is None or len(overload.evaluated) == len(overload.args)
    for name in PREDICATES:
        assert implementation(name)


def test_no_two_overloads_of_a_name_take_the_same_arguments() -> None:
    for name in registered_names():
        signatures = [(o.args, o.variadic) for o in overloads(name)]
        assert len(signatures) == len(set(signatures)), name


def test_strict_functions_of_null_are_null_in_the_declared_layout() -> None:
    for name in sorted(registered_names()):
        for overload in overloads(name):
            kinds = overload.evaluated or overload.args
            if not overload.strict or not kinds:
                continue
            types = [SqlType(k) for k in kinds]
            call = Call(overload.impl, tuple(Literal(None, t) for t in types), overload.result_type(types))
            array, errors = evaluate(call, [], 2)
            assert array.type == arrow_type(call.type) and array.null_count == 2 and errors is None, (name, kinds)


def result(name: str, *types: SqlType) -> SqlType:
    kinds = tuple(t.kind for t in types)
    return next(o for o in overloads(name) if o.args == kinds).result_type(types)


def test_a_numeric_scale_is_known_unless_it_depends_on_the_value() -> None:
    two, four = numeric(2), numeric(4, 10)
    assert result("+", two, four) == numeric(4)
    assert result("-", two, NUMERIC) == NUMERIC
    assert result("*", two, four) == numeric(6)
    assert result("*", numeric(20), numeric(20)) == NUMERIC
    assert result("/", two, four) == NUMERIC
    assert result("%", two, four) == numeric(4)
    assert result("u-", four) == numeric(4)
    assert result("abs", numeric(2, 5)) == two
    assert result("round", four) == numeric(0)
    assert result("round", four, INTEGER) == NUMERIC
    assert result("sqrt", two) == NUMERIC


def test_mixed_pairs_are_evaluated_in_the_wider_type() -> None:
    (mixed,) = [o for o in overloads("=") if o.args == (Kind.REAL, Kind.DOUBLE)]
    assert mixed.evaluated == (Kind.DOUBLE, Kind.DOUBLE)
    assert result("+", REAL, DOUBLE) == DOUBLE
    assert result("*", SMALLINT, BIGINT) == BIGINT


AGGREGATES: list[tuple[str, Sequence[SqlType], SqlType]] = [
    ("count", (), BIGINT),
    ("sum", (SMALLINT,), BIGINT),
    ("sum", (INTEGER,), BIGINT),
    ("sum", (BIGINT,), numeric(0)),
    ("sum", (numeric(2, 12),), numeric(2)),
    ("sum", (NUMERIC,), NUMERIC),
    ("sum", (REAL,), REAL),
    ("sum", (INTERVAL,), INTERVAL),
    ("avg", (INTEGER,), NUMERIC),
    ("avg", (REAL,), DOUBLE),
    ("avg", (INTERVAL,), INTERVAL),
    ("min", (numeric(2, 12),), numeric(2)),
    ("max", (TEXT,), TEXT),
    ("every", (BOOLEAN,), BOOLEAN),
    ("stddev", (INTEGER,), NUMERIC),
    ("var_pop", (DOUBLE,), DOUBLE),
    ("string_agg", (BYTEA, BYTEA), BYTEA),
]


@pytest.mark.parametrize(("name", "types", "expected"), AGGREGATES, ids=str)
def test_aggregates_have_postgres_result_types(name: str, types: Sequence[SqlType], expected: SqlType) -> None:
    kinds = tuple(t.kind for t in types)
    (found,) = [o for o in aggregate_overloads(name) if o.args == kinds]
    assert found.result_type(types) == expected


def test_aliases_share_one_aggregate() -> None:
    assert aggregate_overloads("stddev")[0].func == "stddev_samp"
    assert aggregate_overloads("every")[0].func == "bool_and"
    assert not aggregate_overloads("median")


def test_an_implementation_id_is_taken_once() -> None:
    with pytest.raises(ValueError, match="int_add"):
        implements("int_add")(implementation("int_mul").function)


def test_of_several_errors_of_a_row_the_earliest_stays() -> None:
    first = failures(np.array([False, True, False, True]), "22012", "a")
    second = failures(np.array([0, 1]), "22003", ["b", "c"])
    merged = merge_errors(None, first, second)
    assert merged is not None
    assert (merged.rows.tolist(), merged.sqlstates, merged.messages) == (
        [0, 1, 3],
        ["22003", "22012", "22012"],
        ["b", "a", "a"],
    )
    assert merge_errors(None, None) is None
    assert failures(np.zeros(3, np.bool_), "22000", "x") is None


def test_a_constant_argument_is_repeated_only_on_demand() -> None:
    scalar = evaluate(Literal(5, INTEGER), [], 1).array[0]
    args = Arguments([scalar], 3)
    assert args.constant(0) is scalar and args.operand(0) is scalar
    assert args[0].to_pylist() == [5, 5, 5]
    assert args[0] is args[0] and args.constant(0) is scalar
