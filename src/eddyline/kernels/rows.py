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

from eddyline.kernels.cells import HEAD
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import copy_bytes, load_i64, load_u64, store_i64
from eddyline.kernels.row_order import ITEM_BYTES, compare_cells, compare_images, compare_rows, is_null
from eddyline.kernels.row_twins import (
    compact_rows_twin,
    merge_rows_twin,
    pairs_equal_twin,
    sort_rows_twin,
    sum_identical_twin,
    walk_groups_twin,
)
from eddyline.kernels.signatures import I64, RUNS, U8, U64, VOID, read, write

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

_ONE: Final = np.uint64(1)
_32: Final = np.uint64(32)
_INSERTION_ROWS: Final = 12
_STEPS: Final = 8
#: bytes of a run's head
_HEAD_BYTES: Final = 8 * HEAD
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_TIME: Final = np.uint64(0xC2B2AE3D27D4EB4F)


@subroutine
def _address(array: Any) -> Any:
    return np.int64(array.ctypes.data)


@subroutine
def _tie_before(items: Any, a: Any, words: Any, times: Any, i: Any, j: Any) -> Any:
    """Whether row i sorts strictly before row j of one batch, their hashes being equal.  All but rows: addresses."""
    x = load_u64(words + 8 * i)
    y = load_u64(words + 8 * j)
    if x != y:
        return x < y
    order = compare_rows(items, a, i, a, j)
    if order != 0:
        return order < 0
    return load_i64(times + 8 * i) < load_i64(times + 8 * j)


@subroutine
def _insertion_sort(
    items: Any, descs: Any, hashes: Any, words: Any, times: Any, rows: Any, cache: Any, start: Any, stop: Any
) -> None:
    """``cache``: where the hash of the row at each place goes, so that each is looked up once."""
    for k in range(start, stop):
        row = load_i64(rows + 8 * k)
        row_hash = load_u64(hashes + 8 * row)
        at = k
        while at > start:
            other_hash = load_u64(cache + 8 * (at - 1))
            if row_hash > other_hash:
                break
            other = load_i64(rows + 8 * (at - 1))
            if row_hash == other_hash and not _tie_before(items, descs, words, times, row, other):
                break
            store_i64(rows + 8 * at, other)
            store_i64(cache + 8 * at, np.int64(other_hash))
            at -= 1
        store_i64(rows + 8 * at, row)
        store_i64(cache + 8 * at, np.int64(row_hash))


