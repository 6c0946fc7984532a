"""Which dataflows of a worker a commit concerns, and which commits concern the worker at all.

Invariants:
I1  a live dataflow is scheduled by each commit to what it imports as it is (it *follows* that); where it selects rows
    of a source, by those with rows for it, and by others in turns (they *pass it by*): it falls behind by a bounded
    number of them;
I2  one that a peer may be ahead of (it is *outrun*) is scheduled by every commit: in another process they may hear of
    it first, and of rows that none here has;
I3  one that hydrates is scheduled by every commit.
State of the worker's thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from eddyline.compute.agenda import Agenda
from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exchange import ExchangeOperator
from eddyline.compute.inbox import Taken
from eddyline.protocol.sources import SourceReader

__all__ = ["CommitInterest"]

#: a commit of so many rows lets one more of those that it passed by catch up
_CATCH_UP_ROWS: Final = 1_024


class CommitInterest:
    """``agenda``: the worker's, in which those that are concerned are scheduled."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        #: by the id of each collection or index that they import
        self._importers: dict[str, list[Dataflow]] = {}
        #: those among them that are scheduled by each of its steps
        self._followers: dict[str, dict[Dataflow, None]] = {}
        #: the others, longest ago activated first
        self._passed_by: dict[str, dict[Dataflow, None]] = {}
        #: the ids of both; None until it is asked for
        self._followed: frozenset[str] | None = None
        #: dataflows by the readers of their sources
        self._readers: dict[SourceReader, Dataflow] = {}
        #: dataflows that a peer may be ahead of
        self._outrun: dict[Dataflow, None] = {}

    # -- whom

    def add(self, dataflow: Dataflow) -> None:
        """A dataflow that was just rendered.  O(imports)."""
        for id in _imported(dataflow):
            self._importers.setdefault(id, []).append(dataflow)
            self._those(dataflow, id).setdefault(id, {})[dataflow] = None
        self._followed = None
        self._readers.update((source.reader, dataflow) for source in dataflow.sources)

    def remove(self, dataflow: Dataflow) -> None:
        """A dataflow that is dropped."""
        self._outrun.pop(dataflow, None)
        for id in _imported(dataflow):
            self._importers[id].remove(dataflow)
            if not self._importers[id]:
                del self._importers[id]
            those = self._those(dataflow, id)
            del those[id][dataflow]
            if not those[id]:
                del those[id]
        self._followed = None
        for source in dataflow.sources:
            del self._readers[source.reader]

    def _those(self, dataflow: Dataflow, id: str) -> dict[str, dict[Dataflow, None]]:
        return self._passed_by if id in dataflow.selected else self._followers

    def importers(self, ids: Iterable[str]) -> list[Dataflow]:
        """The live dataflows that import one of ``ids``, each once for every one of them."""
        return [dataflow for id in ids for dataflow in self._importers.get(id, ())]

    def activated(self, dataflow: Dataflow) -> None:
        """It has seen whatever passed it by."""
        for id in dataflow.selected:
            others = self._passed_by[id]
            del others[dataflow]
            others[dataflow] = None

    def heard(self, dataflow: Dataflow, exchange: ExchangeOperator) -> None:
        """A peer has told ``exchange`` of it something."""
        if exchange.outrun():
            self._outrun[dataflow] = None

    # -- what happens

    def committed(self, taken: Taken) -> None:
        """Commits to collections: schedules whom they concern.  O(those, and ``outrun``)."""
        for reader in taken.touched:
            touched = self._readers.get(reader)
            if touched is not None:
                self._agenda.schedule(touched)
        for id in taken.commits:
            for dataflow in self._followers.get(id, ()):
                self._agenda.schedule(dataflow)
            for dataflow in islice(self._passed_by.get(id, ()), 1 + taken.commit_rows // _CATCH_UP_ROWS):
                self._agenda.schedule(dataflow)
        for dataflow in self._agenda.hydrating:
            self._agenda.schedule(dataflow)
        self._catch_up()

    def _catch_up(self) -> None:
        """A commit, to whatever collection: it may close the times that peers have told of."""
        for dataflow in list(self._outrun):
            if any(exchange.outrun() for exchange in dataflow.exchanges.values()):
                self._agenda.schedule(dataflow)
            else:
                del self._outrun[dataflow]

    def moved(self, exporter: Dataflow, id: str) -> None:
        """The frontier of ``id``, which ``exporter`` computes, has moved."""
        for importer in self._followers.get(id, ()):
            self._agenda.schedule_after(exporter, importer)

    def heeded(self) -> frozenset[str] | None:
        """The collections whose commits concern a dataflow; None: any commit may."""
        if self._agenda.building or self._outrun:
            return None
        if self._followed is None:
            self._followed = frozenset((*self._followers, *self._passed_by))
        return self._followed

    def __bool__(self) -> bool:
        """Whether anything is kept of any dataflow."""
        return bool(self._importers or self._followers or self._passed_by or self._readers or self._outrun)


def _imported(dataflow: Dataflow) -> dict[str, None]:
    return dict.fromkeys(i.id for i in dataflow.description.imports)
