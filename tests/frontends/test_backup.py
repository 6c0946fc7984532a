"""Backups: of a database in use, from this process and another; restored by copying, or by the command."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import eddyline
from eddyline import Connection
from eddyline.adapter.restoring import open_engine
from eddyline.errors import DatabaseError
from eddyline.frontends.command_line import main


def rows(db: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(db.execute(query).fetchall(), key=repr)


def test_a_backup_of_a_database_in_use_is_the_database_at_some_moment(tmp_path: Path) -> None:
    """Writers keep two tables equal, compaction runs, and each of several backups has them equal."""
    db = Connection(open_engine(tmp_path / "live", log_file_bytes=20_000, least_log_bytes=40_000), owner=True)
    db.executescript("CREATE TABLE a (n int, filler text); CREATE TABLE b (n int, filler text)")
    db.execute("CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM a")
    ending = threading.Event()

    def write() -> None:
        session = db.session()
        n = 0
        while not ending.is_set():
            n += 1
            with session.transaction():
                for table in ("a", "b"):
                    session.execute(f"INSERT INTO {table} VALUES (?, ?)", (n, "x" * 200))
                    session.execute(f"DELETE FROM {table} WHERE n = ?", (n - 50,))
        session.close()

    thread = threading.Thread(target=write)
    thread.start()
    acknowledged = []
    try:
        for i in range(4):
            while True:
                (newest,) = db.execute("SELECT coalesce(max(n), 0) FROM a").fetchone() or (0,)
                if newest > 20 * i:
                    break
            acknowledged.append(newest)
            if i % 2:
                assert main(["backup", str(tmp_path / "live"), str(tmp_path / f"copy{i}")]) == 0
            else:
                db.backup(tmp_path / f"copy{i}")
    finally:
        ending.set()
        thread.join()
        db.close()
    for i, newest in enumerate(acknowledged):
        with eddyline.connect(tmp_path / f"copy{i}") as copy:
            assert rows(copy, "SELECT n FROM a") == rows(copy, "SELECT n FROM b")
            ((there, count),) = copy.execute("SELECT max(n), count(*) FROM a").fetchall()
            assert there >= newest
            assert count == min(there, 50)
            assert rows(copy, "SELECT n FROM counts") == [(count,)]


def test_a_backup_is_restored_by_the_command_and_by_copying(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path / "live") as db:
        db.executescript("CREATE TABLE t (x int); INSERT INTO t VALUES (1), (2)")
        db.backup(tmp_path / "copy")
        db.execute("DELETE FROM t")
    shutil.rmtree(tmp_path / "live")
    command = [sys.executable, "-m", "eddyline", "restore", str(tmp_path / "copy"), str(tmp_path / "live")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "bytes" in done.stdout
    shutil.copytree(tmp_path / "copy", tmp_path / "third")
    for name in ("live", "copy", "third"):
        with eddyline.connect(tmp_path / name) as db:
            assert rows(db, "SELECT x FROM t") == [(1,), (2,)]


def test_what_cannot_be_copied_is_refused_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with eddyline.connect() as db, pytest.raises(eddyline.NotSupportedError) as unsupported:
        db.backup(tmp_path / "copy")
    assert unsupported.value.sqlstate == "0A000"
    with eddyline.connect(tmp_path / "live") as db:
        db.executescript("CREATE TABLE t (x int); INSERT INTO t VALUES (1), (2)")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine.txt").write_text("mine")
        for target in ("full", "live"):
            with pytest.raises(DatabaseError) as caught:
                db.backup(tmp_path / target)
            assert caught.value.sqlstate == "58P02"
        assert [f.name for f in (tmp_path / "full").iterdir()] == ["mine.txt"]
    assert main(["backup", str(tmp_path / "full"), str(tmp_path / "copy")]) == 1
    assert "is not a database" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "nowhere"), str(tmp_path / "copy")]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_damage_is_found_while_copying(tmp_path: Path) -> None:
    db = Connection(open_engine(tmp_path / "live", least_log_bytes=1000), owner=True)
    db.executescript("CREATE TABLE t (x int, y text)")
    for i in range(20):
        db.append("t", [{"x": i, "y": "y" * 500}])
    assert db._engine.durability is not None
    db._engine.durability.compaction.run()
    db.close()
    (stored,) = (tmp_path / "live").glob("*.rows")
    data = bytearray(stored.read_bytes())
    data[len(data) // 2] ^= 4
    stored.write_bytes(data)
    with pytest.raises(DatabaseError, match=stored.name) as caught:
        eddyline.connect(tmp_path / "live")
    assert caught.value.sqlstate == "XX001"
    assert main(["backup", str(tmp_path / "live"), str(tmp_path / "copy")]) == 1
    assert list((tmp_path / "copy").iterdir()) == []


def test_a_copy_that_was_not_finished_is_no_database(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path / "live") as db:
        db.executescript("CREATE TABLE t (x int)")
        db.backup(tmp_path / "copy")
    (tmp_path / "copy" / "FORMAT").unlink()
    (tmp_path / "copy" / "UNFINISHED").write_text("")
    with pytest.raises(DatabaseError) as caught:
        eddyline.connect(tmp_path / "copy")
    assert caught.value.sqlstate == "42809"
