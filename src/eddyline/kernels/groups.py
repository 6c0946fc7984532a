"""The hash index of a group table: chains of slots per bucket, grown one bucket at a time (linear hashing).

A *slot* is a group's number.  ``head[b]`` is the first slot of bucket *b* and ``following[s]`` the next one of its
chain, -1 at the end.  ``state`` is ``[mask, split]``: buckets below ``split`` use one more bit of the hash than
``mask`` has.  Each insertion splits at most one bucket, so that no insertion pays for a rehash of the whole.
Equal hashes are candidates only; the caller compares the keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import I64, U64, VOID, read, write

__all__ = [
    "buckets_in_use",
    "erase_slots",
    "erase_slots_twin",
    "find_slots",
    "find_slots_twin",
    "first_of_hash",
    "first_of_hash_twin",
    "insert_slots",
    "insert_slots_twin",
    "number_groups",
    "number_groups_twin",
]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


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


@kernel(VOID(read(U64), read(I64), read(I64), read(I64), read(U64), read(I64), write(I64)))
def find_slots(hashes, after, head, following, slot_hashes, state, out):  # type: ignore[no-untyped-def]
    """``out[i]``: the next slot of ``hashes[i]`` in its chain, -1 if there is none.

    ``after[i]``: the candidate to go on from, -1 to begin at the head of the chain.
    """
    for i in range(len(hashes)):
        slot = following[after[i]] if after[i] >= 0 else head[_bucket(hashes[i], state[0], state[1])]
        while slot >= 0 and slot_hashes[slot] != hashes[i]:
            slot = following[slot]
        out[i] = slot


def find_slots_twin(
    hashes: UInt64s,
    after: Int64s,
    head: Int64s,
    following: Int64s,
    slot_hashes: UInt64s,
    state: Int64s,
    out: Int64s,
) -> None:
    for i, key_hash in enumerate(hashes.tolist()):
        slot = int(following[after[i]]) if after[i] >= 0 else int(head[_bucket_twin(key_hash, state)])
        while slot >= 0 and int(slot_hashes[slot]) != key_hash:
            slot = int(following[slot])
        out[i] = slot


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
