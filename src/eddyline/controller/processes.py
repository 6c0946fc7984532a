"""The processes of one replica: spawned, watched, ended, and spawned again after one of them died.

They are children of this process.  A connection to them may come and go; they keep what they have built.  When one dies
all of them are replaced: a replica lives and dies whole.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from eddyline.controller.remote import RemoteReplica
from eddyline.errors import Error, make_error
from eddyline.protocol.messages import Response
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["ReplicaProcesses", "ReplicaSpec", "process_arguments"]

_log = logging.getLogger("eddyline.controller")
#: compiling all kernels for the first time takes a minute or two
_START_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 10.0
#: how soon it is seen that a process has ended while others start
_LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """What a replica is made of: ``workers`` in each of ``processes``, with a runtime for reads or without."""

    workers: int = 1
    processes: int = 1
    interactive: bool = True
    orphan_seconds: float = 60.0


def process_arguments(spec: ReplicaSpec, process: int, directory: Path, *, hash_seed: int) -> list[str]:
    """The arguments of ``eddyline clusterd`` for one process; its sockets are in ``directory``."""

    def layout(runtime: str) -> str:
        addresses = [str(directory / f"{runtime}{p}") for p in range(spec.processes)] if spec.processes > 1 else []
        return json.dumps({"workers": spec.workers, "processes": spec.processes, "addresses": addresses})

    arguments = [
        f"--listen={directory / f'control{process}'}",
        f"--process={process}",
        f"--hash-seed={hash_seed}",
        f"--orphan-seconds={spec.orphan_seconds:g}",
        f"--compute-timely-config={layout('compute')}",
    ]
    if spec.interactive:
        arguments.append(f"--interactive-compute-timely-config={layout('interactive')}")
    return arguments


class ReplicaProcesses:
    """``spec`` is asked each time processes are spawned: what it says then holds for as long as they live.

    ``epoch``: of the database, which the processes are told.

    One thread calls, but for ``close``, which ends a start that is under way.
    """

    def __init__(self, spec: Callable[[], ReplicaSpec], store: TableStore, hasher: Hasher, *, epoch: int = 0) -> None:
        self._epoch = epoch
        self._spec = spec
        self._store = store
        self._hasher = hasher
        self._directory = Path(tempfile.mkdtemp(prefix="eddyline-"))
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []  # guarded by _lock, like the rest
        self._addresses: list[str] = []
        self._closed = False
        self.starts = 0

    @property
    def pids(self) -> list[int]:
        """Of the present processes, dead or alive, by ordinal."""
        with self._lock:
            return [child.pid for child in self._children]

    def connect(self, listener: Callable[[Response], None]) -> RemoteReplica:
        """A connection to the processes as they are; if one is dead, or cannot be reached, to new ones.

        Waits until they are up.  58000 if they do not come up; 57P01 once closed.
        """
        if self._alive():
            try:
                return self._reach(listener)
            except Error as error:
                _log.warning("the replica's processes cannot be reached and are replaced: %s", error.message)
        self._end_children()
        self._start()
        return self._reach(listener)

    def _reach(self, listener: Callable[[Response], None]) -> RemoteReplica:
        return RemoteReplica(self._addresses, self._store, self._hasher, listener, epoch=self._epoch)

    def close(self) -> None:
        """Ends the processes.  Twice is harmless."""
        with self._lock:
            self._closed = True
        self._end_children()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _alive(self) -> bool:
        with self._lock:
            return bool(self._children) and all(child.poll() is None for child in self._children)

    def _start(self) -> None:
        spec, seed = self._spec(), int(self._hasher.seed)
        ready: list[int] = []
        try:
            with self._lock:
                if self._closed:
                    raise make_error("57P01", "the database was closed")
                self.starts += 1
                self._addresses = [str(self._directory / f"control{p}") for p in range(spec.processes)]
                for process in range(spec.processes):
                    arguments = process_arguments(spec, process, self._directory, hash_seed=seed)
                    ready.append(self._spawn(process, arguments))
            self._wait_ready(ready)
        except BaseException:
            self._end_children()
            raise
        finally:
            for descriptor in ready:
                os.close(descriptor)

    def _wait_ready(self, ready: Sequence[int]) -> None:
        """Until each process has said that it listens; 58000 once one of them has ended, or time is up.

        One that has said so may end while others still wait for it: they are looked at all the time.
        """
        deadline = time.monotonic() + _START_SECONDS
        waiting = dict(enumerate(ready))
        while waiting:
            readable, _, _ = select.select(list(waiting.values()), [], [], _LOOK_SECONDS)
            for process, descriptor in list(waiting.items()):
                if descriptor in readable:
                    if not os.read(descriptor, 1):
                        raise _not_up(process)
                    del waiting[process]
            with self._lock:
                ended = [p for p, child in enumerate(self._children) if child.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise _not_up(min(ended, default=min(waiting, default=0)))

    def _spawn(self, process: int, arguments: list[str]) -> int:
        """A descriptor that becomes readable when the process listens, or dies.  Needs ``_lock``.

        58000 if the system has no descriptor, process or thread left for it; nothing stays open then.
        """
        try:
            reading, writing = os.pipe()
        except OSError as error:
            raise _unstarted(process, error) from error
        try:
            child = self._popen(arguments, writing)
            self._children.append(child)
            _start_relay(process, child)
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
            os.close(reading)
            raise _unstarted(process, error) from error
        finally:
            os.close(writing)
        return reading

    @staticmethod
    def _popen(arguments: list[str], writing: int) -> subprocess.Popen[bytes]:
        # Nothing of the host's program is run again: only the package is to be found.
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.Popen(
            [sys.executable, "-m", "eddyline", "clusterd", *arguments, f"--ready-fd={writing}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[writing],
            env={**os.environ, "PYTHONPATH": path},
            # A signal of the terminal is the host's to deal with.
            start_new_session=True,
        )

    def _end_children(self) -> None:
        """Asks them to end, then sees to it, and reaps them."""
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for child in children:
            try:
                child.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _not_up(process: int) -> Error:
    hint = "Its last lines in the log say why."
    return make_error("58000", f"process {process} of the replica does not come up", hint=hint)


def _unstarted(process: int, error: Exception) -> Error:
    hint = "It needs descriptors, a process and threads: raise the limit that was reached (ulimit -n, ulimit -u)."
    return make_error("58000", f"process {process} of the replica cannot be started: {error}", hint=hint)


def _start_relay(process: int, child: subprocess.Popen[bytes]) -> None:
    assert child.stderr is not None, "it is a pipe"
    try:
        threading.Thread(target=_relay, args=(child.stderr,), name=f"log:{process}", daemon=True).start()
    except RuntimeError:
        child.stderr.close()
        raise


def _relay(lines: IO[bytes]) -> None:
    """What a process logs goes to the log of this one."""
    with lines:
        for line in lines:
            _log.warning("%s", line.decode("utf-8", "replace").rstrip())
