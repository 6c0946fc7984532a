"""Each rewrite as before and after."""

from __future__ import annotations

import pytest

from eddyline.expr.ir import AggregateCall, And, Call, Cast, Expr, Literal, Or, SortKey
from eddyline.plan.blocks import Block
from eddyline.plan.facts import NO_FACTS, CatalogFacts, IndexFacts
from eddyline.plan.optimize import optimize
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    TopK,
    Union,
)
from eddyline.plan.rewrites.drop_empty import drop_empty
from eddyline.plan.rewrites.factor_disjunctions import factor_disjunctions
from eddyline.plan.rewrites.fuse import fuse
from eddyline.plan.rewrites.narrow import narrow_block
from eddyline.plan.rewrites.order_joins import _Order, _Tree, order_joins
from eddyline.plan.rewrites.push_filters import push_filters
from eddyline.plan.rewrites.push_semi_joins import push_semi_joins
from eddyline.plan.rewrites.simplify_distinct import simplify_distinct
from eddyline.plan.rewrites.simplify_outer_joins import simplify_outer_joins
from eddyline.plan.rewrites.spread_constants import spread_constants
from eddyline.plan.traverse import post_order
from eddyline.plan.unique import unique_keys
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT

from .build import R, S, T, col, count, div, eq, gt, lit


def pushed(relation: Relation) -> Relation:
    return push_filters(relation, NO_FACTS)


def fused(relation: Relation) -> Relation:
    return fuse(relation, NO_FACTS)


def test_projections_maps_and_filters_fuse() -> None:
    assert fused(Project(Project(S, (2, 1)), (1,))) == Project(S, (1,))
    assert fused(Project(R, (0, 1))) == R
    assert fused(Map(Map(R, (lit(1),)), (lit(2),))) == Map(R, (lit(1), lit(2)))
    first, second = eq(0, lit(1)), eq(1, lit(2))
    assert fused(Filter(Filter(R, (first,)), (second,))) == Filter(R, (first, second))
    assert fused(Filter(R, (And((first, second)),))) == Filter(R, (first, second))
    assert fused(Filter(R, (Literal(True, BOOLEAN),))) == R


def test_unions_flatten_and_double_negation_vanishes() -> None:
    assert fused(Union((R, Union((R, R))))) == Union((R, R, R))
    assert fused(Negate(Negate(R))) == R


def test_a_projection_drops_a_map_it_does_not_read() -> None:
    assert fused(Project(Map(R, (div(0, 1),)), (1,))) == Project(R, (1,))


def test_nothing_comes_of_nothing() -> None:
    nothing = Constant((), R.types)
    false = Literal(False, BOOLEAN)
    assert drop_empty(Filter(R, (false,)), NO_FACTS) == nothing
    assert drop_empty(TopK(R, (), (), count(0), None), NO_FACTS) == nothing
    assert drop_empty(Union((R, nothing)), NO_FACTS) == R
    assert drop_empty(Join(JoinKind.INNER, R, nothing, ()), NO_FACTS) == Constant((), (*R.types, *R.types))
    assert drop_empty(Join(JoinKind.ANTI, R, nothing, (eq(0, 2),)), NO_FACTS) == R
    padded = Map(R, (Literal(None, INTEGER), Literal(None, INTEGER)))
    assert drop_empty(Join(JoinKind.LEFT, R, nothing, (eq(0, 2),)), NO_FACTS) == padded


def test_an_ungrouped_aggregate_of_nothing_is_one_row() -> None:
    total = Reduce(Constant((), R.types), (), (AggregateCall("count", (), BIGINT),), global_row=True)
    assert drop_empty(total, NO_FACTS) == total


def test_a_filter_goes_through_projection_and_to_the_side_it_reads() -> None:
    joined = Join(JoinKind.INNER, R, S, (eq(0, 2),))
    before = Filter(Project(joined, (1, 4)), (eq(0, lit(7)), gt(1, lit(3)), eq(0, 1)))
    after = Project(
        Join(JoinKind.INNER, Filter(R, (eq(1, lit(7)),)), Filter(S, (gt(2, lit(3)),)), (eq(0, 2), eq(1, 4))), (1, 4)
    )
    assert pushed(before) == after


