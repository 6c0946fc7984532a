"""A database whose replica runs in processes of its own: what it is asked to be, and what that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eddyline.adapter.process_parameters import PROCESS_SETTINGS, encoded
from eddyline.adapter.system_settings import GIL_SAMPLING, INTERACTIVE_RUNTIME, SystemSettings
from eddyline.compute.process_settings import GIL_SAMPLING as GIL_PARAMETER
from eddyline.controller.processes import ReplicaSpec
from eddyline.controller.spawning import Spawn, spawn_process

__all__ = ["OVERRIDABLE", "InForce", "Provisioning", "in_force", "replica_parameters", "replica_spec"]

#: the settings that one replica may have for itself
OVERRIDABLE: Final = (*PROCESS_SETTINGS, INTERACTIVE_RUNTIME)


@dataclass(frozen=True, slots=True)
class Provisioning:
    """``workers`` in each of ``processes``.

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


class InForce(NamedTuple):
    """``source``: ``replica``, ``argument`` or ``system``: stored for it, said where it was asked for, or neither."""

    value: str
    source: str


def in_force(name: str, provisioning: Provisioning, system: SystemSettings) -> InForce:
    """What an ``OVERRIDABLE`` setting is for the replica, or will be when its processes start next."""
    override = system.readable(name, provisioning.overrides.get(name))
    if override is not None:
        return InForce(override, "replica")
    if name == INTERACTIVE_RUNTIME and provisioning.interactive is not None:
        return InForce("on" if provisioning.interactive else "off", "argument")
    return InForce(system.show(name), "system")


def replica_spec(provisioning: Provisioning, system: SystemSettings) -> ReplicaSpec:
    """The replica as the settings make it at this moment; a process keeps what it was started with."""
    return ReplicaSpec(
        workers=provisioning.workers,
        processes=provisioning.processes,
        interactive=in_force(INTERACTIVE_RUNTIME, provisioning, system).value == "on",
        orphan_seconds=provisioning.orphan_seconds,
    )


def replica_parameters(provisioning: Provisioning, system: SystemSettings) -> dict[str, str]:
    """What ``UpdateConfiguration`` tells the replica's processes: its overrides, and else the settings."""
    own = dict(encoded(name, in_force(name, provisioning, system).value) for name in PROCESS_SETTINGS)
    return {**own, GIL_PARAMETER: system.show(GIL_SAMPLING)}
