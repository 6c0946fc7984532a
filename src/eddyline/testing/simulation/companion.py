"""A replica beside the one that the invariants are looked at on, at a speed of its own.

It comes and goes, and is told everything at once.  In the same cluster it computes the same, and answers what the other
one is asked, so that either may be the first; in a cluster of its own it keeps materialized views that the other reads.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Final

from eddyline.compute.pair import Pair
from eddyline.compute.solo import Solo
from eddyline.controller.controller import Controller
from eddyline.controller.events import Event
from eddyline.controller.instance import FIRST_CLUSTER
from eddyline.protocol.messages import Response

__all__ = ["COMPANION", "SECOND_CLUSTER", "Companion"]

#: the id of the second replica
COMPANION: Final = "s2"
#: the id of the second cluster, whose only replica is called like the first one's first
SECOND_CLUSTER: Final = "s2"


class Companion:
    """Of one process without threads.  ``build`` makes one that has run nothing, with the clock that it is given."""

    def __init__(
        self,
        build: Callable[[Callable[[], int]], Pair | Solo],
        controller: Controller,
        rng: random.Random,
        replica: str = COMPANION,
        cluster: str = FIRST_CLUSTER,
    ) -> None:
        self._id = replica
        self._cluster = cluster
        self._build = build
        self._controller = controller
        self._rng = rng
        self._replica: Pair | Solo | None = None

    @property
    def there(self) -> bool:
        return self._replica is not None

    def come(self) -> None:
        """It is built anew."""
        ticks = itertools.count(0, self._rng.choice((0, 2_000_000)))
        self._replica = self._build(lambda: next(ticks))
        self._controller.attach_replica(self._replica, self._id, self._cluster)

    def go(self) -> None:
        """It ends in the middle of what it does; what it has not said is lost.  The controller is yet to hear of it."""
        assert self._replica is not None, "it is there"
        self._replica.close()
        self._replica = None

    def process(self, response: Response) -> list[Event]:
        """The controller hears of what it says."""
        return self._controller.process_response(response, self._id, self._cluster)

    def work(self, steps: int) -> bool:
        """Up to ``steps`` steps of its workers and lanes; True if any did something."""
        moved = False
        for _ in range(steps if self._replica is not None else 0):
            assert self._replica is not None, "it was just looked at"
            moved |= self._replica.step()
        self.check()
        return moved

    def check(self) -> None:
        if self._replica is not None and self._replica.failed:
            raise AssertionError(f"replica {self._id} of cluster {self._cluster} failed")

    def responses(self, most: int) -> Iterator[Response]:
        for _ in range(most):
            response = None if self._replica is None else self._replica.receive(0)
            if response is None:
                return
            yield response

    def at_rest(self) -> bool:
        return self._replica is None or self._replica.at_rest()
