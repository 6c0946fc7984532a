"""CREATE, DROP, ALTER and TRUNCATE: what they hold once bound."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.errors import Error
from eddyline.expr.ir import Call, Cast, Column, Literal
from eddyline.plan.relation import Get, TopK
from eddyline.repr.types import BIGINT, INTEGER, NUMERIC, TEXT, TIMESTAMPTZ, VARCHAR, SqlType, numeric
from eddyline.sql.catalog_view import ColumnDef, ItemKind
from eddyline.sql.statements import (
    AlterRename,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    DropSchema,
    Truncate,
)
from eddyline.testing.catalog_script import CatalogScript


@pytest.fixture
def script() -> CatalogScript:
    return CatalogScript("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(12,2))")


def test_create_table(script: CatalogScript) -> None:
    found = script.bind(
        "CREATE TABLE IF NOT EXISTS x (id int PRIMARY KEY, v varchar(3) NOT NULL DEFAULT 'ab', n numeric(12,2) NULL "
        'DEFAULT 1 + 1, at timestamptz DEFAULT now(), q text COLLATE "C")'
    )
    assert found == CreateTable(
        "public",
        "x",
        (
            ColumnDef("id", INTEGER, True),
            ColumnDef(
                "v", SqlType(VARCHAR.kind, length=3), True, Literal("ab", SqlType(VARCHAR.kind, length=3)), "'ab'"
            ),
            ColumnDef(
                "n",
                numeric(2, 12),
                False,
                Cast(Call("int_add", (Literal(1, INTEGER),) * 2, INTEGER), numeric(2, 12), False),
                "1 + 1",
            ),
            ColumnDef("at", TIMESTAMPTZ, False, Call("now", (), TIMESTAMPTZ), "now()"),
            ColumnDef("q", TEXT),
        ),
        (0,),
        True,
    )


def test_a_key_over_several_columns_keeps_its_order(script: CatalogScript) -> None:
    found: Any = script.bind("CREATE TABLE x (a int, b int, c int, CONSTRAINT k PRIMARY KEY (c, a))")
    assert found.primary_key == (2, 0)
    assert [c.not_null for c in found.columns] == [True, False, True]


def test_a_table_may_have_no_columns(script: CatalogScript) -> None:
    assert script.bind("CREATE TABLE x ()") == CreateTable("public", "x", ())


def test_names_go_to_the_first_schema_of_the_search_path(script: CatalogScript) -> None:
    script.run("CREATE SCHEMA s")
    script.search_path = ("missing", "s", "public")
    found: Any = script.bind("CREATE TABLE x (a int)")
    assert found.schema == "s"
    assert script.bind("CREATE TABLE public.x ()") == CreateTable("public", "x", ())
    script.search_path = ()
    with pytest.raises(Error) as caught:
        script.bind("CREATE TABLE x ()")
    assert (caught.value.sqlstate, caught.value.message) == ("3F000", "no schema has been selected to create in")


def test_create_table_as_widens_numerics_to_what_may_come(script: CatalogScript) -> None:
    found: Any = script.bind("CREATE TABLE x (k) AS SELECT c * 2 AS d, c, a FROM t WITH NO DATA")
    assert isinstance(found, CreateTableAs)
    assert [c.name for c in found.columns] == ["k", "c", "a"]
    assert [c.type for c in found.columns] == [NUMERIC, numeric(2, 12), INTEGER]
    assert found.relation.types == (NUMERIC, numeric(2, 12), INTEGER)
    assert not found.with_data


def test_create_view(script: CatalogScript) -> None:
    found: Any = script.bind("CREATE OR REPLACE VIEW v (x) AS\n  SELECT a, b FROM t -- the end\n;")
    assert isinstance(found, CreateView)
    assert found.columns == (ColumnDef("x", INTEGER), ColumnDef("b", TEXT))
    assert found.definition == "SELECT a, b FROM t"
    assert found.or_replace


def test_a_view_with_a_limit_keeps_it(script: CatalogScript) -> None:
    found: Any = script.bind("CREATE VIEW v AS SELECT a FROM t ORDER BY b LIMIT 3")
    assert any(isinstance(node, TopK) for node in (found.relation, getattr(found.relation, "input", None)))
    assert found.relation.types == (INTEGER,)


def test_create_materialized_view(script: CatalogScript) -> None:
    found: Any = script.bind(
        "CREATE MATERIALIZED VIEW IF NOT EXISTS m IN CLUSTER default AS (SELECT a FROM t) WITH DATA"
    )
    assert isinstance(found, CreateMaterializedView)
    assert found.definition == "(SELECT a FROM t)"
    assert found.if_not_exists
    assert found.columns == (ColumnDef("a", INTEGER),)


def test_views_read_by_id_and_are_tracked(script: CatalogScript) -> None:
    script.run("CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM v; ALTER TABLE t RENAME TO u")
    assert script.item("w").depends_on == {script.item("v").id}
    assert script.item("v").depends_on == {script.item("u").id}
    with pytest.raises(Error) as caught:
        script.run("DROP TABLE u")
    assert caught.value.sqlstate == "2BP01"
    script.run("DROP TABLE u CASCADE")
    assert script.notices == [
        "drop cascades to 2 other objects\nDETAIL: drop cascades to view v\ndrop cascades to view w"
    ]


def test_create_index(script: CatalogScript) -> None:
    found: Any = script.bind("CREATE INDEX IF NOT EXISTS i ON t USING hash (b DESC NULLS LAST, (a + 1))")
    assert isinstance(found, CreateIndex)
    assert (found.name, found.on, found.if_not_exists) == ("i", script.item("t"), True)
    assert found.keys == (
        Column(1, TEXT),
        Call("int_add", (Column(0, INTEGER), Literal(1, INTEGER)), INTEGER),
    )


def test_names_of_unnamed_indexes(script: CatalogScript) -> None:
    script.run(
        "CREATE INDEX ON t (b); CREATE INDEX ON t (b); CREATE INDEX ON t (a, (a + 1)); CREATE INDEX ON t (abs(a))"
    )
    names = [i.name for i in script.view.indexes_on(script.item("t").id)]
    assert names == ["t_b_idx", "t_b_idx1", "t_a_expr_idx", "t_abs_idx"]


def test_default_index(script: CatalogScript) -> None:
    script.run("CREATE VIEW v AS SELECT b, a FROM t")
    by_key: Any = script.bind("CREATE DEFAULT INDEX ON t")
    assert by_key.keys == (Column(0, INTEGER),)
    by_all: Any = script.bind("CREATE DEFAULT INDEX everything IN CLUSTER default ON public.v")
    assert by_all.keys == (Column(0, TEXT), Column(1, INTEGER))
    assert by_all.name == "everything"
    script.run("CREATE DEFAULT INDEX ON v")
    assert script.item("v_primary_idx").on == script.item("v").id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP TABLE a, s.b", Drop(ItemKind.TABLE, ((None, "a"), ("s", "b")))),
        ("DROP VIEW IF EXISTS a CASCADE", Drop(ItemKind.VIEW, ((None, "a"),), True, True)),
        ("DROP MATERIALIZED VIEW a", Drop(ItemKind.MATERIALIZED_VIEW, ((None, "a"),))),
        ("DROP INDEX a RESTRICT", Drop(ItemKind.INDEX, ((None, "a"),))),
        ("CREATE SCHEMA s", CreateSchema("s")),
        ("CREATE SCHEMA IF NOT EXISTS s", CreateSchema("s", True)),
        ("DROP SCHEMA s, r CASCADE", DropSchema(("s", "r"), False, True)),
        ("ALTER VIEW IF EXISTS s.v RENAME TO w", AlterRename(ItemKind.VIEW, ("s", "v"), "w", True)),
    ],
)
def test_statements_that_are_names(script: CatalogScript, text: str, expected: object) -> None:
    assert script.bind(text) == expected


def test_truncate(script: CatalogScript) -> None:
    script.run("CREATE TABLE u ()")
    found = script.bind("TRUNCATE TABLE t, u, t RESTART IDENTITY CASCADE")
    assert found == Truncate((script.item("t"), script.item("u")), restart=True)


def test_replacing_a_view_below_another_keeps_the_reader(script: CatalogScript) -> None:
    script.run("CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM v")
    script.run("CREATE OR REPLACE VIEW v AS SELECT a, b FROM t")
    reader = script.item("w")
    assert reader.relation is not None
    assert reader.relation.types == (INTEGER,)
    again: Any = script.bind("SELECT * FROM v")
    assert again.query.types == (INTEGER, TEXT)
    assert again.query.relation == Get(script.item("v").id, (INTEGER, TEXT))


def test_positions_in_bigint_columns() -> None:
    script = CatalogScript("CREATE TABLE t (a bigint DEFAULT 7)")
    assert script.item("t").columns[0].default == Literal(7, BIGINT)
