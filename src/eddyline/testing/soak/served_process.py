"""A server in a process of its own, and what the system says of it: Linux only, it reads /proc."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

__all__ = ["ServedProcess", "Usage"]

_PAGE = 4096


@dataclass(frozen=True)
class Usage:
    """``resident``: bytes."""

    resident: int
    threads: int
    files: int


class ServedProcess:
    """``with ServedProcess(directory) as served``: it listens at ``served.port``; SIGTERM ends it.

    ``errors``: what its log said of level ERROR.  ``status``: its exit status, once it has ended.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._http = ""
        self._log: list[str] = []
        self.port = 0
        self.status: int | None = None
        self._process: subprocess.Popen[str]
        self._reader: threading.Thread

    def __enter__(self) -> ServedProcess:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "eddyline", "serve", "--data", str(self._directory), "--listen", "127.0.0.1:0",
             "--http", "127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)
            if (http := re.search(r"http://[0-9.:]+", line)) is not None:
                self._http = http[0]
            if (found := re.search(r"clients at 127\.0\.0\.1:(\d+)", line)) is not None:
                self.port = int(found[1])
                break
        else:
            raise AssertionError("the server did not start: " + "".join(self._log))
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        return self

    def _read(self, lines: object) -> None:
        assert self._process.stderr is not None
        self._log.extend(self._process.stderr)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self.status = self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=10)

    @property
    def errors(self) -> list[str]:
        return [line for line in self._log if " ERROR " in line or "Traceback" in line]

    def usage(self) -> Usage:
        process = Path(f"/proc/{self._process.pid}")
        pages = int((process / "statm").read_text().split()[1])
        return Usage(pages * _PAGE, len(os.listdir(process / "task")), len(os.listdir(process / "fd")))

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        with urllib.request.urlopen(f"{self._http}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert found is not None, f"there is no metric {name}"
        return float(found[1])
