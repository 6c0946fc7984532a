"""``@kernel``: a Numba function with its signatures stated, compiled or loaded from cache on first use, then closed.

A kernel never sees another dtype or layout than those stated: numba raises TypeError instead of compiling anew.
Input arrays are declared read-only and C-contiguous (``read``), which also admits writable ones.

Numba is imported when a kernel is loaded, and not before.  What kernels call of it (subroutines, code generators) is
``Late`` until then: a kernel is compiled as a copy of its function whose globals have Numba's own in their places.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar, cast

from eddyline.kernels.signatures import Signature
from eddyline.repr.late_module import LateModule

__all__ = ["Kernel", "Late", "kernel", "subroutine"]

Function = TypeVar("Function", bound=Callable[..., Any])

_numba: Final = LateModule("numba")

# one kernel is compiled at a time, as numba would have it anyway; nothing else is locked meanwhile
_loading = threading.Lock()
# A child that is forked while a kernel is loaded would have numba's locks held for ever: a fork waits for the kernel.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


class Late:
    """What kernels call of Numba's, made by ``make`` when the first of them is loaded.

    ``function``: what it does in Python; None for a code generator.
    """

    __slots__ = ("_made", "_make", "function")

    def __init__(self, make: Callable[[], Any], function: FunctionType | None = None) -> None:
        self._make = make
        self._made: Any = None  # guarded by _loading
        self.function = function

    def made(self) -> Any:
        """Needs ``_loading``."""
        if self._made is None:
            self._made = self._make()
        return self._made


def subroutine(function: Function) -> Function:
    """Decorator: a jitted function that kernels of the same file call (a cached caller of another file goes stale)."""
    plain = cast(FunctionType, function)

    def jitted() -> Any:
        return _numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(_prepared(plain, ""))

    return cast(Function, Late(jitted, plain))


def _prepared(function: FunctionType, suffix: str) -> FunctionType:
    """The same code with what is late among its globals made, under another name with ``suffix``: Numba's cache tells
    variants of a function apart by nothing else.  Needs ``_loading``.
    """
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = names.get(name)
        if isinstance(value, Late):
            names[name] = value.made()
    copy = FunctionType(
        function.__code__, names, function.__name__ + suffix, function.__defaults__, function.__closure__
    )
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__ + suffix
    return copy


class Kernel:
    """A compiled function; calling it before ``load`` loads it.

    ``short``: the same function for small inputs.  It keeps the GIL, because giving it up and waiting for it again
    costs a lookup more than the work; itself if there is no such variant.
    """

    __slots__ = ("_call", "_dispatcher", "_nogil", "_suffix", "function", "name", "short", "signatures")

    def __init__(
        self,
        function: FunctionType,
        signatures: tuple[Signature, ...],
        *,
        nogil: bool,
        short: bool = False,
        suffix: str = "",
    ) -> None:
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}{suffix}"
        self.function = function
        self.signatures = signatures
        self._nogil = nogil
        self._suffix = suffix
        self._dispatcher: Any = None  # guarded by _loading
        # either the loading call or the dispatcher itself; replaced once, by any thread, with an equal value
        self._call: Callable[..., Any] = self._first_call
        self.short = Kernel(function, signatures, nogil=False, suffix="_short") if short else self

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    def _first_call(self, *args: Any) -> Any:
        self.load()
        return self._call(*args)

    @property
    def dispatcher(self) -> Any:
        """Numba's own, which may have loaded nothing yet."""
        with _loading:
            return self._made()

    def _made(self) -> Any:
        """The dispatcher.  Needs ``_loading``."""
        if self._dispatcher is None:
            jitted = _numba.njit(cache=True, nogil=self._nogil, no_cfunc_wrapper=True)
            self._dispatcher = jitted(_prepared(self.function, self._suffix))
        return self._dispatcher

    @property
    def loaded(self) -> bool:
        return self._dispatcher is not None and self._call is self._dispatcher

    def load(self) -> None:
        """Compiles every signature, or loads it from the cache.  Idempotent; threads take turns."""
        with _loading:
            if self.loaded:
                return
            dispatcher = self._made()
            for signature in self.signatures:
                dispatcher.compile(signature.numba())
            dispatcher.disable_compile()
            self._call = dispatcher


def kernel(*signatures: Signature, nogil: bool = True, short: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator.  ``nogil=False`` for kernels that take less than about 50 µs; ``short=True`` for a second variant that
    keeps the GIL, for those that also serve lookups."""

    def wrap(function: Callable[..., Any]) -> Kernel:
        return Kernel(cast(FunctionType, function), signatures, nogil=nogil, short=short)

    return wrap
