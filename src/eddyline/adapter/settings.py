"""Session settings: names, values, what each accepts (SET, SHOW, RESET).

Every setting that can be set is obeyed; a value that could not be is refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from eddyline.adapter.memory_size import bytes_of
from eddyline.adapter.setting_values import duration_s, free, isolation, quoted_name, shown_name
from eddyline.adapter.switch import on_or_off
from eddyline.adapter.system_settings import (
    MAX_RESULT_SIZE,
    QUERY_MAX_MEMORY,
    SESSION_DEFAULTS,
    SYNCHRONOUS_COMMIT,
    SystemSettings,
)
from eddyline.errors import make_error
from eddyline.protocol.read_costs import ReadBounds
from eddyline.sql.catalog_view import DEFAULT_CLUSTER, ShownSetting, unknown_cluster

__all__ = [
    "CLUSTER",
    "Settings",
    "SettingsState",
    "check_cluster",
    "checked_value",
    "setting_key",
]

CLUSTER = "cluster"
_PATH_PART = re.compile(r'"((?:[^"]|"")*)"|([^,\s"]+)')
#: what a transaction calls its own value and what new ones begin with are one setting outside of transactions
_SAME_SETTING = {
    "default_transaction_isolation": "transaction_isolation",
    "transaction_read_only": "default_transaction_read_only",
}


@dataclass(frozen=True, slots=True)
class _Setting:
    default: str
    check: Callable[[str, str], str] | None  # None: can be shown, not set
    inherited: str | None = None  # the database's setting whose value is the default, whatever that is at the time


_SETTINGS = {
    CLUSTER: _Setting(DEFAULT_CLUSTER, free),
    "in_hot_standby": _Setting("off", None),
    "integer_datetimes": _Setting("on", None),
    "is_superuser": _Setting("", None),
    "max_identifier_length": _Setting("63", None),
    "role": _Setting("none", free),
    "server_encoding": _Setting("UTF8", None),
    "server_version": _Setting("15.0", None),
    "server_version_num": _Setting("150000", None),
    "session_authorization": _Setting("postgres", free),
    "transaction_isolation": _Setting("", isolation, inherited="default_transaction_isolation"),
    "transaction_read_only": _Setting("", on_or_off, inherited="default_transaction_read_only"),
    **{name: _Setting("", default.check, inherited=name) for name, default in SESSION_DEFAULTS.items()},
}


@dataclass(frozen=True, slots=True)
class SettingsState:
    """All values that were set: for the session, and over them, until the transaction ends, those of SET LOCAL."""

    session: Mapping[str, str] = field(default_factory=dict)
    local: Mapping[str, str] = field(default_factory=dict)


class InForce(NamedTuple):
    """The settings that every statement asks for, as values.  Timeouts: None is none; ``zone``: None is UTC.

    ``users``: the names of the current user and of the session's.  ``cluster``: a name."""

    isolation: str
    read_only: bool
    statement_timeout_s: float | None
    lock_timeout_s: float | None
    search_path: tuple[str, ...]
    zone: str | None
    read_bounds: ReadBounds
    synchronous: bool
    users: tuple[str, str] = ("postgres", "postgres")
    cluster: str = DEFAULT_CLUSTER


