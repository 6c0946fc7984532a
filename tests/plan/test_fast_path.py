"""Which queries are a lookup or a walk of an index, and with which keys."""

from __future__ import annotations

from eddyline.expr.array_layout import literal_from_values
from eddyline.expr.ir import And, Call, Cast, Column, Expr, FilterStep, Literal, Or, Parameter
from eddyline.plan.facts import IndexFacts
from eddyline.plan.fast_path import MAX_KEYS, ConstantPlan, PeekPlan, fast_path, substitute_in_fast_path
from eddyline.plan.optimize import optimize
from eddyline.plan.relation import Constant, Distinct, Filter, Get, Join, JoinKind, Map, Project, Relation
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, SMALLINT, TEXT, VARCHAR, Kind, SqlType, numeric

from .build import R, S, col, eq, gt, lit

BY_0 = IndexFacts("i0", "r", (0,), R.types)
BY_10 = IndexFacts("i10", "r", (1, 0), R.types)


def plan(relation: Relation, *indexes: IndexFacts) -> PeekPlan:
    result = fast_path(optimize(relation), indexes)
    assert isinstance(result, PeekPlan)
    return result


def lookup(sql_type: SqlType, *predicates: Expr) -> tuple[tuple[object, ...], ...] | None:
    """The keys of a lookup in a table of one column."""
    get = Get("x", (sql_type,))
    return plan(Filter(get, predicates), IndexFacts("ix", "x", (0,), get.types)).literal_keys()


def test_an_equality_on_the_key_is_a_lookup_without_a_filter() -> None:
    peek = plan(Project(Filter(R, (eq(0, lit(7)),)), (1,)), BY_0)
    assert (peek.index, peek.literal_keys()) == ("i0", ((7,),))
    assert peek.mfp.steps == ()
    assert peek.mfp.projection == (1,)


def test_other_predicates_stay_in_the_mfp() -> None:
    peek = plan(Filter(R, (gt(1, lit(3)), eq(lit(7), 0))), BY_0)
    assert peek.literal_keys() == ((7,),)
    assert peek.mfp.steps == (FilterStep(gt(1, lit(3))),)


def test_the_index_with_most_key_columns_covered_is_used() -> None:
    both = Filter(R, (eq(0, lit(7)), eq(1, lit(8))))
    assert plan(both, BY_0, BY_10).literal_keys() == ((8, 7),)
    assert plan(Filter(R, (eq(0, lit(7)),)), BY_10, BY_0).index == "i0"


def test_a_partly_covered_key_is_a_walk() -> None:
    peek = plan(Filter(R, (eq(0, lit(7)),)), BY_10)
    assert peek.literal_keys() is None
    assert peek.mfp.steps == (FilterStep(eq(0, lit(7))),)


def test_lists_of_values_are_several_keys_none_twice() -> None:
    listed = Or((eq(0, lit(1)), eq(0, lit(2)), eq(0, lit(1))))
    assert plan(Filter(R, (listed,)), BY_0).literal_keys() == ((1,), (2,))
    assert plan(Filter(R, (listed, eq(1, lit(5)))), BY_10).literal_keys() == ((5, 1), (5, 2))
    rows = Or((And((eq(0, lit(1)), eq(1, lit(2)))), And((eq(1, lit(4)), eq(0, lit(3))))))
    assert plan(Filter(R, (rows,)), BY_10).literal_keys() == ((2, 1), (4, 3))


def test_alternatives_over_different_columns_are_a_walk() -> None:
    assert plan(Filter(R, (Or((eq(0, lit(1)), eq(1, lit(1)))),)), BY_0).keys is None


def test_two_values_for_one_column_look_up_one_and_check_the_other() -> None:
    peek = plan(Filter(R, (eq(0, lit(1)), eq(0, lit(2)))), BY_0)
    assert peek.literal_keys() == ((1,),)
    assert peek.mfp.steps == (FilterStep(eq(0, lit(2))),)


def test_null_is_no_key() -> None:
    assert plan(Filter(R, (Or((eq(0, Parameter(1, INTEGER)), eq(0, lit(4)))),)), BY_0).keys is not None
    peek = substitute_in_fast_path(plan(Filter(R, (eq(0, Parameter(1, INTEGER)),)), BY_0), [lit(None)])
    assert isinstance(peek, PeekPlan)
    assert peek.literal_keys() == ()


def test_parameters_become_keys_and_filter_values() -> None:
    relation = Filter(R, (eq(0, Parameter(1, INTEGER)), gt(1, Parameter(2, INTEGER))))
    peek = substitute_in_fast_path(plan(relation, BY_0), [lit(5), lit(6)])
    assert isinstance(peek, PeekPlan)
    assert peek.literal_keys() == ((5,),)
    assert peek.mfp.steps == (FilterStep(gt(1, lit(6))),)


