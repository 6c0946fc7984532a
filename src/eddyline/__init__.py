"""Eddyline: an incremental-view-maintenance SQL database in one Python process."""

from eddyline._version import __version__
from eddyline.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from eddyline.frontends.aio import AsyncConnection, aconnect
from eddyline.frontends.connection import Connection, connect
from eddyline.frontends.cursor import BINARY, DATETIME, NUMBER, ROWID, STRING, Cursor
from eddyline.frontends.pep249 import (
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from eddyline.frontends.subscription import Subscription, SubscriptionChange
from eddyline.repr.interval import Interval

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AsyncConnection",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Subscription",
    "SubscriptionChange",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "aconnect",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
