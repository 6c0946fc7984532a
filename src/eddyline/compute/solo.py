"""Solo: the only compute runtime of its process.  It renders every dataflow and answers every peek."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from eddyline.compute.exchange import Mailboxes
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.protocol.messages import Response
from eddyline.protocol.sources import Storage
from eddyline.trace.hasher import Hasher

__all__ = ["Solo"]


class Solo(Runtime):
    """See ``Runtime``."""

    def __init__(
        self,
        storage: Storage,
        hasher: Hasher,
        *,
        workers: int = 1,
        mailboxes: Mailboxes | None = None,
        configure: Callable[[Mapping[str, str]], None] | None = None,
        on_thread: Callable[[str], None] | None = None,
        listener: Callable[[Response], None] | None = None,
        threads: bool = True,
        clock: Callable[[], int] = time.perf_counter_ns,
        activation_ns: int = 5_000_000,
        budget_rows: int = 65_536,
    ) -> None:
        super().__init__(
            storage,
            hasher,
            role=Role.SOLO,
            workers=workers,
            mailboxes=mailboxes,
            configure=configure,
            on_thread=on_thread,
            listener=listener,
            threads=threads,
            clock=clock,
            activation_ns=activation_ns,
            budget_rows=budget_rows,
        )

    @property
    def runtimes(self) -> tuple[Runtime, ...]:
        return (self,)

    def hold_gap_us(self) -> int | None:
        """There is no other runtime to wait for."""
        return None
