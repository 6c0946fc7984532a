"""Ids of collections that no statement made: those of one read, and the logs of the runtimes."""

from __future__ import annotations

__all__ = ["is_log", "is_transient", "log_id", "transient_id"]

_PREFIX = "t"
_LOG_PREFIX = "si"


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
