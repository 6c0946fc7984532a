"""What executing a statement yields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from eddyline.expr.ir import LiteralValue
from eddyline.expr.text_io import literal_array
from eddyline.repr.batch import Batch, concat_arrays
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType

__all__ = ["Change", "Outcome", "ResultSet", "SubscriptionFeed", "literal_columns"]


class ResultSet:
    """Rows in engine layouts, in result order.  ``time``: the time at which the answer is exact.

    The few rows of a lookup come as literals (``of_literals``): their columns are made when they are asked for.
    ``ready``: the rows as Python values, where they are at hand.
    """

    __slots__ = ("_columns", "_literals", "names", "ready", "rows", "time", "types")

    def __init__(
        self,
        names: tuple[str, ...],
        types: tuple[SqlType, ...],
        columns: tuple[pa.Array, ...],
        rows: int,
        time: Time | None = None,
    ) -> None:
        self.names = names
        self.types = types
        self.rows = rows
        self.time = time
        self.ready: list[tuple[Any, ...]] | None = None
        self._columns: tuple[pa.Array, ...] | None = columns
        self._literals: list[tuple[LiteralValue, ...]] = []

    @classmethod
    def of_literals(
        cls,
        names: tuple[str, ...],
        types: tuple[SqlType, ...],
        literals: list[tuple[LiteralValue, ...]],
        ready: list[tuple[Any, ...]],
        time: Time | None,
    ) -> ResultSet:
        """``literals``: the rows; ``ready``: the same as Python values."""
        made = cls(names, types, (), len(literals), time)
        made.ready, made._columns, made._literals = ready, None, literals
        return made

    @property
    def columns(self) -> tuple[pa.Array, ...]:
        # A race makes them twice, alike.
        if self._columns is None:
            self._columns = literal_columns(self._literals, self.types)
        return self._columns


@dataclass(frozen=True, slots=True)
class Change:
    """The consolidated changes of a subscription up to, not including, ``upper``; ``updates`` may be empty."""

    time: Time
    upper: Frontier
    updates: Batch


@dataclass(frozen=True, slots=True)
class SubscriptionFeed:
    """A running subscription.

    ``receive(timeout, from_first)`` gives the next change; None at the end (``ended()``) or when the time is up, which
    begins, with ``from_first``, once the state that the subscription begins with is known.
    It fails with 57014 when the session's ``cancel`` is called meanwhile.  ``close`` ends the subscription.
    ``on_news``: what is called, on a thread of the engine's, whenever there may be a change to receive; for those who
    do not want to wait on a thread.  They ask once more after ``patience_s()``, unless that is None, without any news.
    """

    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    snapshot: bool
    progress: bool
    receive: Callable[[float | None, bool], Change | None]
    ended: Callable[[], bool]
    close: Callable[[], None]
    on_news: Callable[[Callable[[], None]], None]
    patience_s: Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``tag`` is PostgreSQL's command tag ("INSERT 0 3"); ``affected`` rows, -1 where that means nothing."""

    tag: str
    result: ResultSet | None = None
    affected: int = -1
    notices: tuple[str, ...] = ()
    time: Time | None = None
    feed: SubscriptionFeed | None = field(default=None)


def literal_columns(rows: Sequence[Sequence[LiteralValue]], types: Sequence[SqlType]) -> tuple[pa.Array, ...]:
    """Few literal rows as columns."""
    return tuple(
        concat_arrays([literal_array(row[i], t, 1) for row in rows]) if rows else literal_array(None, t, 0)
        for i, t in enumerate(types)
    )
