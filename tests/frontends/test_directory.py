"""Databases in a directory: what is there after they are opened again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import eddyline
from eddyline import Connection, OperationalError
from eddyline.errors import DatabaseError


def rows(db: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(db.execute(query).fetchall(), key=repr)


def fill(db: Connection) -> None:
    db.executescript(
        """
        CREATE SCHEMA shop;
        CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL DEFAULT 'thing', price numeric(10, 2), since date);
        CREATE TABLE shop.sales (item int, at timestamptz, amount bigint);
        CREATE VIEW named AS SELECT id, upper(name) AS name FROM items WHERE price > 1;
        CREATE MATERIALIZED VIEW totals AS
            SELECT n.name, sum(s.amount) AS amount, count(*) AS sales FROM named n JOIN shop.sales s ON s.item = n.id
            GROUP BY n.name;
        CREATE INDEX totals_by_name ON totals (name);
        CREATE INDEX ON shop.sales (item);
        INSERT INTO items VALUES (1, 'pen', 1.50, '2024-02-29'), (2, DEFAULT, 7, NULL), (3, 'cap', NULL, 'infinity');
        INSERT INTO shop.sales SELECT i % 3 + 1, '2024-01-01'::timestamptz + i * interval '1 hour', i
            FROM generate_series(1, 1000) AS g (i);
        UPDATE items SET price = 2.25 WHERE id = 3;
        DELETE FROM shop.sales WHERE amount % 10 = 0;
        """
    )


QUERIES = (
    "SELECT * FROM items",
    "SELECT item, count(*), sum(amount), min(at), max(at) FROM shop.sales GROUP BY item",
    "SELECT * FROM named",
    "SELECT * FROM totals",
    "SELECT amount FROM totals WHERE name = 'CAP'",
)


def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "live.eddy"
    with eddyline.connect(path) as db:
        fill(db)
        expected = {q: rows(db, q) for q in QUERIES}
        objects = [rows(db, f"SHOW {kind}") for kind in ("TABLES", "VIEWS", "MATERIALIZED VIEWS", "INDEXES")]
        text = db.execute("SHOW CREATE MATERIALIZED VIEW totals").fetchall()
    with eddyline.connect(str(path)) as db:
        assert {q: rows(db, q) for q in QUERIES} == expected
        assert [rows(db, f"SHOW {kind}") for kind in ("TABLES", "VIEWS", "MATERIALIZED VIEWS", "INDEXES")] == objects
        assert db.execute("SHOW CREATE MATERIALIZED VIEW totals").fetchall() == text
        assert "live.eddy" in repr(db)
        with pytest.raises(DatabaseError) as caught:
            db.execute("INSERT INTO items VALUES (1, 'again')")
        assert caught.value.sqlstate == "23505"
        db.execute("INSERT INTO shop.sales VALUES (3, now(), 5)")
        assert rows(db, "SELECT amount - 5 FROM totals WHERE name = 'CAP'") == expected[QUERIES[4]]


def test_definitions_and_changes_of_definitions_are_there(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path) as db:
        db.executescript(
            """
            CREATE TABLE a (x int); CREATE TABLE b (x int); CREATE TABLE gone (x int);
            CREATE VIEW v AS SELECT x FROM a; CREATE VIEW w AS SELECT x + 1 AS y FROM v;
            INSERT INTO a VALUES (1); INSERT INTO gone VALUES (1);
            ALTER TABLE a RENAME TO renamed;
            CREATE OR REPLACE VIEW v AS SELECT x, 10 * x AS more FROM renamed;
            DROP TABLE gone;
            CREATE TABLE copied AS SELECT * FROM v;
            CREATE INDEX i ON w (y); DROP INDEX i;
            CREATE SCHEMA s; CREATE TABLE s.t (x int); DROP SCHEMA s CASCADE;
            BEGIN; CREATE TABLE made (x int); INSERT INTO made VALUES (7); CREATE VIEW bv AS SELECT x FROM made; COMMIT;
            BEGIN; CREATE TABLE neither (x int); ROLLBACK;
            """
        )
        last = db.execute("CREATE TABLE last_one (x int)")
        assert last is not None
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT * FROM w") == [(2,)]
        assert rows(db, "SELECT * FROM v") == [(1, 10)]
        assert rows(db, "SELECT * FROM copied") == [(1, 10)]
        assert rows(db, "SELECT * FROM bv") == [(7,)]
        for absent in ("a", "gone", "neither", "s.t"):
            with pytest.raises(DatabaseError) as caught:
                db.execute(f"SELECT * FROM {absent}")
            assert caught.value.sqlstate == "42P01"
        db.execute("CREATE TABLE after (x int)")
        ids = rows(db, "SELECT id FROM mz_catalog.mz_tables WHERE id LIKE 'u%'")
        assert len(set(ids)) == len(ids)


def test_settings_of_the_system_are_there_and_what_connect_is_given_wins(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path) as db:
        db.execute("ALTER SYSTEM SET max_result_size = '5MB'")
        db.execute("ALTER SYSTEM SET query_max_memory = '100MB'")
        db.execute("ALTER SYSTEM SET max_subscription_backlog = '1MB'")
        db.execute("ALTER SYSTEM RESET max_subscription_backlog")
        with pytest.raises(DatabaseError):
            db.execute("ALTER SYSTEM SET max_result_size = 'much'")
    with eddyline.connect(tmp_path, memory_limit=1 << 20) as db:
        assert rows(db, "SHOW max_result_size") == [("5MB",)]
        assert rows(db, "SHOW query_max_memory") == [("1MB",)]
        assert rows(db, "SHOW max_subscription_backlog") == [("256MB",)]
        db.execute("ALTER SYSTEM RESET ALL")
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SHOW max_result_size") == [("1GB",)]


def test_public_may_be_dropped_and_stays_so(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path) as db:
        db.executescript("CREATE SCHEMA other; DROP SCHEMA public; CREATE TABLE other.t (x int)")
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT * FROM other.t") == []
        with pytest.raises(DatabaseError):
            db.execute("CREATE TABLE t (x int)")


def test_times_never_go_back(tmp_path: Path) -> None:
    last = 0
    for _ in range(5):
        with eddyline.connect(tmp_path) as db:
            db.execute("CREATE TABLE IF NOT EXISTS t (x int)")
            time = db.append("t", [{"x": 1}])
            assert time > last
            last = time


@pytest.mark.parametrize("name", [":memory:", "postgresql://localhost/shop", "sqlite:///x.db"])
def test_what_other_databases_call_a_path_makes_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(eddyline.ProgrammingError, match="is not the path of a directory") as caught:
        eddyline.connect(name)
    assert (caught.value.sqlstate, bool(caught.value.hint), list(tmp_path.iterdir())) == ("22023", True, [])


def test_a_directory_is_open_once_also_in_one_process(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path) as db:
        db.execute("CREATE TABLE t (x int)")
        with pytest.raises(OperationalError, match="open already") as caught:
            eddyline.connect(tmp_path)
        assert caught.value.sqlstate == "55006"
        db.execute("INSERT INTO t VALUES (1)")
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT * FROM t") == [(1,)]


def test_a_forked_child_does_not_keep_the_directory(tmp_path: Path) -> None:
    db = eddyline.connect(tmp_path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)  # until the parent says so
        os._exit(0)
    try:
        db.close()
        eddyline.connect(tmp_path).close()
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_a_directory_survives_a_process_that_ends_without_closing(tmp_path: Path) -> None:
    program = (
        "import os, sys, eddyline; db = eddyline.connect(sys.argv[1]); db.execute('CREATE TABLE t (x int)');"
        "db.execute('INSERT INTO t VALUES (1), (2)'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT * FROM t") == [(1,), (2,)]


def test_writers_of_one_table_share_syncs(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path) as db:
        db.execute("CREATE TABLE t (writer int, n int)")
        durability = db._engine.durability
        assert durability is not None
        before = durability.group.groups
        start = threading.Barrier(8)

        def write(writer: int) -> None:
            session = db.session()
            start.wait()
            for n in range(20):
                session.execute("INSERT INTO t VALUES (?, ?)", (writer, n))
            session.close()

        threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        groups = durability.group.groups - before
        assert rows(db, "SELECT count(*), count(DISTINCT writer) FROM t") == [(160, 8)]
        assert groups < 110, "160 commits"
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT count(*), sum(n) FROM t") == [(160, 8 * 190)]


@pytest.mark.parametrize("off", ["SET synchronous_commit = off", "ALTER SYSTEM SET fsync = off"])
def test_commits_that_are_not_waited_for_are_there_after_closing(tmp_path: Path, off: str) -> None:
    with eddyline.connect(tmp_path) as db:
        db.execute("CREATE TABLE t (x int PRIMARY KEY)")
        db.execute(off)
        for x in range(50):
            db.execute("INSERT INTO t VALUES (?)", (x,))
            assert rows(db, "SELECT count(*) FROM t") == [(x + 1,)]
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT count(*) FROM t") == [(50,)]


def test_a_large_commit_is_there(tmp_path: Path) -> None:
    data = pa.table({"x": pa.array(range(300_000), pa.int64()), "y": [f"value {i % 1000}" for i in range(300_000)]})
    with eddyline.connect(tmp_path) as db:
        db.execute("CREATE TABLE t (x bigint PRIMARY KEY, y text)")
        db.append("t", data)
        expected = rows(db, "SELECT y, count(*), sum(x) FROM t GROUP BY y")
    with eddyline.connect(tmp_path) as db:
        assert rows(db, "SELECT y, count(*), sum(x) FROM t GROUP BY y") == expected


@pytest.mark.parametrize(("interactive", "workers", "processes"), [(False, 1, 0), (True, 2, 0), (True, 1, 1)])
def test_the_other_layouts_open_directories_too(
    tmp_path: Path, interactive: bool, workers: int, processes: int
) -> None:
    def connect() -> Connection:
        return eddyline.connect(tmp_path, interactive=interactive, workers=workers, processes=processes)

    with connect() as db:
        fill(db)
        expected = {q: rows(db, q) for q in QUERIES}
    with connect() as db:
        assert {q: rows(db, q) for q in QUERIES} == expected


def test_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DatabaseError) as caught:
        eddyline.connect(tmp_path)
    assert caught.value.sqlstate == "42809"
    with pytest.raises(DatabaseError) as caught:
        eddyline.connect(tmp_path / "notes.txt")
    assert caught.value.sqlstate == "42809"
    with pytest.raises(DatabaseError) as caught:
        eddyline.connect("")
    assert caught.value.sqlstate == "22023"


def test_settings_of_the_replica_are_there(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path, processes=1) as db:
        db.execute("ALTER CLUSTER REPLICA default.r1 SET (workload_class = 'kept')")
        db.execute("ALTER SYSTEM SET workload_class = 'system'")
    with eddyline.connect(tmp_path, processes=1) as db:
        assert ("workload_class", "kept", "replica") in db.execute("SHOW CLUSTER REPLICA default.r1").fetchall()
    with eddyline.connect(tmp_path) as db:  # which has no processes to set anything in
        db.execute("CREATE TABLE t (x int)")
