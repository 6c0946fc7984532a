"""The hash index of a group table: chains of slots per bucket, grown one bucket at a time (linear hashing).

A *slot* is a group's number.  ``head[b]`` is the first slot of bucket *b* and ``following[s]`` the next one of its
chain, -1 at the end.  ``state`` is ``[mask, split]``: buckets below ``split`` use one more bit of the hash than
``mask`` has.  Each insertion splits at most one bucket, so that no insertion pays for a rehash of the whole.
Equal hashes are candidates only: ``locate_keys`` compares the keys, unless they are words that their hashes tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import BYTES, INT64, cell, sql_key
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import load_i64, load_u64, prefetch
from eddyline.kernels.row_order import ITEM_BYTES, compare_cells, is_null
from eddyline.kernels.signatures import I64, RUNS, U64, VOID, read, write

__all__ = [
    "buckets_in_use",
    "erase_slots",
    "erase_slots_twin",
    "first_of_hash",
    "first_of_hash_twin",
    "insert_slots",
    "insert_slots_twin",
    "locate_keys",
    "locate_keys_twin",
    "number_groups",
    "number_groups_twin",
]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

#: spreads numbers that follow each other
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
#: so many rows ahead the next link of what a lookup reads is asked for: bucket, slot, key
_AHEAD: Final = 8


@subroutine
def _bucket(key_hash: Any, mask: Any, split: Any) -> Any:
    bucket = np.int64(key_hash & np.uint64(mask))
    if bucket < split:
        bucket = np.int64(key_hash & np.uint64(2 * mask + 1))
    return bucket


@kernel(VOID(read(U64), write(I64), write(I64)))
def first_of_hash(hashes, table, out):  # type: ignore[no-untyped-def]
    """``out[i]``: the first position with the hash of position *i*.

    hashes: uint64[n].  table: int64, a power of two of entries and at least 2 n, all -1 on entry; scratch.
    """
    mask = np.uint64(len(table) - 1)
    for i in range(len(hashes)):
        # The low bits choose the worker and the bucket, so the high ones are mixed in here.
        at = np.int64((hashes[i] ^ (hashes[i] >> np.uint64(32))) & mask)
        while table[at] >= 0 and hashes[table[at]] != hashes[i]:
            at = np.int64(np.uint64(at + 1) & mask)
        if table[at] < 0:
            table[at] = i
        out[i] = table[at]


def first_of_hash_twin(hashes: UInt64s, table: Int64s, out: Int64s) -> None:
    first: dict[int, int] = {}
    for i, key_hash in enumerate(hashes.tolist()):
        out[i] = first.setdefault(key_hash, i)


@kernel(I64(read(I64), write(I64), write(I64)))
def number_groups(leader, numbers, leaders):  # type: ignore[no-untyped-def]
    """``numbers[i]``: the group of row *i*, in the order of their first rows, which ``leaders`` lists; their count.

    ``leader[i]``: the first row of the group of *i*, at or before it.
    """
    count = 0
    for i in range(len(leader)):
        first = leader[i]
        if first == i:
            leaders[count] = i
            numbers[i] = count
            count += 1
        else:
            numbers[i] = numbers[first]
    return count


def number_groups_twin(leader: Int64s, numbers: Int64s, leaders: Int64s) -> int:
    found: dict[int, int] = {}
    for i, first in enumerate(leader.tolist()):
        numbers[i] = found.setdefault(first, len(found))
    leaders[: len(found)] = list(found)
    return len(found)


@subroutine
def _link(slot: Any, head: Any, following: Any, slot_hashes: Any, state: Any) -> None:
    """Puts the slot first in its chain, and splits one bucket."""
    bucket = _bucket(slot_hashes[slot], state[0], state[1])
    following[slot] = head[bucket]
    head[bucket] = slot
    mask, old = state[0], state[1]
    new = old + mask + 1
    walk = head[old]
    head[old] = -1
    while walk >= 0:
        then = following[walk]
        target = new if np.int64(slot_hashes[walk] & np.uint64(2 * mask + 1)) == new else old
        following[walk] = head[target]
        head[target] = walk
        walk = then
    state[1] = old + 1
    if state[1] > mask:
        state[0] = 2 * mask + 1
        state[1] = 0


@subroutine
def _cells_equal(p: Any, i: Any, q: Any, j: Any) -> Any:
    """Whether SQL calls two cells equal that are not NULL; whole words and lengths tell most at once."""
    kind = load_i64(p)
    if kind == INT64:
        return load_i64(load_i64(p + 8) + 8 * i) == load_i64(load_i64(q + 8) + 8 * j)
    if kind == BYTES:
        start = load_i64(p + 16) + 8 * i
        other = load_i64(q + 16) + 8 * j
        if load_i64(start + 8) - load_i64(start) != load_i64(other + 8) - load_i64(other):
            return False
    return compare_cells(p, i, q, j) == 0


@subroutine
def _keys_equal(items: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Whether SQL calls two rows equal, NULLs too; ``a``, ``b``: the addresses of their ``items`` descriptors."""
    for item in range(items):
        p = a + ITEM_BYTES * item
        q = b + ITEM_BYTES * item
        i_null = is_null(p, i)
        j_null = is_null(q, j)
        if i_null or j_null:
            if not (i_null and j_null):
                return False
        elif not _cells_equal(p, i, q, j):
            return False
    return True


