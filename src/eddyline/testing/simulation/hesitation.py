"""A controller that takes its time: what lets dataflows run, and views be written, reaches the replica late.

Sits between the controller and the replica.  Everything else passes at once, in its order, so that what is asked of a
dataflow, compaction and drops included, overtakes its ``Schedule``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from eddyline.protocol.client import Client
from eddyline.protocol.messages import AllowCompaction, AllowWrites, Command, Hello, Response, Schedule
from eddyline.repr.time import EMPTY

__all__ = ["Hesitation"]


class Hesitation:
    """A ``protocol.client.Client`` over ``replica``.  ``share``: of the schedules that it keeps back when they come."""

    def __init__(self, replica: Client, rng: random.Random, share: float, coverage: Counter[str]) -> None:
        self._replica = replica
        self._rng = rng
        self._share = share
        self._coverage = coverage
        #: in the order in which they came
        self._kept: list[Schedule | AllowWrites] = []
        #: what this replica was ever told, over all connections
        self.scheduled: set[str] = set()
        self.writable: set[str] = set()

    def send(self, command: Command) -> None:
        match command:
            case Hello():  # whose history says again what was not passed on
                self._coverage["schedule: kept back over a reconnect"] += any(
                    isinstance(c, Schedule) for c in self._kept
                )
                self._kept.clear()
            case AllowCompaction(id, frontier) if frontier == EMPTY:
                self._coverage["schedule: dropped before it"] += Schedule(id) in self._kept
                self._kept = [c for c in self._kept if c.id != id]
            case Schedule() | AllowWrites() if self._rng.random() < self._share * self._patience(command):
                self._kept.append(command)
                return
            case _:
                pass
        self._pass(command)

    @staticmethod
    def _patience(command: Schedule | AllowWrites) -> int:
        """Views are few, and have something to write only once they have run."""
        return 2 if isinstance(command, AllowWrites) else 1

    def let_go(self, count: int | None = None) -> bool:
        """Passes ``count`` of what it keeps on, in any order, or all; True if there was any."""
        most = len(self._kept) if count is None else min(count, len(self._kept))
        for _ in range(most):
            self._pass(self._kept.pop(self._rng.randrange(len(self._kept))))
        return most > 0

    def _pass(self, command: Command) -> None:
        if isinstance(command, Schedule):
            self.scheduled.add(command.id)
        elif isinstance(command, AllowWrites):
            self.writable.add(command.id)
        self._replica.send(command)

    def receive(self, timeout: float | None) -> Response | None:
        return self._replica.receive(timeout)

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        self._replica.listen(listener, ended)

    def stop(self) -> None:
        self._replica.stop()

    def close(self) -> None:
        self._replica.close()
