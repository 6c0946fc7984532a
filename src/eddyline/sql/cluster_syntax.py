"""Statements about clusters and their replicas, which PostgreSQL's grammar does not have.

    CREATE CLUSTER [IF NOT EXISTS] c [(options)] | c REPLICAS (r [(options)], …)
    CREATE CLUSTER REPLICA [IF NOT EXISTS] c.r [(options)]
    DROP CLUSTER [IF EXISTS] c, … [CASCADE | RESTRICT]
    DROP CLUSTER REPLICA [IF EXISTS] c.r, …
    ALTER CLUSTER c RENAME TO d | OWNER TO role | SET (options) | RESET (name, …) | RESET ALL
    ALTER CLUSTER REPLICA c.r RENAME TO s | SET (options) | RESET (name, …) | RESET ALL
    SHOW CLUSTER REPLICA c.r

Options are ``name = value`` or ``name TO value``: WORKERS, PROCESSES, of a cluster REPLICATION FACTOR, and settings.
Each is read by PostgreSQL, as SET reads it.  Positions of names are those in the text that was read; statements that
are names alone come as they are bound, but for these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from google.protobuf.message import Message

from eddyline.sql.cluster_statements import (
    DropCluster,
    DropReplica,
    RenameCluster,
    RenameReplica,
    ReplicaName,
    ShowReplica,
)
from eddyline.sql.grammar import GrammarError
from eddyline.sql.words import Named, Words, name_end, parse_single

__all__ = [
    "REPLICATION_FACTOR",
    "AlterClusterSyntax",
    "AlterReplicaSyntax",
    "ClusterOwnerSyntax",
    "ClusterSyntax",
    "CreateClusterSyntax",
    "CreateReplicaSyntax",
    "NewReplicaSyntax",
    "Option",
    "cluster_statement",
]

REPLICATION_FACTOR: Final = "replication factor"
_SET: Final = b"SET"


@dataclass(frozen=True, slots=True)
class Option:
    """``name``: in lower case; ``value``: the VariableSetStmt that PostgreSQL makes of it, None where it is reset."""

    name: Named
    value: Message | None


@dataclass(frozen=True, slots=True)
class NewReplicaSyntax:
    name: Named
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateClusterSyntax:
    """``replicas``: None where they are said by ``options`` alone."""

    name: Named
    options: tuple[Option, ...] = ()
    replicas: tuple[NewReplicaSyntax, ...] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateReplicaSyntax:
    name: ReplicaName
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClusterOwnerSyntax:
    """``role``: the RoleSpec that PostgreSQL makes of it."""

    name: Named
    role: Message


@dataclass(frozen=True, slots=True)
class AlterClusterSyntax:
    """SET or RESET; ``changes`` None: RESET ALL."""

    name: Named
    changes: tuple[Option, ...] | None


@dataclass(frozen=True, slots=True)
class AlterReplicaSyntax:
    """As ``AlterClusterSyntax``."""

    name: ReplicaName
    changes: tuple[Option, ...] | None


ClusterSyntax: TypeAlias = (
    CreateClusterSyntax
    | CreateReplicaSyntax
    | DropCluster
    | DropReplica
    | RenameCluster
    | RenameReplica
    | ClusterOwnerSyntax
    | AlterClusterSyntax
    | AlterReplicaSyntax
    | ShowReplica
)


def cluster_statement(words: Words) -> ClusterSyntax | None:
    """The statement about clusters that this is by its first words; None if it is none.  Syntax errors."""
    if words.text(1) != "CLUSTER":
        return None
    replica = words.text(2) == "REPLICA"
    match words.text(0):
        case "CREATE":
            return _create_replica(words) if replica else _create_cluster(words)
        case "DROP":
            return _drop_replicas(words) if replica else _drop_clusters(words)
        case "ALTER":
            return _alter_replica(words) if replica else _alter_cluster(words)
        case "SHOW" if replica:
            name, at = _replica_name(words, 3)
            words.check_end(at)
            return ShowReplica(name)
        case _:
            return None


# -- CREATE -----------------------------------------------------------------------------------------------------------


def _create_cluster(words: Words) -> CreateClusterSyntax:
    if_not_exists = words.match(2, "IF", "NOT", "EXISTS")
    at = 5 if if_not_exists else 2
    name = words.named(at)
    if words.text(at + 1) != "REPLICAS":
        return CreateClusterSyntax(name, _options_to_the_end(words, at + 1), None, if_not_exists)
    if words.text(at + 2) != "(":
        raise words.syntax_error(at + 2)
    close = words.closing(at + 2)
    words.check_end(close + 1)
    items = words.listed(at + 3, close) if close > at + 3 else []
    return CreateClusterSyntax(name, (), tuple(_new_replica(words, *item) for item in items), if_not_exists)


def _new_replica(words: Words, first: int, last: int) -> NewReplicaSyntax:
    """``name`` or ``name (options)`` in tokens ``first:last``."""
    if first >= last:
        raise words.syntax_error(first)
    name = words.named(first)
    if first + 1 == last:
        return NewReplicaSyntax(name)
    if words.text(first + 1) != "(":
        raise words.syntax_error(first + 1)
    close = words.closing(first + 1)
    if close + 1 != last:
        raise words.syntax_error(close + 1)
    return NewReplicaSyntax(name, _options(words, first + 2, close))


def _create_replica(words: Words) -> CreateReplicaSyntax:
    if_not_exists = words.match(3, "IF", "NOT", "EXISTS")
    name, at = _replica_name(words, 6 if if_not_exists else 3)
    return CreateReplicaSyntax(name, _options_to_the_end(words, at), if_not_exists)


# -- DROP -------------------------------------------------------------------------------------------------------------


def _drop_clusters(words: Words) -> DropCluster:
    if_exists = words.match(2, "IF", "EXISTS")
    at = 4 if if_exists else 2
    names = [words.named(at)]
    while words.text(at + 1) == ",":
        at += 2
        names.append(words.named(at))
    at += 1
    cascade = words.text(at) == "CASCADE"
    words.check_end(at + 1 if cascade or words.text(at) == "RESTRICT" else at)
    return DropCluster(tuple(names), if_exists, cascade)


def _drop_replicas(words: Words) -> DropReplica:
    if_exists = words.match(3, "IF", "EXISTS")
    name, at = _replica_name(words, 5 if if_exists else 3)
    names = [name]
    while words.text(at) == ",":
        name, at = _replica_name(words, at + 1)
        names.append(name)
    words.check_end(at)
    return DropReplica(tuple(names), if_exists)


# -- ALTER ------------------------------------------------------------------------------------------------------------


def _alter_cluster(words: Words) -> RenameCluster | ClusterOwnerSyntax | AlterClusterSyntax:
    name = words.named(2)
    if words.match(3, "RENAME", "TO"):
        new_name = words.named(5)
        words.check_end(6)
        return RenameCluster(name, new_name)
    if words.match(3, "OWNER", "TO"):
        return ClusterOwnerSyntax(name, _role(words, 3))
    return AlterClusterSyntax(name, _changes(words, 3))


def _alter_replica(words: Words) -> RenameReplica | AlterReplicaSyntax:
    name, at = _replica_name(words, 3)
    if words.match(at, "RENAME", "TO"):
        new_name = words.named(at + 2)
        words.check_end(at + 3)
        return RenameReplica(name, new_name)
    return AlterReplicaSyntax(name, _changes(words, at))


def _changes(words: Words, at: int) -> tuple[Option, ...] | None:
    if words.match(at, "RESET", "ALL"):
        words.check_end(at + 2)
        return None
    if words.text(at) not in ("SET", "RESET") or words.text(at + 1) != "(":
        raise words.syntax_error(at + 1 if words.text(at) in ("SET", "RESET") else at)
    close = words.closing(at + 1)
    words.check_end(close + 1)
    if words.text(at) == "SET":
        return _options(words, at + 2, close)
    return tuple(_reset(words, *item) for item in words.listed(at + 2, close))


#: what PostgreSQL reads before ``OWNER TO role``; shorter than what it stands for
_OWNED: Final = b"ALTER TABLE t"


def _role(words: Words, at: int) -> Message:
    data = words.data
    owner = _OWNED.ljust(words.start(at)) + data[words.start(at) : words.end_before(len(words.items))]
    role: Message = parse_single(owner).alter_table_stmt.cmds[0].alter_table_cmd.newowner
    return role


# -- pieces -----------------------------------------------------------------------------------------------------------


def _replica_name(words: Words, at: int) -> tuple[ReplicaName, int]:
    """``cluster.replica`` at token ``at``, and one past it."""
    cluster = words.named(at)
    if words.text(at + 1) != ".":
        raise words.syntax_error(at + 1)
    return ReplicaName(cluster, words.named(at + 2)), at + 3


def _options_to_the_end(words: Words, at: int) -> tuple[Option, ...]:
    """``(options)``, or nothing, after which the statement ends."""
    if at >= len(words.items):
        return ()
    if words.text(at) != "(":
        raise words.syntax_error(at)
    close = words.closing(at)
    words.check_end(close + 1)
    return _options(words, at + 1, close)


def _options(words: Words, first: int, last: int) -> tuple[Option, ...]:
    return tuple(_option(words, *item) for item in words.listed(first, last))


def _option(words: Words, first: int, last: int) -> Option:
    """``name = value`` or ``name TO value``."""
    if first >= last:
        raise words.syntax_error(first)
    factor = words.match(first, "REPLICATION", "FACTOR")
    name_at = first + 1 if factor else first
    operator = name_end(words, name_at)
    if operator >= last or words.text(operator) not in ("=", "TO"):
        raise words.syntax_error(min(operator, last))
    value = _read(words, name_at, last)
    name = REPLICATION_FACTOR if factor else str(value.name).lower()
    return Option(Named(name, words.char_position(first)), value)


def _read(words: Words, first: int, last: int) -> Message:
    """Tokens ``first:last`` after ``SET`` and as much blank as keeps positions."""
    start, end = words.start(first), words.end_before(last)
    padded = _SET + b" " * (start - len(_SET)) + words.data[start:end]
    try:
        statement: Message = parse_single(padded).variable_set_stmt
    except GrammarError as error:
        if error.position > len(padded.decode()):  # where the list goes on
            raise words.syntax_error(last) from error
        raise
    return statement


def _reset(words: Words, first: int, last: int) -> Option:
    if first >= last:
        raise words.syntax_error(first)
    if words.match(first, "REPLICATION", "FACTOR"):
        name, end = Named(REPLICATION_FACTOR, words.char_position(first)), first + 2
    else:
        name, end = words.named(first), first + 1
    if end != last:
        raise words.syntax_error(end)
    return Option(name, None)
