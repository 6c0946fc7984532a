"""Who gets which rows of a commit: followers of everything, and those that follow rows of certain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType
from eddyline.storage.collection import Commit, Follower, batch_bytes
from eddyline.trace.hasher import Hasher

__all__ = ["Delivery", "Routes"]


class Delivery(NamedTuple):
    follower: Follower
    commit: Commit


class _Selective:
    """The followers that select by one column: ``followers[i]`` want rows whose value hashes to ``hashes[i]``."""

    def __init__(self, column: int, followers: Sequence[Follower]) -> None:
        self.column = column
        wanted: dict[int, list[Follower]] = {}
        for follower in followers:
            for value in follower.hashes.tolist():
                wanted.setdefault(value, []).append(follower)
        self.hashes = np.array(sorted(wanted), np.uint64)
        self.followers = [wanted[value] for value in self.hashes.tolist()]

    def parts(self, rows: Batch, types: Sequence[SqlType], hasher: Hasher) -> Iterator[tuple[Follower, Batch]]:
        """What each follower gets of ``rows``, by reference to one reordered batch; those that get none are left out.

        O(rows × log(followers) + followers that get any).
        """
        hashes = hasher.hash_rows((rows.columns[self.column],), (types[self.column],), len(rows))
        place = np.searchsorted(self.hashes, hashes)
        place[place == len(self.hashes)] = 0
        hits = np.flatnonzero(self.hashes[place] == hashes)
        if not len(hits):
            return
        groups = place[hits]
        if len(hits) == len(rows) and groups[0] == groups[-1] and (groups == groups[0]).all():
            bounds, found, ordered = [0, len(rows)], [int(groups[0])], rows
        else:
            order = np.argsort(groups, kind="stable")
            ordered = rows.take(hits[order])
            found_groups, starts = np.unique(groups[order], return_index=True)
            found, bounds = found_groups.tolist(), [*starts.tolist(), len(hits)]
        several: dict[Follower, list[Batch]] = {}
        for i, group in enumerate(found):
            part = ordered if len(found) == 1 else ordered.slice(bounds[i], bounds[i + 1])
            for follower in self.followers[group]:
                several.setdefault(follower, []).append(part)
        for follower, parts in several.items():
            yield follower, parts[0] if len(parts) == 1 else Batch.concat(rows.types, parts)


class Routes:
    """The followers of one collection as they stood at ``version``.  Immutable."""

    def __init__(self, version: int, followers: Sequence[Follower], types: tuple[SqlType, ...]) -> None:
        self.version = version
        self._types = types
        self._broad = [f for f in followers if f.selection is None]
        by_column: dict[int, list[Follower]] = {}
        for follower in followers:
            if follower.selection is not None:
                by_column.setdefault(follower.selection.column, []).append(follower)
        self._selective = [_Selective(column, those) for column, those in by_column.items()]
        self._selecting: list[Follower] = [f for those in by_column.values() for f in those]

    def deliveries(self, commit: Commit, hasher: Hasher) -> list[Delivery]:
        """What each follower gets of ``commit``; errors go to all.  O(rows + followers that get any)."""
        if not commit.row_count():
            return []
        found = [Delivery(follower, commit) for follower in self._broad]
        if not self._selecting:
            return found
        rows: dict[Follower, Batch] = {}
        if commit.rows is not None and len(commit.rows):
            for selective in self._selective:
                rows.update(selective.parts(commit.rows, self._types, hasher))
        failed = commit.errors is not None and len(commit.errors) > 0
        for follower in self._selecting if failed else rows:
            part = rows.get(follower)
            size = batch_bytes(part) + batch_bytes(commit.errors)
            found.append(Delivery(follower, Commit(commit.upper, part, commit.errors, size)))
        return found
