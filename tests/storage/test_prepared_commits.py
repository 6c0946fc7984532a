"""Commits in two halves: prepared where later ones see them, published or taken back; rows out and in again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DatabaseError
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import INTEGER, TEXT
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

TYPES = (INTEGER, TEXT)
Row = tuple[int, str]


def batch(rows: Sequence[Row], diffs: Sequence[int] | None = None) -> Batch:
    columns = (pa.array([r[0] for r in rows], pa.int32()), pa.array([r[1] for r in rows], pa.large_string()))
    signs = np.array(diffs if diffs is not None else [1] * len(rows), np.int64)
    return Batch(TYPES, columns, np.zeros(len(rows), np.int64), signs)


def contents(batches: Iterable[Batch]) -> dict[Row, int]:
    found: dict[Row, int] = {}
    for b in batches:
        for row, diff in zip(zip(*(c.to_pylist() for c in b.columns), strict=True), b.diffs.tolist(), strict=True):
            found[row] = found.get(row, 0) + diff
    return {r: d for r, d in found.items() if d}


def new_store() -> TableStore:
    store = TableStore(Hasher(1), retention_us=0)
    for id, key in (("a", (0,)), ("b", None)):
        store.create_table(id, TYPES, key=key, names=("id", "name"), table=id, constraint=f"{id}_pkey", at=Time(0))
    store.append({}, Time(0))
    return store


def test_a_prepared_commit_is_checked_against_and_not_seen() -> None:
    store = new_store()
    prepared = store.prepare({"a": batch([(1, "x")])}, Time(5))
    assert store.tables_upper == 1
    assert store.newest_write(["a"]) == 0
    assert store.newest_prepared(["a"]) == 5
    with pytest.raises(DatabaseError) as caught:
        store.prepare({"a": batch([(1, "y")])}, Time(6))
    assert caught.value.sqlstate == "23505"
    store.publish(prepared)
    assert contents(store.snapshot("a", Time(5))) == {(1, "x"): 1}
    assert store.newest_write(["a"]) == 5


def test_commits_that_are_taken_back_leave_nothing_behind() -> None:
    store = new_store()
    store.append({"a": batch([(1, "x")])}, Time(1))
    first = store.prepare({"a": batch([(2, "y")]), "b": batch([(7, "z")] * 3)}, Time(2))
    second = store.prepare({"a": batch([(2, "y"), (1, "x")], [-1, -1])}, Time(3))
    store.take_back(second)
    store.take_back(first)
    assert store.newest_prepared(["a", "b"]) == 1
    store.append({"a": batch([(2, "new")])}, Time(4))
    assert contents(store.snapshot("a", Time(4))) == {(1, "x"): 1, (2, "new"): 1}
    assert contents(store.snapshot("b", Time(4))) == {}


def test_a_reader_gets_the_commits_that_were_published_alone() -> None:
    store = new_store()
    (reader,) = store.open_source("a", Time(0))
    lost = store.prepare({"a": batch([(1, "x")])}, Time(1))
    (late,) = store.open_source("a", Time(0))
    store.take_back(lost)
    store.append({"a": batch([(2, "y")])}, Time(2))
    for r in (reader, late):
        found: list[Batch] = []
        while r.pending():
            found += r.poll(1000).rows
        assert contents(found) == {(2, "y"): 1}


def test_what_a_file_of_rows_has_at_a_time_behind_the_last_commit_is_restored_at_that() -> None:
    """It has the last time that was closed: readers close times, too."""
    store = TableStore(Hasher(1), retention_us=0)
    store.create_table("a", TYPES, key=(0,), names=("id", "name"), table="a", constraint="a_pkey", at=Time(5))
    store.restore([("a", batch([(1, "x")]).advanced(Time(12)))], Time(9), since=Time(5))
    assert store.newest_write(["a"]) == 9
    assert [contents(store.snapshot("a", Time(time))) for time in (8, 9)] == [{}, {(1, "x"): 1}]


def test_what_is_restored_is_one_up_to_a_time_and_told_apart_behind_it() -> None:
    store = TableStore(Hasher(1), retention_us=0)
    for id, key in (("a", (0,)), ("b", None)):
        store.create_table(id, TYPES, key=key, names=("id", "name"), table=id, constraint=f"{id}_pkey", at=Time(5))
    parts: list[tuple[str, int, list[Row], list[int]]] = [
        ("a", 9, [(1, "x"), (3, "z")], [-1, 1]),
        ("b", 2, [(7, "w")], [1]),
        ("a", 3, [(1, "x")], [1]),
        ("a", 7, [(2, "y")], [1]),
        ("a", 5, [(4, "v")], [1]),
    ]
    store.restore(
        ((id, batch(rows, diffs).advanced(Time(at))) for id, at, rows, diffs in parts), Time(9), since=Time(5)
    )
    hold = store.hold_all()
    store.inherit(Time(20))
    assert (store.since("a"), store.since("b"), store.tables_upper) == (5, 5, 21)
    assert [store.newest_write([id]) for id in ("a", "b")] == [9, 5]
    there = {5: {1, 4}, 6: {1, 4}, 7: {1, 2, 4}, 8: {1, 2, 4}, 9: {2, 3, 4}, 20: {2, 3, 4}}
    for time, ids in there.items():
        assert {id for id, _ in contents(store.snapshot("a", Time(time)))} == ids
        assert contents(store.snapshot("b", Time(time))) == {(7, "w"): 1}
    (late,) = store.open_source("a", Time(6))
    found: list[Batch] = []
    while late.pending():
        found += late.poll(1000).rows
    behind = [b.take(np.flatnonzero(b.times > 6)) for b in found]
    assert sorted(t for b in behind for t in b.times.tolist()) == [7, 9, 9], "each at its own time"
    with pytest.raises(DatabaseError):
        store.append({"a": batch([(2, "again")])}, Time(21))
    store.append({"a": batch([(1, "again")])}, Time(22))
    hold.close()
    store.append({"a": batch([(9, "q")])}, Time(23))
    while store.work(1_000):
        continue
    assert {id for id, _ in contents(store.snapshot("a", Time(23)))} == {1, 2, 3, 4, 9}


@pytest.mark.parametrize("rows", [0, 1, 1000, 200_000 if Hasher(1).bits == 64 else 3000])
def test_rows_go_out_in_slices_and_in_again(rows: int) -> None:
    rng = random.Random(rows)
    store = new_store()
    keys = list(range(rows))
    for start in range(0, rows, 50_000):
        part = keys[start : start + 50_000]
        store.append(
            {"a": batch([(k, f"v{k % 7}") for k in part]), "b": batch([(k % 97, "w") for k in part])}, Time(1 + start)
        )
    gone = rng.sample(keys, rows // 10)
    time = store.tables_upper
    store.append({"a": batch([(k, f"v{k % 7}") for k in gone], [-1] * len(gone))}, Time(time))
    unseen = store.prepare({"a": batch([(-1, "unseen")])}, Time(time + 1))
    out = {id: store.stored_rows(id) for id in ("a", "b")}
    store.take_back(unseen)
    other = new_store()
    for id, found in out.items():
        assert found is not None
        at, slices = found
        assert int(at) == time
        parts = list(slices)
        assert all((part.diffs > 0).all() for part in parts), "consolidated"
        assert max(map(len, parts), default=0) < 80_000
        other.restore(((id, part) for part in parts), Time(at))
    for id in ("a", "b"):
        assert contents(other.snapshot(id, Time(time))) == contents(store.snapshot(id, Time(time)))
    with pytest.raises(DatabaseError):
        other.append({"a": batch([(keys[0] if rows else 5, "again")] * 2)}, Time(time + 1))
    assert store.stored_rows("nowhere") is None


def test_what_was_checked_is_looked_at_again_only_if_there_was_a_commit_since() -> None:
    store = new_store()
    store.append({"a": batch([(1, "x")])}, Time(1))
    store.publish(store.prepare({"a": batch([(2, "y")])}, Time(3), {"a": Time(1)}))
    for at in (Time(1), Time(2)):
        with pytest.raises(DatabaseError) as caught:
            store.prepare({"a": batch([(2, "again")])}, Time(5), {"a": at})
        assert caught.value.sqlstate == "23505"
    pending = store.prepare({"a": batch([(3, "z")])}, Time(5), {"a": Time(3)})
    with pytest.raises(DatabaseError):  # it is not visible, and counts
        store.prepare({"a": batch([(3, "again")])}, Time(6), {"a": Time(4)})
    store.take_back(pending)
    store.append({"a": batch([(3, "other")])}, Time(6), {"a": Time(3)})
    assert contents(store.snapshot("a", Time(6))) == {(1, "x"): 1, (2, "y"): 1, (3, "other"): 1}
