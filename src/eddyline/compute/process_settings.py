"""What ``UpdateConfiguration`` sets for the whole process.  One runtime applies it: Solo, or maintenance.

A process that is the replica's own (``OwnSettings``) applies everything.  One that is somebody else's
(``GuestSettings``) only lets the thread switch interval be shortened, shared by all databases in it, and gets it back
at the end.  Whatever was set can be taken back: each setting has a value that means what the process began with.
Settings take effect when the first maintaining worker comes to the command: on a process's first connection the
interactive runtime may serve with the former values until then.
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
from typing import ClassVar, Final

import pyarrow as pa

from eddyline.compute.gil_sampler import GilSampler
from eddyline.compute.measures import Durations
from eddyline.compute.thread_placement import ThreadPlacement
from eddyline.errors import make_error

__all__ = [
    "CORE_AFFINITY",
    "GIL_SAMPLING",
    "GUEST_SWITCH_INTERVAL_US",
    "MAINTENANCE_NICE",
    "MEMORY_POOLS",
    "SWITCH_INTERVAL",
    "GuestSettings",
    "OwnSettings",
    "check_process_settings",
    "domain_if_outside",
    "set_aside",
]

_log = logging.getLogger("eddyline.process")
SWITCH_INTERVAL: Final = "switch_interval_us"
CORE_AFFINITY: Final = "core_affinity"
GIL_SAMPLING: Final = "gil_sampling"
MAINTENANCE_NICE: Final = "maintenance_nice"
#: With the interpreter's default of 5 ms, a lookup may wait that long for a thread that computes in Python.
GUEST_SWITCH_INTERVAL_US: Final = 500

_FOUND_POOL: Final = pa.default_memory_pool()
_FOUND_CPU_THREADS: Final = pa.cpu_count()
_FOUND_IO_THREADS: Final = pa.io_thread_count()
_POOLS: Final[dict[str, Callable[[], pa.MemoryPool]]] = {
    "default": lambda: _FOUND_POOL,
    "system": pa.system_memory_pool,
    "mimalloc": pa.mimalloc_memory_pool,
    "jemalloc": pa.jemalloc_memory_pool,
}
#: those that this build of Arrow has
MEMORY_POOLS: Final = ("default", *(name for name in _POOLS if name in pa.supported_memory_backends()))
_GC_POLICIES: Final = ("default", "freeze", "off")


def _set_switch_interval(value: str) -> None:
    sys.setswitchinterval(int(value) / 1e6)


def _set_pool(value: str) -> None:
    pa.set_memory_pool(_POOLS[value]())


def _set_cpu_threads(value: str) -> None:
    pa.set_cpu_count(int(value) or _FOUND_CPU_THREADS)


def _set_io_threads(value: str) -> None:
    pa.set_io_thread_count(int(value) or _FOUND_IO_THREADS)


def set_aside() -> None:
    """Whatever is alive is no longer visited by full collections.

    Costs one of what was not set aside before: 0.1 s of CPU once everything is loaded, while no other thread runs.
    So a process does it before it serves; afterwards it is short.
    """
    gc.collect()
    gc.freeze()


def _set_gc(value: str) -> None:
    """``freeze``: see ``set_aside``.  Others give back what was set aside, and so does the end of the policy."""
    if value == "freeze":
        gc.enable()
        set_aside()
        return
    gc.unfreeze()
    if value == "off":
        gc.disable()
    else:
        gc.enable()


def _set_memory_limit(value: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = int(value) or resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _set_scratch(value: str) -> None:
    tempfile.tempdir = value or None


def _set_nothing(_value: str) -> None:
    """Whoever asks for the value obeys it."""


def _number(least: int, most: int) -> Callable[[str], bool]:
    return lambda value: value.isascii() and value.isdigit() and least <= int(value) <= most


def _switch(value: str) -> bool:
    return value in ("on", "off")


_ON_OR_OFF: Final = "on or off"
#: name: (whether a text is a value of it, what one must be, what sets it)
_SETTINGS: Final[dict[str, tuple[Callable[[str], bool], str, Callable[[str], None]]]] = {
    SWITCH_INTERVAL: (_number(1, 10_000_000), "1 to 10000000", _set_switch_interval),
    "arrow_memory_pool": (lambda v: v in MEMORY_POOLS, f"one of {', '.join(MEMORY_POOLS)}", _set_pool),
    "arrow_cpu_threads": (_number(0, 1024), "0 (Arrow's choice) to 1024", _set_cpu_threads),
    "arrow_io_threads": (_number(0, 1024), "0 (Arrow's choice) to 1024", _set_io_threads),
    "gc_policy": (lambda v: v in _GC_POLICIES, "one of default, freeze, off", _set_gc),
    "memory_limit_bytes": (_number(0, 1 << 62), "a number of bytes; 0 is none", _set_memory_limit),
    "scratch_directory": (lambda v: not v or Path(v).is_absolute(), "an absolute path, or empty", _set_scratch),
    "workload_class": (lambda v: len(v) <= 64 and v.isprintable(), "a label of up to 64 characters", _set_nothing),
    # What these set belongs to one process's settings.
    CORE_AFFINITY: (_switch, _ON_OR_OFF, _set_nothing),
    GIL_SAMPLING: (_switch, _ON_OR_OFF, _set_nothing),
    MAINTENANCE_NICE: (_number(0, 19), "0 to 19", _set_nothing),
}


def domain_if_outside(name: str, value: str) -> str | None:
    """None if ``value`` is one of the setting's; otherwise what one must be."""
    fits, domain, _ = _SETTINGS[name]
    return None if fits(value) else domain


