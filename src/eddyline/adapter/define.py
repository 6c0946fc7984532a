"""CREATE and DROP: catalog changes, and the collections and dataflows that go with them.

A definition is a commit of its own: its time is allocated, the objects are made, the time is closed, and then the new
catalog becomes visible.  Dataflows hydrate in the background.
"""

from __future__ import annotations

from collections.abc import Callable

from eddyline.adapter import catalog_changes as changes
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change
from eddyline.adapter.engine import Engine
from eddyline.adapter.object_names import object_names
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read_plan import catalog_facts, reads_clock, refuse_system_relations
from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Column
from eddyline.plan.column_names import name_operators
from eddyline.plan.dataflow import DataflowDescription, Operator
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.inline import inline_views
from eddyline.plan.lower import lower_index, lower_materialized_view
from eddyline.plan.optimize import optimize
from eddyline.plan.relation import Get, Relation
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Time
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind
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
)

__all__ = ["Definition", "define", "define_table_as", "maintained_relation"]

Definition = (
    AlterRename | CreateIndex | CreateMaterializedView | CreateSchema | CreateTable | CreateView | Drop | DropSchema
)


def define(engine: Engine, statement: Definition, search_path: tuple[str, ...]) -> Outcome:
    """Runs one definition.  Whatever is refused leaves the catalog as it was."""
    match statement:
        case CreateTable():
            return _apply(
                engine,
                "CREATE TABLE",
                lambda s: changes.create_table(s, engine.catalog.allocate_id(), statement),
                _create_table,
            )
        case CreateView():
            return _apply(engine, "CREATE VIEW", lambda s: _create_view(engine, s, statement), None)
        case CreateMaterializedView():
            return _apply(
                engine,
                "CREATE MATERIALIZED VIEW",
                lambda s: changes.create_materialized_view(s, engine.catalog.allocate_id(), statement),
                _create_materialized_view,
            )
        case CreateIndex():
            return _apply(
                engine,
                "CREATE INDEX",
                lambda s: changes.create_index(s, engine.catalog.allocate_id(), statement),
                _create_index,
            )
        case CreateSchema():
            return _apply(engine, "CREATE SCHEMA", lambda s: changes.create_schema(s, statement), None)
        case Drop():
            tag = f"DROP {statement.kind.value.upper()}"
            return _apply(engine, tag, lambda s: changes.drop(s, search_path, statement), None)
        case DropSchema():
            return _apply(engine, "DROP SCHEMA", lambda s: changes.drop_schema(s, search_path, statement), None)
        case AlterRename():
            tag = f"ALTER {statement.kind.value.upper()}"
            return _apply(engine, tag, lambda s: changes.alter_rename(s, search_path, statement), None)


def define_table_as(engine: Engine, statement: CreateTableAs, rows: Batch | None) -> Outcome:
    """CREATE TABLE AS: the table and its first rows, in one commit."""
    made: list[str] = []

    def create(engine: Engine, item: CatalogItem, view: CatalogView, at: Time) -> None:
        _create_table(engine, item, view, at)
        made.append(item.id)

    outcome = _apply(
        engine,
        "CREATE TABLE AS",
        lambda s: changes.create_table(s, engine.catalog.allocate_id(), statement),
        create,
        first_rows=lambda: {made[0]: rows} if made and rows is not None and len(rows) else {},
    )
    if rows is None or not made:
        return outcome
    count = int(rows.diffs.sum())
    return Outcome(f"SELECT {count}", affected=count, notices=outcome.notices, time=outcome.time)


def _apply(
    engine: Engine,
    tag: str,
    change_of: Callable[[CatalogSnapshot], Change],
    create: Callable[[Engine, CatalogItem, CatalogView, Time], None] | None,
    *,
    first_rows: Callable[[], dict[str, Batch]] = dict,
) -> Outcome:
    with engine.commit_lock:
        base = engine.catalog.snapshot()
        change = change_of(base)
        if change.snapshot is base:
            return Outcome(tag, notices=change.notices)
        at = engine.timeline.allocate()
        if change.created is not None and create is not None:
            create(engine, change.created, change.snapshot.view((change.created.schema,)), at)
        engine.store.append(first_rows(), at)
        engine.timeline.committed(at)
        engine.catalog.publish(base, change.snapshot)
        _drop_collections(engine, change.dropped)
    return Outcome(tag, notices=change.notices, time=at)


