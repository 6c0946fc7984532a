"""Finding key hashes in all runs of a trace at once.

Hashes of a run are sorted and close to uniform, so a search interpolates between the run's own first and last hash,
then gallops around the guess.  Ascending searches start where the last one ended.  ``heads``: see ``cells.HEAD``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import cell, head_row
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import load_i64, load_u8, load_u64
from eddyline.kernels.signatures import I64, RUNS, U8, U64, VOID, read, write

__all__ = ["SEARCH_STATE", "locate", "locate_twin", "probe", "probe_twin", "seek", "seek_twin"]

#: ``probe`` state: 0 next probe row, 1 next run (of that row), 2 next position in that run (-1: search it)
SEARCH_STATE: Final = 3

_STEP_ROWS: Final = 16
_GUESSES: Final = 3


@subroutine
def _lower_bound(hashes: Any, rows: Any, target: Any, start: Any) -> Any:
    """First position at or after ``start`` whose hash is >= target; requires hash[start - 1] < target."""
    low = start
    stop = min(start + _STEP_ROWS, rows)
    while low < stop:
        if load_u64(hashes + 8 * low) >= target:
            return low
        low += 1
    if low >= rows:
        return rows
    low -= 1
    high = rows - 1
    if load_u64(hashes + 8 * high) < target:
        return rows
    # from here on: hash[low] < target <= hash[high]
    low_hash = load_u64(hashes + 8 * low)
    high_hash = load_u64(hashes + 8 * high)
    guesses = 0
    middle = low
    while guesses < _GUESSES and high - low > _STEP_ROWS:
        share = np.float64(target - low_hash) / np.float64(high_hash - low_hash)
        middle = low + np.int64(share * np.float64(high - low))
        middle = min(max(middle, low + 1), high - 1)
        value = load_u64(hashes + 8 * middle)
        if value < target:
            low = middle
            low_hash = value
        else:
            high = middle
            high_hash = value
        guesses += 1
    step = 8
    if middle == low:
        while low + step < high:
            if load_u64(hashes + 8 * (low + step)) >= target:
                high = low + step
                break
            low += step
            step *= 2
    else:
        while high - step > low:
            if load_u64(hashes + 8 * (high - step)) < target:
                low = high - step
                break
            high -= step
            step *= 2
    while high - low > 1:
        middle = (low + high) >> 1
        if load_u64(hashes + 8 * middle) < target:
            low = middle
        else:
            high = middle
    return high


@kernel(VOID(read(I64, 2), read(U64), write(I64, 2)))
def locate(heads: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64], out: npt.NDArray[np.int64]) -> None:
    """out[k, run] = the first position in the run whose hash is >= hashes[k] (any order of hashes)."""
    for run in range(heads.shape[0]):
        start = 0
        for k in range(hashes.shape[0]):
            if k == 0 or hashes[k] < hashes[k - 1]:
                start = 0
            start = _lower_bound(heads[run, 0], heads[run, 1], hashes[k], start)
            out[k, run] = start


@subroutine
def _precedes(heads: Any, run: Any, at: Any, target: Any, word: Any) -> Any:
    return load_u64(heads[run, 0] + 8 * at) == target and load_u64(heads[run, 2] + heads[run, 3] * at) < word


@kernel(VOID(read(I64, 2), read(U64), read(U64), write(I64, 2)))
def seek(
    heads: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    positions: npt.NDArray[np.int64],
) -> None:
    """Moves ``positions`` (of ``locate``) past the rows of the same hash whose second word is below ``words[k]``.

    O(log of the rows passed) each.
    """
    for k in range(hashes.shape[0]):
        for run in range(heads.shape[0]):
            rows = heads[run, 1]
            low = positions[k, run]
            if low >= rows or not _precedes(heads, run, low, hashes[k], words[k]):
                continue
            step = 1
            while low + step < rows and _precedes(heads, run, low + step, hashes[k], words[k]):
                low += step
                step *= 2
            high = min(low + step, rows)
            while high - low > 1:
                middle = (low + high) >> 1
                if _precedes(heads, run, middle, hashes[k], words[k]):
                    low = middle
                else:
                    high = middle
            positions[k, run] = high


@subroutine
def _null_key(keys: Any, row: Any, null_safe: Any) -> Any:
    for item in range(keys.shape[1]):
        if null_safe[item] == 0 and keys[0, item, 3] != 0:
            bit = keys[0, item, 4] + row
            if (load_u8(keys[0, item, 3] + (bit >> 3)) >> np.uint64(bit & 7)) & np.uint64(1) == np.uint64(0):
                return True
    return False


@kernel(
    I64(
        read(I64, 2), RUNS, read(U64), read(U8), I64, write(I64), write(I64),
        write(I64), write(I64), write(I64), write(I64), write(I64),
    ),
    short=True,
)  # fmt: skip
def probe(
    heads: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint64],
    null_safe: npt.NDArray[np.uint8],
    below: int,
    cursors: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    out_probes: npt.NDArray[np.int64],
    out_runs: npt.NDArray[np.int64],
    out_rows: npt.NDArray[np.int64],
    out_times: npt.NDArray[np.int64],
    out_diffs: npt.NDArray[np.int64],
) -> int:
    """Candidates: (probe row, run, row) with equal key hash and time < ``below``, in that order, until the outputs are
    full.  Returns their number; all are out iff state[0] == len(hashes).

    ``keys``: the probes' key columns (one run); a NULL in one that is not ``null_safe`` matches nothing.  ``cursors``:
    int64[runs], zeros before the first call.  ``state``: see SEARCH_STATE; (0, 0, -1) before the first call.
    """
    count = 0
    capacity = out_rows.shape[0]
    runs = heads.shape[0]
    n = hashes.shape[0]
    row = state[0]
    run = state[1]
    at = state[2]
    while row < n:
        target = hashes[row]
        if run == 0 and at < 0:
            # before NULLs are passed over: a cursor must be right for the row after them as well
            if row > 0 and target < hashes[row - 1]:
                for r in range(runs):
                    cursors[r] = 0
            if _null_key(keys, row, null_safe):
                row += 1
                continue
        while run < runs:
            address = heads[run, 0]
            rows = heads[run, 1]
            if at < 0:
                at = _lower_bound(address, rows, target, cursors[run])
                cursors[run] = at
            while at < rows and load_u64(address + 8 * at) == target:
                time = load_i64(heads[run, 4] + heads[run, 5] * at)
                if time < below:
                    if count == capacity:
                        state[0] = row
                        state[1] = run
                        state[2] = at
                        return count
                    out_probes[count] = row
                    out_runs[count] = run
                    out_rows[count] = at
                    out_times[count] = time
                    out_diffs[count] = load_i64(heads[run, 6] + heads[run, 7] * at)
                    count += 1
                at += 1
            at = -1
            run += 1
        run = 0
        row += 1
    state[0] = n
    state[1] = 0
    state[2] = -1
    return count


def _hashes_of(heads: Any, run: int) -> list[int]:
    return [head_row(heads, run, row)[0] for row in range(int(heads[run, 1]))]


def locate_twin(heads: Any, hashes: Any) -> list[list[int]]:
    """What ``locate`` fills in."""
    return [[bisect_left(_hashes_of(heads, run), int(h)) for run in range(len(heads))] for h in hashes]


def seek_twin(heads: Any, hashes: Any, words: Any, positions: Any) -> list[list[int]]:
    """What ``seek`` leaves in ``positions``."""
    out = []
    for target, word, row_positions in zip(hashes, words, positions, strict=True):
        moved = []
        for run, at in enumerate(row_positions):
            while at < heads[run, 1] and head_row(heads, run, at)[0] == target and head_row(heads, run, at)[1] < word:
                at += 1
            moved.append(int(at))
        out.append(moved)
    return out


def probe_twin(heads: Any, keys: Any, hashes: Any, null_safe: Any, below: int) -> list[tuple[int, int, int]]:
    """(probe row, run, row) of all candidates."""
    out = []
    for k, target in enumerate(hashes):
        if any(not safe and cell(d, k) is None for d, safe in zip(keys[0], null_safe, strict=True)):
            continue
        for run in range(len(heads)):
            for row, value in enumerate(_hashes_of(heads, run)):
                if value == target and head_row(heads, run, row)[2] < below:
                    out.append((k, run, row))
    return out
