"""Groups by key: which slot a key has, and each slot's key.

Invariants:
I1  no two linked slots have keys that SQL calls equal; equal hashes are only candidates, keys decide, but where a key
    is one word, whose hash is as good as the word;
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
from eddyline.kernels.cells import WORDS
from eddyline.kernels.groups import buckets_in_use, erase_slots, first_of_hash, insert_slots, locate_keys, number_groups
from eddyline.repr.batch import Int64s
from eddyline.repr.types import SqlType
from eddyline.trace.columns import SHORT_BYTES, SHORT_ROWS, cell_kinds, describe, varlen_bytes
from eddyline.trace.compare import rows_equal
from eddyline.trace.hasher import Hasher

__all__ = ["GroupTable", "group_rows"]

UInt64s = npt.NDArray[np.uint64]

_COMPACT_ROWS = 4096  # dead slots that are not worth a compaction
_ROOM = 256  # new slots that there is room for before anybody knows of them


def group_rows(columns: Sequence[pa.Array], types: Sequence[SqlType], hashes: UInt64s) -> tuple[Int64s, Int64s]:
    """(group of each row: int64[n], first row of each group: int64[g], ascending); NULLs group together.

    Cost: O(n), times the number of distinct keys that share one hash.
    """
    rows = len(hashes)
    if not columns or rows == 1:
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
        self._kinds = cell_kinds(self._types)
        self._hasher = hasher
        #: whether keys without NULLs are one word each, which different hashes have
        self._word = len(self._kinds) == 1 and self._kinds[0] in WORDS and hasher.exact
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

    def hashes(self, columns: Sequence[pa.Array], rows: int) -> UInt64s:
        """uint64[rows], of keys.  Keys whose hashes have the same low bits are neighbours."""
        return self._hasher.hash_described(describe(columns, self._kinds), rows)

    def locate(self, columns: Sequence[pa.Array], rows: int, hashes: UInt64s | None = None) -> tuple[Int64s, Int64s]:
        """(group of each row: int64[rows], slot of each group: int64[g], no repeats); new keys get new slots.

        The image of a new key is that of its first row.  ``hashes``: of the keys, if they are at hand.
        O(rows), independent of ``size``.
        """
        asked = rows if columns else min(rows, 1)  # without columns all rows are one group: one of them is enough
        described = describe(columns, self._kinds)
        short = asked <= SHORT_ROWS and sum(varlen_bytes(described, asked)) <= SHORT_BYTES
        if hashes is None or not columns:
            hashes = self._hasher.hash_described(described, asked)
        exact = int(self._word and not described[0, 3] and not self._keys.descriptors[0, 0, 3])
        table = np.full(1 << max(4, (2 * asked - 1).bit_length()), -1, np.int64)
        out = np.empty((4, asked), np.int64)
        progress = np.array((0, 0, self.size, self.size), np.int64)
        locate = locate_keys.short if short else locate_keys
        self._make_room(self.size, asked)
        while not locate(
            self._keys.descriptors,
            described[None],
            hashes,
            exact,
            table,
            self._head,
            self._following,
            self._hashes,
            self._state,
            progress,
            out,
        ):
            self._make_room(int(progress[2]), asked - int(progress[0]))
        _, found, size, _ = progress.tolist()
        if size > self.size:
            self._keys.append(columns, out[3, : size - self.size])
            self._alive = grown(self._alive, size)
            self._alive[self.size : size] = True
            self.size = size
        return out[0] if columns else np.zeros(rows, np.int64), out[1, :found]

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

    def _make_room(self, slots: int, rows: int) -> None:
        """For new slots of some of the next rows, behind ``slots``, and for the buckets that they split."""
        new = min(rows, _ROOM)
        slots += new
        self._head = grown(self._head, buckets_in_use(self._state) + new, -1)
        self._hashes = grown(self._hashes, slots)
        self._following = grown(self._following, slots, -1)

    def _link(self, stop: int) -> None:
        self._head = grown(self._head, buckets_in_use(self._state) + stop - self.size, -1)
        insert_slots(self.size, stop, self._head, self._following, self._hashes, self._state)
        self._alive[self.size : stop] = True
        self.size = stop
