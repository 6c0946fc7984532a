"""What lowering shares: arrangements, indexes, whole subtrees."""

from __future__ import annotations

import pytest

from eddyline.errors import DatabaseError
from eddyline.expr.ir import AggregateCall, Call, Cast, Column, Literal
from eddyline.plan import dataflow as df
from eddyline.plan.facts import IndexFacts
from eddyline.plan.lower import lower, lower_index, lower_materialized_view, lower_subscribe
from eddyline.plan.optimize import optimize
from eddyline.plan.relation import Distinct, Filter, Get, Join, JoinKind, Map, Project, Reduce, Relation, TopK, Union
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, numeric

from .build import R, S, col, count, div, eq, gt, lit

R_BY_0 = IndexFacts("r0", "r", (0,), R.types)
S_BY_21 = IndexFacts("s21", "s", (2, 1), S.types)


def of_kind(operators: tuple[df.Operator, ...], kind: type) -> list[df.Operator]:
    return [o for o in operators if isinstance(o, kind)]


def test_a_join_uses_the_index_with_its_keys_instead_of_an_arrangement() -> None:
    operators = lower(Join(JoinKind.INNER, R, S, (eq(0, 2),)), (R_BY_0,))
    assert len(of_kind(operators, df.ImportIndex)) == 1
    assert len(of_kind(operators, df.Arrange)) == 1


def test_index_key_order_decides_the_pairs_order() -> None:
    operators = lower(Join(JoinKind.INNER, R, S, (eq(0, 3), eq(1, 4))), (S_BY_21,))
    (arrange,) = of_kind(operators, df.Arrange)
    assert isinstance(arrange, df.Arrange)
    assert arrange.key == (1, 0)


def test_filters_between_index_and_join_are_applied_after_the_join() -> None:
    operators = lower(Join(JoinKind.INNER, Filter(R, (gt(1, lit(3)),)), S, (eq(0, 2),)), (R_BY_0,))
    assert len(of_kind(operators, df.ImportIndex)) == 1
    (join,) = of_kind(operators, df.Join)
    assert isinstance(join, df.Join)
    assert df.FilterStep(gt(1, lit(3))) in join.mfp.steps


def test_an_index_that_no_join_needs_is_read_as_a_stream_and_others_not_imported() -> None:
    other = IndexFacts("r1", "r", (1,), R.types)
    operators = lower(Join(JoinKind.INNER, R, S, (eq(1, 2),)), (R_BY_0, other))
    assert [o.id for o in operators if isinstance(o, df.ImportIndex)] == ["r1"]
    assert [o.id for o in lower(Distinct(R), (R_BY_0, other)) if isinstance(o, df.ImportIndex)] == ["r0"]


def test_key_types_are_made_equal() -> None:
    left, right = Get("a", (numeric(2),)), Get("b", (numeric(4),))
    pair = eq(Column(0, numeric(2)), Column(1, numeric(4)))
    operators = lower(Join(JoinKind.INNER, left, right, (pair,)))
    keys = [o.types[c] for o in operators if isinstance(o, df.Arrange) for c in o.key]
    assert keys == [NUMERIC, NUMERIC]
    assert operators[-1].types == (numeric(2), numeric(4))


def test_a_left_join_arranges_its_left_side_once() -> None:
    operators = lower(Join(JoinKind.LEFT, R, S, (eq(0, 2),)))
    arranged = [o.input for o in operators if isinstance(o, df.Arrange)]
    assert len(arranged) == len(set(arranged)) == 3  # left, right, distinct keys of right


def test_a_left_join_with_unique_right_keys_keeps_nothing_but_its_two_sides() -> None:
    grouped = Reduce(S, (col(0),), (AggregateCall("count", (), BIGINT),))
    for plan, declared in ((grouped, {}), (S, {"s": ((0,),)})):
        operators = lower(Join(JoinKind.LEFT, R, plan, (eq(0, 2),)), unique_keys=declared)
        assert of_kind(operators, df.Distinct) == []
        assert len(of_kind(operators, df.Arrange)) == 2
        assert len(of_kind(operators, df.Join)) == 1


def test_equal_subtrees_are_rendered_once() -> None:
    grouped = Reduce(Filter(R, (gt(0, lit(1)),)), (col(1),), (AggregateCall("count", (), BIGINT),))
    again = Reduce(Filter(R, (gt(0, lit(1)),)), (col(1),), (AggregateCall("count", (), BIGINT),))
    joined = Join(JoinKind.INNER, grouped, again, (eq(Column(1, BIGINT), Column(3, BIGINT)),))
    for plan in (joined, optimize(joined)):
        operators = lower(plan)
        assert len(of_kind(operators, df.Reduce)) == 1
        assert len(of_kind(operators, df.Arrange)) == 1


