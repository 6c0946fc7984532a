"""One sorted run from many batches: rows are dealt into buckets by the top bits of their hash, then sorted by bucket.

A *pick* names a row: its batch in the upper 32 bits, its position there in the lower ones.  ``descs`` int64[batches,
columns, WIDTH]; the batches' second words and diffs come as addresses.  The order is that of ``kernels.rows``: (hash,
second word, canonical order); all rows have one time.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import compare_rows_twin
from eddyline.kernels.kernel import I64, RUNS, U64, VOID, kernel, read, subroutine, write
from eddyline.kernels.memory import copy_bytes, load_i64, load_u64, store_i64
from eddyline.kernels.row_order import ITEM_BYTES, compare_rows

__all__ = [
    "BUCKETS", "BUCKET_BITS", "SUM_OVERFLOW", "count_buckets", "count_buckets_twin", "deal_rows", "deal_rows_twin",
    "sort_buckets", "sort_buckets_twin",
]  # fmt: skip

BUCKET_BITS: Final = 12
BUCKETS: Final = 1 << BUCKET_BITS
#: status: a multiplicity left the range of int64
SUM_OVERFLOW: Final = -1

_SHIFT: Final = np.uint64(64 - BUCKET_BITS)
_NEXT_SHIFT: Final = np.uint64(64 - BUCKET_BITS - 8)
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


@kernel(VOID(read(U64), I64, write(I64), write(U64), write(I64)))
def deal_rows(
    hashes: npt.NDArray[np.uint64],
    batch: int,
    cursors: npt.NDArray[np.int64],
    out_hashes: npt.NDArray[np.uint64],
    out_picks: npt.NDArray[np.int64],
) -> None:
    """Puts the rows of ``batch`` at their buckets' cursors, which move on.  O(n)."""
    first = batch << _32
    for i in range(hashes.shape[0]):
        bucket = np.int64(hashes[i] >> _SHIFT)
        at = cursors[bucket]
        cursors[bucket] = at + 1
        out_hashes[at] = hashes[i]
        out_picks[at] = first | i


def deal_rows_twin(hashes: Any, batch: int, cursors: Any, out_hashes: Any, out_picks: Any) -> None:
    for i, value in enumerate(hashes.tolist()):
        bucket = value >> (64 - BUCKET_BITS)
        out_hashes[cursors[bucket]] = value
        out_picks[cursors[bucket]] = batch << 32 | i
        cursors[bucket] += 1


@subroutine
def _address(array: Any) -> Any:
    return np.int64(array.ctypes.data)


@subroutine
def _word(words: Any, pick: Any) -> Any:
    return load_u64(load_i64(words + 8 * (pick >> _32)) + 8 * (pick & _LOW32))


@subroutine
def _compare_picks(items: Any, descs: Any, words: Any, a: Any, b: Any) -> Any:
    """Order of two rows whose hashes are equal, by (second word, canonical order).  All but picks: addresses."""
    x = _word(words, a)
    y = _word(words, b)
    if x != y:
        return -1 if x < y else 1
    size = ITEM_BYTES * items
    return compare_rows(items, descs + size * (a >> _32), a & _LOW32, descs + size * (b >> _32), b & _LOW32)


@subroutine
def _insertion_sort(items: Any, descs: Any, words: Any, hashes: Any, picks: Any, start: Any, stop: Any) -> None:
    for k in range(start + 1, stop):
        own_hash = load_i64(hashes + 8 * k)
        own = load_i64(picks + 8 * k)
        at = k
        while at > start:
            other_hash = load_i64(hashes + 8 * (at - 1))
            if np.uint64(own_hash) > np.uint64(other_hash):
                break
            other = load_i64(picks + 8 * (at - 1))
            if own_hash == other_hash and _compare_picks(items, descs, words, own, other) >= 0:
                break
            store_i64(hashes + 8 * at, other_hash)
            store_i64(picks + 8 * at, other)
            at -= 1
        store_i64(hashes + 8 * at, own_hash)
        store_i64(picks + 8 * at, own)


