"""What a connection's protocol wants of whoever moves its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Finish", "Send", "StartTls", "Step", "WaitForNews"]


@dataclass(frozen=True, slots=True)
class Send:
    """These bytes go to the client; to be asked for more only when it has taken most of them.

    ``last``: there is no step after this one.
    """

    data: bytes
    last: bool = False


@dataclass(frozen=True, slots=True)
class StartTls:
    """After ``answer`` the connection is encrypted: nothing may be read in between, it would be the handshake's."""

    answer: bytes


@dataclass(frozen=True, slots=True)
class WaitForNews:
    """Nothing to say until a subscription has news, or a while has passed."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The connection is to be closed, once everything has been sent."""


Step: TypeAlias = Send | StartTls | WaitForNews | Finish
