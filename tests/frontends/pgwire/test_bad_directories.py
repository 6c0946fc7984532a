"""Directories that cannot be opened, and a disk that takes no more: a clear error, and nothing is lost."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import eddyline
from tests.frontends.pgwire.test_served_directory import server

if sys.platform == "win32":
    pytest.skip("limits of files are POSIX's", allow_module_level=True)


def refused(data: Path) -> str:
    """What ``serve`` says of a directory that it does not open."""
    command = [sys.executable, "-m", "eddyline", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 73 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refused(tmp_path / "file" / "live.eddy")


def test_a_damaged_directory_is_said_and_left_as_it_is(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path / "live.eddy") as db:
        db.execute("CREATE TABLE t (a text)")
        for i in range(50):
            db.execute("INSERT INTO t VALUES ($1)", (f"row {i}" * 20,))
    largest = max((tmp_path / "live.eddy").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else -1)
    data = bytearray(largest.read_bytes())
    data[2000:2100] = bytes(100)
    largest.write_bytes(data)
    said = refused(tmp_path / "live.eddy")
    assert largest.name in said and "damaged" in said
    assert largest.read_bytes() == data


def test_a_disk_that_takes_no_more_fails_writes_and_nothing_else(tmp_path: Path) -> None:
    data = tmp_path / "live.eddy"
    with server(data) as (process, url):
        with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
            one.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
            one.execute("INSERT INTO t VALUES (1, 'kept')")
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
            with pytest.raises(psycopg.Error) as caught:
                one.execute("INSERT INTO t SELECT i, repeat(i::text, 100) FROM generate_series(2, 5000) g(i)")
            assert caught.value.sqlstate in {"53100", "58030"}
            for connection in (one, other):
                assert connection.execute("SELECT * FROM t").fetchall() == [(1, "kept")]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            other.execute("INSERT INTO t VALUES (2, 'again')")
        process.terminate()
        assert process.wait(60) == 0
    with eddyline.connect(data) as db:
        assert db.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]