def test_aggregates_of_one_way_share_a_reduce() -> None:
    calls = (
        AggregateCall("count", (), BIGINT),
        AggregateCall("min", (col(1),), INTEGER),
        AggregateCall("sum", (col(1),), BIGINT),
        AggregateCall("count", (col(1),), BIGINT, distinct=True),
        AggregateCall("sum", (col(1),), BIGINT, distinct=True),
        AggregateCall("min", (col(1),), INTEGER),
    )
    operators = lower(Reduce(R, (col(0),), calls))
    assert len(of_kind(operators, df.Reduce)) == 2
    assert len(of_kind(operators, df.TopK)) == 1
    assert len(of_kind(operators, df.Distinct)) == 1
    assert operators[-1].types == Reduce(R, (col(0),), calls).types


def test_a_filter_guards_a_fallible_argument() -> None:
    positive = gt(0, lit(0))
    call = AggregateCall("sum", (div(1, 0),), BIGINT, filter=positive)
    operators = lower(Reduce(R, (), (call,), global_row=True))
    (prepared,) = (o for o in operators if isinstance(o, df.MapFilterProject))
    (step,) = prepared.mfp.steps
    assert isinstance(step, df.MapStep)
    assert type(step.expr).__name__ == "Case"


def test_an_unlimited_top_k_is_no_operator() -> None:
    unlimited = TopK(R, (), (), Literal(None, BIGINT), None)
    assert lower(unlimited) == lower(R)


def test_a_limit_may_be_an_expression_and_may_fail() -> None:
    def limited(*args: int) -> Relation:
        func = "int_add" if len(args) == 2 else "int_div"
        return TopK(R, (), (), Call(func, tuple(count(a) for a in args[:2]), BIGINT), None)

    (top,) = of_kind(lower(limited(1, 2)), df.TopK)
    assert isinstance(top, df.TopK)
    assert top.limit == 3
    with pytest.raises(DatabaseError) as failure:
        lower(limited(1, 0, 0))
    assert failure.value.sqlstate == "22012"


@pytest.mark.parametrize(("limit", "offset", "sqlstate"), [(-1, 0, "2201W"), (1, -1, "2201X")])
def test_negative_limits_are_refused(limit: int, offset: int, sqlstate: str) -> None:
    with pytest.raises(DatabaseError) as failure:
        lower(TopK(R, (), (), count(limit), count(offset)))
    assert failure.value.sqlstate == sqlstate


def test_exports_come_last_and_read_the_result() -> None:
    index = lower_index(Distinct(R), "i", "v", (1,))
    assert [type(o).__name__ for o in index[-2:]] == ["Arrange", "ExportIndex"]
    assert index[-1] == df.ExportIndex("i", "v", len(index) - 2, (1,), R.types)
    view = lower_materialized_view(R, "m")
    assert view[-1] == df.ExportMaterializedView("m", 0, R.types)
    subscribe = lower_subscribe(R, "s", with_snapshot=False)
    assert subscribe[-1] == df.ExportSubscribe("s", 0, R.types, with_snapshot=False)


def test_a_second_index_with_the_same_key_reuses_the_arrangement() -> None:
    operators = lower_index(R, "again", "r", (0,), (R_BY_0,))
    assert [type(o).__name__ for o in operators] == ["ImportIndex", "ExportIndex"]


def deep(levels: int) -> Relation:
    plan: Relation = R
    for _ in range(levels):
        plan = Filter(Project(Union((plan, R)), (1, 0)), (eq(0, lit(1)),))
    return plan


def test_deep_plans_do_not_exhaust_the_stack() -> None:
    plan = deep(1000)
    operators = lower(optimize(plan))
    assert operators[-1].types == R.types


def test_many_joins_plan_quickly() -> None:
    plan: Relation = R
    for _ in range(30):
        plan = Project(Join(JoinKind.INNER, plan, R, (eq(0, 2),)), (0, 1))
    assert lower(optimize(plan))[-1].types == R.types


def test_a_casted_key_is_computed_below_the_arrangement() -> None:
    wide = Get("w", (BIGINT,))
    on = (eq(Cast(col(0), BIGINT, explicit=False), Column(2, BIGINT)),)
    operators = lower(Join(JoinKind.INNER, R, wide, on))
    arranges = [o for o in operators if isinstance(o, df.Arrange)]
    assert [o.types[o.key[0]] for o in arranges] == [BIGINT, BIGINT]
    assert operators[-1].types == (INTEGER, INTEGER, BIGINT)
    assert BOOLEAN not in operators[-1].types


def test_a_map_that_nothing_reads_is_not_rendered() -> None:
    operators = lower(Project(Map(R, (div(0, 1),)), (1,)))
    (mfp,) = (o for o in operators if isinstance(o, df.MapFilterProject))
    assert mfp.mfp.steps == ()
