"""Plain-Python twins of the kernels in ``rows``: their specification, and what they are tested against."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np

from eddyline.kernels.cells import cell, compare_rows_twin, head_row, image, sql_key

__all__ = [
    "compact_rows_twin",
    "merge_rows_twin",
    "pairs_equal_twin",
    "sort_rows_twin",
    "sum_identical_twin",
    "walk_groups_twin",
]


def sort_rows_twin(descs: Any, hashes: Any, words: Any, times: Any) -> list[int]:
    """What ``sort_rows`` leaves in ``rows``."""

    def compare(i: int, j: int) -> int:
        x, y = (hashes[i], words[i]), (hashes[j], words[j])
        if x != y:
            return -1 if x < y else 1
        return compare_rows_twin(descs, 0, i, descs, 0, j) or int(times[i] > times[j]) - int(times[i] < times[j])

    return sorted(range(len(hashes)), key=cmp_to_key(compare))


def compact_rows_twin(descs: Any, times: Any, diffs: Any, rows: list[int]) -> list[tuple[int, int, int]]:
    """(row, time, diff) of what ``compact_rows`` keeps."""
    groups: list[tuple[int, int, int]] = []
    for i in rows:
        if groups:
            j, time, total = groups[-1]
            if time == times[i] and compare_rows_twin(descs, 0, j, descs, 0, i) == 0:
                groups[-1] = (j, time, total + int(diffs[i]))
                continue
        groups.append((i, int(times[i]), int(diffs[i])))
    return [g for g in groups if g[2] != 0]


def sum_identical_twin(descs: Any, times: Any, diffs: Any) -> list[tuple[int, int]]:
    """(row, total) of what ``sum_identical`` keeps."""
    totals: dict[int, int] = {}
    for i in range(len(times)):
        first = next(
            (j for j in totals if times[j] == times[i] and compare_rows_twin(descs, 0, j, descs, 0, i) == 0), i
        )
        totals[first] = totals.get(first, 0) + int(diffs[i])
    return [(row, total) for row, total in totals.items() if total]


def merge_rows_twin(heads: Any, descs: Any, since: int, below: int) -> list[tuple[int, int, int, int]]:
    """(run, row, time, diff) of a whole merge."""
    entries = []
    for run in range(len(heads)):
        for row in range(int(heads[run, 1])):
            word_hash, word, time, diff = head_row(heads, run, row)
            if time < below:
                entries.append((word_hash, word, max(time, since), diff, run, row))

    def compare(x: Any, y: Any) -> int:
        if x[:2] != y[:2]:
            return -1 if x[:2] < y[:2] else 1
        return compare_rows_twin(descs, x[4], x[5], descs, y[4], y[5]) or (x[2] > y[2]) - (x[2] < y[2])

    out: list[tuple[int, int, int, int]] = []
    previous = None
    for entry in sorted(entries, key=cmp_to_key(compare)):
        if previous is not None and compare(previous, entry) == 0:
            run, row, time, diff = out[-1]
            out[-1] = (run, row, time, diff + entry[3])
        else:
            out.append((entry[4], entry[5], entry[2], entry[3]))
        previous = entry
    return [row for row in out if row[3] != 0]


def pairs_equal_twin(
    left: Any, left_rows: Any, right: Any, right_runs: Any, right_rows: Any, null_equal: Any, identical: int
) -> list[bool]:
    """What ``pairs_equal`` fills in."""

    def equal(x: Any, y: Any, i: int, j: int, null: int) -> bool:
        kind, p, q = int(x[0]), cell(x, i), cell(y, j)
        if p is None or q is None:
            return p is None and q is None and bool(null)
        same = bool(sql_key(kind, p) == sql_key(kind, q))
        return same and (not identical or bool(image(kind, p) == image(kind, q)))

    return [
        all(equal(x, y, i, j, null) for x, y, null in zip(left[0], right[run], null_equal, strict=True))
        for i, run, j in zip(left_rows, right_runs, right_rows, strict=True)
    ]


def walk_groups_twin(
    heads: Any, descs: Any, run_keys: Any, keys: Any, group_hashes: Any, limits: Any, below: int
) -> list[tuple[int, int, int, int]]:
    """(group, run, row, multiplicity) as ``walk_groups`` puts out, from a whole merge at one time."""
    merged = merge_rows_twin(heads, descs, below, below)
    nulls_equal = np.ones(keys.shape[1], np.uint8)
    out = []
    for group, group_hash in enumerate(group_hashes):
        live = 0
        for run, row, _, total in merged:
            if live >= limits[group]:
                break
            in_group = head_row(heads, run, row)[0] == group_hash
            if in_group and total > 0 and pairs_equal_twin(keys, [group], run_keys, [run], [row], nulls_equal, 0)[0]:
                out.append((group, run, row, total))
                live += total
    return out
