"""Process-wide settings that open databases share, reference-counted: thread switches and garbage collection.

Both are about a thread that wants to run for a moment, such as a lookup, while others work.
"""

from __future__ import annotations

import gc
import sys
import threading

__all__ = ["ProcessSettings"]

#: With the interpreter's default of 5 ms, a lookup may wait that long for a thread that computes in Python.
_SWITCH_SECONDS = 0.0005


class _Settings:
    """What was found and is to be restored.  All fields are guarded by ``lock``."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.switch_seconds = 0.005
        self.collected = False
        self.frozen = False

    def apply(self) -> None:
        self.switch_seconds = sys.getswitchinterval()
        sys.setswitchinterval(min(self.switch_seconds, _SWITCH_SECONDS))
        # A full collection holds the GIL while it visits every object: 70 ms for the imported modules alone.  What is
        # alive now is set aside.  A process that has set objects aside by itself is left alone.
        self.frozen = gc.get_freeze_count() == 0
        if self.frozen:
            if not self.collected:
                self.collected = True
                gc.collect()
            gc.freeze()

    def restore(self) -> None:
        sys.setswitchinterval(self.switch_seconds)
        if self.frozen:
            gc.unfreeze()


_settings = _Settings()


class ProcessSettings:
    """One database's share of the settings; the last ``release`` restores what was found."""

    def __init__(self) -> None:
        self._released = False

    @staticmethod
    def acquire() -> ProcessSettings:
        with _settings.lock:
            if _settings.users == 0:
                _settings.apply()
            _settings.users += 1
        return ProcessSettings()

    def release(self) -> None:
        with _settings.lock:
            if self._released:
                return
            self._released = True
            _settings.users -= 1
            if _settings.users == 0:
                _settings.restore()