@subroutine
def _merge_sort(
    items: Any, descs: Any, hashes: Any, words: Any, times: Any, rows: Any, scratch: Any, begin: Any, end: Any
) -> None:
    """Stable sort of ``rows[begin:end]``: insertion sort of short stretches, then merges bottom-up.  Addresses."""
    for start in range(begin, end, _INSERTION_ROWS):
        _insertion_sort(items, descs, hashes, words, times, rows, scratch, start, min(start + _INSERTION_ROWS, end))
    width = _INSERTION_ROWS
    while width < end - begin:
        start = begin
        while start + width < end:
            middle = start + width
            stop = min(middle + width, end)
            copy_bytes(scratch + 8 * start, rows + 8 * start, 8 * width)
            left = start
            right = middle
            out = start
            while left < middle and right < stop:
                i = load_i64(rows + 8 * right)
                j = load_i64(scratch + 8 * left)
                i_hash = load_u64(hashes + 8 * i)
                j_hash = load_u64(hashes + 8 * j)
                right_first = i_hash < j_hash
                if i_hash == j_hash:
                    right_first = _tie_before(items, descs, words, times, i, j)
                if right_first:
                    store_i64(rows + 8 * out, i)
                    right += 1
                else:
                    store_i64(rows + 8 * out, j)
                    left += 1
                out += 1
            copy_bytes(rows + 8 * out, scratch + 8 * left, 8 * (middle - left))
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
    items = descs.shape[1]
    at_descs = _address(descs)
    at_hashes = _address(hashes)
    at_words = _address(words)
    at_times = _address(times)
    at_rows = _address(rows)
    at_scratch = _address(scratch)
    begin = 0
    for b in range(count):
        end = buckets[b]
        if end - begin > 1:
            _merge_sort(items, at_descs, at_hashes, at_words, at_times, at_rows, at_scratch, begin, end)
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

    Zero totals are dropped.  ``table``: a power of two of entries, more than n, all -1 on entry; scratch.  Returns the
    number of rows kept, OVERFLOW, or FEW_ALIKE: of the first ``trial`` rows three quarters are distinct, or many
    distinct rows have one hash.  Expected O(n).
    """
    mask = np.uint64(table.shape[0] - 1)
    items = descs.shape[1]
    at_descs = _address(descs)
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
                if compare_rows(items, at_descs, row, at_descs, i) == 0:
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
    items = descs.shape[1]
    at_descs = _address(descs)
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
            if compare_rows(items, at_descs, i, at_descs, j) != 0:
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
def _order_at(items: Any, a_head: Any, a: Any, i: Any, b_head: Any, b: Any, j: Any) -> Any:
    """Order of two rows of two runs by (key hash, second word, canonical order); addresses of heads, descriptors."""
    x = load_u64(load_i64(a_head) + 8 * i)
    y = load_u64(load_i64(b_head) + 8 * j)
    if x != y:
        return -1 if x < y else 1
    x = load_u64(load_i64(a_head + 16) + load_i64(a_head + 24) * i)
    y = load_u64(load_i64(b_head + 16) + load_i64(b_head + 24) * j)
    if x != y:
        return -1 if x < y else 1
    return compare_rows(items, a, i, b, j)


@subroutine
def _merge_tie_before(items: Any, since: Any, a_head: Any, a: Any, i: Any, b_head: Any, b: Any, j: Any) -> Any:
    """Whether row i of the older run stands before row j, their key hashes and second words being equal.

    ``a_head``, ``b_head``: addresses of the runs' heads; ``a``, ``b``: of their descriptors.
    """
    order = compare_rows(items, a, i, b, j)
    if order != 0:
        return order < 0
    p = max(load_i64(load_i64(a_head + 32) + load_i64(a_head + 40) * i), since)
    q = max(load_i64(load_i64(b_head + 32) + load_i64(b_head + 40) * j), since)
    if p != q:
        return p < q
    return a_head < b_head


@subroutine
def _sift(items: Any, heads: Any, descs: Any, since: Any, cursors: Any, order: Any, count: Any) -> None:
    """``order[:count]`` is sorted, smallest last, but for its last entry: moves that to its place.

    ``heads``, ``descs``: addresses of the first run's; ``cursors``, ``order``: of the arrays.
    """
    run = load_i64(order + 8 * (count - 1))
    row = load_i64(cursors + 8 * run)
    head = heads + _HEAD_BYTES * run
    row_hash = load_u64(load_i64(head) + 8 * row)
    at = count - 1
    while at > 0:
        other = load_i64(order + 8 * (at - 1))
        other_row = load_i64(cursors + 8 * other)
        other_head = heads + _HEAD_BYTES * other
        other_hash = load_u64(load_i64(other_head) + 8 * other_row)
        if row_hash < other_hash:
            break
        if row_hash == other_hash:
            x = load_u64(load_i64(other_head + 16) + load_i64(other_head + 24) * other_row)
            y = load_u64(load_i64(head + 16) + load_i64(head + 24) * row)
            if y < x:
                break
            size = ITEM_BYTES * items
            if x == y and not _merge_tie_before(
                items, since, other_head, descs + size * other, other_row, head, descs + size * run, row
            ):
                break
        store_i64(order + 8 * at, other)
        at -= 1
    store_i64(order + 8 * at, run)


@subroutine
def _remember(head: Any, row: Any, words: Any) -> None:
    """Puts the key hash and the second word of a run's row where its next ones are looked up: ``words``, an address."""
    store_i64(words, load_i64(load_i64(head) + 8 * row))
    store_i64(words + 8, load_i64(load_i64(head + 16) + load_i64(head + 24) * row))