def check_process_settings(parameters: Mapping[str, str]) -> None:
    """42704 for an unknown name, 22023 for a value that is none of its."""
    for name, value in parameters.items():
        if name not in _SETTINGS:
            raise make_error("42704", f'unrecognized process setting "{name}"', hint=f"Known: {', '.join(_SETTINGS)}.")
        domain = domain_if_outside(name, value)
        if domain is not None:
            raise make_error("22023", f'invalid value for process setting "{name}": "{value}"', hint=f"It is {domain}.")


class OwnSettings:
    """Of a process that hosts a replica and nothing else.  One thread applies; any thread reads."""

    def __init__(self) -> None:
        #: what is in force
        self.values: dict[str, str] = {}
        #: how often something was applied
        self.applications = 0
        #: waits for the interpreter's lock, where they are sampled
        self.gil = Durations()
        self._sampler = GilSampler(self.gil)
        #: what sets a value of this process, besides what sets one of any
        self._own: dict[str, Callable[[str], None]] = {
            GIL_SAMPLING: lambda value: self._sampler.run(on=value == "on"),
        }

    def place(self, placement: ThreadPlacement) -> None:
        """Whose threads ``core_affinity`` and ``maintenance_nice`` are about.  Call it before anything is applied."""
        self._own[CORE_AFFINITY] = lambda value: placement.set_affinity(on=value == "on")
        self._own[MAINTENANCE_NICE] = lambda value: placement.set_nice(int(value))

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
                self._own.get(name, _SETTINGS[name][2])(value)
            except (OSError, ValueError, pa.ArrowException) as error:
                _log.warning("process setting %s cannot be %s: %s", name, value, error)
                continue
            self.values = {**self.values, name: value}


class GuestSettings:
    """One database's share in the switch interval of its host's process; the last ``close`` restores what was found.

    In force is the shortest of what the databases ask for and what the host has.  What the host sets in between is its
    own from then on.
    """

    _lock = threading.Lock()
    _wanted: ClassVar[dict[GuestSettings, float]] = {}  # seconds; guarded by _lock, like the rest
    _hosts = 0.0
    _in_force = 0.0

    def __init__(self) -> None:
        self.applications = 0
        self._closed = False  # guarded by _lock

    def apply(self, parameters: Mapping[str, str]) -> None:
        """Only ever makes the interval shorter than the host's.  Other settings are the host's."""
        check_process_settings(parameters)
        self.applications += 1
        value = parameters.get(SWITCH_INTERVAL)
        if value is None:
            return
        cls = GuestSettings
        with cls._lock:
            if self._closed:
                return
            if not cls._wanted or sys.getswitchinterval() != cls._in_force:
                cls._hosts = sys.getswitchinterval()
            cls._wanted[self] = int(value) / 1e6
            cls._set()

    def close(self) -> None:
        """Twice is harmless."""
        cls = GuestSettings
        with cls._lock:
            self._closed = True
            if cls._wanted.pop(self, None) is not None and sys.getswitchinterval() == cls._in_force:
                cls._set()

    @classmethod
    def _set(cls) -> None:
        sys.setswitchinterval(min((cls._hosts, *cls._wanted.values())))
        cls._in_force = sys.getswitchinterval()  # rounded by the interpreter
