"""What wakes a worker that rests, and that nothing is lost of what does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from eddyline.compute.inbox import _MOST_UNHEEDED, _MOST_UNHEEDED_ROWS, Inbox
from eddyline.protocol.sources import Committed
from tests.waiting import wait_until


def committed(*ids: str, rows: int | None = None) -> Committed:
    return Committed(frozenset(ids), [], len(ids) if rows is None else rows)


@contextmanager
def resting(inbox: Inbox, heeded: frozenset[str] | None) -> Iterator[threading.Thread]:
    """A worker that waits; the test must wake it."""
    thread = threading.Thread(target=lambda: inbox.wait(None, heeded))
    thread.start()
    try:
        wait_until(lambda: inbox._changed._waiters, "it waits")  # type: ignore[attr-defined]  # CPython's own
        yield thread
        thread.join(60)
        assert not thread.is_alive()
    finally:
        inbox.wake()


HEEDED = frozenset({"a"})


def test_a_commit_that_concerns_nobody_is_kept_for_the_next_step() -> None:
    inbox = Inbox()
    with resting(inbox, HEEDED):
        inbox.commit(committed("b"))
        assert not inbox._awake
        inbox.commit(committed("a"))
    taken = inbox.take()
    assert (taken.commits, taken.commit_rows) == ({"a", "b"}, 2)


@pytest.mark.parametrize(
    "wake",
    [
        lambda inbox: inbox.commit(committed("a", "b")),
        lambda inbox: inbox.commit(committed()),  # a time is closed
        lambda inbox: inbox.want("b"),
        lambda inbox: [inbox.commit(committed("b")) for _ in range(_MOST_UNHEEDED)],
        lambda inbox: [inbox.commit(committed("b", rows=_MOST_UNHEEDED_ROWS // 2)) for _ in range(2)],
        lambda inbox: inbox.commit(Committed(frozenset(), merges=True)),
    ],
    ids=["heeded", "closed", "wanted", "many", "large", "merges"],
)
def test_what_is_to_be_done_wakes_it(wake: Callable[[Inbox], object]) -> None:
    inbox = Inbox()
    with resting(inbox, HEEDED):
        wake(inbox)


def test_without_a_word_about_it_every_commit_wakes() -> None:
    inbox = Inbox()
    with resting(inbox, None):
        inbox.commit(committed("b"))


def test_a_commit_during_a_step_is_seen_before_the_rest() -> None:
    inbox = Inbox()
    inbox.take()
    inbox.commit(committed("b"))
    inbox.wait(None, HEEDED)
    assert inbox.take().commits == {"b"}


def test_commits_are_counted_anew_by_each_step() -> None:
    inbox = Inbox()
    for _ in range(_MOST_UNHEEDED - 1):
        inbox.commit(committed("b"))
    inbox.take()
    with resting(inbox, HEEDED):
        inbox.commit(committed("b"))
        assert not inbox._awake
        inbox.wake()
