"""A replica's processes outlive the program that is killed, and go on under the next one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

import eddyline
from eddyline.adapter.provisioning import Provisioning
from eddyline.adapter.restoring import open_engine
from eddyline.controller.survivors import process_start, read_note
from eddyline.kernels.warm import warm
from eddyline.protocol.framing import Frames
from eddyline.protocol.sockets import connect_to
from eddyline.testing.stopped import stopped
from tests.frontends.test_serve import serving
from tests.waiting import wait_until

_PROGRAM = """
import sys
from pathlib import Path
import eddyline
from tests.frontends.test_survival import connect

connection = connect(Path(sys.argv[1]), int(sys.argv[2]))
for line in sys.stdin:
    try:
        print(connection.execute(line).fetchall() if line.startswith("SELECT") else connection.execute(line) and "done")
    except eddyline.Error as error:
        print(error.sqlstate)
    sys.stdout.flush()
connection.close()
"""
ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 240.0


def connect(path: Path, processes: int = 1) -> eddyline.Connection:
    """As ``eddyline.connect``; what is left alone waits for the next program however busy the machine is."""
    warm(lambda _done, _total: None)
    apart = Provisioning(processes=processes, interactive=True, orphan_seconds=600)
    return eddyline.Connection(open_engine(path, provisioning=apart), owner=True)


class Program:
    """Another process that has the database open, and runs what it is told, by ``code``."""

    def __init__(self, path: Path, processes: int, code: str = _PROGRAM) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(processes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        )

    def run(self, *statements: str) -> list[str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        answers = []
        for statement in statements:
            self.process.stdin.write(statement + "\n")
            self.process.stdin.flush()
            answers.append(self.process.stdout.readline().strip())
        return answers

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def program(path: Path, processes: int = 1, code: str = _PROGRAM) -> Iterator[Program]:
    started = Program(path, processes, code)
    try:
        yield started
    finally:
        started.kill()


def pids(path: Path) -> list[int]:
    note = read_note(path)
    assert note is not None
    return [pid for pid, _ in note.processes]


def noted(path: Path) -> dict[str, list[int]]:
    """Process ids by the ids of replicas."""
    ids = sorted({each.name.split("-")[1] for each in path.glob("REPLICA-*")})
    return {id: [pid for pid, _ in note.processes] for id in ids if (note := read_note(path, id)) is not None}


def counted(connection: eddyline.Connection) -> tuple[int, int]:
    """Maintained dataflows that the replica's processes have built, and that went on under another connection."""
    totals = {
        sample.name: int(sample.value)
        for family in text_string_to_metric_families(connection.metrics())
        for sample in family.samples
        if "role" not in sample.labels
    }
    return totals["eddyline_dataflows_built_total"], totals["eddyline_dataflows_retained_total"]


def wait_until_gone(found: list[int]) -> None:
    wait_until(lambda: not any(process_start(pid) for pid in found), "they have ended")


def offend(path: Path) -> None:
    """Says something to the first process that it logs, while no program reads that."""
    note = read_note(path)
    assert note is not None
    frames = Frames(connect_to(f"{note.sockets}/control0"))
    frames.send([b"what"])
    assert frames.receive() is not None, "it answers once it has logged"
    frames.close()


SETUP = (
    "CREATE TABLE t (k bigint, v bigint)",
    "CREATE VIEW sums AS SELECT k, sum(v)::bigint AS s FROM t GROUP BY k",
    "CREATE INDEX by_k ON sums (k)",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t",
    "CREATE INDEX m_all ON m (n)",
    # Last: who then reads it has had the replica see all that the directory has.
    "INSERT INTO t VALUES (1, 10), (2, 20), (1, 5)",
    "SELECT k, s FROM sums ORDER BY k",
    "SELECT n FROM m",
)


def test_processes_of_a_killed_program_go_on_under_the_next_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, processes = tmp_path / "db", 2
    with program(path, processes) as first:
        assert first.run(*SETUP)[-2:] == ["[(1, 15), (2, 20)]", "[(3,)]"]
        before = pids(path)
        assert len(before) == processes
        first.kill()
    assert [bool(process_start(pid)) for pid in before] == [True] * processes
    offend(path)
    with connect(path, processes) as connection:
        assert pids(path) == before
        assert connection.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 20)]
        wait_until(lambda: "does not begin with a greeting" in caplog.text, "the stranger is told of")
        # The index goes on; what depends on rows that are gone is built anew.
        wait_until(lambda: counted(connection) == (3 + 2, 1), "what a stranger spoils is built anew")
        assert connection.execute("SELECT n FROM m").fetchall() == [(3,)]
        connection.execute("INSERT INTO t VALUES (2, 1), (3, 7)")
        assert connection.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 21), (3, 7)]
        assert connection.execute("SELECT n FROM m").fetchall() == [(5,)]
    wait_until_gone(before)
    assert read_note(path) is None


