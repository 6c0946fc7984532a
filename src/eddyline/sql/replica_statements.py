"""Statements about one replica: what is set for it alone.

    ALTER CLUSTER REPLICA cluster.replica SET (name = value, …) | RESET (name, …) | RESET ALL
    SHOW CLUSTER REPLICA cluster.replica

Each setting in the list is read by PostgreSQL, as SET reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from eddyline.errors import make_error
from eddyline.sql.grammar import GrammarError
from eddyline.sql.words import DEFAULT_CLUSTER, Words, check_cluster, name_end, parse_single

__all__ = ["DEFAULT_REPLICA", "AlterReplicaSyntax", "ShowReplicaSyntax", "alter_replica", "show_replica"]

#: The one replica there is.
DEFAULT_REPLICA: Final = "r1"
_SET: Final = b"SET"


@dataclass(frozen=True, slots=True)
class AlterReplicaSyntax:
    """``assignments``: VariableSetStmt nodes.  ``reset``: names; None: all of them."""

    assignments: tuple[Message, ...] = ()
    reset: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class ShowReplicaSyntax:
    """What holds for the replica."""


def alter_replica(words: Words) -> AlterReplicaSyntax:
    """From its third word on."""
    at = _replica_end(words, 3)
    if words.match(at, "RESET", "ALL"):
        _end(words, at + 2)
        return AlterReplicaSyntax(reset=None)
    if words.text(at) not in ("SET", "RESET") or words.text(at + 1) != "(":
        raise words.syntax_error(at + 1 if words.text(at) in ("SET", "RESET") else at)
    close = words.closing(at + 1)
    _end(words, close + 1)
    items = _items(words, at + 2, close)
    if words.text(at) == "SET":
        return AlterReplicaSyntax(assignments=tuple(_assignment(words, *item) for item in items))
    return AlterReplicaSyntax(reset=tuple(_name(words, *item) for item in items))


def show_replica(words: Words) -> ShowReplicaSyntax:
    _end(words, _replica_end(words, 3))
    return ShowReplicaSyntax()


def _replica_end(words: Words, at: int) -> int:
    """One past the replica's name at ``at``; 42704 for one that is not there."""
    cluster, replica = words.identifier(at), words.identifier(at + 2) if words.text(at + 1) == "." else None
    if replica is None:
        raise words.syntax_error(at + 1)
    check_cluster(words, at)
    if replica != DEFAULT_REPLICA:
        raise make_error(
            "42704",
            f'unknown cluster replica "{cluster}.{replica}"',
            position=words.char_position(at),
            hint=f'There is one, "{DEFAULT_CLUSTER}.{DEFAULT_REPLICA}".',
        )
    return at + 3


def _end(words: Words, at: int) -> None:
    if at < len(words.items):
        raise words.syntax_error(at)


def _items(words: Words, first: int, last: int) -> list[tuple[int, int]]:
    """Tokens ``first:last``, split at the commas between them."""
    depth = words.items[last].depth + 1
    commas = [i for i in range(first, last) if words.text(i) == "," and words.items[i].depth == depth]
    return list(zip([first, *(comma + 1 for comma in commas)], [*commas, last], strict=True))


def _assignment(words: Words, first: int, last: int) -> Message:
    """``name = value`` or ``name TO value``, from ``SET`` and as much blank before it as keeps positions."""
    if first >= last:
        raise words.syntax_error(first)
    operator = name_end(words, first)
    if words.text(operator) not in ("=", "TO"):
        raise words.syntax_error(operator)
    start, end = words.start(first), words.end_before(last)
    padded = _SET + b" " * (start - len(_SET)) + words.data[start:end]
    try:
        statement: Message = parse_single(padded).variable_set_stmt
    except GrammarError as error:
        if error.position > len(padded.decode()):  # where the list goes on
            raise words.syntax_error(last) from error
        raise
    return statement


def _name(words: Words, first: int, last: int) -> str:
    name = words.identifier(first) if first < last else None
    if name is None or last != first + 1:
        raise words.syntax_error(first if name is None else first + 1)
    return name
