"""Catalog snapshots and what definitions do to them; messages are PostgreSQL 15's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from eddyline.adapter.catalog import Catalog, CatalogSnapshot
from eddyline.adapter.catalog_changes import (
    Change,
    alter_rename,
    create_index,
    create_materialized_view,
    create_schema,
    create_table,
    create_view,
    drop,
    drop_schema,
)
from eddyline.errors import Error
from eddyline.expr.ir import Column
from eddyline.plan.relation import Get, Project, Relation
from eddyline.repr.types import INTEGER, TEXT
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ColumnDef, ItemKind
from eddyline.sql.statements import (
    AlterRename,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTable,
    CreateView,
    Drop,
    DropSchema,
)

PATH = ("public",)


class World:
    """A catalog and its newest snapshot, driven one definition at a time."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.last: Change = Change(self.snapshot)

    @property
    def snapshot(self) -> CatalogSnapshot:
        return self.catalog.snapshot()

    def apply(self, change: Callable[[CatalogSnapshot], Change]) -> Change:
        base = self.snapshot
        self.last = change(base)
        self.catalog.publish(base, self.last.snapshot)
        return self.last

    def table(self, name: str, schema: str = "public", *, if_not_exists: bool = False) -> CatalogItem | None:
        statement = CreateTable(
            schema, name, (ColumnDef("a", INTEGER, True), ColumnDef("b", TEXT)), (0,), if_not_exists
        )
        return self.apply(lambda s: create_table(s, self.catalog.allocate_id(), statement)).created

    def reading(self, source: str) -> Relation:
        item = self.snapshot.view().resolve(None, source)
        assert item is not None
        return Get(item.id, item.types)

    def view(
        self, name: str, source: str, columns: tuple[ColumnDef, ...] | None = None, *, replace: bool = False
    ) -> CatalogItem:
        relation = self.reading(source)
        columns = columns if columns is not None else (ColumnDef("a", INTEGER), ColumnDef("b", TEXT))
        statement = CreateView("public", name, columns, relation, f"SELECT * FROM {source}", replace)
        created = self.apply(lambda s: create_view(s, self.catalog.allocate_id(), statement)).created
        assert created is not None
        return created

    def materialized(self, name: str, source: str) -> None:
        statement = CreateMaterializedView("public", name, (ColumnDef("a", INTEGER),), self.reading(source), "…")
        self.apply(lambda s: create_materialized_view(s, self.catalog.allocate_id(), statement))

    def index(self, source: str, name: str | None = None, stem: str = "") -> CatalogItem:
        on = self.snapshot.view().resolve(None, source)
        assert on is not None
        statement = CreateIndex(on, (Column(0, INTEGER),), name, stem)
        created = self.apply(lambda s: create_index(s, self.catalog.allocate_id(), statement)).created
        assert created is not None
        return created

    def drop(self, kind: ItemKind, *names: str, cascade: bool = False, if_exists: bool = False) -> Change:
        statement = Drop(kind, tuple((None, n) for n in names), if_exists, cascade)
        return self.apply(lambda s: drop(s, PATH, statement))

    def names(self) -> list[str]:
        return [item.name for item in self.snapshot.items()]


def refusal(action: Callable[[], object]) -> Error:
    with pytest.raises(Error) as caught:
        action()
    return caught.value


def test_a_snapshot_is_a_catalog_view() -> None:
    view: CatalogView = World().snapshot.view()
    assert (view.version, view.search_path, view.creation_schema) == (0, PATH, "public")


def test_old_snapshots_stay_as_they_were() -> None:
    world = World()
    before = world.snapshot
    world.table("t")
    assert before.find("public", "t") is None
    assert world.snapshot.find("public", "t") is not None
    assert (before.version, world.snapshot.version) == (0, 1)


def test_publishing_over_another_change_is_refused() -> None:
    world = World()
    base = world.snapshot
    mine = create_schema(base, CreateSchema("mine"))
    world.table("t")
    error = refusal(lambda: world.catalog.publish(base, mine.snapshot))
    assert (error.sqlstate, error.message) == ("40001", "could not serialize access due to concurrent update")


def test_ids_are_unique_over_threads() -> None:
    catalog = Catalog()
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.extend(catalog.allocate_id() for _ in range(200))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 1600
    assert "u1" in ids


def test_name_conflicts() -> None:
    world = World()
    world.table("t")
    for action in (
        lambda: world.table("t"),
        lambda: world.view("t", "t"),
        lambda: world.index("t", "t"),
        lambda: world.materialized("t", "t"),
    ):
        error = refusal(action)
        assert (error.sqlstate, error.message) == ("42P07", 'relation "t" already exists')
    assert world.table("t", if_not_exists=True) is None
    assert world.last.notices == ('relation "t" already exists, skipping',)
    assert world.snapshot.version == 1


