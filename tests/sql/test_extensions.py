"""The statements that PostgreSQL's grammar lacks; what PostgreSQL has keeps its meaning."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.errors import Error
from eddyline.sql.extensions import (
    AsOfSyntax,
    DefaultIndexSyntax,
    ExplainObjectSyntax,
    ExplainSyntax,
    ShowObjectsSyntax,
    SubscribeSyntax,
)
from eddyline.sql.parse import parse
from eddyline.sql.words import Named


def node(text: str) -> Any:
    (statement,) = parse(text)
    return statement.node


def refusal(text: str) -> tuple[str | None, str, int | None]:
    with pytest.raises(Error) as caught:
        parse(text)
    return caught.value.sqlstate, caught.value.message, caught.value.position


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS of",
        "SELECT a AS OF FROM t",
        "SELECT * FROM t AS of",
        "SELECT * FROM t AS of (a)",
        "SELECT subscribe, as_of FROM subscribe",
        "SELECT 1 AS subscribe",
        "SELECT * FROM subscribe AS up, progress AS snapshot",
        "SELECT 'x AS OF 5'",
        "SHOW tables",
        "CREATE INDEX cluster ON t (a)",
        "CREATE VIEW v AS SELECT a IN (1, 2) AS cluster FROM t",
    ],
)
def test_what_postgresql_accepts_is_no_extension(text: str) -> None:
    (statement,) = parse(text)
    assert statement.kind.endswith("_stmt")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t AS OF 5",
        "SELECT * FROM t as of 5 ORDER BY a",
        "SELECT * FROM t ORDER BY a LIMIT 1 AS OF 5",
        "TABLE t AS OF 5",
        "WITH q AS (SELECT 1) SELECT * FROM q AS OF 5",
        "(SELECT 1 UNION SELECT 2) AS OF 5",
        "SELECT a AS of FROM t AS OF 5",
        "SELECT * FROM t -- AS OF 7\n AS /* x */ OF 5;",
    ],
)
def test_as_of(text: str) -> None:
    syntax = node(text)
    assert isinstance(syntax, AsOfSyntax)
    assert syntax.as_of.a_const.ival.ival == 5


@pytest.mark.parametrize(
    "text", ["SELECT * FROM t AS OF now()", "SELECT 1 AS OF '2020-01-01'::timestamptz", "SELECT 1 AS OF (1 + 2) * 3"]
)
def test_as_of_takes_expressions(text: str) -> None:
    assert isinstance(node(text), AsOfSyntax)


def test_as_of_errors() -> None:
    assert refusal("SELECT * FROM t AS OF 5 WHERE a") == ("42601", 'syntax error at or near "WHERE"', 25)
    assert refusal("SELECT * FROM t AS OF 5 x") == ("42601", 'syntax error at or near "x"', 25)
    assert refusal("SELECT * FROM t AS OF (5") == ("42601", "syntax error at end of input", 25)
    assert refusal("SELECT * FROM t AS OF 5 + ORDER BY a") == ("42601", 'syntax error at or near "ORDER"', 27)
    assert refusal("INSERT INTO t SELECT 1 AS OF 5") == ("42601", 'syntax error at or near "5"', 30)


def test_subscribe_to_a_name() -> None:
    for text in ("SUBSCRIBE s.t", "subscribe to s.t", 'SUBSCRIBE "s"."t";'):
        syntax = node(text)
        assert isinstance(syntax, SubscribeSyntax)
        target = syntax.query.from_clause[0].range_var
        assert (target.schemaname, target.relname) == ("s", "t")
        assert (syntax.as_of, syntax.up_to, syntax.snapshot, syntax.progress) == (None, None, True, False)


def test_subscribe_to_a_query_with_everything() -> None:
    syntax = node("SUBSCRIBE (SELECT 1 AS of FROM t) AS OF 1 UP TO 2 WITH (SNAPSHOT = false, PROGRESS)")
    assert isinstance(syntax, SubscribeSyntax)
    assert syntax.as_of is not None and syntax.up_to is not None
    assert syntax.as_of.a_const.ival.ival == 1
    assert syntax.up_to.a_const.ival.ival == 2
    assert (syntax.snapshot, syntax.progress) == (False, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUBSCRIBE", ("42601", "syntax error at end of input", 10)),
        ("SUBSCRIBE TO", ("42601", "syntax error at end of input", 13)),
        ("SUBSCRIBE t u", ("42601", 'syntax error at or near "u"', 13)),
        ("SUBSCRIBE t AS OF", ("42601", "syntax error at end of input", 18)),
        ("SUBSCRIBE (SELECT 1", ("42601", "syntax error at end of input", 20)),
        ("SUBSCRIBE (INSERT INTO t VALUES (1))", ("42601", 'syntax error at or near "INSERT"', 12)),
        ("SUBSCRIBE t WITH (fast)", ("42601", 'unrecognized SUBSCRIBE option "fast"', 19)),
        ("SUBSCRIBE t WITH (progress = 7)", ("42601", "progress requires a Boolean value", 30)),
        ("SUBSCRIBE t WITH (progress) x", ("42601", 'syntax error at or near "x"', 29)),
    ],
)
def test_subscribe_errors(text: str, expected: tuple[str, str, int]) -> None:
    assert refusal(text) == expected


def test_names_that_only_look_like_clusters() -> None:
    assert node("DROP TABLE cluster").DESCRIPTOR.name == "DropStmt"
    assert node("CREATE TABLE cluster (cluster int)").DESCRIPTOR.name == "CreateStmt"
    assert node("CLUSTER cluster").DESCRIPTOR.name == "ClusterStmt"


def test_default_index() -> None:
    syntax = node("CREATE DEFAULT INDEX ON s.v")
    assert isinstance(syntax, DefaultIndexSyntax)
    assert (syntax.relation.schemaname, syntax.relation.relname, syntax.name) == ("s", "v", None)
    named = node('CREATE DEFAULT INDEX "I" IN CLUSTER default ON v')
    assert (named.name, named.cluster) == ("I", Named("default", 37))
    assert refusal("CREATE DEFAULT INDEX ON v w") == ("42601", 'syntax error at or near "w"', 27)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE INDEX i IN CLUSTER default ON t (a)", "index_stmt"),
        ("CREATE INDEX IN CLUSTER default ON t (a)", "index_stmt"),
        ("CREATE VIEW v IN CLUSTER default AS SELECT 1", "view_stmt"),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS v IN CLUSTER default AS SELECT 1", "create_table_as_stmt"),
    ],
)
def test_a_cluster_is_named_beside_the_statement(text: str, kind: str) -> None:
    (statement,) = parse(text)
    assert statement.kind == kind
    assert statement.cluster == Named("default", text.index("default") + 1)
    (statement,) = parse(text.replace("default", '"My ""own"""'))
    assert statement.cluster is not None
    assert statement.cluster.name == 'My "own"'


