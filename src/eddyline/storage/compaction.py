"""Compaction: keeps a durable directory proportional to the data in it.

Once the log has grown past the live data, and past ``least_bytes``, a new log file is begun, each table that the older
ones have rows of is written to a rows file of its own, from memory, and the older log files go.  So a byte is written
about twice, and a directory holds at most about three times its live data.

Commits go on meanwhile: a step here writes one slice of one table, and never holds what a commit waits for but for a
record of a few bytes.  A step that fails leaves everything as it was; the next one begins again.

Thread: one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eddyline.repr.batch import Batch
from eddyline.storage.files import Files
from eddyline.storage.group_commit import GroupCommit
from eddyline.storage.log import rows_name
from eddyline.storage.records import Installed, Released
from eddyline.storage.rows_file import RowsWriter

__all__ = ["LEAST_LOG_BYTES", "Compaction"]

LEAST_LOG_BYTES = 16 << 20


class Compaction:
    """``rows_of(table)``: a time up to which all commits are visible, and the table's rows at that time, slice by
    slice; None if it is gone.  ``live_bytes``: about what the tables' rows take.
    """

    def __init__(
        self,
        group: GroupCommit,
        files: Files,
        *,
        rows_of: Callable[[str], tuple[int, Iterator[Batch]] | None],
        live_bytes: Callable[[], int],
        least_bytes: int = LEAST_LOG_BYTES,
    ) -> None:
        self._group = group
        self._files = files
        self._rows_of = rows_of
        self._live_bytes = live_bytes
        self._least_bytes = least_bytes
        self._steps: Iterator[None] = iter(())
        self._writer: RowsWriter | None = None
        #: tables written since it was made
        self.tables_written = 0

    def due(self) -> bool:
        """Whether the log is long enough for it."""
        with self._group.exclusive() as log:
            logged, stored = log.log_bytes, log.rows_bytes
        return logged > self._least_bytes and logged > min(stored, self._live_bytes())

    def step(self) -> bool:
        """A bounded piece of work; False if there is nothing to do.  Raises what the system refuses (53100 …)."""
        try:
            next(self._steps)
            return True
        except StopIteration:
            if not self.due():
                return False
        except BaseException:
            self.abandon()
            raise
        self._steps = self._cycle()
        return True

    def abandon(self) -> None:
        """Ends what is under way, as if it had not been begun."""
        self._steps = iter(())
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abandon()

    def run(self) -> None:
        """All of it, at once, whether it is due or not."""
        for _ in self._cycle():
            continue

    def _cycle(self) -> Iterator[None]:
        with self._group.exclusive() as log:
            log.next_file()
        self._group.record(Released(()))
        with self._group.exclusive() as log:
            tables = {t for span in log.state.logs for t in log.spans.tables(span.number, log.state)}
        self._release()
        for table in sorted(tables):
            yield from self._write_table(table)
            self._release()

    def _write_table(self, table: str) -> Iterator[None]:
        found = self._rows_of(table)
        if found is None:
            return
        time, slices = found
        with self._group.exclusive() as log:
            number = log.new_number()
        writer = self._writer = RowsWriter(self._files, number, table, time)
        for batch in slices:
            writer.add(batch)
            yield
        rows = writer.finish()
        self._writer = None
        try:
            # What is in the file may have been visible before it was safe: the rest of the same commit comes first.
            self._group.flush()
            self._group.record(Installed(table, rows))
        except BaseException:
            with self._group.exclusive() as log:
                log.discard([rows_name(number)])
            raise
        self.tables_written += 1
        yield

    def _release(self) -> None:
        with self._group.exclusive() as log:
            released = log.released()
        if released:
            self._group.record(Released(released))