def test_a_filter_on_the_padded_side_stays_above_an_outer_join() -> None:
    joined = Join(JoinKind.LEFT, R, S, (eq(0, 2),))
    is_null = Call("is_null", (col(2),), BOOLEAN)
    before = Filter(joined, (eq(1, lit(1)), is_null))
    assert pushed(before) == Filter(Join(JoinKind.LEFT, Filter(R, (eq(1, lit(1)),)), S, (eq(0, 2),)), (is_null,))


def test_an_outer_joins_condition_moves_only_to_the_padded_side() -> None:
    on = (eq(0, 2), eq(1, lit(1)), eq(3, lit(2)))
    after = Join(JoinKind.LEFT, R, Filter(S, (eq(1, lit(2)),)), (eq(0, 2), eq(1, lit(1))))
    assert pushed(Join(JoinKind.LEFT, R, S, on)) == after


def test_filters_on_keys_go_below_groupings() -> None:
    grouped = Reduce(R, (col(1),), (AggregateCall("count", (), BIGINT),))
    assert pushed(Filter(grouped, (eq(0, lit(1)),))) == Reduce(
        Filter(R, (eq(1, lit(1)),)), grouped.keys, grouped.aggregates
    )
    of_count = Call("gt", (col(1, BIGINT), count(1)), BOOLEAN)
    assert pushed(Filter(grouped, (of_count,))) == Filter(grouped, (of_count,))
    top = TopK(R, (0,), (SortKey(1),), count(1), None)
    assert pushed(Filter(top, (eq(0, lit(1)), eq(1, lit(2))))) == Filter(
        TopK(Filter(R, (eq(0, lit(1)),)), (0,), (SortKey(1),), count(1), None), (eq(1, lit(2)),)
    )


def test_a_fallible_predicate_does_not_go_below_a_join_or_past_its_guard() -> None:
    risky = gt(div(lit(1), 1), lit(0))
    joined = Join(JoinKind.INNER, R, S, (eq(0, 2),))
    assert pushed(Filter(joined, (risky,))) == Filter(joined, (risky,))
    semi = Join(JoinKind.SEMI, R, S, (eq(0, 2),))
    assert pushed(Filter(semi, (risky,))) == Filter(semi, (risky,))
    # A left join keeps every left row, so it may go there, unless an earlier predicate stays and may guard it.
    left = Join(JoinKind.LEFT, R, S, (eq(0, 2),))
    assert pushed(Filter(left, (risky,))) == Join(JoinKind.LEFT, Filter(R, (risky,)), S, (eq(0, 2),))
    guard = gt(2, lit(0))
    assert pushed(Filter(left, (guard, risky))) == Filter(left, (guard, risky))


def test_a_fallible_equality_saves_a_join_from_being_a_product() -> None:
    risky = eq(div(lit(6), 0), 2)
    product = Join(JoinKind.INNER, R, S, ())
    assert pushed(Filter(product, (risky,))) == Join(JoinKind.INNER, R, S, (risky,))
    assert pushed(Filter(product, (risky, eq(1, 3)))) == Filter(Join(JoinKind.INNER, R, S, (eq(1, 3),)), (risky,))


def test_a_predicate_that_tells_equal_values_apart_stays_above_distinct() -> None:
    doubles = Get("d", (DOUBLE,))
    value = col(0, DOUBLE)
    compared = Call("eq", (value, Literal(0.0, DOUBLE)), BOOLEAN)
    assert pushed(Filter(Distinct(doubles), (compared,))) == Distinct(Filter(doubles, (compared,)))
    printed = Call("eq", (Cast(value, TEXT), Literal("-0", TEXT)), BOOLEAN)  # -0 = 0, but only one prints so
    assert pushed(Filter(Distinct(doubles), (printed,))) == Filter(Distinct(doubles), (printed,))


def test_a_filter_that_rejects_nulls_makes_an_outer_join_stricter() -> None:
    on = (eq(0, 2),)

    def simplified(kind: JoinKind, predicate_column: int) -> Relation:
        relation = Filter(Join(kind, R, S, on), (eq(predicate_column, lit(1)),))
        return simplify_outer_joins(relation, NO_FACTS)

    def joined(kind: JoinKind, predicate_column: int) -> Relation:
        return Filter(Join(kind, R, S, on), (eq(predicate_column, lit(1)),))

    assert simplified(JoinKind.LEFT, 3) == joined(JoinKind.INNER, 3)
    assert simplified(JoinKind.LEFT, 1) == joined(JoinKind.LEFT, 1)
    assert simplified(JoinKind.FULL, 1) == joined(JoinKind.LEFT, 1)
    assert simplified(JoinKind.FULL, 3) == joined(JoinKind.RIGHT, 3)
    keeps_null = Filter(Join(JoinKind.LEFT, R, S, on), (Call("is_null", (col(3),), BOOLEAN),))
    assert simplify_outer_joins(keeps_null, NO_FACTS) == keeps_null


