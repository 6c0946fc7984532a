"""Plans as text."""

from __future__ import annotations

from eddyline.expr.ir import AggregateCall, SortKey
from eddyline.plan.explain import Names, explain_operators, explain_query, explain_relation
from eddyline.plan.facts import CatalogFacts, IndexFacts
from eddyline.plan.lower import lower
from eddyline.plan.optimize import optimize
from eddyline.plan.relation import Filter, Join, JoinKind, Let, LocalGet, Project, Reduce, TopK, Union
from eddyline.repr.types import BIGINT

from .build import R, S, col, count, eq, gt, lit

COLUMNS = {"r": ("id", "size"), "s": ("id", "owner", "price")}
NAMES = Names(lambda i: {"r": "boxes", "s": "sales", "r0": "boxes_by_id"}.get(i, i), COLUMNS.get)
R_BY_0 = IndexFacts("r0", "r", (0,), R.types)


def test_a_lookup_is_shown_with_its_key() -> None:
    plan = optimize(Project(Filter(R, (eq(0, lit(7)), gt(1, lit(3)))), (1,)))
    assert explain_query(plan, (R_BY_0,), NAMES) == (
        "Fast path: lookup in index boxes_by_id on boxes, key (7)\n  Filter (size > 3)\n  Project size"
    )


def test_a_walk_is_shown_as_such() -> None:
    assert explain_query(R, (R_BY_0,), NAMES) == "Fast path: walk of index boxes_by_id on boxes"


def test_a_query_that_needs_a_dataflow_shows_its_tree_and_its_indexes() -> None:
    joined = Join(JoinKind.LEFT, R, S, (eq(0, 2),))
    grouped = Reduce(joined, (col(1),), (AggregateCall("sum", (col(4),), BIGINT),))
    plan = optimize(TopK(grouped, (), (SortKey(1, desc=True),), count(3), None), CatalogFacts((R_BY_0,)))
    assert explain_query(plan, (R_BY_0,), NAMES).splitlines() == [
        "One-shot dataflow",
        "  TopK order sum(price) DESC NULLS LAST limit 3",
        "    Reduce by size: sum(price)",
        "      Project size, price",
        "        Left join on (id = id)",
        "          Get boxes",
        "          Project id, price",
        "            Get sales",
        "Indexes used: boxes_by_id",
    ]


def test_shared_parts_are_shown_once() -> None:
    shared = LocalGet("l0", R.types)
    plan = Let("l0", TopK(R, (), (), count(1), None), Union((shared, shared)))
    assert explain_relation(plan, NAMES).splitlines() == [
        "Shared l0 =",
        "  TopK limit 1",
        "    Get boxes",
        "Union",
        "  Get shared l0",
        "  Get shared l0",
    ]


def test_operators_are_listed_with_their_inputs() -> None:
    lines = explain_operators(lower(Join(JoinKind.INNER, R, S, (eq(0, 2),)), (R_BY_0,)), NAMES).splitlines()
    assert lines == [
        "%0 = ImportIndex() boxes_by_id",
        "%1 = ImportSource() sales",
        "%2 = Arrange(%1) key (#0)",
        "%3 = Join(%0, %2) project (#0, #1, #2, #3, #4)",
    ]
