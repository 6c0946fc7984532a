"""Ids of collections that the catalog does not know."""

from __future__ import annotations

__all__ = ["is_transient", "transient_id"]

_PREFIX = "t"


def transient_id(number: int) -> str:
    """The id of a collection that exists to answer one read."""
    return f"{_PREFIX}{number}"


def is_transient(id: str) -> bool:
    return id.startswith(_PREFIX) and id[len(_PREFIX) :].isdecimal()