def test_joins_are_ordered_without_products() -> None:
    # r × t, then s that links both: s comes second.
    before = Join(JoinKind.INNER, Join(JoinKind.INNER, R, T, ()), S, (eq(0, 3), eq(2, 4)))
    after = order_joins(before, NO_FACTS)
    assert after == Project(
        Join(JoinKind.INNER, Join(JoinKind.INNER, R, S, (eq(0, 2),)), T, (eq(5, 3),)), (0, 1, 5, 2, 3, 4)
    )


def test_joins_start_from_the_input_with_an_equality() -> None:
    filtered = Filter(T, (eq(0, lit(5)),))
    before = Join(JoinKind.INNER, Join(JoinKind.INNER, R, S, (eq(0, 2),)), filtered, (eq(1, 5),))
    after = order_joins(before, NO_FACTS)
    assert after == Project(
        Join(JoinKind.INNER, Join(JoinKind.INNER, filtered, R, (eq(2, 0),)), S, (eq(1, 3),)), (1, 2, 3, 4, 5, 0)
    )


def test_among_linked_inputs_the_one_with_an_index_is_next() -> None:
    before = Join(JoinKind.INNER, Join(JoinKind.INNER, R, T, (eq(0, 2),)), S, (eq(1, 4),))
    facts = CatalogFacts((IndexFacts("i", "s", (1,), S.types),))
    first, last = Join(JoinKind.INNER, R, S, (eq(1, 3),)), T
    assert order_joins(before, facts) == Project(Join(JoinKind.INNER, first, last, (eq(0, 5),)), (0, 1, 5, 2, 3, 4))
    assert order_joins(before, NO_FACTS) == before


def test_distinct_vanishes_over_unique_rows() -> None:
    grouped = Reduce(R, (col(0),), (AggregateCall("count", (), BIGINT),))
    assert simplify_distinct(Distinct(grouped), NO_FACTS) == grouped
    keyed = CatalogFacts(unique_keys={"r": ((0,),)})
    assert simplify_distinct(Distinct(Project(R, (1, 0))), keyed) == Project(R, (1, 0))
    assert simplify_distinct(Distinct(Project(R, (1,))), keyed) == Distinct(Project(R, (1,)))
    semi = Join(JoinKind.SEMI, R, Distinct(S), (eq(0, 2),))
    assert simplify_distinct(semi, NO_FACTS) == Join(JoinKind.SEMI, R, S, (eq(0, 2),))


def test_only_the_columns_that_are_read_are_kept() -> None:
    joined = Join(JoinKind.INNER, R, S, (eq(0, 2),))
    before = Project(Map(joined, (div(1, 4), lit(1))), (4, 6))
    narrow = narrow_block(Block((), before)).body
    below = Join(JoinKind.INNER, Project(R, (0,)), Project(S, (0, 2)), (eq(0, 1),))
    assert fused(narrow) == Map(Project(below, (2,)), (lit(1),))


def test_aggregates_that_nobody_reads_are_not_computed() -> None:
    counted = AggregateCall("count", (), BIGINT)
    summed = AggregateCall("sum", (col(1),), BIGINT)
    before = Project(Reduce(S, (col(0),), (summed, counted)), (2,))
    assert fused(narrow_block(Block((), before)).body) == Project(Reduce(Project(S, (0,)), (col(0),), (counted,)), (1,))


def test_constants_cross_the_equalities_of_a_join() -> None:
    fixed = Filter(R, (eq(0, lit(5)),))
    of_s = Filter(S, (eq(0, lit(5)),))
    for kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
        assert spread_constants(Join(kind, fixed, S, (eq(0, 2),)), NO_FACTS) == Join(kind, fixed, of_s, (eq(0, 2),))
        untouched = Join(kind, fixed, of_s, (eq(0, 2),))
        assert spread_constants(untouched, NO_FACTS) == untouched
    for kind in (JoinKind.LEFT, JoinKind.ANTI, JoinKind.FULL):
        kept = Join(kind, R, of_s, (eq(0, 2),))
        assert spread_constants(kept, NO_FACTS) == kept
    assert spread_constants(Join(JoinKind.SEMI, R, of_s, (eq(2, 0),)), NO_FACTS) == Join(
        JoinKind.SEMI, fixed, of_s, (eq(2, 0),)
    )


