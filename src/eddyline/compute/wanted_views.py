"""The materialized views of a worker that others wait for: a view of quiet tables seals no time by itself."""

from __future__ import annotations

from collections.abc import Mapping

from eddyline.compute.agenda import Agenda
from eddyline.compute.dataflow import Dataflow
from eddyline.protocol.sources import Storage
from eddyline.repr.time import Time

__all__ = ["WantedViews"]


class WantedViews:
    """State of the worker's thread, and so are its ``exporters`` (dataflows by what they compute) and ``agenda``."""

    def __init__(self, storage: Storage, exporters: Mapping[str, Dataflow], agenda: Agenda) -> None:
        self._storage = storage
        self._exporters = exporters
        self._agenda = agenda
        #: stored views that a reader of the other runtime waits for, and until which time
        self._until: dict[str, Time] = {}
        #: views that others read, whom nobody here hears asking
        self._kept: set[str] = set()

    def __bool__(self) -> bool:
        """Whether any commit may have to be followed by ``schedule``."""
        return bool(self._until or self._kept)

    def want(self, id: str, until: Time) -> None:
        """A reader waits for the stored collection ``id``, if that is a view; it may be rendered later."""
        self._until[id] = max(until, self._until.get(id, until))

    def keep(self, id: str) -> None:
        """Others read the view from here on, until it is dropped."""
        self._kept.add(id)
        self.schedule()

    def schedule(self) -> None:
        """After a commit, or a call of the others."""
        for id, until in list(self._until.items()):
            if id not in self._storage or self._storage.upper(id) > until:
                del self._until[id]
            elif id in self._exporters:
                self._agenda.schedule(self._exporters[id])
        for id in list(self._kept):
            if id in self._exporters:
                self._agenda.schedule(self._exporters[id])
            else:
                self._kept.discard(id)  # it was dropped
