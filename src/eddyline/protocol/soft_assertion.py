"""Soft assertions: something that must not happen did, and the system can go on.

It is logged as an error and counted; a test makes it raise, or records it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["handled_by", "soft_assert", "soft_assertions"]

_log = logging.getLogger("eddyline.soft_assertion")
_lock = threading.Lock()
_count = 0  # guarded by _lock
_handler: Callable[[str], None] | None = None


def soft_assert(condition: bool, message: str, **context: object) -> bool:
    """``condition``; if it is false, that has been logged with ``context`` and counted."""
    global _count  # noqa: PLW0603 - a metric of the process
    if condition:
        return True
    with _lock:
        _count += 1
    detail = ", ".join(f"{name}={value!r}" for name, value in context.items())
    text = f"{message} ({detail})" if detail else message
    _log.error("%s", text)
    if _handler is not None:
        _handler(text)
    return False


def soft_assertions() -> int:
    """How many failed in this process so far."""
    with _lock:
        return _count


@contextmanager
def handled_by(handler: Callable[[str], None]) -> Iterator[None]:
    """While it is open, ``handler`` gets each failure's text on the thread where it happened, and may raise."""
    global _handler  # noqa: PLW0603 - set by tests, one at a time
    before, _handler = _handler, handler
    try:
        yield
    finally:
        _handler = before
