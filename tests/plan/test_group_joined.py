"""Groups that are asked for of a join's rows are made of those rows, and the answer stays what it was."""

from __future__ import annotations

import random

import pytest

from eddyline.expr.ir import AggregateCall, Expr
from eddyline.plan.blocks import Block
from eddyline.plan.facts import NO_FACTS, CatalogFacts
from eddyline.plan.relation import Filter, Get, Join, JoinKind, LocalGet, Map, Project, Reduce, Relation
from eddyline.plan.rewrites.group_joined import group_joined
from eddyline.plan.rewrites.simplify_outer_joins import simplify_outer_joins
from eddyline.repr.types import BIGINT, INTEGER

from .build import R, S, T, col, eq, gt, lit
from .generate import KEYS
from .test_equivalence import FACTS, check

U = Get("u", (INTEGER, INTEGER))
FEW = Filter(U, (gt(1, lit(0)),))
SUM = AggregateCall("sum", (col(1),), BIGINT)


def _groups(source: Relation = S, key: int = 0) -> Relation:
    return Reduce(source, (col(key),), (SUM,))


def _asks(kind: JoinKind, picked: Relation, column: int, groups: Relation, *more: Expr) -> Join:
    return Join(kind, picked, groups, (eq(column, len(picked.types)), *more))


def _made_of_the_join(plan: Relation, facts: CatalogFacts = FACTS) -> bool:
    block = group_joined(Block((), plan), facts)
    if len(block.values) == 0:
        assert block.body is plan or block.body == plan
        return False
    (value,) = block.values
    assert isinstance(value[1], Join)
    return True


JOINED = Join(JoinKind.INNER, S, FEW, (eq(0, 3),))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
def test_the_groups_read_the_join_that_picked_them(kind: JoinKind) -> None:
    block = group_joined(Block((), _asks(kind, JOINED, 3, _groups())), FACTS)
    ((name, value),) = block.values
    shared = LocalGet(name, JOINED.types)
    assert value == JOINED
    assert block.body == _asks(kind, shared, 3, _groups(Project(shared, (0, 1, 2))))


ASKING: dict[str, Relation] = {
    "by the joined column": _asks(JoinKind.INNER, JOINED, 3, _groups()),
    "by the table's own": _asks(JoinKind.LEFT, JOINED, 0, _groups()),
    "the other way round": _asks(JoinKind.INNER, Join(JoinKind.INNER, FEW, S, (eq(2, 0),)), 0, _groups()),
    "below more": _asks(
        JoinKind.LEFT,
        Filter(Join(JoinKind.INNER, R, Project(JOINED, (3, 2)), (eq(1, 3),)), (gt(0, lit(0)),)),
        2,
        _groups(),
    ),
    "selected columns": _asks(JoinKind.INNER, Project(JOINED, (2, 3)), 1, _groups(Project(S, (2, 0)), 1)),
    "filtered groups": _asks(JoinKind.INNER, JOINED, 3, Filter(_groups(), (gt(0, lit(1)),))),
    "computed of groups": _asks(JoinKind.LEFT, JOINED, 3, Project(Map(_groups(), (lit(7),)), (0, 2))),
    "with another condition": _asks(JoinKind.INNER, JOINED, 3, Reduce(S, (col(0), col(2)), (SUM,)), eq(2, 6)),
}
OTHERS: dict[str, Relation] = {
    "picks some of the table's rows": _asks(
        JoinKind.INNER, Join(JoinKind.INNER, Filter(S, (gt(1, lit(1)),)), FEW, (eq(0, 3),)), 3, _groups()
    ),
    "picks by another condition as well": _asks(
        JoinKind.INNER, Join(JoinKind.INNER, S, FEW, (eq(0, 3), gt(1, 4))), 3, _groups()
    ),
    "repeats rows": _asks(
        JoinKind.INNER, Join(JoinKind.INNER, S, Filter(R, (gt(1, lit(0)),)), (eq(0, 3),)), 3, _groups()
    ),
    "is of everything": _asks(JoinKind.INNER, Join(JoinKind.INNER, S, U, (eq(0, 3),)), 3, _groups()),
    "is of another table": _asks(JoinKind.INNER, JOINED, 3, _groups(Project(R, (0, 1)))),
    "groups by another column": _asks(JoinKind.INNER, JOINED, 3, _groups(S, 1)),
    "asks for another column": _asks(JoinKind.INNER, JOINED, 4, _groups()),
    "may lack the join's rows": _asks(JoinKind.INNER, Join(JoinKind.RIGHT, JOINED, T, (eq(0, 5),)), 5, _groups()),
    "adds rows": _asks(JoinKind.FULL, JOINED, 3, _groups()),
}


@pytest.mark.parametrize("name", list(ASKING))
def test_the_answer_is_that_of_all_groups(name: str) -> None:
    plan = ASKING[name]
    assert _made_of_the_join(plan) == (name != "with another condition")
    rng = random.Random(3)
    for _ in range(10):
        assert check(plan, rng, FACTS)
        assert check(plan, rng, CatalogFacts((), KEYS))


@pytest.mark.parametrize("name", list(OTHERS))
def test_groups_that_may_lack_rows_are_made_of_the_table(name: str) -> None:
    plan = OTHERS[name]
    assert not _made_of_the_join(plan)
    assert check(plan, random.Random(4), FACTS)


def test_without_a_key_the_groups_are_made_of_the_table() -> None:
    assert not _made_of_the_join(ASKING["by the joined column"], NO_FACTS)


def test_what_a_filter_rejects_may_be_computed_of_the_nulls_of_an_outer_join() -> None:
    outer = Join(JoinKind.LEFT, R, S, (eq(0, 2),))
    inner = Join(JoinKind.INNER, R, S, (eq(0, 2),))

    def compared(join: Relation) -> Relation:
        return Filter(Project(Map(join, (eq(3, 4),)), (5, 0)), (eq(0, 0), gt(1, lit(0))))

    assert simplify_outer_joins(compared(outer), NO_FACTS) == compared(inner)
    kept = Filter(Project(Map(outer, (eq(3, 4),)), (5, 0)), (gt(1, lit(0)),))
    assert simplify_outer_joins(kept, NO_FACTS) == kept
