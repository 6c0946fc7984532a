"""What a commit is checked for before anything is written: rows that are retracted exist, keys stay unique."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.text_io import format_column, sample_rows
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.storage.collection import Collection
from eddyline.trace.duplicates import first_equal
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import consolidate

__all__ = ["check_append"]


def check_append(collection: Collection, batch: Batch, net: Batch, time: Time, hasher: Hasher) -> None:
    """Refuses ``batch`` (``net``: the same, consolidated, all at ``time``) if it breaks the table.

    Raises 22023 for a retraction of a row that is not there, 23505 for a second row with a key.  Cost: one probe of
    the touched keys; nothing for insertions into a table without a key.
    """
    if not len(net):
        return
    if collection.key is None:
        if int(net.diffs.min()) > 0:
            return
        net = net.take(np.flatnonzero(net.diffs < 0))
    after = _rows_after(collection, net, time, hasher)
    if len(after) and int(after.diffs.min()) < 0:
        raise _missing_row(collection, after.take(np.flatnonzero(after.diffs < 0)[:1]))
    if collection.key is not None:
        _check_unique(collection, batch, after, hasher)


def _rows_after(collection: Collection, touched: Batch, time: Time, hasher: Hasher) -> Batch:
    """The consolidated rows at ``time`` having one of the touched keys, once ``touched`` is applied."""
    columns = tuple(touched.columns[c] for c in collection.layout.key)
    types = tuple(touched.types[c] for c in collection.layout.key)
    first = first_equal(columns, types, len(touched), hasher)
    distinct = pa.array(np.flatnonzero(first == np.arange(len(first))))
    live = collection.lookup(tuple(c.take(distinct) for c in columns), time)
    return consolidate(Batch.concat(collection.types, [live, touched]), hasher)


def _check_unique(collection: Collection, batch: Batch, after: Batch, hasher: Hasher) -> None:
    key = collection.layout.key
    columns = tuple(after.columns[c] for c in key)
    types = tuple(after.types[c] for c in key)
    first = first_equal(columns, types, len(after), hasher)
    repeated = np.flatnonzero(first != np.arange(len(first)))
    totals = after.diffs.copy()
    np.add.at(totals, first[repeated], after.diffs[repeated])
    crowded = np.flatnonzero(totals > 1)
    if not len(crowded):
        return
    raise _duplicate(collection, batch, after.take(crowded), hasher)


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
