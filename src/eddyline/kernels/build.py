"""One sorted run from many batches: rows are dealt into buckets by the top bits of their hash, then sorted by bucket.

A *place* is where a row was dealt to; a *pick* names the row that came: its batch in the upper 32 bits, its position
there in the lower ones.  Hashes, second words, diffs and the cells of plain columns are dealt, so that a bucket lies
together; the other columns stay where they are.  The order is that of ``kernels.rows``: (hash, second word, canonical
order); all rows have one time.  ``descs`` int64[batches, columns, WIDTH].
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import (
    DECIMAL,
    FLOAT32,
    INT16,
    INT32,
    INTERVAL,
    NUMERIC,
    UUID,
    cell,
    compare_rows_twin,
)
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import copy_bytes, load_i64, load_u64
from eddyline.kernels.row_order import ITEM_BYTES, compare_rows
from eddyline.kernels.signatures import DESCS, I64, RUNS, U64, VOID, read, write

__all__ = [
    "BUCKETS", "BUCKET_BITS", "SUM_OVERFLOW", "count_buckets", "count_buckets_twin", "deal_cells",
    "deal_cells_twin", "deal_rows", "deal_rows_twin", "sort_buckets", "sort_buckets_twin",
]  # fmt: skip

BUCKET_BITS: Final = 12
BUCKETS: Final = 1 << BUCKET_BITS
#: status: a multiplicity left the range of int64
SUM_OVERFLOW: Final = -1

_SHIFT: Final = np.uint64(64 - BUCKET_BITS)
_NEXT_BITS: Final = np.int64(8)
_NEXT_MASK: Final = np.uint64(255)
_INSERTION_ROWS: Final = 12
#: fewer rows of a bucket are not dealt out again
_FEW_ROWS: Final = 32
_32: Final = np.int64(32)
_LOW32: Final = np.int64(0xFFFFFFFF)


@kernel(VOID(read(U64), write(I64)))
def count_buckets(hashes: npt.NDArray[np.uint64], counts: npt.NDArray[np.int64]) -> None:
    """``counts[b]`` grows by the hashes of bucket *b*.  O(n)."""
    for i in range(hashes.shape[0]):
        counts[np.int64(hashes[i] >> _SHIFT)] += 1


def count_buckets_twin(hashes: Any, counts: Any) -> None:
    for value in hashes.tolist():
        counts[value >> (64 - BUCKET_BITS)] += 1


@kernel(
    VOID(
        read(U64), read(U64), read(I64), I64, I64, write(I64), write(I64), write(U64), write(U64), write(I64),
        write(I64),
    )
)  # fmt: skip
def deal_rows(
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    diffs: npt.NDArray[np.int64],
    batch: int,
    shift: int,
    cursors: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    out_hashes: npt.NDArray[np.uint64],
    out_words: npt.NDArray[np.uint64],
    out_diffs: npt.NDArray[np.int64],
    out_picks: npt.NDArray[np.int64],
) -> None:
    """Puts the rows of ``batch`` at the cursors of their buckets (``hash >> shift``), which move on; ``places[i]`` is
    where row *i* went.  Without ``out_diffs`` (no rows) the diffs, which are all one, stay where they are.  O(n)."""
    first = batch << _32
    counted = out_diffs.shape[0] > 0
    for i in range(hashes.shape[0]):
        bucket = np.int64(hashes[i] >> np.uint64(shift))
        at = cursors[bucket]
        cursors[bucket] = at + 1
        places[i] = at
        out_hashes[at] = hashes[i]
        out_words[at] = words[i]
        if counted:
            out_diffs[at] = diffs[i]
        out_picks[at] = first | i


def deal_rows_twin(hashes: Any, batch: int, shift: int, cursors: Any) -> list[tuple[int, int]]:
    """(place, pick) of each row."""
    dealt = []
    for i, value in enumerate(hashes.tolist()):
        dealt.append((int(cursors[value >> shift]), batch << 32 | i))
        cursors[value >> shift] += 1
    return dealt


@kernel(VOID(DESCS, read(I64), read(I64), write(I64)))
def deal_cells(
    descs: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    outs: npt.NDArray[np.int64],
) -> None:
    """Copies the cells of fixed-width ``columns`` of a batch without NULLs to ``places``; ``outs``: their addresses."""
    for k in range(columns.shape[0]):
        kind = descs[columns[k], 0]
        values = descs[columns[k], 1]
        out = outs[k]
        if kind in (INT32, FLOAT32):
            for i in range(places.shape[0]):
                copy_bytes(out + 4 * places[i], values + 4 * i, 4)
        elif kind == INT16:
            for i in range(places.shape[0]):
                copy_bytes(out + 2 * places[i], values + 2 * i, 2)
        elif kind in (DECIMAL, INTERVAL, UUID):
            for i in range(places.shape[0]):
                copy_bytes(out + 16 * places[i], values + 16 * i, 16)
        elif kind == NUMERIC:
            for i in range(places.shape[0]):
                copy_bytes(out + 24 * places[i], values + 24 * i, 24)
        else:
            for i in range(places.shape[0]):
                copy_bytes(out + 8 * places[i], values + 8 * i, 8)


def deal_cells_twin(descs: Any, columns: Any, places: Any) -> list[dict[int, Any]]:
    """The cell at each place, by column."""
    return [{int(place): cell(descs[c], i) for i, place in enumerate(places)} for c in columns]


@subroutine
def _address(array: Any) -> Any:
    return np.int64(array.ctypes.data)


@subroutine
def _same_row(items: Any, descs: Any, a: Any, b: Any) -> Any:
    """Canonical order of two picks, 0 if they are identical.  ``descs``: an address."""
    size = ITEM_BYTES * items
    return compare_rows(items, descs + size * (a >> _32), a & _LOW32, descs + size * (b >> _32), b & _LOW32)


@subroutine
def _before(items: Any, descs: Any, picks: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Whether row *i* of the rows at ``a`` stands strictly before row *j* of those at ``b``.

    ``a``, ``b``: addresses of triples (hash, word, place); ``picks``: of the picks by place.
    """
    x = load_u64(a + 24 * i)
    y = load_u64(b + 24 * j)
    if x != y:
        return x < y
    x = load_u64(a + 24 * i + 8)
    y = load_u64(b + 24 * j + 8)
    if x != y:
        return x < y
    p = load_i64(picks + 8 * load_i64(a + 24 * i + 16))
    q = load_i64(picks + 8 * load_i64(b + 24 * j + 16))
    return _same_row(items, descs, p, q) < 0


