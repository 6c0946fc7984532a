"""What two processes of one replica tell each other: rows for a worker of the other one, and commands passed on."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from eddyline.protocol.messages import Command, RowBatch

__all__ = ["Exchanged", "PassedOn", "PeerMessage"]


class Exchanged(msgspec.Struct, frozen=True, tag_field="op", tag="exchanged"):
    """A message of worker ``sender`` for ``worker``, both counted over all processes, on a channel of a dataflow."""

    worker: int
    dataflow: int
    operator: int
    sender: int
    frontier: int
    rows: RowBatch | None = None
    errors: RowBatch | None = None


class PassedOn(msgspec.Struct, frozen=True, tag_field="op", tag="passed_on"):
    """A command that the first process got from the controller."""

    command: Command


PeerMessage: TypeAlias = Exchanged | PassedOn
