"""Rows of a snapshot that nobody asks for yet: kept as they came, and found by key once somebody does.

A join of six million rows with the few of a filtered input looks at a small share of the many; sorting and copying the
others would be most of its work.  ``divide`` hashes the keys of a snapshot's rows once and asks a set of the other
side's keys for each (``KeySet``).  Rows whose key it may have are given back, to be arranged.  The hashes of the others
are dealt into buckets, with the numbers of their rows, and make a ``Reserve``; their columns stay where they are.

Invariants:
I1  all rows of a key are on one side: in the reserve are the rows of the keys that the set says no to, and nothing that
    was asked for since is in it;
I2  the set never changes: what it says of a key in the reserve it said when the rows were divided;
I3  a step handles one batch that came, or gives back about ``most_rows`` rows.
One thread works on it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.kernels.key_set import TAKE_STATE, add_keys, deal_others, find_keys, take_picks
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT
from eddyline.trace.columns import cell_kinds, describe, gather_columns
from eddyline.trace.fresh import touch
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, Uint64s

__all__ = ["KeySet", "Reserve", "divide"]

#: a word of a key set has about so many keys: 16 bits each
_KEYS_PER_WORD: Final = 4
#: buckets have about so many rows, so that looking for a key in one takes less than a microsecond
_BUCKET_ROWS: Final = 1 << 10
_MOST_BUCKET_BITS: Final = 16
#: a bucket that is larger has keys with very many rows: those are better arranged
_LARGEST_BUCKET_ROWS: Final = 1 << 16
#: if more than so many hundredths of the rows are asked for, dividing them saves less than it costs
_MOST_ASKED: Final = 66
_LOW32: Final = 0xFFFFFFFF


class KeySet:
    """A few keys' hashes: it says yes to these, and to about one in a hundred others.  Immutable.  16 to 32 bits a
    key."""

    __slots__ = ("shift", "words")

    def __init__(self, hashes: Sequence[Uint64s]) -> None:
        keys = sum(map(len, hashes))
        bits = max((keys // _KEYS_PER_WORD).bit_length(), 1)
        self.shift = 64 - bits
        self.words: Uint64s = np.zeros(1 << bits, np.uint64)
        for each in hashes:
            add_keys(np.ascontiguousarray(each, np.uint64), self.shift, self.words)


class Reserve:
    """The rows that were not asked for, all at one time.  ``batches``: where they are among others."""

    def __init__(self, layout: Layout, time: Time, keys: KeySet, batches: Sequence[Batch], counts: Int64s) -> None:
        """``counts``: the rows of each bucket; as many buckets as a power of two, at least two."""
        self.rows = int(counts.sum())
        self._layout = layout
        self._time = time
        self._keys = keys
        self._starts: Int64s = np.concatenate(([0], np.cumsum(counts)))
        self._shift = 65 - len(counts).bit_length()
        self._hashes: Uint64s = np.empty(self.rows, np.uint64)
        self._picks: Int64s = np.empty(self.rows, np.int64)
        self._cursors: Int64s = self._starts[:-1].copy()
        #: ``drain`` has been through the places before
        self._drained = 0
        #: rows that may be here and were taken back since
        self._retracted = 0
        #: the row type, and the multiplicity
        self._types = (*layout.types, BIGINT)
        self._columns = [(*b.columns, _as_column(b.diffs)) for b in batches]
        kinds = cell_kinds(self._types)
        self._descs = np.stack([describe(c, kinds) for c in self._columns])
        #: of all batches, shared buffers included
        self.nbytes = sum(int(c.nbytes) for columns in self._columns for c in columns) + 16 * self.rows

    def scattered(self) -> list[npt.NDArray[Any]]:
        """What rows are dealt to, at places all over it."""
        return [self._hashes, self._picks]

    def deal(self, number: int, hashes: Uint64s, found: npt.NDArray[np.uint8]) -> None:
        """Takes in the rows of batch ``number`` that were not found; once for each batch, before the first ``take``."""
        deal_others(hashes, found, number, self._shift, self._cursors, self._hashes, self._picks)

    def take(self, wanted: Uint64s, most_rows: int) -> Iterator[Batch]:
        """The rows whose key hash is ``wanted``, which leave it, in batches of at most ``most_rows``.

        O(wanted × rows of a bucket): about a microsecond for a key that was not asked for before.
        """
        if not self.rows:
            return
        state = np.array((0, -1), np.int64)
        assert len(state) == TAKE_STATE
        wanted = np.ascontiguousarray(wanted, np.uint64)
        out = np.empty(most_rows, np.int64)
        while int(state[0]) < len(wanted):
            count = take_picks(
                wanted, self._keys.shift, self._keys.words, self._starts, self._shift, self._hashes, self._picks, state,
                out,
            )  # fmt: skip
            if count:
                self.rows -= count
                yield self._batch(out[:count])

    def retract(self, hashes: Uint64s) -> int:
        """Says that rows with those key hashes were taken back; how many of them may be here.  O(hashes)."""
        found = np.empty(len(hashes), np.uint8)
        counts = np.zeros(2, np.int64)
        asked = find_keys(np.ascontiguousarray(hashes), self._keys.shift, self._keys.words, 63, counts, found)
        rows = len(hashes) - int(asked)
        self._retracted += rows
        return rows

    def drain(self, most_rows: int) -> Batch | None:
        """Some of the rows that are left, once half of all that there were may be gone or taken back: whoever goes on
        asking soon has done away with the columns of those that are.  O(``most_rows``)."""
        if 2 * self.rows >= len(self._picks) and 2 * self._retracted < self.rows:
            return None
        stop = min(self._drained + most_rows, len(self._picks))
        picks = self._picks[self._drained : stop]
        left = picks[picks >= 0]
        picks[:] = -1
        self._drained = stop
        self.rows -= len(left)
        return self._batch(left) if len(left) else None

    def _batch(self, picks: Int64s) -> Batch:
        kinds = cell_kinds(self._types)
        columns = gather_columns(self._types, kinds, self._descs, 0, picks >> 32, picks & _LOW32)
        diffs = np.frombuffer(columns[-1].buffers()[1], np.int64, len(picks))
        return Batch(self._layout.types, columns[:-1], np.full(len(picks), self._time, np.int64), diffs)


def _as_column(diffs: Int64s) -> pa.Array:
    values = np.ascontiguousarray(diffs, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


class _Looked(NamedTuple):
    """One batch: its rows' key hashes, which of them were found, and how many."""

    hashes: Uint64s
    found: npt.NDArray[np.uint8]
    asked: int