@subroutine
def _insertion_sort(items: Any, descs: Any, picks: Any, rows: Any, spare: Any, start: Any, stop: Any) -> None:
    """``spare``: room for one triple."""
    for k in range(start + 1, stop):
        if not _before(items, descs, picks, rows, k, rows, k - 1):
            continue
        copy_bytes(spare, rows + 24 * k, 24)
        at = k
        while at > start and _before(items, descs, picks, spare, 0, rows, at - 1):
            copy_bytes(rows + 24 * at, rows + 24 * (at - 1), 24)
            at -= 1
        copy_bytes(rows + 24 * at, spare, 24)


@subroutine
def _merge_sort(items: Any, descs: Any, picks: Any, rows: Any, spare: Any, begin: Any, end: Any) -> None:
    """Stable sort of the triples ``[begin, end)``: insertion sort of short stretches, then merges bottom-up."""
    for start in range(begin, end, _INSERTION_ROWS):
        _insertion_sort(items, descs, picks, rows, spare, start, min(start + _INSERTION_ROWS, end))
    width = _INSERTION_ROWS
    while width < end - begin:
        start = begin
        while start + width < end:
            middle = start + width
            stop = min(middle + width, end)
            copy_bytes(spare, rows + 24 * start, 24 * width)
            left = 0
            right = middle
            out = start
            while left < width and right < stop:
                if _before(items, descs, picks, rows, right, spare, left):
                    copy_bytes(rows + 24 * out, rows + 24 * right, 24)
                    right += 1
                else:
                    copy_bytes(rows + 24 * out, spare + 24 * left, 24)
                    left += 1
                out += 1
            copy_bytes(rows + 24 * out, spare + 24 * left, 24 * (width - left))
            start = stop
        width *= 2


@subroutine
def _triples(hashes: Any, words: Any, begin: Any, end: Any, shift: Any, counts: Any, rows: Any) -> None:
    """The rows ``[begin, end)`` as triples, in the order of the next bits of their hash: *b*'s end at ``counts[b]``."""
    for b in range(256):
        counts[b] = 0
    for k in range(begin, end):
        counts[np.int64((hashes[k] >> shift) & _NEXT_MASK)] += 1
    total = np.int64(0)
    for b in range(256):
        own = counts[b]
        counts[b] = total
        total += own
    for k in range(begin, end):
        part = np.int64((hashes[k] >> shift) & _NEXT_MASK)
        at = counts[part]
        counts[part] = at + 1
        rows[3 * at] = np.int64(hashes[k])
        rows[3 * at + 1] = np.int64(words[k])
        rows[3 * at + 2] = k


