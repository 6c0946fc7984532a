"""Optimizing and lowering keep the meaning of random relations, and add no errors."""

from __future__ import annotations

import random

import pytest

from eddyline.plan.facts import CatalogFacts, IndexFacts
from eddyline.plan.lower import lower
from eddyline.plan.lower_join import split_condition
from eddyline.plan.optimize import optimize
from eddyline.plan.predicates import fallible
from eddyline.plan.relation import Join, Relation
from eddyline.plan.traverse import post_order
from eddyline.testing.interpret import interpret

from . import naive
from .generate import KEYS, TABLES, Generator, random_tables

FACTS = CatalogFacts(
    (
        IndexFacts("r_0", "r", (0,), TABLES["r"]),
        IndexFacts("s_20", "s", (2, 0), TABLES["s"]),
        IndexFacts("s_1", "s", (1,), TABLES["s"]),
    ),
    KEYS,
)
ON = {i.id: i.on for i in FACTS.indexes}
SEEDS = range(40)
PLANS_PER_SEED = 25


def result_or_failure(plan: Relation, tables: dict[str, naive.Bag]) -> naive.Bag | None:
    try:
        return naive.relation(plan, tables)
    except naive.RowFailure:
        return None


def has_fallible_key(plan: Relation) -> bool:
    """Whether a join's only equality may fail: it then is a key, computed also for rows without a partner."""
    joins = [node for node in post_order(plan) if isinstance(node, Join)]
    pairs = [pair for j in joins for pair in split_condition(j.on, len(j.left.types))[0]]
    return any(fallible(pair.left) or fallible(pair.right) for pair in pairs)


def check(plan: Relation, rng: random.Random, facts: CatalogFacts) -> bool:
    optimized = optimize(plan, facts)
    assert optimized.types == plan.types
    operators = lower(optimized, facts.indexes, unique_keys=facts.unique_keys)
    results = (
        (operators, has_fallible_key(optimized)),
        (lower(plan, facts.indexes, unique_keys=facts.unique_keys), has_fallible_key(plan)),
    )
    assert operators[-1].types == plan.types
    succeeded = False
    for _ in range(4):
        tables = random_tables(rng)
        expected = result_or_failure(plan, tables)
        if expected is not None:
            succeeded = True
            assert naive.relation(optimized, tables) == expected
            for lowered, risky in results:
                try:
                    assert naive.operators(lowered, tables, ON) == expected
                except naive.RowFailure:
                    assert risky
    return succeeded


@pytest.mark.parametrize("seed", SEEDS)
def test_random_plans_keep_their_meaning(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(PLANS_PER_SEED):
        plan = Generator(rng, fallible=False).relation(rng.choice((2, 3, 4)))
        assert check(plan, rng, FACTS if rng.random() < 0.7 else CatalogFacts())


@pytest.mark.parametrize("seed", SEEDS)
def test_random_plans_with_fallible_expressions_get_no_new_errors(seed: int) -> None:
    rng = random.Random(1000 + seed)
    succeeded = sum(
        check(Generator(rng, fallible=True).relation(rng.choice((2, 3, 4))), rng, FACTS) for _ in range(PLANS_PER_SEED)
    )
    assert succeeded > PLANS_PER_SEED // 3


def test_both_interpreters_agree_on_what_a_plan_means() -> None:
    rng = random.Random(5)
    for _ in range(60):
        plan = Generator(rng, fallible=True).relation(rng.choice((2, 3)))
        optimized = optimize(plan, FACTS)
        tables = random_tables(rng)
        expected = result_or_failure(plan, tables)
        if expected is not None:
            assert interpret(plan, tables) == expected
            assert interpret(optimized, tables) == expected
