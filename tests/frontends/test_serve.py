"""``eddyline serve`` as a process: what it says, serves, refuses, and how it ends."""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from eddyline.adapter.memory_size import memory_size
from eddyline.adapter.memory_use import ServerMemory, usual_limit
from eddyline.adapter.restoring import open_engine
from eddyline.errors import Error
from eddyline.frontends.command_line import main
from eddyline.frontends.serve import LoopTroubles, add_serve_arguments, serve, serve_config
from tests.frontends.pgwire.test_limits import self_signed


class Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line of its log that matches."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            match = re.search(pattern, line)
            if match is not None:
                return match
        raise AssertionError("".join(self.lines))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=60)
        self.lines.extend(rest.splitlines(keepends=True))
        return self.process.returncode


@contextmanager
def serving(*arguments: str, started: tuple[str, ...] = ("-m", "eddyline")) -> Iterator[Server]:
    command = [sys.executable, *started, "serve", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        yield Server(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def page(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def check_conventions(text: str) -> None:
    """Prometheus' for names: one prefix, base units, counters that end in _total; each has a help and a type, once."""
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) > 10 and len(set(names)) == len(names)
    for family in families:
        assert re.fullmatch("eddyline_[a-z][a-z0-9_]*", family.name) and family.documentation
        assert family.type in {"counter", "gauge", "histogram"}, family.name
        assert not re.search("_(ms|us|ns|millis|micros|kb|mb|minutes)(_|$)", family.name), family.name
        assert all(s.name.endswith("_total") for s in family.samples if family.type == "counter"), family.name
        assert not family.name.endswith("_total") or family.type == "counter"


def test_it_serves_clients_and_watchers_and_ends_on_sigterm() -> None:
    arguments = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-format", "json", "--max-connections", "7")
    with serving(*arguments, "--memory-limit", "64GB") as server:
        http = server.wait_for(r"http://127\.0\.0\.1:\d+")[0]
        port = int(server.wait_for(r"in memory.*psql -h 127\.0\.0\.1 -p (\d+)")[1])
        assert page(f"{http}/healthz") == (200, "ok\n") and page(f"{http}/readyz") == (200, "ready\n")
        with psycopg.connect(host="127.0.0.1", port=port, user="me", dbname="db", autocommit=True) as connection:
            assert connection.execute("SELECT 40 + 2").fetchone() == (42,)
            with pytest.raises(psycopg.errors.DivisionByZero):
                connection.execute("SELECT 1/0")
            assert connection.execute("SHOW server_memory_limit").fetchone() == ("64GB",)
            status, text = page(f"{http}/metrics")
            assert status == 200 and "eddyline_connections 1\n" in text and "eddyline_connection_limit 7\n" in text
            check_conventions(text)
            limit = re.search(r"^eddyline_memory_limit_bytes (.*)$", text, re.MULTILINE)
            assert limit is not None and float(limit[1]) == 64 << 30
            assert page(f"{http}/nothing")[0] == 404
            assert server.end() == 0
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        records = [json.loads(line) for line in server.lines if line.startswith("{")]
        (failed,) = [r for r in records if r.get("sqlstate") == "22012"]
        assert failed["message"] == "division by zero" and failed["statement"] == f"{failed['process']}.2"


_COUNTING = """
import atexit, gc, sys
from eddyline.frontends.command_line import main
aside = gc.get_freeze_count
atexit.register(lambda: print("set aside", aside(), "of", aside() + len(gc.get_objects()), file=sys.stderr))
sys.exit(main(sys.argv[1:]))
"""


def test_full_collections_leave_out_what_the_server_has_loaded() -> None:
    with serving("--listen", "127.0.0.1:0", started=("-c", _COUNTING)) as server:
        server.wait_for(r"psql -h")
        assert server.end() == 0
    (line,) = [line for line in server.lines if line.startswith("set aside")]
    aside, there = map(int, re.findall(r"\d+", line))
    assert aside > 0.8 * there > 0


def test_a_directory_is_served_by_one_server_at_a_time_and_kept(tmp_path: Path) -> None:
    arguments = ("--listen", "127.0.0.1:0", "--data", str(tmp_path / "live.eddy"))
    for round_ in range(2):
        with serving(*arguments, *(["--passwords"] if round_ else [])) as server:
            port = int(server.wait_for(r"live\.eddy.* -p (\d+)")[1])
            if round_:
                with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                    psycopg.connect(host="127.0.0.1", port=port, user="me", password="wrong", dbname="db")
            with psycopg.connect(
                host="127.0.0.1", port=port, user="me", password="secret", dbname="db", autocommit=True
            ) as connection:
                if not round_:
                    connection.execute("ALTER ROLE me PASSWORD 'secret'")
                    connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
                    connection.execute("INSERT INTO t VALUES (1), (2)")
                    with serving(*arguments) as second:
                        second.wait_for("ERROR")
                        assert second.process.wait(timeout=60) == 73
                assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)
            if round_:
                assert server.end() == 0
            else:
                server.process.kill()
                server.process.wait(timeout=60)


def test_an_address_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving("--listen", "127.0.0.1:0", "--http", f"127.0.0.1:{port}") as server:
            server.wait_for(f"cannot listen at 127.0.0.1:{port}: .*in use")
            assert server.process.wait(timeout=60) == 73
        with serving("--listen", f"127.0.0.1:{port}") as server:
            server.wait_for(f"cannot listen at 127.0.0.1:{port}: .*in use")
            assert server.process.wait(timeout=60) == 73


def refused(*arguments: str) -> str:

    parser = argparse.ArgumentParser()
    add_serve_arguments(parser)
    with pytest.raises(Error) as caught:
        serve_config(parser.parse_args(arguments))
    return str(caught.value)


def test_arguments_that_do_not_fit_are_refused_with_a_hint(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# nobody\nalice:secret\nbob\n")
    assert "--users" in refused("--listen", "0.0.0.0:6875")
    assert "HOST:PORT" in refused("--listen", "6875")
    assert "--tls-cert" in refused("--tls-required")
    assert "go together" in refused("--tls-cert", "x")
    assert "cannot use" in refused("--tls-cert", "x", "--tls-key", "y")
    assert "at least 1" in refused("--max-connections", "0")
    assert "--grace" in refused("--grace", "-1") and "--grace" in refused("--grace", "nan")
    assert refused("--users", str(users)).endswith("line 3: expected name:password")
    assert "cannot read" in refused("--users", str(tmp_path / "none"))
    for accounts in (
        "root:x:0:0:root:/root:/bin/bash",
        "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin",
        "root:$y$j9T$abc/def:19700:0:99999:7:::",
        "daemon:*:19700:0:99999:7:::",
    ):
        users.write_text(f"alice:secret\n{accounts}\n")
        assert "line 2: this looks like a list of the system's accounts" in refused("--users", str(users))
    for hashed in ("$apr1$x$yz", "$2y$10$abcdef", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "md5" + "0" * 32):
        users.write_text(f"alice:{hashed}\n")
        assert "line 1: this password is hashed" in refused("--users", str(users))
        assert hashed not in refused("--users", str(users))
    assert "nobody could come in" in refused("--passwords")
    assert '"--memory-limit": "much"' in refused("--memory-limit", "much")
    assert "--trust asks for no" in refused("--trust", "--passwords", "--data", "x")


def test_the_memory_limit_is_what_was_said_or_most_of_what_there_is() -> None:
    def limit(*arguments: str) -> ServerMemory | None:
        parser = argparse.ArgumentParser()
        add_serve_arguments(parser)
        return serve_config(parser.parse_args(arguments)).memory

    usual = usual_limit()
    assert limit() == limit("--memory-limit", "auto") == ServerMemory(usual, None)
    assert limit("--memory-limit", "0") == ServerMemory(usual, 0)
    if usual is not None:
        assert limit("--memory-limit", "2GB") == ServerMemory(usual, 2 << 30)
        engine = open_engine(None, server_memory=ServerMemory(usual, 2 << 30))
        try:
            assert engine.system.show("server_memory_limit") == "2GB"
            engine.alter_system("server_memory_limit", None)
            assert engine.system.show("server_memory_limit") == memory_size("", str(usual))
        finally:
            engine.close()


@pytest.mark.skipif(usual_limit() is None, reason="the system does not say how much memory is used")
def test_a_memory_limit_that_leaves_no_room_is_refused_before_anything_is_opened() -> None:
    parser = argparse.ArgumentParser()
    add_serve_arguments(parser)
    config = serve_config(parser.parse_args(["--memory-limit", "1kB", "--listen", "127.0.0.1:0"]))
    with pytest.raises(Error, match=r"--memory-limit 1kB leaves no room") as caught:
        asyncio.run(serve(config))
    assert caught.value.sqlstate == "22023" and re.search(r"is \d+MB", str(caught.value.hint))


def test_encrypted_clients_are_served_by_the_command_too(tmp_path: Path) -> None:
    self_signed(tmp_path)
    tls = ("--tls-cert", str(tmp_path / "server.crt"), "--tls-key", str(tmp_path / "server.key"), "--tls-required")
    with serving("--listen", "127.0.0.1:0", *tls) as server:
        port = int(server.wait_for(r"psql -h 127\.0\.0\.1 -p (\d+)")[1])
        with psycopg.connect(
            host="127.0.0.1", port=port, user="me", dbname="db", autocommit=True, sslmode="require"
        ) as connection:
            rows = connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 5000)").fetchall()
            assert rows == [("x" * 1000,)] * 5000
            connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
            for i in range(20):
                connection.execute("INSERT INTO t VALUES (%s)", (i,))
                assert connection.execute("SELECT a FROM t WHERE a = %s", (i,)).fetchall() == [(i,)]
            with connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
                copy.write("".join(f"{i}\n" for i in range(100, 300_000)))
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (299_920,)
        assert server.end() == 0


@pytest.mark.parametrize("grace", ["60", "0.1"])
def test_statements_under_way_get_their_grace_and_are_then_ended(grace: str) -> None:
    with serving("--listen", "127.0.0.1:0", "--grace", grace) as server:
        port = int(server.wait_for(r"psql -h 127\.0\.0\.1 -p (\d+)")[1])
        connection = psycopg.connect(host="127.0.0.1", port=port, user="me", dbname="db", autocommit=True)
        connection.execute("CREATE TABLE t (a int)")
        with connection.cursor() as cursor:
            try:
                with cursor.copy("COPY t FROM STDIN") as copy:
                    server.process.send_signal(signal.SIGTERM)
                    server.wait_for("ending: ")
                    if grace == "0.1":
                        assert server.process.wait(timeout=60) == 0
                    copy.write("1\n")
                assert grace == "60" and cursor.rowcount == 1
            except psycopg.OperationalError as ended:
                assert grace == "0.1", ended
        connection.close()
        assert server.end() == 0


def test_a_lack_of_file_descriptors_is_said_once_and_other_troubles_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, troubles = asyncio.new_event_loop(), LoopTroubles()
    lack = {"message": "no resources", "exception": OSError(errno.EMFILE, "no files"), "socket": 1}
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(1000):
                troubles(loop, lack)
            assert [r.getMessage() for r in caplog.records] == [
                "connections wait: no files; raise the limit or lower --max-connections"
            ]
            troubles(loop, {"message": "something else", "exception": OSError(errno.EPIPE, "x"), "socket": 1})
            troubles(loop, {"message": "a task was forgotten"})
            assert len(caplog.records) == 3
    finally:
        loop.close()


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    text = capsys.readouterr().out
    for word in ("psql -h 127.0.0.1 -p 6875", "SUBSCRIBE", "--users", "SIGTERM", "in memory"):
        assert word in text