@kernel(
    I64(
        RUNS, read(I64), read(I64), read(I64), I64, I64, I64, I64, write(U64), write(U64), write(I64), write(I64),
        write(I64), write(I64), write(I64),
    )
)  # fmt: skip
def sort_buckets(
    descs: npt.NDArray[np.int64],
    picks: npt.NDArray[np.int64],
    diffs: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    shift: int,
    first: int,
    stop: int,
    out: int,
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    out_places: npt.NDArray[np.int64],
    out_diffs: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    spare: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> int:
    """Sorts the buckets ``first .. stop``, sums the diffs of identical rows, drops zeros; results go to row ``out`` and
    on, hashes and words in place.  Returns where the next row goes, or SUM_OVERFLOW.  The places and diffs of row
    ``out`` and on go to ``out_places`` and ``out_diffs`` from 0 on, which have room for the rows of these buckets.

    Bucket *b* (``hash >> shift``) lies at ``starts[b] .. starts[b + 1]``; ``out <= starts[first]``.  ``rows``,
    ``spare``: three words for each row of the largest bucket, and three more; ``counts``: 256.  Without ``diffs`` (no
    rows) they are all one.  O(n log n) within a bucket, and near O(n) comparisons for well spread hashes.
    """
    items = descs.shape[1]
    at_descs = _address(descs)
    at_picks = _address(picks)
    at_rows = _address(rows)
    at_spare = _address(spare)
    next_shift = np.uint64(shift - _NEXT_BITS)
    counted = diffs.shape[0] > 0
    one = np.int64(1)
    before = out
    for bucket in range(first, stop):
        begin = starts[bucket]
        count = starts[bucket + 1] - begin
        if count > _FEW_ROWS:
            _triples(hashes, words, begin, begin + count, next_shift, counts, rows)
            start = np.int64(0)
            for b in range(256):
                if counts[b] - start > 1:
                    _merge_sort(items, at_descs, at_picks, at_rows, at_spare, start, counts[b])
                start = counts[b]
        else:
            for k in range(count):
                rows[3 * k] = np.int64(hashes[begin + k])
                rows[3 * k + 1] = np.int64(words[begin + k])
                rows[3 * k + 2] = begin + k
            _merge_sort(items, at_descs, at_picks, at_rows, at_spare, 0, count)
        k = 0
        while k < count:
            own_hash = rows[3 * k]
            word = rows[3 * k + 1]
            place = rows[3 * k + 2]
            total = diffs[place] if counted else one
            k += 1
            while k < count and rows[3 * k] == own_hash and rows[3 * k + 1] == word:
                other = rows[3 * k + 2]
                if _same_row(items, at_descs, picks[place], picks[other]) != 0:
                    break
                more = diffs[other] if counted else one
                summed = total + more
                if ((total ^ summed) & (more ^ summed)) < 0:
                    return SUM_OVERFLOW
                total = summed
                k += 1
            if total != 0:
                hashes[out] = np.uint64(own_hash)
                words[out] = np.uint64(word)
                out_places[out - before] = place
                out_diffs[out - before] = total
                out += 1
    return out


def sort_buckets_twin(descs: Any, hashes: Any, words: Any, diffs: Any, picks: Any) -> list[tuple[int, int, int, int]]:
    """(hash, word, place, total) of what ``sort_buckets`` leaves of all buckets; the inputs are by place."""

    def compare(a: int, b: int) -> int:
        x, y = (int(hashes[a]), int(words[a])), (int(hashes[b]), int(words[b]))
        if x != y:
            return -1 if x < y else 1
        p, q = int(picks[a]), int(picks[b])
        return compare_rows_twin(descs, p >> 32, p & 0xFFFFFFFF, descs, q >> 32, q & 0xFFFFFFFF)

    found: list[tuple[int, int, int, int]] = []
    for place in sorted(range(len(hashes)), key=cmp_to_key(compare)):
        if found and compare(found[-1][2], place) == 0:
            key, word, first, total = found[-1]
            found[-1] = (key, word, first, total + int(diffs[place]))
        else:
            found.append((int(hashes[place]), int(words[place]), place, int(diffs[place])))
    return [entry for entry in found if entry[3]]
