"""One replica of a cluster: where it runs, what it is told to be, and what becomes of it when it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from eddyline.adapter.control import Control
from eddyline.adapter.metrics import ReplicaMeasures
from eddyline.adapter.process_parameters import THREAD_SWITCH_INTERVAL, WORKLOAD_CLASS, encoded
from eddyline.adapter.provisioning import OVERRIDABLE, ReplicaSettings, in_force, replica_parameters, replica_spec
from eddyline.adapter.recovery import Recovery
from eddyline.adapter.system_settings import INTERACTIVE_RUNTIME, SystemSettings
from eddyline.compute.pair import Pair
from eddyline.compute.process_settings import GuestSettings
from eddyline.compute.solo import Solo
from eddyline.controller.holds import StoredHold
from eddyline.controller.home import Home
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.controller.processes import ReplicaProcesses
from eddyline.controller.remote import ReplicaConnection
from eddyline.controller.spawning import Spawn
from eddyline.errors import Error
from eddyline.protocol.measures_messages import ProcessMeasures
from eddyline.repr.time import Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["Client", "Replica", "Site"]

_log = logging.getLogger("eddyline.engine")

Client: TypeAlias = Solo | Pair | ReplicaConnection


@dataclass(frozen=True, slots=True)
class Site:
    """What all replicas of a database have in common.

    ``home``: where the processes of the replica with this id are noted; None: nowhere.  ``may_set``: whether this
    process' thread switch interval is the database's to set.
    """

    control: Control
    store: TableStore
    hasher: Hasher
    system: SystemSettings
    home: Callable[[str], Home | None]
    may_set: bool
    guest: GuestSettings
    #: starts processes
    spawn: Spawn


class _NeverCame:
    """In the place of a replica that is yet to be started."""

    failed: Final = True

    def close(self) -> None:
        """There is nothing."""


class Replica:
    """``moved``: told, with the control lock held, that it came, or that it is ``absent`` or no longer."""

    def __init__(self, site: Site, cluster_id: str, settings: ReplicaSettings, moved: Callable[[], None]) -> None:
        self._site = site
        self._moved = moved
        self.id: Final = settings.id
        self.cluster_id: Final = cluster_id
        #: with the cluster's name, for the log
        self.title = settings.name
        self.settings = settings  # guarded by the control lock, like the rest
        self.client: Client | None = None
        #: why it is not there and soon will not be; None where it is, or soon will be
        self.absent: Error | None = None
        #: stands for the connection whose responses count
        self.source: object = None
        #: keeps in storage what its processes lack of it, while they are without a connection
        self._untold: StoredHold | None = None
        self._dropped = False
        self._parameters: dict[str, str] = {}  # what it was told
        self._recovery: Final[Recovery[Client | _NeverCame]] = Recovery(self._replace, self._refused)
        self.processes: Final = (
            ReplicaProcesses(
                lambda: replica_spec(self.settings, site.system),
                site.store,
                site.hasher,
                home=site.home(self.id),
                spawn=site.spawn,
            )
            if settings.processes
            else None
        )

    @property
    def first(self) -> bool:
        """Whether it is the one that every database begins with."""
        return (self.cluster_id, self.id) == (FIRST_CLUSTER, FIRST_REPLICA)

    @property
    def present(self) -> Client:
        """The present one, which may have failed.  Once it was started."""
        assert self.client is not None, "it was started"
        return self.client

    # -- life -----------------------------------------------------------------------------------------------------

    def look(self) -> Time | None:
        """See ``ReplicaProcesses.look``; storage forgets nothing until ``start`` has told them, or has failed."""
        upto = None if self.processes is None else self.processes.look()
        if upto is not None:
            with self._site.control.lock:
                self._keep_untold()
        return upto

    def start(self) -> None:
        """Once, and waits for its processes.  58000 if they do not come up, or if there are no threads for it."""
        client = self._made()
        try:
            with self._site.control.lock:
                self._attach(client)
        except BaseException:
            client.close()
            raise
        self._site.control.has_moved()
        if self._site.control.closed or self._dropped:
            client.close()
        elif client.failed:
            self.recover(client)

    def start_soon(self) -> None:
        """Once, as if it had failed: what is in this process at once, else on a thread, again and again."""
        if self.processes is None:
            try:
                self.start()
            except Exception:  # noqa: BLE001 - whatever it was, it is told, and tried again
                _log.exception("replica %s does not start, and is tried again", self.title)
            else:
                return
        self.recover(_NeverCame())

    def _made(self) -> Client:
        site, source = self._site, object()
        with site.control.lock:
            self.source = source
        respond = partial(site.control.respond, self, source)
        if self.processes is not None:
            return self.processes.connect(respond)
        kind, workers = Pair if self.has_reader() else Solo, self.settings.workers
        return kind(site.store, site.hasher, workers=workers, configure=site.guest.apply, listener=respond)

    def has_reader(self) -> bool:
        """Whether it gets a runtime that only answers reads when it starts next."""
        return in_force(INTERACTIVE_RUNTIME, self.settings, self._site.system).value == "on"

    def _attach(self, client: Client) -> None:
        """With the control lock held.  Nothing where the database is closed, or the replica dropped."""
        control = self._site.control
        if not control.closed and not self._dropped:
            control.controller.attach_replica(client, self.id, self.cluster_id)
            self.client = client
            self._set_absent(None)
            self._forget_untold()

    def _keep_untold(self) -> None:
        """Until it is attached, or cannot be, another replica that goes on makes storage forget nothing that this one
        lacks.  With the control lock held.
        """
        if self._untold is None:
            self._untold = self._site.control.controller.hold_stored()

    def _forget_untold(self) -> None:
        """From here on what it computes holds what it reads.  With the control lock held."""
        if self._untold is not None:
            self._untold.close()
            self._untold = None

    def recovery(self) -> Callable[[], None]:
        """See ``Speaker``."""
        self.source = None  # what it says from here on, while it ends, is nobody's
        if self.processes is not None:
            self._keep_untold()  # they may live, and go on
        return partial(self.recover, _NeverCame() if self.client is None else self.client)

    def recover(self, failed: Client | _NeverCame) -> None:
        """Has a failed one replaced; never waits."""
        unattended = self._recovery.begin(failed)
        if unattended is not None:
            self._site.control.lock.hand_in(partial(self._go_without, unattended))

    def attend(self) -> None:
        """Begins to rebuild it where nobody could before."""
        if self.absent is not None and not self._recovery.attended():
            with self._site.control.lock:
                self._set_absent(self._recovery.attend())

    def _replace(self, failed: Client | _NeverCame) -> None:
        """Has another one in the place of a failed one, or raises; on the thread of ``Recovery``.

        Where processes host it and live, only the connection is replaced: they keep what they have built.
        """
        failed.close()
        if not self._dropped:
            self.start()

    def _refused(self, why: Error) -> None:
        """For ``Recovery``: the last try has failed."""
        with self._site.control.lock:
            self._go_without(why)

    def _go_without(self, why: Error) -> None:
        """It is not there: where nobody else is, whoever waits gets ``why``.  Needs the control lock."""
        if self._dropped or self._site.control.closed:
            return
        self.source = None
        self._forget_untold()
        self._set_absent(why)

    def _set_absent(self, why: Error | None) -> None:
        """With the control lock held."""
        self.absent = why
        self._site.control.set_absent(self.id, absent=why is not None)
        self._moved()

    def leave(self) -> None:
        """Nobody listens to it any more; ``close`` is to follow.  Needs the control lock."""
        self._dropped, self.source = True, None
        self._forget_untold()
        self._site.control.set_absent(self.id, absent=False)

    def end_recovery(self) -> None:
        """No further try to start it; does not wait for one that is under way."""
        self._recovery.end()

    def close(self) -> None:
        """Without a lock; twice is harmless."""
        self.end_recovery()
        if self.client is not None:
            self.client.close()
        if self.processes is not None:
            self.processes.close()

    # -- settings -------------------------------------------------------------------------------------------------

    def override(self, overrides: Mapping[str, str]) -> tuple[str, ...]:
        """Has it obey these overrides, which have been checked; gives notices.

        Process settings take effect at once, ``enable_compute_interactive_runtime`` when its processes start next.
        """
        with self._site.control.lock:
            before = replica_spec(self.settings, self._site.system)
            self.settings = replace(self.settings, overrides=dict(overrides))
            self.configure()
            later = replica_spec(self.settings, self._site.system) != before
        return (f'"{INTERACTIVE_RUNTIME}" takes effect when the replica\'s processes start next',) if later else ()

    def configure(self) -> None:
        """Tells it its process settings if they have changed.  Needs the control lock."""
        site = self._site
        if self.processes is not None:
            parameters = replica_parameters(self.settings, site.system)
        elif site.may_set:
            parameters = dict([encoded(THREAD_SWITCH_INTERVAL, site.system.show(THREAD_SWITCH_INTERVAL))])
        else:
            parameters = {}
        if parameters != self._parameters:
            site.control.controller.update_configuration(parameters, self.id, self.cluster_id)
            self._parameters = parameters

    def measured(self, timeout: float, labels: Mapping[str, str]) -> ReplicaMeasures:
        """What it counts, under ``labels``; processes that do not answer within ``timeout`` seconds are left out."""
        workload_class = in_force(WORKLOAD_CLASS, self.settings, self._site.system).value
        info = {
            "processes": str(self.settings.processes),
            "workers": str(self.settings.workers),
            "workload_class": workload_class,
        }
        client = self.client
        if client is None:
            return ReplicaMeasures(info, labels)
        if isinstance(client, ReplicaConnection):
            processes = client.measured(timeout)
            runtimes, gap = ProcessMeasures.of_runtimes(processes)
            return ReplicaMeasures(info, labels, runtimes, gap, processes)
        return ReplicaMeasures(info, labels, [r.measured() for r in client.runtimes], client.hold_gap_us())

    def shown(self) -> list[tuple[str, str, str]]:
        """(name, value, source) of what holds for it, as ``provisioning.in_force``; by name."""
        with self._site.control.lock:
            return [(name, *in_force(name, self.settings, self._site.system)) for name in sorted(OVERRIDABLE)]
