"""The sessions of a database: what each is doing, as others are told, and how they are cancelled and ended.

Process numbers are this process's, of sessions and of connections that have none yet alike: a client cancels by the
number that it is told.
"""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from eddyline.errors import unsupported

__all__ = ["Activity", "ActivitySeen", "Client", "SessionList", "TransactionSeen", "next_process"]

#: PostgreSQL's ``track_activity_query_size``, less the zero behind it
_MOST_BYTES: Final = 1023
_SURELY_SHORT: Final = _MOST_BYTES // 4
_SECRET: Final = re.compile(r"\bpassword\b", re.IGNORECASE)
_HIDDEN: Final = "<a statement with a password>"


class _Numbers:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0  # guarded by _lock

    def next(self) -> int:
        with self._lock:
            self._last += 1
            return self._last


_numbers: Final = _Numbers()


def next_process() -> int:
    """A number that no other session or connection of this process has had."""
    return _numbers.next()


def _now_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Client:
    """Who is connected: ``address`` and ``port`` None of the program itself.  ``cancel`` what it runs; ``end`` its
    connection; on any thread."""

    process: int
    address: str | None
    port: int | None
    cancel: Callable[[], None]
    end: Callable[[], None]
    encrypted: bool = False


class TransactionSeen(Protocol):
    """What is seen of a transaction from outside."""

    failed: bool
    implicit: bool
    now_us: int


class _Said(NamedTuple):
    """The last request, and whether it is under way.  Times: µs since 1970."""

    query: str
    query_start_us: int | None
    state_change_us: int
    active: bool


class Activity:
    """One session.  ``asked`` and ``answered`` by whoever serves it; the rest from any thread.

    ``user``: the role that it was opened for.  ``transaction``: its open one.  ``application``: its setting.
    """

    def __init__(
        self,
        user: str,
        transaction: Callable[[], TransactionSeen | None],
        application: Callable[[], str],
        client: Client,
    ) -> None:
        self.user = user
        self.client = client  # replaced as a whole, once
        self.started_us = _now_us()
        self._transaction = transaction
        self._application = application
        #: replaced as a whole by whoever serves the session
        self._said = _Said("", None, self.started_us, active=False)

    # -- by whoever serves the session ------------------------------------------------------------------------------

    def asked(self, text: str) -> None:
        """A request has come."""
        now = _now_us()
        self._said = _Said(text if len(text) <= _SURELY_SHORT else _cut(text), now, now, active=True)

    def answered(self) -> None:
        """It has been answered, and the next one is waited for."""
        said = self._said
        if said.active:
            self._said = _Said(said.query, said.query_start_us, _now_us(), active=False)

    def did(self, text: str) -> None:
        """A request was answered at once."""
        now = _now_us()
        self._said = _Said(text if len(text) <= _SURELY_SHORT else _cut(text), now, now, active=False)

    @contextmanager
    def request(self, text: str) -> Iterator[None]:
        """While a call of the program runs; what is called inside of it is part of it."""
        if self._said.active:
            yield
            return
        self.asked(text if isinstance(text, str) else "")  # which is refused where it is read
        try:
            yield
        finally:
            self.answered()

    # -- for others -----------------------------------------------------------------------------------------------

    def number(self) -> int:
        return self.client.process

    def seen(self) -> ActivitySeen:
        """As it is now."""
        said, transaction = self._said, self._transaction()
        began = None if transaction is None else transaction.now_us or said.query_start_us
        if said.active:
            state = "active"
        elif transaction is None or transaction.implicit:
            state, began = "idle", None
        elif transaction.failed:
            state, began = "idle in transaction (aborted)", None
        else:
            state = "idle in transaction"
        return ActivitySeen(
            self.client.process,
            self.user,
            self._application(),
            self.client.address,
            self.client.port,
            self.started_us,
            said.query_start_us if began is None and said.active else began,
            said.query_start_us,
            said.state_change_us,
            state,
            _HIDDEN if _SECRET.search(said.query) else said.query,
            self.client.encrypted,
        )


class ActivitySeen(NamedTuple):
    """Times: µs since 1970."""

    process: int
    user: str
    application: str
    address: str | None
    port: int | None
    started_us: int
    transaction_us: int | None
    query_us: int | None
    state_change_us: int
    state: str
    query: str
    encrypted: bool


class SessionList:
    """Any thread.  A session that nobody has any more is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[Activity] = weakref.WeakSet()  # guarded by _lock

    def enter(
        self,
        user: str,
        transaction: Callable[[], TransactionSeen | None],
        setting: Callable[[str], str],
        cancel: Callable[[], None],
    ) -> Activity:
        """A session of the program's; one of a client says so by its ``client``."""
        client = Client(next_process(), None, None, cancel, _end_of_the_program)
        activity = Activity(user, transaction, lambda: setting("application_name"), client)
        with self._lock:
            self._sessions.add(activity)
        return activity

    def leave(self, activity: Activity) -> None:
        with self._lock:
            self._sessions.discard(activity)

    def all(self) -> list[Activity]:
        """By process number."""
        with self._lock:
            found = list(self._sessions)
        return sorted(found, key=lambda activity: activity.number())

    def of(self, process: int) -> Activity | None:
        return next((activity for activity in self.all() if activity.number() == process), None)

    def seen(self) -> tuple[ActivitySeen, ...]:
        return tuple(activity.seen() for activity in self.all())


def _end_of_the_program() -> None:
    raise unsupported(
        "pg_terminate_backend of a session that the program itself has opened",
        hint="pg_cancel_backend ends what it runs.",
    )


def _cut(text: str) -> str:
    """As much of it as others are shown."""
    data = text[: _MOST_BYTES + 1].encode(errors="replace")
    return data[:_MOST_BYTES].decode(errors="ignore")