@subroutine
def _merge_sort(
    items: Any,
    descs: Any,
    words: Any,
    hashes: Any,
    picks: Any,
    spare_hashes: Any,
    spare_picks: Any,
    begin: Any,
    end: Any,
) -> None:
    """Stable sort of ``[begin, end)``: insertion sort of short stretches, then merges bottom-up.  Addresses."""
    for start in range(begin, end, _INSERTION_ROWS):
        _insertion_sort(items, descs, words, hashes, picks, start, min(start + _INSERTION_ROWS, end))
    width = _INSERTION_ROWS
    while width < end - begin:
        start = begin
        while start + width < end:
            middle = start + width
            stop = min(middle + width, end)
            copy_bytes(spare_hashes + 8 * start, hashes + 8 * start, 8 * width)
            copy_bytes(spare_picks + 8 * start, picks + 8 * start, 8 * width)
            left = start
            right = middle
            out = start
            while left < middle and right < stop:
                left_hash = load_i64(spare_hashes + 8 * left)
                right_hash = load_i64(hashes + 8 * right)
                left_pick = load_i64(spare_picks + 8 * left)
                right_pick = load_i64(picks + 8 * right)
                right_first = np.uint64(right_hash) < np.uint64(left_hash)
                if left_hash == right_hash:
                    right_first = _compare_picks(items, descs, words, right_pick, left_pick) < 0
                if right_first:
                    store_i64(hashes + 8 * out, right_hash)
                    store_i64(picks + 8 * out, right_pick)
                    right += 1
                else:
                    store_i64(hashes + 8 * out, left_hash)
                    store_i64(picks + 8 * out, left_pick)
                    left += 1
                out += 1
            copy_bytes(hashes + 8 * out, spare_hashes + 8 * left, 8 * (middle - left))
            copy_bytes(picks + 8 * out, spare_picks + 8 * left, 8 * (middle - left))
            start = stop
        width *= 2


@subroutine
def _deal_again(hashes: Any, picks: Any, begin: Any, end: Any, counts: Any, out_hashes: Any, out_picks: Any) -> None:
    """The rows ``[begin, end)`` of a bucket to the beginning of the outputs, in the order of the next bits of the hash;
    ``counts[b]`` is then where those of *b* end."""
    for b in range(256):
        counts[b] = 0
    for k in range(begin, end):
        counts[np.int64((hashes[k] >> _NEXT_SHIFT) & _NEXT_MASK)] += 1
    total = np.int64(0)
    for b in range(256):
        own = counts[b]
        counts[b] = total
        total += own
    for k in range(begin, end):
        bucket = np.int64((hashes[k] >> _NEXT_SHIFT) & _NEXT_MASK)
        at = counts[bucket]
        counts[bucket] = at + 1
        out_hashes[at] = hashes[k]
        out_picks[at] = picks[k]


