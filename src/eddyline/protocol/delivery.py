"""Passing things on in order, without a lock held meanwhile, and without waiting for whoever takes them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Delivery"]

_Item = TypeVar("_Item")


class Delivery(Generic[_Item]):
    """Gives items to ``take`` one at a time, in the order of ``add``, on the threads that call ``deliver``.

    A thread that finds another one at it leaves its items to that one and returns: a slow ``take`` holds up who
    is in it, and what it delays is delivery, never ``add``.  Whoever adds under a lock of its own, which decides the
    order, calls ``deliver`` without it.  ``take`` may add and deliver: what it adds comes after it.
    An exception of ``take`` reaches the thread that is in it; the next item's turn comes with the next ``deliver``.
    Lock: ``_changed``, the innermost, held for O(1).
    """

    def __init__(self, take: Callable[[_Item], None]) -> None:
        self._take = take
        self._changed = threading.Condition()
        self._items: deque[_Item] = deque()  # guarded by _changed, like the rest
        #: the thread that is in ``take``
        self._at_it: int | None = None
        self._cleared = False

    def add(self, item: _Item) -> None:
        with self._changed:
            self._items.append(item)

    def deliver(self) -> None:
        """Everything that was added before has been taken, or another thread sees to it."""
        me = threading.get_ident()
        while True:
            with self._changed:
                if self._at_it is not None or not self._items:
                    return
                item = self._items.popleft()
                self._at_it = me
            try:
                self._take(item)
            finally:
                with self._changed:
                    self._at_it = None
                    if self._cleared:
                        self._changed.notify_all()

    def put(self, item: _Item) -> None:
        """``add``, then ``deliver``."""
        self.add(item)
        self.deliver()

    def clear(self) -> None:
        """Forgets what has not been taken, and waits until the item that is just being taken is; not for itself."""
        me = threading.get_ident()
        with self._changed:
            self._items.clear()
            self._cleared = True
            self._changed.wait_for(lambda: self._at_it is None or self._at_it == me)

    def __len__(self) -> int:
        """Items that have not been taken."""
        with self._changed:
            return len(self._items)
