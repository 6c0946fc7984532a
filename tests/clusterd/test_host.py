"""A ``clusterd`` process as a supervisor and strangers see it: connections, exit status, log lines, what it leaves."""

from __future__ import annotations

import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from eddyline.clusterd.host import FAILED, PEER_LOST, Host
from eddyline.controller.processes import ReplicaSpec, process_arguments
from eddyline.errors import DatabaseError
from eddyline.plan.dataflow import DataflowDescription, ExportIndex, ImportIndex
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import PROTOCOL_VERSION, Greeting, Purpose, Welcome, greet
from eddyline.protocol.messages import (
    CreateDataflow,
    Frontiers,
    Peek,
    PeekResponse,
    Schedule,
    Status,
    UpdateConfiguration,
)
from eddyline.protocol.sockets import connect_to
from eddyline.repr.time import EMPTY
from eddyline.testing.driver import PAIR, index_on
from tests.clusterd.harness import WAIT_SECONDS, Controller, Processes
from tests.compute.runtime_harness import identity


@pytest.fixture
def solo() -> Iterator[Processes]:
    processes = Processes(ReplicaSpec(interactive=False, orphan_seconds=60))
    yield processes
    processes.close()


def test_strangers_are_told_so_and_harm_nobody(solo: Processes) -> None:
    """Garbage before and after the greeting, another version, a wrong purpose, a stale socket file, a second owner."""
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(solo.addresses[0])
    stale.close()
    solo.start()
    controller = Controller(solo.addresses)
    controller.begin("one")
    with connect_to(solo.addresses[0]) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: eddyline\r\n\r\n")
        told = stranger.recv(4096)
        assert b"08P01" in told
    for greeting, sqlstate in (
        (Greeting(PROTOCOL_VERSION + 1, Purpose.COMMANDS), b"0A000"),
        (Greeting(PROTOCOL_VERSION, Purpose.INTERACTIVE), b"08P01"),
    ):
        frames = Frames(connect_to(solo.addresses[0]))
        frames.send([msgspec.msgpack.encode(greeting)])
        answer = frames.receive()
        assert answer is not None
        assert sqlstate in answer
        assert frames.receive() is None, "and hung up on"
        frames.close()
    frames = Frames(connect_to(solo.addresses[0]))
    assert greet(frames, Purpose.STORAGE) == Welcome(0, 1, 1, interactive=False)
    frames.send([b"\xc1 garbage"])
    assert frames.receive() is None, "garbage ends the connection that it comes on"
    frames.close()
    # That one took the place of the controller's connection to storage, which therefore connects anew.
    status = controller.first(Status)
    assert isinstance(status, Status)
    assert status.fatal
    controller.replica.close()
    controller = Controller(solo.addresses)
    controller.begin("two")
    controller.replica.send(CreateDataflow(index_on("u2", "u1", 1)))
    controller.replica.send(Schedule("u2"))
    controller.replica.send(Peek("u2", "p", 1, (), None, identity(PAIR)))
    answered = controller.first(PeekResponse)
    assert isinstance(answered, PeekResponse)
    assert answered.rows is not None
    assert sorted(answered.rows.batch().columns[1].to_pylist()) == [10, 20]
    arguments = process_arguments(solo.spec, 0, solo.directory, hash_seed=7)
    other = subprocess.run(
        [sys.executable, "-m", "eddyline", "clusterd", *arguments],
        capture_output=True, text=True, timeout=WAIT_SECONDS, check=False,
    )  # fmt: skip
    assert other.returncode == 73
    assert "another process listens" in other.stderr
    controller.replica.close()
    solo.children[0].send_signal(signal.SIGTERM)
    status_code, lines = solo.ended()
    assert status_code == 0
    assert sum("refused" in line for line in lines) == 3
    assert not Path(solo.addresses[0]).exists()


def test_a_newcomer_for_whom_there_is_no_thread_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one is not."""
    greeted: queue.Queue[socket.socket] = queue.Queue()
    refused = iter((True, False))
    start = threading.Thread.start

    def refuse_one(thread: threading.Thread) -> None:
        if thread.name == "greet" and next(refused):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_one)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        host: Any = SimpleNamespace(_listener=listener, _introduce=greeted.put)
        accepting = threading.Thread(target=Host._accept, args=(host,), name="accept")
        accepting.start()
        with socket.create_connection(listener.getsockname(), timeout=WAIT_SECONDS) as first:
            assert first.recv(1) == b"", "it is told by the end of its connection"
        with socket.create_connection(listener.getsockname(), timeout=WAIT_SECONDS):
            greeted.get(timeout=WAIT_SECONDS).close()
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(WAIT_SECONDS)


def test_a_failing_thread_ends_the_process_with_one_line(solo: Processes) -> None:
    """A dataflow over an index that is not there: rendering raises."""
    solo.start()
    controller = Controller(solo.addresses)
    controller.begin("one")
    operators = (ImportIndex("u9", PAIR, (0,)), ExportIndex("u3", "u9", 0, (0,), PAIR))
    controller.replica.send(CreateDataflow(DataflowDescription("d", operators, 1, EMPTY)))
    status = controller.first(Status)
    assert isinstance(status, Status)
    assert status.fatal
    code, lines = solo.ended()
    assert code == FAILED
    assert len(lines) == 1
    assert "u9" in lines[0]
    controller.replica.close()


def test_a_process_without_a_controller_ends() -> None:
    processes = Processes(ReplicaSpec(interactive=True, orphan_seconds=2.0))
    try:
        processes.start()
        restores = Frames(connect_to(processes.addresses[0]))
        greet(restores, Purpose.STORAGE)
        time.sleep(4.5)  # who restores large tables has no other connection yet
        controller = Controller(processes.addresses)
        restores.close()
        controller.begin("one")
        controller.replica.send(UpdateConfiguration({"workload_class": "test"}))
        controller.replica.send(CreateDataflow(index_on("u2", "u1", 1)))
        controller.first(Frontiers)
        assert processes.children[0].poll() is None, "while there is one it lives"
        controller.replica.close()
        code, lines = processes.ended()
        assert code == 0
        assert [line for line in lines if "no controller" in line] == lines
        assert len(lines) == 1
        assert " workload_class=test INFO " in lines[0], "what the process logs says whose work it does"
    finally:
        processes.close()


def test_processes_of_a_replica_die_together() -> None:
    processes = Processes(ReplicaSpec(processes=2, interactive=True))
    try:
        processes.start()
        controller = Controller(processes.addresses)
        controller.begin("one")
        controller.replica.send(CreateDataflow(index_on("u2", "u1", 1)))
        controller.first(Frontiers)
        processes.children[0].kill()
        code, lines = processes.ended(1)
        assert code == PEER_LOST
        assert len(lines) == 1
        assert "process 0" in lines[0]
        status = controller.first(Status)
        assert isinstance(status, Status)
        assert status.fatal
        with pytest.raises(DatabaseError) as gone:
            Controller(processes.addresses)
        assert gone.value.sqlstate == "08001"
        controller.replica.close()
    finally:
        processes.close()
