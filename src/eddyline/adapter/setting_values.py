"""What values of settings are: their forms, which of them are refused, and how they are shown.

A check takes a setting's name and a text, and gives the text that is stored and shown; given that, it gives the same
again.  It raises 22023 for a value that is none, 0A000 for one that is not obeyed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from eddyline.errors import make_error, unsupported
from eddyline.expr.timezone import named_zone

__all__ = [
    "SERIALIZABLE",
    "STRICT_SERIALIZABLE",
    "duration",
    "duration_s",
    "encoding",
    "float_digits",
    "free",
    "isolation",
    "isolation_level",
    "only",
    "quoted_name",
    "shown_name",
    "zone",
]

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
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_WRITTEN = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}
_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}


def isolation_level(text: str) -> str:
    """The level that ``text`` names; 22023 for anything else."""
    level = _LEVELS.get(text.strip().lower().replace("_", " "))
    if level is None:
        raise _invalid("transaction_isolation", text, "Use 'strict serializable' or 'serializable'.")
    return level


def _invalid(name: str, value: str, hint: str | None = None) -> Exception:
    return make_error("22023", f'invalid value for parameter "{shown_name(name)}": "{value}"', hint=hint)


def shown_name(name: str) -> str:
    """A setting's name as PostgreSQL writes it: it reads any case."""
    return _WRITTEN.get(name, name)


def duration(name: str, text: str) -> str:
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


def only(*accepted: str) -> Callable[[str, str], str]:
    def check(name: str, text: str) -> str:
        for value in accepted:
            if text.strip().lower() == value.lower():
                return accepted[0]
        raise _invalid(name, text, f"Only {accepted[0]} is supported.")

    return check


def encoding(name: str, text: str) -> str:
    """Names of encodings are known by their letters and digits alone."""
    if re.sub(r"[^a-z0-9]", "", text.lower()) not in ("utf8", "unicode"):
        raise _invalid(name, text, "Only UTF8 is supported.")
    return "UTF8"


def zone(name: str, text: str) -> str:
    zone = named_zone(text.strip())
    if zone is None:
        raise _invalid(name, text)
    return "UTC" if zone.name.lower() in _UTC_NAMES else zone.name


def free(name: str, text: str) -> str:
    return text


def isolation(name: str, text: str) -> str:
    return isolation_level(text)


def float_digits(name: str, text: str) -> str:
    """Past 0 PostgreSQL shows the shortest digits that read back as the same value, as we always do."""
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise _invalid(name, text)
    digits = int(text)
    if not -15 <= digits <= 3:
        raise make_error("22023", f'{digits} is outside the valid range for parameter "{name}" (-15 .. 3)')
    if digits < 1:
        raise unsupported(f"{name} below 1")
    return str(digits)


def quoted_name(name: str) -> str:
    """A name as search_path shows it."""
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@functools.lru_cache(maxsize=64)
def duration_s(text: str) -> float | None:
    """Seconds of a duration as settings show it; None for 0."""
    match = re.fullmatch(r"(\d+)(ms|s|min|h|d)?", text)
    assert match is not None
    seconds = int(match[1]) * _UNITS_MS[match[2] or "ms"] / 1000
    return seconds or None