def test_processes_of_a_second_replica_are_noted_beside_the_first_ones(tmp_path: Path) -> None:
    path = tmp_path / "db"

    with program(path) as first:
        assert first.run(*SETUP, "CREATE CLUSTER REPLICA default.r2 (PROCESSES = 1)")[-1] == "done"
        wait_until(lambda: len(noted(path)) == 2, "both are noted")
        assert first.run("SELECT k, s FROM sums ORDER BY k") == ["[(1, 15), (2, 20)]"]
        before = noted(path)
        first.kill()
    found = [pid for pids in before.values() for pid in pids]
    assert all(process_start(pid) for pid in found)
    with connect(path) as connection:
        engine = connection._engine
        for id in before:
            replica = engine.default.replica(id)
            assert engine.default.wait_for(lambda _, its=replica: its.client is not None, WAIT_SECONDS)  # type: ignore[misc]  # mypy cannot infer it
        connection.execute("INSERT INTO t VALUES (2, 1)")
        assert connection.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 21)]
        assert noted(path).keys() == before.keys()
        found += [pid for pids in noted(path).values() for pid in pids]
        connection.execute("DROP CLUSTER REPLICA default.r2")
        wait_until(lambda: len(noted(path)) == 1, "one is noted")
        assert connection.execute("SELECT n FROM m").fetchall() == [(4,)]
    wait_until_gone(found)
    assert noted(path) == {}


def test_a_program_that_was_stopped_leaves_the_processes_of_the_next_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with program(path) as first:
        first.run(*SETUP)
        before = pids(path)
        with ExitStack() as stack:
            with stopped(first.process.pid):
                (path / "LOCK").unlink()
                connection = stack.enter_context(connect(path))
                assert pids(path) == before
            assert first.run("INSERT INTO t VALUES (9, 9)") == ["55006"]
            first.process.communicate(timeout=WAIT_SECONDS)
            connection.execute("INSERT INTO t VALUES (2, 1)")
            assert connection.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 21)]
            assert pids(path) == before
    wait_until_gone(before)


def test_nothing_is_built_anew_where_there_are_only_indexes(tmp_path: Path) -> None:
    """However often the program is killed."""
    path = tmp_path / "db"
    with program(path) as first:
        first.run(*SETUP[:3], "CREATE INDEX t_k ON t (k)", *SETUP[5:7])
        before = pids(path)
        first.kill()
    with program(path) as next_one:
        assert next_one.run(SETUP[6]) == ["[(1, 15), (2, 20)]"]
        next_one.kill()
    with connect(path) as connection:
        assert pids(path) == before
        assert connection.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 20)]
        wait_until(lambda: counted(connection) == (2, 4), "what went on is counted")


def test_processes_that_have_seen_a_commit_that_was_lost_are_replaced(tmp_path: Path) -> None:
    """It was acknowledged before it was safe, and shown; what the directory says counts, also for the replica."""
    path = tmp_path / "db"
    with program(path) as first:
        first.run(*SETUP)
        before = pids(path)
        saved = tmp_path / "saved"
        with stopped(first.process.pid):
            shutil.copytree(path, saved)
            assert read_note(path) is not None
            assert read_note(saved) is None, "a copy has no replica"
        assert first.run("INSERT INTO t VALUES (1, 100)", SETUP[6])[-1] == "[(1, 115), (2, 20)]"
        first.kill()
    for each in path.iterdir():
        each.unlink()
    for each in saved.iterdir():
        each.rename(path / each.name)
    with connect(path) as connection:
        own = pids(path)
        assert own != before
        assert connection.execute(SETUP[6]).fetchall() == [(1, 15), (2, 20)]
        assert connection.execute(SETUP[7]).fetchall() == [(3,)]
    wait_until_gone(before + own)
    assert read_note(path) is None


def test_a_server_that_is_killed_finds_its_replica_again_and_ends_it_at_its_own_end(tmp_path: Path) -> None:
    path = tmp_path / "db"
    arguments = ("--data", str(path), "--processes", "1", "--listen", "127.0.0.1:0")
    with serving(*arguments) as server:
        port = int(server.wait_for(r"clients at 127\.0\.0\.1:(\d+)")[1])
        with psycopg.connect(f"host=127.0.0.1 port={port} user=u dbname=d", autocommit=True) as client:
            for statement in (*SETUP[:3], SETUP[5]):
                client.execute(statement)
            assert client.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 20)]
            before = pids(path)
            server.process.kill()
            server.process.wait()
    with serving(*arguments) as server:
        port = int(server.wait_for(r"clients at 127\.0\.0\.1:(\d+)")[1])
        with psycopg.connect(f"host=127.0.0.1 port={port} user=u dbname=d", autocommit=True) as client:
            assert client.execute("SELECT k, s FROM sums ORDER BY k").fetchall() == [(1, 15), (2, 20)]
        assert pids(path) == before
        assert server.end() == 0
    wait_until_gone(before)
