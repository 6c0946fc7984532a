"""What a process started by ``warm`` does: it compiles the kernels that its standard input names, into the cache.

A line is the position of a kernel in ``registry.KERNELS``; the same line is the answer once that kernel is compiled.
"""

from __future__ import annotations

import gc
import sys

from eddyline.kernels.registry import KERNELS

__all__ = ["main"]


def main() -> None:
    gc.disable()  # a compilation keeps nearly all it allocates: collections take a fifth of the time and free little
    for line in sys.stdin:
        KERNELS[int(line)].load()
        sys.stdout.write(line)
        sys.stdout.flush()
