"""PEP 249, and what cursors have beside it."""

from __future__ import annotations

import builtins
import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import eddyline


def test_module_attributes() -> None:
    assert (eddyline.apilevel, eddyline.threadsafety, eddyline.paramstyle) == ("2.0", 2, "qmark")
    assert eddyline.Date(2020, 2, 29) == dt.date(2020, 2, 29)
    assert eddyline.Time(1, 2, 3) == dt.time(1, 2, 3)
    assert eddyline.Timestamp(2020, 2, 29) == dt.datetime(2020, 2, 29)
    assert eddyline.Binary(b"x") == b"x"
    assert eddyline.DateFromTicks(0) == dt.date(1970, 1, 1)
    assert eddyline.TimeFromTicks(3661) == dt.time(1, 1, 1)
    assert eddyline.TimestampFromTicks(0) == dt.datetime(1970, 1, 1)


def test_the_exception_tree_is_pep_249s_and_on_connections_too(db: eddyline.Connection) -> None:
    parents = {
        "Warning": Exception,
        "Error": Exception,
        "InterfaceError": eddyline.Error,
        "DatabaseError": eddyline.Error,
        "DataError": eddyline.DatabaseError,
        "OperationalError": eddyline.DatabaseError,
        "IntegrityError": eddyline.DatabaseError,
        "InternalError": eddyline.DatabaseError,
        "ProgrammingError": eddyline.DatabaseError,
        "NotSupportedError": eddyline.DatabaseError,
    }
    for name, parent in parents.items():
        assert issubclass(getattr(eddyline, name), parent)
        assert getattr(db, name) is getattr(eddyline, name)


@pytest.mark.parametrize(
    ("statement", "kind", "sqlstate"),
    [
        ("SELEC 1", "ProgrammingError", "42601"),
        ("SELECT * FROM nowhere", "ProgrammingError", "42P01"),
        ("SELECT nothing", "ProgrammingError", "42703"),
        ("SELECT nothing()", "ProgrammingError", "42883"),
        ("SELECT 1 / 0", "DataError", "22012"),
        ("SELECT 'x'::int", "DataError", "22P02"),
        ("SELECT 2147483647 + 1", "DataError", "22003"),
        ("SELECT (SELECT 1 UNION ALL SELECT 2)", "DataError", "21000"),
        ("CREATE DATABASE r", "NotSupportedError", "0A000"),
        ("INSERT INTO k VALUES (1), (1)", "IntegrityError", "23505"),
        ("INSERT INTO k VALUES (NULL)", "IntegrityError", "23502"),
        ("SELECT 1; SELECT 2", "ProgrammingError", "42601"),
        ("SELECT $1", "ProgrammingError", "08P01"),
        ("SET nothing = 1", "ProgrammingError", "42704"),
        ("ROLLBACK TO SAVEPOINT s", "ProgrammingError", "25P01"),
        ("SELECT " + "(" * 20_000 + "1" + ")" * 20_000, "OperationalError", "54001"),
        ("SELECT 1" + "+1" * 20_000, None, None),
        ("SELECT '\x00'", None, "?"),
    ],
)
def test_failures_are_typed_and_the_session_goes_on(
    db: eddyline.Connection, statement: str, kind: str | None, sqlstate: str | None
) -> None:
    db.execute("CREATE TABLE k (id int PRIMARY KEY)")
    if kind is None:
        try:
            db.execute(statement)
        except eddyline.Error as error:
            assert sqlstate is not None or error.sqlstate == "54001"
    else:
        with pytest.raises(getattr(eddyline, kind)) as caught:
            db.execute(statement)
        assert caught.value.sqlstate == sqlstate
    assert db.execute("SELECT count(*) FROM k").fetchall() == [(0,)]


def test_errors_say_where_and_survive_pickling(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.ProgrammingError) as caught:
        db.execute("SELECT é, nothing FROM (SELECT 1 AS é) t")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.sqlstate, error.position) == ("42703", 11)
    assert error.message == 'column "nothing" does not exist'
    assert {"detail", "hint"} <= vars(error).keys()