def divide(
    layout: Layout,
    hasher: Hasher,
    time: Time,
    keys: KeySet,
    batches: Sequence[Batch],
    take: Callable[[Batch], None],
    *,
    keep: bool,
) -> Generator[int, None, Reserve | None]:
    """Gives ``take`` the rows whose keys are asked for, and returns those that are not (None: there are none).

    Yields the rows handled after each step.  All ``batches`` go to ``take`` as they are, where the first, the middle
    and the last one, or all of them, say that few rows would be left out, or where many have one hash.  The rows are
    updates at ``time``, whatever the batches call it.  ``keep``: whether the others may be asked for later; else they
    are gone.
    """
    rows = sum(map(len, batches))
    bits = min(max((rows // _BUCKET_ROWS).bit_length(), 1), _MOST_BUCKET_BITS)
    counts = np.zeros(1 << bits, np.int64)
    looked: dict[int, _Looked] = {}

    def look(number: int) -> int:
        batch = batches[number]
        kinds = cell_kinds(layout.types)
        described = describe([batch.columns[c] for c in layout.key], [kinds[c] for c in layout.key])
        hashes = hasher.hash_described(described, len(batch))
        found = np.empty(len(batch), np.uint8)
        asked = find_keys(hashes, keys.shift, keys.words, 64 - bits, counts, found)
        looked[number] = _Looked(hashes, found, int(asked))
        return len(batch)

    def most_asked() -> bool:
        seen = sum(len(each.hashes) for each in looked.values())
        return 100 * sum(each.asked for each in looked.values()) > _MOST_ASKED * seen

    for number in sorted({0, len(batches) // 2, len(batches) - 1}):
        yield look(number)
    if not most_asked():
        for number in range(len(batches)):
            if number not in looked:
                yield look(number)
    if most_asked() or int(counts.max()) > _LARGEST_BUCKET_ROWS:
        for batch in batches:
            take(batch)
            yield len(batch)
        return None
    reserve = Reserve(layout, time, keys, batches, counts) if keep else None
    if reserve is not None:
        yield from touch(reserve.scattered())
    for number, batch in enumerate(batches):
        each = looked.pop(number)
        if each.asked:
            take(batch.take(np.flatnonzero(each.found)))
        if reserve is not None:
            reserve.deal(number, each.hashes, each.found)
        yield len(batch)
    return reserve
