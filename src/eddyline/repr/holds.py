"""The least of many holds that rise, come and go."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from eddyline.repr.time import Frontier

__all__ = ["Holds"]


class Holds:
    """Frontiers by token.  Not locked: its owner serialises all calls."""

    __slots__ = ("_heap", "_held")

    def __init__(self) -> None:
        self._held: dict[int, Frontier] = {}
        #: every hold, and former states of some; those are passed over
        self._heap: list[tuple[Frontier, int]] = []

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, token: int) -> bool:
        return token in self._held

    def put(self, token: int, since: Frontier) -> None:
        """Adds or moves a hold.  Amortised O(log holds)."""
        if self._held.get(token) != since:
            self._held[token] = since
            heappush(self._heap, (since, token))
            if len(self._heap) > 2 * len(self._held) + 16:
                self._heap = [(held, other) for other, held in self._held.items()]
                heapify(self._heap)

    def discard(self, token: int) -> None:
        self._held.pop(token, None)

    def least(self) -> Frontier | None:
        """None without any.  Amortised O(log holds)."""
        while self._heap and self._held.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
