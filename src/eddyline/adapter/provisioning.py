"""A database whose replica runs in processes of its own: what it is asked to be, and what that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.adapter.process_parameters import PROCESS_SETTINGS, encoded
from eddyline.adapter.system_settings import INTERACTIVE_RUNTIME, SystemSettings
from eddyline.controller.processes import ReplicaSpec

__all__ = ["Provisioning", "replica_parameters", "replica_spec"]


@dataclass(frozen=True, slots=True)
class Provisioning:
    """``workers`` in each of ``processes``.

    ``overrides``: values of system settings that are stored for this replica, of its process settings and of
    ``enable_compute_interactive_runtime``; what cannot be read counts as not there.
    ``orphan_seconds``: how long the processes outlive this one.  The rest is opt-in, as ``eddyline clusterd --help``
    has it.
    """

    workers: int = 1
    processes: int = 1
    overrides: Mapping[str, str] = field(default_factory=dict)
    orphan_seconds: float = 60.0
    core_affinity: bool = False
    maintenance_nice: int = 0


def replica_spec(provisioning: Provisioning, system: SystemSettings) -> ReplicaSpec:
    """The replica as the settings make it at this moment; a process keeps what it was started with."""
    override = provisioning.overrides.get(INTERACTIVE_RUNTIME)
    return ReplicaSpec(
        workers=provisioning.workers,
        processes=provisioning.processes,
        interactive=system.enabled(INTERACTIVE_RUNTIME, override),
        orphan_seconds=provisioning.orphan_seconds,
        core_affinity=provisioning.core_affinity,
        maintenance_nice=provisioning.maintenance_nice,
    )


def replica_parameters(provisioning: Provisioning, system: SystemSettings) -> dict[str, str]:
    """What ``UpdateConfiguration`` tells the replica's processes: its overrides, and else the settings."""
    overrides = provisioning.overrides
    return dict(encoded(name, system.resolved(name, overrides.get(name))) for name in PROCESS_SETTINGS)
