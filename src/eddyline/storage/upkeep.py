"""What is done for a durable directory in the background: commits that nobody waits for, and compaction."""

from __future__ import annotations

import logging
import threading

from eddyline.errors import Error
from eddyline.storage.compaction import Compaction
from eddyline.storage.group_commit import GroupCommit

__all__ = ["Upkeep"]

_log = logging.getLogger("eddyline.storage")
#: the longest that a commit which nobody waits for stays unwritten, and the shortest between looks at the log
DELAY_S = 0.2
_AFTER_FAILURE_S = 1.0


class Upkeep:
    """A thread of its own, from ``start`` to ``close``.  Failures are logged, and tried again after a second."""

    def __init__(self, group: GroupCommit, compaction: Compaction) -> None:
        self._group = group
        self._compaction = compaction
        self._wanted = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="eddyline-storage", daemon=True)
        self._failing = False

    def start(self) -> None:
        """Also looks at what an earlier process left to be done."""
        self._wanted.set()
        self._thread.start()

    def wake(self) -> None:
        """There may be something to do.  Any thread."""
        if not self._wanted.is_set():
            self._wanted.set()

    def close(self) -> None:
        """Ends the thread after the step that it is in; a file half written is removed."""
        self._ending.set()
        self._wanted.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._compaction.abandon()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._ending.wait(DELAY_S):
                return
            self._wanted.clear()
            if self._ending.is_set():  # whoever ends it says so first, and wakes it then: perhaps before the clearing
                return
            try:
                self._tidy()
                self._failing = False
            except Exception as problem:  # noqa: BLE001 - whatever it was: acknowledged commits wait to be written
                self._failed(problem)

    def _failed(self, problem: Exception) -> None:
        level = logging.DEBUG if self._failing else logging.WARNING
        _log.log(level, "the directory could not be tidied up: %s", problem, exc_info=not isinstance(problem, Error))
        self._failing = True
        self._ending.wait(_AFTER_FAILURE_S)
        self._wanted.set()

    def _tidy(self) -> None:
        if self._group.behind:
            self._group.flush()
        while not self._ending.is_set() and self._compaction.step():
            if self._group.behind:
                self._group.flush()
