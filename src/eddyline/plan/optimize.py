"""From a bound relation to one that is cheap to maintain: the order of the rewrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline.plan.blocks import Block, block_of, inline_cheap, relation_of, share_common
from eddyline.plan.facts import NO_FACTS, CatalogFacts
from eddyline.plan.relation import Relation
from eddyline.plan.rewrites.drop_empty import drop_empty
from eddyline.plan.rewrites.factor_disjunctions import factor_disjunctions
from eddyline.plan.rewrites.fold_constants import fold_constants
from eddyline.plan.rewrites.fuse import fuse
from eddyline.plan.rewrites.group_joined import group_joined
from eddyline.plan.rewrites.narrow import narrow_block
from eddyline.plan.rewrites.order_joins import order_joins
from eddyline.plan.rewrites.push_filters import push_filters
from eddyline.plan.rewrites.push_semi_joins import push_semi_joins
from eddyline.plan.rewrites.simplify_distinct import simplify_distinct
from eddyline.plan.rewrites.simplify_outer_joins import simplify_outer_joins
from eddyline.plan.rewrites.spread_constants import spread_constants

__all__ = ["REWRITES", "Rewrite", "optimize"]

Rewrite = Callable[[Relation, CatalogFacts], Relation]

#: one round: filters to their places, then joins; each leaves the meaning as it is, and never adds an error
_PLACING: tuple[Rewrite, ...] = (
    fuse,
    drop_empty,
    simplify_outer_joins,
    factor_disjunctions,
    push_filters,
    push_semi_joins,
    fuse,
)
_ORDERING: tuple[Rewrite, ...] = (
    order_joins,
    spread_constants,
    push_filters,
    simplify_distinct,
    fuse,
)
REWRITES = (*_PLACING, *_ORDERING)


def optimize(relation: Relation, facts: CatalogFacts = NO_FACTS) -> Relation:
    """An equivalent relation: filters and projections near the leaves, common parts shared by ``Let``.

    It may avoid errors that ``relation`` would meet; never the reverse.  Cost: a few linear walks.
    """
    block = share_common(inline_cheap(block_of(relation)), stateful_only=True)
    block = _each(block, fold_constants, facts)
    block = group_joined(_all(_PLACING, block, facts), facts)
    block = share_common(_all(_ORDERING, block, facts), stateful_only=False)
    block = inline_cheap(narrow_block(block))  # what was folded away may leave a value with one reader
    block = narrow_block(_all(REWRITES, block, facts))
    block = _each(block, fuse, facts)
    return relation_of(share_common(block, stateful_only=False))


def _all(rewrites: Sequence[Rewrite], block: Block, facts: CatalogFacts) -> Block:
    for rewrite in rewrites:
        block = _each(block, rewrite, facts)
    return block


def _each(block: Block, rewrite: Rewrite, facts: CatalogFacts) -> Block:
    values = tuple((name, rewrite(value, facts)) for name, value in block.values)
    return Block(values, rewrite(block.body, facts))
