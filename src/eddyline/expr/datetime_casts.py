"""Casts among date, time, timestamp, timestamptz and interval.

A timestamp is read as UTC where a time zone is needed: the binder spells out another session's zone as AT TIME ZONE.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.expr.calendar import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    DAY_US,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    TIMESTAMP_MINUS_INFINITY,
    Int64s,
)
from eddyline.expr.interval import Intervals, interval_array, intervals_of
from eddyline.expr.layout import fixed_array, validity, values_of
from eddyline.expr.registry import Evaluated, failures
from eddyline.repr.types import Kind, SqlType

__all__ = ["cast_datetime"]


def cast_datetime(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated | None:
    """``array`` as ``target``; None for a pair that has no such cast.  22008 for what ``target`` cannot hold."""
    valid = validity(array)
    match source.kind, target.kind:
        case Kind.DATE, (Kind.TIMESTAMP | Kind.TIMESTAMPTZ):
            return _date_to_stamp(array, target)
        case (Kind.TIMESTAMP | Kind.TIMESTAMPTZ), (Kind.TIMESTAMP | Kind.TIMESTAMPTZ):
            return Evaluated(array.view(pa.int64()).view(_layout(target)))
        case (Kind.TIMESTAMP | Kind.TIMESTAMPTZ), Kind.DATE:
            return Evaluated(fixed_array(_days(array).astype(np.int32), target, valid))
        case (Kind.TIMESTAMP | Kind.TIMESTAMPTZ), Kind.TIME:
            micros = values_of(array, np.int64)
            finite = (micros != TIMESTAMP_INFINITY) & (micros != TIMESTAMP_MINUS_INFINITY)
            kept = finite if valid is None else finite & valid
            return Evaluated(fixed_array(micros % DAY_US, target, kept))
        case Kind.TIME, Kind.INTERVAL:
            zeros = np.zeros(len(array), np.int64)
            return Evaluated(interval_array(Intervals(zeros, zeros, values_of(array, np.int64)), valid))
        case Kind.INTERVAL, Kind.TIME:
            return Evaluated(fixed_array(intervals_of(array).micros % DAY_US, target, valid))
    return None


def _layout(target: SqlType) -> pa.DataType:
    return pa.timestamp("us") if target.kind is Kind.TIMESTAMP else pa.timestamp("us", tz="UTC")


def _date_to_stamp(array: pa.Array, target: SqlType) -> Evaluated:
    days = values_of(array, np.int32).astype(np.int64)
    below, above = days == DATE_MINUS_INFINITY, days == DATE_INFINITY
    fits = (days >= TIMESTAMP_MIN // DAY_US) & (days <= TIMESTAMP_MAX // DAY_US)
    micros = np.where(fits, days, 0) * DAY_US
    micros = np.where(above, TIMESTAMP_INFINITY, np.where(below, TIMESTAMP_MINUS_INFINITY, micros))
    bad = ~(fits | below | above)
    return Evaluated(
        fixed_array(micros, target, validity(array)), failures(bad, "22008", "date out of range for timestamp")
    )


def _days(array: pa.Array) -> Int64s:
    micros = values_of(array, np.int64)
    days = micros // DAY_US
    days = np.where(micros == TIMESTAMP_INFINITY, DATE_INFINITY, days)
    return np.where(micros == TIMESTAMP_MINUS_INFINITY, DATE_MINUS_INFINITY, days)
