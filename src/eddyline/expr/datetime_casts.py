"""Casts among date, time, timestamp, timestamptz, interval and text: the table that the cast evaluator reads.

Each entry takes a column and the session's time zone and keeps NULLs.  A cast that is not here does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.calendar import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    DAY_US,
    Int64s,
    timestamp_in_range,
)
from eddyline.expr.datetime_columns import (
    TIME_LAYOUT,
    TIMESTAMPTZ_LAYOUT,
    date_column,
    days_to_micros,
    infinite_timestamp,
    integers,
    time_column,
    timestamp_column,
)
from eddyline.expr.datetime_text import (
    dates_from_text,
    dates_to_text,
    intervals_from_text,
    intervals_to_text,
    times_from_text,
    times_to_text,
    timestamps_from_text,
    timestamps_to_text,
    timestamptzs_from_text,
    timestamptzs_to_text,
)
from eddyline.expr.interval import Intervals, interval_array, intervals_of
from eddyline.expr.registry import Evaluated, RowErrors, failures
from eddyline.expr.timezone import UTC, Zone
from eddyline.repr.types import Kind

__all__ = ["DATETIME_CASTS", "cast_datetime"]

DatetimeCast: TypeAlias = Callable[[pa.Array, Zone], Evaluated]


def cast_datetime(array: pa.Array, source: Kind, target: Kind, zone: Zone = UTC) -> Evaluated:
    """``array`` as ``target``; KeyError if there is no such cast.  Errors never fall on NULLs."""
    converted = DATETIME_CASTS[source, target](array, zone)
    if array.null_count == 0:
        return converted
    valid = array.is_valid()
    kept = pc.if_else(valid, converted.array, pa.scalar(None, converted.array.type))
    if converted.errors is None:
        return Evaluated(kept)
    return Evaluated(kept, _only_valid(converted.errors, valid.to_numpy(zero_copy_only=False)))


def _only_valid(errors: RowErrors, valid: np.ndarray) -> RowErrors | None:
    keep = np.flatnonzero(valid[errors.rows]).tolist()
    if not keep:
        return None
    return RowErrors(errors.rows[keep], [errors.sqlstates[i] for i in keep], [errors.messages[i] for i in keep], [])


def _date_to_timestamp(array: pa.Array, zone: Zone) -> Evaluated:
    micros, bad = days_to_micros(integers(array))
    return Evaluated(timestamp_column(micros), failures(bad, "22008", "date out of range for timestamp"))


def _date_to_timestamptz(array: pa.Array, zone: Zone) -> Evaluated:
    local, bad = days_to_micros(integers(array))
    micros = zone.to_utc(local)
    late = ~bad & ~infinite_timestamp(local) & ~timestamp_in_range(micros)
    return Evaluated(
        timestamp_column(micros, TIMESTAMPTZ_LAYOUT),
        failures(bad | late, "22008", "date out of range for timestamp"),
    )


def _days(micros: Int64s) -> pa.Array:
    infinite = infinite_timestamp(micros)
    endless = np.where(micros > 0, DATE_INFINITY, DATE_MINUS_INFINITY)
    return date_column(np.where(infinite, endless, micros // DAY_US))


def _times(micros: Int64s) -> pa.Array:
    """Of infinity there is no time of day: NULL."""
    infinite = infinite_timestamp(micros)
    times = time_column(micros % DAY_US)
    return pc.if_else(pa.array(~infinite), times, pa.scalar(None, TIME_LAYOUT)) if infinite.any() else times


def _timestamp_to_timestamptz(array: pa.Array, zone: Zone) -> Evaluated:
    local = integers(array)
    micros = zone.to_utc(local)
    bad = ~infinite_timestamp(local) & ~timestamp_in_range(micros)
    column = timestamp_column(micros, TIMESTAMPTZ_LAYOUT)
    return Evaluated(column, failures(bad, "22008", "timestamp out of range"))


def _timestamptz_to_timestamp(array: pa.Array, zone: Zone) -> Evaluated:
    micros = integers(array)
    local = zone.to_local(micros)
    bad = ~infinite_timestamp(micros) & ~timestamp_in_range(local)
    return Evaluated(timestamp_column(local), failures(bad, "22008", "timestamp out of range"))


def _time_to_interval(array: pa.Array, zone: Zone) -> Evaluated:
    zeros = np.zeros(len(array), np.int64)
    return Evaluated(interval_array(Intervals(zeros, zeros, integers(array)), None))


def _interval_to_time(array: pa.Array, zone: Zone) -> Evaluated:
    return Evaluated(time_column(intervals_of(array).micros % DAY_US))


_K = Kind
_FROM_TEXT: Final[dict[Kind, DatetimeCast]] = {
    _K.DATE: lambda array, zone: dates_from_text(array),
    _K.TIME: lambda array, zone: times_from_text(array),
    _K.TIMESTAMP: lambda array, zone: timestamps_from_text(array),
    _K.TIMESTAMPTZ: timestamptzs_from_text,
    _K.INTERVAL: lambda array, zone: intervals_from_text(array),
}
_TO_TEXT: Final[dict[Kind, Callable[[pa.Array, Zone], pa.Array]]] = {
    _K.DATE: lambda array, zone: dates_to_text(array),
    _K.TIME: lambda array, zone: times_to_text(array),
    _K.TIMESTAMP: lambda array, zone: timestamps_to_text(array),
    _K.TIMESTAMPTZ: timestamptzs_to_text,
    _K.INTERVAL: lambda array, zone: intervals_to_text(array),
}


def _printing(print_column: Callable[[pa.Array, Zone], pa.Array]) -> DatetimeCast:
    def cast(array: pa.Array, zone: Zone) -> Evaluated:
        return Evaluated(print_column(array, zone))

    return cast


#: (from, to) -> cast; text stands for varchar and char too, lengths are the caller's business
DATETIME_CASTS: Final[dict[tuple[Kind, Kind], DatetimeCast]] = {
    **{(_K.TEXT, kind): cast for kind, cast in _FROM_TEXT.items()},
    **{(kind, _K.TEXT): _printing(print_column) for kind, print_column in _TO_TEXT.items()},
    (_K.DATE, _K.TIMESTAMP): _date_to_timestamp,
    (_K.DATE, _K.TIMESTAMPTZ): _date_to_timestamptz,
    (_K.TIMESTAMP, _K.DATE): lambda array, zone: Evaluated(_days(integers(array))),
    (_K.TIMESTAMP, _K.TIME): lambda array, zone: Evaluated(_times(integers(array))),
    (_K.TIMESTAMP, _K.TIMESTAMPTZ): _timestamp_to_timestamptz,
    (_K.TIMESTAMPTZ, _K.TIMESTAMP): _timestamptz_to_timestamp,
    (_K.TIMESTAMPTZ, _K.DATE): lambda array, zone: Evaluated(_days(zone.to_local(integers(array)))),
    (_K.TIMESTAMPTZ, _K.TIME): lambda array, zone: Evaluated(_times(zone.to_local(integers(array)))),
    (_K.TIME, _K.INTERVAL): _time_to_interval,
    (_K.INTERVAL, _K.TIME): _interval_to_time,
}
