"""What executing a statement yields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType

__all__ = ["Change", "Outcome", "ResultSet", "SubscriptionFeed"]


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Rows in engine layouts, in result order.  ``time``: the time at which the answer is exact."""

    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    columns: tuple[pa.Array, ...]
    rows: int
    time: Time | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The consolidated changes of a subscription up to, not including, ``upper``; ``updates`` may be empty."""

    time: Time
    upper: Frontier
    updates: Batch


@dataclass(frozen=True, slots=True)
class SubscriptionFeed:
    """A running subscription.

    ``receive(timeout)`` gives the next change; None at the end (``ended()``) or when the time is up.
    It fails with 57014 when the session's ``cancel`` is called meanwhile.  ``close`` ends the subscription.
    ``on_news``: what is called, on a thread of the engine's, whenever there may be a change to receive; for those who
    do not want to wait on a thread.
    """

    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    snapshot: bool
    progress: bool
    receive: Callable[[float | None], Change | None]
    ended: Callable[[], bool]
    close: Callable[[], None]
    on_news: Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``tag`` is PostgreSQL's command tag ("INSERT 0 3"); ``affected`` rows, -1 where that means nothing."""

    tag: str
    result: ResultSet | None = None
    affected: int = -1
    notices: tuple[str, ...] = ()
    time: Time | None = None
    feed: SubscriptionFeed | None = field(default=None)
