"""Whether all kernels are in Numba's cache: a file says so, for these sources, this Python, Numba and processor.

It is found and read without Numba, which takes longer to import than a start may.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ["Stamp", "fingerprint_of"]

_HERE: Final = Path(__file__).parent
#: as Numba's files have it in their names
_VERSION: Final = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
#: of /proc/cpuinfo: the first processor's entry and more
_CPU_BYTES: Final = 8192
_CPU_LINES: Final = ("model name", "flags", "Features", "CPU implementer", "CPU part", "isa", "cpu\t")


class Stamp:
    """``kernels``: how many there are.  ``path``: by default beside the cache, where that can be told.

    Another version of Python, or a copy of the package elsewhere, has its own.
    """

    def __init__(self, kernels: int, path: Path | None = None) -> None:
        self._kernels = kernels
        place = hashlib.sha256(str(_HERE).encode()).hexdigest()[:12]
        self.path = _folder() / f"eddyline-kernels-{_VERSION}-{place}" if path is None else path

    def says(self, fingerprint: str) -> bool:
        """Whether all kernels of that fingerprint are in the cache, which is still there."""
        try:
            found, _, cache = self.path.read_text().partition("\n")
            return found == fingerprint and self._indexes(cache) >= self._kernels
        except OSError:  # there is none yet, or nobody may read it: then the kernels themselves decide
            return False

    def _indexes(self, cache: str) -> int:
        """How many functions the cache has for this version of Python."""
        return sum(name.endswith(f".{_VERSION}.nbi") for name in os.listdir(cache))

    def write(self, fingerprint: str, cache: str) -> None:
        """``cache``: the folder that has them.  By rename: another process never sees half of it."""
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(f"{fingerprint}\n{cache}")
            draft.replace(self.path)
        except OSError:  # where only others write: the next start looks at every kernel again
            if draft.exists():
                draft.unlink()


def _folder() -> Path:
    """Where Numba is told to put its cache, or puts it if it can; else the user's own."""
    told = os.environ.get("NUMBA_CACHE_DIR")
    if told:
        return Path(told)
    beside = _HERE / "__pycache__"
    if os.access(beside if beside.exists() else _HERE, os.W_OK):
        return beside
    caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(caches) if caches else Path.home() / ".cache") / "eddyline"


def fingerprint_of(modules: Iterable[ModuleType]) -> str:
    """Of all that makes Numba compile anew: versions, the processor, its settings, the sources."""
    found = [sys.version, _processor(), *(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("NUMBA_"))]
    found += [_state_of(Path(str(module.__file__))) for module in modules]
    for name in ("numba", "llvmlite"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(_state_of(Path(spec.origin).with_name("_version.py")))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _state_of(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:  # an installation without that file: its place has to do
        return str(path)
    return f"{path} {status.st_mtime_ns} {status.st_size}"


def _processor() -> str:
    """What tells processors apart that code is compiled for."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line for line in file.read(_CPU_BYTES).splitlines() if line.startswith(_CPU_LINES)]
        return "\n".join(dict.fromkeys(lines))
    except OSError:  # another system than Linux
        return os.environ.get("PROCESSOR_IDENTIFIER") or (" ".join(os.uname()) if hasattr(os, "uname") else "")
