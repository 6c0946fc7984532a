"""Every kernel there is, and loading them all before the database says it is ready."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from eddyline.kernels import (
    copyscan,
    floatmath,
    floatsum,
    gather,
    groups,
    hashing,
    numeric,
    prefix,
    reduce,
    rows,
    search,
)
from eddyline.kernels.kernel import Kernel

__all__ = ["KERNELS", "MODULES", "warm", "warm_backwards"]

#: the files that hold kernels
MODULES: Final = (copyscan, floatmath, floatsum, gather, groups, hashing, numeric, prefix, reduce, rows, search)

_NAMED: Final = [value for module in MODULES for value in vars(module).values() if isinstance(value, Kernel)]

#: all of them, once each, variants that keep the GIL included
KERNELS: Final[tuple[Kernel, ...]] = tuple(dict.fromkeys(k for named in _NAMED for k in (named, named.short)))


def warm(progress: Callable[[int, int], None] | None = None) -> None:
    """Loads every kernel from the cache, or compiles it; none compiles later.

    ``progress(done, all)`` is called before the first kernel and after each.  About 5 ms a kernel from the cache, 0.1 s
    to 3 s without.  Where the first one had to be compiled, a second process compiles from the last kernel on, into the
    cache, and the two meet.  Idempotent; safe from several threads.
    """
    if progress is not None:
        progress(0, len(KERNELS))
    KERNELS[0].load()
    with _helper(wanted=KERNELS[0].compiled):
        for done, kernel in enumerate(KERNELS, 1):
            kernel.load()
            if progress is not None:
                progress(done, len(KERNELS))


def warm_backwards() -> None:
    """What the second process does."""
    for kernel in reversed(KERNELS):
        kernel.load()


@contextmanager
def _helper(*, wanted: bool) -> Iterator[None]:
    """The second process, for as long as the first one works.  It only saves time: nothing depends on it."""
    process = _start_helper() if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.terminate()
            process.wait()


def _start_helper() -> subprocess.Popen[bytes] | None:
    """None where there is no core for it, or where the executable is no Python but a program that embeds it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2 or not sys.executable or not Path(sys.executable).name.lower().startswith("python"):
        return None
    path = os.pathsep.join(p for p in sys.path if p)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "eddyline.kernels.compile_ahead"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no processes here; this one compiles everything
        return None
