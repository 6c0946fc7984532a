"""Compiling every kernel before the database says it is ready, where that was never done, and loading them.

A kernel loads by itself when it is called first; to load them all takes a third of a second.  Who is to answer evenly
from the first moment on waits for that (``warm``).  A program that has just begun has other things to do meanwhile:
``warm_soon`` leaves it to a thread, which one kernel after the other takes from whoever would call it first.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from types import CodeType, FunctionType
from typing import IO, Final

from eddyline.kernels import cells, kernel, memory, orders, row_order, signatures
from eddyline.kernels.kernel import Late
from eddyline.kernels.registry import KERNELS, MODULES
from eddyline.kernels.stamp import Stamp, fingerprint_of

__all__ = ["warm", "warm_soon"]

_log = logging.getLogger("eddyline.kernels")

#: more compile no faster, because each loads the compiler first
_MOST_PROCESSES: Final = 4
#: whose code is in the cache, or says what is to be compiled
_SOURCES: Final = (*MODULES, cells, kernel, memory, orders, row_order, signatures)
#: the package as a bare name, because its own __init__ loads a whole database, which takes longer than most kernels
_PROGRAM: Final = """
import sys, types
package = types.ModuleType("eddyline")
package.__path__ = [sys.argv[1]]
sys.modules["eddyline"] = package
from eddyline.kernels.compiler import main
main()
"""


def warm(progress: Callable[[int, int], None] | None = None) -> None:
    """Loads every kernel from the cache, about 5 ms each; none compiles later.

    Where a stamp does not say that they are all in it, they are compiled first, by a process per core;
    ``progress(done, all)`` is called then, before the first kernel and after each.  About 30 s of CPU.
    Idempotent; safe from several threads and processes.
    """
    stamp, fingerprint = _stamp(), fingerprint_of(_SOURCES)
    known = stamp.says(fingerprint)
    if not known:
        _compile(progress or (lambda done, total: None))
    for each in KERNELS:
        each.load()
    cache = KERNELS[0].dispatcher.stats.cache_path
    if cache is not None and not known:
        stamp.write(fingerprint, cache)


def warm_soon(progress: Callable[[int, int], None] | None = None) -> None:
    """As ``warm``, but returns once all kernels are in the cache: they are loaded by a thread, and on first use."""
    if not _stamp().says(fingerprint_of(_SOURCES)):
        warm(progress)
    elif not all(each.loaded for each in KERNELS):
        _in_background()


#: taken, for good, by whoever has a thread load them
_loader = threading.Lock()


def _forget_loader() -> None:
    """In a forked child, which has no such thread."""
    if _loader.locked():
        _loader.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loader)


def _in_background() -> None:
    if _loader.acquire(blocking=False):
        try:
            # No daemon: the interpreter's end waits for the kernel that is being loaded.
            threading.Thread(target=_load_each, name="eddyline-kernels").start()
        except RuntimeError as problem:  # the system has no thread left: each is loaded when it is called
            _log.info("kernels are not loaded ahead of their first calls: %s", problem)


def _load_each() -> None:
    """Until all are there, or the program ends."""
    main = threading.main_thread()
    for each in KERNELS:
        if not main.is_alive():
            return
        try:
            each.load()
        except Exception:  # noqa: BLE001 - whatever it was: whoever calls the kernel first meets it again
            _log.warning("a kernel could not be loaded ahead of its first call: %s", each.name, exc_info=True)


def _stamp() -> Stamp:
    return Stamp(len(KERNELS))


def _compile(progress: Callable[[int, int], None]) -> None:
    """Largest first, each by the next process that is free.  The processes only save time: what they leave undone
    the caller compiles as it loads it."""
    progress(0, len(KERNELS))
    waiting = sorted(range(len(KERNELS)), key=lambda k: _weight(KERNELS[k].function, set()))
    processes = _start(min(_cores(), _MOST_PROCESSES))
    done = 0
    try:
        with DefaultSelector() as selector:
            for process in processes:
                selector.register(_out(process), EVENT_READ, process)
                _next(process, waiting)
            while selector.get_map():
                for key, _ in selector.select():
                    process = key.data
                    if not _out(process).readline():  # it ended: out of work, or of luck
                        selector.unregister(_out(process))
                        continue
                    done += 1
                    progress(done, len(KERNELS))
                    _next(process, waiting)
    finally:
        for process in processes:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
            process.wait()
    if done < len(KERNELS):
        for each in KERNELS:
            each.load()
        progress(len(KERNELS), len(KERNELS))


def _next(process: subprocess.Popen[bytes], waiting: list[int]) -> None:
    pipe = process.stdin
    assert pipe is not None
    try:
        if waiting:
            pipe.write(b"%d\n" % waiting.pop())
            pipe.flush()
        else:
            pipe.close()
    except BrokenPipeError:  # its end shows as the end of its output
        return


def _out(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(count: int) -> list[subprocess.Popen[bytes]]:
    """None where there are no processes, or where the executable is no Python but a program that embeds it."""
    if not sys.executable or not Path(sys.executable).name.lower().startswith("python"):
        return []
    path = os.pathsep.join(p for p in sys.path if p)
    started: list[subprocess.Popen[bytes]] = []
    try:
        while len(started) < count:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, str(Path(__file__).parent.parent)],
                    env={**os.environ, "PYTHONPATH": path},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                )
            )
    except OSError:  # no more processes here: those there are do it
        return started
    return started


def _weight(function: FunctionType, seen: set[CodeType]) -> int:
    """Bytes of bytecode of a function and all jitted ones it calls: roughly what compiling it takes."""
    code = function.__code__
    if code in seen:
        return 0
    seen.add(code)
    return len(code.co_code) + sum(_weight(callee, seen) for callee in _callees(function))


def _callees(function: FunctionType) -> Iterable[FunctionType]:
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, Late) and called.function is not None:
            yield called.function
