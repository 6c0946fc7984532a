"""How much memory this process uses, and how much there is for it: what the system says.  Linux; elsewhere unknown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["ServerMemory", "anonymous_bytes", "available_bytes", "can_be_watched", "usual_limit"]

_STATM: Final = Path("/proc/self/statm")
#: of what there is; the rest is for the system, for files that are read, and for what grows between two looks
_SHARE: Final = 0.8
#: version 1 of control groups says "none" by a number of about 2**63
_NO_LIMIT: Final = 1 << 60


class ServerMemory(NamedTuple):
    """``usual``: what ``server_memory_limit`` is where nobody sets it; ``wanted``: what it begins with.  Bytes."""

    usual: int | None
    wanted: int | None = None


def can_be_watched() -> bool:
    """Whether ``anonymous_bytes`` says anything here."""
    return _STATM.exists()


def anonymous_bytes() -> int:
    """Resident bytes that no file backs, which the kernel cannot drop: exact but for a few pages for each thread.

    Cost: about 10 µs.
    """
    _, resident, shared, *_ = _STATM.read_text(encoding="ascii").split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def usual_limit() -> int | None:
    """What ``server_memory_limit`` is for a server whom nobody has told it, in bytes; None where it means nothing."""
    return int(available_bytes() * _SHARE) if can_be_watched() else None


def available_bytes(root: Path = Path("/")) -> int:
    """The machine's memory, or less where a control group, or one that it is in, bounds this process.

    ``root``: where ``proc`` and ``sys`` are.
    """
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return physical
    limits = [physical]
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            limits += _limits(root / "sys/fs/cgroup", path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
    return min(limits)


def _limits(top: Path, path: str, name: str) -> list[int]:
    """Of the group and of all that it is in; those that cannot be seen from here bound nothing that is known."""
    group = top / path.lstrip("/")
    found = []
    for folder in (group, *(p for p in group.parents if p.is_relative_to(top))):
        try:
            text = (folder / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < _NO_LIMIT:
            found.append(int(text))
    return found
