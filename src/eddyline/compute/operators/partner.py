"""The other side of the only join that reads an arrangement, and what its keys spare that arrangement.

Of two snapshots that are joined the smaller one is arranged first.  The larger one waits for it, and arranges the rows
whose keys the smaller one has; the others are its reserve (``trace.reserve``).  Whatever comes later on either side is
arranged as ever.  Before the join looks for keys of the smaller side that are new, the reserve gives up the rows of
those keys (``fetch``): they enter the trace at as_of, where they belong, and whoever reads it finds what was always to
be found for the keys it asks for.

Nobody waits in a circle: an arrangement waits for what is upstream of the other input of its only reader, and that is
upstream of no arrangement which that reader feeds.  Of two that are complete, exactly one waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.stream import ArrangedStream, Arrangement
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier
from eddyline.trace.reserve import KeySet, Reserve
from eddyline.trace.run import Uint64s, build_run

__all__ = ["Collecting", "Partner", "fetch", "retract"]

#: a snapshot of less than this share of an activation's rows is arranged at once
_LEAST_SHARE: Final = 4
#: and so many rows leave a reserve in one step
_FETCHED_SHARE: Final = 4


class Collecting(Protocol):
    """An arrangement whose snapshot comes in."""

    @property
    def snapshot_rows(self) -> int:
        """So far."""
        ...

    @property
    def snapshot_closed(self) -> bool:
        """Whether that is all of them."""
        ...


class Partner:
    """``stream``: the join's own, from the other side; the join takes nothing from it before both sides are sealed.
    ``collecting``: what arranges that side, None if that is an index.  ``is_first``: who arranges first of two alike.
    """

    def __init__(
        self, stream: ArrangedStream, collecting: Collecting | None, context: OperatorContext, *, is_first: bool
    ) -> None:
        self._stream = stream
        self._least_rows = max(context.budget_rows // _LEAST_SHARE, 1)
        self._collecting = collecting
        self._is_first = is_first

    def is_awaited(self, rows: int) -> bool:
        """Whether a complete snapshot of ``rows`` rows should wait for the other side."""
        if rows < self._least_rows or self._stream.sealed:
            return False
        other = self._collecting
        if other is None:
            return True
        if other.snapshot_rows == rows and other.snapshot_closed:
            return not self._is_first
        return other.snapshot_rows <= rows

    def keys(self, rows: int) -> KeySet | None:
        """The keys of the other side, if it is not larger than the snapshot of ``rows`` rows and that is not small."""
        if rows < self._least_rows or not self._stream.sealed:
            return None
        runs = self._stream.sealed[0].runs
        if sum(map(len, runs)) > rows:
            return None
        return KeySet([np.asarray(run.key_hashes) for run in runs])


def fetch(arrangement: Arrangement, reserve: Reserve, hashes: Uint64s, context: OperatorContext) -> Iterator[int]:
    """Puts the rows with those key hashes from the reserve into the trace; yields their number after each step.

    Of a reserve of which half has gone, twice as many of the others go with them.
    """
    fetched = 0
    for batch in reserve.take(hashes, max(context.budget_rows // _FETCHED_SHARE, 1)):
        _put(arrangement, batch, context)
        fetched += len(batch)
        yield len(batch)
    yield _drain(arrangement, reserve, 2 * fetched, context)


def retract(arrangement: Arrangement, reserve: Reserve, hashes: Uint64s, context: OperatorContext) -> None:
    """Rows with those key hashes are taken back by what enters the trace.  Those of the reserve among them meet it
    there when somebody asks for their key, or when the reserve goes because many are taken back."""
    _drain(arrangement, reserve, 4 * reserve.retract(hashes), context)


def _drain(arrangement: Arrangement, reserve: Reserve, most_rows: int, context: OperatorContext) -> int:
    """Rows that went into the trace."""
    others = reserve.drain(most_rows) if most_rows else None
    if others is not None:
        _put(arrangement, others, context)
    if not reserve.rows:
        arrangement.reserve = None
    return 0 if others is None else len(others)


def _put(arrangement: Arrangement, batch: Batch, context: OperatorContext) -> None:
    trace, at = arrangement.oks, Frontier(context.as_of)
    until = Frontier(context.as_of + 1)
    run = build_run(batch, trace.layout, context.hasher, lower=at, upper=until, since=trace.since)
    if len(run):
        trace.insert(run.rebounded(trace.upper, trace.upper))
