"""A cluster of the database: its replicas, and what readers ask of them.

All clusters have one controller, and one lock, since what is said to it takes O(1) steps: what a cluster computes is
done by its replicas' own threads and processes, and no cluster waits for another one's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from eddyline.adapter.control import Control, Feed
from eddyline.adapter.provisioning import ClusterSpec, ReplicaSettings
from eddyline.adapter.replica import Replica, Site
from eddyline.adapter.waiter import Waiter
from eddyline.compute.pair import Pair
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.compute.solo import Solo
from eddyline.controller.controller import Controller
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.errors import Error, make_error
from eddyline.protocol.messages import Peek, PeekResponse
from eddyline.repr.time import Time
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["FIRST_CLUSTER", "FIRST_REPLICA", "Cluster", "ClusterSpec", "ReplicaSettings"]


class Cluster:
    """``replicas`` and ``embedded`` change as a whole, with the control lock held; any thread may look at them.

    Its replicas are started by whoever makes it.
    """

    def __init__(self, site: Site, spec: ClusterSpec) -> None:
        self._site = site
        self._control: Final[Control] = site.control
        self.id: Final = spec.id
        self.name = spec.name
        self.replicas: dict[str, Replica] = {}
        #: those in this process that are there, which can be asked on the caller's thread
        self._embedded: tuple[Solo | Pair, ...] = ()
        #: the runtime that answers reads, as metrics call it
        self.reader = ""
        if spec.id != FIRST_CLUSTER:
            with self._control.lock:
                self._control.controller.create_cluster(spec.id)
        for settings in spec.replicas:
            self.add(settings)

    @property
    def spec(self) -> ClusterSpec:
        """As it is now."""
        return ClusterSpec(self.id, self.name, tuple(replica.settings for replica in self.replicas.values()))

    def rename(self, name: str, replica_id: str | None = None) -> None:
        """It, or one of its replicas."""
        with self._control.lock:
            if replica_id is None:
                self.name = name
            else:
                replica = self.replica(replica_id)
                replica.settings = replace(replica.settings, name=name)
            for each in self.replicas.values():
                each.title = f"{self.name}.{each.settings.name}"

    # -- replicas -------------------------------------------------------------------------------------------------

    def look(self) -> Time | None:
        """The time up to which all replicas that an earlier program has left, and that go on, have what the tables had.

        None if there are none.  Before tables are restored, and replicas started; raises as ``ReplicaProcesses.look``.
        """
        found = [replica.look() for replica in self.replicas.values()]
        return min((upto for upto in found if upto is not None), default=None)

    def replica(self, id: str) -> Replica:
        """XX000 if it is none of the cluster's."""
        replica = self.replicas.get(id)
        if replica is None:
            raise make_error("XX000", f"cluster {self.id} has no replica {id}")
        return replica

    def add(self, settings: ReplicaSettings) -> Replica:
        """One that is yet to be started."""
        if settings.id in self.replicas:
            raise make_error("XX000", f"cluster {self.id} has a replica {settings.id} already")
        replica = Replica(self._site, self.id, settings, self._moved)
        replica.title = f"{self.name}.{settings.name}"
        with self._control.lock:
            self.replicas = {**self.replicas, settings.id: replica}
            replica.configure()
        return replica

    def remove(self, id: str) -> Replica:
        """What only it was asked fails with 58000; it is the caller's to close, without a lock."""
        with self._control.lock:
            replica = self.replica(id)
            replica.leave()
            self.replicas = {other: r for other, r in self.replicas.items() if other != id}
            self._control.gone(self._control.controller.forget_replica(id, self.id))
            self._moved()
        return replica

    def leave(self) -> list[Replica]:
        """The cluster is no more, as in ``Controller.drop_cluster``; its replicas are the caller's to close."""
        with self._control.lock:
            gone = list(self.replicas.values())
            for replica in gone:
                replica.leave()
            self.replicas, self._embedded = {}, ()
            self._control.gone(self._control.controller.drop_cluster(self.id))
        return gone

    def _moved(self) -> None:
        """A replica came, or went.  Needs the control lock."""
        there = [r.client for r in self.replicas.values() if r.absent is None]
        self._embedded = tuple(client for client in there if isinstance(client, (Solo, Pair)))
        self.reader = Role.INTERACTIVE.value if any(r.has_reader() for r in self.replicas.values()) else ""
        why = self.absent()
        if why is not None:
            for replica in self.replicas.values():
                self._control.gone(self._control.controller.give_up_replica(why, replica.id, self.id))

    def absent(self) -> Error | None:
        """Why nobody answers, and nobody soon will: 58000; None where somebody does.  Needs the control lock."""
        whys = []
        for replica in self.replicas.values():
            if replica.absent is None:
                return None
            whys.append(replica.absent)
        return whys[0] if whys else self._empty()

    def _empty(self) -> Error:
        return make_error(
            "58000",
            f'cluster "{self.name}" has no replicas',
            hint=f"CREATE CLUSTER REPLICA {self.name}.r1 makes one; SET cluster chooses another cluster.",
        )

    def attend(self) -> None:
        """Begins to rebuild what could not be rebuilt before."""
        for replica in self.replicas.values():
            replica.attend()

    def runtimes(self) -> list[Runtime]:
        """Of its replicas in this process."""
        return [runtime for client in self._embedded for runtime in client.runtimes]

    # -- readers --------------------------------------------------------------------------------------------------

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None:
        """The answer, found on this thread, if the index has sealed the time; a thread hop costs more than a lookup."""
        for client in self._embedded:
            answer = client.answer_now(peek, cancelled)
            if answer is not None:
                return answer
        return None

    def look_up(self, index: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """As ``answer_now``, of the key that ``probe`` has: the rows and where they lie.  None: ask otherwise."""
        for client in self._embedded:
            found = client.look_up(index, at, probe)
            if found is not None:
                return found
        return None

    def wait_sealed(self, index: str, at: Time, timeout_s: float, expired: Callable[[], bool]) -> bool | None:
        """Waits on this thread until ``index`` has sealed ``at``: True if it had to and it has, so that it can be asked
        once more; False if it has not within the time; None if there is nothing to wait for here, as where several
        replicas are in this process and any may be the first."""
        embedded = self._embedded
        return embedded[0].wait_sealed(index, at, timeout_s, expired) if len(embedded) == 1 else None

    def expect(self, uuid: str, waiter: Waiter) -> None:
        """Where the answer of peek ``uuid`` goes, or why there will be none: 58000.

        Call with the control lock held (``Engine.control``), right after the peek.
        """
        self._control.expect(uuid, waiter, self.absent)

    def forget(self, uuid: str) -> None:
        """Cancels a peek whose answer nobody waits for any more."""
        self._control.forget(uuid)

    def feed(self, id: str, feed: Feed) -> None:
        """Where the responses of subscription ``id`` go, in order; it is ended once ``take`` gives False.

        58000 if there is no replica to make any; the subscription is dropped then.
        """
        self._control.feed(id, feed, self.absent)

    def wait_for(self, ready: Callable[[Controller], bool], timeout: float | None) -> bool:
        """Waits until ``ready(controller)``, looked at after every response but answers; False when the time is up.

        58000 if there is no replica to wait for.
        """
        return self._control.wait_for(ready, timeout, self.absent)
