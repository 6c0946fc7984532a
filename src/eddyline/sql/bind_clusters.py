"""Statements about clusters: options checked, positions in the text that was given.

WORKERS, PROCESSES and REPLICATION FACTOR are whole numbers within the bounds below (22023).  Other options are
settings; what they are called and take is for whoever applies them to say.  Of what is said twice, the last counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from eddyline.errors import make_error
from eddyline.sql.ast import enum_name
from eddyline.sql.bind_roles import role_name
from eddyline.sql.catalog_view import CatalogView, unknown_cluster
from eddyline.sql.cluster_statements import (
    AS_OPENED,
    AlterCluster,
    AlterReplica,
    ClusterOwner,
    CreateCluster,
    CreateReplica,
    DropCluster,
    DropReplica,
    NewReplica,
    RenameCluster,
    RenameReplica,
    ReplicaChanges,
    ReplicaName,
    ShowReplica,
)
from eddyline.sql.cluster_syntax import (
    REPLICATION_FACTOR,
    AlterClusterSyntax,
    AlterReplicaSyntax,
    ClusterOwnerSyntax,
    CreateClusterSyntax,
    CreateReplicaSyntax,
    Option,
)
from eddyline.sql.parse import ParsedStatement
from eddyline.sql.session_statements import setting_value
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Statement
from eddyline.sql.words import Named

__all__ = [
    "bind_alter_cluster",
    "bind_alter_replica",
    "bind_cluster_names",
    "bind_cluster_owner",
    "bind_create_cluster",
    "bind_create_replica",
    "cluster_of",
]

#: option → least and greatest value, and the one that it has by default
_COUNTS: Final = {"workers": (1, 1024, 1), "processes": (0, 256, AS_OPENED), REPLICATION_FACTOR: (0, 32, 1)}


def cluster_of(parsed: ParsedStatement, catalog: CatalogView, named: Named | None = None) -> str:
    """The id of the cluster where the statement's object is kept: what IN CLUSTER names, else the session's.

    ``named``: in place of the statement's own IN CLUSTER.  42704 if it is not there.
    """
    named = named or parsed.cluster
    if named is None:
        if catalog.cluster_id is None:
            raise unknown_cluster(catalog.cluster, (c.name for c in catalog.clusters()))
        return catalog.cluster_id
    found = next((c for c in catalog.clusters() if c.name == named.name), None)
    if found is None:
        known = [c.name for c in catalog.clusters()]
        raise unknown_cluster(named.name, known, position=parsed.offset + named.position)
    return found.id


def bind_create_cluster(binding: StatementBinding) -> Statement:
    """``r1``, ``r2`` … by REPLICATION FACTOR, one without; 42710 for a replica that is listed twice."""
    parsed = binding.parsed
    syntax: CreateClusterSyntax = parsed.node
    name = _placed(parsed, syntax.name)
    if syntax.replicas is None:
        factor, said = _read(parsed, syntax.options)
        count = 1 if factor is None else factor
        replicas = [NewReplica(Named(f"r{n}", name.position), said) for n in range(1, count + 1)]
        return CreateCluster(name, tuple(replicas), syntax.if_not_exists)
    replicas = []
    for given in syntax.replicas:
        replica = _placed(parsed, given.name)
        if any(replica.name == other.name.name for other in replicas):
            raise make_error(
                "42710", f'cluster replica "{replica.name}" is specified more than once', position=replica.position
            )
        replicas.append(NewReplica(replica, _of_replica(parsed, given.options)))
    return CreateCluster(name, tuple(replicas), syntax.if_not_exists)


def bind_create_replica(binding: StatementBinding) -> Statement:
    parsed = binding.parsed
    syntax: CreateReplicaSyntax = parsed.node
    return CreateReplica(
        _placed_replica(parsed, syntax.name), _of_replica(parsed, syntax.options), syntax.if_not_exists
    )


def bind_alter_cluster(binding: StatementBinding) -> Statement:
    parsed = binding.parsed
    syntax: AlterClusterSyntax = parsed.node
    name = _placed(parsed, syntax.name)
    if syntax.changes is None:
        return AlterCluster(name, None, ReplicaChanges(reset=True))
    return AlterCluster(name, *_read(parsed, syntax.changes))


def bind_alter_replica(binding: StatementBinding) -> Statement:
    parsed = binding.parsed
    syntax: AlterReplicaSyntax = parsed.node
    said = ReplicaChanges(reset=True) if syntax.changes is None else _of_replica(parsed, syntax.changes)
    return AlterReplica(_placed_replica(parsed, syntax.name), said)


def bind_cluster_owner(binding: StatementBinding) -> Statement:
    parsed = binding.parsed
    syntax: ClusterOwnerSyntax = parsed.node
    return ClusterOwner(_placed(parsed, syntax.name), role_name(syntax.role))


def bind_cluster_names(binding: StatementBinding) -> Statement:
    """Statements that are names alone."""
    parsed = binding.parsed
    syntax: DropCluster | DropReplica | RenameCluster | RenameReplica | ShowReplica = parsed.node
    match syntax:
        case DropCluster():
            return replace(syntax, names=tuple(_placed(parsed, name) for name in syntax.names))
        case DropReplica():
            return replace(syntax, names=tuple(_placed_replica(parsed, name) for name in syntax.names))
        case RenameCluster():
            return RenameCluster(_placed(parsed, syntax.name), _placed(parsed, syntax.new_name))
        case RenameReplica():
            return RenameReplica(_placed_replica(parsed, syntax.name), _placed(parsed, syntax.new_name))
        case ShowReplica():
            return ShowReplica(_placed_replica(parsed, syntax.name))


def _placed(parsed: ParsedStatement, name: Named) -> Named:
    return Named(name.name, parsed.offset + name.position)


def _placed_replica(parsed: ParsedStatement, name: ReplicaName) -> ReplicaName:
    return ReplicaName(_placed(parsed, name.cluster), _placed(parsed, name.replica))


def _of_replica(parsed: ParsedStatement, options: Sequence[Option]) -> ReplicaChanges:
    """22023 for REPLICATION FACTOR, which is none of a replica's."""
    for option in options:
        if option.name.name == REPLICATION_FACTOR:
            position = parsed.offset + option.name.position
            raise make_error("22023", "REPLICATION FACTOR is no option of a replica", position=position)
    return _read(parsed, options)[1]


