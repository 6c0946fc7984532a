"""Rows to the worker that owns their key.

A channel is (dataflow, operator): the dataflow's number in the order of creation, which every worker derives from
the commands alone, and the operator's position.  A message carries updates of one sender and the sender's frontier.

Invariants:
I1  a sender's messages arrive in order, each after the updates it covers;
I2  a receiver's frontier is the least over all senders, each of which starts at the minimum;
I3  nobody waits for a peer: mailboxes are unbounded; sources are read only as fast as the local operators consume.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.compute.context import OperatorContext
from eddyline.compute.stream import Output, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier

__all__ = ["Channel", "ExchangeOperator", "Mailboxes", "Message"]


@dataclass(frozen=True, slots=True)
class Channel:
    dataflow: int
    operator: int


@dataclass(frozen=True, slots=True)
class Message:
    channel: Channel
    sender: int
    frontier: Frontier
    rows: Batch | None = None
    errors: Batch | None = None


class Mailboxes:
    """One queue of messages per worker of this process.  Any worker sends; a worker takes its own.

    Workers are counted over all processes of the replica: here are ``workers`` of ``all_workers``, from ``first`` on.
    ``post(worker, message)`` takes what is for the others; it never blocks, and keeps the order.
    """

    def __init__(
        self,
        workers: int,
        *,
        first: int = 0,
        all_workers: int | None = None,
        post: Callable[[int, Message], None] | None = None,
    ) -> None:
        self.workers = workers
        self.first = first
        self.all_workers = workers if all_workers is None else all_workers
        self._post = post
        self._lock = threading.Lock()
        self._queues: list[deque[Message]] = [deque() for _ in range(workers)]  # guarded by _lock
        self._wakers: list[Callable[[], None]] = [_nobody for _ in range(workers)]

    def set_waker(self, worker: int, waker: Callable[[], None]) -> None:
        """``waker`` runs on the sender's thread after each message.  Set before any worker runs."""
        self._wakers[worker - self.first] = waker

    def send(self, worker: int, message: Message) -> None:
        here = worker - self.first
        if not 0 <= here < self.workers:
            assert self._post is not None, f"worker {worker} is in no process that this one knows"
            self._post(worker, message)
            return
        with self._lock:
            self._queues[here].append(message)
        self._wakers[here]()

    def wake_all(self) -> None:
        """Every worker looks again at what there is to do."""
        for waker in self._wakers:
            waker()

    def take(self, worker: int) -> list[Message]:
        here = worker - self.first
        with self._lock:
            messages = list(self._queues[here])
            self._queues[here].clear()
        return messages


class _Parcel(NamedTuple):
    """What of one batch goes to one worker."""

    rows: Batch | None
    errors: Batch | None


_NOTHING: Final = _Parcel(None, None)


def _nobody() -> None:
    """The waker of a worker that has not set one: it will look when it starts."""


class ExchangeOperator:
    """Deals its input out by key hash and merges what the peers deal here.

    ``key``: the columns whose hash decides; None: everything goes to worker 0.  Errors go by the hash of the whole
    error row, so that an error and its retraction meet.
    """

    def __init__(
        self,
        name: str,
        input: Stream,
        key: tuple[int, ...] | None,
        output: Output,
        *,
        channel: Channel,
        mailboxes: Mailboxes,
        context: OperatorContext,
    ) -> None:
        self.name = name
        self.channel = channel
        self._input = input
        self._key = key
        self._output = output
        self._mailboxes = mailboxes
        self._context = context
        self._incoming: deque[Message] = deque()
        self._frontiers = [Frontier(MIN_TIME)] * context.workers
        self._announced = Frontier(MIN_TIME)

    def deliver(self, message: Message) -> None:
        self._incoming.append(message)

    def step(self) -> bool:
        moved = self._send()
        return self._receive() or moved

    def pending(self) -> bool:
        return bool(self._incoming) or not self._input.drained() or self._input.frontier > self._announced

    def outrun(self) -> bool:
        """Whether a peer has told of times that are not over here.  O(workers)."""
        return max(self._frontiers) > self._announced or any(m.frontier > self._announced for m in self._incoming)

    def abandon(self) -> None:
        """Nothing more comes from here, and what came is not all: peers go on to their end, since nobody tells them.

        Whoever calls this answers with an error, which outweighs what they find.
        """
        self._announced = EMPTY
        for worker in range(self._context.workers):
            if worker != self._context.worker:
                self._post(worker, _NOTHING, EMPTY)

    def close(self) -> None:
        self._incoming.clear()

    def _send(self) -> bool:
        """Deals out what is queued.  The last message to each worker says how far the input has come, so that a step
        in time is one message, and wakes a peer once."""
        moved = not self._input.drained()
        parcels: list[list[_Parcel]] = [[] for _ in range(self._context.workers)]
        while self._input.errors:
            batch = self._input.errors.popleft()
            key = None if self._key is None else tuple(range(len(ERR_TYPES)))
            for worker, part in self._dealt(batch, key):
                parcels[worker].append(_Parcel(None, part))
        rows = 0
        while self._input.updates and rows < self._context.budget_rows:
            batch = self._input.updates.popleft()
            rows += len(batch)
            for worker, part in self._dealt(batch, self._key):
                parcels[worker].append(_Parcel(part, None))
        before = self._announced
        if self._input.drained() and self._input.frontier > before:
            self._announced = self._input.frontier
            moved = True
        for worker, parts in enumerate(parcels):
            if not parts and self._announced > before:
                parts.append(_NOTHING)
            for number, parcel in enumerate(parts, 1):
                self._post(worker, parcel, self._announced if number == len(parts) else before)
        return moved

    def _dealt(self, batch: Batch, key: tuple[int, ...] | None) -> Iterator[tuple[int, Batch]]:
        """The parts of a batch, and whose they are; workers that get none are left out."""
        if not len(batch):
            return
        if key is None:
            yield 0, batch
            return
        owners = self._owners(batch, key)
        for worker in range(self._context.workers):
            mine = np.flatnonzero(owners == worker)
            if len(mine):
                yield worker, batch if len(mine) == len(batch) else batch.take(mine)

    def _owners(self, batch: Batch, key: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        hashes = self._context.hasher.hash_rows(
            tuple(batch.columns[c] for c in key), tuple(batch.types[c] for c in key), len(batch)
        )
        return np.asarray(hashes % np.uint64(self._context.workers))

    def _post(self, worker: int, parcel: _Parcel, frontier: Frontier) -> None:
        message = Message(self.channel, self._context.worker, frontier, rows=parcel.rows, errors=parcel.errors)
        if worker == self._context.worker:
            self._incoming.append(message)
        else:
            self._mailboxes.send(worker, message)

    def _receive(self) -> bool:
        moved = bool(self._incoming)
        while self._incoming:
            message = self._incoming.popleft()
            if message.rows is not None:
                self._output.send(message.rows)
            self._output.send_errors(message.errors)
            self._frontiers[message.sender] = max(self._frontiers[message.sender], message.frontier)
        self._output.advance(min(self._frontiers))
        return moved
