"""Process-wide settings that open databases share: the thread switch interval, reference-counted."""

from __future__ import annotations

import sys
import threading

__all__ = ["ProcessSettings"]

#: With the interpreter's default of 5 ms, a lookup may wait that long for a thread that computes in Python.
_SWITCH_SECONDS = 0.0005

_lock = threading.Lock()
_users = 0
_before = 0.005


class ProcessSettings:
    """One database's share of the settings; the last ``release`` restores what was found."""

    def __init__(self) -> None:
        self._released = False

    @staticmethod
    def acquire() -> ProcessSettings:
        global _users, _before  # noqa: PLW0603 - the setting itself is global to the process
        with _lock:
            if _users == 0:
                _before = sys.getswitchinterval()
                sys.setswitchinterval(min(_before, _SWITCH_SECONDS))
            _users += 1
        return ProcessSettings()

    def release(self) -> None:
        global _users  # noqa: PLW0603 - as above
        with _lock:
            if self._released:
                return
            self._released = True
            _users -= 1
            if _users == 0:
                sys.setswitchinterval(_before)
