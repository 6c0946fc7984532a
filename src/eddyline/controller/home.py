"""The directory of a database as its replicas' processes know it, and whether what they have seen is in it.

A process that outlives its program has seen commits; a directory has some.  Two differences are possible:

* *It lacks commits that the directory has*: they were safe before they were shown, and the kill came in between, or
  before they had arrived.  It is told them, each at its own time: see ``seen_upto``.
* *It has seen a commit that the directory lacks*: one that was shown before it was safe (``synchronous_commit = off``).
  What was lost must not be seen by anybody, and the process cannot give it back whole: it has the tables that it reads,
  not the others of the same transaction, nor its definitions.  So it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eddyline.controller.instance import FIRST_REPLICA
from eddyline.protocol.handshake import Seen
from eddyline.repr.time import Time

__all__ = ["Home"]


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of a database: its ``folder``; the ``epoch`` of this opening, which the processes are told;
    the time of the ``newest`` commit that it had; up to which time earlier openers may have closed times
    (``reserved``); behind which time it tells commits apart (``told_apart_from``), those up to it being one, as in
    files of rows; and whether it is still this opener's (``held``).  ``replica``: the id of the one that is noted.
    ``after``: the epoch of the opening before this one; None where none was passed over.
    """

    folder: Path
    epoch: int
    newest: Time
    reserved: Time
    held: Callable[[], bool]
    replica: str = FIRST_REPLICA
    after: int | None = None
    told_apart_from: int = -1

    @property
    def epoch_before(self) -> int:
        """Of the program that had the directory before this one."""
        return self.epoch - 1 if self.after is None else self.after

    def seen_upto(self, seen: Sequence[Seen | None]) -> Time | None:
        """The time up to which processes have all that the directory has; they go on if they are told the rest.

        ``seen``: what each has, None where it reads no table.  None where one has something else: a commit, or a closed
        time, that the directory does not know of; or where the directory cannot tell the rest from what they have.
        """
        there = [each for each in seen if each is not None]
        if any(each.newest > self.newest or each.upper > self.reserved + 1 for each in there):
            return None
        upto = min((each.upper - 1 for each in there), default=int(self.reserved))
        return Time(upto) if upto >= self.told_apart_from else None
