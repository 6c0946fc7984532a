"""Waiting in tests for what nobody tells them of."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["WAIT_S", "wait_until"]

T = TypeVar("T")
#: long enough on the busiest machine; whoever waits in another way waits as long
WAIT_S = 240.0


def wait_until(condition: Callable[[], T], what: str | Callable[[], object]) -> T:
    """What ``condition`` gives once that is true; it is asked every few milliseconds, for ``WAIT_S``.

    ``what`` is to be the case; a function says more of what is the case instead, once the time is up.
    """
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.005)
    return found
