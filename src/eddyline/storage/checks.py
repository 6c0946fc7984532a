"""What a commit is checked for before anything is written: rows that are retracted exist, keys stay unique."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.text_io import format_column, sample_rows
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.taking import take_values
from eddyline.repr.time import Time
from eddyline.storage.collection import Collection
from eddyline.trace.duplicates import all_ascend, first_equal
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Run, Uint64s, consolidate

__all__ = ["check_append"]


def check_append(collection: Collection, batch: Batch, run: Run, time: Time, hasher: Hasher) -> None:
    """Refuses ``batch``, which is to be ``run`` at ``time``, if it breaks the table.

    Raises 22023 for a retraction of a row that is not there, 23505 for a second row with a key.  Cost: one probe of
    the touched keys; nothing for insertions into a table without a key.
    """
    if not len(run):
        return
    net, hashes = run.batch(), run.key_hashes
    if collection.key is None:
        if int(net.diffs.min()) > 0:
            return
        back = np.flatnonzero(net.diffs < 0)
        net, hashes = net.take(back), hashes[back]
    elif len(net) == 1 and _is_new(collection, net, time):
        return
    # A run is sorted by them: ascending ones are of keys that differ.
    first = np.arange(len(net), dtype=np.int64) if all_ascend(hashes) else _first_with_key(collection, net, hasher)
    live = _live_rows(collection, net, first, hashes, time)
    if len(live):
        net = consolidate(Batch.concat(collection.types, [live, net]), hasher)
        if not len(net):
            return
        first = _first_with_key(collection, net, hasher)
    if int(net.diffs.min()) < 0:
        raise _missing_row(collection, net.take(np.flatnonzero(net.diffs < 0)[:1]))
    if collection.key is not None:
        crowded = _crowded(net, first)
        if len(crowded):
            raise _duplicate(collection, batch, net.take(crowded), hasher)


def _is_new(collection: Collection, row: Batch, time: Time) -> bool:
    """Whether it is one row more, with a key that no row has: so it is mostly, and told without making a column.

    False says nothing.
    """
    if int(row.diffs[0]) != 1:
        return False
    key = tuple([row.columns[c][0].as_py() for c in collection.layout.key])
    return collection.finds_nothing(key, time)


def _first_with_key(collection: Collection, batch: Batch, hasher: Hasher) -> Int64s:
    """For each row the lowest one with an equal key."""
    key = collection.layout.key
    columns = tuple(batch.columns[c] for c in key)
    return first_equal(columns, tuple(batch.types[c] for c in key), len(batch), hasher)


def _live_rows(collection: Collection, touched: Batch, first: Int64s, hashes: Uint64s, time: Time) -> Batch:
    """The rows at ``time`` that have one of the touched keys, whose hashes are given."""
    columns = tuple(touched.columns[c] for c in collection.layout.key)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    if len(distinct) < len(first):
        columns, hashes = tuple(take_values(c, distinct) for c in columns), hashes[distinct]
    return collection.lookup(columns, time, hashes)


def _crowded(after: Batch, first: Int64s) -> Int64s:
    """The first rows of those keys that more than one row has."""
    repeated = np.flatnonzero(first != np.arange(len(first)))
    totals = after.diffs.copy()
    np.add.at(totals, first[repeated], after.diffs[repeated])
    return np.flatnonzero(totals > 1)


def _duplicate(collection: Collection, batch: Batch, crowded: Batch, hasher: Hasher) -> Exception:
    """23505 for the crowded key that ``batch`` inserts first."""
    key = collection.layout.key
    types = tuple(batch.types[c] for c in key)
    both = [crowded, batch.take(np.flatnonzero(batch.diffs > 0))]
    columns = tuple(pa.concat_arrays([b.columns[c] for b in both]) for c in key)
    first = first_equal(columns, types, sum(map(len, both)), hasher)
    inserted = np.flatnonzero(first[len(crowded) :] < len(crowded))
    at = len(crowded) + int(inserted[0]) if len(inserted) else 0
    names = ", ".join(collection.names[c] for c in key)
    texts = [format_column(c.slice(at, 1), t)[0].as_py() for c, t in zip(columns, types, strict=True)]
    values = ", ".join(texts)
    return make_error(
        "23505",
        f'duplicate key value violates unique constraint "{collection.constraint}"',
        detail=f"Key ({names})=({values}) already exists.",
    )


def _missing_row(collection: Collection, row: Batch) -> Exception:
    values = sample_rows(row.columns, row.types)[0]
    return make_error(
        "22023",
        f'a row to be removed is not in table "{collection.title}"',
        detail=f"Row {values} is missing {-int(row.diffs[0])} time(s).",
    )
