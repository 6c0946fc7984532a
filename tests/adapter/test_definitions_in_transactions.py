"""CREATE and DROP between BEGIN and COMMIT: seen by the transaction, by others at its commit, undone with it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

import eddyline
from eddyline.testing.postgres import PostgresServer


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.executescript("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20)")
        yield connection


def rows(db: eddyline.Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(db.execute(query).fetchall(), key=repr)


def refused(db: eddyline.Connection, statement: str) -> str:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(statement)
    return caught.value.sqlstate


def test_a_transaction_reads_and_writes_what_it_creates(db: eddyline.Connection) -> None:
    db.executescript("""
        BEGIN;
        CREATE TABLE a (id int PRIMARY KEY, v int DEFAULT 7);
        CREATE VIEW total AS SELECT sum(v) AS s, count(*) AS n FROM a;
        CREATE INDEX ON total (s);
        CREATE MATERIALIZED VIEW doubled AS SELECT id, v * 2 AS d FROM a;
        INSERT INTO a VALUES (1, 1), (2, 2), (3, DEFAULT);
    """)
    assert rows(db, "SELECT * FROM total") == [(10, 3)]
    assert rows(db, "SELECT * FROM doubled") == [(1, 2), (2, 4), (3, 14)]
    assert rows(db, "SELECT v FROM a WHERE id = 2") == [(2,)]
    assert rows(db, "SELECT t.v, a.v FROM t JOIN a USING (id)") == [(10, 1), (20, 2)]
    db.execute("INSERT INTO a VALUES (1, 100) ON CONFLICT (id) DO UPDATE SET v = a.v + excluded.v")
    db.execute("UPDATE a SET v = 0 WHERE id = 2")
    db.execute("DELETE FROM a WHERE id = 3")
    db.upsert("a", [{"id": 4, "v": 4}, {"id": 2, "v": 5}])
    seen = rows(db, "SELECT * FROM a")
    assert seen == [(1, 101), (2, 5), (4, 4)]
    db.commit()
    db.wait_hydrated("total", timeout=60)
    assert rows(db, "SELECT * FROM a") == seen
    assert rows(db, "SELECT * FROM total") == [(110, 3)]
    assert rows(db, "SELECT * FROM doubled") == [(1, 202), (2, 10), (4, 8)]


def test_others_see_it_at_the_commit_and_not_before(db: eddyline.Connection) -> None:
    with db.session() as other:
        db.executescript("BEGIN; CREATE TABLE a AS SELECT * FROM t; DROP TABLE t; CREATE VIEW w AS SELECT * FROM a")
        assert refused(other, "SELECT * FROM a") == "42P01"
        assert refused(other, "SELECT * FROM w") == "42P01"
        assert rows(other, "SELECT * FROM t") == [(1, 10), (2, 20)]
        assert refused(db, "SELECT * FROM t") == "42P01"
        db.rollback()
        db.executescript("BEGIN; CREATE TABLE a AS SELECT * FROM t; DROP TABLE t; CREATE VIEW w AS SELECT * FROM a")
        db.commit()
        assert rows(other, "SELECT * FROM w") == [(1, 10), (2, 20)]
        assert refused(other, "SELECT * FROM t") == "42P01"


def test_a_rollback_leaves_nothing(db: eddyline.Connection) -> None:
    db.executescript("BEGIN; DROP TABLE t; CREATE TABLE t (x text); INSERT INTO t VALUES ('new'); CREATE SCHEMA s")
    assert rows(db, "SELECT * FROM t") == [("new",)]
    db.rollback()
    assert rows(db, "SELECT * FROM t") == [(1, 10), (2, 20)]
    db.execute("CREATE SCHEMA s")


def test_savepoints_take_definitions_back(db: eddyline.Connection) -> None:
    db.executescript("BEGIN; CREATE TABLE a (x int); SAVEPOINT p; INSERT INTO a VALUES (1); CREATE TABLE b (x int)")
    assert refused(db, "CREATE TABLE b (y int)") == "42P07"
    db.executescript("ROLLBACK TO p; CREATE TABLE b (y text); INSERT INTO b VALUES ('second'); COMMIT")
    assert rows(db, "SELECT * FROM a") == []
    assert rows(db, "SELECT y FROM b") == [("second",)]


def test_of_two_that_create_one_name_the_later_commit_is_refused(db: eddyline.Connection) -> None:
    with db.session() as other:
        db.executescript("BEGIN; CREATE TABLE a (x int); INSERT INTO a VALUES (1); INSERT INTO t VALUES (3, 30)")
        other.executescript("CREATE TABLE a (y int)")
        assert refused(db, "COMMIT") == "42P07"
        assert rows(db, "SELECT y FROM a") == []
        assert rows(db, "SELECT * FROM t") == [(1, 10), (2, 20)], "nothing of the refused transaction is there"


def test_a_view_of_what_another_dropped_is_refused_at_the_commit(db: eddyline.Connection) -> None:
    with db.session() as other:
        db.executescript("BEGIN; CREATE VIEW w AS SELECT * FROM t; CREATE INDEX ON w (id)")
        other.execute("DROP TABLE t")
        assert refused(db, "COMMIT") == "40001"
        assert refused(db, "SELECT * FROM w") == "42P01"


def test_a_refused_commit_leaves_no_collections_or_dataflows(db: eddyline.Connection) -> None:
    db.executescript("BEGIN; CREATE TABLE a (id int); CREATE INDEX a_idx ON a (id); DELETE FROM t WHERE id = 1")
    db.delete("a", [{"id": 5}])  # of a row that is not there, which the commit finds
    assert refused(db, "COMMIT") == "22023"
    assert rows(db, "SELECT name FROM mz_indexes WHERE name = 'a_idx'") == []
    db.executescript("CREATE TABLE a (id int); CREATE INDEX a_idx ON a (id); INSERT INTO a VALUES (5)")
    db.wait_hydrated("a_idx", timeout=60)
    assert rows(db, "SELECT * FROM a") == [(5,)]


def test_what_waits_for_the_commit_says_so(db: eddyline.Connection) -> None:
    db.executescript("BEGIN; CREATE TABLE a (x int)")
    assert refused(db, "SUBSCRIBE a") == "0A000"
    db.executescript("ROLLBACK; BEGIN; CREATE TABLE a (x int)")
    assert refused(db, "CREATE INDEX ON missing (x)") == "42P01"
    db.executescript("ROLLBACK; BEGIN; CREATE VIEW w AS SELECT now() AS at, id FROM t")
    assert refused(db, "CREATE INDEX ON w (id)") == "0A000", "a dataflow that can't be made is refused by its statement"
    db.rollback()
    db.execute("BEGIN READ ONLY")
    assert refused(db, "CREATE TABLE a (x int)") == "25006"


# -- compared with PostgreSQL ------------------------------------------------------------------------------------------

_TABLES = ("a", "b", "c")
_VIEWS = ("v", "w")
_START = (
    "CREATE TABLE a (id int PRIMARY KEY, v int)",
    "INSERT INTO a VALUES (1, 1), (2, 2)",
    "CREATE VIEW v AS SELECT id, v + 10 AS v FROM a",
    "BEGIN",
    "CREATE TABLE b AS SELECT * FROM v",
    "CREATE VIEW w AS SELECT * FROM b",
    "SAVEPOINT p",
)


def _statement(random_: random.Random) -> str:
    name, table, number = random_.choice(_TABLES), random_.choice(_TABLES), random_.randrange(4)
    view, other = random_.choice(_VIEWS), random_.choice((*_TABLES, *_VIEWS))  # a view takes no rows, as some of theirs
    maybe = random_.choice(("", " IF EXISTS"))
    cascade = random_.choice(("", " CASCADE"))
    return random_.choices(
        (
            f"CREATE TABLE {random_.choice(('', 'IF NOT EXISTS '))}{name} (id int PRIMARY KEY, v int)",
            f"CREATE TABLE {name} AS SELECT id, v + 1 AS v FROM {other}",
            f"CREATE VIEW {view} AS SELECT id, v * 2 AS v FROM {other} WHERE id > {number - 2}",
            f"CREATE OR REPLACE VIEW {view} AS SELECT id, v + {number} AS v FROM {table}",
            f"DROP TABLE{maybe} {name}{cascade}",
            f"DROP VIEW{maybe} {view}{cascade}",
            f"ALTER TABLE {name} RENAME TO {table}",
            f"INSERT INTO {name} VALUES ({number}, {random_.randrange(9)})",
            f"INSERT INTO {name} SELECT id + {number}, v FROM {other}",
            f"INSERT INTO {name} VALUES ({number}, 1) ON CONFLICT DO NOTHING",
            f"UPDATE {name} SET v = v + 1 WHERE id <> {number}",
            f"DELETE FROM {name} WHERE id = {number}",
            f"TRUNCATE {name}",
            f"SELECT id, v FROM {other}",
            f"SELECT count(*), sum(x.v) FROM {name} x JOIN {other} y ON x.id = y.id",
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT p",
            "ROLLBACK TO p",
        ),
        weights=(7, 3, 5, 3, 1, 1, 1, 9, 3, 4, 4, 3, 1, 14, 8, 6, 4, 1, 3, 2),
    )[0]


def _ours(db: eddyline.Connection, text: str) -> object:
    try:
        cursor = db.execute(text)
        return sorted(cursor.fetchall(), key=repr) if text.startswith("SELECT") else "done"
    except eddyline.Error as error:
        return error.sqlstate


def _theirs(connection: psycopg.Connection[tuple[object, ...]], text: str) -> object:
    try:
        cursor = connection.execute(text)
        return sorted(cursor.fetchall(), key=repr) if text.startswith("SELECT") else "done"
    except psycopg.Error as error:
        return error.sqlstate


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_transactions_of_definitions_answer_as_postgresql(postgres: PostgresServer, first: int) -> None:
    compared = 0
    for seed in range(first, first + 10):
        random_ = random.Random(seed)
        with eddyline.connect() as db, postgres.connect() as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            texts: list[str] = []
            wanted: object = None
            for text in _START:
                assert (_ours(db, text), _theirs(connection, text)) == ("done", "done")
            for _ in range(60):
                over = isinstance(wanted, str) and wanted != "done" and random_.random() < 0.7
                texts.append(random_.choice(("ROLLBACK TO p", "ROLLBACK", "COMMIT")) if over else _statement(random_))
                found, wanted = _ours(db, texts[-1]), _theirs(connection, texts[-1])
                assert found == wanted, (seed, *texts[::-1])
                compared += isinstance(found, list)
    assert compared >= 30
