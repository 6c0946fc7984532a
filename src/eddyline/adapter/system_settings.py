"""Settings of the whole database (ALTER SYSTEM SET and RESET, SHOW): its dynamic configuration.

``enable_compute_interactive_dataflows``: whether reads are rendered as such, looked at for each dataflow.
``enable_compute_interactive_runtime``: whether a replica gets an interactive runtime, looked at when it is made:
an override stored for one replica wins, and one that cannot be read falls back to the value here, not to the default.
``enable_gil_sampling``: whether a thread of each process measures how long the interpreter lock is held.
``fsync``, ``synchronous_commit``: when commits of a database in a directory are safe; sessions begin with the second.
``SESSION_DEFAULTS``: what settings of sessions are where nobody has set them, neither SET nor for a role or database.
``max_view_lag``: how far views may be behind their tables before writers wait, see ``controller.lag``.
``server_memory_limit``: bytes of this process past which statements are refused or stopped, see ``memory_guard``.
The process settings: see ``process_parameters``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eddyline.adapter.memory_size import memory_size
from eddyline.adapter.memory_use import can_be_watched
from eddyline.adapter.process_parameters import PROCESS_SETTINGS
from eddyline.adapter.setting_values import (
    STRICT_SERIALIZABLE,
    duration,
    encoding,
    float_digits,
    free,
    isolation,
    only,
    zone,
)
from eddyline.adapter.switch import on_or_off
from eddyline.errors import DatabaseError, make_error, unsupported
from eddyline.sql.catalog_view import ShownSetting

__all__ = [
    "FSYNC",
    "GIL_SAMPLING",
    "INTERACTIVE_DATAFLOWS",
    "INTERACTIVE_RUNTIME",
    "MAX_RESULT_SIZE",
    "MAX_SUBSCRIPTION_BACKLOG",
    "MAX_VIEW_LAG",
    "QUERY_MAX_MEMORY",
    "SERVER_MEMORY_LIMIT",
    "SESSION_DEFAULTS",
    "SYNCHRONOUS_COMMIT",
    "SystemSettings",
    "synchronous",
]

_log = logging.getLogger("eddyline.engine")
INTERACTIVE_DATAFLOWS = "enable_compute_interactive_dataflows"
INTERACTIVE_RUNTIME = "enable_compute_interactive_runtime"
GIL_SAMPLING = "enable_gil_sampling"
FSYNC = "fsync"
SYNCHRONOUS_COMMIT = "synchronous_commit"
MAX_RESULT_SIZE = "max_result_size"
QUERY_MAX_MEMORY = "query_max_memory"
MAX_SUBSCRIPTION_BACKLOG = "max_subscription_backlog"
MAX_VIEW_LAG = "max_view_lag"
SERVER_MEMORY_LIMIT = "server_memory_limit"


def synchronous(name: str, text: str) -> str:
    """PostgreSQL's other levels are about standby servers: without one they are its "on"."""
    if text.strip().lower() in ("local", "remote_write", "remote_apply"):
        return "on"
    return on_or_off(name, text)


def _watched_size(name: str, text: str) -> str:
    """0A000 where nobody can say how much memory is in use."""
    size = memory_size(name, text)
    if size != "0" and not can_be_watched():
        raise unsupported(name, hint="Only Linux says how much memory of a process is in use.")
    return size


@dataclass(frozen=True, slots=True)
class _Setting:
    """``check`` gives a value's shortest text, or raises 22023."""

    default: str
    check: Callable[[str, str], str]


SESSION_DEFAULTS = {
    "application_name": _Setting("", free),
    "client_encoding": _Setting("UTF8", encoding),
    "client_min_messages": _Setting("notice", free),
    "datestyle": _Setting("ISO, MDY", only("ISO, MDY", "ISO")),
    "default_transaction_isolation": _Setting(STRICT_SERIALIZABLE, isolation),
    "default_transaction_read_only": _Setting("off", on_or_off),
    "extra_float_digits": _Setting("1", float_digits),
    "idle_in_transaction_session_timeout": _Setting("0", duration),
    "idle_session_timeout": _Setting("0", duration),
    "intervalstyle": _Setting("postgres", only("postgres")),
    "jit": _Setting("off", only("off", "false", "no", "0")),
    "lock_timeout": _Setting("0", duration),
    MAX_RESULT_SIZE: _Setting("1GB", memory_size),
    MAX_SUBSCRIPTION_BACKLOG: _Setting("256MB", memory_size),
    QUERY_MAX_MEMORY: _Setting("0", memory_size),
    "search_path": _Setting("public", free),
    "standard_conforming_strings": _Setting("on", only("on")),
    "statement_timeout": _Setting("0", duration),
    SYNCHRONOUS_COMMIT: _Setting("on", synchronous),
    "timezone": _Setting("UTC", zone),
}
_SETTINGS = {
    **SESSION_DEFAULTS,
    INTERACTIVE_DATAFLOWS: _Setting("on", on_or_off),
    INTERACTIVE_RUNTIME: _Setting("off", on_or_off),
    GIL_SAMPLING: _Setting("off", on_or_off),
    MAX_VIEW_LAG: _Setting("1s", duration),
    SERVER_MEMORY_LIMIT: _Setting("0", _watched_size),
    FSYNC: _Setting("on", on_or_off),
    **{name: _Setting(setting.default, setting.check) for name, setting in PROCESS_SETTINGS.items()},
}

