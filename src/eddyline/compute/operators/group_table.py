"""Groups by key: which slot a key has, and each slot's key.

Invariants:
I1  no two linked slots have keys that SQL calls equal; equal hashes are only candidates, keys decide;
I2  a slot is never reused for another key; ``compact`` renumbers, and says how.
The state belongs to the worker's thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.growable import grown
from eddyline.compute.operators.key_log import KeyLog
from eddyline.compute.state_size import StateSize
from eddyline.kernels.groups import buckets_in_use, erase_slots, find_slots, first_of_hash, insert_slots, number_groups
from eddyline.repr.batch import Int64s
from eddyline.repr.types import SqlType
from eddyline.trace.compare import rows_equal
from eddyline.trace.hasher import Hasher

__all__ = ["GroupTable", "group_rows"]

UInt64s = npt.NDArray[np.uint64]

_COMPACT_ROWS = 4096  # dead slots that are not worth a compaction


def group_rows(columns: Sequence[pa.Array], types: Sequence[SqlType], hashes: UInt64s) -> tuple[Int64s, Int64s]:
    """(group of each row: int64[n], first row of each group: int64[g], ascending); NULLs group together.

    Cost: O(n), times the number of distinct keys that share one hash.
    """
    rows = len(hashes)
    if not columns:
        return np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
    leader = _first_of_hash(hashes)
    safe = [True] * len(types)
    if not rows_equal(columns, types, np.arange(rows), columns, leader, null_equal=safe).all():
        leader = _first_of_key(columns, types, hashes)
    numbers, leaders = np.empty(rows, np.int64), np.empty(rows, np.int64)
    count = number_groups(leader, numbers, leaders)
    return numbers, leaders[:count]


def _first_of_hash(hashes: UInt64s) -> Int64s:
    """The first position of each row's hash."""
    table = np.full(1 << max(4, (2 * len(hashes) - 1).bit_length()), -1, np.int64)
    first = np.empty(len(hashes), np.int64)
    first_of_hash(hashes, table, first)
    return first


def _first_of_key(columns: Sequence[pa.Array], types: Sequence[SqlType], hashes: UInt64s) -> Int64s:
    """The first position of each row's key, where several keys share a hash."""
    leader = np.empty(len(hashes), np.int64)
    todo = np.arange(len(hashes), dtype=np.int64)
    safe = [True] * len(types)
    while len(todo):
        candidates = todo[_first_of_hash(hashes[todo])]
        same = rows_equal(columns, types, todo, columns, candidates, null_equal=safe)
        leader[todo[same]] = candidates[same]
        todo = todo[~same]
    return leader


class GroupTable:
    """Slots ``0 <= s < size``; ``alive[s]`` says whether the slot is linked."""

    def __init__(self, types: Sequence[SqlType], hasher: Hasher) -> None:
        self._types = tuple(types)
        self._hasher = hasher
        self._keys = KeyLog(self._types)
        self._head = np.full(16, -1, np.int64)
        self._following = np.full(16, -1, np.int64)
        self._hashes = np.zeros(16, np.uint64)
        self._state = np.array([7, 0], np.int64)
        self._alive = np.zeros(16, np.bool_)
        self.size = 0
        self.dead = 0

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """bool[size]."""
        return self._alive[: self.size]

    def state_size(self, state_bytes: int) -> StateSize:
        """Groups in force, and bytes, with those set aside for their states elsewhere.  O(chunks of keys)."""
        tables = (self._head, self._following, self._hashes, self._alive)
        capacity = sum(t.nbytes for t in tables) + self._keys.nbytes + state_bytes
        living = self.size - self.dead
        return StateSize(living, 1 if living else 0, capacity * living // max(1, len(self._alive)), capacity)

    def locate(self, columns: Sequence[pa.Array], rows: int) -> tuple[Int64s, Int64s]:
        """(group of each row: int64[rows], slot of each group: int64[g], no repeats); new keys get new slots.

        The image of a new key is that of its first row.  O(rows), independent of ``size``.
        """
        # Without columns all rows are one group: one hash is enough.
        hashes = self._hasher.hash_rows(columns, self._types, rows if columns else min(rows, 1))
        if not columns:
            groups, leaders = np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
        else:
            groups, leaders = group_rows(columns, self._types, hashes)
        slots = self._find(columns, leaders, hashes[leaders])
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            slots[missing] = self._append(columns, leaders[missing], hashes[leaders[missing]])
        return groups, slots

    def keys(self, slots: Int64s) -> tuple[pa.Array, ...]:
        """The key columns of ``slots``."""
        return self._keys.gather(slots)

    def release(self, slots: Int64s) -> None:
        """Unlinks the slots: their keys are gone, and come back as new slots."""
        if len(slots):
            erase_slots(slots, self._head, self._following, self._hashes, self._state)
            self._alive[slots] = False
            self.dead += len(slots)

    def compact(self) -> Int64s | None:
        """Drops the dead slots if they are most of the table; the old numbers of the slots kept, in their new order."""
        if self.dead < _COMPACT_ROWS or 2 * self.dead < self.size:
            return None
        kept = np.flatnonzero(self.alive)
        keys = KeyLog(self._types)
        keys.append(self._keys.gather(kept), np.arange(len(kept)))
        hashes = self._hashes[kept]
        self._keys = keys
        self._head = np.full(16, -1, np.int64)
        self._state = np.array([7, 0], np.int64)
        self._following = np.full(max(len(kept), 16), -1, np.int64)
        self._hashes = grown(hashes, 16)
        self._alive = np.zeros(max(len(kept), 16), np.bool_)
        self.size = self.dead = 0
        self._link(len(kept))
        return kept

    def _find(self, columns: Sequence[pa.Array], rows: Int64s, hashes: UInt64s) -> Int64s:
        """The slot of each row's key, -1 where there is none."""
        slots = np.full(len(rows), -1, np.int64)
        todo = np.arange(len(rows), dtype=np.int64)
        candidates = slots.copy()
        while len(todo):
            found = np.empty(len(todo), np.int64)
            find_slots(hashes[todo], candidates, self._head, self._following, self._hashes, self._state, found)
            todo, found = todo[found >= 0], found[found >= 0]
            same = self._keys.equal(found, columns, rows[todo])
            slots[todo[same]] = found[same]
            todo, candidates = todo[~same], found[~same]
        return slots

    def _append(self, columns: Sequence[pa.Array], rows: Int64s, hashes: UInt64s) -> Int64s:
        first, stop = self.size, self.size + len(rows)
        self._keys.append(columns, rows)
        self._hashes = grown(self._hashes, stop)
        self._hashes[first:stop] = hashes
        self._following = grown(self._following, stop, -1)
        self._alive = grown(self._alive, stop)
        self._link(stop)
        return np.arange(first, stop)

    def _link(self, stop: int) -> None:
        self._head = grown(self._head, buckets_in_use(self._state) + stop - self.size, -1)
        insert_slots(self.size, stop, self._head, self._following, self._hashes, self._state)
        self._alive[self.size : stop] = True
        self.size = stop