def test_description_and_type_objects(db: eddyline.Connection) -> None:
    cursor = db.execute(
        "SELECT 1 AS a, 'x'::varchar(5) AS b, 1.5::numeric(6,2) AS c, now() AS d, '\\x00'::bytea AS e, true AS f"
    )
    assert cursor.description is not None
    assert [d[0] for d in cursor.description] == ["a", "b", "c", "d", "e", "f"]
    assert all(len(d) == 7 for d in cursor.description)
    families = [eddyline.NUMBER, eddyline.STRING, eddyline.NUMBER, eddyline.DATETIME, eddyline.BINARY, eddyline.NUMBER]
    for (_, code, *_rest), family in zip(cursor.description, families, strict=True):
        assert code == family
        assert family == code
    assert cursor.description[1][3] == 5
    assert cursor.description[2][4:6] == (6, 2)
    assert eddyline.NUMBER != eddyline.STRING
    assert db.execute("CREATE TABLE t (a int)").description is None


def test_rowcounts_and_tags(db: eddyline.Connection) -> None:
    assert db.cursor().rowcount == -1
    script = [
        ("CREATE TABLE t (a int)", -1, "CREATE TABLE"),
        ("INSERT INTO t VALUES (1), (2), (3)", 3, "INSERT 0 3"),
        ("UPDATE t SET a = a + 1 WHERE a > 1", 2, "UPDATE 2"),
        ("SELECT * FROM t", 3, "SELECT 3"),
        ("DELETE FROM t WHERE a = 1", 1, "DELETE 1"),
        ("INSERT INTO t VALUES (7) RETURNING a", 1, "INSERT 0 1"),
        ("DROP TABLE t", -1, "DROP TABLE"),
    ]
    for statement, count, tag in script:
        cursor = db.execute(statement)
        assert (cursor.rowcount, cursor.statusmessage) == (count, tag)


def test_fetching(db: eddyline.Connection) -> None:
    cursor = db.cursor()
    assert cursor.execute("SELECT * FROM generate_series(1, 7) AS g (n) ORDER BY n") is cursor
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany() == [(2,)]
    assert cursor.fetchmany(2) == [(3,), (4,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(5,), (6,)]
    assert cursor.fetchall() == [(7,)]
    assert (cursor.fetchone(), cursor.fetchmany(3), cursor.fetchall()) == (None, [], [])
    assert sorted(db.execute("SELECT * FROM generate_series(1, 4321)"))[-1] == (4321,)
    many = db.execute("SELECT * FROM generate_series(1, 5000) AS g (n) ORDER BY n")
    assert [many.fetchone(), *many.fetchall()] == [(n,) for n in range(1, 5001)]


def test_a_cursor_is_its_own_iterator(db: eddyline.Connection) -> None:
    cursor = db.execute("SELECT a FROM generate_series(1, 3) AS a ORDER BY a")
    assert next(cursor) == (1,)
    assert list(cursor) == [(2,), (3,)]
    assert next(cursor, None) is None


def test_cursors_and_connections_show_what_they_are(db: eddyline.Connection) -> None:
    cursor = db.cursor()
    assert repr(cursor) == "<eddyline.Cursor: no statement yet>"
    assert repr(cursor.execute("SELECT 1")) == "<eddyline.Cursor: SELECT 1>"
    cursor.close()
    assert repr(cursor) == "<eddyline.Cursor: closed>"
    assert repr(db) == "<eddyline.Connection: a database in memory>"
    with db.session() as session:
        assert repr(session) == "<eddyline.Connection: a session in memory>"


def test_nothing_to_fetch_is_an_interface_error(db: eddyline.Connection) -> None:
    cursor = db.cursor()
    for call in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.arrow):
        with pytest.raises(eddyline.InterfaceError) as caught:
            call()
        assert caught.value.sqlstate == "24000"
    cursor.execute("CREATE TABLE t (a int)")
    with pytest.raises(eddyline.InterfaceError):
        cursor.fetchone()
    cursor.execute("SELECT 1")
    with pytest.raises(eddyline.ProgrammingError):
        cursor.execute("SELEC 1")
    with pytest.raises(eddyline.InterfaceError):
        cursor.fetchone()


def test_closed_cursors_do_nothing(db: eddyline.Connection) -> None:
    with db.cursor() as cursor:
        cursor.execute("SELECT 1")
    cursor.close()
    for call in (cursor.fetchone, lambda: cursor.execute("SELECT 1"), lambda: cursor.executemany("SELECT 1", [])):
        with pytest.raises(eddyline.InterfaceError):
            call()


