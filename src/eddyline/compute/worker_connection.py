"""The connection that a worker answers: the same for the workers of both runtimes.

Invariants:
I1  a nonce that was not heard before begins another connection, whose responses have another number;
I2  what a connection but the first says is its *history*, up to ``InitializationComplete``: it is reconciled as a whole
    with what is there, and nothing of it is done before.
State of the worker's thread.
"""

from __future__ import annotations

from eddyline.compute.ledger import Ledger, Reconciled
from eddyline.protocol.messages import Command, Hello, InitializationComplete

__all__ = ["WorkerConnection"]


class WorkerConnection:
    """A heavy lane has one too, but its interactive worker hears the commands, keeps the ledger, and reconciles."""

    def __init__(self) -> None:
        #: what the commands alone say
        self.ledger = Ledger()
        #: that of the connection, from 1 on; 0 before the first one
        self.number = 0
        self._nonce: str | None = None
        #: the new connection's history so far, while it is being told
        self._history: list[Command] | None = None

    @property
    def settled(self) -> bool:
        """False: what is to run is not known yet, and must not be reported to the new connection."""
        return self._history is None

    def hello(self, hello: Hello) -> bool:
        """True if a new connection begins: what the old one asked for is to be forgotten."""
        if hello.nonce == self._nonce:
            return False
        first, self._nonce = self._nonce is None, hello.nonce
        self.ledger.hello(hello)
        self.number += 1
        if not first:
            self._history = []
        return True

    def history(self, command: Command) -> bool:
        """The next command of a connection that is not settled; True if it was the last: to be reconciled."""
        assert self._history is not None, "the connection is settled"
        self._history.append(command)
        return isinstance(command, InitializationComplete)

    def reconcile(self) -> Reconciled:
        """What to do about the history.  It is settled from here on."""
        assert self._history is not None, "the connection is settled"
        history, self._history = self._history, None
        return self.ledger.reconcile(history)

    def settle(self) -> None:
        """As ``reconcile``, of a lane: its interactive worker says what goes on."""
        assert not self._history, "the history is told to the interactive worker"
        self._history = None
