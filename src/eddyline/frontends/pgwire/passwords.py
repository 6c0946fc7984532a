"""By which passwords clients may come in: those of the database's roles, and those that the server was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eddyline.adapter.admission import login_verifier, password_refusal
from eddyline.adapter.engine import Engine
from eddyline.sql.password_verifier import Verifier

__all__ = ["Passwords"]


@dataclass(frozen=True, slots=True)
class Passwords:
    """``known``: the verifier of who may connect, None of anybody else; quick, on any thread.

    ``secret``: of this server, for users that there are not.  ``database``: whose roles have passwords, if any.
    """

    known: Callable[[str], Verifier | None]
    secret: bytes = field(repr=False)
    database: Callable[[], Engine] | None = None

    def of(self, user: str) -> Verifier:
        """What the user's password is checked with; one that none fits for somebody unknown."""
        given = self.known(user)
        found = given if self.database is None else login_verifier(self.database(), user, given)
        return found or Verifier.of_nobody(user, self.secret)

    def refusal(self, user: str) -> str:
        """Why a password of the user's was not taken; for the log."""
        given = self.known(user)
        if self.database is not None:
            return password_refusal(self.database(), user, given)
        return "no such role" if given is None else "wrong password"

    def with_roles(self, engine: Callable[[], Engine]) -> Passwords:
        """With those of the roles of the database that ``engine`` gives, which come before these."""
        return replace(self, database=engine)
