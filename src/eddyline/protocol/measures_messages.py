"""What the processes of a replica count, asked for by whoever wants to see it: no part of the stream of commands.

The process answers on the thread that takes commands; the runtimes never see the question, nor do later connections.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

__all__ = ["ProcessMeasures", "ReportMeasures", "RuntimeMeasures"]


class RuntimeMeasures(msgspec.Struct, frozen=True):
    """Of the workers of one role.  ``activations``: how many in each bucket of ``compute.measures.BOUNDS_S``.

    ``built``, ``retained``: maintained dataflows that one worker, like all others, has built, or has gone on with under
    another connection.
    """

    role: str
    activations: tuple[int, ...]
    activation_seconds: float
    arrangement_bytes: int
    built: int = 0
    retained: int = 0


class ReportMeasures(msgspec.Struct, frozen=True, tag_field="op", tag="report_measures"):
    """``number``: comes back with the answer."""

    number: int


class ProcessMeasures(msgspec.Struct, frozen=True, tag_field="op", tag="process_measures"):
    """``hold_gap_us``: None where there is only one runtime.

    ``soft_assertions``: how many have failed.  ``gil_holds``, ``gil_seconds``: waits for the interpreter's lock, in
    buckets and altogether; none where they are not sampled.
    """

    number: int
    runtimes: tuple[RuntimeMeasures, ...]
    hold_gap_us: int | None = None
    soft_assertions: int = 0
    gil_holds: tuple[int, ...] = ()
    gil_seconds: float = 0.0

    @staticmethod
    def of_runtimes(parts: Iterable[ProcessMeasures]) -> tuple[tuple[RuntimeMeasures, ...], int | None]:
        """Of all processes together: sums by role, and the widest gap."""
        parts = list(parts)
        by_role: dict[str, list[RuntimeMeasures]] = {}
        for part in parts:
            for runtime in part.runtimes:
                by_role.setdefault(runtime.role, []).append(runtime)
        gaps = [part.hold_gap_us for part in parts if part.hold_gap_us is not None]
        return tuple(map(_sum, by_role.values())), max(gaps, default=None)


def _sum(parts: list[RuntimeMeasures]) -> RuntimeMeasures:
    return RuntimeMeasures(
        parts[0].role,
        tuple(map(sum, zip(*(part.activations for part in parts), strict=True))),
        sum(part.activation_seconds for part in parts),
        sum(part.arrangement_bytes for part in parts),
        max(part.built for part in parts),
        max(part.retained for part in parts),
    )
