"""The slow path: a Python function applied to the distinct argument rows of a column.

For what neither Arrow nor NumPy computes with PostgreSQL's meaning.  Values become Python objects in slices of at
most ``SLICE_ROWS`` rows, and equal arguments are computed once per call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import DatabaseError
from eddyline.expr.registry import Evaluated, RowErrors

__all__ = ["SLICE_ROWS", "as_storage", "map_rows", "with_layout"]

SLICE_ROWS: Final = 2_000

#: layouts whose Python values are handled as plain integers
_STORAGE: Final[dict[pa.DataType, pa.DataType]] = {
    pa.date32(): pa.int32(),
    pa.time64("us"): pa.int64(),
    pa.timestamp("us"): pa.int64(),
    pa.timestamp("us", tz="UTC"): pa.int64(),
}


def as_storage(array: pa.Array) -> pa.Array:
    """Dates, times and timestamps as the integers they are stored as; other layouts unchanged.  O(1)."""
    storage = _STORAGE.get(array.type)
    return array if storage is None else array.view(storage)


def with_layout(array: pa.Array, layout: pa.DataType) -> pa.Array:
    """The inverse of ``as_storage``."""
    return array if array.type == layout else array.view(layout)


def map_rows(columns: Sequence[pa.Array], function: Callable[..., Any], layout: pa.DataType) -> Evaluated:
    """``function`` of each row's values; NULL where a value is NULL; DatabaseErrors become row errors.

    ``columns``: one or more, of equal length.  ``function`` must be pure; it may return None.
    """
    storage = _STORAGE.get(layout, layout)
    if len(columns) == 1:
        return _map_distinct(as_storage(columns[0]), function, layout, storage)
    return _map_memoized([as_storage(c) for c in columns], function, layout, storage)


def _map_distinct(
    column: pa.Array, function: Callable[..., Any], layout: pa.DataType, storage: pa.DataType
) -> Evaluated:
    encoded = column.dictionary_encode()
    values: list[Any] = []
    errors: dict[int, DatabaseError] = {}
    distinct = encoded.dictionary
    for start in range(0, len(distinct), SLICE_ROWS):
        for value in distinct.slice(start, SLICE_ROWS).to_pylist():
            try:
                values.append(function(value))
            except DatabaseError as error:
                errors[len(values)] = error
                values.append(None)
    array = with_layout(pa.array(values, storage).take(encoded.indices), layout)
    if not errors:
        return Evaluated(array)
    failed = pc.is_in(encoded.indices, pa.array(list(errors), encoded.indices.type))
    rows = np.flatnonzero(failed.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)
    kinds = [errors[code] for code in encoded.indices.take(pa.array(rows)).to_pylist()]
    return Evaluated(array, RowErrors(rows, [e.sqlstate for e in kinds], [e.message for e in kinds], []))


def _map_memoized(
    columns: Sequence[pa.Array], function: Callable[..., Any], layout: pa.DataType, storage: pa.DataType
) -> Evaluated:
    memo: dict[tuple[Any, ...], tuple[Any, DatabaseError | None]] = {}
    failed: list[tuple[int, DatabaseError]] = []
    pieces: list[pa.Array] = []
    for start in range(0, len(columns[0]), SLICE_ROWS):
        values: list[Any] = []
        slices = [c.slice(start, SLICE_ROWS).to_pylist() for c in columns]
        for arguments in zip(*slices, strict=True):
            known = memo.get(arguments)
            if known is None:
                known = memo[arguments] = _attempt(function, arguments)
            if known[1] is not None:
                failed.append((start + len(values), known[1]))
            values.append(known[0])
        pieces.append(pa.array(values, storage))
    array = with_layout(pa.concat_arrays(pieces) if pieces else pa.array([], storage), layout)
    if not failed:
        return Evaluated(array)
    rows = np.array([row for row, _ in failed], np.int64)
    return Evaluated(array, RowErrors(rows, [e.sqlstate for _, e in failed], [e.message for _, e in failed], []))


def _attempt(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, DatabaseError | None]:
    if None in arguments:
        return None, None
    try:
        return function(*arguments), None
    except DatabaseError as error:
        return None, error
