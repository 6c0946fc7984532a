"""DECLARE, FETCH, MOVE and CLOSE as PostgreSQL has them."""

from __future__ import annotations

import random

import pytest

import eddyline
from eddyline.testing.postgres import PostgresServer

QUERY = "SELECT x FROM generate_series(1, 7) x ORDER BY x"
DIRECTIONS = (
    "NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE 3", "ABSOLUTE -2", "ABSOLUTE 0", "ABSOLUTE 99", "ABSOLUTE -99",
    "RELATIVE 2", "RELATIVE -2", "RELATIVE 0", "3", "-3", "ALL", "FORWARD", "FORWARD 2", "FORWARD 0", "FORWARD ALL",
    "FORWARD -2", "BACKWARD", "BACKWARD 2", "BACKWARD 0", "BACKWARD ALL", "BACKWARD -2",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_gives_what_postgres_gives(postgres: PostgresServer, seed: int) -> None:
    chance = random.Random(seed)
    with eddyline.connect() as db, postgres.connect() as pg:
        for either in (db, pg):
            either.execute("BEGIN")
            either.execute(f"DECLARE c SCROLL CURSOR FOR {QUERY}")
        walked = []
        for _ in range(60):
            verb = chance.choice(("FETCH", "FETCH", "MOVE"))
            text = f"{verb} {chance.choice(DIRECTIONS)} FROM c"
            walked.append(text)
            ours, theirs = db.execute(text), pg.execute(text)
            assert ours.statusmessage == theirs.statusmessage, walked
            if verb == "FETCH":
                assert ours.fetchall() == theirs.fetchall(), walked
        pg.execute("ROLLBACK")


def refused(db: eddyline.Connection, text: str) -> str:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(text)
    return caught.value.sqlstate


def test_a_cursor_lives_as_long_as_its_transaction_unless_it_is_held() -> None:
    with eddyline.connect() as db:
        assert refused(db, f"DECLARE c CURSOR FOR {QUERY}") == "25P01"
        db.execute("BEGIN")
        db.execute(f"DECLARE c CURSOR FOR {QUERY}")
        db.execute(f"DECLARE h CURSOR WITH HOLD FOR {QUERY}")
        assert refused(db, f"DECLARE c CURSOR FOR {QUERY}") == "42P03"
        db.rollback()
        assert (refused(db, "FETCH c"), refused(db, "FETCH h")) == ("34000", "34000")
        db.execute(f"DECLARE h CURSOR WITH HOLD FOR {QUERY}")
        assert db.execute("FETCH 2 FROM h").fetchall() == [(1,), (2,)]
        db.execute("BEGIN")
        db.execute(f"DECLARE c CURSOR FOR {QUERY}")
        db.execute("COMMIT")
        assert refused(db, "FETCH c") == "34000"
        assert db.execute("FETCH NEXT FROM h").fetchall() == [(3,)]
        assert db.execute("CLOSE h").statusmessage == "CLOSE CURSOR"
        assert refused(db, "CLOSE h") == "34000"
        assert db.execute("CLOSE ALL").statusmessage == "CLOSE CURSOR ALL"


def test_no_scroll_goes_forward_only() -> None:
    with eddyline.connect() as db, db.transaction():
        db.execute(f"DECLARE c NO SCROLL CURSOR FOR {QUERY}")
        db.execute("SAVEPOINT s")
        assert db.execute("FETCH 2 FROM c").fetchall() == [(1,), (2,)]
        assert refused(db, "FETCH PRIOR FROM c") == "55000"
        db.execute("ROLLBACK TO s")
        assert db.execute("FETCH NEXT FROM c").fetchall() == [(3,)]


def test_a_cursor_sees_the_rows_of_when_it_was_declared() -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (a int)")
        with db.transaction():
            db.execute("INSERT INTO t VALUES (1)")
            db.execute("DECLARE c CURSOR FOR SELECT a FROM t")
            db.execute("INSERT INTO t VALUES (2)")
            assert db.execute("FETCH ALL FROM c").fetchall() == [(1,)]


def test_a_subscription_is_fetched_as_its_changes_come() -> None:
    with eddyline.connect() as db, db.session() as writer:
        db.execute("CREATE TABLE t (a int)")
        db.execute("INSERT INTO t VALUES (1), (2)")
        db.execute("BEGIN")
        db.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT a FROM t) WITH (SNAPSHOT)")
        first = db.execute("FETCH 1 FROM c WITH (TIMEOUT = '30s')").fetchall()
        rest = db.execute("FETCH ALL FROM c WITH (TIMEOUT '30s')").fetchall()
        assert sorted(row[2:] for row in [*first, *rest]) == [(1, 1), (1, 2)]
        assert db.execute("FETCH ALL FROM c WITH (TIMEOUT = '1ms')").fetchall() == []
        writer.execute("DELETE FROM t WHERE a = 1")
        (change,) = db.execute("FETCH 10 FROM c WITH (TIMEOUT = '30s')").fetchall()
        assert change[2:] == (-1, 1)
        assert refused(db, "FETCH BACKWARD 1 FROM c") == "0A000"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("DECLARE c BINARY CURSOR FOR SELECT 1", "0A000"),
        ("DECLARE c CURSOR WITH HOLD FOR SUBSCRIBE t", "0A000"),
        ("FETCH 1 FROM c WITH (TIMEOUT = 'soon')", "22023"),
        ("FETCH 1 FROM c WITH (PATIENCE = '1s')", "42601"),
        ("FETCH 1 FROM c WITH (TIMEOUT = '1s') x", "42601"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, sqlstate: str) -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (a int)")
        assert refused(db, text) == sqlstate
