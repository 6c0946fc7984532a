"""What one read may take, and what it took."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from eddyline.errors import DatabaseError, make_error

__all__ = ["PHASES", "UNBOUNDED", "PeekPhases", "ReadBounds", "out_of_memory", "result_too_large"]

#: the phases of a peek in their order, as ``PeekPhases`` and metrics call them
PHASES = ("queue", "wait_publication", "wait_seal", "dataflow", "walk", "finish")


class ReadBounds(msgspec.Struct, frozen=True):
    """Bytes that a read may take; None: no bound.

    ``result``: of its answer (max_result_size).  ``memory``: of all that is held for it while it is computed, the
    collected answer included (query_max_memory).
    """

    result: int | None = None
    memory: int | None = None


UNBOUNDED = ReadBounds()


class PeekPhases(msgspec.Struct, frozen=True):
    """Where the time of one peek went, in nanoseconds, and who answered it.

    ``runtime``: ``solo`` or ``interactive``.  ``lane``: ``caller`` (the thread that asked), ``lookup`` (the runtime's
    worker, at once) or ``heavy`` (in slices, or by a dataflow).  ``queue_ns``: until it was looked at, and until its
    first slice had its turn.  ``wait_publication_ns``: for indexes that the other runtime had not built yet.
    ``wait_seal_ns``: for what it reads to seal its time.  ``dataflow_ns``: of a one-shot dataflow.
    ``walk_ns``: from the first slice to the last, the turns of others in between included.  ``finish_ns``: making one
    answer of the slices.  ``rows``: of the answer.
    """

    runtime: str
    lane: str
    queue_ns: int = 0
    wait_publication_ns: int = 0
    wait_seal_ns: int = 0
    dataflow_ns: int = 0
    walk_ns: int = 0
    finish_ns: int = 0
    rows: int = 0

    def of(self, phase: str) -> int:
        """The nanoseconds of one of ``PHASES``."""
        return int(getattr(self, f"{phase}_ns"))

    @staticmethod
    def of_workers(parts: Iterable[PeekPhases | None]) -> PeekPhases | None:
        """Of an answer that several workers gave: the slowest one's, with the rows of all."""
        known = [p for p in parts if p is not None]
        if not known:
            return None
        slowest = max(known, key=lambda p: sum(p.of(phase) for phase in PHASES))
        return msgspec.structs.replace(slowest, rows=sum(p.rows for p in known))


def out_of_memory(held: int, bound: int) -> DatabaseError:
    """53200: the read needed more than query_max_memory."""
    return make_error(
        "53200",
        f"the read was stopped: it needs more than the {bound} bytes of query_max_memory",
        detail=f"It held {held} bytes.",
        hint="Read less, or raise query_max_memory (SET for the session, ALTER SYSTEM SET for all).",
    )


def result_too_large(size: int, bound: int) -> DatabaseError:
    """54000: the answer is larger than max_result_size."""
    return make_error(
        "54000",
        f"the read was stopped: its result is larger than the {bound} bytes of max_result_size",
        detail=f"It had {size} bytes when it was stopped.",
        hint="Read less (WHERE, LIMIT), or raise max_result_size (SET for the session, ALTER SYSTEM SET for all).",
    )
