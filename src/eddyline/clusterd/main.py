"""``eddyline clusterd``: from its arguments to its exit status."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from types import FrameType
from typing import Final

from eddyline.clusterd.config import clusterd_config
from eddyline.clusterd.host import Host
from eddyline.compute.process_settings import OwnSettings, set_aside
from eddyline.errors import Error
from eddyline.kernels.warm import warm

__all__ = ["run_clusterd"]

_log = logging.getLogger("eddyline.clusterd")
_USAGE: Final = 2
_NO_SOCKET: Final = 73


class _OneLine(logging.Formatter):
    """A record is one line, whatever happened, so that a supervisor's log stays readable."""

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(line.strip() for line in super().format(record).splitlines() if line.strip())


class _Labels(logging.Filter):
    """Gives each record of the process ``workload_class``, and ``label``: how it is shown."""

    def __init__(self, settings: OwnSettings) -> None:
        super().__init__()
        self._settings = settings

    def filter(self, record: logging.LogRecord) -> bool:
        workload_class = self._settings.workload_class
        label = f" workload_class={workload_class}" if workload_class else ""
        record.__dict__.update(workload_class=workload_class, label=label)
        return True


def run_clusterd(arguments: argparse.Namespace) -> int:
    """The exit status; does not return after a failure, so that a thread that hangs cannot keep the process."""
    settings = OwnSettings()
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Labels(settings))
    handler.setFormatter(_OneLine("%(asctime)s clusterd[%(process)d]%(label)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        config = clusterd_config(arguments)
    except Error as error:
        _log.error("%s", error)
        return _USAGE
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    warm()
    set_aside()  # when the controller asks for it, nobody waits for long
    try:
        host = Host(config, settings)
    except Error as error:
        _log.error("%s", error)
        return _NO_SOCKET
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: host.stop())
    status = host.run()
    if status:
        logging.shutdown()
        os._exit(status)
    return status


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Before there is anything to stop."""
    raise SystemExit(0)
