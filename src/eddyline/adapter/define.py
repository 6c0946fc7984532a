"""CREATE and DROP: catalog changes, and the collections and dataflows that go with them.

A transaction's definitions are committed together with its writes, at one time: the time is allocated, the objects are
made, the rows are written and the time is closed, and then the new catalog becomes visible.  Dataflows hydrate in the
background.  Until then a definition changes the transaction's draft of the catalog and nothing else; at the commit it
is applied once more, to the catalog as it then is, and refused if that has no place for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from eddyline.adapter import catalog_changes as changes
from eddyline.adapter.access_rules import Role, schema_key
from eddyline.adapter.authorization import authorize_definition
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change
from eddyline.adapter.catalog_documents import catalog_changes
from eddyline.adapter.engine import CommitUnderWay, Engine
from eddyline.adapter.object_names import object_names
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read import ReadContext
from eddyline.adapter.read_plan import catalog_facts, definitions, read_of_the_moment, refuse_system_relations
from eddyline.adapter.role_changes import RoleStatement, change_roles
from eddyline.adapter.sequence_changes import alter_sequence, create_sequence, restart_sequences
from eddyline.adapter.sequences import SEQUENCE_DOCUMENTS
from eddyline.adapter.transaction import Defining
from eddyline.adapter.write import rows_of
from eddyline.adapter.write import truncate as truncate_rows
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
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind, SequenceDef
from eddyline.sql.role_statements import (
    AlterDefaultPrivileges,
    AlterOwner,
    AlterRoleSettings,
    CreateRole,
    DropOwned,
    DropRole,
    GrantRights,
    GrantRoles,
    ReassignOwned,
)
from eddyline.sql.statements import (
    AlterRename,
    AlterSequence,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSequence,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    DropSchema,
    Truncate,
)
from eddyline.storage.log import Changes
from eddyline.storage.store import NONE_CHECKED

__all__ = ["Definition", "commit_with_definitions", "define", "maintained_relation", "make", "truncate"]

Definition = (
    AlterRename
    | AlterSequence
    | CreateIndex
    | CreateMaterializedView
    | CreateSchema
    | CreateSequence
    | CreateTable
    | CreateTableAs
    | CreateView
    | Drop
    | DropSchema
    | RoleStatement
)


def define(context: ReadContext, statement: Definition, role: Role) -> Outcome:
    """Adds the definition to the transaction.  25006 in a read-only one; raises what can be known before the commit."""
    transaction = context.transaction
    definition = _defining(context.engine, statement, context.catalog.search_path, role)
    if transaction.read_only:
        raise make_error("25006", f"cannot execute {definition.tag} in a read-only transaction")
    change = _define(context, definition)
    if not isinstance(statement, CreateTableAs) or not statement.with_data or change.created is None:
        return Outcome(definition.tag, notices=change.notices)
    rows = rows_of(context, statement.relation, (), None)
    transaction.add(definition.id, rows)
    count = int(rows.diffs.sum())
    return Outcome(f"SELECT {count}", affected=count, notices=change.notices)


def _define(context: ReadContext, definition: Defining) -> Change:
    transaction = context.transaction
    assert transaction.catalog is not None
    change = _draft(context.engine, definition, transaction.catalog, check=transaction.explicit)
    if change.snapshot is not transaction.catalog:
        transaction.define(definition, change.snapshot)
    return change


def _defining(engine: Engine, statement: Definition, search_path: tuple[str, ...], role: Role) -> Defining:
    """What ``role`` defines, which is then its own; whether it may is seen each time that it is applied.

    42704 if the role is gone by then.
    """
    made = _unowned(engine, statement, search_path, role.name)

    def change(snapshot: CatalogSnapshot) -> Change:
        # As it is in that version: its rights may have changed since.
        actor = snapshot.access.role(role.name)
        owner = snapshot.access.role(statement.owner or role.name) if isinstance(statement, CreateSchema) else actor
        authorize_definition(snapshot, search_path, actor, statement)
        done = made.change(snapshot)
        if isinstance(statement, CreateSchema) and done.snapshot is not snapshot:
            return replace(done, snapshot=done.snapshot.made_by(owner.id, schema_key(statement.name), "schema"))
        if done.created is not None and done.created.id == made.id and done.created.kind is not ItemKind.INDEX:
            owned = done.snapshot
            for item in (done.created, *done.sequences):
                owned = owned.made_by(actor.id, item.id, item.rights_kind, item.schema)
            return replace(done, snapshot=owned)
        return done

    return Defining(made.tag, made.id, change)


def _unowned(engine: Engine, statement: Definition, search_path: tuple[str, ...], role: str) -> Defining:
    id = engine.catalog.allocate_id()
    match statement:
        case CreateTable():
            own = tuple(engine.catalog.allocate_id() for _ in statement.sequences)
            return Defining("CREATE TABLE", id, lambda s: changes.create_table(s, id, statement, own))
        case CreateSequence():
            return Defining(
                "CREATE SEQUENCE",
                id,
                lambda s: create_sequence(s, search_path, id, statement, s.access.role(role)),
            )
        case AlterSequence():
            last = partial(_last_value, engine)
            return Defining("ALTER SEQUENCE", id, lambda s: alter_sequence(s, search_path, id, statement, last))
        case CreateTableAs():
            return Defining("CREATE TABLE AS", id, lambda s: changes.create_table(s, id, statement))
        case CreateView():
            return Defining("CREATE VIEW", id, lambda s: changes.create_view(s, id, statement))
        case CreateMaterializedView():
            tag = "CREATE MATERIALIZED VIEW"
            return Defining(tag, id, lambda s: changes.create_materialized_view(s, id, statement))
        case CreateIndex():
            return Defining("CREATE INDEX", id, lambda s: changes.create_index(s, id, statement))
        case CreateSchema():
            return Defining("CREATE SCHEMA", id, lambda s: changes.create_schema(s, statement))
        case Drop():
            tag = f"DROP {statement.kind.value.upper()}"
            return Defining(tag, id, lambda s: changes.drop(s, search_path, statement))
        case DropSchema():
            return Defining("DROP SCHEMA", id, lambda s: changes.drop_schema(s, search_path, statement))
        case AlterRename():
            tag = f"ALTER {statement.kind.value.upper()}"
            return Defining(tag, id, lambda s: changes.alter_rename(s, search_path, statement))
        case _:
            return Defining(
                _role_tag(statement),
                id,
                lambda s: change_roles(s, search_path, statement, s.access.role(role)),
            )


def _last_value(engine: Engine, of: SequenceDef) -> int:
    return engine.sequences.look(of.position, of.first).last


def truncate(context: ReadContext, statement: Truncate, role: Role) -> Outcome:
    """Takes all rows away; with RESTART IDENTITY the tables' sequences begin again when it is committed."""
    outcome = truncate_rows(context, statement)
    if statement.restart:
        id = context.engine.catalog.allocate_id()

        def change(snapshot: CatalogSnapshot) -> Change:
            return restart_sequences(snapshot, statement.tables, id, snapshot.access.role(role.name))

        _define(context, Defining("TRUNCATE TABLE", id, change))
    return outcome


