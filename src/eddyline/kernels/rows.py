"""Everything that compares rows: sorting, consolidating, merging, walking and matching, over one comparison.

*Canonical order*: SQL order of the items left to right (NULL last unless an item's flags say otherwise), then image.
Runs come as ``heads`` int64[runs, cells.HEAD] (addresses and strides of hashes, times and diffs) and ``descs``
int64[runs, items, WIDTH].  Items are the compared columns: of a layout with an ORDER BY, its items and then all
columns; otherwise all columns.  The order of rows in a run is (key hash, second word, canonical order, time); hashes
only order, the comparison decides what is the same.  The kernels' twins are in ``row_twins``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import (
    BITS,
    BYTES,
    DECIMAL,
    DESC,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NULLS_FIRST,
    NUMERIC,
)
from eddyline.kernels.kernel import I64, RUNS, U8, U64, VOID, kernel, read, subroutine, write
from eddyline.kernels.memory import load_f32, load_f64, load_i16, load_i32, load_i64, load_u8, load_u64
from eddyline.kernels.row_twins import (
    compact_rows_twin,
    merge_rows_twin,
    pairs_equal_twin,
    sort_rows_twin,
    sum_identical_twin,
    walk_groups_twin,
)

__all__ = [
    "FEW_ALIKE", "MERGE_STATE", "OVERFLOW", "WALK_STATE", "compact_rows", "compact_rows_twin", "merge_rows",
    "merge_rows_twin", "pairs_equal", "pairs_equal_twin", "sort_rows", "sort_rows_twin", "sum_identical",
    "sum_identical_twin", "walk_groups", "walk_groups_twin",
]  # fmt: skip

#: ``merge_rows`` state: 0 live cursors (-1 before the first call), 1 rows out, 2 rows out that are final
MERGE_STATE: Final = 3

#: ``walk_groups`` state: 0 next group, 1 rows out, 2 dead rows passed
WALK_STATE: Final = 3

#: status: a multiplicity left the range of int64
OVERFLOW: Final = -1
#: status: adding up by hash is not worth it
FEW_ALIKE: Final = -2

_DAY_US: Final = np.int64(86_400_000_000)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_10: Final = np.uint64(10)
_32: Final = np.uint64(32)
_LOW32: Final = np.uint64(0xFFFFFFFF)
_INSERTION_ROWS: Final = 12
_STEPS: Final = 8
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_TIME: Final = np.uint64(0xC2B2AE3D27D4EB4F)


@subroutine
def _bit(address: Any, position: Any) -> Any:
    return (load_u8(address + (position >> 3)) >> np.uint64(position & 7)) & _ONE


@subroutine
def _compare_wide(a: Any, b: Any) -> Any:
    """Two 128-bit integers by address."""
    x = load_i64(a + 8)
    y = load_i64(b + 8)
    if x != y:
        return -1 if x < y else 1
    p = load_u64(a)
    q = load_u64(b)
    if p != q:
        return -1 if p < q else 1
    return 0


@subroutine
def _compare_numeric(a: Any, b: Any) -> Any:
    """By value: the magnitude with fewer decimals is scaled up until it is as fine or has outgrown 128 bits."""
    a_high = load_i64(a + 8)
    b_high = load_i64(b + 8)
    a_scale = load_i64(a + 16)
    b_scale = load_i64(b + 16)
    if a_scale == b_scale:
        return _compare_wide(a, b)
    a_low = load_u64(a)
    b_low = load_u64(b)
    a_sign = -1 if a_high < 0 else (0 if a_high == 0 and a_low == _ZERO else 1)
    b_sign = -1 if b_high < 0 else (0 if b_high == 0 and b_low == _ZERO else 1)
    if a_sign != b_sign:
        return -1 if a_sign < b_sign else 1
    if a_sign == 0:
        return 0
    ah = np.uint64(a_high)
    bh = np.uint64(b_high)
    if a_sign < 0:
        a_low = ~a_low + _ONE
        ah = ~ah + (_ONE if a_low == _ZERO else _ZERO)
        b_low = ~b_low + _ONE
        bh = ~bh + (_ONE if b_low == _ZERO else _ZERO)
    scale_a = a_scale < b_scale
    high = ah if scale_a else bh
    low = a_low if scale_a else b_low
    steps = b_scale - a_scale if scale_a else a_scale - b_scale
    outgrown = False
    while steps > 0:
        p0 = (low & _LOW32) * _10
        p1 = (low >> _32) * _10 + (p0 >> _32)
        p2 = (high & _LOW32) * _10 + (p1 >> _32)
        p3 = (high >> _32) * _10 + (p2 >> _32)
        if p3 >> _32 != _ZERO:
            outgrown = True
            break
        low = (p1 << _32) | (p0 & _LOW32)
        high = (p3 << _32) | (p2 & _LOW32)
        steps -= 1
    order = 1
    if not outgrown:
        other_high = bh if scale_a else ah
        other_low = b_low if scale_a else a_low
        if high == other_high and low == other_low:
            return 0
        order = -1 if high < other_high or (high == other_high and low < other_low) else 1
    if not scale_a:
        order = -order
    return order * a_sign


@subroutine
def _compare_bytes(a: Any, a_size: Any, b: Any, b_size: Any) -> Any:
    size = min(a_size, b_size)
    at = 0
    while at + 8 <= size and load_u64(a + at) == load_u64(b + at):
        at += 8
    while at < size:
        x = load_u8(a + at)
        y = load_u8(b + at)
        if x != y:
            return -1 if x < y else 1
        at += 1
    if a_size != b_size:
        return -1 if a_size < b_size else 1
    return 0


@subroutine
def _compare_floats(x: Any, y: Any) -> Any:
    if x < y:
        return -1
    if x > y:
        return 1
    if x == y:
        return 0
    x_nan = np.isnan(x)
    y_nan = np.isnan(y)
    if x_nan and y_nan:
        return 0
    return 1 if x_nan else -1


@subroutine
def _compare_ints(x: Any, y: Any) -> Any:
    if x == y:
        return 0
    return -1 if x < y else 1


@subroutine
def _is_null(descs: Any, run: Any, item: Any, row: Any) -> Any:
    validity = descs[run, item, 3]
    return validity != 0 and _bit(validity, descs[run, item, 4] + row) == _ZERO


@subroutine
def _compare_cells(a: Any, ra: Any, i: Any, b: Any, rb: Any, j: Any, item: Any) -> Any:
    """SQL order of two cells that are not NULL."""
    kind = a[ra, item, 0]
    x = a[ra, item, 1]
    y = b[rb, item, 1]
    if kind == INT64:
        return _compare_ints(load_i64(x + 8 * i), load_i64(y + 8 * j))
    if kind == INT32:
        return _compare_ints(load_i32(x + 4 * i), load_i32(y + 4 * j))
    if kind == BYTES:
        p = load_i64(a[ra, item, 2] + 8 * i)
        q = load_i64(b[rb, item, 2] + 8 * j)
        p_size = load_i64(a[ra, item, 2] + 8 * i + 8) - p
        return _compare_bytes(x + p, p_size, y + q, load_i64(b[rb, item, 2] + 8 * j + 8) - q)
    if kind == DECIMAL:
        return _compare_wide(x + 16 * i, y + 16 * j)
    if kind == NUMERIC:
        return _compare_numeric(x + 24 * i, y + 24 * j)
    if kind == FLOAT64:
        return _compare_floats(load_f64(x + 8 * i), load_f64(y + 8 * j))
    if kind == FLOAT32:
        return _compare_floats(load_f32(x + 4 * i), load_f32(y + 4 * j))
    if kind == BITS:
        p = np.int64(_bit(x, a[ra, item, 4] + i))
        return _compare_ints(p, np.int64(_bit(y, b[rb, item, 4] + j)))
    if kind == INT16:
        return _compare_ints(load_i16(x + 2 * i), load_i16(y + 2 * j))
    if kind == INTERVAL:
        p = load_i64(x + 16 * i + 8)
        q = load_i64(y + 16 * j + 8)
        p_days = load_i32(x + 16 * i) * 30 + load_i32(x + 16 * i + 4) + p // _DAY_US
        q_days = load_i32(y + 16 * j) * 30 + load_i32(y + 16 * j + 4) + q // _DAY_US
        if p_days != q_days:
            return _compare_ints(p_days, q_days)
        return _compare_ints(p % _DAY_US, q % _DAY_US)
    return _compare_bytes(x + 16 * i, 16, y + 16 * j, 16)  # UUID


@subroutine
def _compare_images(a: Any, ra: Any, i: Any, b: Any, rb: Any, j: Any, item: Any) -> Any:
    """Order of two cells that SQL calls equal, by how they print; 0 iff identical."""
    kind = a[ra, item, 0]
    x = a[ra, item, 1]
    y = b[rb, item, 1]
    if kind == NUMERIC:
        return _compare_ints(load_i64(x + 24 * i + 16), load_i64(y + 24 * j + 16))
    if kind == FLOAT64:
        p = load_f64(x + 8 * i)
        if p != 0.0:
            return 0
        return _compare_ints(load_i64(x + 8 * i), load_i64(y + 8 * j))
    if kind == FLOAT32:
        if load_f32(x + 4 * i) != 0.0:
            return 0
        return _compare_ints(load_i32(x + 4 * i), load_i32(y + 4 * j))
    if kind == INTERVAL:
        order = _compare_ints(load_i32(x + 16 * i), load_i32(y + 16 * j))
        if order != 0:
            return order
        return _compare_ints(load_i32(x + 16 * i + 4), load_i32(y + 16 * j + 4))
    return 0


@subroutine
def _compare_rows(a: Any, ra: Any, i: Any, b: Any, rb: Any, j: Any) -> Any:
    """Canonical order: -1, 0 (identical), 1.  ORDER BY flags are those of ``a``."""
    items = a.shape[1]
    for item in range(items):
        flags = a[ra, item, 5]
        i_null = _is_null(a, ra, item, i)
        j_null = _is_null(b, rb, item, j)
        if i_null or j_null:
            if i_null and j_null:
                continue
            order = 1 if i_null else -1
            return -order if flags & NULLS_FIRST else order
        order = _compare_cells(a, ra, i, b, rb, j, item)
        if order != 0:
            return -order if flags & DESC else order
    for item in range(items):
        if not _is_null(a, ra, item, i):
            order = _compare_images(a, ra, i, b, rb, j, item)
            if order != 0:
                return order
    return 0


@subroutine
def _tie_before(descs: Any, words: Any, times: Any, i: Any, j: Any) -> Any:
    """Whether row i sorts strictly before row j of one batch, their hashes being equal."""
    if words[i] != words[j]:
        return words[i] < words[j]
    order = _compare_rows(descs, 0, i, descs, 0, j)
    if order != 0:
        return order < 0
    return times[i] < times[j]


@subroutine
def _insertion_sort(descs: Any, hashes: Any, words: Any, times: Any, rows: Any, start: Any, stop: Any) -> None:
    for k in range(start + 1, stop):
        row = rows[k]
        row_hash = hashes[row]
        at = k
        while at > start:
            other = rows[at - 1]
            other_hash = hashes[other]
            if row_hash > other_hash:
                break
            if row_hash == other_hash and not _tie_before(descs, words, times, row, other):
                break
            rows[at] = other
            at -= 1
        rows[at] = row


@subroutine
def _merge_sort(descs: Any, hashes: Any, words: Any, times: Any, rows: Any, scratch: Any, begin: Any, end: Any) -> None:
    """Stable sort of ``rows[begin:end]``: insertion sort of short stretches, then merges bottom-up."""
    for start in range(begin, end, _INSERTION_ROWS):
        _insertion_sort(descs, hashes, words, times, rows, start, min(start + _INSERTION_ROWS, end))
    width = _INSERTION_ROWS
    while width < end - begin:
        start = begin
        while start + width < end:
            middle = start + width
            stop = min(middle + width, end)
            for k in range(start, middle):
                scratch[k] = rows[k]
            left = start
            right = middle
            out = start
            while left < middle and right < stop:
                i = rows[right]
                j = scratch[left]
                right_first = hashes[i] < hashes[j]
                if hashes[i] == hashes[j]:
                    right_first = _tie_before(descs, words, times, i, j)
                if right_first:
                    rows[out] = i
                    right += 1
                else:
                    rows[out] = j
                    left += 1
                out += 1
            while left < middle:
                rows[out] = scratch[left]
                left += 1
                out += 1
            start = stop
        width *= 2


@kernel(VOID(RUNS, read(U64), read(U64), read(I64), write(I64), write(I64), write(I64)))
def sort_rows(
    descs: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    times: npt.NDArray[np.int64],
    buckets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    scratch: npt.NDArray[np.int64],
) -> None:
    """Fills ``rows`` with the stable sort order of ``scratch``, rows of one batch (``descs`` has one run).

    ``buckets``: scratch of 2**k + 1 entries; the top k bits of the hash are sorted by counting first.  O(n log n), and
    near O(n) comparisons for well spread hashes.
    """
    n = rows.shape[0]
    count = buckets.shape[0] - 1
    mask = np.uint64(count - 1)
    shift = np.uint64(0)
    while mask << shift < np.uint64(1 << 63) and count > 1:
        shift += _ONE
    for b in range(count + 1):
        buckets[b] = 0
    for k in range(n):
        buckets[np.int64((hashes[scratch[k]] >> shift) & mask) + 1] += 1
    for b in range(count):
        buckets[b + 1] += buckets[b]
    for k in range(n):
        i = scratch[k]
        bucket = np.int64((hashes[i] >> shift) & mask)
        rows[buckets[bucket]] = i
        buckets[bucket] += 1
    begin = 0
    for b in range(count):
        end = buckets[b]
        if end - begin > 1:
            _merge_sort(descs, hashes, words, times, rows, scratch, begin, end)
        begin = end


@subroutine
def _overflows(a: Any, b: Any) -> Any:
    total = a + b
    return ((a ^ total) & (b ^ total)) < 0


@kernel(I64(RUNS, read(U64), read(U64), read(I64), read(I64), I64, write(I64), write(I64), write(I64)))
def sum_identical(
    descs: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    times: npt.NDArray[np.int64],
    diffs: npt.NDArray[np.int64],
    trial: int,
    table: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    sums: npt.NDArray[np.int64],
) -> int:
    """Sums the diffs of identical (row, time): ``rows`` become the first of each, in order, ``sums[row]`` its total.

    Zero totals are dropped.  ``table``: a power of two of entries and at least 2 n, all -1 on entry; scratch.  Returns
    the number of rows kept, OVERFLOW, or FEW_ALIKE: of the first ``trial`` rows three quarters are distinct, or many
    distinct rows have one hash.  Expected O(n).
    """
    mask = np.uint64(table.shape[0] - 1)
    found = 0
    steps = _STEPS * (rows.shape[0] + 64)
    for i in range(rows.shape[0]):
        if i == trial and 4 * found > 3 * trial:
            return FEW_ALIKE
        mixed = hashes[i] ^ (words[i] * _MIX) ^ (np.uint64(times[i]) * _MIX_TIME)
        at = (mixed ^ (mixed >> _32)) & mask
        row = table[at]
        while row >= 0:
            if hashes[row] == hashes[i] and words[row] == words[i] and times[row] == times[i]:  # noqa: SIM102 - cheap tests first
                if _compare_rows(descs, 0, row, descs, 0, i) == 0:
                    break
            at = (at + _ONE) & mask
            row = table[at]
            steps -= 1
        if steps < 0:
            return FEW_ALIKE
        if row < 0:
            table[at] = i
            rows[found] = i
            sums[i] = diffs[i]
            found += 1
        elif _overflows(sums[row], diffs[i]):
            return OVERFLOW
        else:
            sums[row] += diffs[i]
    kept = 0
    for k in range(found):
        rows[kept] = rows[k]
        kept += 1 if sums[rows[k]] != 0 else 0
    return kept


@kernel(
    I64(RUNS, read(U64), read(U64), read(I64), read(I64), write(I64), write(U64), write(U64), write(I64), write(I64))
)
def compact_rows(
    descs: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    times: npt.NDArray[np.int64],
    diffs: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    out_hashes: npt.NDArray[np.uint64],
    out_words: npt.NDArray[np.uint64],
    out_times: npt.NDArray[np.int64],
    out_diffs: npt.NDArray[np.int64],
) -> int:
    """Sums the diffs of identical (row, time) among sorted ``rows``, drops zeros, and compacts ``rows`` in place.

    Returns the number of rows kept, or OVERFLOW.  O(n).
    """
    kept = 0
    k = 0
    n = rows.shape[0]
    while k < n:
        i = rows[k]
        total = diffs[i]
        k += 1
        while k < n:
            j = rows[k]
            if hashes[j] != hashes[i] or words[j] != words[i] or times[j] != times[i]:
                break
            if _compare_rows(descs, 0, i, descs, 0, j) != 0:
                break
            if _overflows(total, diffs[j]):
                return OVERFLOW
            total += diffs[j]
            k += 1
        if total != 0:
            rows[kept] = i
            out_hashes[kept] = hashes[i]
            out_words[kept] = words[i]
            out_times[kept] = times[i]
            out_diffs[kept] = total
            kept += 1
    return kept


@subroutine
def _order_at(heads: Any, descs: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Order of two rows of two runs by (key hash, second word, canonical order)."""
    x = load_u64(heads[a, 0] + 8 * i)
    y = load_u64(heads[b, 0] + 8 * j)
    if x != y:
        return -1 if x < y else 1
    x = load_u64(heads[a, 2] + heads[a, 3] * i)
    y = load_u64(heads[b, 2] + heads[b, 3] * j)
    if x != y:
        return -1 if x < y else 1
    return _compare_rows(descs, a, i, descs, b, j)


