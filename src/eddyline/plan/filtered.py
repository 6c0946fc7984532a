"""Which relations are likely to be smaller than what they are made from."""

from __future__ import annotations

from eddyline.plan.relation import Filter, Join, JoinKind, Relation
from eddyline.plan.traverse import post_order

__all__ = ["is_filtered"]


def is_filtered(relation: Relation) -> bool:
    """Whether a filter, or a semi or anti join, stands anywhere in it.  O(nodes)."""
    return any(
        isinstance(node, Filter) or (isinstance(node, Join) and node.kind in (JoinKind.SEMI, JoinKind.ANTI))
        for node in post_order(relation)
    )
