"""Whatever a statement holds, the answer is right or the error is typed; nothing is lost, and the database goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

import eddyline

_ROW = (1, 2, "a", "abc")


@pytest.fixture(scope="module")
def database() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, s smallint, x text, v varchar(3))")
        db.execute("INSERT INTO t VALUES (1, 2, 'a', 'abc')")
        db.execute("CREATE VIEW totals AS SELECT count(*) AS n, sum(s) AS total FROM t")
        db.execute("CREATE DEFAULT INDEX ON totals")
        yield db


@pytest.fixture
def db(database: eddyline.Connection) -> Iterator[eddyline.Connection]:
    """The shared database, which every test leaves as it was."""
    yield database
    assert database.execute("SELECT * FROM t").fetchall() == [_ROW]
    assert database.execute("SELECT * FROM totals").fetchall() == [(1, 2)]


def _refused(db: eddyline.Connection, text: Any, parameters: Any = None) -> eddyline.Error:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(text, parameters)
    return caught.value


@pytest.mark.parametrize(
    ("text", "sqlstate", "position"),
    [
        ("SELEC 1", "42601", 1),
        ("SELECT FROM WHERE", "42601", 13),
        ("SELECT 'abc", "42601", 8),
        ("SELECT (1", "42601", 10),
        ("SELECT 1; SELECT 2", "42601", None),
        ("VALUES (1), (1, 2)", "42601", 14),
        ("SELECT 1 UNION SELECT 1, 2", "42601", 23),
        ("INSERT INTO t VALUES (1, 2, '3', '4', 5)", "42601", 39),
    ],
)
def test_malformed_statements_say_where(
    db: eddyline.Connection, text: str, sqlstate: str, position: int | None
) -> None:
    error = _refused(db, text)
    assert (error.sqlstate, error.position) == (sqlstate, position)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT * FROM nope", "42P01"),
        ("SELECT nope FROM t", "42703"),
        ("SELECT t.nope FROM t", "42703"),
        ("SELECT nope(1)", "42883"),
        ("SELECT 'x'::nope", "42704"),
        ("INSERT INTO t (nope) VALUES (1)", "42703"),
        ("CREATE TABLE u (a nope)", "42704"),
        ("CREATE VIEW u AS SELECT nope", "42703"),
        ("CREATE INDEX ON nope (a)", "42P01"),
        ("DROP TABLE nope", "42P01"),
        ("EXECUTE nope", "26000"),
        ("SET nope = 1", "42704"),
        ("SELECT 1 FROM nope.t", "42P01"),
        ("SELECT 1 FROM t AS a JOIN t AS a ON true", "42712"),
    ],
)
def test_unknown_and_doubled_names(db: eddyline.Connection, text: str, sqlstate: str) -> None:
    assert _refused(db, text).sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT id + x FROM t", "42883"),
        ("SELECT 1 WHERE 1", "42804"),
        ("DELETE FROM t WHERE x", "42804"),
        ("INSERT INTO t VALUES ('x')", "22P02"),
        ("UPDATE t SET id = 'x'", "22P02"),
        ("UPDATE t SET id = true", "42804"),
        ("SELECT 1 UNION SELECT 'a'", "22P02"),
        ("SELECT id FROM t GROUP BY x", "42803"),
        ("SELECT sum(sum(id)) FROM t", "42803"),
    ],
)
def test_wrong_types(db: eddyline.Connection, text: str, sqlstate: str) -> None:
    assert _refused(db, text).sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("INSERT INTO t (id, s) VALUES (2, 40000)", "22003"),
        ("INSERT INTO t (id, v) VALUES (2, 'abcd')", "22001"),
        ("INSERT INTO t (id) VALUES (2147483648)", "22003"),
        ("INSERT INTO t (id) SELECT 2 UNION ALL SELECT 3 / 0", "22012"),
        ("INSERT INTO t VALUES (1)", "23505"),
        ("INSERT INTO t VALUES (2), (2)", "23505"),
        ("INSERT INTO t (id) VALUES (NULL)", "23502"),
        ("UPDATE t SET s = s * 20000", "22003"),
        ("SELECT 99999999999999999999999::int", "22003"),
        ("SELECT '1e400'::float8", "22003"),
        ("SELECT 1e999999999", "22003"),
        ("SELECT 2147483647 + 1", "22003"),
        ("SELECT '2024-02-30'::date", "22008"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT 1 LIMIT -1", "2201W"),
        ("SELECT chr(0)", "54000"),
        ("SELECT repeat('a', 2000000000)", "54000"),
        ("SELECT * FROM generate_series(1, 10, 0)", "22023"),
        ("SELECT (SELECT id FROM (VALUES (1), (2)) v(id))", "21000"),
    ],
)
def test_values_out_of_range(db: eddyline.Connection, text: str, sqlstate: str) -> None:
    assert _refused(db, text).sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "parameters", "sqlstate"),
    [
        ("SELECT $1::int", [1, 2], "08P01"),
        ("SELECT $1::int", [], "08P01"),
        ("SELECT $1::int", None, "08P01"),
        ("SELECT ?", [1, 2], "08P01"),
        ("SELECT $3::int", [1], "42P18"),
        ("SELECT $1::int", ["x"], "22P02"),
        ("SELECT $1::int", [2**70], "22003"),
        ("SELECT $1::int", [object()], "42804"),
        ("SELECT $1", "abc", "42601"),
        ("SELECT $1::text", ["a\0b"], "22021"),
        ("SELECT $1::text", ["\ud800"], "22021"),
        ("SELECT 'a\0b'", None, "22021"),
        ("SELECT '\ud800'", None, "22021"),
        ("SELECT E'\\xff'", None, "22021"),
        ("SELECT U&'\\d800'", None, "42601"),
        (b"SELECT 1", None, "42601"),
        (None, None, "42601"),
    ],
)
def test_parameters_and_encodings(db: eddyline.Connection, text: Any, parameters: Any, sqlstate: str) -> None:
    assert _refused(db, text, parameters).sqlstate == sqlstate


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) OVER () FROM t",
        "SELECT array_fill(1, ARRAY[2])",
        "SELECT '{}'::jsonb",
        "CREATE DATABASE x",
        "VACUUM",
        "LISTEN x",
        "CREATE FUNCTION f() RETURNS int AS 'select 1' LANGUAGE sql",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t TABLESAMPLE system(1)",
        "CREATE TABLE z (a int CHECK (a > 0))",
        "CREATE TABLE z (a int REFERENCES t)",
        "MERGE INTO t USING t b ON true WHEN MATCHED THEN DELETE",
        "ALTER TABLE t ADD COLUMN q int",
    ],
)
def test_what_is_not_supported_says_so_by_name(db: eddyline.Connection, text: str) -> None:
    error = _refused(db, text)
    assert error.sqlstate == "0A000" and error.message.endswith("not supported")


def test_a_failing_row_in_a_view_names_the_view_the_expression_and_the_row_until_it_heals() -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE r (id int, d int)")
        db.execute("INSERT INTO r VALUES (1, 2), (7, 0)")
        db.execute("CREATE VIEW rates AS SELECT id, 10 / d AS rate FROM r")
        db.execute("CREATE DEFAULT INDEX ON rates")
        error = _refused(db, "SELECT * FROM rates")
        assert error.sqlstate == "22012" and error.detail is not None
        assert "rates" in error.detail and "10 / " in error.detail and "d = 0, id = 7" in error.detail
        assert db.execute("SELECT count(*) FROM r").fetchone() == (2,)
        db.execute("UPDATE r SET d = 5 WHERE id = 7")
        assert sorted(db.execute("SELECT * FROM rates").fetchall()) == [(1, 5), (7, 2)]
        db.execute("INSERT INTO r VALUES (8, 0)")
        assert _refused(db, "SELECT * FROM rates WHERE id = 1").sqlstate == "22012"
        db.execute("DELETE FROM r WHERE id = 8")
        assert sorted(db.execute("SELECT * FROM rates").fetchall()) == [(1, 5), (7, 2)]


def test_texts_of_ten_megabytes_pass_through_whole() -> None:
    big = "äb" * 3_300_000 + "x" * 100_000
    digest = hashlib.md5(big.encode(), usedforsecurity=False).hexdigest()
    with eddyline.connect() as db:
        db.execute("CREATE TABLE b (id int, body text)")
        db.execute("CREATE VIEW digests AS SELECT id, md5(body) AS digest, char_length(body) AS n FROM b")
        db.execute("CREATE DEFAULT INDEX ON digests")
        db.execute("INSERT INTO b VALUES (1, $1)", [big])
        db.execute(f"INSERT INTO b VALUES (2, '{big}')")
        rows = db.execute("SELECT * FROM digests ORDER BY id").fetchall()
        assert rows == [(1, digest, len(big)), (2, digest, len(big))]
        db.execute("UPDATE b SET id = 3 WHERE id = 1")
        assert db.execute("SELECT body FROM b WHERE id = 3").fetchone() == (big,)
        db.execute("DELETE FROM b")
        assert db.execute("SELECT * FROM digests").fetchall() == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
        "SELECT " + "1 + " * 200_000 + "1",
        "SELECT " + "- " * 5_000 + "1",
        "SELECT " + "NOT " * 5_000 + "true",
        "SELECT " + "abs(" * 3_000 + "1" + ")" * 3_000,
        "SELECT " + "CASE WHEN true THEN " * 2_000 + "1" + " END" * 2_000,
        "SELECT * FROM " + "(SELECT * FROM " * 1_000 + "t" + ") q" * 1_000,
        " UNION ALL ".join(["SELECT 1"] * 5_000),
    ],
    ids=["parentheses", "sums", "negations", "nots", "calls", "cases", "subqueries", "unions"],
)
def test_nesting_that_is_too_deep(db: eddyline.Connection, text: str) -> None:
    assert _refused(db, text).sqlstate == "54001"


def test_long_lists_are_not_deep(db: eddyline.Connection) -> None:
    assert db.execute("SELECT " + " OR ".join(f"id = {i}" for i in range(2_000)) + " FROM t").fetchone() == (True,)
    assert db.execute(f"SELECT id IN ({', '.join(map(str, range(5_000)))}) FROM t").fetchone() == (True,)


def test_tables_have_up_to_1600_columns(db: eddyline.Connection) -> None:
    def definition(columns: int) -> str:
        return f"CREATE TABLE w ({', '.join(f'c{i} int' for i in range(columns))})"

    assert _refused(db, definition(1601)).sqlstate == "54011"
    db.execute(definition(1600))
    db.execute(f"INSERT INTO w VALUES ({', '.join(map(str, range(1600)))})")
    db.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM w")
    db.execute("UPDATE w SET c5 = 7")
    expected = list(range(1600))
    expected[5] = 7
    assert db.execute("SELECT * FROM kept").fetchall() == [tuple(expected)]
    assert _refused(db, "SELECT w.*, w.* FROM w").sqlstate == "54011"
    db.execute("DROP TABLE w CASCADE")


def test_a_failed_statement_undoes_all_of_itself_and_its_transaction(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (5, 5, 'e', NULL)")
    assert _refused(db, "INSERT INTO t SELECT 6 / (s - 5), 1, NULL, NULL FROM t").sqlstate == "22012"
    assert _refused(db, "SELECT 1").sqlstate == "25P02"
    db.execute("ROLLBACK")


def test_use_after_close() -> None:
    db = eddyline.connect()
    cursor, other = db.cursor(), db.session()
    db.close()
    db.close()
    for use in (db.execute, cursor.execute, other.execute):
        with pytest.raises(eddyline.Error):
            use("SELECT 1")