def test_integers_of_other_widths_are_keys_if_the_column_can_hold_them() -> None:
    def wide(value: int) -> Expr:
        return eq(Cast(Column(0, SMALLINT), BIGINT, explicit=False), Literal(value, BIGINT))

    assert lookup(SMALLINT, wide(5)) == ((5,),)
    assert lookup(SMALLINT, wide(70000)) == ()


def test_a_parameter_that_is_widened_to_the_column_is_a_key() -> None:
    widened = Cast(Parameter(1, SMALLINT), INTEGER, explicit=False)
    for predicate in (eq(0, widened), Call("eq", (widened, Column(0, INTEGER)), BOOLEAN)):
        peek = substitute_in_fast_path(plan(Filter(R, (predicate,)), BY_0), [Literal(5, SMALLINT)])
        assert isinstance(peek, PeekPlan)
        assert peek.literal_keys() == ((5,),) and not peek.mfp.steps


def test_a_parameter_whose_cast_may_fail_is_a_walk() -> None:
    assert lookup(SMALLINT, eq(0, Cast(Parameter(1, TEXT), SMALLINT))) is None


def test_varchar_compared_as_text_is_a_lookup() -> None:
    cast = Cast(Column(0, VARCHAR), TEXT, explicit=False)
    assert lookup(VARCHAR, eq(cast, Literal("a", TEXT))) == (("a",),)


def test_numeric_keys_take_the_columns_scale() -> None:
    money = numeric(2, 12)

    def equals(text: str) -> Expr:
        return eq(Cast(Column(0, money), NUMERIC, explicit=False), Literal(text, NUMERIC))

    assert lookup(money, equals("1.5")) == (("1.50",),)
    assert lookup(money, equals("-0.070")) == (("-0.07",),)
    assert lookup(money, equals("100")) == (("100.00",),)
    assert lookup(money, equals("1.505")) == ()
    assert lookup(money, equals("NaN")) == ()
    either = Or((eq(Column(0, NUMERIC), Literal("1.0", NUMERIC)), eq(Column(0, NUMERIC), Literal("1.00", NUMERIC))))
    assert lookup(NUMERIC, either) == (("1.0",),)


def test_a_cast_that_changes_the_meaning_is_a_walk() -> None:
    assert lookup(INTEGER, eq(Cast(Column(0, INTEGER), TEXT), Literal("1", TEXT))) is None


def test_computed_columns_stay_in_the_mfp() -> None:
    peek = plan(Map(Filter(R, (eq(0, lit(1)),)), (Call("int_add", (col(0), col(1)), INTEGER),)), BY_0)
    assert peek.literal_keys() == ((1,),)
    assert peek.mfp.projection == (0, 1, 2)


def test_without_an_index_or_with_state_there_is_no_fast_path() -> None:
    assert fast_path(R, ()) is None
    assert fast_path(S, (BY_0,)) is None
    assert fast_path(Distinct(R), (BY_0,)) is None


def test_constants_need_no_dataflow() -> None:
    constant = Constant(((1,), (2,)), (INTEGER,))
    found = fast_path(Filter(constant, (gt(0, lit(1)),)), ())
    assert isinstance(found, ConstantPlan)
    assert found.rows == ((1,), (2,))
    assert found.mfp.steps == (FilterStep(gt(0, lit(1))),)
    assert BOOLEAN not in found.mfp.types


INTEGERS = SqlType(Kind.INTEGER_ARRAY)
BIGINTS = SqlType(Kind.BIGINT_ARRAY)


def any_of(value: Expr, array: Expr) -> Call:
    return Call("any_eq", (value, array), BOOLEAN)


def array_of(*values: object, of: SqlType = BIGINTS) -> Literal:
    return Literal(literal_from_values(list(values), of), of)  # type: ignore[arg-type]  # ints and None


def test_an_array_stands_for_each_of_its_elements() -> None:
    peek = plan(Filter(R, (any_of(col(0), array_of(3, 1, None, 3)),)), BY_0)
    assert peek.literal_keys() == ((3,), (1,)) and not peek.mfp.steps
    assert plan(Filter(R, (any_of(col(0), array_of()),)), BY_0).literal_keys() == ()
    both = Filter(R, (any_of(col(0), array_of(3, 1)), eq(1, lit(7))))
    assert plan(both, BY_10).literal_keys() == ((7, 3), (7, 1))
    listed = Or((eq(1, lit(7)), eq(1, lit(8))))
    assert plan(Filter(R, (any_of(col(0), array_of(3, 1)), listed)), BY_10).literal_keys() == (
        (7, 3), (7, 1), (8, 3), (8, 1),
    )  # fmt: skip
    arrays = Filter(R, (any_of(col(0), array_of(3, 1)), any_of(col(1), array_of(5, 6))))
    assert plan(arrays, BY_10).literal_keys() == ((5, 3), (5, 1), (6, 3), (6, 1))