def test_constants_pass_chains_of_joins_and_groupings() -> None:
    grouped = Reduce(Filter(R, (eq(1, lit(5)),)), (col(1),), (AggregateCall("count", (), BIGINT),))
    chain = Join(JoinKind.INNER, Join(JoinKind.INNER, grouped, S, (eq(0, 2),)), T, (eq(2, 5),))
    assert spread_constants(chain, NO_FACTS) == Join(
        JoinKind.INNER,
        Join(JoinKind.INNER, grouped, Filter(S, (eq(0, lit(5)),)), (eq(0, 2),)),
        Filter(T, (eq(0, lit(5)),)),
        (eq(2, 5),),
    )


def test_what_every_branch_of_an_or_demands_is_demanded_outside_it() -> None:
    key, first, second = eq(0, 2), gt(1, lit(1)), gt(1, lit(2))

    def joined(*on: Expr) -> Join:
        return Join(JoinKind.INNER, R, S, on)

    both = Or((And((first, key)), And((key, second))))
    assert factor_disjunctions(joined(both), NO_FACTS) == joined(key, Or((first, second)))
    assert factor_disjunctions(Filter(R, (both,)), NO_FACTS) == Filter(R, (key, Or((first, second))))
    assert factor_disjunctions(joined(Or((key, And((key, second))))), NO_FACTS) == joined(key)


def test_nothing_is_factored_out_that_some_branch_does_not_demand_or_that_may_fail() -> None:
    key, first, second = eq(0, 2), gt(1, lit(1)), gt(1, lit(2))
    risky = gt(div(0, 1), lit(1))
    for on in (Or((And((key, first)), second)), Or((And((risky, first)), And((risky, second)))), first):
        found = factor_disjunctions(Join(JoinKind.INNER, R, S, (on,)), NO_FACTS)
        assert isinstance(found, Join) and found.on[0] == on


def test_what_an_or_demands_of_one_side_is_a_condition_of_its_own() -> None:
    both = Or((And((eq(0, lit(1)), eq(2, lit(2)))), And((eq(0, lit(2)), eq(2, lit(1))))))
    left, right = Or((eq(0, lit(1)), eq(0, lit(2)))), Or((eq(0, lit(2)), eq(0, lit(1))))
    join = Join(JoinKind.INNER, R, S, (eq(1, 3), both))
    assert pushed(factor_disjunctions(join, NO_FACTS)) == Join(
        JoinKind.INNER, Filter(R, (left,)), Filter(S, (right,)), (eq(1, 3), both)
    )
    outer = Join(JoinKind.LEFT, R, S, (eq(1, 3), both))
    assert pushed(factor_disjunctions(outer, NO_FACTS)) == Join(JoinKind.LEFT, R, Filter(S, (right,)), outer.on)
    once = factor_disjunctions(join, NO_FACTS)
    assert factor_disjunctions(once, NO_FACTS) is once
    open_ended = Or((And((eq(0, lit(1)), eq(2, lit(2)))), eq(2, lit(1))))
    ended = factor_disjunctions(Join(JoinKind.INNER, R, S, (eq(1, 3), open_ended)), NO_FACTS)
    assert pushed(ended) == Join(
        JoinKind.INNER, R, Filter(S, (Or((eq(0, lit(2)), eq(0, lit(1)))),)), (eq(1, 3), open_ended)
    )


def test_joins_of_many_with_many_come_last() -> None:
    """``a`` and ``b`` refer to the keyed ``k``; ``a`` could be joined with ``b`` first, which multiplies."""
    a, b, k = Get("a", (INTEGER, INTEGER)), Get("b", (INTEGER, INTEGER)), Get("k", (INTEGER,))
    facts = CatalogFacts((), {"k": ((0,),)})
    plan = Join(JoinKind.INNER, Join(JoinKind.INNER, a, b, (eq(0, 2),)), k, (eq(1, 4),))
    ordered = order_joins(plan, facts)
    assert ordered == Project(
        Join(JoinKind.INNER, Join(JoinKind.INNER, a, k, (eq(1, 2),)), b, (eq(0, 3),)), (0, 1, 3, 4, 2)
    )
    assert order_joins(plan, NO_FACTS) == plan


