"""The settings that a client's startup packet asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from eddyline.errors import make_error

__all__ = ["startup_settings", "unknown_options"]

#: of the packet itself
_NO_SETTINGS: Final = ("user", "database", "options", "replication")
#: options of the protocol, which later minor versions define
_PROTOCOL_OPTION: Final = "_pq_."
_WORD: Final = re.compile(r"(?:[^\s\\]|\\.)+", re.DOTALL)


def startup_settings(parameters: Mapping[str, str]) -> dict[str, str]:
    """What the packet's parameters, and the command-line options among them, set; 22023 for other options."""
    values = _options(parameters.get("options", ""))
    for name, value in parameters.items():
        if name not in _NO_SETTINGS and not name.startswith(_PROTOCOL_OPTION):
            values[name.lower()] = value
    return values


def unknown_options(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Of the protocol, which there are none of."""
    return tuple(name for name in parameters if name.startswith(_PROTOCOL_OPTION))


def _options(text: str) -> dict[str, str]:
    """``-c name=value`` and ``--name=value``, blanks and backslashes escaped by backslashes."""
    words = [re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) for word in _WORD.findall(text)]
    values: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word == "-c":
            pair = next(rest, "")
        elif word.startswith(("-c", "--")):
            pair = word[2:]
        else:
            raise make_error("22023", f'invalid command-line argument for server process: "{word}"')
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise make_error("22023", f'invalid command-line argument for server process: "{word}"')
        values[name.lower().replace("-", "_")] = value
    return values
