"""Times and timestamps rounded to the digits of a second that their type declares."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.expr.calendar import Int64s, timestamp_in_range
from eddyline.expr.datetime_columns import infinite_timestamp, integers
from eddyline.repr.types import Kind, SqlType, arrow_type

__all__ = ["DATETIME_PRECISION", "rounded"]

#: digits of a second that every value has room for
DATETIME_PRECISION: Final = 6
_EPOCH_2000_US: Final = 946_684_800_000_000

_ROUNDED: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def rounded(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """The values of a time, timestamp or timestamptz column at the type's precision; others as they are.

    Halves go away from zero, which for timestamps is the start of 2000.  Where that would leave the range of the type
    the value stays.
    """
    if sql_type.precision is None or sql_type.kind not in _ROUNDED or not len(array):
        return array
    unit = 10 ** (DATETIME_PRECISION - sql_type.precision)
    micros = integers(array)
    if sql_type.kind is Kind.TIME:
        made = _nearest(micros, unit)
    else:
        made = _nearest(micros - _EPOCH_2000_US, unit) + _EPOCH_2000_US
        made = np.where(infinite_timestamp(micros) | ~timestamp_in_range(made), micros, made)
    valid = None if array.null_count == 0 else ~array.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(made, pa.int64(), mask=valid).view(arrow_type(sql_type))


def _nearest(micros: Int64s, unit: int) -> Int64s:
    size = (np.abs(micros) + unit // 2) // unit * unit
    result: Int64s = np.where(micros < 0, -size, size)
    return result