def test_empty_statements_and_scripts(db: eddyline.Connection) -> None:
    assert db.execute("").rowcount == -1
    assert db.execute("-- nothing").description is None
    assert db.executescript("CREATE TABLE t (a int); INSERT INTO t VALUES (1);; SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(eddyline.ProgrammingError):
        db.executescript("INSERT INTO t VALUES (2); SELECT nothing; INSERT INTO t VALUES (3)")
    assert sorted(db.execute("SELECT a FROM t")) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("statement", "parameters", "rows"),
    [
        ("SELECT $1::int + $2::int", [1, 2], [(3,)]),
        ("SELECT $2::text, $1::text", ("a", "b"), [("b", "a")]),
        ("SELECT ?::int + ?::int", [1, 2], [(3,)]),
        ("SELECT '?', ?::int -- ?", [1], [("?", 1)]),
        ("SELECT $1::int + $1::int", [4], [(8,)]),
        ("SELECT $1", ["x"], [("x",)]),
        ("SELECT $1", [1], [("1",)]),
        ("SELECT $1", [None], [(None,)]),
        ("SELECT $1 + 1.0::float8", [1.5], [(2.5,)]),
        ("SELECT n FROM generate_series(1, 9) AS g (n) WHERE n = $1", [4], [(4,)]),
        ("SELECT n FROM generate_series(1, 9) AS g (n) ORDER BY n LIMIT $1 OFFSET $2", [2, 3], [(4,), (5,)]),
        ("SELECT 1", [], [(1,)]),
    ],
)
def test_parameters(db: eddyline.Connection, statement: str, parameters: Any, rows: list[tuple[object, ...]]) -> None:
    for _ in range(2):
        got = db.execute(statement, parameters).fetchall()
        assert [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in got] == rows


@pytest.mark.parametrize(
    ("statement", "parameters", "sqlstate"),
    [
        ("SELECT $1::int", None, "08P01"),
        ("SELECT $1::int", [], "08P01"),
        ("SELECT $1::int", [1, 2], "08P01"),
        ("SELECT ?::int, ?::int", [1], "08P01"),
        ("SELECT 1", [1], "08P01"),
        ("SELECT $1::int", "x", "42601"),
        ("SELECT $1::int", {"a": 1}, "42601"),
        ("SELECT $1::int", 5, "42601"),
    ],
)
def test_wrong_parameters(db: eddyline.Connection, statement: str, parameters: Any, sqlstate: str) -> None:
    with pytest.raises(eddyline.ProgrammingError) as caught:
        db.execute(statement, parameters)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(("parameters", "hint"), [({"id": 1}, "no names"), (1, "[value]"), ("x", "[value]")])
def test_what_is_no_sequence_of_parameters_is_told_how(db: eddyline.Connection, parameters: Any, hint: str) -> None:
    with pytest.raises(eddyline.ProgrammingError) as caught:
        db.execute("SELECT ?", parameters)
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_executemany_is_one_commit(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    cursor = db.executemany("INSERT INTO t VALUES (?, ?)", [(i, str(i)) for i in range(50)])
    assert cursor.rowcount == 50
    at = cursor.time
    assert db.execute(f"SELECT count(*) FROM t AS OF {at}").fetchall() == [(50,)]
    with pytest.raises(eddyline.Error):
        db.executemany("INSERT INTO t VALUES (?, ?)", [(100, "x"), (1, "again")])
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(50,)]
    assert db.executemany("INSERT INTO t VALUES (?, ?)", []).rowcount == 0
    assert not db.in_transaction


def test_many_rows_of_executemany_are_checked_against_each_other(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    db.executemany("INSERT INTO t VALUES (?, 0)", [(i,) for i in range(500)])
    upsert = "INSERT INTO t VALUES (?, 1) ON CONFLICT (a) DO UPDATE SET b = t.b + 1"
    db.executemany(upsert, [(i % 600,) for i in range(1200)])
    assert db.execute("SELECT count(*), sum(b)::int FROM t").fetchall() == [(600, 500 * 2 + 100 * 2)]
    db.executemany("DELETE FROM t WHERE a = ?", [(i,) for i in range(0, 600, 100)])
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(594,)]


def test_cursors_of_one_session_share_its_transaction(db: eddyline.Connection) -> None:
    one, two = db.cursor(), db.cursor()
    one.execute("CREATE TABLE t (a int)")
    one.execute("BEGIN")
    one.execute("INSERT INTO t VALUES (1)")
    assert two.execute("SELECT * FROM t").fetchall() == [(1,)]
    db.rollback()
    assert two.execute("SELECT * FROM t").fetchall() == []
    db.commit()
    db.rollback()


