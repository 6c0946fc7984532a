"""PEP 249's module attributes and constructors."""

from __future__ import annotations

import datetime as dt
from typing import Final

__all__ = [
    "Binary",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "apilevel",
    "paramstyle",
    "threadsafety",
]

apilevel: Final = "2.0"
threadsafety: Final = 2  # threads may share the module and connections
paramstyle: Final = "qmark"  # and $1 everywhere

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    return dt.datetime.fromtimestamp(ticks, dt.UTC).date()


def TimeFromTicks(ticks: float) -> dt.time:
    return dt.datetime.fromtimestamp(ticks, dt.UTC).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(ticks, dt.UTC).replace(tzinfo=None)