@subroutine
def _look_ahead(
    i: Any, rows: Any, hashes: Any, keys: Any, known: Any, head: Any, slot_hashes: Any, mask: Any, split: Any
) -> None:
    """Asks for what the lookups of the next rows will read, one link each: a lookup is three misses, one after another.

    Addresses; ``keys``: of the first key column's descriptor.  Hints alone: the rows may turn out to have other slots.
    """
    row = i + 3 * _AHEAD
    if row < rows:
        prefetch(head + 8 * _bucket(load_u64(hashes + 8 * row), mask, split))
    row -= _AHEAD
    if row < rows:
        slot = load_i64(head + 8 * _bucket(load_u64(hashes + 8 * row), mask, split))
        if slot >= 0:
            prefetch(slot_hashes + 8 * slot)
            prefetch(load_i64(keys + 16) + 8 * slot)
    row -= _AHEAD
    if row < rows:
        slot = load_i64(head + 8 * _bucket(load_u64(hashes + 8 * row), mask, split))
        if 0 <= slot < known and load_i64(keys) == BYTES:
            prefetch(load_i64(keys + 8) + load_i64(load_i64(keys + 16) + 8 * slot))


@kernel(
    I64(
        RUNS, RUNS, read(U64), I64, write(I64), write(I64), write(I64), write(U64), write(I64), write(I64),
        write(I64, 2),
    ),
    short=True,
)  # fmt: skip
def locate_keys(keys, rows, hashes, exact, table, head, following, slot_hashes, state, progress, out):  # type: ignore[no-untyped-def]
    """The slot of each row's key; a key without one gets the next, which is linked in.

    keys, rows: int64[1, items, WIDTH], the key of each slot that was there, and the rows.  hashes: uint64[n], of the
    rows.  ``exact``: different keys have different hashes, and nothing else is looked at.  table: int64, a power of
    two of entries and at least 2 n, all -1 on entry; scratch.
    ``progress``: [next row, groups so far, slots, slots that were there]; it returns 0 where one more slot has no room
    in ``head``, ``following`` or ``slot_hashes``, to be called again with more, and 1 when it is done.
    out: int64[4, n]: the group of each row, in the order of their first rows; of each group the slot and the first
    row; the row of each new slot.  Expected O(n), times the keys that share one hash.
    """
    items = rows.shape[1]
    at_keys = np.int64(keys.ctypes.data)
    at_rows = np.int64(rows.ctypes.data)
    at_hashes = np.int64(hashes.ctypes.data)
    at_head = np.int64(head.ctypes.data)
    at_slot_hashes = np.int64(slot_hashes.ctypes.data)
    mask = len(table) - 1
    room = min(len(following), len(slot_hashes))
    count = progress[1]
    known = progress[3]
    for i in range(progress[0], len(hashes)):
        if items > 0:
            _look_ahead(i, len(hashes), at_hashes, at_keys, known, at_head, at_slot_hashes, state[0], state[1])
        slot = head[_bucket(hashes[i], state[0], state[1])]
        while slot >= 0:
            if slot_hashes[slot] == hashes[i]:
                if exact:
                    break
                if slot < known:
                    if _keys_equal(items, at_keys, slot, at_rows, i):
                        break
                elif _keys_equal(items, at_rows, out[3, slot - known], at_rows, i):
                    break
            slot = following[slot]
        if slot < 0:
            slot = progress[2]
            if slot == room or state[0] + state[1] + 2 > len(head):
                progress[0] = i
                progress[1] = count
                return 0
            slot_hashes[slot] = hashes[i]
            _link(slot, head, following, slot_hashes, state)
            out[3, slot - known] = i
            progress[2] = slot + 1
            out[0, i] = count
            out[1, count] = slot
            out[2, count] = i
            count += 1
            continue
        if slot >= known:  # its group is that of its first row
            out[0, i] = out[0, out[3, slot - known]]
            continue
        # Slots that follow each other are spread: side by side here, others would walk along all of them.
        at = np.int64((np.uint64(slot) * _MIX) >> np.uint64(32)) & mask
        group = table[at]
        while group >= 0 and out[1, group] != slot:
            at = (at + 1) & mask
            group = table[at]
        if group < 0:
            group = count
            table[at] = group
            out[1, group] = slot
            out[2, group] = i
            count += 1
        out[0, i] = group
    progress[0] = len(hashes)
    progress[1] = count
    return 1


