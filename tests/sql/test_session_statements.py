"""Transactions, settings, prepared statements, EXPLAIN, SHOW, SUBSCRIBE, AS OF, COPY: what is left for the session."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.adapter.system_catalog import SYSTEM_SCHEMAS
from eddyline.errors import Error
from eddyline.expr.ir import Literal, Parameter
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, TEXT, TIMESTAMPTZ, SqlType, numeric
from eddyline.sql.arguments import coerce_arguments
from eddyline.sql.bind_statement import bind_statement
from eddyline.sql.statements import (
    Begin,
    Commit,
    Copy,
    CopyFormat,
    Deallocate,
    Discard,
    Execute,
    Explain,
    Insert,
    Prepare,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    Savepoint,
    Select,
    Set,
    SetTransaction,
    Show,
    ShowObjects,
    Subscribe,
)
from eddyline.testing.catalog_script import CatalogScript


@pytest.fixture(scope="module")
def script() -> CatalogScript:
    return CatalogScript(
        """CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x');
        CREATE VIEW v AS SELECT a FROM t;
        CREATE MATERIALIZED VIEW m AS SELECT a FROM t;
        CREATE INDEX i ON t (b);
        CREATE SCHEMA s;
        CREATE TABLE s.q (n int);"""
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BEGIN", Begin()),
        (
            "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            Begin("repeatable read", True, "START TRANSACTION"),
        ),
        ("BEGIN READ WRITE, NOT DEFERRABLE", Begin(None, False)),
        ("COMMIT", Commit()),
        ("END", Commit()),
        ("COMMIT AND CHAIN", Commit(True)),
        ("ROLLBACK", Rollback()),
        ("ABORT", Rollback()),
        ("SAVEPOINT s1", Savepoint("s1")),
        ("RELEASE s1", Release("s1")),
        ("ROLLBACK TO s1", RollbackTo("s1")),
        ("SET x TO 5", Set("x", ("5",))),
        ("SET LOCAL Statement_Timeout = '5s'", Set("statement_timeout", ("5s",), True)),
        ("SET search_path = a, 'B', \"$user\"", Set("search_path", ("a", "B", "$user"))),
        ("SET search_path TO DEFAULT", Set("search_path", None)),
        ("SET x = -1.5", Set("x", ("-1.5",))),
        ("SET x = on", Set("x", ("on",))),
        ("SET TIME ZONE 'UTC'", Set("timezone", ("UTC",))),
        ("SET TIME ZONE LOCAL", Set("timezone", None)),
        ("RESET x", Reset("x")),
        ("RESET ALL", Reset(None)),
        ("SHOW x", Show("x")),
        ("SHOW ALL", Show("all")),
        ("SHOW TRANSACTION ISOLATION LEVEL", Show("transaction_isolation")),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", SetTransaction("serializable")),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            SetTransaction(None, True, True),
        ),
        ("DEALLOCATE p", Deallocate("p")),
        ("DEALLOCATE ALL", Deallocate(None)),
        ("DISCARD ALL", Discard("all")),
    ],
)
def test_session_statements(script: CatalogScript, text: str, expected: object) -> None:
    assert script.bind(text) == expected


def test_prepare_keeps_the_statement_for_later(script: CatalogScript) -> None:
    found = script.bind("PREPARE p (int, unknown) AS INSERT INTO t VALUES ($1, $2)")
    assert isinstance(found, Prepare)
    assert (found.name, found.param_types) == ("p", (INTEGER, None))
    params: dict[int, SqlType] = {1: INTEGER}
    assert isinstance(bind_statement(found.parsed, script.view, params), Insert)
    assert params == {1: INTEGER, 2: TEXT}


def test_errors_in_a_prepared_statement_point_into_its_text(script: CatalogScript) -> None:
    text = "PREPARE p AS SELECT zz FROM t"
    found: Any = script.bind(text)
    with pytest.raises(Error) as caught:
        bind_statement(found.parsed, script.view)
    assert caught.value.position == text.index("zz") + 1


def test_execute_arguments_take_the_parameters_types(script: CatalogScript) -> None:
    found = script.bind("EXECUTE p (1, '2', NULL, 3)")
    assert isinstance(found, Execute)
    arguments = coerce_arguments(found, (BIGINT, INTEGER, TEXT, numeric(2, 12)))
    assert arguments == (Literal(1, BIGINT), Literal(2, INTEGER), Literal(None, TEXT), Literal("3.00", numeric(2, 12)))


@pytest.mark.parametrize(
    ("text", "types", "sqlstate", "message"),
    [
        ("EXECUTE p (1)", (INTEGER, TEXT), "42601", 'wrong number of parameters for prepared statement "p"'),
        (
            "EXECUTE p (true)",
            (INTEGER,),
            "42804",
            "parameter $1 of type boolean cannot be coerced to the expected type integer",
        ),
        ("EXECUTE p ('x')", (INTEGER,), "22P02", 'invalid input syntax for type integer: "x"'),
    ],
)
def test_execute_errors(
    script: CatalogScript, text: str, types: tuple[SqlType, ...], sqlstate: str, message: str
) -> None:
    found: Any = script.bind(text)
    with pytest.raises(Error) as caught:
        coerce_arguments(found, types)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_execute_takes_constants_only(script: CatalogScript) -> None:
    for text, message in (
        ("EXECUTE p (a)", "cannot use column reference in EXECUTE parameter"),
        ("EXECUTE p ((SELECT 1))", "cannot use subquery in EXECUTE parameter"),
    ):
        with pytest.raises(Error) as caught:
            script.bind(text)
        assert (caught.value.sqlstate, caught.value.message) == ("0A000", message)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("1600", Literal(1600, BIGINT)),
        ("1700000000000000", Literal(1700000000000000, BIGINT)),
        ("'1600'", Literal(1600, BIGINT)),
        ("'2020-01-01'", Literal(1577836800000000, TIMESTAMPTZ)),
        ("timestamptz '2020-01-01'", Literal(1577836800000000, TIMESTAMPTZ)),
        ("$1", Parameter(1, BIGINT)),
    ],
)
def test_as_of_is_microseconds_or_a_timestamp(script: CatalogScript, expr: str, expected: object) -> None:
    found = script.bind(f"SELECT a FROM t AS OF {expr}")
    assert isinstance(found, Select)
    assert found.as_of == expected


@pytest.mark.parametrize(
    ("expr", "sqlstate"),
    [("true", "42804"), ("1.5", "42804"), ("a", "0A000"), ("(SELECT 1)", "0A000"), ("99999999999999999999", "22003")],
)
def test_as_of_refuses_other_things(script: CatalogScript, expr: str, sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        script.bind(f"SELECT a FROM t AS OF {expr}")
    assert caught.value.sqlstate == sqlstate


def test_subscribe(script: CatalogScript) -> None:
    found = script.bind("SUBSCRIBE TO v AS OF 5 UP TO '7' WITH (SNAPSHOT false, PROGRESS)")
    assert isinstance(found, Subscribe)
    assert (found.name, found.query.names) == ("v", ("a",))
    assert (found.as_of, found.up_to) == (Literal(5, BIGINT), Literal(7, BIGINT))
    assert (found.snapshot, found.progress) == (False, True)
    query = script.bind("SUBSCRIBE (SELECT a + 1 AS n FROM t)")
    assert isinstance(query, Subscribe)
    assert (query.name, query.query.names) == (None, ("n",))
    with pytest.raises(Error) as caught:
        script.bind("SUBSCRIBE nope")
    assert (caught.value.sqlstate, caught.value.position) == ("42P01", 11)


def test_explain(script: CatalogScript) -> None:
    found = script.bind("EXPLAIN (VERBOSE, COSTS off) SELECT 1")
    assert isinstance(found, Explain)
    assert isinstance(found.statement, Select)
    assert found.options == {"verbose": "", "costs": "off"}
    for text in ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN (ANALYZE on, FORMAT text) SELECT a FROM t AS OF 5"):
        analyzed = script.bind(text)
        assert isinstance(analyzed, Explain) and analyzed.analyze
    off = script.bind("EXPLAIN (ANALYZE off) SELECT a FROM t AS OF 5")
    assert isinstance(off, Explain) and not off.analyze
    for text, sqlstate in (
        ("EXPLAIN (TIMING) SELECT 1", "22023"),
        ("EXPLAIN (ANALYZE 7) SELECT 1", "42601"),
        ("EXPLAIN (ANALYZE, SUMMARY perhaps) SELECT a FROM t AS OF 5", "42601"),
    ):
        with pytest.raises(Error) as wrong:
            script.bind(text)
        assert wrong.value.sqlstate == sqlstate
    timed = script.bind("EXPLAIN SELECT a FROM t AS OF 5")
    assert isinstance(timed, Explain) and isinstance(timed.statement, Select)
    assert timed.statement.as_of == Literal(5, BIGINT)
    view = script.bind("EXPLAIN MATERIALIZED VIEW m")
    assert isinstance(view, Explain)
    assert view.item == script.item("m")
    with pytest.raises(Error) as caught:
        script.bind("EXPLAIN INDEX t")
    assert (caught.value.sqlstate, caught.value.message) == ("42809", '"t" is not an index')


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("SHOW TABLES", ("name", "schema", "type"), (("t", "public", "table"),)),
        ("SHOW TABLES FROM s", ("name", "schema", "type"), (("q", "s", "table"),)),
        ("SHOW VIEWS", ("name", "schema", "type"), (("v", "public", "view"),)),
        ("SHOW MATERIALIZED VIEWS", ("name", "schema", "type"), (("m", "public", "materialized view"),)),
        ("SHOW SCHEMAS", ("name",), tuple((s,) for s in sorted((*SYSTEM_SCHEMAS, "public", "s")))),
        ("SHOW CLUSTERS", ("name", "replicas"), (("default", "r1"),)),
        (
            "SHOW CLUSTER REPLICAS",
            ("cluster", "replica", "workers", "processes"),
            (("default", "r1", 1, 0),),
        ),
        ("SHOW INDEXES ON t", ("name", "schema", "on", "key", "cluster"), (("i", "public", "t", "b", "default"),)),
        (
            "SHOW COLUMNS FROM t",
            ("name", "type", "nullable", "default"),
            (("a", "integer", False, None), ("b", "text", True, "'x'")),
        ),
    ],
)
def test_show_objects(script: CatalogScript, text: str, names: tuple[str, ...], rows: object) -> None:
    found = script.bind(text)
    assert isinstance(found, ShowObjects)
    assert (found.names, found.rows) == (names, rows)
    assert len(found.types) == len(names)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (
            "SHOW CREATE TABLE t",
            (
                "public.t",
                "CREATE TABLE public.t (a integer NOT NULL, b text DEFAULT 'x', PRIMARY KEY (a))",
            ),
        ),
        ("SHOW CREATE VIEW v", ("public.v", "CREATE VIEW public.v (a) AS SELECT a FROM t")),
        (
            "show create materialized view public.m;",
            ("public.m", "CREATE MATERIALIZED VIEW public.m (a) AS SELECT a FROM t"),
        ),
        ("SHOW CREATE INDEX i", ("public.i", "CREATE INDEX i ON public.t (b)")),
    ],
)
def test_show_create(script: CatalogScript, text: str, row: tuple[str, str]) -> None:
    found = script.bind(text)
    assert isinstance(found, ShowObjects)
    assert (found.names, found.rows) == (("name", "create_sql"), (row,))


@pytest.mark.parametrize(
    ("text", "sqlstate", "position"),
    [
        ("SHOW CREATE VIEW t", "42809", 18),
        ("SHOW CREATE TABLE nope", "42P01", 19),
        ("SHOW CREATE FUNCTION f", "42601", 13),
        ("SHOW CREATE TABLE", "42601", None),
        ("SHOW CREATE TABLE t x", "42601", None),
    ],
)
def test_show_create_of_what_is_not_there(
    script: CatalogScript, text: str, sqlstate: str, position: int | None
) -> None:
    with pytest.raises(Error) as caught:
        script.bind(text)
    assert caught.value.sqlstate == sqlstate
    assert position is None or caught.value.position == position


def shown_rows(script: CatalogScript, text: str) -> tuple[tuple[object, ...], ...]:
    found = script.bind(text)
    assert isinstance(found, ShowObjects)
    return found.rows


def test_show_create_makes_the_same_object_again(script: CatalogScript) -> None:
    script.run("""CREATE TABLE s."Odd ""one" ("select" int, "A b" numeric(8,2) NOT NULL, "é" timestamptz, n varchar(3),
        PRIMARY KEY (n, "select"));
        CREATE VIEW s."order" ("from", "x y") AS SELECT "A b", 'a;' FROM s."Odd ""one" -- the end""")
    for kind, name in (("TABLE", 's."Odd ""one"'), ("VIEW", 's."order"')):
        ((shown, statement),) = shown_rows(script, f"SHOW CREATE {kind} {name}")
        assert shown == name
        before = shown_rows(script, f"SHOW COLUMNS FROM {name}")
        script.run(str(statement).replace(" s.", " public.", 1))
        assert shown_rows(script, f"SHOW COLUMNS FROM {name.removeprefix('s.')}") == before


def test_copy_from(script: CatalogScript) -> None:
    found = script.bind("COPY t (b, a) FROM 'x.csv' (FORMAT csv, HEADER, DELIMITER ';', NULL 'nil', ESCAPE '\\')")
    assert found == Copy(
        CopyFormat.CSV,
        table=script.item("t"),
        columns=(1, 0),
        filename="x.csv",
        header=True,
        delimiter=";",
        null="nil",
        escape="\\",
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", Copy(CopyFormat.TEXT)),
        ("CSV", Copy(CopyFormat.CSV, delimiter=",", null="")),
        ("(FORMAT csv, QUOTE '''')", Copy(CopyFormat.CSV, delimiter=",", null="", quote="'", escape="'")),
        ("(FORMAT text, DELIMITER '|', ENCODING 'UTF-8')", Copy(CopyFormat.TEXT, delimiter="|")),
        ("(FORMAT parquet)", Copy(CopyFormat.PARQUET)),
        ("(HEADER match)", Copy(CopyFormat.TEXT, header=True, header_match=True)),
        ("(HEADER false)", Copy(CopyFormat.TEXT)),
        ("(FORMAT csv, FORCE_NULL (b))", Copy(CopyFormat.CSV, delimiter=",", null="", force_null=("b",))),
    ],
)
def test_copy_options(script: CatalogScript, options: str, expected: Copy) -> None:
    found: Any = script.bind(f"COPY t FROM STDIN {options}")
    fields = [f for f in Copy.__dataclass_fields__ if f not in ("table", "columns")]
    assert [getattr(found, f) for f in fields] == [getattr(expected, f) for f in fields]


def test_copy_to(script: CatalogScript) -> None:
    table: Any = script.bind("COPY t (b) TO STDOUT")
    assert (table.query.names, table.query.types, table.filename) == (("b",), (TEXT,), None)
    query: Any = script.bind("COPY (SELECT a > 1 AS big FROM v ORDER BY 1) TO 'out.parquet' (FORMAT parquet)")
    assert (query.query.names, query.query.types) == (("big",), (BOOLEAN,))
    assert query.format is CopyFormat.PARQUET
