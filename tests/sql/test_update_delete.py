"""UPDATE and DELETE: the relation of old rows, new rows and what RETURNING reads."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.expr.ir import Call, Cast, Column, Literal
from eddyline.plan.relation import Get, Join, JoinKind, Map, Project, TopK
from eddyline.plan.traverse import post_order
from eddyline.repr.types import BIGINT, INTEGER, TEXT, VARCHAR, SqlType
from eddyline.sql.statements import Delete, Update
from eddyline.testing.catalog_script import CatalogScript


@pytest.fixture(scope="module")
def script() -> CatalogScript:
    return CatalogScript(
        """CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x');
        CREATE TABLE u (a int, b varchar(3), n bigint);"""
    )


def update(script: CatalogScript, text: str) -> Update:
    statement = script.bind(text)
    assert isinstance(statement, Update)
    width = len(statement.table.types)
    assert statement.relation.types[: 2 * width] == statement.table.types * 2
    return statement


def delete(script: CatalogScript, text: str) -> Delete:
    statement = script.bind(text)
    assert isinstance(statement, Delete)
    assert statement.relation.types[: len(statement.table.types)] == statement.table.types
    return statement


def source(script: CatalogScript, name: str) -> Get:
    item = script.item(name)
    return Get(item.id, item.types)


def test_assigned_columns_are_new_and_the_others_stay(script: CatalogScript) -> None:
    found = update(script, "UPDATE t SET a = a + 1")
    added = Call("int_add", (Column(0, INTEGER), Literal(1, INTEGER)), INTEGER)
    assert found.relation == Project(Map(source(script, "t"), (added,)), (0, 1, 2, 1))
    assert found.changed == (0,)


def test_default_and_null(script: CatalogScript) -> None:
    found = update(script, "UPDATE t SET b = DEFAULT")
    assert found.relation == Project(Map(source(script, "t"), (Literal("x", TEXT),)), (0, 1, 0, 2))
    found = update(script, "UPDATE u SET a = NULL, b = DEFAULT")
    assert found.changed == (0, 1)


def test_assignment_casts_carry_the_modifier(script: CatalogScript) -> None:
    found = update(script, "UPDATE u SET b = n::text")
    short = SqlType(VARCHAR.kind, length=3)
    casts = [e for r in post_order(found.relation) if isinstance(r, Map) for e in r.exprs if isinstance(e, Cast)]
    assert any(c.type == short and not c.explicit for c in casts)


def test_a_row_assigns_several_columns(script: CatalogScript) -> None:
    assert update(script, "UPDATE u SET (n, a) = (1, DEFAULT)").changed == (0, 2)
    assert update(script, "UPDATE u SET (n, a) = ROW(1, 2)").changed == (0, 2)
    assert update(script, "UPDATE u SET (b, a) = (SELECT b, a FROM t WHERE t.a = u.a)").changed == (0, 1)


def test_without_from_rows_keep_their_multiplicity(script: CatalogScript) -> None:
    for text in ("UPDATE u SET a = 1 WHERE n > 2", "UPDATE u SET a = 1 WHERE a IN (SELECT a FROM t)"):
        assert not any(isinstance(r, TopK) for r in post_order(update(script, text).relation))


def test_from_writes_a_keyed_row_once(script: CatalogScript) -> None:
    relation = update(script, "UPDATE t SET b = u.b FROM u WHERE u.a = t.a").relation
    assert isinstance(relation, TopK)
    assert (relation.group, relation.limit) == ((0,), Literal(1, BIGINT))


def test_from_writes_each_copy_of_a_row_without_a_key_once(script: CatalogScript) -> None:
    relation = update(script, "UPDATE u SET b = 'y' FROM t WHERE u.a = t.a").relation
    assert isinstance(relation, Project)
    joined = relation.input
    assert isinstance(joined, Join) and joined.kind is JoinKind.INNER
    assert joined.left == source(script, "u")
    assert isinstance(joined.right, TopK) and joined.right.group == (0, 1, 2)
    assert [e.func for e in joined.on if isinstance(e, Call)] == ["is_not_distinct_from"] * 3


def test_a_with_query_does_not_hide_the_target(script: CatalogScript) -> None:
    text = "WITH t AS (SELECT 5 AS five) UPDATE t SET a = q.five FROM t AS q"
    assert update(script, text).table == script.item("t")
    assert delete(script, "WITH t AS (SELECT 5 AS five) DELETE FROM t USING t AS q WHERE a = q.five").table.name == "t"


def test_a_table_may_join_itself_under_an_alias(script: CatalogScript) -> None:
    assert update(script, "UPDATE t SET b = other.b FROM t AS other WHERE other.a = t.a + 1").changed == (1,)


def test_update_returning_reads_the_new_row_and_the_from_items(script: CatalogScript) -> None:
    found = update(script, "UPDATE t SET b = 'y' FROM u WHERE u.a = t.a RETURNING t.b, t.a, u.n, u.n + 1 AS m")
    returning: Any = found.returning
    assert returning.names == ("b", "a", "n", "m")
    # old a, b; new a, b; u.n
    assert len(found.relation.types) == 5
    assert returning.exprs[0] == Column(3, TEXT)
    assert returning.exprs[2] == Column(4, BIGINT)
    star: Any = update(script, "UPDATE t SET b = 'y' RETURNING *").returning
    assert star.names == ("a", "b")
    assert star.exprs[1] == Column(3, TEXT)


def test_delete(script: CatalogScript) -> None:
    assert delete(script, "DELETE FROM t").relation == source(script, "t")
    semi = delete(script, "DELETE FROM t WHERE a IN (SELECT a FROM u)").relation
    assert isinstance(semi, Join) and semi.kind is JoinKind.SEMI


def test_delete_using_and_returning(script: CatalogScript) -> None:
    found = delete(script, "DELETE FROM t AS x USING u WHERE u.a = x.a RETURNING x.*, u.b")
    assert isinstance(found.relation, TopK)
    returning: Any = found.returning
    assert returning.names == ("a", "b", "b")
    assert returning.exprs == (Column(0, INTEGER), Column(1, TEXT), Column(2, SqlType(VARCHAR.kind, length=3)))
