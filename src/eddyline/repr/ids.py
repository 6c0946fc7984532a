"""Ids of collections that no statement made: of one read, of the rows of its recursions, of the runtimes' logs."""

from __future__ import annotations

__all__ = ["is_log", "is_transient", "is_working", "log_id", "transient_id", "working_id"]

_PREFIX = "t"
_LOG_PREFIX = "si"
_WORKING_PREFIX = "w"


def transient_id(number: int) -> str:
    """The id of a collection that exists to answer one read."""
    return f"{_PREFIX}{number}"


def is_transient(id: str) -> bool:
    return id.startswith(_PREFIX) and id[len(_PREFIX) :].isdecimal()


def log_id(number: int) -> str:
    """The id of a log: an index that a runtime keeps of its own doings."""
    return f"{_LOG_PREFIX}{number}"


def is_log(id: str) -> bool:
    return id.startswith(_LOG_PREFIX) and id[len(_LOG_PREFIX) :].isdecimal()


def working_id(number: int) -> str:
    """The id of rows that a read has computed for itself: of a recursion, or of one round of it."""
    return f"{_WORKING_PREFIX}{number}"


def is_working(id: str) -> bool:
    return id.startswith(_WORKING_PREFIX) and id[len(_WORKING_PREFIX) :].isdecimal()
