"""COPY and SUBSCRIBE between clients and the database."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection
from tests.frontends.pgwire.test_psql import psql
from tests.waiting import wait_until

ROWS = """SELECT x AS a, CASE WHEN x % 3 > 0 THEN repeat('é\t', x % 5) END AS b, x / 7.0 AS c
          FROM generate_series(1, 2500) x"""


def copied(connection: Connection, statement: str) -> list[bytes]:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        return [bytes(piece) for piece in copy]


def test_rows_come_in_and_go_out(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    with pg.cursor() as cursor:
        with cursor.copy("COPY t FROM STDIN") as copy:
            for i in range(5000):
                copy.write_row((i, None if i % 2 else f"tab\t{i}"))
        assert cursor.statusmessage == "COPY 5000"
    assert pg.execute("SELECT count(*), count(b) FROM t").fetchone() == (5000, 2500)
    lines = copied(pg, "COPY (SELECT * FROM t WHERE a < 2 ORDER BY a) TO STDOUT (FORMAT csv, HEADER)")
    assert lines == [b"a,b\n", b"0,tab\t0\n", b"1,\n"]
    with pg.cursor().copy("COPY t (b, a) TO STDOUT") as copy:
        assert {int(row[1]): row[0] for row in copy.rows()} == {i: None if i % 2 else f"tab\t{i}" for i in range(5000)}


@pytest.mark.parametrize("options", ["FORMAT text", "FORMAT csv, HEADER", "FORMAT binary"])
def test_the_data_are_those_of_postgres_byte_by_byte(pg: Connection, postgres: PostgresServer, options: str) -> None:
    statement = f"COPY ({ROWS} ORDER BY x) TO STDOUT ({options})"
    with postgres.connect() as oracle:
        assert copied(pg, statement) == copied(oracle, statement)
        empty = f"COPY (SELECT 1 WHERE false) TO STDOUT ({options})"
        assert b"".join(copied(pg, empty)) == b"".join(copied(oracle, empty))


def test_bad_data_leave_nothing_and_the_session_goes_on(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    with (
        pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught,
        pg.cursor().copy("COPY t FROM STDIN") as copy,
    ):
        for line in ("1\n", "x\n", "3\n" * 100_000):
            copy.write(line)
    assert caught.value.diag.context == 'COPY t, line 2, column a: "x"'
    with pytest.raises(ZeroDivisionError), pg.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write("1\n")
        raise ZeroDivisionError
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_copy_among_other_statements_of_one_string(served: ServedDatabase, schema: str) -> None:
    script = "CREATE TABLE t (a int);\nCOPY t FROM STDIN;\n1\n2\n\\.\nSELECT sum(a) FROM t;\n"
    script += "\\copy (SELECT * FROM t ORDER BY a) TO STDOUT\n"
    assert psql(served, schema=schema, stdin=script)[:2] == ("3\n1\n2\n", "")
    out, err, _ = psql(served, "COPY t TO STDOUT; SELECT 5", schema=schema)
    assert (sorted(out.split()), err) == (["1", "2", "5"], "")


def test_a_subscription_is_copied_as_it_happens(served: ServedDatabase, schema: str, pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    pg.execute("INSERT INTO t VALUES (1)")
    seen: list[tuple[str, ...]] = []
    reader = psycopg.connect(served.url, autocommit=True, options=f"-c search_path={schema}")

    def read() -> None:
        with pytest.raises(psycopg.errors.QueryCanceled), reader.cursor().copy("COPY (SUBSCRIBE t) TO STDOUT") as copy:
            for row in copy.rows():
                seen.append(tuple(row[2:]))

    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: len(seen) == 1, "the first change comes")
    pg.execute("INSERT INTO t VALUES (2)")
    wait_until(lambda: len(seen) == 2, "the second change comes")
    reader.cancel_safe(timeout=30)
    thread.join(30)
    assert seen == [("1", "1"), ("1", "2")]
    assert reader.execute("SELECT 1").fetchone() == (1,)
    reader.close()


def test_a_subscription_with_an_end_ends(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    pg.execute("INSERT INTO t VALUES (1)")
    soon = int(time.time() * 1e6) + 200_000
    rows = copied(pg, f"COPY (SUBSCRIBE t UP TO {soon}) TO STDOUT (FORMAT csv, HEADER)")
    assert rows[0] == b"mz_timestamp,mz_progressed,mz_diff,a\n" and [r.split(b",")[2:] for r in rows[1:]] == [
        [b"1", b"1\n"]
    ]
    plain = pg.execute(f"SUBSCRIBE t UP TO {int(time.time() * 1e6) + 200_000}").fetchall()
    assert [row[1:] for row in plain] == [(False, 1, 1)]


def test_a_server_side_cursor_of_psycopg(pg: Connection) -> None:
    with pg.transaction(), pg.cursor("mine") as cursor:
        cursor.itersize = 100
        cursor.execute("SELECT x FROM generate_series(1, %s) x ORDER BY x", [1050])
        assert [row[0] for row in cursor] == list(range(1, 1051))


TYPES = (
    "boolean", "smallint", "int", "bigint", "numeric", "numeric(12,3)", "real", "float8", "text", "varchar(9)",
    "char(4)", "bytea", "date", "time", "timestamp", "timestamptz", "interval", "uuid",
)  # fmt: skip
VALUES = (
    "true", "-5", "7", "1099511627776", "-0.00012300", "10.5", "1.5", "-2.25", "žluť", "abc", "ab", "\\x00ff",
    "infinity", "24:00:00", "infinity", "2024-01-01", "-1mon2days", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
)  # fmt: skip


def test_what_goes_out_in_binary_comes_in_again_here_and_in_postgres(pg: Connection, postgres: PostgresServer) -> None:
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(TYPES))
    constants = ", ".join(f"'{value}'" for value in VALUES)
    nulls = ", ".join(["NULL"] * len(VALUES))
    with postgres.connect() as oracle:
        for either in (pg, oracle):
            either.execute(f"CREATE TABLE binaries ({columns})".encode())
        pg.execute(f"INSERT INTO binaries VALUES ({constants}), ({nulls})".encode())
        data = b"".join(copied(pg, "COPY binaries TO STDOUT (FORMAT binary)"))
        for target in (oracle, pg):
            with target.cursor().copy("COPY binaries FROM STDIN (FORMAT binary)") as copy:
                for i in range(0, len(data), 7):
                    copy.write(data[i : i + 7])
        expected = oracle.execute("SELECT c0::text, binaries::text FROM binaries ORDER BY c0").fetchall()
        rows = "(" + " || ',' || ".join(f"coalesce(c{i}::text, '')" for i in range(len(TYPES))) + ")"
        shown = f"SELECT {rows} FROM binaries ORDER BY 1"
        assert len(expected) == 2
        once = oracle.execute(shown.encode()).fetchall()
        assert pg.execute(shown.encode()).fetchall() == sorted([*once, *once])
        oracle.execute("DROP TABLE binaries")


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (b"", "22P04"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(7), "22P04"),
        (b"PGCOPY\n\xff\r\n\0" + b"\0\1\0\0" + bytes(4), "22P04"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\1\0\0\0\4\0\0\0\1", "22P04"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\4\0\0\0", "22P04"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xffx", "22P04"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\5abcde\xff\xff\xff\xff", "22P03"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\4\0\0\0\1\0\0\0\1\xff", "22021"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\4\0\0\0\1\0\0\0\4long", "22001"),
        (b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\xff\xff\xff\xff\0\0\0\1a", "23502"),
    ],
)
def test_binary_data_that_are_wrong_are_refused_as_postgres_does(
    pg: Connection, postgres: PostgresServer, data: bytes, sqlstate: str
) -> None:
    with postgres.connect() as oracle:
        found = []
        for either in (pg, oracle):
            either.execute("CREATE TABLE refused (a int NOT NULL, b varchar(3))")
            with pytest.raises(psycopg.Error) as caught, either.cursor().copy("COPY refused FROM STDIN BINARY") as copy:
                copy.write(data)
            found.append((caught.value.sqlstate, caught.value.diag.message_primary))
            assert either.execute("SELECT count(*) FROM refused").fetchone() == (0,)
        oracle.execute("DROP TABLE refused")
    assert found[0][0] == sqlstate and found[0] == found[1]
