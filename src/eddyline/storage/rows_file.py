"""Writing a table's rows to a file of their own."""

from __future__ import annotations

import logging

from eddyline.repr.batch import Batch
from eddyline.storage.files import Files, file_error
from eddyline.storage.frames import encode_frame, write_buffers
from eddyline.storage.log import rows_name
from eddyline.storage.records import PART, RECORD, RowsEnd, RowsFile, encode_part, encode_record, slices

__all__ = ["RowsWriter"]

_log = logging.getLogger("eddyline.storage")
#: so much is synced at a time: one sync of a large file would make commits wait for the device
_SYNC_BYTES = 16 << 20


class RowsWriter:
    """File ``number`` with the rows of ``table`` at ``time``.  It counts once an ``Installed`` record names it.

    Whatever raises is typed (``file_error``); then nothing of the file is left.
    """

    def __init__(self, files: Files, number: int, table: str, time: int) -> None:
        self._files = files
        self._number = number
        self._table = table
        self._time = time
        self._title = f"{files.title}/{rows_name(number)}"
        self._end = self._synced = self._rows = self._parts = 0
        self._gone = False
        try:
            self._file = files.create(rows_name(number))
        except OSError as error:
            raise file_error(error, "create", self._title) from error

    def add(self, batch: Batch) -> None:
        """Appends updates whose sum at ``time`` is a part of the rows."""
        for piece in slices(batch):
            self._put(PART, encode_part(self._table, self._time, piece))
            self._parts += 1
            self._rows += len(piece)

    def finish(self) -> RowsFile:
        """Makes the file safe, under its name."""
        self._put(RECORD, [encode_record(RowsEnd(self._parts, self._rows))])
        try:
            self._file.sync()
            self._files.sync_names()
        except OSError as error:
            self.abandon()
            raise file_error(error, "sync", self._title) from error
        self._file.close()
        return RowsFile(self._number, self._time, self._rows, self._end)

    def abandon(self) -> None:
        """Removes what there is of the file.  Twice is harmless."""
        if self._gone:
            return
        self._gone = True
        self._file.close()
        try:
            self._files.remove(rows_name(self._number))
        except OSError as error:
            _log.warning('could not remove file "%s": %s', self._title, error)

    def _put(self, kind: int, parts: list[bytes | memoryview]) -> None:
        frame = encode_frame(kind, parts, offset=self._end, synced=0)
        try:
            write_buffers(self._file, frame, self._end)
            self._end += sum(memoryview(buffer).nbytes for buffer in frame)
            if self._end - self._synced >= _SYNC_BYTES:
                self._file.sync()
                self._synced = self._end
        except OSError as error:
            self.abandon()
            raise file_error(error, "write", self._title) from error