@subroutine
def _merge_tie_before(heads: Any, descs: Any, since: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Order of two rows with equal key hashes, by all that follows: ties go to the older run."""
    x = load_u64(heads[a, 2] + heads[a, 3] * i)
    y = load_u64(heads[b, 2] + heads[b, 3] * j)
    if x != y:
        return x < y
    order = _compare_rows(descs, a, i, descs, b, j)
    if order != 0:
        return order < 0
    p = max(load_i64(heads[a, 4] + heads[a, 5] * i), since)
    q = max(load_i64(heads[b, 4] + heads[b, 5] * j), since)
    if p != q:
        return p < q
    return a < b


@subroutine
def _sift(heads: Any, descs: Any, since: Any, cursors: Any, order: Any, count: Any) -> None:
    """``order[:count]`` is sorted, smallest last, but for its last entry: moves that to its place."""
    run = order[count - 1]
    row = cursors[run]
    row_hash = load_u64(heads[run, 0] + 8 * row)
    at = count - 1
    while at > 0:
        other = order[at - 1]
        other_hash = load_u64(heads[other, 0] + 8 * cursors[other])
        if row_hash < other_hash:
            break
        if row_hash == other_hash and not _merge_tie_before(heads, descs, since, other, cursors[other], run, row):
            break
        order[at] = other
        at -= 1
    order[at] = run


@kernel(
    I64(
        read(I64, 2), RUNS, I64, I64, I64, write(I64), write(I64), write(I64), write(I64), write(I64),
        write(U64), write(U64), write(I64), write(I64),
    )
)  # fmt: skip
def merge_rows(
    heads: npt.NDArray[np.int64],
    descs: npt.NDArray[np.int64],
    since: int,
    below: int,
    fuel: int,
    cursors: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    pick_runs: npt.NDArray[np.int64],
    pick_rows: npt.NDArray[np.int64],
    out_hashes: npt.NDArray[np.uint64],
    out_words: npt.NDArray[np.uint64],
    out_times: npt.NDArray[np.int64],
    out_diffs: npt.NDArray[np.int64],
) -> int:
    """One slice of a merge of runs: consumes up to ``fuel`` rows.

    Rows at or past ``below`` are skipped, times advance to ``since``, identical (row, time) are summed, zeros dropped,
    also across slices: the last row out stays open.  ``state``: see MERGE_STATE; row *n* out is at ``out_*[n]``, its
    source at ``pick_*[n - state[2]]`` where state[2] rows were final before this slice (on entry the open row's source
    stands first).  Returns 1 if done, 0 if more is left, or OVERFLOW.  O(fuel × runs) at worst, O(fuel) for two runs.
    """
    active = state[0]
    if active < 0:
        active = 0
        for run in range(heads.shape[0]):
            if cursors[run] < heads[run, 1]:
                order[active] = run
                active += 1
                _sift(heads, descs, since, cursors, order, active)
    out = state[1]
    base = state[2]
    used = 0
    while active > 0 and used < fuel:
        used += 1
        run = order[active - 1]
        row = cursors[run]
        time = load_i64(heads[run, 4] + heads[run, 5] * row)
        if time < below:
            time = max(time, since)
            diff = load_i64(heads[run, 6] + heads[run, 7] * row)
            word_hash = load_u64(heads[run, 0] + 8 * row)
            word = load_u64(heads[run, 2] + heads[run, 3] * row)
            same = False
            if out > base:
                last = out - 1
                same = (
                    out_hashes[last] == word_hash
                    and out_words[last] == word
                    and out_times[last] == time
                    and _compare_rows(descs, pick_runs[last - base], pick_rows[last - base], descs, run, row) == 0
                )
                if not same and out_diffs[last] == 0:
                    out -= 1
            if same:
                if _overflows(out_diffs[out - 1], diff):
                    return OVERFLOW
                out_diffs[out - 1] += diff
            else:
                out_hashes[out] = word_hash
                out_words[out] = word
                out_times[out] = time
                out_diffs[out] = diff
                pick_runs[out - base] = run
                pick_rows[out - base] = row
                out += 1
        cursors[run] = row + 1
        if row + 1 < heads[run, 1]:
            _sift(heads, descs, since, cursors, order, active)
        else:
            active -= 1
    if active == 0 and out > base and out_diffs[out - 1] == 0:
        out -= 1
    state[0] = active
    state[1] = out
    return 1 if active == 0 else 0


@kernel(VOID(RUNS, read(I64), RUNS, read(I64), read(I64), read(U8), I64, write(U8)), short=True)
def pairs_equal(
    left: npt.NDArray[np.int64],
    left_rows: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    right_runs: npt.NDArray[np.int64],
    right_rows: npt.NDArray[np.int64],
    null_equal: npt.NDArray[np.uint8],
    identical: int,
    out: npt.NDArray[np.uint8],
) -> None:
    """out[k] = 1 where row ``left_rows[k]`` (of the one run in ``left``) equals row ``right_rows[k]`` of run
    ``right_runs[k]``: in SQL's sense, NULLs as ``null_equal`` says per item, or in image if ``identical``.  O(cells).
    """
    items = left.shape[1]
    for k in range(out.shape[0]):
        i = left_rows[k]
        run = right_runs[k]
        j = right_rows[k]
        equal = True
        for item in range(items):
            i_null = _is_null(left, 0, item, i)
            j_null = _is_null(right, run, item, j)
            if i_null or j_null:
                equal = i_null and j_null and null_equal[item] != 0
            else:
                equal = _compare_cells(left, 0, i, right, run, j, item) == 0
                if equal and identical != 0:
                    equal = _compare_images(left, 0, i, right, run, j, item) == 0
            if not equal:
                break
        out[k] = 1 if equal else 0


@subroutine
def _settle(heads: Any, run_keys: Any, keys: Any, group: Any, group_hash: Any, below: Any, run: Any, row: Any) -> Any:
    """The first row of the group at or after ``row`` that is visible; -1 if there is none."""
    while row < heads[run, 1] and load_u64(heads[run, 0] + 8 * row) == group_hash:
        if load_i64(heads[run, 4] + heads[run, 5] * row) < below:
            equal = True
            for item in range(keys.shape[1]):
                i_null = _is_null(keys, 0, item, group)
                if i_null or _is_null(run_keys, run, item, row):
                    equal = i_null and _is_null(run_keys, run, item, row)
                else:
                    equal = _compare_cells(keys, 0, group, run_keys, run, row, item) == 0
                if not equal:
                    break
            if equal:
                return row
        row += 1
    return -1


@kernel(
    I64(
        read(I64, 2), RUNS, RUNS, RUNS, read(U64), read(I64), I64, write(I64, 2), write(I64), write(I64),
        write(I64), write(I64), write(I64), write(I64),
    )
)  # fmt: skip
def walk_groups(
    heads: npt.NDArray[np.int64],
    descs: npt.NDArray[np.int64],
    run_keys: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    group_hashes: npt.NDArray[np.uint64],
    limits: npt.NDArray[np.int64],
    below: int,
    positions: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    out_groups: npt.NDArray[np.int64],
    out_runs: npt.NDArray[np.int64],
    out_rows: npt.NDArray[np.int64],
    out_counts: npt.NDArray[np.int64],
) -> int:
    """The first rows of each group in run order, until their multiplicities reach the group's limit.

    ``positions``: int64[groups, runs], lower bounds of the group hashes; overwritten.  ``run_keys``/``keys``: the key
    columns of the runs and of the groups; NULL keys are equal.  Rows whose diffs before ``below`` sum to zero or less
    count in state[2].  Starts at group state[0] with state[1] rows out; when the outputs are full it
    stops before the group that did not fit.  Returns 1 if all groups are done, 0 if the outputs are full, or OVERFLOW.
    """
    runs = heads.shape[0]
    capacity = out_rows.shape[0]
    for group in range(state[0], group_hashes.shape[0]):
        state[0] = group
        active = 0
        cursors = positions[group]
        for run in range(runs):
            at = _settle(heads, run_keys, keys, group, group_hashes[group], below, run, cursors[run])
            if at >= 0:
                cursors[run] = at
                order[active] = run
                active += 1
                _sift(heads, descs, below, cursors, order, active)
        out = state[1]
        live = 0
        dead = 0
        while active > 0 and live < limits[group]:
            first_run = order[active - 1]
            first_row = cursors[first_run]
            total = 0
            passed = 0
            while active > 0:
                run = order[active - 1]
                row = cursors[run]
                if passed > 0 and _order_at(heads, descs, first_run, first_row, run, row) != 0:
                    break
                diff = load_i64(heads[run, 6] + heads[run, 7] * row)
                if _overflows(total, diff):
                    return OVERFLOW
                total += diff
                passed += 1
                row = _settle(heads, run_keys, keys, group, group_hashes[group], below, run, row + 1)
                if row >= 0:
                    cursors[run] = row
                    _sift(heads, descs, below, cursors, order, active)
                else:
                    active -= 1
            if total > 0:
                if out == capacity:
                    return 0
                out_groups[out] = group
                out_runs[out] = first_run
                out_rows[out] = first_row
                out_counts[out] = total
                out += 1
                live = live + total if total < limits[group] - live else limits[group]
            else:
                dead += passed
        state[1] = out
        state[2] += dead
    state[0] = group_hashes.shape[0]
    return 1