def test_what_is_referred_to_meets_its_own_filtered_reference_first() -> None:
    """``f`` refers to ``d`` and to ``e``, ``d`` refers to ``n``, of which few rows are wanted."""
    f, d, n = Get("f", (INTEGER, INTEGER)), Get("d", (INTEGER, INTEGER)), Get("n", (INTEGER, INTEGER))
    e, few = Filter(Get("e", (INTEGER,)), (eq(0, lit(1)),)), Filter(n, (gt(1, lit(5)),))
    keys = {"d": ((0,),), "n": ((0,),), "e": ((0,),)}
    facts = CatalogFacts((), keys)
    three = Join(JoinKind.INNER, Join(JoinKind.INNER, f, d, (eq(0, 2),)), few, (eq(3, 4),))
    reduced = Join(JoinKind.INNER, d, few, (eq(1, 2),))
    first = Join(JoinKind.INNER, f, reduced, (eq(0, 2),))
    assert order_joins(three, facts) == Project(first, (0, 1, 2, 3, 4, 5))
    assert order_joins(first, facts) is first
    plan = Join(JoinKind.INNER, three, e, (eq(1, 6),))
    ordered = order_joins(plan, facts)
    joined = Join(JoinKind.INNER, Join(JoinKind.INNER, e, f, (eq(2, 0),)), reduced, (eq(1, 3),))
    assert ordered == Project(joined, (1, 2, 3, 4, 5, 6, 0))
    assert order_joins(ordered, facts) == ordered
    # not where an index has ``d`` by the key, ``n`` has all its rows, or ``d`` is linked by no key
    indexed = CatalogFacts((IndexFacts("i", "d", (0,), d.types),), keys)
    whole = Join(JoinKind.INNER, Join(JoinKind.INNER, f, d, (eq(0, 2),)), n, (eq(3, 4),))
    for tree, known in ((three, indexed), (whole, facts), (three, CatalogFacts((), {"n": ((0,),)}))):
        assert reduced not in list(post_order(order_joins(tree, known)))


def test_what_is_joined_to_a_filtered_reference_is_as_rare_as_that() -> None:
    """``d`` of one ``n`` comes before ``e`` of one kind, which is written later; of one ``m`` of such an ``n`` it does
    not."""
    f, d, n = Get("f", (INTEGER, INTEGER)), Get("d", (INTEGER, INTEGER)), Get("n", (INTEGER, INTEGER))
    e, few = Filter(Get("e", (INTEGER,)), (eq(0, lit(1)),)), Filter(n, (eq(1, lit(5)),))
    facts = CatalogFacts((), dict.fromkeys("dmne", ((0,),)))
    reduced = Join(JoinKind.INNER, d, few, (eq(1, 2),))
    three = Join(JoinKind.INNER, Join(JoinKind.INNER, f, d, (eq(0, 2),)), few, (eq(3, 4),))
    ordered = order_joins(Join(JoinKind.INNER, three, e, (eq(1, 6),)), facts)
    joined = Join(JoinKind.INNER, Join(JoinKind.INNER, reduced, f, (eq(4, 0),)), e, (eq(5, 6),))
    assert ordered == Project(joined, (4, 5, 0, 1, 2, 3, 6))
    assert order_joins(ordered, facts) == ordered
    m = Filter(Get("m", (INTEGER, INTEGER)), (eq(1, lit(5)),))
    four = Join(
        JoinKind.INNER, Join(JoinKind.INNER, Join(JoinKind.INNER, f, d, (eq(0, 2),)), n, (eq(3, 4),)), m, (eq(5, 6),)
    )
    far = order_joins(Join(JoinKind.INNER, four, e, (eq(1, 8),)), facts)
    assert next(node for node in post_order(far)) == Get("e", (INTEGER,))


def test_a_join_keeps_the_keys_of_the_side_whose_rows_it_repeats_never() -> None:
    facts = CatalogFacts((), {"r": ((0,),), "s": ((0,),)})
    refers = Join(JoinKind.INNER, R, S, (eq(1, 2),))
    assert unique_keys(refers, facts) == {frozenset({0}), frozenset({0, 2})}
    assert frozenset({2}) in unique_keys(Join(JoinKind.INNER, R, S, (eq(0, 3),)), facts)
    assert unique_keys(Join(JoinKind.INNER, R, S, (eq(1, 3),)), facts) == {frozenset({0, 2})}
    assert unique_keys(Join(JoinKind.INNER, R, S, (gt(1, 2),)), facts) == {frozenset({0, 2})}
    assert unique_keys(Join(JoinKind.LEFT, R, S, (eq(1, 2),)), facts) == set()


