"""Process settings as SQL has them: names, values with units, and what they become in ``UpdateConfiguration``.

A replica in processes of its own obeys all of them.  In a program's own process everything but the thread switch
interval is the program's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eddyline.adapter.memory_size import bytes_of, memory_size
from eddyline.adapter.switch import on_or_off
from eddyline.compute.process_settings import (
    CORE_AFFINITY,
    GUEST_SWITCH_INTERVAL_US,
    MAINTENANCE_NICE,
    SWITCH_INTERVAL,
    domain_if_outside,
)
from eddyline.errors import Error, make_error

__all__ = ["PROCESS_SETTINGS", "THREAD_SWITCH_INTERVAL", "WORKLOAD_CLASS", "ProcessSetting", "encoded", "host_refusal"]

THREAD_SWITCH_INTERVAL: Final = "thread_switch_interval"
WORKLOAD_CLASS: Final = "workload_class"
_UNITS_US: Final = {"s": 1_000_000, "ms": 1000, "us": 1}


@dataclass(frozen=True, slots=True)
class ProcessSetting:
    """``check`` gives a value's shortest text, or raises 22023; ``encode`` makes of that what ``parameter`` says."""

    default: str
    parameter: str
    check: Callable[[str, str], str]
    encode: Callable[[str], str] = str


def _in_domain(name: str, parameter: str, value: str, shown: str) -> None:
    domain = domain_if_outside(parameter, value)
    if domain is not None:
        raise make_error("22023", f'invalid value for parameter "{name}": "{shown}"', hint=f"It is {domain}.")


def _plain(parameter: str, normal: Callable[[str], str]) -> Callable[[str, str], str]:
    def check(name: str, text: str) -> str:
        value = normal(text)
        _in_domain(name, parameter, value, text)
        return value

    return check


def _count(text: str) -> str:
    stripped = text.strip()
    return str(int(stripped)) if stripped.isascii() and stripped.isdigit() else stripped


def _word(text: str) -> str:
    return text.strip().lower()


def _interval(name: str, text: str) -> str:
    """A number without unit is microseconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s)?\s*", text)
    if match is None:
        hint = 'Valid units for this parameter are "us", "ms" and "s".'
        raise make_error("22023", f'invalid value for parameter "{name}": "{text}"', hint=hint)
    microseconds = round(float(match[1]) * _UNITS_US[match[2] or "us"])
    if domain_if_outside(SWITCH_INTERVAL, str(microseconds)) is not None:
        raise make_error("22023", f'{text.strip()} is outside the valid range for parameter "{name}" (1us .. 10s)')
    unit = next(u for u, factor in _UNITS_US.items() if microseconds % factor == 0)
    return f"{microseconds // _UNITS_US[unit]}{unit}"


def _microseconds(text: str) -> str:
    match = re.fullmatch(r"(\d+)(us|ms|s)", text)
    assert match is not None, text
    return str(int(match[1]) * _UNITS_US[match[2]])


#: by name; the default of a replica in processes of its own
PROCESS_SETTINGS: Final = {
    THREAD_SWITCH_INTERVAL: ProcessSetting(f"{GUEST_SWITCH_INTERVAL_US}us", SWITCH_INTERVAL, _interval, _microseconds),
    "arrow_memory_pool": ProcessSetting("default", "arrow_memory_pool", _plain("arrow_memory_pool", _word)),
    "arrow_cpu_threads": ProcessSetting("0", "arrow_cpu_threads", _plain("arrow_cpu_threads", _count)),
    "arrow_io_threads": ProcessSetting("0", "arrow_io_threads", _plain("arrow_io_threads", _count)),
    "gc_policy": ProcessSetting("freeze", "gc_policy", _plain("gc_policy", _word)),
    "process_memory_limit": ProcessSetting(
        "0", "memory_limit_bytes", memory_size, lambda text: str(bytes_of(text) or 0)
    ),
    "scratch_directory": ProcessSetting("", "scratch_directory", _plain("scratch_directory", str)),
    WORKLOAD_CLASS: ProcessSetting("", "workload_class", _plain("workload_class", str.strip)),
    CORE_AFFINITY: ProcessSetting("off", CORE_AFFINITY, on_or_off),
    MAINTENANCE_NICE: ProcessSetting("0", MAINTENANCE_NICE, _plain(MAINTENANCE_NICE, _count)),
}


def encoded(name: str, value: str) -> tuple[str, str]:
    """(parameter, value) for ``UpdateConfiguration``, of a process setting's checked value."""
    setting = PROCESS_SETTINGS[name]
    return setting.parameter, setting.encode(value)


def host_refusal(name: str, *, may_set: bool) -> Error | None:
    """Why the setting is not the database's to set where its replica is in the program's own process: 0A000.

    ``may_set``: whether the thread switch interval is.
    """
    if name not in PROCESS_SETTINGS or (may_set and name == THREAD_SWITCH_INTERVAL):
        return None
    return make_error(
        "0A000",
        f'"{name}" belongs to the program that this database runs in',
        hint="Open it with process_settings=True."
        if name == THREAD_SWITCH_INTERVAL
        else "connect(processes=1) gives the replica a process of its own.",
    )
