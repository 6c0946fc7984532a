"""Selective readers get the rows of their selection, and nobody waits on rows of others."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.protocol.sources import Committed, Selection, SourceReader
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import MIN_TIME, Frontier, Time
from eddyline.repr.types import BIGINT, INTEGER, TEXT
from eddyline.storage.collection import Collection
from eddyline.storage.followers import FollowerQueues
from eddyline.storage.routes import Routes
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

TYPES = (INTEGER, TEXT)
Row = tuple[int | None, str | None]


def _store(bits: int = 64) -> TableStore:
    store = TableStore(Hasher(5, bits=bits))
    store.create_table("t", TYPES, key=None, names=("k", "s"), table="t", constraint="", at=Time(0))
    return store


def _batch(rows: list[Row]) -> Batch:
    columns = (pa.array([r[0] for r in rows], pa.int32()), pa.array([r[1] for r in rows], pa.large_string()))
    return Batch(TYPES, columns, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64))


def _drain(reader: SourceReader) -> list[Row]:
    found: list[Row] = []
    while reader.pending():
        for batch in reader.poll(1000).rows:
            rows = zip(*(c.to_pylist() for c in batch.columns), strict=True)
            found += (row for row, diff in zip(rows, batch.diffs.tolist(), strict=True) for _ in range(diff))
    return found


def _wanted(row: Row, selection: Selection | None) -> bool:
    return selection is None or row[selection.column] in selection.values


@pytest.mark.parametrize("bits", [64, 3])
@pytest.mark.parametrize("seed", range(5))
def test_each_reader_gets_the_rows_of_its_selection(seed: int, bits: int) -> None:
    rng, store = random.Random(seed), _store(bits)
    choices = [
        None,
        *(Selection(0, BIGINT, (k,)) for k in range(6)),
        Selection(0, BIGINT, (1, 2, None)),
        Selection(0, BIGINT, (4, 2, 5)),
        *(Selection(1, TEXT, (s,)) for s in "abc"),
        Selection(1, TEXT, (None,)),
    ]
    readers = [(s, store.open_source("t", Time(0), 2, s)) for s in choices]
    committed: list[Row] = []
    for time in range(1, 30):
        rows: list[Row] = [
            (rng.choice([None, *range(8)]), rng.choice([None, *"abcde"])) for _ in range(rng.choice([1, 2, 40]))
        ]
        committed += rows
        store.append({"t": _batch(rows)}, Time(time))
    for selection, shares in readers:
        found = [row for share in shares for row in _drain(share)]
        wanted = [row for row in committed if _wanted(row, selection)]
        kept = [row for row in found if _wanted(row, selection)]
        assert sorted(kept, key=repr) == sorted(wanted, key=repr)
        if bits == 64:
            assert len(found) == len(wanted), "rows of others were queued"
        assert all(share.poll(1).frontier == 30 for share in shares)


def test_only_the_readers_with_rows_are_named_to_the_watchers() -> None:
    store = _store()
    heard: list[Committed] = []
    store.watch(heard.append)
    one, two = (store.open_source("t", Time(0), 1, Selection(0, BIGINT, (k,)))[0] for k in (1, 2))
    store.open_source("t", Time(0), 1)
    for number, row in enumerate([(1, "a"), (2, "b"), (3, "c")]):
        store.append({"t": _batch([row])}, Time(number + 1))
    assert [list(h.touched) for h in heard] == [[one], [two], []]
    assert [h.rows for h in heard] == [1, 1, 1]


def test_a_reader_that_is_passed_by_owes_nothing_and_still_learns_the_frontier() -> None:
    store = _store()
    (reader,) = store.open_source("t", Time(0), 1, Selection(0, BIGINT, (7,)))
    assert _drain(reader) == []
    reader.set_steady()
    store.append({"t": _batch([(1, "a")] * 50)}, Time(1))
    assert store.backlog() == (0, 0)
    assert reader.pending()
    polled = reader.poll(10)
    assert (polled.rows, polled.frontier) == ([], 2)
    store.append({"t": _batch([(7, "a")])}, Time(2))
    assert store.backlog()[0] == 1
    reader.close()
    assert store.backlog() == (0, 0)


def test_errors_reach_every_reader_whatever_it_selects() -> None:
    store = _store()
    store.create_view("v", TYPES, names=("k", "s"), view="v", as_of=Time(0))
    (reader,) = store.open_source("v", Time(0), 1, Selection(0, BIGINT, (7,)))
    texts = tuple(pa.array([t], pa.large_string()) for t in ("22012", "division by zero", "1 / k", "k = 1", "v"))
    errors = Batch(ERR_TYPES, texts, np.ones(1, np.int64), np.ones(1, np.int64))
    rows = Batch(TYPES, _batch([(1, "a")]).columns, np.ones(1, np.int64), np.ones(1, np.int64))
    store.write_view("v", rows, errors, Frontier(MIN_TIME), Frontier(2))
    polled = [reader.poll(10) for _ in range(3)]
    assert sum(len(batch) for each in polled for batch in each.errors) == 1
    assert sum(len(batch) for each in polled for batch in each.rows) == 0
    assert polled[-1].frontier == 2


def test_a_reader_that_opens_while_a_commit_is_routed_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _store()
    store.open_source("t", Time(0), 1, Selection(0, BIGINT, (1,)))
    late: list[SourceReader] = []
    routed = FollowerQueues._routes

    def routes(self: FollowerQueues, collection: Collection) -> Routes:
        found = routed(self, collection)
        if not late:
            # As if another thread came between the routing and the commit's publication.
            late.append(None)  # type: ignore[arg-type]  # keeps this from happening again
            self._state.release()
            late[0] = store.open_source("t", Time(0), 1, Selection(0, BIGINT, (2,)))[0]
            self._state.acquire()
        return found

    monkeypatch.setattr(FollowerQueues, "_routes", routes)
    store.append({"t": _batch([(1, "a"), (2, "b")])}, Time(1))
    assert _drain(late[0]) == [(2, "b")]
