"""What ``UpdateConfiguration`` sets for the whole process.  One runtime applies it: Solo, or maintenance.

A process that is the replica's own (``OwnSettings``) applies everything.  One that is somebody else's
(``GuestSettings``) only lets the thread switch interval be shortened, shared by all databases in it, and gets it back
at the end.  Settings take effect when the first maintaining worker comes to the command: on a process's first
connection the interactive runtime may serve with the former values until then.
"""

from __future__ import annotations

import gc
import logging
import resource
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from eddyline.errors import make_error

__all__ = ["GUEST_SWITCH_INTERVAL_US", "SWITCH_INTERVAL", "GuestSettings", "OwnSettings", "check_process_settings"]

_log = logging.getLogger("eddyline.process")
SWITCH_INTERVAL: Final = "switch_interval_us"
#: With the interpreter's default of 5 ms, a lookup may wait that long for a thread that computes in Python.
GUEST_SWITCH_INTERVAL_US: Final = 500

_POOLS: Final[dict[str, Callable[[], pa.MemoryPool]]] = {
    "system": pa.system_memory_pool,
    "mimalloc": pa.mimalloc_memory_pool,
    "jemalloc": pa.jemalloc_memory_pool,
}
_GC_POLICIES: Final = ("default", "freeze", "off")


def _set_switch_interval(value: str) -> None:
    sys.setswitchinterval(int(value) / 1e6)


def _set_pool(value: str) -> None:
    pa.set_memory_pool(_POOLS[value]())


def _set_gc(value: str) -> None:
    """``freeze``: what is alive is set aside, so that full collections no longer visit it."""
    gc.unfreeze()
    if value == "off":
        gc.disable()
        return
    gc.enable()
    if value == "freeze":
        gc.collect()
        gc.freeze()


def _set_memory_limit(value: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = int(value) or resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _set_scratch(value: str) -> None:
    tempfile.tempdir = value or None


def _number(least: int, most: int) -> Callable[[str], bool]:
    return lambda value: value.isascii() and value.isdigit() and least <= int(value) <= most


#: name: (whether a text is a value of it, what one must be, what sets it)
_SETTINGS: Final[dict[str, tuple[Callable[[str], bool], str, Callable[[str], None]]]] = {
    SWITCH_INTERVAL: (_number(1, 10_000_000), "1 to 10000000", _set_switch_interval),
    "arrow_memory_pool": (lambda v: v in pa.supported_memory_backends(), "a memory pool of Arrow's", _set_pool),
    "arrow_cpu_threads": (_number(1, 1024), "1 to 1024", lambda v: pa.set_cpu_count(int(v))),
    "arrow_io_threads": (_number(1, 1024), "1 to 1024", lambda v: pa.set_io_thread_count(int(v))),
    "gc_policy": (lambda v: v in _GC_POLICIES, "one of default, freeze, off", _set_gc),
    "memory_limit_bytes": (_number(0, 1 << 62), "a number of bytes; 0 is none", _set_memory_limit),
    "scratch_directory": (lambda v: not v or Path(v).is_absolute(), "an absolute path, or empty", _set_scratch),
    "workload_class": (lambda v: len(v) <= 64 and v.isprintable(), "a label of up to 64 characters", lambda _v: None),
}


def check_process_settings(parameters: Mapping[str, str]) -> None:
    """42704 for an unknown name, 22023 for a value that is none of its."""
    for name, value in parameters.items():
        if name not in _SETTINGS:
            raise make_error("42704", f'unrecognized process setting "{name}"', hint=f"Known: {', '.join(_SETTINGS)}.")
        fits, domain, _ = _SETTINGS[name]
        if not fits(value):
            raise make_error("22023", f'invalid value for process setting "{name}": "{value}"', hint=f"It is {domain}.")


class OwnSettings:
    """Of a process that hosts a replica and nothing else.  One thread applies; any thread reads."""

    def __init__(self) -> None:
        #: what is in force
        self.values: dict[str, str] = {}
        #: how often something was applied
        self.applications = 0

    @property
    def workload_class(self) -> str:
        """The label under which this process's work is told apart."""
        return self.values.get("workload_class", "")

    def apply(self, parameters: Mapping[str, str]) -> None:
        """Applies what differs from what is in force.  What the system refuses is logged, and left as it was."""
        check_process_settings(parameters)
        self.applications += 1
        for name, value in parameters.items():
            if self.values.get(name) == value:
                continue
            try:
                _SETTINGS[name][2](value)
            except (OSError, ValueError, pa.ArrowException) as error:
                _log.warning("process setting %s cannot be %s: %s", name, value, error)
                continue
            self.values = {**self.values, name: value}


class GuestSettings:
    """One database's share in the switch interval of its host's process; the last ``close`` restores what was found."""

    _lock = threading.Lock()
    _users = 0  # guarded by _lock, like the next
    _before = 0.0

    def __init__(self) -> None:
        self.applications = 0
        self._holding = False  # guarded by _lock, like the next
        self._closed = False

    def apply(self, parameters: Mapping[str, str]) -> None:
        """Only ever shortens the interval.  Other settings are the host's."""
        check_process_settings(parameters)
        self.applications += 1
        value = parameters.get(SWITCH_INTERVAL)
        if value is None:
            return
        cls = GuestSettings
        with cls._lock:
            if self._closed:
                return
            if not self._holding:
                self._holding = True
                if cls._users == 0:
                    cls._before = sys.getswitchinterval()
                cls._users += 1
            sys.setswitchinterval(min(sys.getswitchinterval(), int(value) / 1e6))

    def close(self) -> None:
        """Twice is harmless."""
        cls = GuestSettings
        with cls._lock:
            self._closed = True
            if not self._holding:
                return
            self._holding = False
            cls._users -= 1
            if cls._users == 0:
                sys.setswitchinterval(cls._before)