def test_a_join_that_is_read_twice_is_made_once_though_its_readers_want_other_columns() -> None:
    """Under a selection of columns, too, which is not shared itself."""
    joined = Project(Filter(Join(JoinKind.INNER, R, S, (eq(0, 2),)), (gt(3, lit(4)),)), (0, 1, 4))
    counted = (AggregateCall("count", (), BIGINT),)
    summed = (AggregateCall("sum", (col(2),), BIGINT),)
    plan = Join(JoinKind.INNER, Reduce(joined, (col(0),), summed), Reduce(joined, (col(1),), counted), (eq(1, 3),))
    joins = [n for n in post_order(optimize(plan)) if isinstance(n, Join) and isinstance(n.left, (Get, Project))]
    assert len(joins) == 1


FEW = Filter(T, (gt(0, lit(5)),))


def test_a_semi_join_with_few_rows_comes_before_joins_that_keep_theirs() -> None:
    for kind in (JoinKind.SEMI, JoinKind.ANTI):
        joined = Project(Join(JoinKind.INNER, T, Join(JoinKind.INNER, R, S, (eq(1, 2),)), (eq(0, 1),)), (2, 4, 1))
        # column 0 is R's second one
        after = push_semi_joins(Join(kind, joined, FEW, (eq(0, 3),)), NO_FACTS)
        early = Join(kind, R, FEW, (eq(1, 2),))
        assert after == Project(
            Join(JoinKind.INNER, T, Join(JoinKind.INNER, early, S, (eq(1, 2),)), (eq(0, 1),)), (2, 4, 1)
        )


def test_a_semi_join_stays_where_it_may_see_fewer_rows_or_its_condition_may_fail() -> None:
    joined = Join(JoinKind.INNER, R, S, (eq(1, 2),))
    filtered = Join(JoinKind.INNER, R, Filter(S, (eq(0, lit(1)),)), (eq(1, 2),))
    outer = Join(JoinKind.LEFT, R, S, (eq(1, 2),))
    for before in (
        Join(JoinKind.SEMI, joined, T, (eq(0, 5),)),  # of everything there is
        Join(JoinKind.SEMI, filtered, FEW, (eq(0, 5),)),
        Join(JoinKind.SEMI, outer, FEW, (eq(3, 5),)),
        Join(JoinKind.SEMI, joined, FEW, (eq(0, 5), eq(2, 5))),  # of both sides
        Join(JoinKind.SEMI, joined, FEW, (eq(div(0, lit(0)), 5),)),
    ):
        assert push_semi_joins(before, NO_FACTS) == before


def test_a_semi_joined_input_is_a_filtered_one() -> None:
    few = Join(JoinKind.SEMI, S, FEW, (eq(0, 3),))
    tree = Join(JoinKind.INNER, Join(JoinKind.INNER, R, T, (eq(1, 2),)), few, (eq(0, 3),))
    after = order_joins(tree, NO_FACTS)
    assert isinstance(after, Project) and isinstance(after.input, Join) and isinstance(after.input.left, Join)
    assert after.input.left.left == few


class _Counted(_Order):
    """``asked``: how often the columns that link two inputs were looked for."""

    asked = 0

    def _equated(self, chosen: frozenset[int], i: int) -> tuple[frozenset[int], frozenset[int]]:
        self.asked += 1
        return super()._equated(chosen, i)


@pytest.mark.parametrize("star", [False, True])
@pytest.mark.parametrize("inputs", [10, 40])
def test_what_is_joined_first_is_found_by_asking_each_link_a_few_times(inputs: int, star: bool) -> None:
    """A chain of references, or a star, all of them filtered."""
    tables = [Filter(Get(f"t{i}", (INTEGER, INTEGER)), (gt(1, lit(0)),)) for i in range(inputs)]
    links = tuple(eq(1 if star else 2 * i - 1, 2 * i) for i in range(1, inputs))
    tree = _Tree(tuple(tables), links, tuple(range(2 * inputs)), tuple(range(inputs)))
    order = _Counted(tree, CatalogFacts((), {f"t{i}": ((0,),) for i in range(inputs)}))
    assert len(order.reductions()) == (0 if star else inputs - 2)
    assert order.asked <= 3 * inputs
