"""The worker layouts of a replica's two runtimes: they must be equal, since equal workers share their indexes.

``interactive_layout`` derives the interactive runtime's from its configuration text.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from eddyline.errors import make_error

__all__ = ["InteractiveConfig", "WorkerLayout", "interactive_layout"]


@dataclass(frozen=True, slots=True)
class WorkerLayout:
    """``workers`` in each of ``processes``.  4 × 1 and 2 × 2 are different layouts."""

    workers: int
    processes: int


@dataclass(frozen=True, slots=True)
class InteractiveConfig:
    """``process``: the ordinal of this process; ``addresses``: of the interactive workers, by process."""

    layout: WorkerLayout
    process: int
    addresses: tuple[str, ...]


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    workers: int
    processes: int = 1
    addresses: tuple[str, ...] = ()


def interactive_layout(text: str | None, maintenance: WorkerLayout, *, process: int) -> InteractiveConfig | None:
    """The configuration in the JSON ``text``; None, a replica of one runtime, where there is none.

    22023 if it is malformed, or differs from the layout of the maintenance runtime.
    """
    if text is None:
        return None
    try:
        parsed = msgspec.json.decode(text, type=_Text)
    except msgspec.MsgspecError as error:
        raise make_error("22023", f"malformed configuration of the interactive runtime: {error}") from error
    layout = WorkerLayout(parsed.workers, parsed.processes)
    if layout != maintenance:
        raise make_error(
            "22023",
            "the interactive runtime must have the worker layout of the maintenance runtime",
            detail=f"{_text(layout)} differs from {_text(maintenance)}.",
        )
    return InteractiveConfig(layout, process, parsed.addresses)


def _text(layout: WorkerLayout) -> str:
    return f"{layout.workers} workers × {layout.processes} processes"
