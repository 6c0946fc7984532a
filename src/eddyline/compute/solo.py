"""Solo: the only compute runtime of its process.  It renders every dataflow and answers every peek.

It is a ``protocol.client.Client``.  N workers take the same commands in the same order; each owns the rows whose key
hashes fall to it.  With ``threads`` each worker has a thread, named ``solo:0`` …; without, ``step`` drives them, for
tests that choose the interleaving.

An exception that a worker does not handle ends the whole runtime: every worker stops, one fatal ``Status`` is sent,
and later commands are ignored.  Whoever owns the runtime fails what waits for it and builds another.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from eddyline.compute.exchange import Mailboxes
from eddyline.compute.merge_responses import ResponseMerger, union_of
from eddyline.compute.render import SharedSources
from eddyline.compute.worker import Worker
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.messages import Command, Peek, PeekResponse, Response, Status
from eddyline.protocol.sources import Storage
from eddyline.trace.hasher import Hasher

__all__ = ["Solo"]

_log = logging.getLogger("eddyline.compute")


class Solo:
    """``listener``: gets each response on the thread that made it, instead of the queue behind ``receive``.

    It must be quick and must not wait for the runtime; it may send commands.
    """

    def __init__(
        self,
        storage: Storage,
        hasher: Hasher,
        *,
        workers: int = 1,
        listener: Callable[[Response], None] | None = None,
        threads: bool = True,
        clock: Callable[[], int] = time.perf_counter_ns,
        activation_ns: int = 5_000_000,
        budget_rows: int = 65_536,
    ) -> None:
        self._responses = ResponseQueue(listener)
        self._merger = ResponseMerger(workers, self._responses.put)
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._failing = threading.Lock()
        self._failed = False  # guarded by _failing
        mailboxes = Mailboxes(workers)
        sources = SharedSources(storage, workers)
        self._workers = [
            Worker(
                i,
                workers,
                hasher=hasher,
                storage=storage,
                sources=sources,
                mailboxes=mailboxes,
                respond=self._merger.put,
                clock=clock,
                activation_ns=activation_ns,
                budget_rows=budget_rows,
            )
            for i in range(workers)
        ]
        self._unwatch = [storage.watch(w.inbox.commit) for w in self._workers]
        self._threads = [
            threading.Thread(target=self._run, args=(w,), name=f"solo:{w.index}", daemon=True)
            for w in (self._workers if threads else ())
        ]
        for thread in self._threads:
            thread.start()

    @property
    def failed(self) -> bool:
        with self._failing:
            return self._failed

    def send(self, command: Command) -> None:
        """All workers get the commands of all senders in one order."""
        if self._stop.is_set():
            return
        with self._sending:
            for worker in self._workers:
                worker.inbox.command(command)

    def receive(self, timeout: float | None = None) -> Response | None:
        return self._responses.receive(timeout)

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool] = lambda: False) -> PeekResponse | None:
        """The answer of ``peek`` if it needs no waiting, on the caller's thread; None: send it instead.

        A hop to the worker and back costs more than a lookup, and a walk here delays nobody else's.  The index is read
        as it is published, so commands still in the queue are not seen: the caller makes sure that the index exists and
        that the time is the right one.  ``cancelled`` is looked at between slices of a walk.  Any thread.
        """
        parts: list[PeekResponse] = []
        for worker in self._workers:
            part = None if self._stop.is_set() else worker.answer_now(peek, cancelled)
            if part is None:
                return None
            parts.append(part)
        return union_of(parts)

    def step(self, worker: int | None = None) -> bool:
        """Without threads: one step of ``worker``, or one of each; True if anything was done."""
        if self._stop.is_set():
            return False
        chosen = self._workers if worker is None else [self._workers[worker]]
        moved = False
        for each in chosen:
            try:
                moved |= each.step()
            except Exception as error:  # noqa: BLE001 - whatever it was, the whole runtime ends with it
                _log.exception("worker %d failed", each.index)
                self._fail(error)
                return False
        return moved

    def at_rest(self) -> bool:
        """No dataflow, no peek and no partial answer is left.  For a runtime that nobody drives at the moment."""
        return not self._merger.pending() and all(w.at_rest() for w in self._workers)

    def settle(self, max_steps: int = 100_000) -> None:
        """Without threads: steps until no worker has anything to do."""
        for _ in range(max_steps):
            if not self.step():
                return
        raise AssertionError("the runtime does not come to rest")

    def close(self) -> None:
        """Stops the threads, drops all dataflows; ``receive`` then returns None.  Twice is harmless."""
        self._stop.set()
        for end in self._unwatch:
            end()
        self._unwatch = []
        for worker in self._workers:
            worker.inbox.wake()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        for worker in self._workers:
            worker.close()
        self._responses.close()

    def _run(self, worker: Worker) -> None:
        try:
            while not self._stop.is_set():
                # Asked again: the step may have taken the wake-up that came with the end.
                if not worker.step() and not self._stop.is_set():
                    worker.inbox.wait()
        except Exception as error:  # noqa: BLE001 - as in ``step``
            _log.exception("worker %d failed", worker.index)
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Shared fate: no half a runtime goes on answering."""
        with self._failing:
            if self._failed:
                return
            self._failed = True
        self._stop.set()
        for worker in self._workers:
            worker.inbox.wake()
        self._responses.put(Status(f"{type(error).__name__}: {error}", fatal=True))
