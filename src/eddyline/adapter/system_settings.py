"""Settings of the whole database (ALTER SYSTEM SET and RESET, SHOW): its dynamic configuration.

``enable_compute_interactive_dataflows``: whether reads are rendered as such, looked at for each dataflow.
``enable_compute_interactive_runtime``: whether a replica gets an interactive runtime, looked at when it is made:
an override stored for one replica wins, and one that cannot be read falls back to the value here, not to the default.
"""

from __future__ import annotations

import threading

from eddyline.errors import make_error

__all__ = ["INTERACTIVE_DATAFLOWS", "INTERACTIVE_RUNTIME", "SystemSettings"]

INTERACTIVE_DATAFLOWS = "enable_compute_interactive_dataflows"
INTERACTIVE_RUNTIME = "enable_compute_interactive_runtime"

_DEFAULTS = {INTERACTIVE_DATAFLOWS: True, INTERACTIVE_RUNTIME: False}
_TEXTS = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


class SystemSettings:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, bool] = {}  # guarded by _lock

    def __contains__(self, name: str) -> bool:
        return name in _DEFAULTS

    def enabled(self, name: str, override: str | None = None) -> bool:
        """``override``: what is stored for one replica, if anything."""
        chosen = _TEXTS.get(override.strip().lower()) if override is not None else None
        if chosen is not None:
            return chosen
        with self._lock:
            return self._values.get(name, _DEFAULTS[name])

    def show(self, name: str) -> str:
        return "on" if self.enabled(name) else "off"

    def all(self) -> list[tuple[str, str]]:
        return [(name, self.show(name)) for name in sorted(_DEFAULTS)]

    def set(self, name: str, values: tuple[str, ...] | None) -> None:
        """``values`` None: the default.  42704 for an unknown name, 22023 for a value that is none of its."""
        if name not in _DEFAULTS:
            raise make_error("42704", f'unrecognized configuration parameter "{name}"')
        value = None
        if values is not None:
            value = _TEXTS.get(", ".join(values).strip().lower())
            if value is None:
                raise make_error("22023", f'parameter "{name}" requires a Boolean value')
        with self._lock:
            if value is None:
                self._values.pop(name, None)
            else:
                self._values[name] = value

    def reset(self, name: str | None) -> None:
        for each in _DEFAULTS if name is None else (name,):
            self.set(each, None)