def locate_keys_twin(
    keys: Int64s, rows: Int64s, count: int, linked: Iterable[int], known: int
) -> tuple[list[int], list[int], list[int], list[int]]:
    """(group of each of ``count`` rows, slots, first rows, rows of new slots); ``linked``: the slots that count."""
    slot_of = {_key_twin(keys, slot): slot for slot in linked}
    groups: dict[int, int] = {}
    of_row: list[int] = []
    slots: list[int] = []
    firsts: list[int] = []
    fresh: list[int] = []
    for i in range(count):
        key = _key_twin(rows, i)
        if key not in slot_of:
            slot_of[key] = known + len(fresh)
            fresh.append(i)
        slot = slot_of[key]
        if slot not in groups:
            groups[slot] = len(groups)
            slots.append(slot)
            firsts.append(i)
        of_row.append(groups[slot])
    return of_row, slots, firsts, fresh


def _key_twin(described: Int64s, row: int) -> tuple[object, ...]:
    """What tells the row's key from others, to SQL; NULL is None."""
    values = [(int(item[0]), cell(item, row)) for item in described[0]]
    return tuple(None if value is None else (sql_key(kind, value),) for kind, value in values)


def _bucket_twin(key_hash: int, state: Int64s) -> int:
    mask, split = int(state[0]), int(state[1])
    bucket = key_hash & mask
    return key_hash & (2 * mask + 1) if bucket < split else bucket


@kernel(VOID(I64, I64, write(I64), write(I64), read(U64), write(I64)))
def insert_slots(first, stop, head, following, slot_hashes, state):  # type: ignore[no-untyped-def]
    """Links the slots ``first <= s < stop`` in; splits one bucket for each.

    head: at least ``buckets_in_use(state) + stop - first`` entries, those not in use -1.
    """
    for slot in range(first, stop):
        _link(slot, head, following, slot_hashes, state)


def insert_slots_twin(
    first: int, stop: int, head: Int64s, following: Int64s, slot_hashes: UInt64s, state: Int64s
) -> None:
    for slot in range(first, stop):
        _link_twin(slot, _bucket_twin(int(slot_hashes[slot]), state), head, following)
        mask, old = int(state[0]), int(state[1])
        chain: list[int] = []
        walk = int(head[old])
        while walk >= 0:
            chain.append(walk)
            walk = int(following[walk])
        head[old] = -1
        for member in chain:
            _link_twin(member, int(slot_hashes[member]) & (2 * mask + 1), head, following)
        state[:] = [2 * mask + 1, 0] if old + 1 > mask else [mask, old + 1]


def _link_twin(slot: int, bucket: int, head: Int64s, following: Int64s) -> None:
    following[slot] = head[bucket]
    head[bucket] = slot


@kernel(VOID(read(I64), write(I64), write(I64), read(U64), read(I64)))
def erase_slots(slots, head, following, slot_hashes, state):  # type: ignore[no-untyped-def]
    """Unlinks ``slots``; each must be linked."""
    for i in range(len(slots)):
        slot = slots[i]
        bucket = _bucket(slot_hashes[slot], state[0], state[1])
        walk = head[bucket]
        if walk == slot:
            head[bucket] = following[slot]
            continue
        while following[walk] != slot:
            walk = following[walk]
        following[walk] = following[slot]


def erase_slots_twin(slots: Int64s, head: Int64s, following: Int64s, slot_hashes: UInt64s, state: Int64s) -> None:
    for slot in slots.tolist():
        bucket = _bucket_twin(int(slot_hashes[slot]), state)
        chain: list[int] = []
        walk = int(head[bucket])
        while walk >= 0:
            chain.append(walk)
            walk = int(following[walk])
        chain.remove(slot)
        head[bucket] = -1
        for member in reversed(chain):
            _link_twin(member, bucket, head, following)


def buckets_in_use(state: Int64s) -> int:
    """How many entries of ``head`` are buckets."""
    return int(state[0]) + 1 + int(state[1])
