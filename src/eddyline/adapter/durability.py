"""A database's directory: commits go to it, and it is tidied in the background.

Locks: ``GroupCommit``'s, which come after the database's commit lock and before storage's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from eddyline.controller.home import Home
from eddyline.controller.survivors import noted_seed
from eddyline.errors import DatabaseError, make_error
from eddyline.repr.time import Time
from eddyline.storage.backup import copy_database
from eddyline.storage.compaction import LEAST_LOG_BYTES, Compaction
from eddyline.storage.directory import LOG_FILE_BYTES, open_directory
from eddyline.storage.files import Files, OsFiles, file_error
from eddyline.storage.group_commit import GroupCommit, QueuedCommit
from eddyline.storage.log import Changes
from eddyline.storage.store import TableStore
from eddyline.storage.upkeep import Upkeep

__all__ = ["Durability", "files_of"]


def files_of(path: str | os.PathLike[str]) -> Files:
    """The folder at ``path``, which is made if nothing is there.

    42809 if something else is there, 42501, 53100 … where it cannot be made.
    """
    text = os.fsdecode(path)
    if not text:
        raise make_error("22023", "the path of a database must not be empty", hint="connect() opens one in memory.")
    files = OsFiles(text)
    try:
        files.make_folder()
    except (FileExistsError, NotADirectoryError) as error:
        raise make_error(
            "42809",
            f'"{text}" is not a directory',
            hint="A database is a directory: name one of its own, which need not be there yet.",
        ) from error
    except OSError as error:
        raise file_error(error, "create", text) from error
    return files


class Durability:
    """``least_log_bytes``, ``log_file_bytes``: see ``Compaction`` and ``DurableLog``.

    Raises what ``open_directory`` does.
    """

    def __init__(
        self, files: Files, *, log_file_bytes: int = LOG_FILE_BYTES, least_log_bytes: int = LEAST_LOG_BYTES
    ) -> None:
        self.files = files
        self._least_log_bytes = least_log_bytes
        self._opened = open_directory(files, log_file_bytes=log_file_bytes)
        state = self._opened.state
        #: above that of every earlier opening
        self.epoch = self._opened.log.epoch
        #: as they were when the directory was opened
        self.documents: Mapping[str, bytes] = dict(state.documents)
        self.tables: tuple[str, ...] = tuple(state.tables)
        self.newest = Time(state.newest)
        self.reserved = Time(max(state.reserved, state.newest))
        self._told_apart_from = self._opened.told_apart_from()
        self._to_disk: Callable[[], bool] = lambda: True
        self._upkeep: Upkeep | None = None
        self.group = GroupCommit(self._opened.log, to_disk=self._wants_disk, grown=self._grown)

    def home(self, replica: str) -> Home | None:
        """Where the replica's processes are noted, which outlive this one.

        None where the directory is none of the system's.
        """
        if not isinstance(self.files, OsFiles):
            return None
        opened = self._opened
        return Home(
            Path(self.files.title), self.epoch, self.newest, self.reserved, opened.log.held, replica, opened.after,
            self._told_apart_from,
        )  # fmt: skip

    def noted_seed(self) -> int | None:
        """The hash seed of processes that an earlier program may have left."""
        return noted_seed(Path(self.files.title)) if isinstance(self.files, OsFiles) else None

    def restore(self, store: TableStore, *, since: Time) -> None:
        """Fills the store's tables, which have been made empty, as ``TableStore.restore`` does.

        XX001 where a file is damaged.
        """
        store.restore(self._opened.rows(), self.newest, since=since)

    def start(self, store: TableStore, *, to_disk: Callable[[], bool]) -> None:
        """Begins the upkeep.  ``to_disk``: see ``GroupCommit``."""
        self._to_disk = to_disk
        compaction = Compaction(
            self.group,
            self.files,
            rows_of=store.stored_rows,
            live_bytes=lambda: store.row_bytes(self._table_ids()),
            least_bytes=self._least_log_bytes,
        )
        self.compaction = compaction
        self._upkeep = Upkeep(self.group, compaction)
        self._upkeep.start()

    def _table_ids(self) -> Iterable[str]:
        with self.group.exclusive() as log:
            return tuple(log.state.tables)

    def _wants_disk(self) -> bool:
        return self._to_disk()

    def _grown(self) -> None:
        if self._upkeep is not None:
            self._upkeep.wake()

    def put_documents(self, put: Mapping[str, bytes], removed: tuple[str, ...]) -> None:
        """Stores and removes documents by themselves, safely.  Needs the commit lock."""
        commit = QueuedCommit(None, {}, Changes(put=put, removed=removed), _nothing, _nothing)
        self.group.add(commit, self.group.ticket())
        self.group.wait(commit)

    def note(self, put: Mapping[str, bytes]) -> None:
        """As ``put_documents``, from any thread, without the commit lock: of each document the caller orders its
        versions.  Raises what keeps them from being written."""
        while True:
            commit = QueuedCommit(None, {}, Changes(put=put), _nothing, _nothing)
            ticket = self.group.ticket()
            try:
                self.group.add(commit, ticket)
            except DatabaseError as problem:
                if problem.sqlstate != "40001":
                    raise
                continue  # commits were taken back meanwhile, against which this was not checked
            self.group.wait(commit)
            return

    def check_held(self) -> None:
        """55006 if somebody else has taken the directory over."""
        self._opened.log.check_held()

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copies the directory, with all that was acknowledged, to ``path``; see ``copy_database``."""
        self.group.flush()
        with self.group.keeping_files():
            return copy_database(self.files, files_of(path))

    def close(self) -> None:
        """Writes what is left and gives the directory back.  Raises what kept acknowledged commits from it."""
        if self._upkeep is not None:
            self._upkeep.close()
        self.group.close()


def _nothing() -> None:
    """Documents alone are not visible by themselves."""