class Settings:
    """One session's settings.  Owner: the session's running statement.  ``system``: where some are inherited from.

    ``login``: values that it begins with, by ``setting_key``.
    ``user``: whose session it is.  ``is_superuser``: whether the role of that name is one.  ``clusters``: the names
    that there are.

    ``state`` is replaced, never changed, so that a transaction or a savepoint keeps one to go back to.
    """

    def __init__(
        self,
        system: SystemSettings,
        user: str,
        is_superuser: Callable[[str], bool],
        clusters: Callable[[], Collection[str]],
        login: Mapping[str, str] | None = None,
    ) -> None:
        self.login: Mapping[str, str] = login or {}
        self._system = system
        self._user = user
        self._is_superuser = is_superuser
        self._clusters = clusters
        self.state = SettingsState()
        #: what was in force, with the state and the version of the system's settings that it was made from
        self._in_force: tuple[SettingsState, int, InForce] | None = None

    @property
    def in_force(self) -> InForce:
        """O(1) while nothing is set."""
        version = self._system.version
        if self._in_force is None or self._in_force[0] is not self.state or self._in_force[1] != version:
            values = InForce(
                isolation=self.get("transaction_isolation"),
                read_only=self.get("default_transaction_read_only") == "on",
                statement_timeout_s=duration_s(self.get("statement_timeout")),
                lock_timeout_s=duration_s(self.get("lock_timeout")),
                search_path=_path_of(self.get("search_path")),
                zone=None if self.get("timezone") == "UTC" else self.get("timezone"),
                read_bounds=ReadBounds(result=self.bytes(MAX_RESULT_SIZE), memory=self.bytes(QUERY_MAX_MEMORY)),
                synchronous=self.get(SYNCHRONOUS_COMMIT) == "on",
                users=self._users(),
                cluster=self.get(CLUSTER),
            )
            self._in_force = (self.state, version, values)
        return self._in_force[2]

    def _users(self) -> tuple[str, str]:
        session, role = self.get("session_authorization"), self.get("role")
        return (session if role == "none" else role), session

    def begin_with(self, name: str, value: str) -> None:
        """What is in force where nothing is set.  42704, 55P02, 22023."""
        checked = checked_value(name, (value,), verbatim=True)
        check_cluster(name, checked, self._clusters)
        self.login = {**self.login, setting_key(name): checked}
        self._in_force = None

    def get(self, name: str) -> str:
        """The value in force; 42704 for an unknown name."""
        setting = _known(name)
        key = setting_key(name)
        value = self.state.local.get(key, self.state.session.get(key))
        return self._default(key, setting) if value is None else value

    def _default(self, name: str, setting: _Setting) -> str:
        given = self.login.get(setting_key(name))
        if given is not None:
            return given
        if name == "session_authorization":
            return self._user
        if name == "is_superuser":
            return "on" if self._is_superuser(self._users()[0]) else "off"
        return setting.default if setting.inherited is None else self._system.show(setting.inherited)

    def set(self, name: str, values: tuple[str, ...] | None, *, local: bool) -> None:
        """SET; ``values`` None is DEFAULT.  Raises 42704, 55P02 (can't be changed) or 22023."""
        key, value = setting_key(name), self.checked(name, values)
        session, others = self.state.session, {k: v for k, v in self.state.local.items() if k != key}
        if values is None and _SETTINGS[key].inherited is not None and key not in self.login and not local:
            self.state = SettingsState({k: v for k, v in session.items() if k != key}, others)
        elif local:
            self.state = SettingsState(session, {**others, key: value})
        else:
            self.state = SettingsState({**session, key: value}, others)

    def checked(self, name: str, values: tuple[str, ...] | None) -> str:
        """What SET would store; raises what it would raise."""
        value = checked_value(name, values)
        if value is None:
            return self._default(name.lower(), _known(name))
        check_cluster(name, value, self._clusters)
        return value

    def reset(self, name: str | None) -> None:
        """RESET; None is ALL, which leaves alone who it is."""
        if name is None:
            kept = {n: v for n, v in self.state.session.items() if n in ("role", "session_authorization")}
            self.state = SettingsState(kept)
        else:
            self.set(name, None, local=False)

    def end_transaction(self) -> None:
        """Forgets SET LOCAL values."""
        if self.state.local:
            self.state = SettingsState(self.state.session)

    def shown(self) -> tuple[ShownSetting, ...]:
        """All settings, the database's too, ordered by name."""
        own = (self._shown(name, setting) for name, setting in _SETTINGS.items())
        others = (setting for setting in self._system.shown() if setting.name not in _SETTINGS)
        return tuple(sorted((*own, *others), key=lambda setting: setting.name.lower()))

    def _shown(self, name: str, setting: _Setting) -> ShownSetting:
        key, reset, of_system = setting_key(name), self._default(name, setting), setting.inherited is not None
        boot = self._system.built_in(name) if name in self._system else setting.default or reset
        if key in self.state.session or key in self.state.local:
            source = "session"
        elif key in self.login:
            source = "client"
        else:
            source = "configuration file" if of_system and reset != boot else "default"
        context = "internal" if setting.check is None else "user"
        unit = self._system.unit(name) if name in self._system else None
        return ShownSetting(shown_name(name), self.get(name), unit, boot, reset, context, source)

    def __contains__(self, name: str) -> bool:
        return name.lower() in _SETTINGS

    def bytes(self, name: str) -> int | None:
        """An amount of memory; None where it is 0 (no bound)."""
        return bytes_of(self.get(name))


def check_cluster(name: str, value: str, clusters: Callable[[], Collection[str]]) -> None:
    """42704 if that is the setting ``cluster``, with a name that is none of ``clusters``."""
    if name.lower() == CLUSTER and value not in (known := clusters()):
        raise unknown_cluster(value, known)


def setting_key(name: str) -> str:
    """By what a setting goes whichever of its names is used."""
    lower = name.lower()
    return _SAME_SETTING.get(lower, lower)


def _known(name: str) -> _Setting:
    setting = _SETTINGS.get(name.lower())
    if setting is None:
        raise make_error("42704", f'unrecognized configuration parameter "{name}"')
    return setting


@overload
def checked_value(name: str, values: tuple[str, ...], *, verbatim: bool = False) -> str: ...
@overload
def checked_value(name: str, values: None) -> None: ...
@overload
def checked_value(name: str, values: tuple[str, ...] | None) -> str | None: ...
def checked_value(name: str, values: tuple[str, ...] | None, *, verbatim: bool = False) -> str | None:
    """What of a session's setting is stored; None for its default.  42704, 55P02, 22023.

    ``verbatim``: the value is as it is stored and shown, names in it quoted where they must be.
    """
    setting, key = _known(name), name.lower()
    if setting.check is None:
        raise make_error("55P02", f'parameter "{name}" cannot be changed')
    if values is None:
        return None
    parts = map(quoted_name, values) if key == "search_path" and not verbatim else values
    return setting.check(key, ", ".join(parts))


@functools.lru_cache(maxsize=64)
def _path_of(text: str) -> tuple[str, ...]:
    names = (m[2] if m[1] is None else m[1].replace('""', '"') for m in _PATH_PART.finditer(text))
    return tuple(name for name in names if name != "$user")
