"""Sessions of clients that come from outside: they are counted while they last."""

from __future__ import annotations

from eddyline.adapter.admission import admitted
from eddyline.adapter.engine import Engine
from eddyline.adapter.session import Session

__all__ = ["open_login"]


def open_login(engine: Engine, user: str) -> Session:
    """A session of somebody who has shown who they are, if that was asked for.

    28000, 42501 as ``admitted``; 53300 past the role's CONNECTION LIMIT.
    """
    role = admitted(engine, user)
    engine.logins.enter(role)
    return Session(engine, user, ended=lambda: engine.logins.leave(role))
