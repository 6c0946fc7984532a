"""Session settings: names, values, what each accepts (SET, SHOW, RESET).

Every setting that can be set is obeyed; a value that could not be is refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from eddyline.adapter.memory_size import bytes_of, memory_size
from eddyline.adapter.switch import on_or_off
from eddyline.adapter.system_settings import (
    MAX_RESULT_SIZE,
    MAX_SUBSCRIPTION_BACKLOG,
    QUERY_MAX_MEMORY,
    SYNCHRONOUS_COMMIT,
    SystemSettings,
    synchronous,
)
from eddyline.errors import make_error, unsupported
from eddyline.expr.timezone import named_zone
from eddyline.protocol.read_costs import ReadBounds
from eddyline.sql.catalog_view import DEFAULT_CLUSTER, unknown_cluster

__all__ = [
    "CLUSTER",
    "SERIALIZABLE",
    "STRICT_SERIALIZABLE",
    "Settings",
    "SettingsState",
    "check_cluster",
    "checked_value",
    "duration_s",
    "isolation_level",
    "setting_key",
]

CLUSTER = "cluster"
STRICT_SERIALIZABLE = "strict serializable"
SERIALIZABLE = "serializable"

#: PostgreSQL's weaker levels promise less than ours, so asking for them gives the default.
_LEVELS = {
    "strict serializable": STRICT_SERIALIZABLE,
    "serializable": SERIALIZABLE,
    "repeatable read": STRICT_SERIALIZABLE,
    "read committed": STRICT_SERIALIZABLE,
    "read uncommitted": STRICT_SERIALIZABLE,
}
_UTC_NAMES = frozenset(("utc", "etc/utc", "gmt", "etc/gmt", "zulu", "etc/zulu", "uct", "etc/uct", "universal"))
_PATH_PART = re.compile(r'"((?:[^"]|"")*)"|([^,\s"]+)')
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
#: what a transaction calls its own value and what new ones begin with are one setting outside of transactions
_SAME_SETTING = {
    "default_transaction_isolation": "transaction_isolation",
    "transaction_read_only": "default_transaction_read_only",
}
_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}


def isolation_level(text: str) -> str:
    """The level that ``text`` names; 22023 for anything else."""
    level = _LEVELS.get(text.strip().lower().replace("_", " "))
    if level is None:
        raise _invalid("transaction_isolation", text, "Use 'strict serializable' or 'serializable'.")
    return level


def _invalid(name: str, value: str, hint: str | None = None) -> Exception:
    return make_error("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)


def _duration(name: str, text: str) -> str:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*", text)
    if match is None:
        raise _invalid(name, text, 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".')
    milliseconds = float(match[1]) * _UNITS_MS[match[2] or "ms"]
    return _show_duration(round(milliseconds))


def _show_duration(milliseconds: int) -> str:
    if milliseconds == 0:
        return "0"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _only(*accepted: str) -> Callable[[str, str], str]:
    def check(name: str, text: str) -> str:
        for value in accepted:
            if text.strip().lower() == value.lower():
                return accepted[0]
        raise _invalid(name, text, f"Only {accepted[0]} is supported.")

    return check


def _encoding(name: str, text: str) -> str:
    """Names of encodings are known by their letters and digits alone."""
    if re.sub(r"[^a-z0-9]", "", text.lower()) not in ("utf8", "unicode"):
        raise _invalid(name, text, "Only UTF8 is supported.")
    return "UTF8"


def _zone(name: str, text: str) -> str:
    zone = named_zone(text.strip())
    if zone is None:
        raise _invalid(name, text)
    return "UTC" if zone.name.lower() in _UTC_NAMES else zone.name


def _free(name: str, text: str) -> str:
    return text


def _isolation(name: str, text: str) -> str:
    return isolation_level(text)


def _float_digits(name: str, text: str) -> str:
    """Past 0 PostgreSQL shows the shortest digits that read back as the same value, as we always do."""
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise _invalid(name, text)
    digits = int(text)
    if not -15 <= digits <= 3:
        raise make_error("22023", f'{digits} is outside the valid range for parameter "{name}" (-15 .. 3)')
    if digits < 1:
        raise unsupported(f"{name} below 1")
    return str(digits)


@dataclass(frozen=True, slots=True)
class _Setting:
    default: str
    check: Callable[[str, str], str] | None  # None: can be shown, not set
    inherited: bool = False  # the default is the database's value, whatever that is at the time


_SETTINGS = {
    "application_name": _Setting("", _free),
    "client_encoding": _Setting("UTF8", _encoding),
    "client_min_messages": _Setting("notice", _free),
    CLUSTER: _Setting(DEFAULT_CLUSTER, _free),
    "datestyle": _Setting("ISO, MDY", _only("ISO, MDY", "ISO")),
    "default_transaction_isolation": _Setting(STRICT_SERIALIZABLE, _isolation),
    "default_transaction_read_only": _Setting("off", on_or_off),
    "extra_float_digits": _Setting("1", _float_digits),
    "idle_in_transaction_session_timeout": _Setting("0", _duration),
    "idle_session_timeout": _Setting("0", _duration),
    "in_hot_standby": _Setting("off", None),
    "integer_datetimes": _Setting("on", None),
    "intervalstyle": _Setting("postgres", _only("postgres")),
    "is_superuser": _Setting("", None),
    "lock_timeout": _Setting("0", _duration),
    "max_identifier_length": _Setting("63", None),
    MAX_RESULT_SIZE: _Setting("", memory_size, inherited=True),
    MAX_SUBSCRIPTION_BACKLOG: _Setting("", memory_size, inherited=True),
    QUERY_MAX_MEMORY: _Setting("", memory_size, inherited=True),
    "role": _Setting("none", _free),
    "search_path": _Setting("public", _free),
    "server_encoding": _Setting("UTF8", None),
    "server_version": _Setting("15.0", None),
    "server_version_num": _Setting("150000", None),
    "session_authorization": _Setting("postgres", _free),
    "standard_conforming_strings": _Setting("on", _only("on")),
    "statement_timeout": _Setting("0", _duration),
    SYNCHRONOUS_COMMIT: _Setting("", synchronous, inherited=True),
    "timezone": _Setting("UTC", _zone),
    "transaction_isolation": _Setting(STRICT_SERIALIZABLE, _isolation),
    "transaction_read_only": _Setting("off", on_or_off),
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
        return self._system.show(name) if setting.inherited else setting.default

    def set(self, name: str, values: tuple[str, ...] | None, *, local: bool) -> None:
        """SET; ``values`` None is DEFAULT.  Raises 42704, 55P02 (can't be changed) or 22023."""
        key, value = setting_key(name), self.checked(name, values)
        session, others = self.state.session, {k: v for k, v in self.state.local.items() if k != key}
        if values is None and _SETTINGS[key].inherited and key not in self.login and not local:
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

    def all(self) -> list[tuple[str, str]]:
        return [(name, self.get(name)) for name in sorted(_SETTINGS)]

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
    parts = map(_quoted, values) if key == "search_path" and not verbatim else values
    return setting.check(key, ", ".join(parts))


def _quoted(name: str) -> str:
    """A name as search_path shows it."""
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@functools.lru_cache(maxsize=64)
def _path_of(text: str) -> tuple[str, ...]:
    names = (m[2] if m[1] is None else m[1].replace('""', '"') for m in _PATH_PART.finditer(text))
    return tuple(name for name in names if name != "$user")


@functools.lru_cache(maxsize=64)
def duration_s(text: str) -> float | None:
    """Seconds of a duration as settings show it; None for 0."""
    match = re.fullmatch(r"(\d+)(ms|s|min|h|d)?", text)
    assert match is not None
    seconds = int(match[1]) * _UNITS_MS[match[2] or "ms"] / 1000
    return seconds or None
