"""A compute runtime: N workers of one role that take the same commands in the same order.

It is a ``protocol.client.Client``.  Each worker owns the rows whose key hashes fall to it.  With ``threads`` each
worker has a thread: ``solo:0`` …, ``maint:0`` …, ``inter:0`` … and ``inter:0:heavy`` …; without, ``step`` drives them,
for tests that choose the interleaving.

Workers that render take turns where there are more of them than cores; the ones that answer lookups never do.

An exception that a worker does not handle ends the whole runtime: every worker stops, one fatal ``Status`` is sent,
and later commands are ignored.  Whoever owns the runtime fails what waits for it and builds another.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Protocol

from eddyline.compute.exchange import Mailboxes
from eddyline.compute.held_bytes import HeldBytes
from eddyline.compute.inbox import Inbox
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.measures import Durations
from eddyline.compute.merge_responses import ResponseMerger, union_of
from eddyline.compute.placement import Role
from eddyline.compute.read_state import MemoryAccounts
from eddyline.compute.render import SharedSources
from eddyline.compute.sharing import SharingRegistry
from eddyline.compute.worker import Worker
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.measures_messages import RuntimeMeasures
from eddyline.protocol.messages import Command, Hello, Peek, PeekResponse, Response, Status
from eddyline.protocol.sources import Storage
from eddyline.repr.time import Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["Runtime"]

_log = logging.getLogger("eddyline.compute")


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: how often a caller that waits for itself looks whether it still should
_LOOK_S = 0.02


class _Told:
    """A flag that another thread sets once and one waits for: a bare lock, which costs less than an event."""

    __slots__ = ("_lock", "tell")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        #: sets it; one object, by which it is known
        self.tell: Callable[[], None] = self._lock.release

    def wait(self, timeout_s: float) -> bool:
        return self._lock.acquire(timeout=timeout_s)


class _Driven(Protocol):
    """A worker, or a lane of one: what one thread drives."""

    inbox: Inbox

    def step(self) -> bool: ...

    def at_rest(self) -> bool: ...

    def rest(self) -> None:
        """Until there may be something to do."""
        ...

    def close(self) -> None: ...


class _Commanded(_Driven, Protocol):
    """A worker that takes commands and answers peeks."""

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None: ...

    def look_up(self, id: str, at: Time, probe: PointProbe) -> list[Found] | None: ...


class Runtime:
    """``listener``: gets each response on the thread that made it, instead of the queue behind ``receive``.

    It must be quick and must not wait for the runtime; it may send commands.
    ``registries``: one per worker, shared with the other runtime of the replica; none for Solo.
    ``mailboxes``: where the workers of this process stand among those of all processes; alone without.
    ``configure``: gets what ``UpdateConfiguration`` says, on the first worker's thread; an interactive runtime never
    calls it, so that of two runtimes one does.  ``on_thread``: called with its name by each thread as it starts.
    """

    def __init__(
        self,
        storage: Storage,
        hasher: Hasher,
        *,
        role: Role,
        workers: int = 1,
        registries: Sequence[SharingRegistry] = (),
        mailboxes: Mailboxes | None = None,
        configure: Callable[[Mapping[str, str]], None] | None = None,
        on_thread: Callable[[str], None] | None = None,
        listener: Callable[[Response], None] | None = None,
        threads: bool = True,
        clock: Callable[[], int] = time.perf_counter_ns,
        activation_ns: int = 5_000_000,
        budget_rows: int = 65_536,
    ) -> None:
        if len(registries) != (0 if role is Role.SOLO else workers):
            raise ValueError(f"{workers} workers of role {role.value} with {len(registries)} sharing registries")
        self.role = role
        self.workers = workers
        self._responses = ResponseQueue(listener)
        mailboxes = Mailboxes(workers) if mailboxes is None else mailboxes
        first = mailboxes.first
        self._on_thread = on_thread
        self._merger = ResponseMerger(workers, self._responses.put, first=first)
        self._sending = threading.Lock()
        self._nonce: str | None = None  # guarded by _sending
        self._stop = threading.Event()
        self._failing = threading.Lock()
        self._failed = False  # guarded by _failing
        sources = SharedSources(storage, workers, first=first)
        accounts = MemoryAccounts(workers, mailboxes.wake_all)
        self.held = HeldBytes()
        rendering = [
            Worker(
                first + i,
                mailboxes.all_workers,
                hasher=hasher,
                storage=storage,
                sources=sources,
                mailboxes=mailboxes,
                accounts=accounts,
                held=self.held,
                respond=self._merger.put,
                role=role,
                registry=registries[i] if role is Role.MAINTENANCE else None,
                configure=configure if role is not Role.INTERACTIVE and i == 0 else None,
                clock=clock,
                activation_ns=activation_ns,
                budget_rows=budget_rows,
            )
            for i in range(workers)
        ]
        #: of the workers that render
        self.measures = [worker.measures for worker in rendering]
        prefix = role.thread_prefix
        #: of the interactive runtime: the workers that know what is published
        self._fronts: Sequence[InteractiveWorker] = ()
        self._commanded: Sequence[_Commanded]
        self._driven: list[tuple[str, _Driven]]
        if role is Role.INTERACTIVE:
            fronts = [
                InteractiveWorker(
                    lane.index,
                    hasher=hasher,
                    registry=registries[lane.index - first],
                    lane=lane,
                    respond=self._merger.put,
                    clock=clock,
                )
                for lane in rendering
            ]
            self._commanded = self._fronts = fronts
            self._driven = [(f"{prefix}:{f.index}", f) for f in fronts]
            self._driven += [(f"{prefix}:{w.index}:heavy", w) for w in rendering]
        else:
            self._commanded = rendering
            self._driven = [(f"{prefix}:{w.index}", w) for w in rendering]
        self._unwatch = [storage.watch(w.inbox.commit) for w in rendering]
        # More threads at work than cores finish nothing sooner, and whoever answers a lookup has to get past them all.
        crowd = threading.Semaphore(_cores()) if workers > _cores() else None
        self._threads = [
            threading.Thread(
                target=self._run, args=(name, each, crowd if isinstance(each, Worker) else None), name=name, daemon=True
            )
            for name, each in (self._driven if threads else ())
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            # The system has no thread left: those that run end, so that another try finds what they took.
            self._threads = [thread for thread in self._threads if thread.ident is not None]
            self.close()
            raise

    @property
    def failed(self) -> bool:
        with self._failing:
            return self._failed

    # -- the client's face ----------------------------------------------------------------------------------------

    def measured(self) -> RuntimeMeasures:
        """What its workers count; O(arrangements and their runs), any thread."""
        counts, seconds = Durations.sum_of([each.activations for each in self.measures])
        size = sum(each.bytes_in_runs() for each in self.measures)
        return RuntimeMeasures(self.role.value, counts, seconds, size, *self.measures[0].counted())

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        self._responses.listen(listener, ended)

    def send(self, command: Command) -> None:
        """All workers get the commands of all senders in one order."""
        if self._stop.is_set():
            return
        if isinstance(command, Hello):
            with self._sending:
                new, self._nonce = command.nonce != self._nonce, command.nonce
            if new:
                # Before any worker hears of it, and without the lock: it may wait for a response being passed on.
                self._merger.begin_connection()
        with self._sending:
            for worker in self._commanded:
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
        for worker in self._commanded:
            part = None if self._stop.is_set() else worker.answer_now(peek, cancelled)
            if part is None:
                return None
            parts.append(part)
        return union_of(parts)

    def look_up(self, id: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """As ``answer_now``, of the key that ``probe`` has: the rows and where they lie; None: ask otherwise."""
        found: list[Found] = []
        for worker in self._commanded:
            part = None if self._stop.is_set() else worker.look_up(id, at, probe)
            if part is None:
                return None
            found += part
        return found

    def wait_sealed(self, id: str, at: Time, timeout_s: float, expired: Callable[[], bool]) -> bool | None:
        """Waits on the caller's thread until index ``id`` has sealed ``at``: True if it had to wait, and it has now.

        False: it has not within ``timeout_s``, or ``expired`` says to give up.  None: there was nothing to wait for, or
        it cannot be waited for here (an index that is not published yet, a runtime of another role, or one that is
        driven).  Whoever has waited here reads at once; a peek would be handed to the worker's thread, and its answer
        back.  Any thread.
        """
        slots = [front.slot_of(id) for front in self._fronts]
        waits = [(slot, _Told()) for slot in slots if slot is not None and slot.started]
        if not waits or len(waits) < len(slots) or not self._threads:
            return None
        deadline = time.monotonic() + timeout_s
        try:
            # All are asked before one is waited for: each may have to be told to catch up.
            unsealed = [told for slot, told in waits if not slot.tell_sealed(at, told.tell)]
            for told in unsealed:
                while not told.wait(_LOOK_S):
                    if self._stop.is_set() or expired() or time.monotonic() >= deadline:
                        return False
        finally:
            for slot, told in waits:
                slot.forget(told.tell)
        return True if unsealed else None

    # -- driving --------------------------------------------------------------------------------------------------

    def step(self, driven: int | None = None) -> bool:
        """Without threads: one step of a worker or lane, or one of each; True if anything was done.

        An interactive runtime's workers come first, then their lanes.
        """
        if self._stop.is_set():
            return False
        chosen = self._driven if driven is None else [self._driven[driven]]
        moved = False
        for name, each in chosen:
            try:
                moved |= each.step()
            except Exception as error:  # noqa: BLE001 - whatever it was, the whole runtime ends with it
                _log.exception("%s failed", name)
                self._fail(error)
                return False
        return moved

    def at_rest(self) -> bool:
        """No dataflow, no peek and no partial answer is left.  For a runtime that nobody drives at the moment."""
        return not self._merger.pending() and all(each.at_rest() for _, each in self._driven)

    def settle(self, max_steps: int = 100_000) -> None:
        """Without threads: steps until no worker has anything to do."""
        for _ in range(max_steps):
            if not self.step():
                return
        raise AssertionError("the runtime does not come to rest")

    def stop(self) -> None:
        """No worker begins another step, and commands are ignored.  Does not wait; ``close`` does the rest."""
        self._stop.set()
        for _, each in self._driven:
            each.inbox.wake()

    def close(self) -> None:
        """Stops the threads, drops all dataflows; ``receive`` then returns None.  Twice is harmless."""
        self.stop()
        for end in self._unwatch:
            end()
        self._unwatch = []
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        for _, each in self._driven:
            each.close()
        self._responses.close()

    def _run(self, name: str, each: _Driven, crowd: threading.Semaphore | None) -> None:
        """``crowd``: how many of those that render may be in a step at once; no step waits for another one's."""
        try:
            if self._on_thread is not None:
                self._on_thread(name)
            while not self._stop.is_set():
                with crowd or nullcontext():
                    moved = each.step()
                # Asked again: the step may have taken the wake-up that came with the end.
                if not moved and not self._stop.is_set():
                    each.rest()
        except Exception as error:  # noqa: BLE001 - as in ``step``
            _log.exception("%s failed", name)
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Shared fate: no half a runtime goes on answering."""
        with self._failing:
            if self._failed:
                return
            self._failed = True
        self.stop()
        self._responses.put(Status(f"{type(error).__name__}: {error}", fatal=True))
