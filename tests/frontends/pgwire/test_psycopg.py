"""psycopg: the extended protocol, with typed and untyped parameters, text and binary, and pipelines."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection

EVERYTHING: list[tuple[str, object]] = [
    ("boolean", True),
    ("smallint", -5),
    ("int", 7),
    ("bigint", 2**40),
    ("numeric(12,2)", Decimal("10.50")),
    ("numeric", Decimal("-0.00012300")),
    ("real", 1.5),
    ("double precision", -2.25),
    ("text", "žluť"),
    ("varchar(10)", "abc"),
    ("char(5)", "ab   "),
    ("bytea", b"\x00\xff"),
    ("date", dt.date(2024, 2, 29)),
    ("time", dt.time(1, 2, 3, 4)),
    ("timestamp", dt.datetime(1999, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=3, seconds=7, microseconds=9)),
    ("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
]


def status(pg: Connection) -> TransactionStatus:
    return pg.info.transaction_status


@pytest.mark.parametrize("binary", [False, True])
def test_values_of_all_types_go_in_and_come_out(pg: Connection, binary: bool) -> None:
    columns = ", ".join(f"c{i} {name}" for i, (name, _) in enumerate(EVERYTHING))
    pg.execute(f"CREATE TABLE t (k int PRIMARY KEY, {columns})")
    values = [value for _, value in EVERYTHING]
    marker = "%b" if binary else "%s"
    holes = ", ".join([marker] * len(values))
    pg.execute(f"INSERT INTO t VALUES (1, {holes})", values)
    pg.execute(f"INSERT INTO t VALUES (2, {holes})", [None] * len(values))
    rows = pg.cursor(binary=binary).execute("SELECT * FROM t ORDER BY k").fetchall()
    assert rows == [(1, *values), (2, *[None] * len(values))]
    for i, (name, value) in enumerate(EVERYTHING):
        if binary and name == "char(5)":
            continue  # sent as text, which is compared with its blanks
        found = pg.execute(f"SELECT k FROM t WHERE c{i} = {marker}", [value]).fetchall()
        assert found == [(1,)], name


def test_types_of_untyped_parameters_come_from_their_place(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int, b timestamptz)")
    assert pg.execute("INSERT INTO t VALUES (%s, %s)", ["5", "2024-01-01"]).rowcount == 1
    assert pg.execute("SELECT a + %s FROM t WHERE b > %s", ["1", "2023-01-01"]).fetchall() == [(6,)]
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        pg.execute("SELECT a + %s FROM t", ["x"])


def test_columns_are_described_before_a_statement_runs(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a numeric(10,3), b varchar(7), c timestamp(2))")
    cursor = pg.execute("SELECT * FROM t")
    assert cursor.description is not None
    shown = [(c.name, c.type_code, c.precision, c.scale, c.display_size) for c in cursor.description]
    assert shown == [("a", 1700, 10, 3, None), ("b", 1043, None, None, 7), ("c", 1114, 2, None, None)]
    assert pg.execute("SELECT 1 AS x WHERE false").fetchall() == []


def test_transactions_and_their_status(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY)")
    with pg.transaction():
        pg.execute("INSERT INTO t VALUES (1)")
        assert status(pg) is TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.UniqueViolation), pg.transaction():
            pg.execute("INSERT INTO t VALUES (1)")
        pg.execute("INSERT INTO t VALUES (2)")
    assert status(pg) is TransactionStatus.IDLE
    pg.execute("BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero):
        pg.execute("SELECT 1/0")
    assert status(pg) is TransactionStatus.INERROR
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        pg.execute("SELECT 1")
    assert pg.execute("COMMIT").statusmessage == "ROLLBACK"
    assert pg.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]


def test_prepared_statements_survive_definitions(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    for i in range(8):  # psycopg prepares what it has seen a few times
        assert pg.execute("SELECT count(*) FROM t WHERE a < %s", [100]).fetchone() == (0,)
        pg.execute(f"CREATE VIEW v{i} AS SELECT * FROM t")
    pg.execute("DEALLOCATE ALL")


def test_a_pipeline_is_one_transaction_up_to_its_sync(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY)")
    with pytest.raises(psycopg.errors.UniqueViolation), pg.pipeline():
        pg.execute("INSERT INTO t VALUES (1)")
        pg.execute("INSERT INTO t VALUES (1)")
        pg.execute("INSERT INTO t VALUES (2)")
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)
    with pg.pipeline() as pipeline:
        cursors = [pg.execute("INSERT INTO t VALUES (%s) RETURNING a", [i]) for i in range(5)]
        pipeline.sync()
        with pytest.raises(psycopg.errors.DivisionByZero):
            pg.execute("SELECT 1/0").fetchall()
        pipeline.sync()
        last = pg.execute("SELECT count(*) FROM t")
    assert [c.fetchone() for c in cursors] == [(i,) for i in range(5)]
    assert last.fetchone() == (5,)


def test_many_rows_of_parameters(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int, b text)")
    with pg.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(i, str(i)) for i in range(300)])
        assert cursor.rowcount == 300
    assert pg.execute("SELECT count(*), sum(a) FROM t").fetchone() == (300, 44850)


def test_a_result_is_streamed_row_by_row(pg: Connection) -> None:
    with pg.cursor() as cursor:
        rows = list(cursor.stream("SELECT x, repeat('y', 100) FROM generate_series(1, 5000) x ORDER BY x"))
    assert [r[0] for r in rows] == list(range(1, 5001))


def test_errors_have_all_their_parts(pg: Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable) as caught:
        pg.execute("SELECT 1 FROM missing")
    told = caught.value.diag
    assert (told.sqlstate, told.severity, told.statement_position) == ("42P01", "ERROR", "15")
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        pg.execute("VACUUM")
    assert refused.value.diag.message_hint == "Nothing needs it."


def test_wide_results_and_none(pg: Connection) -> None:
    columns = ", ".join(f"{i} AS c{i}" for i in range(300))
    assert pg.execute(f"SELECT {columns}").fetchone() == tuple(range(300))
    pg.execute("CREATE TABLE nothing ()")
    assert pg.execute("SELECT FROM nothing").fetchall() == []


def test_a_client_begins_in_the_cluster_that_it_asks_for(served: ServedDatabase, pg: Connection, schema: str) -> None:
    pg.execute("CREATE CLUSTER wired")
    pg.execute("CREATE TABLE t (k int, v int)")
    pg.execute("INSERT INTO t VALUES (1, 10)")
    pg.execute("CREATE INDEX i IN CLUSTER wired ON t (k)")
    with psycopg.connect(served.url, options=f"-c search_path={schema} -c cluster=wired") as there:
        assert there.execute("SHOW cluster").fetchall() == [("wired",)]
        for _ in range(8):  # it is prepared on the way
            assert there.execute("SELECT v FROM t WHERE k = %s", [1]).fetchall() == [(10,)]
        (first, *_) = there.execute("EXPLAIN SELECT v FROM t WHERE k = 1").fetchall()
        assert "lookup in index i" in str(first)
    pg.execute("DROP CLUSTER wired CASCADE")
    with pytest.raises(psycopg.OperationalError, match='unknown cluster "wired"'):
        psycopg.connect(served.url, options="-c cluster=wired")


def test_user_and_database_may_be_any(served: ServedDatabase) -> None:
    with psycopg.connect(host=served.host, port=served.port, user="somebody", dbname="anything") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.info.server_version == 150000


QUERIES = (
    "SELECT a, b, c, d, e FROM t WHERE a = %s",
    "SELECT * FROM t WHERE d = %s",
    "SELECT a FROM t WHERE c = %s",
)


@pytest.mark.parametrize("binary", [False, True])
def test_lookups_that_are_asked_again_say_what_the_first_one_said(pg: Connection, binary: bool) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b bigint, c text, d smallint, e boolean, f numeric, g date)")
    columns = "x, x * 10000000000, repeat('é', x % 4), x, x % 2 = 0, x / 4.0, '2024-01-01'"
    pg.execute(f"INSERT INTO t SELECT {columns} FROM generate_series(1, 50) x")
    pg.execute("INSERT INTO t VALUES (99)")
    pg.execute("CREATE INDEX by_d ON t (d)")
    cursor = pg.cursor(binary=binary)

    def asked(query: str, value: object) -> list[tuple[object, ...]]:
        return cursor.execute(query, [value], prepare=True).fetchall()

    for query in QUERIES:
        values: list[object] = ["", "é", "no"] if query.endswith("c = %s") else [1, 4, 99, 1000, 2**40]
        first = [sorted(asked(query, v), key=str) for v in values]
        for _ in range(3):
            assert [sorted(asked(query, v), key=str) for v in values] == first
    query = "SELECT c FROM t WHERE a = %s"
    assert [asked(query, 2) for _ in range(4)] == [[("éé",)]] * 4
    pg.execute("UPDATE t SET c = 'new' WHERE a = 2")
    assert asked(query, 2) == [("new",)]
    with pg.transaction():
        pg.execute("UPDATE t SET c = 'mine' WHERE a = 2")
        assert asked(query, 2) == [("mine",)]
    pg.execute("DROP INDEX by_d")
    assert asked(query, 2) == [("mine",)]
    pg.execute("DROP TABLE t")
    with pytest.raises(psycopg.errors.UndefinedTable):
        asked(query, 2)


def test_clients_are_told_of_what_changes_for_the_whole_system(served: ServedDatabase) -> None:
    with psycopg.connect(served.url, autocommit=True) as one, psycopg.connect(served.url, autocommit=True) as other:
        try:
            one.execute("ALTER SYSTEM SET timezone = 'Asia/Tokyo'")
            other.execute("SELECT 1")
            assert other.info.parameter_status("TimeZone") == "Asia/Tokyo"
        finally:
            one.execute("ALTER SYSTEM RESET timezone")
        other.execute("SELECT 1")
        assert other.info.parameter_status("TimeZone") == "UTC"
