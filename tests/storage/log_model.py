"""A model of a durable directory: what was committed, kept beside the log as plain Python values."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from eddyline.errors import Error
from eddyline.repr.batch import Batch
from eddyline.repr.types import BIGINT, TEXT
from eddyline.storage.compaction import Compaction
from eddyline.storage.directory import Opened, open_directory
from eddyline.storage.files import Files
from eddyline.storage.group_commit import GroupCommit, QueuedCommit
from eddyline.storage.log import Changes

TYPES = (BIGINT, TEXT)
Rows = dict[tuple[int, str], int]


def batch_of(rows: Rows) -> Batch:
    columns = (
        pa.array([k for k, _ in rows], pa.int64()),
        pa.array([v for _, v in rows], pa.large_string()),
    )
    diffs = np.array(list(rows.values()), np.int64)
    return Batch(TYPES, columns, np.zeros(len(rows), np.int64), diffs)


def add(into: Rows, rows: Rows) -> None:
    for row, diff in rows.items():
        into[row] = into.get(row, 0) + diff
        if not into[row]:
            del into[row]


class Contents:
    """Tables and documents at one moment."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {}
        self.documents: dict[str, bytes] = {}
        self.time = 0

    def copy(self) -> Contents:
        other = Contents()
        other.tables = {t: dict(rows) for t, rows in self.tables.items()}
        other.documents = dict(self.documents)
        other.time = self.time
        return other

    def apply(self, time: int, writes: dict[str, Rows], changes: Changes) -> None:
        self.time = time
        for table in changes.created:
            self.tables[table] = {}
        for table, rows in writes.items():
            add(self.tables[table], rows)
        for table in changes.dropped:
            del self.tables[table]
        self.documents.update(changes.put)
        for name in changes.removed:
            self.documents.pop(name, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contents) and self.tables == other.tables and self.documents == other.documents

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Contents(time={self.time}, {self.tables}, {self.documents})"


def read_contents(opened: Opened) -> Contents:
    found = Contents()
    found.tables = {id: {} for id in opened.state.tables}
    for id, part in opened.rows():
        rows = zip(*(c.to_pylist() for c in part.columns), strict=True)
        for row, diff in zip(rows, part.diffs.tolist(), strict=True):
            add(found.tables[id], {row: diff})
    found.documents = dict(opened.state.documents)
    found.time = opened.state.newest
    return found


class Database:
    """A directory open for a while.  ``acknowledged``: what a reader must find; ``possible``: what it may find too."""

    def __init__(
        self, files: Files, *, log_file_bytes: int = 1500, least_bytes: int = 1500, to_disk: bool = True
    ) -> None:
        self.files = files
        self.opened = open_directory(files, log_file_bytes=log_file_bytes)
        self.acknowledged = read_contents(self.opened)
        self.visible = self.acknowledged.copy()
        self.possible: list[Contents] = [self.acknowledged.copy()]
        #: all that was ever visible, the present state last
        self.history = [self.acknowledged.copy()]
        self.group = GroupCommit(self.opened.log, to_disk=lambda: to_disk)
        self.compaction = Compaction(
            self.group, files, rows_of=self._rows_of, live_bytes=self._live_bytes, least_bytes=least_bytes
        )
        self.time = max(self.opened.state.reserved, self.acknowledged.time)

    def _rows_of(self, table: str) -> tuple[int, Iterator[Batch]] | None:
        if table not in self.visible.tables:
            return None
        rows = list(self.visible.tables[table].items())
        parts = [dict(rows[i : i + 5]) for i in range(0, len(rows), 5)]
        return self.visible.time, iter([batch_of(part) for part in parts])

    def _live_bytes(self) -> int:
        return sum(40 * len(rows) for rows in self.visible.tables.values())

    def random_commit(self, rng: random.Random) -> tuple[dict[str, Rows], Changes]:
        tables = list(self.visible.tables)
        if not tables or (len(tables) < 4 and rng.random() < 0.1):
            name = f"u{self.time}"
            writes = {name: {(1, "first"): 1}} if rng.random() < 0.5 else {}
            return writes, Changes(put={f"item/{name}": name.encode()}, created={name: TYPES})
        if len(tables) > 1 and rng.random() < 0.05:
            gone = rng.choice(tables)
            return {}, Changes(removed=(f"item/{gone}",), dropped=(gone,))
        writes = {}
        for table in rng.sample(tables, rng.randint(1, min(3, len(tables)))):
            there = self.visible.tables[table]
            taken = rng.sample(sorted(there), min(len(there), rng.choice((0, 0, 1, 3, 20))))
            rows = {row: -there[row] for row in taken}
            for _ in range(rng.choice((1, 1, 2, 8))):
                add(rows, {(rng.randrange(50), "v" * rng.choice((0, 1, 30, 200))): 1})
            if rows:
                writes[table] = rows
        return writes, Changes()

    def queue(self, writes: dict[str, Rows], changes: Changes, *, wait: bool = True) -> QueuedCommit:
        """One commit, checked and visible to the next ones' checks as storage has it."""
        self.time += 1
        before, time = self.visible, self.time
        after = before.copy()
        after.apply(time, writes, changes)

        def take_back() -> None:
            self.visible = before
            self.possible.append(before.copy())

        ticket = self.group.ticket()
        self.visible = after
        self.possible.append(after.copy())
        self.history.append(after.copy())
        commit = QueuedCommit(time, {t: batch_of(r) for t, r in writes.items()}, changes, lambda: None, take_back)
        self.group.add(commit, ticket, wait=wait)
        return commit

    def settle(self, commits: list[QueuedCommit]) -> Error | None:
        """Waits for the commits; once they are safe nothing older may be found."""
        problem = None
        for commit in commits:
            try:
                self.group.wait(commit)
            except Error as error:
                problem = error
        if not self.group.behind:
            self.acknowledged = self.visible.copy()
            self.possible = [self.acknowledged]
        return problem

    def close(self) -> None:
        self.compaction.abandon()
        self.group.close()
