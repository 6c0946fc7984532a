"""A served directory: what clients were told is there after the server was killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import eddyline


@contextmanager
def server(data: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and where clients find it; it is killed in the end."""
    command = [sys.executable, "-m", "eddyline", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"clients at 127\.0\.0\.1:(\d+)", line)
            if found:
                break
        else:
            raise AssertionError("the server did not start")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield process, f"postgresql://postgres@127.0.0.1:{found[1]}/postgres"
    finally:
        process.kill()
        process.wait()


def test_what_clients_were_told_is_there_after_the_server_was_killed(tmp_path: Path) -> None:
    data = tmp_path / "live.eddy"
    with server(data) as (process, url):
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE t (x int PRIMARY KEY)")
            connection.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
            connection.execute("INSERT INTO t SELECT * FROM generate_series(1, 10)")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with server(data) as (process, url):
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.execute("SELECT n FROM m").fetchall() == [(10,)]
            connection.execute("INSERT INTO t VALUES (11)")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with eddyline.connect(data) as db:
        assert db.execute("SELECT n FROM m").fetchall() == [(11,)]


def test_a_directory_that_is_open_elsewhere_is_not_served(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path):
        command = [sys.executable, "-m", "eddyline", "serve", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 73
    assert f"Process {os.getpid()} has it open" in done.stderr
