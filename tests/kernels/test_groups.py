"""The group index against its twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute.operators.key_log import KeyLog
from eddyline.kernels import groups
from eddyline.kernels.cells import WORDS
from eddyline.kernels.groups import Int64s, UInt64s
from eddyline.kernels.kernel import Late
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    SqlType,
)
from eddyline.testing.columns import random_column
from eddyline.trace.columns import cell_kinds, describe
from eddyline.trace.hasher import Hasher


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
def test_the_index_splits_and_erases_as_its_twin(distinct: int) -> None:
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
    assert linked(fast[0], fast[1]) == set(range(1500)) - set(gone.tolist())


def linked(head: Int64s, following: Int64s) -> set[int]:
    """The slots in all chains."""
    found: list[int] = []
    for slot in head.tolist():
        while slot >= 0:
            found.append(slot)
            slot = int(following[slot])
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("sql_type", [SMALLINT, INTEGER, BIGINT, BOOLEAN, REAL, DOUBLE, DATE, TIMESTAMP], ids=str)
def test_words_are_located_by_their_hashes_alone(sql_type: SqlType) -> None:
    assert cell_kinds((sql_type,))[0] in WORDS
    locate_as_twin((sql_type,), 64, exact=True)


@pytest.mark.parametrize("bits", [64, 5, 0])
@pytest.mark.parametrize("types", [(TEXT,), (BIGINT, DOUBLE), (NUMERIC, INTERVAL, BOOLEAN), ()], ids=str)
def test_keys_are_located_as_by_its_twin(types: tuple[SqlType, ...], bits: int) -> None:
    locate_as_twin(types, bits, exact=False)


def locate_as_twin(types: tuple[SqlType, ...], bits: int, *, exact: bool) -> None:
    """Batch after batch, with slots that are erased in between, and room that runs out in the middle."""
    rng, hasher, kinds = Random(f"{types}{bits}"), Hasher(7, bits=bits), cell_kinds(types)
    log = KeyLog(types)
    head, following, state = index(4)
    slot_hashes = np.zeros(4, np.uint64)
    calls = 0
    for rows in (1, 30, 0, 200, 5, 120):
        asked = rows if types else min(rows, 1)
        pool = tuple(random_column(t, max(1, rows // 3), rng, nulls=0 if exact else 0.2) for t in types)
        picked = pa.array([rng.randrange(max(1, rows // 3)) for _ in range(asked)], pa.int64())
        columns = tuple(c.take(picked) for c in pool)
        described = describe(columns, kinds)[None]
        before = linked(head, following)
        expected = groups.locate_keys_twin(log.descriptors, described, asked, before, log.rows)
        table = np.full(1 << max(4, (2 * asked).bit_length()), -1, np.int64)
        progress = np.array((0, 0, log.rows, log.rows), np.int64)
        out = np.full((4, asked), -7, np.int64)
        hashed = hasher.hash_described(described[0], asked)
        while not groups.locate_keys(
            log.descriptors, described, hashed, int(exact), table, head, following, slot_hashes, state, progress, out
        ):
            calls += 1
            more = int(progress[2]) + rng.randrange(1, 20)
            head = np.concatenate((head, np.full(more, -1)))
            following = np.concatenate((following, np.full(more, -1)))
            slot_hashes = np.concatenate((slot_hashes, np.zeros(more, np.uint64)))
        of_row, slots, firsts, fresh = expected
        assert progress.tolist() == [asked, len(slots), log.rows + len(fresh), log.rows]
        assert out[0].tolist() == of_row
        assert out[1, : len(slots)].tolist() == slots
        assert out[2, : len(slots)].tolist() == firsts
        assert out[3, : len(fresh)].tolist() == fresh
        assert linked(head, following) == before | set(range(log.rows, log.rows + len(fresh)))
        log.append(columns, np.array(fresh, np.int64))
        gone = np.array([s for s in sorted(linked(head, following)) if rng.random() < 0.3], np.int64)
        groups.erase_slots(gone, head, following, slot_hashes, state)
    assert calls or types in ((), (BOOLEAN,)), "room ran out"


class CountedReads:
    """An array that counts how often it is read."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.reads = 0
        self.ctypes = array.ctypes

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: int) -> Any:
        self.reads += 1
        return self.array[at]

    def __setitem__(self, at: int, value: int) -> None:
        self.array[at] = value


def reads_a_row(batches: Sequence[UInt64s]) -> tuple[float, float]:
    """Of the table of a call's groups, and of chains of slots, for each row of the last batch.  Hashes are keys."""
    slots = sum(map(len, batches))
    head, following, state = index(slots)
    slot_hashes, at = CountedReads(np.zeros(slots, np.uint64)), 0
    chains = CountedReads(following)
    nothing = np.zeros((1, 0, 6), np.int64)
    for asked in batches:
        table = CountedReads(np.full(1 << max(4, (2 * len(asked) - 1).bit_length()), -1, np.int64))
        slot_hashes.reads = chains.reads = 0
        progress = np.array((0, 0, at, at), np.int64)
        out = np.empty((4, len(asked)), np.int64)
        with np.errstate(over="ignore"):
            done = plain(groups.locate_keys.function)(
                nothing, nothing, asked, 1, table, head, chains, slot_hashes, state, progress, out
            )
        assert done == 1
        at = int(progress[2])
    return table.reads / len(asked), (slot_hashes.reads + chains.reads) / len(asked)


def plain(function: Any) -> Any:
    """A kernel's function in Python, and what it calls."""
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        called = names.get(name)
        if isinstance(called, Late) and called.function is not None:  # else it reads memory, for keys that are no words
            names[name] = plain(called.function)
    return FunctionType(function.__code__, names)


ORDERS: dict[str, Callable[[UInt64s], UInt64s]] = {
    "ascending": lambda keys: keys,
    "descending": lambda keys: keys[::-1].copy(),
    "mixed": lambda keys: np.random.default_rng(1).permutation(keys),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dense", [False, True])
def test_a_row_looks_at_as_many_slots_whatever_the_number_of_groups(dense: bool, order: str) -> None:
    """Some rows are of groups that are there, anywhere, and some of new ones, whose slots follow each other; keys and
    their hashes may as well."""
    rng = np.random.default_rng(2)
    for rows in (256, 2048):
        keys = np.arange(8 * rows, dtype=np.uint64)
        if not dense:
            keys = rng.integers(0, 2**63, 8 * rows).astype(np.uint64)
        there, new = keys[: -rows // 2], keys[-rows // 2 :]
        asked = np.stack((ORDERS[order](rng.choice(there, rows // 2, replace=False)), ORDERS[order](new)), axis=1)
        for batches in ([there, asked.ravel()], [ORDERS[order](keys)]):
            found, walked = reads_a_row(batches)
            assert found <= 4 and walked <= 12, f"{found} and {walked} with {rows} rows"