def test_results_as_frames_and_streams(db: eddyline.Connection) -> None:
    cursor = db.execute("SELECT n, n * 2 AS m FROM generate_series(1, 3) AS g (n) ORDER BY n")
    assert cursor.arrow().to_pydict() == {"n": [1, 2, 3], "m": [2, 4, 6]}
    assert cursor.df().to_dict("list") == {"n": [1, 2, 3], "m": [2, 4, 6]}
    assert cursor.pl().to_dict(as_series=False) == {"n": [1, 2, 3], "m": [2, 4, 6]}
    assert pa.table(cursor).num_rows == 3
    assert db.execute("SELECT 1 AS a, 2 AS a").arrow().column_names == ["a", "a"]
    assert db.execute("SELECT 1 AS a WHERE false").df().empty


@pytest.mark.parametrize(("method", "package"), [("df", "pandas"), ("pl", "polars")])
def test_frames_without_their_package_name_the_extra(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    plain = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    cursor = db.execute("SELECT 1 AS a")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=rf"eddyline\[{package}\]"):
        getattr(cursor, method)()


def test_results_show_as_html_tables(db: eddyline.Connection) -> None:
    html = db.execute("SELECT '<b>' AS \"a&b\", NULL AS n")._repr_html_()
    assert html is not None
    assert "<th>a&amp;b</th>" in html
    assert "<td>&lt;b&gt;</td><td>NULL</td>" in html
    long = db.execute("SELECT * FROM generate_series(1, 100)")._repr_html_()
    assert long is not None
    assert "100 rows" in long
    assert db.execute("CREATE TABLE t (a int)")._repr_html_() is None


def test_accepted_and_ignored(db: eddyline.Connection) -> None:
    cursor = db.cursor()
    cursor.setinputsizes([None])
    cursor.setoutputsize(10, 0)


@pytest.mark.parametrize("indexed", [False, True])
def test_ad_hoc_reads_agree_with_maintained_views_after_retractions(indexed: bool) -> None:
    """The operators of a read's one time, and the first rows of a walk, against what is kept fresh."""
    aggregates = "SELECT g, count(*) AS n, min(v) AS a, max(w) AS b, sum(v) AS s, max(v) FILTER (WHERE v < 5) AS f"
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (g integer, v integer, w text)")
        db.execute(f"CREATE VIEW grouped AS {aggregates} FROM t GROUP BY g")
        db.execute("CREATE VIEW top AS SELECT g, v, w FROM t ORDER BY v DESC, w LIMIT 5 OFFSET 2")
        for view in ("grouped", "top"):
            db.execute(f"CREATE INDEX {view}_i ON {view} (g)")
        if indexed:
            db.execute("CREATE INDEX t_i ON t (g)")
        rows = [(n % 4, n * 7 % 23, f"w{n * 5 % 31:02}") for n in range(300)]
        db.executemany("INSERT INTO t VALUES ($1, $2, $3)", rows)
        for change in ("DELETE FROM t WHERE v > 18", "UPDATE t SET v = v + 1, w = 'x' WHERE g = 2 AND v % 3 = 0"):
            for grouped in ("GROUP BY g", ""):
                query = f"{aggregates} FROM t GROUP BY g" if grouped else "SELECT min(v), max(w), count(*) FROM t"
                kept = "SELECT * FROM grouped" if grouped else "SELECT min(a), max(b), sum(n)::bigint FROM grouped"
                assert sorted(db.execute(query).fetchall()) == sorted(db.execute(kept).fetchall())
            query = "SELECT g, v, w FROM t ORDER BY v DESC, w LIMIT 5 OFFSET 2"
            kept = "SELECT g, v, w FROM top ORDER BY v DESC, w"
            assert db.execute(query).fetchall() == db.execute(kept).fetchall()
            assert db.execute(query.replace("5", "$1"), [0]).fetchall() == []
            joined = "SELECT t.g, t.v, t.w FROM t JOIN t AS u ON t.g = u.g ORDER BY t.v DESC, t.w LIMIT 3"
            assert db.execute(joined).fetchall() == db.execute(joined.replace("LIMIT 3", "")).fetchall()[:3]
            db.execute(change)
