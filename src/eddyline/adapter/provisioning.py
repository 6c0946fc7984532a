"""What clusters and their replicas are asked to be, and what that makes of a replica that has processes of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from eddyline.adapter.process_parameters import PROCESS_SETTINGS, encoded
from eddyline.adapter.system_settings import GIL_SAMPLING, INTERACTIVE_RUNTIME, SystemSettings
from eddyline.compute.process_settings import GIL_SAMPLING as GIL_PARAMETER
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.controller.processes import ReplicaSpec
from eddyline.controller.spawning import Spawn, spawn_process
from eddyline.sql.catalog_view import DEFAULT_CLUSTER, DEFAULT_REPLICA, CatalogReplica

__all__ = [
    "OVERRIDABLE",
    "ClusterSpec",
    "InForce",
    "Provisioning",
    "ReplicaSettings",
    "first_replica",
    "in_force",
    "replica_parameters",
    "replica_settings",
    "replica_spec",
    "with_first_replica",
]

#: the settings that one replica may have for itself
OVERRIDABLE: Final = (*PROCESS_SETTINGS, INTERACTIVE_RUNTIME)


@dataclass(frozen=True, slots=True)
class Provisioning:
    """How a program asks for the first replica where that is to have processes: ``workers`` in each of ``processes``.

    ``interactive``: whether it gets a runtime for reads, as whoever asks for the replica says; None: as the setting
    ``enable_compute_interactive_runtime`` says.
    ``overrides``: values of ``OVERRIDABLE`` settings that are stored for this replica, which win over both; what cannot
    be read counts as not there.  ``orphan_seconds``: how long the processes outlive this one.  ``spawn``: starts them.
    """

    workers: int = 1
    processes: int = 1
    interactive: bool | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    orphan_seconds: float = 60.0
    spawn: Spawn = spawn_process


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """``id``: of no other replica of the database, ever.  ``processes`` 0: it runs in the program's own process.

    The rest is as in ``Provisioning``.
    """

    id: str
    name: str
    workers: int = 1
    processes: int = 0
    interactive: bool | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    orphan_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster and its replicas, in the order in which they are asked."""

    id: str
    name: str
    replicas: tuple[ReplicaSettings, ...] = ()


class InForce(NamedTuple):
    """``source``: ``replica``, ``argument`` or ``system``: stored for it, said where it was asked for, or neither."""

    value: str
    source: str


def first_replica(workers: int, provisioning: Provisioning | None, *, interactive: bool) -> ReplicaSettings:
    """The replica that every database begins with, as the program asks for it."""
    if provisioning is None:
        return ReplicaSettings(FIRST_REPLICA, DEFAULT_REPLICA, workers, 0, interactive)
    own = provisioning
    return ReplicaSettings(
        FIRST_REPLICA,
        DEFAULT_REPLICA,
        own.workers,
        own.processes,
        own.interactive,
        own.overrides,
        own.orphan_seconds,
    )


def replica_settings(replica: CatalogReplica, *, like: ReplicaSettings) -> ReplicaSettings:
    """A replica of the catalog.  ``like``: what says for all of them what the catalog does not."""
    return replace(
        like,
        id=replica.id,
        name=replica.name,
        workers=replica.workers,
        processes=replica.processes,
        overrides=replica.settings,
    )


def with_first_replica(specs: Sequence[ClusterSpec], first: ReplicaSettings) -> tuple[ClusterSpec, ...]:
    """The clusters that a directory has, if it has any, with the first replica as the program asks for it."""
    if not any(spec.id == FIRST_CLUSTER for spec in specs):
        return (ClusterSpec(FIRST_CLUSTER, DEFAULT_CLUSTER, (first,)), *specs)

    def as_asked(found: ReplicaSettings) -> ReplicaSettings:
        asked = replace(first, name=found.name, overrides={**found.overrides, **first.overrides})
        return asked if found.id == FIRST_REPLICA else found

    return tuple(replace(spec, replicas=tuple(map(as_asked, spec.replicas))) for spec in specs)


def in_force(name: str, provisioning: Provisioning | ReplicaSettings, system: SystemSettings) -> InForce:
    """What an ``OVERRIDABLE`` setting is for the replica, or will be when its processes start next."""
    override = system.readable(name, provisioning.overrides.get(name)) if provisioning.processes else None
    if override is not None:
        return InForce(override, "replica")
    if name == INTERACTIVE_RUNTIME and provisioning.interactive is not None:
        return InForce("on" if provisioning.interactive else "off", "argument")
    return InForce(system.of_processes(name) if provisioning.processes else system.show(name), "system")


def replica_spec(provisioning: Provisioning | ReplicaSettings, system: SystemSettings) -> ReplicaSpec:
    """The replica as the settings make it at this moment; a process keeps what it was started with."""
    return ReplicaSpec(
        workers=provisioning.workers,
        processes=provisioning.processes,
        interactive=in_force(INTERACTIVE_RUNTIME, provisioning, system).value == "on",
        orphan_seconds=provisioning.orphan_seconds,
    )


def replica_parameters(provisioning: Provisioning | ReplicaSettings, system: SystemSettings) -> dict[str, str]:
    """What ``UpdateConfiguration`` tells the replica's processes: its overrides, and else the settings."""
    own = dict(encoded(name, in_force(name, provisioning, system).value) for name in PROCESS_SETTINGS)
    return {**own, GIL_PARAMETER: system.show(GIL_SAMPLING)}
