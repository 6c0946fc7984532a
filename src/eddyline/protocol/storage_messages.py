"""What a replica in another process and the storage of the database tell each other.

The replica keeps a *mirror* of every collection that it reads: it asks for one (``Follow``), gets its history and then
every later commit (``Updates``).  The results of materialized views go the other way, and are kept by the replica until
storage has them (``ViewWritten``), so that a lost connection loses none.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from eddyline.protocol.messages import RowBatch
from eddyline.repr.types import SqlType

__all__ = [
    "BeginView",
    "Follow",
    "FollowRefused",
    "Following",
    "StageView",
    "StorageRequest",
    "StorageUpdate",
    "TimesClosed",
    "Unfollow",
    "Updates",
    "ViewWritten",
    "WriteView",
]


class Follow(msgspec.Struct, frozen=True, tag_field="op", tag="follow"):
    """Collection ``id`` from ``as_of`` on, as mirror number ``mirror``, of which there is one ever.

    ``resume``: the frontier below which the mirror is complete already; None: it is empty.
    """

    mirror: int
    id: str
    as_of: int
    resume: int | None = None


class Unfollow(msgspec.Struct, frozen=True, tag_field="op", tag="unfollow"):
    mirror: int


class BeginView(msgspec.Struct, frozen=True, tag_field="op", tag="begin_view"):
    id: str


class StageView(msgspec.Struct, frozen=True, tag_field="op", tag="stage_view"):
    id: str
    rows: RowBatch


class WriteView(msgspec.Struct, frozen=True, tag_field="op", tag="write_view"):
    id: str
    rows: RowBatch
    errors: RowBatch
    lower: int
    upper: int


StorageRequest: TypeAlias = Follow | Unfollow | BeginView | StageView | WriteView


class Following(msgspec.Struct, frozen=True, tag_field="op", tag="following"):
    """The answer to ``Follow``; ``table``: whether the frontier moves with ``TimesClosed`` too.

    ``newest``: the time of the last write that the history has, which may be folded into a later time there.
    """

    mirror: int
    types: tuple[SqlType, ...]
    since: int
    table: bool
    newest: int


class FollowRefused(msgspec.Struct, frozen=True, tag_field="op", tag="follow_refused"):
    """The collection is not there, or no longer readable at that time."""

    mirror: int
    message: str


class Updates(msgspec.Struct, frozen=True, tag_field="op", tag="updates"):
    """Updates of one mirror.  ``upper``: with these, and those before, it is complete below; None: more come first."""

    mirror: int
    rows: RowBatch | None = None
    errors: RowBatch | None = None
    upper: int | None = None


class TimesClosed(msgspec.Struct, frozen=True, tag_field="op", tag="times_closed"):
    """Every mirror of a table whose history was sent is complete below ``upper``.

    ``everything``: a time was closed for its own sake, so quiet dataflows are to move on too.
    """

    upper: int
    everything: bool = False


class ViewWritten(msgspec.Struct, frozen=True, tag_field="op", tag="view_written"):
    """Storage has the view's changes below ``upper``."""

    id: str
    upper: int


StorageUpdate: TypeAlias = Following | FollowRefused | Updates | TimesClosed | ViewWritten
