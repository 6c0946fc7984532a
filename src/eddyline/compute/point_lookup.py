"""Lookups of one key on the caller's thread, for plans that are asked often: what ``peek`` answers, or nothing.

Everything that a lookup may meet beside a few plain rows is ``peek``'s to say: None sends the caller there.
"""

from __future__ import annotations

from eddyline.compute.readable import PeekSource
from eddyline.repr.time import Time
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["rows_of_point"]


def rows_of_point(index: PeekSource | None, at: Time, probe: PointProbe) -> list[Found] | None:
    """The rows of ``index`` at ``at`` that have the probe's key, all diffs positive.  Any thread.

    None: the index is not there, has not sealed the time or no longer has it, holds errors, or the rows are many or
    have to be netted.
    """
    if index is None or index.since > at or index.frontier() <= at or index.read is not None:
        return None
    # Looked at after the frontier: what they hold is sealed as far.
    arrangement = index.arrangement
    if arrangement.errs.rows:
        return None
    found = probe.find(arrangement.oks.snapshot(), at + 1)
    # As ``peek_queue.answer_on_caller``: if since has not passed the time by now, the snapshot's had not either.
    return found if index.since <= at else None