@kernel(
    I64(
        RUNS, read(I64), read(I64), read(I64), I64, I64, I64, write(U64), write(I64), write(U64), write(I64),
        write(U64, 2), write(I64, 2), write(I64),
    )
)  # fmt: skip
def sort_buckets(
    descs: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    diffs: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    first: int,
    stop: int,
    out: int,
    hashes: npt.NDArray[np.uint64],
    picks: npt.NDArray[np.int64],
    out_words: npt.NDArray[np.uint64],
    out_diffs: npt.NDArray[np.int64],
    spare_hashes: npt.NDArray[np.uint64],
    spare_picks: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> int:
    """Sorts the buckets ``first .. stop``, sums the diffs of identical rows, drops zeros, and compacts: in place, to
    row ``out`` and on.  Returns where the next row goes, or SUM_OVERFLOW.

    Bucket *b* has the rows ``starts[b] .. starts[b + 1]`` of ``hashes`` and ``picks``; ``out <= starts[first]``.
    ``words``, ``diffs``: int64[batches], addresses.  ``spare_*``: [2, rows of the largest bucket]; ``counts``: 256.
    O(n log n) within a bucket, and near O(n) comparisons for well spread hashes.
    """
    items = descs.shape[1]
    size = ITEM_BYTES * items
    at_descs = _address(descs)
    at_words = _address(words)
    own_hashes = spare_hashes[0]
    own_picks = spare_picks[0]
    at_hashes = _address(own_hashes)
    at_picks = _address(own_picks)
    at_spare_hashes = _address(spare_hashes[1])
    at_spare_picks = _address(spare_picks[1])
    for bucket in range(first, stop):
        begin = starts[bucket]
        end = starts[bucket + 1]
        rows = end - begin
        if rows > _FEW_ROWS:
            _deal_again(hashes, picks, begin, end, counts, own_hashes, own_picks)
            start = 0
            for b in range(256):
                if counts[b] - start > 1:
                    _merge_sort(
                        items,
                        at_descs,
                        at_words,
                        at_hashes,
                        at_picks,
                        at_spare_hashes,
                        at_spare_picks,
                        start,
                        counts[b],
                    )
                start = counts[b]
        else:
            for k in range(rows):
                own_hashes[k] = hashes[begin + k]
                own_picks[k] = picks[begin + k]
            _merge_sort(items, at_descs, at_words, at_hashes, at_picks, at_spare_hashes, at_spare_picks, 0, rows)
        k = 0
        while k < rows:
            pick = own_picks[k]
            own_hash = own_hashes[k]
            word = _word(at_words, pick)
            total = load_i64(diffs[pick >> _32] + 8 * (pick & _LOW32))
            k += 1
            while k < rows and own_hashes[k] == own_hash and _word(at_words, own_picks[k]) == word:
                other = own_picks[k]
                p = at_descs + size * (pick >> _32)
                q = at_descs + size * (other >> _32)
                if compare_rows(items, p, pick & _LOW32, q, other & _LOW32) != 0:
                    break
                diff = load_i64(diffs[other >> _32] + 8 * (other & _LOW32))
                summed = total + diff
                if ((total ^ summed) & (diff ^ summed)) < 0:
                    return SUM_OVERFLOW
                total = summed
                k += 1
            if total != 0:
                hashes[out] = own_hash
                picks[out] = pick
                out_words[out] = word
                out_diffs[out] = total
                out += 1
    return out


def sort_buckets_twin(descs: Any, hashes: Any, picks: Any, words: Any, diffs: Any) -> list[tuple[int, int, int, int]]:
    """(hash, pick, word, total) of what ``sort_buckets`` leaves of all buckets; ``words``, ``diffs``: by batch."""

    def place(pick: int) -> tuple[int, int]:
        return pick >> 32, pick & 0xFFFFFFFF

    def word(pick: int) -> int:
        batch, row = place(pick)
        return int(words[batch][row])

    def compare(a: tuple[int, int], b: tuple[int, int]) -> int:
        x, y = (a[0], word(a[1])), (b[0], word(b[1]))
        if x != y:
            return -1 if x < y else 1
        return compare_rows_twin(descs, *place(a[1]), descs, *place(b[1]))

    found: list[tuple[int, int, int, int]] = []
    previous: tuple[int, int] | None = None
    for row in sorted(zip(hashes.tolist(), picks.tolist(), strict=True), key=cmp_to_key(compare)):
        batch, at = place(row[1])
        diff = int(diffs[batch][at])
        if previous is not None and compare(previous, row) == 0:
            key, pick, second, total = found[-1]
            found[-1] = (key, pick, second, total + diff)
        else:
            found.append((*row, word(row[1]), diff))
        previous = row
    return [entry for entry in found if entry[3]]
