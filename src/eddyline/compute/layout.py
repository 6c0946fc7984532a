"""The worker layouts of a replica's two runtimes: they must be equal, since equal workers share their indexes.

``runtime_layout`` reads the configuration text of a runtime; ``interactive_layout`` derives the interactive one's.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from eddyline.errors import make_error

__all__ = ["RuntimeConfig", "WorkerLayout", "interactive_layout", "runtime_layout"]


@dataclass(frozen=True, slots=True)
class WorkerLayout:
    """``workers`` in each of ``processes``.  4 × 1 and 2 × 2 are different layouts."""

    workers: int
    processes: int


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """``process``: the ordinal of this process; ``addresses``: where the runtime's processes meet, by ordinal."""

    layout: WorkerLayout
    process: int
    addresses: tuple[str, ...]


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    workers: int
    processes: int = 1
    addresses: tuple[str, ...] = ()


def runtime_layout(text: str, *, process: int) -> RuntimeConfig:
    """The configuration in the JSON ``text``.

    22023 if it is malformed, has no such process, or lacks the addresses that several processes need.
    """
    config = _parsed(text, process)
    layout = config.layout
    if min(layout.workers, layout.processes) < 1:
        raise make_error("22023", f"a runtime needs a worker and a process at least, not {_text(layout)}")
    if not 0 <= process < layout.processes:
        hint = f"The ordinals are 0 to {layout.processes - 1}."
        raise make_error("22023", f"process {process} is none of {layout.processes}", hint=hint)
    if layout.processes > 1 and len(config.addresses) != layout.processes:
        raise make_error(
            "22023",
            f"{len(config.addresses)} addresses for {layout.processes} processes",
            hint='Give "addresses" one socket path for each process.',
        )
    return config


def interactive_layout(text: str | None, maintenance: WorkerLayout, *, process: int) -> RuntimeConfig | None:
    """The configuration in the JSON ``text``; None, a replica of one runtime, where there is none.

    22023 if it is malformed, or differs from the layout of the maintenance runtime.
    """
    if text is None:
        return None
    config = _parsed(text, process)
    if config.layout != maintenance:
        raise make_error(
            "22023",
            "the interactive runtime must have the worker layout of the maintenance runtime",
            detail=f"{_text(config.layout)} differs from {_text(maintenance)}.",
        )
    return config


def _parsed(text: str, process: int) -> RuntimeConfig:
    try:
        parsed = msgspec.json.decode(text, type=_Text)
    except msgspec.MsgspecError as error:
        raise make_error("22023", f"malformed configuration of a runtime: {error}") from error
    return RuntimeConfig(WorkerLayout(parsed.workers, parsed.processes), process, parsed.addresses)


def _text(layout: WorkerLayout) -> str:
    return f"{layout.workers} workers × {layout.processes} processes"