def _drop_collections(engine: Engine, dropped: tuple[CatalogItem, ...]) -> None:
    with engine.control() as controller:
        for item in dropped:
            if item.kind is not ItemKind.VIEW:
                controller.drop(item.id)


def _create_table(engine: Engine, item: CatalogItem, view: CatalogView, at: Time) -> None:
    with engine.control() as controller:
        controller.create_table(
            item.id,
            item.types,
            key=item.primary_key or None,
            names=tuple(c.name for c in item.columns),
            table=item.name,
            constraint=f"{item.name}_pkey",
            at=at,
        )


def _create_view(engine: Engine, snapshot: CatalogSnapshot, statement: CreateView) -> Change:
    change = changes.create_view(snapshot, engine.catalog.allocate_id(), statement)
    item = change.created
    if item is not None and item.id in snapshot.by_id:
        kept = _maintained_readers(snapshot, item.id)
        if kept:
            raise make_error(
                "0A000",
                f'cannot replace view "{item.name}" while {kept[0].kind.value} "{kept[0].name}" is maintained from it',
                hint=f"drop the {kept[0].kind.value} first and create it again afterwards",
            )
    return change


def _maintained_readers(snapshot: CatalogSnapshot, item_id: str) -> list[CatalogItem]:
    """The indexes and materialized views whose dataflows contain the item's definition."""
    found, stack, seen = [], [item_id], set()
    while stack:
        for reader in snapshot.dependents(stack.pop()):
            if reader.id in seen:
                continue
            seen.add(reader.id)
            if reader.kind is ItemKind.VIEW:
                stack.append(reader.id)
            else:
                found.append(reader)
    return found


def _create_index(engine: Engine, item: CatalogItem, view: CatalogView, at: Time) -> None:
    on = view.item(item.on) if item.on is not None else None
    assert on is not None
    key = tuple(e.index for e in item.keys if isinstance(e, Column))
    if len(key) != len(item.keys):
        raise unsupported("an index on an expression", hint="index a view that computes the expression as a column")
    relation, facts = maintained_relation(Get(on.id, on.types), view, but_not=item.id)
    operators = lower_index(relation, item.id, on.id, key, facts.indexes, unique_keys=facts.unique_keys)
    _create_dataflow(engine, on.name, name_operators(operators, object_names(view), view=on.name))


def _create_materialized_view(engine: Engine, item: CatalogItem, view: CatalogView, at: Time) -> None:
    assert item.relation is not None
    relation, facts = maintained_relation(item.relation, view, but_not=None)
    operators = lower_materialized_view(relation, item.id, facts.indexes, unique_keys=facts.unique_keys)
    _create_dataflow(engine, item.name, name_operators(operators, object_names(view), view=item.name))


def maintained_relation(relation: Relation, view: CatalogView, *, but_not: str | None) -> tuple[Relation, CatalogFacts]:
    """``relation`` optimized for a dataflow that keeps it fresh, over the indexes that there are (but one).

    Raises 0A000 if it depends on the time of the statement.
    """
    refuse_system_relations(relation, view, "a maintained view or index")
    facts = catalog_facts(relation, view, but_not=but_not)
    indexed = {i.on for i in facts.indexes}

    def definition(item_id: str) -> Relation | None:
        item = view.item(item_id)
        if item is None or item.kind is not ItemKind.VIEW or item_id in indexed:
            return None
        return item.relation

    optimized = optimize(inline_views(relation, definition), facts)
    if reads_clock(optimized):
        raise unsupported(
            "now() in a view that is maintained", hint="keep the time in a table of one row and join with it"
        )
    return optimized, facts


def _create_dataflow(engine: Engine, name: str, operators: tuple[Operator, ...]) -> None:
    with engine.control() as controller:
        controller.create_dataflow(DataflowDescription(name, operators, 0, EMPTY))
