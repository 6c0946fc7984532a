"""A replica of two runtimes: maintenance and interactive in one process, behind the multiplexer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from eddyline.compute.exchange import Mailboxes
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.compute.sharing import SharingRegistry
from eddyline.protocol.messages import Command, Peek, PeekResponse, Response
from eddyline.protocol.multiplexer import Multiplexer
from eddyline.protocol.sources import Storage
from eddyline.repr.time import Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["Pair"]


class Pair:
    """A ``protocol.client.Client``.  Both runtimes have the same worker layout, and share one registry per worker.

    The arguments are those of ``Runtime``; ``mailboxes`` are by role.  Shared fate: whichever runtime fails ends both,
    with one fatal ``Status``.
    """

    def __init__(
        self,
        storage: Storage,
        hasher: Hasher,
        *,
        workers: int = 1,
        mailboxes: Mapping[Role, Mailboxes] | None = None,
        configure: Callable[[Mapping[str, str]], None] | None = None,
        on_thread: Callable[[str], None] | None = None,
        listener: Callable[[Response], None] | None = None,
        threads: bool = True,
        clock: Callable[[], int] = time.perf_counter_ns,
        activation_ns: int = 5_000_000,
        budget_rows: int = 65_536,
    ) -> None:
        self.registries = [SharingRegistry() for _ in range(workers)]

        def runtime(role: Role) -> Runtime:
            return Runtime(
                storage,
                hasher,
                role=role,
                workers=workers,
                registries=self.registries,
                mailboxes=None if mailboxes is None else mailboxes[role],
                configure=configure,
                on_thread=on_thread,
                threads=threads,
                clock=clock,
                activation_ns=activation_ns,
                budget_rows=budget_rows,
            )

        # The reader is connected to the registries before anything can be published.
        self.interactive = runtime(Role.INTERACTIVE)
        try:
            self.maintenance = runtime(Role.MAINTENANCE)
        except BaseException:
            self.interactive.close()
            raise
        self._endpoint = Multiplexer(self.maintenance, self.interactive, listener)

    @property
    def runtimes(self) -> tuple[Runtime, ...]:
        return (self.maintenance, self.interactive)

    def hold_gap_us(self) -> int | None:
        """How far the interactive runtime's position holds back what maintenance could compact; any thread."""
        return max(registry.hold_gap_us() for registry in self.registries)

    @property
    def failed(self) -> bool:
        return self.maintenance.failed or self.interactive.failed

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        self._endpoint.listen(listener, ended)

    def send(self, command: Command) -> None:
        self._endpoint.send(command)

    def receive(self, timeout: float | None = None) -> Response | None:
        return self._endpoint.receive(timeout)

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool] = lambda: False) -> PeekResponse | None:
        """As ``Runtime.answer_now``: by the interactive runtime, as of its position in the command stream."""
        return self.interactive.answer_now(peek, cancelled)

    def look_up(self, id: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """As ``Runtime.look_up``, likewise."""
        return self.interactive.look_up(id, at, probe)

    def wait_sealed(self, id: str, at: Time, timeout_s: float, expired: Callable[[], bool]) -> bool | None:
        """As ``Runtime.wait_sealed``, likewise."""
        return self.interactive.wait_sealed(id, at, timeout_s, expired)

    def step(self, driven: int | None = None) -> bool:
        """Without threads: one step of each worker and lane, or of one: maintenance's first, then interactive's."""
        if driven is None:
            moved = self.maintenance.step()
            return self.interactive.step() or moved
        if driven < self.maintenance.workers:
            return self.maintenance.step(driven)
        return self.interactive.step(driven - self.maintenance.workers)

    def at_rest(self) -> bool:
        shared = any(len(registry) for registry in self.registries)
        return self.maintenance.at_rest() and self.interactive.at_rest() and not shared

    def settle(self, max_steps: int = 100_000) -> None:
        """Without threads: steps until nobody has anything to do."""
        for _ in range(max_steps):
            if not self.step():
                return
        raise AssertionError("the replica does not come to rest")

    def stop(self) -> None:
        self._endpoint.stop()

    def close(self) -> None:
        self._endpoint.close()
