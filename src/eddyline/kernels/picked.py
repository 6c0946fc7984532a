"""Adding up the updates of few picked rows, wherever they lie, so that a lookup needs no copy to read a changed key."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import compare_rows_twin
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import load_u64
from eddyline.kernels.row_order import ITEM_BYTES, compare_rows
from eddyline.kernels.signatures import I64, RUNS, U8, read, write

__all__ = ["UNDECIDED", "net_picked", "net_picked_twin"]

#: status: a total that no lookup shows, or rows that the second words of their runs do not tell apart
UNDECIDED: Final = -1

_STEPS: Final = 8
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@subroutine
def _word(heads: Any, run: Any, row: Any) -> Any:
    return load_u64(heads[run, 2] + heads[run, 3] * row)


@kernel(I64(read(I64, 2), RUNS, read(U8), write(I64), write(I64), write(I64), write(I64)), short=True)
def net_picked(
    heads: npt.NDArray[np.int64],
    descs: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.uint8],
    runs: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    diffs: npt.NDArray[np.int64],
    table: npt.NDArray[np.int64],
) -> int:
    """Adds up the diffs of identical rows among the ``wanted`` ones of the picks, in place.

    The first of each stays, in order, with the total; zeros go.  Returns how many are left, all positive, or UNDECIDED:
    a total is negative or leaves int64, or too many differ in spite of equal second words; the picks are lost then.
    ``heads``, ``descs``: see ``cells``.  ``table``: a power of two of entries, more than the picks; scratch.
    Expected O(picks + table).
    """
    table[:] = -1
    mask = np.uint64(len(table) - 1)
    items = descs.shape[1]
    at_descs = np.int64(descs.ctypes.data)
    steps = _STEPS * (len(rows) + 64)
    found = 0
    for i in range(len(rows)):
        if wanted[i] == 0:
            continue
        run, row, diff = runs[i], rows[i], diffs[i]
        word = _word(heads, run, row)
        mixed = word * _MIX
        at = np.int64((mixed ^ (mixed >> np.uint64(32))) & mask)
        other = table[at]
        while other >= 0:
            if word == _word(heads, runs[other], rows[other]):  # noqa: SIM102 - the cheap test first
                if compare_rows(
                    items,
                    at_descs + ITEM_BYTES * items * runs[other],
                    rows[other],
                    at_descs + ITEM_BYTES * items * run,
                    row,
                ) == 0:  # fmt: skip
                    break
            at = np.int64(np.uint64(at + 1) & mask)
            other = table[at]
            steps -= 1
        if steps < 0:
            return UNDECIDED
        if other < 0:
            table[at] = found
            runs[found], rows[found], diffs[found] = run, row, diff
            found += 1
        else:
            total = diffs[other] + diff
            if ((diffs[other] ^ total) & (diff ^ total)) < 0:
                return UNDECIDED
            diffs[other] = total
    kept = 0
    for k in range(found):
        if diffs[k] < 0:
            return UNDECIDED
        runs[kept], rows[kept], diffs[kept] = runs[k], rows[k], diffs[k]
        kept += 1 if diffs[k] != 0 else 0
    return kept


def net_picked_twin(descs: Any, picks: list[tuple[int, int, int]]) -> list[tuple[int, int, int]] | None:
    """The (run, row, total) that ``net_picked`` leaves of the wanted (run, row, diff); None: undecided by a total."""
    totals: list[tuple[int, int, int]] = []
    for run, row, diff in picks:
        for k, (other_run, other, total) in enumerate(totals):
            if compare_rows_twin(descs, other_run, other, descs, run, row) == 0:
                totals[k] = (other_run, other, total + diff)
                break
        else:
            totals.append((run, row, diff))
    if any(not 0 <= total < 1 << 63 for _, _, total in totals):
        return None
    return [pick for pick in totals if pick[2]]