_UNITS: Mapping[Callable[[str, str], str], str] = {duration: "ms", memory_size: "B", _watched_size: "B"}


class SystemSettings:
    """Any thread.  ``defaults``: where this database differs from what is built in; checked like any value."""

    def __init__(self, defaults: Mapping[str, str] | None = None) -> None:
        self._lock = threading.Lock()
        self._defaults = {name: self.checked(name, value) for name, value in (defaults or {}).items()}
        self._values: dict[str, str] = {}  # guarded by _lock
        self._version = 0  # guarded by _lock

    def __contains__(self, name: str) -> bool:
        return name in _SETTINGS

    def enabled(self, name: str) -> bool:
        return self.show(name) == "on"

    @property
    def version(self) -> int:
        """Another number after each change."""
        with self._lock:
            return self._version

    def show(self, name: str) -> str:
        with self._lock:
            return self._values.get(name, self._defaults.get(name, _SETTINGS[name].default))

    def of_processes(self, name: str) -> str:
        """As ``show``, for a replica with processes of its own, whatever differs in this one."""
        with self._lock:
            return self._values.get(name, _SETTINGS[name].default)

    def checked(self, name: str, value: str) -> str:
        """The value's shortest text.  42704 for an unknown name, 22023 for a value that is none of its."""
        setting = _SETTINGS.get(name)
        if setting is None:
            raise make_error("42704", f'unrecognized configuration parameter "{name}"')
        return setting.check(name, value)

    def readable(self, name: str, override: str | None) -> str | None:
        """The value that is stored for one replica; None if there is none, or none that can be read."""
        if override is not None:
            try:
                return self.checked(name, override)
            except DatabaseError as error:
                _log.warning("an override of the replica is not obeyed: %s", error.message)
        return None

    def built_in(self, name: str) -> str:
        return _SETTINGS[name].default

    def unit(self, name: str) -> str | None:
        """Of a duration or an amount of memory: ms, B."""
        return _UNITS.get(_SETTINGS[name].check)

    def shown(self) -> tuple[ShownSetting, ...]:
        """All of them as they are for whoever has set nothing."""
        shown = []
        for name in sorted(_SETTINGS):
            boot, value = self.built_in(name), self.show(name)
            source = "default" if value == boot else "configuration file"
            shown.append(ShownSetting(name, value, self.unit(name), boot, value, "sighup", source))
        return tuple(shown)

    def set(self, name: str, values: tuple[str, ...] | None) -> None:
        """``values`` None: the default.  42704 for an unknown name, 22023 for a value that is none of its."""
        if name not in _SETTINGS:
            raise make_error("42704", f'unrecognized configuration parameter "{name}"')
        value = None if values is None else self.checked(name, ", ".join(values))
        with self._lock:
            if value is None:
                self._values.pop(name, None)
            else:
                self._values[name] = value
            self._version += 1

    def after(self, found: Mapping[str, str], name: str | None, values: tuple[str, ...] | None) -> dict[str, str]:
        """What becomes of the values ``found`` by ``set``, or ``reset`` if None.  Raises what they would raise."""
        if values is not None:
            assert name is not None
            return {**found, name: self.checked(name, ", ".join(values))}
        if name is None:
            return {}
        if name not in _SETTINGS:
            raise make_error("42704", f'unrecognized configuration parameter "{name}"')
        return {other: value for other, value in found.items() if other != name}

    def reset(self, name: str | None) -> None:
        for each in _SETTINGS if name is None else (name,):
            self.set(each, None)