def test_schemas() -> None:
    world = World()
    world.apply(lambda s: create_schema(s, CreateSchema("s")))
    error = refusal(lambda: world.apply(lambda s: create_schema(s, CreateSchema("s"))))
    assert (error.sqlstate, error.message) == ("42P06", 'schema "s" already exists')
    again = world.apply(lambda s: create_schema(s, CreateSchema("s", if_not_exists=True)))
    assert again.notices == ('schema "s" already exists, skipping',)
    error = refusal(lambda: world.apply(lambda s: create_schema(s, CreateSchema("pg_x"))))
    assert (error.sqlstate, error.message) == ("42939", 'unacceptable schema name "pg_x"')
    assert error.detail == 'The prefix "pg_" is reserved for system schemas.'
    error = refusal(lambda: world.table("t", schema="nope"))
    assert (error.sqlstate, error.message) == ("3F000", 'schema "nope" does not exist')


def test_search_path_decides_between_schemas() -> None:
    world = World()
    world.apply(lambda s: create_schema(s, CreateSchema("s")))
    first, second = world.table("t"), world.table("t", schema="s")
    assert first is not None and second is not None
    snapshot = world.snapshot
    assert snapshot.view(("s", "public")).resolve(None, "t") == second
    assert snapshot.view(("missing", "public", "s")).resolve(None, "t") == first
    assert snapshot.view(("missing", "s")).creation_schema == "s"
    assert snapshot.view(("missing",)).creation_schema is None
    assert snapshot.view().resolve("s", "t") == second
    assert snapshot.view().resolve("s", "u") is None


def test_dropping_something_missing() -> None:
    world = World()
    for kind, sqlstate in (
        (ItemKind.TABLE, "42P01"),
        (ItemKind.VIEW, "42P01"),
        (ItemKind.MATERIALIZED_VIEW, "42P01"),
        (ItemKind.INDEX, "42704"),
    ):
        error = refusal(lambda kind=kind: world.drop(kind, "x"))  # type: ignore[misc]  # bound early
        assert (error.sqlstate, error.message) == (sqlstate, f'{kind.value} "x" does not exist')
        change = world.drop(kind, "x", if_exists=True)
        assert change.notices == (f'{kind.value} "x" does not exist, skipping',)
    error = refusal(lambda: drop(world.snapshot, PATH, Drop(ItemKind.TABLE, (("nope", "x"),))))
    assert (error.sqlstate, error.message) == ("3F000", 'schema "nope" does not exist')


def test_dropping_as_the_wrong_kind() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    error = refusal(lambda: world.drop(ItemKind.TABLE, "v", if_exists=True))
    assert (error.sqlstate, error.message) == ("42809", '"v" is not a table')
    assert error.hint == "Use DROP VIEW to remove a view."


def test_restrict_lists_what_depends() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    world.view("w", "v")
    error = refusal(lambda: world.drop(ItemKind.TABLE, "t"))
    assert error.sqlstate == "2BP01"
    assert error.message == "cannot drop table t because other objects depend on it"
    assert error.detail == "view v depends on table t\nview w depends on view v"
    assert error.hint == "Use DROP ... CASCADE to drop the dependent objects too."
    assert world.names() == ["t", "v", "w"]


def test_cascade_drops_readers_first_and_tells() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    world.view("w", "v")
    world.index("w", stem="w_a")
    change = world.drop(ItemKind.TABLE, "t", cascade=True)
    assert [item.name for item in change.dropped] == ["w_a_idx", "w", "v", "t"]
    assert change.notices == (
        "drop cascades to 2 other objects\nDETAIL: drop cascades to view v\ndrop cascades to view w",
    )
    assert world.names() == []


def test_cascade_over_a_diamond_keeps_the_order() -> None:
    world = World()
    world.table("t")
    world.view("a", "t")
    world.view("b", "a")
    item = world.view("c", "b")
    # c reads a as well, so a direct edge is shorter than the way over b
    a = world.snapshot.view().resolve(None, "a")
    assert a is not None
    base = world.snapshot
    world.catalog.publish(base, base.with_item(replace(item, depends_on=item.depends_on | {a.id})))
    change = world.drop(ItemKind.TABLE, "t", cascade=True)
    assert [i.name for i in change.dropped] == ["c", "b", "a", "t"]


def test_one_dependent_is_named_in_the_notice() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    assert world.drop(ItemKind.TABLE, "t", cascade=True).notices == ("drop cascades to view v",)


def test_indexes_do_not_hold_their_table() -> None:
    world = World()
    world.table("t")
    index = world.index("t", stem="t_a")
    assert world.snapshot.view().indexes_on(world.snapshot.items()[0].id) == (index,)
    change = world.drop(ItemKind.TABLE, "t")
    assert [item.name for item in change.dropped] == ["t_a_idx", "t"]
    assert change.notices == ()


def test_dropping_several_that_depend_on_each_other() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    world.view("w", "v")
    change = world.drop(ItemKind.VIEW, "v", "w")
    assert sorted(item.name for item in change.dropped) == ["v", "w"]
    error = refusal(lambda: (world.view("v", "t"), world.table("u"), world.drop(ItemKind.TABLE, "u", "t")))
    assert error.message == "cannot drop desired object(s) because other objects depend on them"


def test_names_outside_the_search_path_are_qualified() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    error = refusal(lambda: drop(world.snapshot, (), Drop(ItemKind.TABLE, (("public", "t"),))))
    assert error.message == "cannot drop table public.t because other objects depend on it"
    assert error.detail == "view public.v depends on table public.t"


