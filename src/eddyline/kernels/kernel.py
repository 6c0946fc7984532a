"""``@kernel``: a Numba function with its signatures stated, compiled or loaded from cache on first use, then closed.

A kernel never sees another dtype or layout than those stated: numba raises TypeError instead of compiling anew.
Input arrays are declared read-only and C-contiguous (``READ``), which also admits writable ones.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

from numba import njit, types

__all__ = ["ADDRESS", "DESCS", "I64", "RUNS", "U8", "U64", "VOID", "Kernel", "kernel", "read", "subroutine", "write"]

Function = TypeVar("Function", bound=Callable[..., Any])

VOID: Final = types.void
I64: Final = types.int64
U64: Final = types.uint64
U8: Final = types.uint8
ADDRESS: Final = types.int64


def read(dtype: Any, dimensions: int = 1) -> Any:
    """A C-contiguous array that the kernel only reads."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def write(dtype: Any, dimensions: int = 1) -> Any:
    """A C-contiguous array that the kernel fills."""
    return types.Array(dtype, dimensions, "C")


#: descriptors of the columns of one batch: int64[columns, cells.WIDTH]
DESCS: Final = read(I64, 2)
#: descriptors of the columns of several runs: int64[runs, columns, cells.WIDTH]
RUNS: Final = read(I64, 3)


def subroutine(function: Function) -> Function:
    """Decorator: a jitted function that kernels of the same file call (a cached caller of another file goes stale)."""
    jitted: Function = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return jitted


# one kernel is compiled at a time, as numba would have it anyway; nothing else is locked meanwhile
_loading = threading.Lock()
# A child that is forked while a kernel is loaded would have numba's locks held for ever: a fork waits for the kernel.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


class Kernel:
    """A compiled function; calling it before ``load`` loads it.

    ``short``: the same function for small inputs.  It keeps the GIL, because giving it up and waiting for it again
    costs a lookup more than the work; itself if there is no such variant.
    """

    __slots__ = ("_call", "dispatcher", "name", "short", "signatures")

    def __init__(
        self, function: Callable[..., Any], signatures: tuple[Any, ...], *, nogil: bool, short: bool = False
    ) -> None:
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self.signatures = signatures
        self.dispatcher = njit(cache=True, nogil=nogil, no_cfunc_wrapper=True)(function)
        # either the loading call or the dispatcher itself; replaced once, by any thread, with an equal value
        self._call: Callable[..., Any] = self._first_call
        self.short = Kernel(_renamed(function, "_short"), signatures, nogil=False) if short else self

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    def _first_call(self, *args: Any) -> Any:
        self.load()
        return self._call(*args)

    @property
    def loaded(self) -> bool:
        return self._call is self.dispatcher

    def load(self) -> None:
        """Compiles every signature, or loads it from the cache.  Idempotent; threads take turns."""
        with _loading:
            if self.loaded:
                return
            for signature in self.signatures:
                self.dispatcher.compile(signature)
            self.dispatcher.disable_compile()
            self._call = self.dispatcher


def _renamed(function: Callable[..., Any], suffix: str) -> Callable[..., Any]:
    """The same code under another name: numba's cache tells variants of a function apart by nothing else."""
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__ + suffix, function.__defaults__)
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__ + suffix
    return copy


def kernel(*signatures: Any, nogil: bool = True, short: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator.  ``nogil=False`` for kernels that take less than about 50 µs; ``short=True`` for a second variant that
    keeps the GIL, for those that also serve lookups."""

    def wrap(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, signatures, nogil=nogil, short=short)

    return wrap
