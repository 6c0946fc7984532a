"""What the columns of a dataflow are called in the texts of row errors."""

from __future__ import annotations

from eddyline.expr.column_names import MfpNames
from eddyline.expr.ir import AggregateCall, Call, Column, MapStep, Mfp
from eddyline.plan import dataflow as df
from eddyline.plan.column_names import ObjectNames, name_fast_path, name_operators
from eddyline.plan.facts import IndexFacts
from eddyline.plan.fast_path import fast_path
from eddyline.plan.lower import lower, lower_index
from eddyline.plan.relation import Join, JoinKind, Map, Project, Reduce, Union
from eddyline.repr.types import BIGINT, INTEGER

from .build import R, S, col, div, eq, lit

OBJECTS = {
    "r": ObjectNames("boxes", ("id", "size")),
    "r0": ObjectNames("boxes", ("id", "size")),
    "s": ObjectNames("sales", ("id", "owner", "price")),
}
R_BY_0 = IndexFacts("r0", "r", (0,), R.types)


def named(operators: tuple[df.Operator, ...], view: str = "") -> tuple[df.Operator, ...]:
    return name_operators(operators, OBJECTS.get, view=view)


def test_names_come_from_what_is_imported() -> None:
    operators = named(lower(Map(R, (div(0, 1),))), "ratio")
    (mfp,) = [o.mfp for o in operators if isinstance(o, df.MapFilterProject)]
    assert (mfp.names, mfp.view) == (("id", "size"), "ratio")


def test_columns_of_one_name_are_qualified_where_they_meet() -> None:
    operators = named(lower(Join(JoinKind.INNER, R, S, (eq(0, 2),)), (R_BY_0,)))
    (join,) = [o for o in operators if isinstance(o, df.Join)]
    assert join.mfp.names == ("boxes.id", "size", "sales.id", "owner", "price")


def test_computed_columns_go_by_their_expressions() -> None:
    computed = Project(Map(R, (div(0, 1),)), (0, 2))
    calls = tuple(AggregateCall(f, (col(1),), BIGINT) for f in ("sum", "max"))
    operators = named(lower(Map(Reduce(computed, (col(0),), calls), (div(1, 2),))))
    (reduce,) = [o for o in operators if isinstance(o, df.Reduce)]
    assert reduce.names == ("id", "(id / size)")
    last = operators[-1]
    assert isinstance(last, (df.Join, df.MapFilterProject))
    assert {"sum((id / size))", "max((id / size))"} <= set(last.mfp.names)


def test_what_is_computed_from_computed_columns_keeps_its_parentheses() -> None:
    steps = tuple(
        MapStep(Call(func, (Column(first, INTEGER), Column(second, INTEGER)), INTEGER))
        for func, first, second in (("int_add", 0, 1), ("int_mul", 2, 1), ("int_div", 0, 3))
    )
    mfp = Mfp(steps, (4,), (INTEGER,), ("a", "b"))
    assert list(MfpNames(mfp)) == ["a", "b", "(a + b)", "((a + b) * b)", "(a / ((a + b) * b))"]


def test_a_union_has_the_names_of_the_input_that_has_some() -> None:
    literals = Project(Map(R, (lit(1), lit(2))), (2, 3))
    for inputs in ((literals, R), (R, literals)):
        operators = named(lower(Map(Union(inputs), (div(0, 1),))))
        last = operators[-1]
        assert isinstance(last, df.MapFilterProject) and last.mfp.names == ("id", "size")


def test_an_unknown_object_has_numbered_columns() -> None:
    operators = name_operators(lower(Map(R, (div(0, 1),))), lambda _: None)
    last = operators[-1]
    assert isinstance(last, df.MapFilterProject) and last.mfp.names == ("column1", "column2")


def test_a_lookup_reads_the_columns_of_the_indexed_object() -> None:
    plan = fast_path(Map(R, (div(0, 1),)), (R_BY_0,))
    assert plan is not None
    assert name_fast_path(plan, OBJECTS.get).mfp.names == ("id", "size")


def test_the_names_change_nothing_else() -> None:
    bare = lower_index(Map(R, (div(0, 1),)), "i", "v", (0,), (R_BY_0,))
    assert [(type(o), o.types) for o in named(bare)] == [(type(o), o.types) for o in bare]
    assert named(bare) == named(bare)
