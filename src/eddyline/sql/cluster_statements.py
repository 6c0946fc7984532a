"""Statements about clusters and replicas as they are bound: names stay names until they are applied to a catalog.

``Named.position``: in the text that the statement came from, for errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from eddyline.sql.words import Named

__all__ = [
    "AS_OPENED",
    "AlterCluster",
    "AlterReplica",
    "ClusterOwner",
    "ClusterStatement",
    "CreateCluster",
    "CreateReplica",
    "DropCluster",
    "DropReplica",
    "NewReplica",
    "RenameCluster",
    "RenameReplica",
    "ReplicaChanges",
    "ReplicaName",
    "ShowReplica",
]


@dataclass(frozen=True, slots=True)
class ReplicaName:
    cluster: Named
    replica: Named


#: ``processes`` as the database was opened
AS_OPENED: Final = -1


@dataclass(frozen=True, slots=True)
class ReplicaChanges:
    """What is said of a replica.

    ``workers``, ``processes``: None where they stay, or for a new one are as by default.
    ``settings``: values by name, as text (the items of a list); None: the database's again.
    ``reset``: all other settings are the database's again.
    """

    workers: int | None = None
    processes: int | None = None
    settings: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    reset: bool = False


@dataclass(frozen=True, slots=True)
class NewReplica:
    name: Named
    said: ReplicaChanges


@dataclass(frozen=True, slots=True)
class CreateCluster:
    name: Named
    replicas: tuple[NewReplica, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateReplica:
    name: ReplicaName
    said: ReplicaChanges
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropCluster:
    names: tuple[Named, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class DropReplica:
    names: tuple[ReplicaName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameCluster:
    name: Named
    new_name: Named


@dataclass(frozen=True, slots=True)
class RenameReplica:
    name: ReplicaName
    new_name: Named


@dataclass(frozen=True, slots=True)
class ClusterOwner:
    name: Named
    owner: str


@dataclass(frozen=True, slots=True)
class AlterCluster:
    """``factor``: how many replicas it is to have, None: as many as it has.  ``said``: of all of them."""

    name: Named
    factor: int | None
    said: ReplicaChanges


@dataclass(frozen=True, slots=True)
class AlterReplica:
    name: ReplicaName
    said: ReplicaChanges


@dataclass(frozen=True, slots=True)
class ShowReplica:
    """The settings that hold for the replica, and where each comes from."""

    name: ReplicaName


ClusterStatement: TypeAlias = (
    CreateCluster
    | CreateReplica
    | DropCluster
    | DropReplica
    | RenameCluster
    | RenameReplica
    | ClusterOwner
    | AlterCluster
    | AlterReplica
)
