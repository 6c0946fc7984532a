"""A replica in other processes, as a ``protocol.client.Client``: one connection to it, which is never mended.

To each process go two connections, one for commands and responses, one for storage, so that a long history delays no
answer.  ``Hello`` and ``UpdateConfiguration`` go to every process, the rest to the first, which passes it on.  Their
answers become one replica's in ``remote_responses``.

Whatever ends any of the connections ends the client, with one fatal ``Status``.  Its owner makes another one.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from eddyline.controller.remote_responses import RemoteResponses
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.codec import decode_from_process, decode_storage_request, encode
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose, Seen, greet
from eddyline.protocol.link import Link
from eddyline.protocol.measures_messages import ProcessMeasures, ReportMeasures
from eddyline.protocol.messages import Command, Hello, Peek, PeekResponse, Response, UpdateConfiguration
from eddyline.protocol.sockets import connect_to
from eddyline.protocol.storage_messages import StorageRequest, StorageUpdate
from eddyline.repr.time import Time
from eddyline.storage.feed import StorageFeed
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["ReplicaConnection"]

_log = logging.getLogger("eddyline.controller")
_Message = TypeVar("_Message")

#: storage messages that may wait for the socket; each holds a bounded number of rows
_MOST_WAITING = 32


class _Process:
    """The two connections to one process."""

    def __init__(
        self,
        address: str,
        store: TableStore,
        hasher: Hasher,
        *,
        process: int,
        processes: int,
        epoch: int,
        respond: Callable[[Response | ProcessMeasures], None],
        written: Callable[[str], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        frames = [Frames(connect_to(address))]
        try:
            self.seen = greet(frames[0], Purpose.STORAGE, epoch=epoch).seen
            frames.append(Frames(connect_to(address)))
            greet(frames[1], Purpose.COMMANDS, epoch=epoch)
        except BaseException:
            for each in frames:
                each.close()
            raise
        self._ended = ended
        self._feed = StorageFeed(
            store,
            hasher,
            send=self._send,
            written=written,
            room=lambda: self.storage.waiting() < _MOST_WAITING,
            process=process,
            processes=processes,
        )
        self.storage: Link[StorageUpdate, StorageRequest] = Link(
            frames[0],
            name=f"storage:{process}",
            encode=encode,
            decode=decode_storage_request,
            take=self._guarded(self._feed.receive),
            ended=ended,
            idle=self._feed.wake,
        )
        self.commands: Link[Command | ReportMeasures, Response | ProcessMeasures] = Link(
            frames[1],
            name=f"commands:{process}",
            encode=encode,
            decode=decode_from_process,
            take=self._guarded(respond),
            ended=ended,
        )
        self._stopping = threading.Event()
        self._feeding = threading.Thread(target=self._run, name=f"feed:{process}", daemon=True)

    def _send(self, update: StorageUpdate) -> None:
        self.storage.send(update)

    def start(self) -> None:
        self.storage.start()
        self.commands.start()
        self._feeding.start()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self._feed.step() and not self._stopping.is_set():
                    self._feed.wait()
        except Exception as error:  # noqa: BLE001 - whatever it was, the replica cannot go on without its inputs
            _log.exception("storage cannot be fed to the replica")
            self._ended(error)
        finally:
            self._feed.close()

    def _guarded(self, take: Callable[[_Message], None]) -> Callable[[_Message], None]:
        """A message that cannot be taken ends the connection instead of leaving it half alive."""

        def guarded(message: _Message) -> None:
            try:
                take(message)
            except Exception as error:  # noqa: BLE001 - as in ``_run``
                _log.exception("a message of the replica cannot be taken")
                self._ended(error)

        return guarded

    def close(self) -> None:
        self._stopping.set()
        self._feed.wake()
        self.storage.close()
        self.commands.close()
        if self._feeding.is_alive():
            self._feeding.join()


class ReplicaConnection:
    """``addresses``: the sockets of the replica's processes, by ordinal.  ``written`` is not called after ``close``.

    ``epoch``: of the database; once a process was reached under a higher one this ends, and another is refused: 55006.

    Raises 08001 or 08006 if one cannot be reached, 0A000 if it is of another release, 22023 if it is another process.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        store: TableStore,
        hasher: Hasher,
        listener: Callable[[Response], None] | None = None,
        *,
        epoch: int = 0,
    ) -> None:
        self._responses = ResponseQueue(listener)
        self._answers = RemoteResponses(len(addresses), store, self._responses.put, self._abandon)
        self._sending = threading.Lock()
        self._reported = threading.Condition()
        self._questions = 0  # guarded by _reported, like the next two
        #: what the processes have answered, by question and process
        self._reports: dict[int, dict[int, ProcessMeasures]] = {}
        self._hung_up = False
        self._processes: list[_Process] = []
        try:
            for process, address in enumerate(addresses):
                self._processes.append(
                    _Process(
                        address, store, hasher, process=process, processes=len(addresses), epoch=epoch,
                        respond=functools.partial(self._taken, process), written=self._answers.written,
                        ended=self._ended,
                    )
                )  # fmt: skip
        except BaseException:
            self.close()
            raise
        for each in self._processes:
            each.start()

    @property
    def seen(self) -> list[Seen | None]:
        """What each process had of the tables when it was reached."""
        return [each.seen for each in self._processes]

    @property
    def failed(self) -> bool:
        return self._answers.over

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        self._responses.listen(listener, ended)

    def send(self, command: Command) -> None:
        with self._sending:
            everywhere = isinstance(command, (Hello, UpdateConfiguration))
            for each in self._processes if everywhere else self._processes[:1]:
                each.commands.send(command)

    def receive(self, timeout: float | None = None) -> Response | None:
        return self._responses.receive(timeout)

    def answer_now(self, _peek: Peek, _cancelled: Callable[[], bool] = lambda: False) -> PeekResponse | None:
        """Nothing can be read here: send the peek."""
        return None

    def look_up(self, _id: str, _at: Time, _probe: PointProbe) -> list[Found] | None:
        """As ``answer_now``."""
        return None

    def wait_sealed(self, _id: str, _at: Time, _timeout_s: float, _expired: Callable[[], bool]) -> bool | None:
        """What the processes have sealed is not known here at once: send the peek."""
        return None

    def measured(self, timeout: float) -> list[ProcessMeasures]:
        """What each process counts, by ordinal; nothing if one does not say so within ``timeout`` seconds."""
        with self._reported:
            self._questions += 1
            number = self._questions
            reports = self._reports[number] = {}
        try:
            for each in self._processes:
                each.commands.send(ReportMeasures(number))
            with self._reported:
                self._reported.wait_for(lambda: self._hung_up or len(reports) == len(self._processes), timeout)
                whole = len(reports) == len(self._processes)
        finally:
            with self._reported:
                del self._reports[number]
        return [report for _, report in sorted(reports.items())] if whole else []

    def stop(self) -> None:
        """Hangs up."""
        self._answers.end("the replica was stopped", tell=False)

    def close(self) -> None:
        """Hangs up; the processes go on, for another connection or until they have waited long enough."""
        self._answers.end("the replica was closed", tell=False)
        for each in self._processes:
            each.close()
        self._responses.close()

    def _taken(self, process: int, message: Response | ProcessMeasures) -> None:
        if not isinstance(message, ProcessMeasures):
            self._answers.put(process, message)
            return
        with self._reported:
            waited_for = self._reports.get(message.number)
            if waited_for is not None:
                waited_for[process] = message
                self._reported.notify_all()

    def _ended(self, error: Exception | None) -> None:
        why = "" if error is None else f": {error}"
        self._answers.end(f"the connection to the replica was lost{why}", tell=True)

    def _abandon(self) -> None:
        with self._reported:
            self._hung_up = True
            self._reported.notify_all()
        for each in self._processes:
            each.commands.abandon()
            each.storage.abandon()
