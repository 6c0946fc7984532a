"""Tables: atomic commits, refusals, bounds, holds, backlog."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DatabaseError
from eddyline.protocol.sources import Committed
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import INTEGER, TEXT
from eddyline.storage import store as module
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from eddyline.trace.merge import Merge

TYPES = (INTEGER, TEXT)
Row = tuple[int | None, str | None]


def batch(rows: Sequence[Row], diffs: Sequence[int] | None = None, time: int = 0) -> Batch:
    columns = (
        pa.array([r[0] for r in rows], pa.int32()),
        pa.array([r[1] for r in rows], pa.large_string()),
    )
    signs = np.array(diffs if diffs is not None else [1] * len(rows), np.int64)
    return Batch(TYPES, columns, np.full(len(rows), time, np.int64), signs)


def contents(batches: Iterable[Batch]) -> dict[Row, int]:
    found: dict[Row, int] = {}
    for b in batches:
        for row, diff in zip(zip(*(c.to_pylist() for c in b.columns), strict=True), b.diffs.tolist(), strict=True):
            found[row] = found.get(row, 0) + diff
    return {r: d for r, d in found.items() if d}


@pytest.fixture
def store() -> TableStore:
    store = TableStore(Hasher(1), retention_us=0)
    for id, key in (("a", (0,)), ("b", None)):
        store.create_table(id, TYPES, key=key, names=("id", "name"), table=id, constraint=f"{id}_pkey", at=Time(0))
    store.append({}, Time(0))
    return store


def test_commit_is_readable_at_its_time_and_not_before(store: TableStore) -> None:
    hold = store.hold("a", Frontier(0))
    store.append({"a": batch([(1, "x")])}, Time(5))
    assert contents(store.snapshot("a", Time(5))) == {(1, "x"): 1}
    assert contents(store.snapshot("a", Time(4))) == {}
    assert store.upper("a") == 6
    assert store.upper("b") == 6, "a commit closes its time for every table"
    assert (store.last_write("a"), store.last_write("b")) == (5, 0)
    hold.close()


def test_a_time_past_the_upper_or_below_since_is_refused(store: TableStore) -> None:
    store.append({"a": batch([(1, "x")])}, Time(5))
    store.append({"a": batch([(2, "x")])}, Time(9))
    assert store.since("a") == 9
    for time in (8, 10):
        with pytest.raises(DatabaseError) as caught:
            store.snapshot("a", Time(time))
        assert caught.value.sqlstate == "22023"


def test_duplicate_key_is_refused_with_the_key_in_the_detail(store: TableStore) -> None:
    store.append({"a": batch([(1, "x")])}, Time(1))
    with pytest.raises(DatabaseError) as caught:
        store.append({"b": batch([(7, "y")]), "a": batch([(2, "y"), (1, "y")])}, Time(2))
    assert caught.value.sqlstate == "23505"
    assert caught.value.message == 'duplicate key value violates unique constraint "a_pkey"'
    assert caught.value.detail == "Key (id)=(1) already exists."
    assert contents(store.snapshot("a", Time(1))) == {(1, "x"): 1}
    assert store.upper("b") == 2, "nothing of a refused commit is written"
    assert store.last_write("b") == 0


def test_duplicate_key_within_one_commit_is_refused(store: TableStore) -> None:
    with pytest.raises(DatabaseError) as caught:
        store.append({"a": batch([(3, "x"), (4, "x"), (3, "y")])}, Time(1))
    assert caught.value.sqlstate == "23505"
    assert caught.value.detail == "Key (id)=(3) already exists."
    with pytest.raises(DatabaseError):
        store.append({"a": batch([(3, "x"), (3, "x")])}, Time(1))


def test_replacing_a_row_under_its_key_is_one_commit(store: TableStore) -> None:
    store.append({"a": batch([(1, "x"), (2, "y")])}, Time(1))
    store.append({"a": batch([(1, "z"), (1, "x")], [1, -1])}, Time(2))
    assert contents(store.snapshot("a", Time(2))) == {(1, "z"): 1, (2, "y"): 1}


@pytest.mark.parametrize("id", ["a", "b"])
def test_retracting_a_missing_row_is_refused(store: TableStore, id: str) -> None:
    store.append({id: batch([(1, "x")])}, Time(1))
    for missing in ((1, "y"), (2, "x")):
        with pytest.raises(DatabaseError) as caught:
            store.append({id: batch([missing], [-1])}, Time(2))
        assert caught.value.sqlstate == "22023"
        assert id in caught.value.message
    with pytest.raises(DatabaseError):
        store.append({id: batch([(1, "x")], [-2])}, Time(2))
    store.append({id: batch([(1, "x")], [-1])}, Time(2))
    assert contents(store.snapshot(id, Time(2))) == {}


def test_a_table_without_key_keeps_duplicates_and_nulls(store: TableStore) -> None:
    store.append({"b": batch([(None, None), (None, None), (1, None)])}, Time(1))
    store.append({"b": batch([(None, None)], [-1])}, Time(2))
    assert contents(store.snapshot("b", Time(2))) == {(None, None): 1, (1, None): 1}


def test_commit_times_must_increase(store: TableStore) -> None:
    store.append({"a": batch([(1, "x")])}, Time(5))
    with pytest.raises(DatabaseError):
        store.append({"a": batch([(2, "x")])}, Time(5))
    with pytest.raises(DatabaseError):
        store.append({}, Time(4))


def test_lookup_finds_live_rows_of_the_key(store: TableStore) -> None:
    store.append({"a": batch([(i, "x") for i in range(100)])}, Time(1))
    store.append({"a": batch([(7, "x"), (7, "y"), (8, "x")], [-1, 1, -1])}, Time(2))
    keys = (pa.array([7, 8, 9, 1000], pa.int32()),)
    assert contents([store.lookup("a", keys, Time(2))]) == {(7, "y"): 1, (9, "x"): 1}


def test_hold_keeps_old_times_readable_and_release_lets_them_go(store: TableStore) -> None:
    store.append({"a": batch([(1, "x")])}, Time(1))
    hold = store.hold("a", Frontier(1))
    for t in range(2, 40):
        store.append({"a": batch([(t, "x")])}, Time(t))
    assert store.since("a") == 1
    assert len(contents(store.snapshot("a", Time(1)))) == 1
    hold.downgrade(Frontier(20))
    store.work(1000)
    assert store.since("a") == 20
    assert len(contents(store.snapshot("a", Time(20)))) == 20
    hold.close()
    while store.work(1000):
        pass
    assert store.since("a") == 39
    with pytest.raises(DatabaseError):
        store.hold("a", Frontier(3))


def test_reader_gets_history_then_commits_in_order(store: TableStore) -> None:
    hold = store.hold("b", Frontier(0))
    store.append({"b": batch([(1, "x")])}, Time(1))
    reader = store.open_source("b", Time(0))[0]
    store.append({"b": batch([(2, "x")])}, Time(2))
    store.append({"b": batch([(3, "x")])}, Time(3))
    seen: list[tuple[int, int, int]] = []
    while reader.pending():
        polled = reader.poll(1)
        for b in polled.rows:
            seen += [(v, t, polled.frontier) for v, t in zip(b.columns[0].to_pylist(), b.times.tolist(), strict=True)]
    assert seen == [(1, 1, 0), (2, 2, 3), (3, 3, 4)]
    store.append({"a": batch([(1, "x")])}, Time(9))
    assert reader.pending()
    assert reader.poll(10).frontier == 10, "a commit elsewhere closes the time here"
    assert not reader.pending()
    reader.close()
    hold.close()


def test_shares_of_several_readers_are_disjoint_and_complete(store: TableStore) -> None:
    store.append({"b": batch([(i, "x") for i in range(1000)])}, Time(1))
    readers = store.open_source("b", Time(1), 3)
    for t in range(2, 30):
        store.append({"b": batch([(i * t, "y") for i in range(t % 5)])}, Time(t))
    found: list[Batch] = []
    for reader in readers:
        while reader.pending():
            found += reader.poll(64).rows
    assert contents(found) == contents(store.snapshot("b", Time(29)))
    assert sum(map(len, found)) == 1000 + sum(t % 5 for t in range(2, 30))


@pytest.mark.parametrize("key", [(0,), (1,), (1, 0)])
@pytest.mark.parametrize("bits", [64, 2])
def test_shares_by_a_key_have_the_rows_whose_hash_is_theirs(key: tuple[int, ...], bits: int) -> None:
    hasher, at = Hasher(7, bits=bits), Time(29)
    store = TableStore(hasher)
    store.create_table("b", TYPES, key=None, names=("id", "name"), table="b", constraint="", at=Time(0))
    store.append({"b": batch([(i % 50, f"n{i % 7}") for i in range(1000)])}, Time(1))
    readers = store.open_source("b", Time(1), 3, None, key)
    for t in range(2, 30):
        store.append({"b": batch([(i * t, f"n{i}") for i in range(t % 5)])}, Time(t))
    found: list[Batch] = []
    for number, reader in enumerate(readers):
        while reader.pending():
            for rows in reader.poll(64).rows:
                kinds = [TYPES[k] for k in key]
                owners = hasher.hash_rows([rows.columns[k] for k in key], kinds, len(rows)) % np.uint64(3)
                assert (owners == number).all()
                found.append(rows)
        assert reader.poll(1).frontier == at + 1
    assert contents(found) == contents(store.snapshot("b", at))


def test_an_error_and_its_retraction_are_in_one_share_by_a_key(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(1))
    store.hold("v", Frontier(1))
    nothing = batch([])

    def failures(diff: int, time: int) -> Batch:
        texts = pa.array([f"e{n}" for n in range(30)], pa.large_string())
        return Batch(ERR_TYPES, (texts,) * len(ERR_TYPES), np.full(30, time), np.full(30, diff))

    store.write_view("v", nothing, failures(1, 1), Frontier(0), Frontier(2))
    readers = store.open_source("v", Time(1), 3, None, (0,))
    store.write_view("v", nothing, failures(-1, 2), Frontier(2), Frontier(3))
    shares = []
    for reader in readers:
        texts: Counter[str] = Counter()
        seen = 0
        while reader.pending():
            for errors in reader.poll(64).errors:
                seen += len(errors)
                for text, diff in zip(errors.columns[1].to_pylist(), errors.diffs.tolist(), strict=True):
                    texts[text] += diff
        assert not any(texts.values())
        shares.append(seen)
    assert sum(shares) == 60
    assert sum(share > 0 for share in shares) > 1


def test_source_below_since_is_refused(store: TableStore) -> None:
    store.append({"a": batch([(1, "x")])}, Time(1))
    store.append({"a": batch([(2, "x")])}, Time(5))
    with pytest.raises(DatabaseError):
        store.open_source("a", Time(3))


def test_backlog_counts_steady_readers_and_reading_frees_it() -> None:
    store = TableStore(Hasher(1), backlog_rows=10)
    store.create_table("b", TYPES, key=None, names=("id", "name"), table="b", constraint="", at=Time(0))
    reader = store.open_source("b", Time(0))[0]
    store.append({"b": batch([(i, "x") for i in range(20)])}, Time(1))
    assert store.wait_capacity(0), "a reader that hydrates slows nobody down"
    reader.set_steady()
    assert store.backlog()[0] == 20
    assert not store.wait_capacity(0.01)
    assert not store.wait_capacity(None, lambda: True)
    waiter = threading.Thread(target=store.wait_capacity, args=(10,))
    waiter.start()
    while reader.pending():
        reader.poll(100)
    waiter.join(5)
    assert not waiter.is_alive()
    assert store.backlog() == (0, 0)


def test_a_writer_that_waits_for_room_is_told_of_its_cancellation() -> None:
    store = TableStore(Hasher(1), backlog_rows=10)
    store.create_table("b", TYPES, key=None, names=("id", "name"), table="b", constraint="", at=Time(0))
    reader = store.open_source("b", Time(0))[0]
    reader.set_steady()
    store.append({"b": batch([(i, "x") for i in range(20)])}, Time(1))
    asked, cancelled = threading.Semaphore(0), threading.Event()
    found: list[bool] = []

    def is_cancelled() -> bool:
        asked.release()
        return cancelled.is_set()

    waiter = threading.Thread(target=lambda: found.append(store.wait_capacity(None, is_cancelled)))
    waiter.start()
    assert asked.acquire(timeout=60)
    store.look_again()
    assert asked.acquire(timeout=60), "it is asked once more"
    assert waiter.is_alive()
    cancelled.set()
    store.look_again()
    waiter.join(60)
    assert found == [False]
    assert not asked.acquire(blocking=False) or not asked.acquire(blocking=False), "asked when told, and not otherwise"


def test_a_table_that_was_dropped_is_no_backlog() -> None:
    store = TableStore(Hasher(1), backlog_rows=10)
    store.create_table("b", TYPES, key=None, names=("id", "name"), table="b", constraint="", at=Time(0))
    reader = store.open_source("b", Time(0))[0]
    reader.set_steady()
    store.append({"b": batch([(i, "x") for i in range(20)])}, Time(1))
    assert store.backlog()[0] == 20
    store.drop("b")
    assert store.backlog() == (0, 0)
    assert store.wait_capacity(0)
    assert sum(len(b) for b in reader.poll(100).rows) == 20, "its readers keep what they have"


def test_watchers_hear_of_commits_until_they_end(store: TableStore) -> None:
    heard: list[Committed] = []
    end = store.watch(heard.append)
    store.append({"a": batch([(1, "x")]), "b": batch([(1, "x")])}, Time(1))
    store.append({}, Time(2))
    end()
    store.append({}, Time(3))
    assert [h.ids for h in heard] == [frozenset(("a", "b")), frozenset()]


def test_watchers_hear_of_merges_that_a_writer_leaves_once_they_can_get_to_them(
    store: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[bool] = []
    collection = store._collection("a")
    monkeypatch.setattr(module, "_PAYING_ROWS", 1)
    monkeypatch.setattr(module, "_FUEL_PER_ROW", 1)
    store.watch(lambda committed: locked.append(collection.turn.locked()) if committed.merges else None)
    time = 0
    while not locked:
        time += 1
        assert time < 100, "some merge is left"
        store.append({"a": batch([(1000 * time + i, "x") for i in range(1000)])}, Time(time))
    assert locked == [False]
    while store.work(10_000):
        continue
    assert not collection.unmerged


def test_view_has_its_own_upper_and_skips_what_it_has(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(3))
    errors = Batch.empty(ERR_TYPES)
    store.write_view("v", batch([(1, "x")], time=3), errors, Frontier(0), Frontier(4))
    assert (store.upper("v"), store.since("v"), store.last_write("v")) == (4, 3, 3)
    store.write_view("v", batch([(2, "x")], time=5), errors, Frontier(4), Frontier(8))
    again = Batch.concat(TYPES, [batch([(1, "x"), (2, "x")], time=7), batch([(9, "x")], time=9)])
    store.write_view("v", again, errors, Frontier(0), Frontier(10))
    assert contents(store.snapshot("v", Time(9))) == {(1, "x"): 1, (2, "x"): 1, (9, "x"): 1}
    with pytest.raises(DatabaseError):
        store.write_view("v", batch([]), errors, Frontier(12), Frontier(14))
    store.write_view("v", batch([]), errors, Frontier(10), EMPTY)
    assert store.upper("v") == EMPTY
    assert len(contents(store.snapshot("v", Time(10**15)))) == 3


def test_since_follows_when_a_hold_goes_although_nothing_is_written(store: TableStore) -> None:
    hold = store.hold("a", Frontier(0))
    store.append({"a": batch([(1, "x")])}, Time(5))
    store.append({"b": batch([(1, "x")])}, Time(9))
    while store.work(1000):
        pass
    assert (store.since("a"), store.since("b")) == (0, 9)
    hold.close()
    while store.work(1000):
        pass
    assert store.since("a") >= store.last_write("a")
    assert contents(store.snapshot("a", Time(9))) == {(1, "x"): 1}


def test_changes_of_a_view_that_cancel_out_only_move_its_upper(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(0))
    both = batch([(1, "x"), (1, "x")], [1, -1], time=3)
    store.write_view("v", both, Batch.empty(ERR_TYPES), Frontier(0), Frontier(5))
    assert (store.upper("v"), store.last_write("v")) == (5, 0)
    assert contents(store.snapshot("v", Time(4))) == {}


def test_errors_of_a_view_are_raised_until_they_are_gone(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="ratio", as_of=Time(0))

    def errors(diff: int, time: int) -> Batch:
        columns = tuple(
            pa.array([t], pa.large_string()) for t in ("22012", "division by zero", "1 / id", "id = 0", "ratio")
        )
        return Batch(ERR_TYPES, columns, np.array([time]), np.array([diff]))

    store.write_view("v", batch([]), errors(1, 1), Frontier(0), Frontier(2))
    with pytest.raises(DatabaseError) as caught:
        store.snapshot("v", Time(1))
    assert caught.value.sqlstate == "22012"
    assert caught.value.detail == 'in view "ratio", expression 1 / id, row id = 0'
    store.write_view("v", batch([(1, "x")], time=2), errors(-1, 2), Frontier(2), Frontier(3))
    assert contents(store.snapshot("v", Time(2))) == {(1, "x"): 1}


def test_random_commits_equal_a_dictionary() -> None:
    rng = np.random.default_rng(7)
    store = TableStore(Hasher(3, bits=4), retention_us=3)
    store.create_table("a", TYPES, key=(0,), names=("id", "name"), table="a", constraint="a_pkey", at=Time(0))
    model: dict[int, str] = {}
    for t in range(1, 120):
        rows: list[Row] = []
        diffs: list[int] = []
        after = dict(model)
        for _ in range(int(rng.integers(1, 6))):
            key = int(rng.integers(0, 30))
            if key in after:
                rows.append((key, after.pop(key)))
                diffs.append(-1)
            if rng.random() < 0.7:
                after[key] = f"{t}"
                rows.append((key, f"{t}"))
                diffs.append(1)
        if rng.random() < 0.2 and after:
            rows.append((next(iter(after)), "again"))
            diffs.append(1)
            with pytest.raises(DatabaseError):
                store.append({"a": batch(rows, diffs)}, Time(t))
        else:
            store.append({"a": batch(rows, diffs)}, Time(t))
            model = after
        if store.upper("a"):
            now = Time(store.upper("a") - 1)
            assert contents(store.snapshot("a", now)) == dict.fromkeys(model.items(), 1)


def test_staged_rows_appear_with_the_write_that_publishes_them(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(3))
    errors = Batch.empty(ERR_TYPES)
    store.hold("v", Frontier(3))
    reader = store.open_source("v", Time(3))[0]
    for part in range(3):
        store.stage_view("v", batch([(part, "x"), (100 + part, "x")], time=3))
    assert reader.poll(1000).row_count() == 0
    assert store.upper("v") == 0
    store.write_view("v", batch([(9, "x")], time=4), errors, Frontier(0), Frontier(5))
    expected = {(n, "x"): 1 for n in (0, 1, 2, 100, 101, 102)}
    assert contents(store.snapshot("v", Time(3))) == expected
    seen: list[Batch] = []
    while reader.pending():
        polled = reader.poll(2)
        seen += polled.rows
        assert polled.frontier == (5 if sum(map(len, seen)) == 7 else 0)
    assert contents(seen) == contents(store.snapshot("v", Time(4))) == expected | {(9, "x"): 1}


def test_what_a_lost_writer_staged_is_taken_back(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(3))
    errors = Batch.empty(ERR_TYPES)
    store.stage_view("v", batch([(1, "x")], time=3))
    store.stage_view("v", batch([(2, "x")], time=3))
    store.begin_view("v")
    store.stage_view("v", batch([(1, "x")], time=3))
    store.write_view("v", batch([(2, "x")], time=3), errors, Frontier(0), Frontier(4))
    assert contents(store.snapshot("v", Time(3))) == {(1, "x"): 1, (2, "x"): 1}
    store.begin_view("v")
    assert contents(store.snapshot("v", Time(3))) == {(1, "x"): 1, (2, "x"): 1}


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_writers_each_change_is_stored_once_whoever_is_faster(store: TableStore, first: str) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(3))
    store.hold("v", Frontier(3))
    reader, errors = store.open_source("v", Time(3))[0], Batch.empty(ERR_TYPES)
    for writer in ("a", "b"):
        store.begin_view("v", writer)
    for part in range(3):
        for writer in ("a", "b"):
            store.stage_view("v", batch([(part, "x")], time=3), writer)
    rest = batch([(3, "x"), (3, "y")], time=3)
    one, other = (first, "b" if first == "a" else "a")
    store.write_view("v", rest, errors, Frontier(0), Frontier(4), one)
    at_3 = {(0, "x"): 1, (1, "x"): 1, (2, "x"): 1, (3, "x"): 1, (3, "y"): 1}
    assert contents(store.snapshot("v", Time(3))) == at_3
    assert store.size("v")[0] == len(at_3), "what the slower one staged is gone at once"
    both = Batch.concat(TYPES, [batch([(3, "x"), (3, "y")], time=3), batch([(5, "z")], time=5)])
    store.write_view("v", both, errors, Frontier(0), Frontier(6), other)
    assert contents(store.snapshot("v", Time(5))) == at_3 | {(5, "z"): 1}, "the later part of its rows counts"
    store.write_view("v", batch([(5, "z")], time=5), errors, Frontier(4), Frontier(6), one)
    store.stage_view("v", batch([(6, "w")], time=6), one)
    store.write_view("v", batch([]), errors, Frontier(6), EMPTY, one)
    store.write_view("v", batch([(6, "w")], time=6), errors, Frontier(6), EMPTY, other)
    assert store.upper("v") == EMPTY
    seen: list[Batch] = []
    while reader.pending():
        seen += reader.poll(1).rows
    assert contents(seen) == contents(store.snapshot("v", Time(6))) == at_3 | {(5, "z"): 1, (6, "w"): 1}


def test_what_a_lost_writer_staged_goes_when_another_one_has_written_it(store: TableStore) -> None:
    store.create_view("v", TYPES, names=("id", "name"), view="v", as_of=Time(3))
    store.stage_view("v", batch([(1, "x"), (2, "x")], time=3), "lost")
    store.stage_view("v", batch([(1, "x")], time=3), "next")
    assert store.size("v")[0] == 3
    store.write_view("v", batch([(2, "x")], time=3), Batch.empty(ERR_TYPES), Frontier(0), Frontier(4), "next")
    assert contents(store.snapshot("v", Time(3))) == {(1, "x"): 1, (2, "x"): 1}
    assert store.size("v")[0] == 2


def test_a_hold_of_everything_keeps_every_since_and_lets_go_of_it(store: TableStore) -> None:
    hold = store.hold_all()
    hold.downgrade(Frontier(1))
    for time in range(1, 5):
        store.append({"a": batch([(time, "x")]), "b": batch([(time, "x")])}, Time(time))
    while store.work(1 << 20):
        pass
    assert store.since("a") <= 1
    assert store.since("b") <= 1
    hold.close()
    while store.work(1 << 20):
        pass
    assert store.since("a") == store.since("b") == 4


def test_a_large_commit_merges_after_everybody_has_been_told_of_it(
    store: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    work = Merge.work

    def counted(self: Merge, fuel_rows: int) -> int:
        seen.append("merged")
        return work(self, fuel_rows)

    monkeypatch.setattr(Merge, "work", counted)
    store.watch(lambda committed: None if committed.merges else seen.append("told"))
    rows, commits = 2_000, 20
    for time in range(1, commits + 1):
        seen.append("appended")
        store.append({"b": batch([(time * rows + i, "x") for i in range(rows)])}, Time(time))
    assert "merged" in seen
    steps = [step for step in seen if step != "merged"]
    assert steps == ["appended", "told"] * commits
    assert all((before, after) != ("appended", "merged") for before, after in pairwise(seen))
    assert store.size("b")[0] == commits * rows


def test_a_merge_that_fails_fails_no_commit(store: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Merge, fuel_rows: int) -> int:
        raise MemoryError

    rows, commits = 2_000, 5
    with monkeypatch.context() as patched:
        patched.setattr(Merge, "work", fail)
        for time in range(1, commits):
            store.append({"b": batch([(time * rows + i, "x") for i in range(rows)])}, Time(time))
    store.append({"b": batch([(commits * rows + i, "x") for i in range(rows)])}, Time(commits))
    while store.work(1 << 16):
        continue
    assert sum(contents(store.snapshot("b", Time(commits))).values()) == commits * rows
