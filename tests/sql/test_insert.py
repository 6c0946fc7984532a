"""INSERT: which rows a statement stands for."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.errors import Error
from eddyline.expr.ir import Call, Cast, Column, Literal, Parameter
from eddyline.plan.relation import Constant, Get, Map, Project, Relation, TopK
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, TEXT, TIMESTAMPTZ, VARCHAR, SqlType, numeric
from eddyline.sql.statements import Insert
from eddyline.testing.catalog_script import CatalogScript

PRICE = numeric(2, 12)
NOW = Call("now", (), TIMESTAMPTZ)


@pytest.fixture(scope="module")
def script() -> CatalogScript:
    return CatalogScript(
        """CREATE TABLE t (
            a int PRIMARY KEY, b text DEFAULT 'x', c numeric(12,2) DEFAULT 1.5, d timestamptz DEFAULT now()
        );
        CREATE TABLE u (a int, b varchar(3), n bigint);
        CREATE TABLE none ();
        CREATE TABLE k (a int, b int, v text, PRIMARY KEY (b, a));"""
    )


def insert(script: CatalogScript, text: str, params: dict[int, SqlType] | None = None) -> Insert:
    statement = script.bind(text, params)
    assert isinstance(statement, Insert)
    assert statement.relation.types == statement.table.types
    return statement


def test_values_in_table_order(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO u VALUES (1, 'abc', 2), (NULL, '', -3)")
    assert found.relation == Constant(
        ((1, "abc", 2), (None, "", -3)), (INTEGER, SqlType(VARCHAR.kind, length=3), BIGINT)
    )


def test_columns_not_named_take_their_defaults(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO t (c, a) VALUES (2, 3)")
    values = Constant((("2.00", 3),), (PRICE, INTEGER))
    assert found.relation == Project(Map(values, (Literal("x", TEXT), NOW)), (1, 2, 0, 3))


def test_trailing_columns_may_be_left_out(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO t VALUES (1)")
    assert found.relation == Map(Constant(((1,),), (INTEGER,)), (Literal("x", TEXT), Literal("1.50", PRICE), NOW))


def test_the_word_default(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO u VALUES (1, DEFAULT, DEFAULT), (DEFAULT, 'a', 2)")
    assert isinstance(found.relation, Constant)
    assert found.relation.rows == ((1, None, None), (None, "a", 2))


def test_default_values(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO t DEFAULT VALUES")
    defaults = (Literal(None, INTEGER), Literal("x", TEXT), Literal("1.50", PRICE), NOW)
    assert found.relation == Map(Constant(((),), ()), defaults)


def test_a_table_without_columns(script: CatalogScript) -> None:
    assert insert(script, "INSERT INTO none DEFAULT VALUES").relation == Constant(((),), ())


def test_parameters_take_the_types_of_their_columns(script: CatalogScript) -> None:
    params: dict[int, SqlType] = {}
    found = insert(script, "INSERT INTO u VALUES ($1, $2, $3)", params)
    assert params == {1: INTEGER, 2: VARCHAR, 3: BIGINT}
    assert isinstance(found.relation, Map)
    assert found.relation.exprs == (
        Parameter(1, INTEGER),
        Cast(Parameter(2, VARCHAR), SqlType(VARCHAR.kind, length=3), False),
        Parameter(3, BIGINT),
    )


def test_declared_parameters_are_cast(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO u (a) VALUES ($1)", {1: BIGINT})
    assert Cast(Parameter(1, BIGINT), INTEGER, False) in _exprs(found.relation)


def _exprs(relation: Relation) -> list[Any]:
    found: list[Any] = []
    while isinstance(relation, Map | Project):
        if isinstance(relation, Map):
            found.extend(relation.exprs)
        relation = relation.input
    return found


def test_a_query_is_assigned_column_by_column(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO u (n, b) SELECT a, b FROM t")
    exprs = _exprs(found.relation)
    assert Cast(Column(0, INTEGER), BIGINT, False) in exprs
    assert Cast(Column(1, TEXT), SqlType(VARCHAR.kind, length=3), False) in exprs


def test_untyped_literals_of_a_query_take_their_columns_types(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO u SELECT '7', NULL, '8' FROM t")
    assert {Literal(7, INTEGER), Literal(8, BIGINT)} <= set(_exprs(found.relation))


def test_a_limited_query_keeps_its_limit(script: CatalogScript) -> None:
    found = insert(script, "INSERT INTO u (a) SELECT a FROM t ORDER BY c LIMIT 2")
    node: Any = found.relation
    while not isinstance(node, TopK):
        node = node.input
    assert node.limit == Literal(2, BIGINT)


def test_with_goes_before_the_statement_or_the_query(script: CatalogScript) -> None:
    for text in (
        "WITH q AS (SELECT a FROM t) INSERT INTO u (a) SELECT a FROM q",
        "INSERT INTO u (a) WITH q AS (SELECT a FROM t) SELECT a FROM q",
        "WITH u AS (SELECT a FROM t) INSERT INTO u (a) SELECT a FROM u",
    ):
        found = insert(script, text)
        node: Any = found.relation
        while not isinstance(node, Get):
            node = node.input
        assert node.id == script.item("t").id
        assert found.table == script.item("u")


def test_on_conflict_do_nothing(script: CatalogScript) -> None:
    for target in ("", "(a)", "ON CONSTRAINT t_pkey"):
        conflict = insert(script, f"INSERT INTO t (a) VALUES (1) ON CONFLICT {target} DO NOTHING").on_conflict
        assert conflict is not None
        assert (conflict.columns, conflict.assignments, conflict.where) == ((0,), None, None)
    bare = insert(script, "INSERT INTO u (a) VALUES (1) ON CONFLICT DO NOTHING").on_conflict
    assert bare is not None and bare.columns == ()


def test_the_conflict_target_is_the_key_in_any_order(script: CatalogScript) -> None:
    for target in ("a, b", "b, a"):
        conflict = insert(script, f"INSERT INTO k VALUES (1, 2) ON CONFLICT ({target}) DO NOTHING").on_conflict
        assert conflict is not None and conflict.columns == (1, 0)


def test_on_conflict_do_update(script: CatalogScript) -> None:
    conflict = insert(
        script,
        "INSERT INTO t AS x (a) VALUES (1) "
        "ON CONFLICT (a) DO UPDATE SET (b, d) = (excluded.b, DEFAULT), c = 7 WHERE x.a < excluded.a",
    ).on_conflict
    assert conflict is not None
    assert conflict.assignments == (Column(0, INTEGER), Column(5, TEXT), Literal("7.00", PRICE), NOW)
    assert conflict.where == Call("lt", (Column(0, INTEGER), Column(4, INTEGER)), BOOLEAN)


def test_returning(script: CatalogScript) -> None:
    returning = insert(script, "INSERT INTO u AS x (a) VALUES (1) RETURNING *, x.a AS first, 'lit', n + 1").returning
    assert returning is not None
    assert returning.names == ("a", "b", "n", "first", "?column?", "?column?")
    assert returning.exprs[3] == Column(0, INTEGER)
    assert returning.types[4] == TEXT


def test_writing_to_a_view_is_refused() -> None:
    script = CatalogScript("CREATE TABLE t (a int); CREATE VIEW v AS SELECT a FROM t")
    for text, verb in (
        ("INSERT INTO v VALUES (1)", "insert into"),
        ("UPDATE v SET a = 1", "update"),
        ("DELETE FROM v", "delete from"),
    ):
        with pytest.raises(Error) as caught:
            script.bind(text)
        assert (caught.value.sqlstate, caught.value.message) == ("55000", f'cannot {verb} view "v"')
