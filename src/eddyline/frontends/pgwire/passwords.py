"""By which passwords clients may come in: those of the database's roles, and those that the server was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eddyline.adapter.admission import login_verifier
from eddyline.adapter.engine import Engine
from eddyline.sql.password_verifier import Verifier

__all__ = ["Passwords"]


@dataclass(frozen=True, slots=True)
class Passwords:
    """``known``: the verifier of who may connect, None of anybody else; quick, on any thread.

    ``secret``: of this server, for users that there are not.
    """

    known: Callable[[str], Verifier | None]
    secret: bytes = field(repr=False)

    def of(self, user: str) -> Verifier:
        """What the user's password is checked with; one that none fits for somebody unknown."""
        return self.known(user) or Verifier.of_nobody(user, self.secret)

    def with_roles(self, engine: Callable[[], Engine]) -> Passwords:
        """With those of the roles of the database that ``engine`` gives, which come before these."""
        return replace(self, known=lambda user: login_verifier(engine(), user, self.known(user)))
