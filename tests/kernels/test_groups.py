"""The group index against its twins and against a dict."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.kernels import groups
from eddyline.kernels.groups import Int64s, UInt64s


def index(slots: int) -> tuple[Int64s, Int64s, Int64s]:
    return np.full(slots + 16, -1, np.int64), np.full(slots, -1, np.int64), np.array([7, 0], np.int64)


def hashes(rng: np.random.Generator, count: int, distinct: int) -> UInt64s:
    pool = rng.integers(0, 2**63, distinct).astype(np.uint64)
    return pool[rng.integers(0, distinct, count)]


@pytest.mark.parametrize(("count", "distinct"), [(0, 1), (1, 1), (500, 3), (500, 200), (500, 100_000)])
def test_first_of_hash_names_the_first_position_of_each_hash(count: int, distinct: int) -> None:
    keys = hashes(np.random.default_rng(count), count, distinct)
    table = np.full(1024, -1, np.int64)
    fast, slow = np.empty(count, np.int64), np.empty(count, np.int64)
    groups.first_of_hash(keys, table, fast)
    groups.first_of_hash_twin(keys, table, slow)
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize(("count", "distinct"), [(0, 1), (1, 1), (500, 1), (500, 60), (500, 100_000)])
def test_groups_are_numbered_in_the_order_of_their_first_rows(count: int, distinct: int) -> None:
    keys = hashes(np.random.default_rng(count), count, distinct)
    leader = np.empty(count, np.int64)
    groups.first_of_hash_twin(keys, np.empty(0, np.int64), leader)
    fast, slow = (
        (np.empty(count, np.int64), np.empty(count, np.int64)),
        (
            np.empty(count, np.int64),
            np.empty(count, np.int64),
        ),
    )
    found = groups.number_groups(leader, *fast)
    assert found == groups.number_groups_twin(leader, *slow) == len(set(keys.tolist()))
    assert np.array_equal(fast[0], slow[0]) and np.array_equal(fast[1][:found], slow[1][:found])
    assert np.array_equal(keys[fast[1][:found]][fast[0]], keys)


@pytest.mark.parametrize("distinct", [2, 300, 100_000])
def test_the_index_splits_erases_and_finds_as_its_twin(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    keys = hashes(rng, 1500, distinct)
    fast, slow = index(1500), index(1500)
    for first, stop in ((0, 100), (100, 101), (101, 1500)):
        groups.insert_slots(first, stop, fast[0], fast[1], keys, fast[2])
        groups.insert_slots_twin(first, stop, slow[0], slow[1], keys, slow[2])
        assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))
        assert groups.buckets_in_use(fast[2]) == 8 + stop
    gone = rng.permutation(1500)[:600].astype(np.int64)
    groups.erase_slots(gone, fast[0], fast[1], keys, fast[2])
    groups.erase_slots_twin(gone, slow[0], slow[1], keys, slow[2])
    assert all(np.array_equal(a, b) for a, b in zip(fast[::2], slow[::2], strict=True))
    live = set(range(1500)) - set(gone.tolist())
    wanted = np.unique(keys)
    found: dict[int, set[int]] = {int(k): set() for k in wanted}
    after = np.full(len(wanted), -1, np.int64)
    while len(wanted):
        out, twin = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
        groups.find_slots(wanted, after, fast[0], fast[1], keys, fast[2], out)
        groups.find_slots_twin(wanted, after, fast[0], fast[1], keys, fast[2], twin)
        assert np.array_equal(out, twin)
        for key, slot in zip(wanted[out >= 0].tolist(), out[out >= 0].tolist(), strict=True):
            found[key].add(slot)
        wanted, after = wanted[out >= 0], out[out >= 0]
    assert found == {key: {s for s in live if int(keys[s]) == key} for key in found}
