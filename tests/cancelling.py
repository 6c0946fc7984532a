"""Cancels what a connection does, whenever that begins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import eddyline

__all__ = ["cancelling"]


@contextmanager
def cancelling(db: eddyline.Connection) -> Iterator[None]:
    """Again and again within the block, since what comes before a statement has begun is for nothing."""
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.05):
            db.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