def _role_tag(statement: RoleStatement) -> str:
    match statement:
        case GrantRights() | GrantRoles():
            words = "GRANT" if statement.grant else "REVOKE"
            return words if isinstance(statement, GrantRights) else f"{words} ROLE"
        case AlterOwner():
            return "ALTER SCHEMA" if statement.kind is None else f"ALTER {statement.kind.value.upper()}"
        case CreateRole():
            return "CREATE ROLE"
        case DropRole():
            return "DROP ROLE"
        case DropOwned():
            return "DROP OWNED"
        case ReassignOwned():
            return "REASSIGN OWNED"
        case AlterDefaultPrivileges():
            return "ALTER DEFAULT PRIVILEGES"
        case AlterRoleSettings() if statement.of_database:
            return "ALTER DATABASE"
        case _:
            return "ALTER ROLE"


def _draft(engine: Engine, definition: Defining, snapshot: CatalogSnapshot, *, check: bool) -> Change:
    """What the definition does to a transaction's catalog; its snapshot is a draft, or ``snapshot`` if it does nothing.

    ``check``: that its dataflow can be made, which otherwise is seen at the commit.
    """
    base = snapshot if snapshot.draft else engine.catalog.draft_of(snapshot)
    change = definition.change(base)
    if change.snapshot is base:
        return replace(change, snapshot=snapshot)
    created = change.created
    if check and created is not None and created.id == definition.id:
        _maintained_operators(created, change.snapshot.view((created.schema,)))
    return replace(change, snapshot=engine.catalog.draft_of(change.snapshot))


