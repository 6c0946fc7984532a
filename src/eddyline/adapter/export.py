"""Engine columns to the Arrow, pandas and Polars values that users see (the type table of ``docs/model.md``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import make_error, unsupported
from eddyline.expr.array_cells import cell_width
from eddyline.expr.array_layout import flattened, has_tails, split_parts
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Cast, Column
from eddyline.repr.types import Kind, SqlType, element_type, is_array, numeric

__all__ = ["check_shown_by_frames", "export_column", "export_table"]

_MONTHS_DAYS_MICROS = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])
_DAYS = (-719_162, 2_932_896)  # 0001-01-01 and 9999-12-31
_DAY_MICROS = 86_400_000_000
_YEARS = "outside the years 1 to 9999"
_MICROS = (_DAYS[0] * _DAY_MICROS, (_DAYS[1] + 1) * _DAY_MICROS - 1, _YEARS)
#: the stored values that frames show: the least, the greatest, and what others are
_FRAME_LIMITS = {
    Kind.DATE: (*_DAYS, _YEARS),
    Kind.TIMESTAMP: _MICROS,
    Kind.TIMESTAMPTZ: _MICROS,
    Kind.TIME: (0, _DAY_MICROS - 1, "of 24:00"),
}
_MAX_MICROS_AS_NANOS = (2**63 - 1) // 1000


def export_table(names: Sequence[str], types: Sequence[SqlType], columns: Sequence[pa.Array]) -> pa.Table:
    """A table with one column per result column; names may repeat."""
    return pa.Table.from_arrays([export_column(c, t) for c, t in zip(columns, types, strict=True)], names=list(names))


def export_column(column: pa.Array, sql_type: SqlType) -> pa.Array:
    """``column`` in the layout users get; shares buffers where the layouts agree.

    Raises 22008 for an interval past what Arrow can hold, 0A000 for an array of several dimensions, 22003 for a numeric
    past 38 digits at the common scale.
    """
    if is_array(sql_type):
        return _lists(column, element_type(sql_type))
    match sql_type.kind:
        case Kind.NUMERIC if sql_type.scale is None:
            return _common_scale(column)
        case Kind.NUMERIC if sql_type.precision is not None:
            return column.cast(pa.decimal128(max(sql_type.precision, sql_type.scale or 0), sql_type.scale))
        case Kind.BPCHAR if sql_type.length is not None:
            return pc.utf8_rpad(column, width=sql_type.length, padding=" ")
        case Kind.INTERVAL:
            return _interval(column)
        case _:
            return column


def check_shown_by_frames(names: Sequence[str], types: Sequence[SqlType], columns: Sequence[pa.Array]) -> None:
    """22008 for what frames cannot show: dates and timestamps outside the years 1 to 9999, such as infinity, and the
    time 24:00.  Elements of arrays count."""
    for name, sql_type, column in zip(names, types, columns, strict=True):
        if is_array(sql_type):
            if element_type(sql_type).kind in _FRAME_LIMITS:
                check_shown_by_frames(
                    (name,), (element_type(sql_type),), (flattened(column, element_type(sql_type))[0],)
                )
            continue
        if sql_type.kind not in _FRAME_LIMITS:
            continue
        first, last, what = _FRAME_LIMITS[sql_type.kind]
        plain = pa.int32() if sql_type.kind is Kind.DATE else pa.int64()
        lowest, highest = pc.min_max(column.view(plain)).as_py().values()
        if lowest is not None and not first <= lowest <= highest <= last:
            raise make_error("22008", f'column "{name}" has values {what}', hint="Cast the column to text.")


def _lists(column: pa.Array, element: SqlType) -> pa.Array:
    """Arrays of one dimension as lists; 0A000 for others.  Subscripts are not kept."""
    for row in np.flatnonzero(has_tails(column)).tolist():
        if len(split_parts(column[row].as_py(), cell_width(element)).lengths) > 1:
            raise unsupported("an array of several dimensions in Arrow", hint="Cast it to text, or unnest it.")
    elements, offsets = flattened(column, element)
    values = export_column(elements, element)
    mask = column.is_null() if column.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)


def _words(column: pa.Array, dtype: np.dtype) -> np.ndarray:
    """The fixed-width values of ``column`` as a NumPy view (NULL slots hold garbage)."""
    buffer = column.buffers()[1]
    if buffer is None or len(column) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, count=len(column), offset=column.offset * dtype.itemsize)


def _common_scale(column: pa.Array) -> pa.Array:
    words = _words(column, np.dtype([("low", "<i8"), ("high", "<i8"), ("scale", "<i8")]))
    valid = ~np.asarray(column.is_null())
    scale = int(words["scale"][valid].max()) if valid.any() else 0
    target = numeric(scale)
    source = numeric(None)
    done = evaluate(Cast(Column(0, source), target), (column,), len(column))
    if done.errors is not None:
        raise make_error(
            "22003",
            "numeric value out of range at the result's common scale",
            hint="Cast the column to numeric(p, s) or text.",
        )
    return done.array


def _interval(column: pa.Array) -> pa.Array:
    words = _words(column, _MONTHS_DAYS_MICROS)
    valid = ~np.asarray(column.is_null())
    micros = np.where(valid, words["micros"], 0)
    if len(micros) and np.abs(micros).max() > _MAX_MICROS_AS_NANOS:
        raise make_error("22008", "interval out of range", hint="Cast the interval to text.")
    out = np.zeros(len(column), np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")]))
    out["months"] = np.where(valid, words["months"], 0)
    out["days"] = np.where(valid, words["days"], 0)
    out["nanos"] = micros * 1000
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), len(column), [bitmap, pa.py_buffer(out)])
