"""What is refused says what to do instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import eddyline
from eddyline.sql import instead

CASES = {
    "GENERATED … STORED": "CREATE TABLE a (id int, b int GENERATED ALWAYS AS (id * 2) STORED)",
    "a CHECK constraint": "CREATE TABLE a (id int CHECK (id > 0))",
    "a UNIQUE constraint": "CREATE TABLE a (id int, UNIQUE (id))",
    "a FOREIGN KEY constraint": "CREATE TABLE a (id int REFERENCES t)",
    "an EXCLUDE constraint": "CREATE TABLE a (id int, EXCLUDE USING btree (id WITH =))",
    "type jsonb": "CREATE TABLE a (x jsonb)",
    "type xml": "CREATE TABLE a (x xml)",
    "type inet": "CREATE TABLE a (x inet)",
    "type cidr": "CREATE TABLE a (x cidr)",
    "type macaddr": "CREATE TABLE a (x macaddr)",
    "type name": "CREATE TABLE a (x name)",
    "type money": "CREATE TABLE a (x money)",
    "type oid": "CREATE TABLE a (x oid)",
    "type timetz": "CREATE TABLE a (x timetz)",
    "LIKE in CREATE TABLE": "CREATE TABLE a (LIKE t)",
    "PARTITION BY": "CREATE TABLE a (id int) PARTITION BY RANGE (id)",
    "PARTITION OF": "CREATE TABLE a PARTITION OF t DEFAULT",
    "INHERITS": "CREATE TABLE a (id int) INHERITS (t)",
    "a temporary relation": "CREATE TEMP TABLE a (id int)",
    "an unlogged table": "CREATE UNLOGGED TABLE a (id int)",
    "SELECT INTO": "SELECT 1 AS x INTO a",
    "a partial index": "CREATE INDEX ON t (v) WHERE id > 1",
    "ALTER … RENAME COLUMN": "ALTER TABLE t RENAME COLUMN v TO w",
    "CREATE FUNCTION": "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DO": "DO $$ BEGIN END $$",
    "CREATE TRIGGER": "CREATE TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION f()",
    "CREATE RULE": "CREATE RULE r AS ON INSERT TO t DO NOTHING",
    "LISTEN": "LISTEN x",
    "NOTIFY": "NOTIFY x",
    "CREATE TYPE … AS ENUM": "CREATE TYPE e AS ENUM ('a')",
    "CREATE DOMAIN": "CREATE DOMAIN d AS int",
    "LOCK TABLE": "LOCK TABLE t",
    "FOR UPDATE/SHARE": "SELECT * FROM t FOR UPDATE",
    "MERGE": "MERGE INTO t USING t s ON true WHEN MATCHED THEN DELETE",
    "CREATE DATABASE": "CREATE DATABASE x",
    "DEFERRABLE": "BEGIN DEFERRABLE",
    "a recursive query in a view": "CREATE MATERIALIZED VIEW m AS WITH RECURSIVE r AS "
    "(SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r",
    "a recursive query in a subscription": "SUBSCRIBE TO (WITH RECURSIVE r AS "
    "(SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r)",
    "SEARCH": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) "
    "SEARCH DEPTH FIRST BY n SET o SELECT * FROM r",
    "CYCLE": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) "
    "CYCLE n SET c USING p SELECT * FROM r",
    "function random": "SELECT random()",
    "function gen_random_uuid": "SELECT gen_random_uuid()",
    "function clock_timestamp": "SELECT clock_timestamp()",
    "function timeofday": "SELECT timeofday()",
    "function to_char": "SELECT to_char(now(), 'YYYY')",
    "function set_config": "SELECT set_config('search_path', 'other', false)",
    "function pg_sleep": "SELECT pg_sleep(1)",
    "function pg_cancel_backend": "SELECT 1 WHERE pg_cancel_backend(1)",
    "function pg_terminate_backend": "SELECT 1 WHERE pg_terminate_backend(1)",
    "function pg_advisory_lock": "SELECT pg_advisory_lock(1)",
    "function pg_advisory_xact_lock": "SELECT pg_advisory_xact_lock(1)",
    "function pg_try_advisory_lock": "SELECT pg_try_advisory_lock(1)",
    "function pg_try_advisory_xact_lock": "SELECT pg_try_advisory_xact_lock(1)",
}


@pytest.fixture(scope="module")
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        yield connection


@pytest.mark.parametrize(("what", "statement"), CASES.items(), ids=CASES.keys())
def test_a_refusal_says_what_to_do_instead(db: eddyline.Connection, what: str, statement: str) -> None:
    with pytest.raises(eddyline.NotSupportedError) as caught:
        db.execute(statement)
    assert caught.value.message == f"{what} is not supported"
    assert caught.value.hint == instead.INSTEAD[what]


def test_every_hint_is_given_by_some_statement() -> None:
    assert set(CASES) == set(instead.INSTEAD)


def test_what_the_hints_say_can_be_done(db: eddyline.Connection) -> None:
    db.executescript("""
        CREATE TABLE numbered (id int PRIMARY KEY, v text);
        INSERT INTO numbered SELECT coalesce(max(id), 0) + 1, 'a' FROM numbered;
        INSERT INTO numbered SELECT coalesce(max(id), 0) + 1, 'b' FROM numbered;
        CREATE VIEW twice AS SELECT v FROM numbered GROUP BY v HAVING count(*) > 1;
        CREATE INDEX ON twice (v);
        CREATE VIEW orphans AS SELECT * FROM numbered n WHERE NOT EXISTS (SELECT FROM t WHERE t.id = n.id);
        CREATE INDEX ON orphans (id);
        CREATE SCHEMA mine;
        CREATE TABLE mine.scratch AS SELECT * FROM numbered;
        DROP SCHEMA mine CASCADE;
    """)
    assert db.execute("SELECT * FROM numbered ORDER BY id").fetchall() == [(1, "a"), (2, "b")]
    assert db.execute("SELECT count(*) FROM orphans").fetchall() == [(2,)]


def test_names_may_be_quoted_as_in_sql(db: eddyline.Connection) -> None:
    db.executescript('CREATE SCHEMA "S.x"; CREATE TABLE "S.x"."My ""T" (a int); CREATE TABLE "T t" (a int)')
    db.append('"S.x"."My ""T"', [{"a": 1}])
    db.append('"T t"', [{"a": 1}])
    db.append('public."T t"', [{"a": 2}])
    db.append("T t", [{"a": 3}])
    assert db.execute('SELECT a FROM "T t" ORDER BY a').fetchall() == [(1,), (2,), (3,)]
    assert db.execute('SELECT a FROM "S.x"."My ""T"').fetchall() == [(1,)]
    change = next(iter(db.subscribe('"S.x"."My ""T"', timeout=60)))
    assert change.updates.num_rows == 1
    for name in ('"T"', '"T t', 'T t"', '""', '"T t".', 'x."T t"'):
        with pytest.raises(eddyline.ProgrammingError) as caught:
            db.append(name, [{"a": 1}])
        assert caught.value.sqlstate == "42P01"


def test_one_parameter_is_one(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.ProgrammingError, match=r"^the statement takes 1 parameter, 2 were given$"):
        db.execute("SELECT * FROM t WHERE id = $1", [1, 2])