@subroutine
def _sift_words(
    items: Any, heads: Any, descs: Any, since: Any, cursors: Any, order: Any, words: Any, count: Any
) -> None:
    """As ``_sift``, by the words of each run's next row (``_remember``), 16 bytes a run: rows only break ties."""
    run = load_i64(order + 8 * (count - 1))
    row_hash = load_u64(words + 16 * run)
    at = count - 1
    while at > 0:
        other = load_i64(order + 8 * (at - 1))
        other_hash = load_u64(words + 16 * other)
        if row_hash < other_hash:
            break
        if row_hash == other_hash:
            x = load_u64(words + 16 * other + 8)
            y = load_u64(words + 16 * run + 8)
            if y < x:
                break
            size = ITEM_BYTES * items
            if x == y and not _merge_tie_before(
                items,
                since,
                heads + _HEAD_BYTES * other,
                descs + size * other,
                load_i64(cursors + 8 * other),
                heads + _HEAD_BYTES * run,
                descs + size * run,
                load_i64(cursors + 8 * run),
            ):
                break
        store_i64(order + 8 * at, other)
        at -= 1
    store_i64(order + 8 * at, run)


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
    items = descs.shape[1]
    at_heads = _address(heads)
    at_descs = _address(descs)
    at_cursors = _address(cursors)
    at_order = _address(order)
    size = ITEM_BYTES * items
    next_words = np.empty(2 * heads.shape[0], np.uint64)
    at_words = _address(next_words)
    for run in range(heads.shape[0]):
        if cursors[run] < heads[run, 1]:
            _remember(at_heads + _HEAD_BYTES * run, cursors[run], at_words + 16 * run)
    active = state[0]
    if active < 0:
        active = 0
        for run in range(heads.shape[0]):
            if cursors[run] < heads[run, 1]:
                order[active] = run
                active += 1
                _sift_words(items, at_heads, at_descs, since, at_cursors, at_order, at_words, active)
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
            word_hash = next_words[2 * run]
            word = next_words[2 * run + 1]
            same = False
            if out > base:
                last = out - 1
                same = (
                    out_hashes[last] == word_hash
                    and out_words[last] == word
                    and out_times[last] == time
                    and compare_rows(
                        items,
                        at_descs + size * pick_runs[last - base],
                        pick_rows[last - base],
                        at_descs + size * run,
                        row,
                    )
                    == 0
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
            _remember(at_heads + _HEAD_BYTES * run, row + 1, at_words + 16 * run)
            _sift_words(items, at_heads, at_descs, since, at_cursors, at_order, at_words, active)
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
    at_left = _address(left)
    at_right = _address(right)
    for k in range(out.shape[0]):
        i = left_rows[k]
        run = right_runs[k]
        j = right_rows[k]
        equal = True
        for item in range(items):
            p = at_left + ITEM_BYTES * item
            q = at_right + ITEM_BYTES * (items * run + item)
            i_null = is_null(p, i)
            j_null = is_null(q, j)
            if i_null or j_null:
                equal = i_null and j_null and null_equal[item] != 0
            else:
                equal = compare_cells(p, i, q, j) == 0
                if equal and identical != 0:
                    equal = compare_images(p, i, q, j) == 0
            if not equal:
                break
        out[k] = 1 if equal else 0


@subroutine
def _settle(head: Any, items: Any, run: Any, keys: Any, group: Any, group_hash: Any, below: Any, row: Any) -> Any:
    """The first row of the group at or after ``row`` that is visible; -1 if there is none.

    Addresses of the run's head, of its key columns' descriptors (``run``) and of the groups' (``keys``).
    """
    rows = load_i64(head + 8)
    hashes = load_i64(head)
    while row < rows and load_u64(hashes + 8 * row) == group_hash:
        if load_i64(load_i64(head + 32) + load_i64(head + 40) * row) < below:
            equal = True
            for item in range(items):
                p = keys + ITEM_BYTES * item
                q = run + ITEM_BYTES * item
                i_null = is_null(p, group)
                j_null = is_null(q, row)
                equal = i_null and j_null if i_null or j_null else compare_cells(p, group, q, row) == 0
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
    items = descs.shape[1]
    key_items = keys.shape[1]
    size = ITEM_BYTES * items
    key_size = ITEM_BYTES * key_items
    at_heads = _address(heads)
    at_descs = _address(descs)
    at_keys = _address(keys)
    at_run_keys = _address(run_keys)
    at_order = _address(order)
    capacity = out_rows.shape[0]
    for group in range(state[0], group_hashes.shape[0]):
        state[0] = group
        active = 0
        cursors = positions[group]
        at_cursors = _address(cursors)
        for run in range(runs):
            at = _settle(
                at_heads + _HEAD_BYTES * run,
                key_items,
                at_run_keys + key_size * run,
                at_keys,
                group,
                group_hashes[group],
                below,
                cursors[run],
            )
            if at >= 0:
                cursors[run] = at
                order[active] = run
                active += 1
                _sift(items, at_heads, at_descs, below, at_cursors, at_order, active)
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
                if (
                    passed > 0
                    and _order_at(
                        items,
                        at_heads + _HEAD_BYTES * first_run,
                        at_descs + size * first_run,
                        first_row,
                        at_heads + _HEAD_BYTES * run,
                        at_descs + size * run,
                        row,
                    )
                    != 0
                ):
                    break
                diff = load_i64(heads[run, 6] + heads[run, 7] * row)
                if _overflows(total, diff):
                    return OVERFLOW
                total += diff
                passed += 1
                row = _settle(
                    at_heads + _HEAD_BYTES * run,
                    key_items,
                    at_run_keys + key_size * run,
                    at_keys,
                    group,
                    group_hashes[group],
                    below,
                    row + 1,
                )
                if row >= 0:
                    cursors[run] = row
                    _sift(items, at_heads, at_descs, below, at_cursors, at_order, active)
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