def _read(parsed: ParsedStatement, options: Sequence[Option]) -> tuple[int | None, ReplicaChanges]:
    """(REPLICATION FACTOR, the rest)."""
    counts: dict[str, int] = {}
    settings: dict[str, tuple[str, ...] | None] = {}
    for option in options:
        name = option.name.name
        values = _values(parsed, option)
        if name in _COUNTS:
            counts[name] = _count(name, values, parsed.offset + option.name.position)
        else:
            settings[name] = values
    said = ReplicaChanges(counts.get("workers"), counts.get("processes"), settings)
    return counts.get(REPLICATION_FACTOR), said


def _values(parsed: ParsedStatement, option: Option) -> tuple[str, ...] | None:
    """None: it is reset, or set to DEFAULT."""
    node = option.value
    if node is None or enum_name(node, "kind") != "VAR_SET_VALUE":
        return None
    return tuple(setting_value(arg, parsed) for arg in node.args)


def _count(name: str, values: tuple[str, ...] | None, position: int) -> int:
    least, most, default = _COUNTS[name]
    if values is None:
        return default
    text = ", ".join(values)
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not digits or not least <= int(text) <= most:
        raise make_error(
            "22023",
            f'invalid value for option {name.upper()}: "{text}"',
            position=position,
            hint=f"It is a whole number from {least} to {most}.",
        )
    return int(text)
