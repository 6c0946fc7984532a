"""What the log and the metrics are told of one connection's requests, and of a client that is not let in.

A record has the connection's number, the user and the database as the client gave them, and of a request a number that
no other one of the connection has.  Texts and values of statements are no part of it: they may be secret.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eddyline.errors import Error

__all__ = ["Caller", "RequestLog", "log_end"]

_log = logging.getLogger("eddyline.pgwire")
#: what there is to say about the end of a connection that the server itself ends: nothing, for all of them
_SERVER_ENDS: Final = "57P01"
_NOT_ADMITTED: Final = "28"


@dataclass(frozen=True, slots=True)
class Caller:
    """``process``: the connection's number, 0 before it has one.  What is not known is empty."""

    process: int = 0
    user: str = ""
    database: str = ""
    address: str = ""

    @property
    def told(self) -> dict[str, object]:
        fields = {"process": self.process, "user": self.user, "database": self.database, "address": self.address}
        return {name: value for name, value in fields.items() if value}


class RequestLog:
    """``count``: counts a failed request in the database's metrics.  Owner: whoever advances the conversation."""

    def __init__(self, caller: Caller, count: Callable[[Error], None]) -> None:
        self._caller = caller
        self._count = count
        self._number = 0
        self._counted = False  # by the engine, which counts what it runs

    def begin(self) -> None:
        """The next message, or the next statement of one."""
        self._number += 1
        self._counted = False

    def runs(self) -> None:
        """From here on it is the engine that counts whether the request succeeds."""
        self._counted = True

    def failed(self, error: Error) -> None:
        if not self._counted:
            self._count(error)
            self._counted = True
        told = {
            **self._caller.told,
            "statement": f"{self._caller.process}.{self._number}",
            "sqlstate": error.sqlstate,
        }
        _log.log(_level_of(error), "%s", error.message, extra={"told": told})


def log_end(caller: Caller, error: Error, *, admitted: bool, reason: str = "") -> None:
    """The connection ends with ``error``; ``admitted``: after its client was let in.

    ``reason``: what the client is not told.
    """
    if error.sqlstate == _SERVER_ENDS:
        return
    level = logging.WARNING if error.sqlstate.startswith(_NOT_ADMITTED) else _level_of(error)
    what = "connection ended" if admitted else "connection refused"
    told = {**caller.told, "sqlstate": error.sqlstate, **({"reason": reason} if reason else {})}
    _log.log(level, "%s: %s", what, error.message, extra={"told": told})


def _level_of(error: Error) -> int:
    """What is ours is an error; what clients do wrong is theirs to know."""
    return logging.ERROR if error.sqlstate.startswith(("XX", "58")) else logging.INFO
