"""What the commands let one dataflow do so far: run, and write its views."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Allowed"]


class Allowed:
    """``exports``: what is to be scheduled; ``views``: those among them that are written to storage.

    Invariants:
    I1  a dataflow ``runs`` once every export that is left has been scheduled;
    I2  it ``follows`` its inputs, past their snapshots, once every view that is left may be written: until then what
        comes later stays where it is, so that what waits here does not grow with time;
    I3  what is allowed is not taken back: it lasts as long as the dataflow, whichever connection it goes on under.
    State of the worker's thread.  Every operation is O(1).
    """

    __slots__ = ("_unscheduled", "_unwritable", "follows", "runs")

    def __init__(self, exports: Iterable[str] = (), views: Iterable[str] = ()) -> None:
        self._unscheduled = set(exports)
        self._unwritable = set(views)
        self._settle()

    def schedule(self, export: str) -> None:
        self._unscheduled.discard(export)
        self._settle()

    def allow_writes(self, export: str) -> None:
        self._unwritable.discard(export)
        self._settle()

    def forget(self, export: str) -> None:
        """It was dropped: nobody will say anything about it."""
        self._unscheduled.discard(export)
        self._unwritable.discard(export)
        self._settle()

    def may_write(self, view: str) -> bool:
        return view not in self._unwritable

    def _settle(self) -> None:
        self.runs = not self._unscheduled
        self.follows = not self._unwritable
