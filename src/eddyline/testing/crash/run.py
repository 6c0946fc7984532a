"""Rounds of killing: a child writes and is killed at a random instant, another one opens the directory and checks it.

With ``processes`` the replica has its own: now the child is killed, now the replica, now both, and those that are left
go on under the next child, or are replaced.

The children and the replica's processes are forked from a process that has loaded everything and has no threads, so
that a round takes a fraction of a second.  That process must be one of its own: ``python -m eddyline.testing.crash``.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from eddyline.adapter.engine import Engine
from eddyline.adapter.provisioning import Provisioning
from eddyline.adapter.restoring import open_engine
from eddyline.controller.survivors import Survivor, read_note
from eddyline.frontends.connection import Connection
from eddyline.kernels.warm import warm
from eddyline.testing.crash.load import check, newest, prepare, write_for_ever
from eddyline.testing.crash.spawner import Spawner

__all__ = ["Report", "as_json", "run"]

_ROUNDS_PER_DIRECTORY = 25
_LOG_FILE_BYTES = 24_000
_LEAST_LOG_BYTES = 48_000
_LINES = 30
_PATIENCE_S = 120.0


@dataclass
class Report:
    """``acknowledged``: transactions; ``killed_early``: rounds that ended before the first of them.

    ``replicas_killed``: rounds in which the replica's processes were killed, with the program or alone.
    ``left``: openings that found such processes alive, whose program had shown nothing before it was safe, and
    ``takeovers`` those under which they went on; ``left_unsafe`` and ``takeovers_unsafe`` where it had: what was lost
    must not be seen by anybody.  ``retained``: checks for which dataflows had gone on.
    """

    rounds: int = 0
    acknowledged: int = 0
    definitions: int = 0
    killed_early: int = 0
    rows_files: int = 0
    largest_bytes: int = 0
    replicas_killed: int = 0
    left: int = 0
    takeovers: int = 0
    left_unsafe: int = 0
    takeovers_unsafe: int = 0
    retained: int = 0

    def opened(self, takeovers: int, *, safe: bool) -> None:
        """An opening that found processes alive, and under which they went on or not."""
        if safe:
            self.left += 1
            self.takeovers += takeovers
        else:
            self.left_unsafe += 1
            self.takeovers_unsafe += takeovers


def _open(path: Path, apart: Provisioning | None) -> Engine:
    return open_engine(path, log_file_bytes=_LOG_FILE_BYTES, least_log_bytes=_LEAST_LOG_BYTES, provisioning=apart)


def _kill_replica(path: Path) -> None:
    """Its processes, if there are any."""
    note = read_note(path)
    for pid, start in () if note is None else note.processes:
        Survivor(pid, start).kill()


def _alive(path: Path) -> bool:
    note = read_note(path)
    return note is not None and note.usable()


def run(rounds: int, seed: int, *, processes: int = 0, report: Callable[[str], None]) -> Report:
    """Raises AssertionError with what is wrong, the round and its directory, which then stays."""
    warm(lambda done, total: None)
    gc.freeze()  # the children have all this in common, and need not visit it
    folder = Path(tempfile.mkdtemp(prefix="eddyline-crash-"))
    tempfile.tempdir = str(folder)  # so that nothing stays of whom is killed
    if not processes:
        counts = _rounds(folder, rounds, seed, None, report)
    else:
        spawner = Spawner(folder)
        try:
            apart = Provisioning(processes=processes, orphan_seconds=_PATIENCE_S, spawn=spawner.spawn)
            counts = _rounds(folder, rounds, seed, apart, report)
        finally:
            spawner.close()
    shutil.rmtree(folder)
    return counts


def _rounds(folder: Path, rounds: int, seed: int, apart: Provisioning | None, report: Callable[[str], None]) -> Report:
    counts = Report()
    path, acknowledged, defined = folder / "0", dict[int, int](), dict[int, int]()
    for number in range(rounds):
        rng = random.Random(seed * 1_000_003 + number)
        if number % _ROUNDS_PER_DIRECTORY == 0:
            _kill_replica(path)
            shutil.rmtree(path, ignore_errors=True)
            path, acknowledged, defined = folder / str(number), {}, {}
        synchronous = number % 5 != 4
        before = counts.acknowledged
        for line in _killed(path, rng, synchronous=synchronous, apart=apart, counts=counts):
            writer, n, *rest = line.split()
            (defined if rest else acknowledged)[int(writer)] = int(n)
            counts.acknowledged += not rest
            counts.definitions += bool(rest)
        counts.killed_early += counts.acknowledged == before
        alive = _alive(path)
        wrong, acknowledged, takeovers, retained = _checked(
            path, acknowledged, defined, synchronous=synchronous, clean=rng.random() < 0.5, apart=apart
        )
        if alive:
            counts.opened(takeovers, safe=synchronous)
        counts.retained += bool(takeovers and retained)
        if not synchronous:
            defined = {}
        assert not wrong, f"round {number} of seed {seed}, directory {path}:\n" + "\n".join(wrong)
        counts.rounds += 1
        sizes = {f.name: f.stat().st_size for f in path.iterdir()}
        counts.rows_files += any(name.endswith(".rows") for name in sizes)
        counts.largest_bytes = max(counts.largest_bytes, sum(sizes.values()))
        if (number + 1) % 10 == 0:
            report(f"{number + 1} rounds, {counts.acknowledged} transactions")
    return counts


def _killed(
    path: Path, rng: random.Random, *, synchronous: bool, apart: Provisioning | None, counts: Report
) -> Iterator[str]:
    """Runs a child that writes, kills it, and gives the lines that it acknowledged."""
    reading, writing = os.pipe()
    seed, alive = rng.getrandbits(32), _alive(path)

    def body() -> None:
        os.close(reading)
        engine = _open(path, apart)
        with Connection(engine, owner=True) as db:
            prepare(db)
            os.write(writing, f"{_takeovers(engine)}\n".encode("ascii"))
            write_for_ever(db, seed, writing, synchronous=synchronous)

    child = _forked(body)
    os.close(writing)
    # Some are killed while they open the directory; the others a moment after so many lines, however fast they are.
    lines = 0 if rng.random() < 0.15 else rng.randint(1, _LINES)
    moment_s = rng.uniform(0.0, 0.3 if lines == 0 else 0.03)
    data, deadline = b"", time.monotonic() + _PATIENCE_S
    while data.count(b"\n") < lines and (left := deadline - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                break
            data += part
    assert data.count(b"\n") >= lines, f"after {_PATIENCE_S} s the writing process had acknowledged {data!r}"
    time.sleep(moment_s)
    if apart is not None and rng.random() < 0.5:
        counts.replicas_killed += 1
        _kill_replica(path)
        time.sleep(rng.choice((0.0, 0.02, 0.3)))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    while part := os.read(reading, 1 << 16):
        data += part
    os.close(reading)
    assert os.WIFSIGNALED(status), f"the writing process ended by itself: {os.waitstatus_to_exitcode(status)}"
    # A line is written at once, but a kill may come in the midst of it.
    opened, *told = data.decode("ascii").split("\n")[:-1] or [""]
    if alive and opened:
        counts.opened(int(opened), safe=True)  # the child before it has checked, and written nothing
    return iter(told)


def _checked(
    path: Path,
    acknowledged: dict[int, int],
    defined: dict[int, int],
    *,
    synchronous: bool,
    clean: bool,
    apart: Provisioning | None,
) -> tuple[list[str], dict[int, int], int, int]:
    """What is wrong, the last transaction of each writer that is there, how often processes were taken over, and how
    many dataflows have gone on under another child since they were started.
    """
    reading, writing = os.pipe()

    def body() -> None:
        engine = _open(path, apart)
        db = Connection(engine, owner=True)
        prepare(db)
        wrong = check(db, acknowledged, defined, synchronous=synchronous)
        there = list(newest(db).items())
        os.write(writing, json.dumps([wrong, there, _takeovers(engine), _retained(engine)]).encode())
        if clean:
            db.close()

    child = _forked(body)
    os.close(writing)
    data = b""
    while part := os.read(reading, 1 << 16):
        data += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        return [f"the checking process ended with {os.waitstatus_to_exitcode(status)}"], {}, 0, 0
    wrong, there, takeovers, retained = json.loads(data)
    return wrong, {int(writer): int(number) for writer, number in there}, takeovers, retained


def _takeovers(engine: Engine) -> int:
    hosts = engine.first_replica.processes
    return 0 if hosts is None else hosts.takeovers


def _retained(engine: Engine) -> int:
    return sum(runtime.retained for runtime in engine.first_replica.measured(_PATIENCE_S, {}).runtimes)


def _forked(body: Callable[[], None]) -> int:
    """The process id of a child that runs ``body`` and nothing else."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        body()
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)


def as_json(report: Report) -> str:
    return json.dumps(asdict(report))