def test_index_names_follow_postgresql() -> None:
    world = World()
    world.table("t")
    assert [world.index("t", stem="t_a").name for _ in range(3)] == ["t_a_idx", "t_a_idx1", "t_a_idx2"]
    assert len(world.index("t", stem="n" * 80).name) == 63


def test_dropping_a_schema() -> None:
    world = World()
    world.apply(lambda s: create_schema(s, CreateSchema("s")))
    world.table("t", schema="s")
    error = refusal(lambda: drop_schema(world.snapshot, PATH, DropSchema(("s",))))
    assert (error.sqlstate, error.message) == ("2BP01", "cannot drop schema s because other objects depend on it")
    assert error.detail == "table s.t depends on schema s"
    change = world.apply(lambda s: drop_schema(s, PATH, DropSchema(("s",), cascade=True)))
    assert change.notices == ("drop cascades to table s.t",)
    assert not world.snapshot.view().has_schema("s")
    error = refusal(lambda: drop_schema(world.snapshot, PATH, DropSchema(("s",))))
    assert (error.sqlstate, error.message) == ("3F000", 'schema "s" does not exist')
    change = drop_schema(world.snapshot, PATH, DropSchema(("s",), if_exists=True))
    assert change.notices == ('schema "s" does not exist, skipping',)


def test_replacing_a_view_keeps_its_id_and_its_readers() -> None:
    world = World()
    world.table("t")
    old = world.view("v", "t")
    reader = world.view("w", "v")
    wider = (ColumnDef("a", INTEGER), ColumnDef("b", TEXT), ColumnDef("c", INTEGER))
    new = world.view("v", "t", wider, replace=True)
    assert new.id == old.id
    now = world.snapshot.by_id[reader.id]
    assert now.relation == Project(Get(old.id, (INTEGER, TEXT, INTEGER)), (0, 1))
    assert [i.id for i in world.snapshot.dependents(old.id)] == [reader.id]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((ColumnDef("a", INTEGER),), "cannot drop columns from view"),
        (
            (ColumnDef("a", INTEGER), ColumnDef("c", TEXT)),
            'cannot change name of view column "b" to "c"',
        ),
        (
            (ColumnDef("a", TEXT), ColumnDef("b", TEXT)),
            'cannot change data type of view column "a" from integer to text',
        ),
    ],
)
def test_what_a_replacement_may_not_change(columns: tuple[ColumnDef, ...], message: str) -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    error = refusal(lambda: world.view("v", "t", columns, replace=True))
    assert (error.sqlstate, error.message) == ("42P16", message)


def test_a_view_cannot_come_to_read_itself() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    world.view("w", "v")
    for source in ("v", "w"):
        assert refusal(lambda source=source: world.view("v", source, replace=True)).sqlstate == "42P17"  # type: ignore[misc]  # bound early


def test_replacing_what_is_no_view_or_is_maintained() -> None:
    world = World()
    world.table("t")
    error = refusal(lambda: world.view("t", "t", replace=True))
    assert (error.sqlstate, error.message) == ("42809", '"t" is not a view')
    world.view("v", "t")
    world.index("v", stem="v_a")
    assert refusal(lambda: world.view("v", "t", replace=True)).sqlstate == "0A000"


def test_renaming() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    statement = AlterRename(ItemKind.TABLE, (None, "t"), "u")
    world.apply(lambda s: alter_rename(s, PATH, statement))
    assert world.names() == ["u", "v"]
    assert [i.name for i in world.snapshot.dependents(world.snapshot.items()[0].id)] == ["v"]
    error = refusal(lambda: alter_rename(world.snapshot, PATH, AlterRename(ItemKind.TABLE, (None, "u"), "v")))
    assert (error.sqlstate, error.message) == ("42P07", 'relation "v" already exists')
    error = refusal(lambda: alter_rename(world.snapshot, PATH, statement))
    assert (error.sqlstate, error.message) == ("42P01", 'relation "t" does not exist')


def test_what_was_bound_to_something_dropped_since_is_refused() -> None:
    world = World()
    world.table("t")
    on = world.snapshot.items()[0]
    relation = world.reading("t")
    world.drop(ItemKind.TABLE, "t")
    view = CreateView("public", "v", on.columns, relation, "…")
    for action in (
        lambda: create_view(world.snapshot, "u9", view),
        lambda: create_index(world.snapshot, "u9", CreateIndex(on, (Column(0, INTEGER),), "i")),
    ):
        assert refusal(action).sqlstate == "40001"


def test_what_was_bound_to_a_view_replaced_since_is_refused() -> None:
    world = World()
    world.table("t")
    world.view("v", "t")
    stale = world.reading("v")
    world.view("v", "t", (ColumnDef("a", INTEGER), ColumnDef("b", TEXT), ColumnDef("c", TEXT)), replace=True)
    statement = CreateView("public", "w", (), stale, "…")
    assert refusal(lambda: create_view(world.snapshot, "u9", statement)).sqlstate == "40001"