def commit_with_definitions(
    engine: Engine,
    definitions: Sequence[Defining],
    writes: Mapping[str, Batch],
    *,
    wait: bool,
    checked: Mapping[str, Time] = NONE_CHECKED,
) -> CommitUnderWay | None:
    """Applies ``definitions`` in order and commits ``writes``, all or nothing; None if nothing changed.

    Rows for tables that there are not in the end are left out.  Definitions are safe and visible when it returns.
    ``wait``, ``checked``: as for ``Engine.begin_commit``.  Raises as the definitions do, and as that.
    """
    with engine.commit_lock:
        base = snapshot = engine.catalog.snapshot()
        done: list[Change] = []
        for definition in definitions:
            done.append(definition.change(snapshot))
            snapshot = done[-1].snapshot
        rows = {id: batch for id, batch in writes.items() if id in snapshot.by_id and len(batch)}
        if snapshot is base and not rows:
            return None
        at = engine.timeline.allocate()
        if snapshot is base:
            return engine.begin_commit(rows, at, wait=wait, checked=checked)
        made: list[CatalogItem] = []
        try:
            for definition, change in zip(definitions, done, strict=True):
                created = change.created
                if created is not None and created.id == definition.id:
                    make(engine, created, change.snapshot.view((created.schema,)), at)
                    made.append(created)
            begun = engine.begin_commit(rows, at, _stored(engine, base, snapshot))
            engine.finish_commit(begun)
        except BaseException:
            _drop_collections(engine, reversed(made))
            raise
        engine.catalog.publish(base, snapshot)
        engine.sequences.forget(_positions(base).keys() - _positions(snapshot).keys())
        dropped = [item for change in done for item in change.dropped]
        _drop_collections(engine, dropped)
        engine.dropped(dropped)
        return begun


def _stored(engine: Engine, base: CatalogSnapshot, changed: CatalogSnapshot) -> Changes:
    """What the directory of the database is told of the definitions."""
    before, after = _positions(base), _positions(changed)
    begun = engine.sequences.begin(of for key, of in after.items() if key not in before)
    if engine.durability is None:
        return Changes()
    found = catalog_changes(base, changed, engine.catalog.next_id)
    ended = tuple(SEQUENCE_DOCUMENTS + key for key in before if key not in after)
    return replace(found, put={**found.put, **begun}, removed=(*found.removed, *ended))


def _positions(snapshot: CatalogSnapshot) -> dict[str, SequenceDef]:
    """How sequences count, by the keys of their positions."""
    found = (item.sequence for item in snapshot.by_id.values())
    return {of.position: of for of in found if of is not None}


def _drop_collections(engine: Engine, dropped: Iterable[CatalogItem]) -> None:
    with engine.control() as controller:
        for item in dropped:
            if item.kind not in (ItemKind.VIEW, ItemKind.SEQUENCE):
                controller.drop(item.id)


def make(engine: Engine, item: CatalogItem, view: CatalogView, at: Time, *, since: Time | None = None) -> None:
    """The collection or the dataflow of a new item.

    ``at``: when a table begins.  ``since``: from when on a dataflow is computed, or from when its inputs are readable
    if that is later; None: from the newest time at which they are complete.
    """
    if item.kind is ItemKind.TABLE:
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
        return
    maintained = _maintained_operators(item, view)
    if maintained is not None:
        name, operators = maintained
        with engine.control() as controller:
            description = DataflowDescription(name, operators, 0, EMPTY)
            as_of = None if since is None else controller.readable_from([i.id for i in description.imports], since)
            controller.create_dataflow(description, as_of=as_of, cluster=item.cluster)


def _maintained_operators(item: CatalogItem, view: CatalogView) -> tuple[str, tuple[Operator, ...]] | None:
    """The name and the operators of the dataflow that keeps the item fresh; None if there is none."""
    match item.kind:
        case ItemKind.INDEX:
            return _index_operators(item, view)
        case ItemKind.MATERIALIZED_VIEW:
            assert item.relation is not None
            relation, facts = maintained_relation(item.relation, view, item.cluster)
            operators = lower_materialized_view(relation, item.id, facts.indexes, unique_keys=facts.unique_keys)
            return item.name, name_operators(operators, object_names(view), view=item.name)
        case _:
            return None


def _index_operators(item: CatalogItem, view: CatalogView) -> tuple[str, tuple[Operator, ...]]:
    on = view.item(item.on) if item.on is not None else None
    assert on is not None
    key = tuple(e.index for e in item.keys if isinstance(e, Column))
    if len(key) != len(item.keys):
        raise unsupported("an index on an expression", hint="Index a view that computes the expression as a column.")
    relation, facts = maintained_relation(Get(on.id, on.types), view, item.cluster, but_not=item.id)
    operators = lower_index(relation, item.id, on.id, key, facts.indexes, unique_keys=facts.unique_keys)
    return on.name, name_operators(operators, object_names(view), view=on.name)


def maintained_relation(
    relation: Relation, view: CatalogView, cluster: str | None, *, but_not: str | None = None
) -> tuple[Relation, CatalogFacts]:
    """``relation`` optimized for a dataflow of ``cluster`` that keeps it fresh, over that one's indexes (but one).

    Raises 0A000 if it depends on the time of the statement.
    """
    refuse_system_relations(relation, view, "a maintained view or index")
    facts = catalog_facts(relation, view, cluster, but_not=but_not)
    optimized = optimize(inline_views(relation, definitions(view, facts)), facts)
    what = read_of_the_moment(optimized)
    if what is not None:
        raise unsupported(
            f"{what} in a view that is maintained", hint="Keep the value in a table of one row and join with it."
        )
    return optimized, facts
