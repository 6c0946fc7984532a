"""A cluster as the controller sees it: what its replicas were told, and how far each of them has come.

Every command goes to the history and to each replica that is attached; one that is attached later gets the reduced
history.  What one replica alone is told has a history of its own, which follows the common one.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from eddyline.controller.holds import ReadHold
from eddyline.plan.dataflow import Arrange, ConstantSource, DataflowClass, DataflowDescription, ExportIndex
from eddyline.protocol.client import Client
from eddyline.protocol.history import CommandHistory
from eddyline.protocol.messages import (
    AllowCompaction,
    Command,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
)
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier

__all__ = ["FIRST_CLUSTER", "FIRST_REPLICA", "Instance", "Leaving", "ReplicaState"]

#: the ids of the cluster that every database begins with, and of its replica
FIRST_CLUSTER: Final = "s1"
FIRST_REPLICA: Final = "s1"
_START = Frontier(MIN_TIME)


@dataclass(slots=True, eq=False)
class Leaving:
    """A dropped dataflow that replicas may have yet to build; ``waiting``: those that have not said that it is gone."""

    dataflow_class: DataflowClass
    holds: list[ReadHold]
    waiting: set[str]

    def left(self, replica: str) -> None:
        """With the last one what it imports is given back."""
        self.waiting.discard(replica)
        if not self.waiting:
            for hold in self.holds:
                hold.close()


@dataclass(slots=True, eq=False)
class ReplicaState:
    """``client`` None: it is lost, or has yet to come."""

    id: str
    client: Client | None = None
    #: what it alone was told: its configuration, and what it alone computes
    own: CommandHistory = field(default_factory=CommandHistory)
    #: dropped dataflows by their last export, in the order of the drops
    leaving: dict[str, Leaving] = field(default_factory=dict)
    #: how far its logs may compact, on the timeline of its present connection
    logs: dict[str, Frontier] = field(default_factory=dict)

    def send(self, command: Command) -> None:
        """To this one alone, at once and whenever it is attached."""
        self.own.push(command)
        if self.client is not None:
            self.client.send(command)

    def log_sealed(self, id: str, upper: Frontier, retention_us: int) -> None:
        """One of its logs is sealed below ``upper``: it compacts behind that, in steps of half the retention."""
        since, target = self.logs.get(id, _START), Frontier(upper - 1 - retention_us)
        if target > since and target - since >= retention_us // 2 and self.client is not None:
            self.logs[id] = target
            self.client.send(AllowCompaction(id, target))

    def left(self, id: str) -> None:
        """It is past this drop, and past earlier ones of the class: an old connection took their answers."""
        if id not in self.leaving:
            return
        dataflow_class = self.leaving[id].dataflow_class
        for other, leaving in list(self.leaving.items()):
            if leaving.dataflow_class is dataflow_class:
                del self.leaving[other]
                leaving.left(self.id)
            if other == id:
                return

    def left_all(self) -> None:
        """It is gone, and with it all that it had yet to drop."""
        leaving, self.leaving = list(self.leaving.values()), {}
        for each in leaving:
            each.left(self.id)

    def probe(self, token: Callable[[], int]) -> None:
        """What an earlier connection did not say of dropped dataflows is lost: others, dropped at once, say it."""
        assert self.client is not None, "it was just attached"
        for dataflow_class in {each.dataflow_class: None for each in self.leaving.values()}:
            id = f"probe{token()}"
            operators = (ConstantSource((), ()), Arrange(0, (), ()), ExportIndex(id, id, 1, (), ()))
            description = DataflowDescription("probe", operators, MIN_TIME, MIN_TIME + 1, dataflow_class)
            self.client.send(CreateDataflow(description))
            self.client.send(AllowCompaction(id, EMPTY))
            self.leaving[id] = Leaving(dataflow_class, [], {self.id})


class Instance:
    """Owner: the controller, whose caller serialises."""

    def __init__(self, *, logging: bool) -> None:
        #: tells a replica that what it wrote to an earlier program's storage is not in this one's
        self._storage = secrets.token_hex(8)
        self.history = CommandHistory()
        #: all that there are, by id, whether they are there at the moment or not
        self.replicas: dict[str, ReplicaState] = {}
        #: those with a client
        self.attached: dict[str, ReplicaState] = {}
        for command in (CreateInstance(logging), InitializationComplete()):
            self.history.push(command)

    def replica(self, id: str) -> ReplicaState:
        """It is known from here on."""
        state = self.replicas.get(id)
        if state is None:
            state = self.replicas[id] = ReplicaState(id)
        return state

    def first(self) -> str | None:
        """The one that has been there for the longest time; None if nobody is."""
        return next(iter(self.attached), None)

    def told(self, replica: str | None) -> Iterable[str]:
        """Who hears of what is for ``replica`` (None: for all of them), of those that are attached."""
        return self.attached if replica is None else self.attached.keys() & {replica}

    def send(self, command: Command, replica: str | None = None) -> None:
        """To all replicas, or to one of them, which may have been forgotten."""
        if replica is not None:
            state = self.replicas.get(replica)
            if state is not None:
                state.send(command)
            return
        self.history.push(command)
        for state in self.attached.values():
            assert state.client is not None, "it is attached"
            state.client.send(command)

    def send_now(self, command: Command, replica: str) -> None:
        """To one replica if it is there, and not again when it returns."""
        state = self.attached.get(replica)
        if state is not None and state.client is not None:
            state.client.send(command)

    def answered(self, uuid: str, replica: str | None) -> None:
        """The peek, of all replicas or of one, is not to be asked again."""
        if replica is None:
            self.history.answered(uuid)
        elif replica in self.replicas:
            self.replicas[replica].own.answered(uuid)

    def attach(
        self, id: str, client: Client, tokens: itertools.count[int], views: tuple[str, ...] = ()
    ) -> ReplicaState:
        """Brings the replica behind ``client`` to the present state, and uses it from here on.

        ``views``: all that are stored.
        """
        state = self.replica(id)
        state.client = client
        state.logs.clear()
        self.attached[id] = state
        client.send(Hello(secrets.token_hex(8), self._storage, views))
        for command in self.history.reduced(state.own):
            client.send(command)
        state.probe(lambda: next(tokens))
        return state

    def lose(self, state: ReplicaState) -> None:
        """It is gone until it is attached again; ``left_all`` is to follow."""
        state.client = None
        self.attached.pop(state.id, None)
