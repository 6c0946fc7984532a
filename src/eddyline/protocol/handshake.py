"""How a connection between processes begins: a greeting, then a welcome or a refusal, one frame each.

The connector says what it is, which version of the protocol it speaks, and what the connection is for; nothing else is
read from it before that fits.  So two releases never misread each other, and a stranger is told so.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

import msgspec

from eddyline.errors import Error, make_error
from eddyline.protocol.framing import Frames

__all__ = [
    "PROTOCOL_VERSION",
    "Greeting",
    "Purpose",
    "Seen",
    "Welcome",
    "await_greeting",
    "greet",
    "turn_away",
    "welcome",
]

#: rises with every change of a message; both ends must have the same
PROTOCOL_VERSION: Final = 6
#: no greeting or answer is longer
_MOST_BYTES: Final = 4096
_WAIT_SECONDS: Final = 30.0


class Purpose(enum.Enum):
    COMMANDS = "commands"  # the controller's commands one way, responses the other
    STORAGE = "storage"  # updates of collections to the replica; its requests and view writes back
    PASSED_ON = "passed_on"  # the controller's commands, from the first process to another
    MAINTENANCE = "maintenance"  # rows between the maintenance (or only) runtimes of two processes
    INTERACTIVE = "interactive"  # rows between the interactive runtimes of two processes


class Greeting(msgspec.Struct, frozen=True, tag_field="op", tag="eddyline"):
    """``process``: the ordinal of the connector among the processes of a replica; 0 for the controller.

    ``epoch``: of the controller's database, which rises with each opening of its directory; 0 without one.
    """

    version: int
    purpose: Purpose
    process: int = 0
    epoch: int = 0


class Seen(msgspec.Struct, frozen=True):
    """Of the mirrors of tables in a process: the time of their ``newest`` write, and up to where all are complete."""

    newest: int
    upper: int


class Welcome(msgspec.Struct, frozen=True, tag_field="op", tag="welcome"):
    """What was reached: process ``process`` of ``processes`` with ``workers`` each.

    ``seen``: what it has of the tables, of an earlier connection; None: nothing.
    """

    process: int
    processes: int
    workers: int
    interactive: bool
    seen: Seen | None = None


class Refusal(msgspec.Struct, frozen=True, tag_field="op", tag="refusal"):
    sqlstate: str
    message: str
    hint: str | None = None


_Answer: TypeAlias = Welcome | Refusal
_greetings = msgspec.msgpack.Decoder(Greeting)
_answers: msgspec.msgpack.Decoder[_Answer] = msgspec.msgpack.Decoder(_Answer)


def greet(frames: Frames, purpose: Purpose, *, process: int = 0, epoch: int = 0) -> Welcome:
    """Introduces this end.  Raises what the other end refuses with, 08P01 if it says something else, 08006 if it hangs
    up or says nothing.
    """
    frames.settimeout(_WAIT_SECONDS)
    try:
        frames.send([msgspec.msgpack.encode(Greeting(PROTOCOL_VERSION, purpose, process, epoch))])
        data = frames.receive(_MOST_BYTES)
        answer = None if data is None else _answers.decode(data)
    except OSError as error:
        raise make_error("08006", f"no answer to the greeting: {error}") from error
    except msgspec.MsgspecError as error:
        raise make_error("08P01", "the answer to the greeting is malformed") from error
    if answer is None:
        raise make_error("08006", "the connection was closed instead of an answer to the greeting")
    if isinstance(answer, Refusal):
        raise make_error(answer.sqlstate, answer.message, hint=answer.hint)
    frames.settimeout(None)
    return answer


def await_greeting(frames: Frames) -> Greeting:
    """The connector's greeting, checked.  08P01 for other bytes, 0A000 for another version, 08006 for silence."""
    frames.settimeout(_WAIT_SECONDS)
    try:
        data = frames.receive(_MOST_BYTES)
        greeting = None if data is None else _greetings.decode(data)
    except OSError as error:
        raise make_error("08006", f"no greeting: {error}") from error
    except msgspec.MsgspecError as error:
        raise make_error("08P01", "the connection does not begin with a greeting") from error
    if greeting is None:
        raise make_error("08006", "the connection was closed before a greeting")
    if greeting.version != PROTOCOL_VERSION:
        raise make_error(
            "0A000",
            f"protocol version {greeting.version} is not supported",
            hint=f"This process speaks version {PROTOCOL_VERSION}: run the same release at both ends.",
        )
    return greeting


def welcome(frames: Frames, answer: Welcome) -> None:
    """Ends the handshake.  OSError if the connector is gone."""
    frames.send([msgspec.msgpack.encode(answer)])
    frames.settimeout(None)


def turn_away(frames: Frames, error: Error) -> None:
    """Says why, if the connector still listens, and hangs up."""
    text = error.message[: _MOST_BYTES // 4]
    try:
        frames.send([msgspec.msgpack.encode(Refusal(error.sqlstate, text, error.hint))])
    except OSError:
        return
    finally:
        frames.close()
