"""What the runtimes of two processes of one replica tell each other: rows for a worker of the other one."""

from __future__ import annotations

import msgspec

from eddyline.protocol.messages import RowBatch

__all__ = ["Exchanged"]


class Exchanged(msgspec.Struct, frozen=True, tag_field="op", tag="exchanged"):
    """A message of worker ``sender`` for ``worker``, both counted over all processes, on a channel of a dataflow."""

    worker: int
    dataflow: int
    operator: int
    sender: int
    frontier: int
    rows: RowBatch | None = None
    errors: RowBatch | None = None
