"""Real processes, or what they are made of in this one, and a controller that speaks to them."""

from __future__ import annotations

import dataclasses
import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from eddyline.clusterd.config import clusterd_config
from eddyline.clusterd.host import Host
from eddyline.compute.process_settings import OwnSettings
from eddyline.controller.processes import ReplicaSpec, process_arguments
from eddyline.controller.remote import ReplicaConnection
from eddyline.protocol.messages import CreateInstance, Hello, InitializationComplete, Response
from eddyline.storage.store import TableStore
from eddyline.testing.driver import PAIR
from eddyline.trace.hasher import Hasher
from tests.compute.runtime_harness import pairs

WAIT_SECONDS = 120.0
#: until a process listens: it may be the first to compile the kernels
START_SECONDS = 600.0


class Processes:
    """``eddyline clusterd`` started as its supervisor would; ends what is left of them."""

    def __init__(self, spec: ReplicaSpec) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="eddyline-test-"))
        self.addresses = [str(self.directory / f"control{p}") for p in range(spec.processes)]
        self.children: list[subprocess.Popen[str]] = []
        self.ready: list[int] = []
        self.spec = spec

    def start(self) -> None:
        for p in range(self.spec.processes):
            reading, writing = os.pipe()
            arguments = process_arguments(self.spec, p, self.directory, hash_seed=7)
            command = [sys.executable, "-m", "eddyline", "clusterd", *arguments, f"--ready-fd={writing}"]
            self.children.append(subprocess.Popen(command, stderr=subprocess.PIPE, pass_fds=[writing], text=True))
            os.close(writing)
            self.ready.append(reading)
        for descriptor in self.ready:
            readable, _, _ = select.select([descriptor], [], [], START_SECONDS)
            assert readable
            assert os.read(descriptor, 1) == b"\n", "it says that it listens"
            os.close(descriptor)
        self.ready = []

    def ended(self, process: int = 0) -> tuple[int, list[str]]:
        """Exit status and log lines."""
        _, text = self.children[process].communicate(timeout=WAIT_SECONDS)
        return self.children[process].returncode, text.splitlines()

    def close(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stderr is not None:
                child.stderr.close()
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()


class Controller:
    """A store with one table, and a connection to processes."""

    def __init__(self, addresses: Sequence[str], *, epoch: int = 0) -> None:
        self.responses: list[Response] = []
        self.changed = threading.Condition()
        hasher = Hasher(7)
        self.store = TableStore(hasher)
        self.store.create_table("u1", PAIR, key=None, names=("k", "v"), table="t", constraint="", at=0)  # type: ignore[arg-type]  # a time
        self.store.append({"u1": pairs([(1, 10), (2, 20)])}, 1)  # type: ignore[arg-type]  # a time
        self.replica = ReplicaConnection(addresses, self.store, hasher, self.take, epoch=epoch)

    def take(self, response: Response) -> None:
        with self.changed:
            self.responses.append(response)
            self.changed.notify_all()

    def begin(self, nonce: str) -> None:
        for command in (Hello(nonce), CreateInstance(), InitializationComplete()):
            self.replica.send(command)

    def first(self, kind: type[Response]) -> Response:
        found = self.wait(lambda response: isinstance(response, kind))
        assert found is not None, self.responses
        return found

    def wait(self, wanted: Callable[[Response], bool], timeout: float = WAIT_SECONDS) -> Response | None:
        """The first such response; None if it does not come."""
        with self.changed:
            self.changed.wait_for(lambda: any(map(wanted, self.responses)), timeout)
            return next(filter(wanted, self.responses), None)


class Hosts:
    """The processes of a replica as threads of this one: all but what makes them processes."""

    def __init__(self, spec: ReplicaSpec) -> None:
        # Before the first connection kernels may have to be compiled.
        spec = dataclasses.replace(spec, orphan_seconds=START_SECONDS)
        self.directory = Path(tempfile.mkdtemp(prefix="eddyline-test-"))
        self.addresses = [str(self.directory / f"control{p}") for p in range(spec.processes)]
        configs = [
            clusterd_config(process_arguments(spec, p, self.directory, hash_seed=7)) for p in range(spec.processes)
        ]
        with ThreadPoolExecutor(spec.processes) as pool:  # each waits for the others
            self.hosts = list(pool.map(lambda config: Host(config, OwnSettings()), configs))
        self._excepthook = threading.excepthook
        self._running = [threading.Thread(target=host.run) for host in self.hosts]
        for thread in self._running:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for host in self.hosts:
            host.stop()
        for thread in self._running:
            thread.join()
        threading.excepthook = self._excepthook
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()
