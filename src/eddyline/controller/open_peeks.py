"""Peeks that replicas were asked: of several answers the first one counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eddyline.controller.holds import ReadHold
from eddyline.controller.instance import Instance
from eddyline.errors import Error
from eddyline.protocol.messages import CancelPeek, Peek, PeekResponse

__all__ = ["OpenPeeks"]


@dataclass(slots=True, eq=False)
class _OpenPeek:
    """``replica``: the only one that is asked.  ``waiting``: who was asked and has not answered."""

    hold: ReadHold
    instance: Instance
    replica: str | None
    waiting: set[str]
    canceled: bool = False
    #: its answer was passed on, and others have yet to look
    answered: bool = False


class OpenPeeks:
    """By uuid.  A peek's hold closes when all who were asked have answered or are gone."""

    def __init__(self) -> None:
        self._peeks: dict[str, _OpenPeek] = {}

    def __len__(self) -> int:
        return len(self._peeks)

    def begin(self, instance: Instance, command: Peek, hold: ReadHold, replica: str | None) -> None:
        """Asks all replicas of the instance, or one of them."""
        self._peeks[command.uuid] = _OpenPeek(hold, instance, replica, set(instance.told(replica)))
        instance.send(command, replica)

    def of(self, targets: frozenset[str]) -> list[str]:
        """Uuids of those that are not answered."""
        return [uuid for uuid, peek in self._peeks.items() if peek.hold.id in targets and not peek.answered]

    def cancel(self, uuid: str) -> None:
        """Unless its answer was passed on."""
        peek = self._peeks.get(uuid)
        if peek is not None and not peek.answered:
            peek.canceled = True
            peek.instance.send(CancelPeek(uuid), peek.replica)

    def withdraw(self, uuid: str) -> None:
        """Takes a peek back that nobody was asked, so that who comes later is not asked either; else nothing."""
        peek = self._peeks.get(uuid)
        if peek is not None and not peek.waiting:
            self._settle(uuid, peek)
            self._close(uuid, peek)

    def answered(self, response: PeekResponse, replica: str) -> bool:
        """Whether the response is the answer of its peek: the first one, but for cancellations that nobody asked for
        while others may answer.
        """
        peek = self._peeks.get(response.uuid)
        if peek is None:
            return False
        waiting = peek.waiting
        waiting.discard(replica)
        if waiting and (peek.answered or (response.canceled and not peek.canceled)):
            return False
        first = not peek.answered
        if first:
            self._settle(response.uuid, peek)
        if not waiting:
            self._close(response.uuid, peek)
        return first

    def attached(self, instance: Instance, replica: str) -> None:
        """The replica was told, by the history, of what is not answered, and of that only."""
        for uuid, peek in list(self._peeks.items()):
            if peek.instance is not instance:
                continue
            if peek.answered:
                peek.waiting.discard(replica)
                if not peek.waiting:
                    self._close(uuid, peek)
            elif peek.replica in (None, replica):
                peek.waiting.add(replica)

    def lost(self, instance: Instance, replica: str, why: Error) -> Iterator[PeekResponse]:
        """The replica answers nothing more; gives an answer for each peek that nobody else was asked."""
        told = why.sqlstate, why.message, why.detail
        for uuid, peek in list(self._peeks.items()):
            if peek.instance is not instance:
                continue
            peek.waiting.discard(replica)
            if peek.waiting:
                continue
            if peek.answered:
                self._close(uuid, peek)
            elif peek.replica in (None, replica):
                self._settle(uuid, peek)
                self._close(uuid, peek)
                yield PeekResponse(uuid, error=told, hint=why.hint)

    @staticmethod
    def _settle(uuid: str, peek: _OpenPeek) -> None:
        """It is answered; those who have yet to look need not."""
        peek.instance.answered(uuid, peek.replica)
        peek.answered = True
        if not peek.canceled:
            for replica in peek.waiting:
                peek.instance.send_now(CancelPeek(uuid), replica)

    def _close(self, uuid: str, peek: _OpenPeek) -> None:
        del self._peeks[uuid]
        peek.hold.close()