def test_a_cluster_has_a_name() -> None:
    assert refusal("CREATE INDEX i IN CLUSTER 5 ON t (a)") == ("42601", 'syntax error at or near "5"', 27)
    assert refusal("CREATE VIEW v IN CLUSTER") == ("42601", "syntax error at end of input", 25)


def test_explain_of_objects_and_extensions() -> None:
    for kind in ("view", "materialized view", "index"):
        syntax = node(f"EXPLAIN {kind} v")
        assert isinstance(syntax, ExplainObjectSyntax)
        assert syntax.kind == kind
    timed = node("EXPLAIN VERBOSE SELECT * FROM t AS OF 5")
    assert isinstance(timed, ExplainSyntax)
    assert timed.options == ("verbose",)
    assert isinstance(timed.statement, AsOfSyntax)


def test_show_objects() -> None:
    assert node("SHOW TABLES FROM s").kind == "tables"
    assert node("SHOW MATERIALIZED VIEWS") == ShowObjectsSyntax("materialized views")
    assert node("SHOW INDEXES ON v").relation.relname == "v"
    assert node("show cluster replicas") == ShowObjectsSyntax("cluster replicas")
    assert refusal("SHOW CLUSTER REPLICAS FROM s") == ("42601", 'syntax error at or near "FROM"', 23)
    assert refusal("SHOW CLUSTERS IN s") == ("42601", 'syntax error at or near "IN"', 15)
    assert refusal("SHOW TABLES WITH s") == ("42601", 'syntax error at or near "WITH"', 13)
