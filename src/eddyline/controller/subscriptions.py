"""What several replicas report of one subscription, as the report of one."""

from __future__ import annotations

import msgspec
import numpy as np

from eddyline.protocol.messages import RowBatch, SubscribeResponse
from eddyline.repr.time import Frontier

__all__ = ["not_passed"]


def not_passed(response: SubscribeResponse, passed: Frontier) -> SubscribeResponse | None:
    """The part of the response that comes at or after ``passed``, below which all was passed on; None without any.

    O(1) for the replica that is ahead; else O(rows).  A snapshot lies below ``passed`` once anything was passed on: a
    replica builds a subscription anew from a time below what was reported.
    """
    if response.lower >= passed:
        return response
    if response.upper <= passed:
        return None
    pieces = [] if response.rows is None else response.rows.pieces()
    later = [piece.take(np.flatnonzero(piece.times >= passed)) for piece in pieces]
    rows = RowBatch.of(pieces[0].types, later) if pieces else None
    return msgspec.structs.replace(response, lower=int(passed), rows=rows)
