"""What a runtime asks of storage: readers of collections, and a place to write materialized views.

``compute`` and ``storage`` are of one layer and know each other only by these interfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eddyline.expr.ir import LiteralValue
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType

__all__ = ["Committed", "Polled", "Selection", "SourceReader", "Storage"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of a source that a reader has any use for: those whose ``column`` equals one of ``values``.

    ``values`` are literals of ``type``, None among them for NULL.  A reader may get other rows as well.
    """

    column: int
    type: SqlType
    values: tuple[LiteralValue, ...]


@dataclass(frozen=True, slots=True)
class Polled:
    """What a reader got: updates, and the frontier below which it has now delivered everything."""

    frontier: Frontier
    rows: list[Batch] = field(default_factory=list)
    errors: list[Batch] = field(default_factory=list)

    def row_count(self) -> int:
        return sum(map(len, self.rows)) + sum(map(len, self.errors))


@dataclass(frozen=True, slots=True)
class Committed:
    """One commit, as the watchers of a storage hear of it.

    ``ids``: the collections that it changed; none if it only closed a time.  ``touched``: the selective readers that it
    has rows or errors for.  ``rows``: how many updates it had.  ``merges``: nothing has changed, but merges are left
    that only the writer could get to until now.
    """

    ids: frozenset[str]
    touched: Sequence[SourceReader] = ()
    rows: int = 0
    merges: bool = False


class SourceReader(Protocol):
    """One worker's share of a collection: its history so far, then every later commit, by reference.

    A selective reader may be spared the rows of later commits that its selection leaves out.
    The shares of all workers are disjoint and together complete; frontiers never regress.  Times below ``as_of``
    are as storage holds them: whoever reads moves them up.  One thread reads.
    """

    def poll(self, max_rows: int) -> Polled:
        """The next updates, at most about ``max_rows``.  O(updates returned)."""
        ...

    def pending(self) -> bool:
        """Whether a poll would return an update or a later frontier."""
        ...

    def set_steady(self) -> None:
        """From here on what this reader has not read counts as backlog that slows writers down."""
        ...

    def close(self) -> None: ...


class Storage(Protocol):
    """The storage of a database, as a runtime sees it.  Thread-safe."""

    def open_source(
        self,
        id: str,
        as_of: Time,
        readers: int,
        selection: Selection | None = None,
        key: tuple[int, ...] | None = None,
    ) -> Sequence[SourceReader]:
        """``readers`` shares of collection ``id``; XX000 unless its since is at most ``as_of``.

        ``key``: the share number *i* of *n* has the rows for which the hash of these columns is *i* modulo *n*, and the
        errors for which that of the whole is; None: any rows.
        """
        ...

    def begin_view(self, id: str, writer: object = None) -> None:
        """``writer`` begins to write materialized view ``id``: what it staged before and did not finish is gone.

        Several may write a view, each all of its changes, and all the same at the same times.
        """
        ...

    def stage_view(self, id: str, rows: Batch, writer: object = None) -> None:
        """A part of the changes that the writer's next ``write_view`` publishes: all of them at one time.

        So a large interval is written piece by piece, and readers see it whole or not at all.
        """
        ...

    def write_view(
        self, id: str, rows: Batch, errors: Batch, lower: Frontier, upper: Frontier, writer: object = None
    ) -> None:
        """The changes of materialized view ``id`` at times ``lower <= t < upper``, with those that were staged.

        ``lower`` may be below the view's upper (another one wrote it, or it is being computed anew): changes that
        storage has are skipped.  It is an error if it is above.
        """
        ...

    def upper(self, id: str) -> Frontier:
        """XX000 for an unknown collection."""
        ...

    def __contains__(self, id: str) -> bool: ...

    def watch(self, callback: Callable[[Committed], None]) -> Callable[[], None]:
        """Calls ``callback`` after each commit, on the writer's thread; returns what ends the watching."""
        ...

    def work(self, fuel_rows: int) -> bool:
        """Merges runs in idle time; True if more is left."""
        ...