def test_an_array_that_is_a_parameter_is_counted_when_it_is_known() -> None:
    peek = plan(Filter(R, (any_of(col(0), Parameter(1, BIGINTS)), eq(1, Parameter(2, BIGINT)))), BY_10)
    for array, keys, many in (
        (array_of(4, 5), ((9, 4), (9, 5)), False),
        (Literal(None, BIGINTS), (), False),
        (array_of(*range(MAX_KEYS)), None, False),
        (array_of(*range(MAX_KEYS + 1)), None, True),
    ):
        bound = substitute_in_fast_path(peek, (array, Literal(9, BIGINT)))
        assert isinstance(bound, PeekPlan) and bound.too_many() is many
        if keys is not None:
            assert bound.literal_keys() == keys


def test_more_elements_than_keys_are_looked_up_are_a_walk() -> None:
    peek = plan(Filter(R, (any_of(col(0), array_of(*range(MAX_KEYS + 1))),)), BY_0)
    assert peek.literal_keys() is None and len(peek.mfp.steps) == 1


def test_an_array_of_another_width_is_looked_up_and_one_of_another_kind_is_not() -> None:
    small = Get("x", (SMALLINT,))
    by = IndexFacts("ix", "x", (0,), small.types)
    wide = any_of(Cast(Column(0, SMALLINT), BIGINT, False), array_of(5, 70_000))
    assert plan(Filter(small, (wide,)), by).literal_keys() == ((5,),)
    large = Get("y", (BIGINT,))
    narrow = any_of(Column(0, BIGINT), Cast(Parameter(1, INTEGERS), BIGINTS, False))
    peek = plan(Filter(large, (narrow,)), IndexFacts("iy", "y", (0,), large.types))
    bound = substitute_in_fast_path(peek, (array_of(5, 6, of=INTEGERS),))
    assert isinstance(bound, PeekPlan) and bound.literal_keys() == ((5,), (6,))
    numerics = any_of(Cast(Column(0, SMALLINT), NUMERIC, False), Parameter(1, SqlType(Kind.NUMERIC_ARRAY)))
    assert plan(Filter(small, (numerics,)), by).literal_keys() is None


def test_what_is_not_that_one_of_the_elements_is_equal_is_no_lookup() -> None:
    for predicate in (
        Call("any_ne", (col(0), array_of(1)), BOOLEAN),
        Call("all_eq", (col(0), array_of(1)), BOOLEAN),
        Or((any_of(col(0), array_of(1)), any_of(col(0), array_of(2)))),
    ):
        assert plan(Filter(R, (predicate,)), BY_0).literal_keys() is None


def test_a_long_list_is_a_lookup_of_each_of_its_rows_and_no_walk() -> None:
    listed = Join(JoinKind.SEMI, R, Constant(((3,), (1,), (None,), (3,)), (BIGINT,)), (eq(0, 2),))
    assert plan(listed, BY_0).literal_keys() == ((3,), (1,))
    assert plan(Filter(listed, (eq(1, lit(7)), gt(0, lit(2)))), BY_10).literal_keys() == ((7, 3), (7, 1))
    assert plan(Project(listed, (1,)), BY_0).mfp.projection == (1,)
    assert fast_path(listed, [BY_10]) is None, "an index that is not looked up would have to be walked"
    other = Join(JoinKind.SEMI, R, Constant(((3,),), (BIGINT,)), (gt(0, col(2)),))
    assert fast_path(other, [BY_0]) is None
    pairs = Join(JoinKind.SEMI, R, Constant(((1, 2), (3, 4)), (BIGINT, BIGINT)), (eq(0, 2), eq(1, 3)))
    assert plan(pairs, BY_10).literal_keys() == ((2, 1), (4, 3))
    none = Join(JoinKind.ANTI, R, Constant(((3,),), (BIGINT,)), (eq(0, 2),))
    assert fast_path(none, [BY_0]) is None
    many = Join(JoinKind.SEMI, R, Constant(tuple((i,) for i in range(MAX_KEYS + 1)), (BIGINT,)), (eq(0, 2),))
    assert fast_path(many, [BY_0]) is None
