"""The controller with whoever may call it, and whoever waits for what replicas say to it.

Locks, in order: ``lock`` (every call that changes the controller; held for O(1) steps, never while waiting for a
replica), then ``_answers`` (who waits for which peek), then storage's own; ``_moved`` is the innermost.

An answer reaches whoever waits for it before the controller hears of it, and a replica's threads wait for nobody who
holds ``lock``: they hand in what they have to say, and go on.  What responses lead to outside the controller is done
with no lock held.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from eddyline.adapter.control_lock import ControlLock
from eddyline.adapter.waiter import Waiter
from eddyline.controller.controller import Controller
from eddyline.controller.events import Event, PeekAnswered, ReplicaFailed, SubscriptionChanged
from eddyline.controller.lag import Lag
from eddyline.errors import Error, make_error
from eddyline.protocol.delivery import Delivery
from eddyline.protocol.messages import PeekResponse, Response, Status, SubscribeResponse
from eddyline.sql.catalog_view import CatalogItem
from eddyline.storage.store import TableStore

__all__ = ["Absent", "Control", "Feed", "Speaker"]

_log = logging.getLogger("eddyline.engine")


class Feed(NamedTuple):
    """Where a subscription's news goes; called without a lock.  ``reads``: ids of all that it reads, through views.

    ``dropped``: what it reads is gone.  ``fail``: it ends for another reason.  ``look_again``: whoever waits for news
    is to look at the database: it was closed, or nobody is there who makes any.
    """

    take: Callable[[SubscribeResponse], bool]
    dropped: Callable[[CatalogItem], None]
    fail: Callable[[Error], None]
    look_again: Callable[[], None]
    reads: frozenset[str]


class Speaker(Protocol):
    """A replica, as whoever hears of it knows it.  ``source`` stands for the connection whose responses count."""

    @property
    def id(self) -> str: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def source(self) -> object: ...

    def recovery(self) -> Callable[[], None]:
        """What has the present one replaced, to be called without a lock.  Needs the control lock."""


#: why nobody in a cluster answers, and nobody soon will; None where somebody does.  Needs the control lock
Absent = Callable[[], Error | None]


class Control:
    def __init__(self, store: TableStore, lag: Lag) -> None:
        self.controller = Controller(store, logging=True, lag=lag)
        #: what responses lead to outside the controller, in their order
        self._effects: Delivery[Callable[[], None]] = Delivery(lambda effect: effect())
        self.lock = ControlLock(self._effects.deliver)
        self._moved = threading.Condition()
        self._moves = 0  # how often an upper rose, or a replica came or went; guarded by _moved
        self._answers = threading.Lock()
        self._peeks: dict[str, Waiter] = {}  # guarded by _answers
        self.feeds: dict[str, Feed] = {}  # guarded by lock
        self.closed = False  # set with the lock held
        #: ids of replicas that are not there and soon will not be; changed with the lock held, and any thread may look
        self.absentees: set[str] = set()

    def close(self) -> bool:
        """Whoever waits is told, with 57P01; False if that was done before."""
        with self.lock:
            if self.closed:
                return False
            self.closed = True
            with self._answers:
                waiters = list(self._peeks.values())
                self._peeks.clear()
            feeds = list(self.feeds.values())
        self.has_moved()
        for feed in feeds:
            feed.look_again()
        for waiter in waiters:
            waiter.fail(make_error("57P01", "the database was closed"))
        return True

    def set_absent(self, replica_id: str, *, absent: bool) -> None:
        """Whether a replica is not there and soon will not be.  Needs the lock.  O(subscriptions)."""
        if not absent:
            self.absentees.discard(replica_id)
            return
        self.absentees.add(replica_id)
        for feed in self.feeds.values():
            self._effects.add(feed.look_again)

    # -- who waits ------------------------------------------------------------------------------------------------

    def expect(self, uuid: str, waiter: Waiter, absent: Absent) -> None:
        """Where the answer of peek ``uuid`` goes, or why there will be none: 58000.

        Call with the lock held, right after the peek.
        """
        with self._answers:
            self._peeks[uuid] = waiter
        why = absent()
        if why is not None and self._waiter_of(uuid) is not None:
            self.controller.withdraw_peek(uuid)
            waiter.fail(_again(why))

    def forget(self, uuid: str) -> None:
        """Cancels a peek whose answer nobody waits for any more."""
        if self._waiter_of(uuid) is not None:
            with self.lock:
                self.controller.cancel_peek(uuid)

    def _waiter_of(self, uuid: str) -> Waiter | None:
        """Whoever waits for the peek, once."""
        with self._answers:
            return self._peeks.pop(uuid, None)

    def feed(self, id: str, feed: Feed, absent: Absent) -> None:
        """Where the responses of subscription ``id`` go, in order; it is ended once ``take`` gives False.

        58000 if there is no replica to make any; the subscription is dropped then.
        """
        with self.lock:
            self.feeds[id] = feed
            why = absent()
            if why is not None:
                self._drop_subscription(id)
                raise _again(why)

    def dropped(self, items: Iterable[CatalogItem]) -> None:
        """Objects are in the catalog no more: subscriptions that read one end, and are told.  O(subscriptions)."""
        gone = {item.id: item for item in items}
        ended: list[tuple[Feed, CatalogItem]] = []
        with self.lock:
            for id, feed in list(self.feeds.items()):
                first = next(iter(gone.keys() & feed.reads), None)
                if first is not None:
                    self._drop_subscription(id)
                    ended.append((feed, gone[first]))
        for feed, item in ended:
            feed.dropped(item)

    def take_down(self, ids: Sequence[str], why: Error) -> Callable[[], None]:
        """Drops collections; what tells ``why`` to who waits for an answer of theirs, or whose subscriptions they were,
        to be called without a lock.
        """
        waiters: list[Waiter] = []
        feeds: list[Feed] = []
        with self.lock:
            for uuid in self.controller.asked_of(ids):
                waiter = self._waiter_of(uuid)
                if waiter is not None:
                    self.controller.cancel_peek(uuid)
                    waiters.append(waiter)
            for id in ids:
                feed = self.feeds.pop(id, None)
                if feed is not None:
                    feeds.append(feed)
                self.controller.drop(id)

        def tell() -> None:
            for waiter in waiters:
                waiter.fail(_again(why))
            for feed in feeds:
                feed.fail(_again(why))

        return tell

    def end_subscription(self, id: str) -> None:
        """Drops it with its holds; twice is harmless."""
        with self.lock:
            self._drop_subscription(id)

    def _drop_subscription(self, id: str) -> None:
        """With the lock held."""
        self.feeds.pop(id, None)
        self.controller.drop(id)

    def _give(self, take: Callable[[SubscribeResponse], bool], response: SubscribeResponse) -> None:
        if not take(response):
            self.lock.hand_in(partial(self._drop_subscription, response.id))

    def wait_for(self, ready: Callable[[Controller], bool], timeout: float | None, absent: Absent) -> bool:
        """Waits until ``ready(controller)``, looked at after every response but answers; False when the time is up.

        58000 if there is no replica to wait for.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._moved:
                seen = self._moves
            with self.lock:
                if self.closed or ready(self.controller):
                    return not self.closed
                why = absent()
                if why is not None:
                    raise _again(why)
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return False
            self._wait_moved(seen, remaining)

    def _wait_moved(self, seen: int, timeout: float | None) -> None:
        with self._moved:
            self._moved.wait_for(lambda: self._moves != seen, timeout)

    def has_moved(self) -> None:
        """Without the lock: whoever waits looks again."""
        with self._moved:
            self._moves += 1
            self._moved.notify_all()

    # -- what replicas say ----------------------------------------------------------------------------------------

    def respond(self, speaker: Speaker, source: object, response: Response) -> None:
        """A response by the connection that ``source`` stands for, on a thread of its: never waits."""
        if isinstance(response, PeekResponse) and not response.canceled and source is speaker.source:
            # First of all; should the answer be quicker than ``expect``, the controller's event delivers it.  Whether
            # a cancellation is the answer is for the controller to say: another replica may have a better one.
            self.deliver(response)
        self.lock.hand_in(partial(self._process, speaker, source, response))

    def _process(self, speaker: Speaker, source: object, response: Response) -> None:
        """The controller hears of a response; with the lock held."""
        if self.closed or source is not speaker.source:
            return
        controller, replica, cluster = self.controller, speaker.id, speaker.cluster_id
        try:
            events = controller.process_response(response, replica, cluster)
        except Exception as error:  # noqa: BLE001 - whatever it was, the replica is not understood and is built anew
            _log.exception("a response of the replica cannot be taken")
            status = Status(f"{type(error).__name__}: {error}", fatal=True)
            events = controller.process_response(status, replica, cluster)
        self.handle(events, speaker)
        if not isinstance(response, PeekResponse):
            self._effects.add(self.has_moved)

    def deliver(self, response: PeekResponse) -> None:
        waiter = self._waiter_of(response.uuid)
        if waiter is not None:
            waiter.put(response)

    def gone(self, events: Iterable[Event]) -> None:
        """A replica went, or a cluster, which led to ``events``; with the lock held."""
        self.handle(events, None)
        self._effects.add(self.has_moved)

    def handle(self, events: Iterable[Event], speaker: Speaker | None) -> None:
        """With the lock held."""
        for event in events:
            match event:
                case PeekAnswered():
                    self.deliver(event.response)
                case SubscriptionChanged():
                    feed = self.feeds.get(event.response.id)
                    if feed is not None:
                        self._effects.add(partial(self._give, feed.take, event.response))
                case ReplicaFailed() if speaker is not None:
                    _log.error("replica %s failed and is rebuilt: %s", speaker.title, event.message)
                    self._effects.add(speaker.recovery())
                case _:
                    pass


def _again(error: Error) -> Error:
    """The same, to be raised by another thread."""
    return make_error(error.sqlstate, error.message, hint=error.hint)
