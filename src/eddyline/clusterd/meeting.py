"""How the processes of a replica come to be connected: each listens, and connects to those of lower ordinals.

Rows travel between every two processes, one connection for each runtime.  Commands that are passed on have one of
their own, from the first process to each other one: what maintenance exchanges while it hydrates never stands before
a lookup.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Final

from eddyline.compute.layout import RuntimeConfig
from eddyline.errors import Error, make_error
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose, Welcome, await_greeting, greet, turn_away, welcome
from eddyline.protocol.sockets import connect_to, listen_at

__all__ = ["Connections", "meet"]

_MEET_SECONDS: Final = 120.0
_RETRY_SECONDS: Final = 0.02

#: by purpose, then by the ordinal of the other process
Connections = dict[Purpose, dict[int, Frames]]


def meet(config: RuntimeConfig, purposes: Sequence[Purpose]) -> Connections:
    """One connection to each other process for each of ``purposes``, at the addresses of a runtime.

    Every process of the replica gives the same purposes.  Waits for the others: 08001 if one does not come, 22023 if
    who is met is of another replica; nothing stays open then.
    """
    process, processes = config.process, config.layout.processes
    met: Connections = {purpose: {} for purpose in purposes}
    if processes == 1:
        return met
    deadline = time.monotonic() + _MEET_SECONDS
    listener = listen_at(config.addresses[process])
    try:
        for purpose in purposes:
            for other in _others(purpose, config):
                if other < process:
                    met[purpose][other] = _reach(config, purpose, other, deadline)
        while any(len(met[purpose]) < len(_others(purpose, config)) for purpose in purposes):
            listener.settimeout(max(deadline - time.monotonic(), 0.001))
            _admit(config, listener, met)
    except BaseException as error:
        for frames in (frames for found in met.values() for frames in found.values()):
            frames.close()
        if isinstance(error, TimeoutError):
            raise make_error("08001", "not all processes of the replica came up") from error
        raise
    finally:
        listener.close()
    return met


def _others(purpose: Purpose, config: RuntimeConfig) -> list[int]:
    """Whom this process is connected to for it."""
    everybody = [other for other in range(config.layout.processes) if other != config.process]
    return everybody if purpose is not Purpose.PASSED_ON or config.process == 0 else [0]


def _reach(config: RuntimeConfig, purpose: Purpose, other: int, deadline: float) -> Frames:
    while True:
        try:
            frames = Frames(connect_to(config.addresses[other]))
            break
        except Error as error:
            if error.sqlstate != "08001" or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)  # it has not come up yet
    try:
        answer, layout = greet(frames, purpose, process=config.process), config.layout
        if (answer.process, answer.processes, answer.workers) != (other, layout.processes, layout.workers):
            raise make_error("22023", f'"{config.addresses[other]}" is of another replica, or another process')
    except BaseException:
        frames.close()
        raise
    return frames


def _admit(config: RuntimeConfig, listener: socket.socket, met: Connections) -> None:
    connection, _ = listener.accept()
    frames = Frames(connection)
    try:
        greeting = await_greeting(frames)
        purpose, other = greeting.purpose, greeting.process
        expected = purpose in met and other > config.process and other in _others(purpose, config)
        if not expected or other in met[purpose]:
            raise make_error("08P01", f"process {other} is not expected here for {purpose.value}")
    except Error as error:
        turn_away(frames, error)
        return
    layout, interactive = config.layout, Purpose.INTERACTIVE in met
    try:
        welcome(frames, Welcome(config.process, layout.processes, layout.workers, interactive))
    except OSError:
        frames.close()  # it hung up; if it is one of ours it comes again, or never, which the caller finds
        return
    met[purpose][other] = frames
