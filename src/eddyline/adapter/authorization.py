"""Whether a role may run a statement.  Views are read with their owners' rights, one below the other.

Where columns are named a right on each of them does as well as one on the table; where a table is read and no column is
named one on any column does.

Cost: one look at the role for a superuser; else O(what the statement reads, through views).
"""

from __future__ import annotations

from collections.abc import Iterable

from eddyline.adapter.access_rules import DATABASE_KEY, AccessRules, Role, schema_key
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.pg_catalog_tables import OF_SUPERUSERS
from eddyline.adapter.pg_objects import PG_CATALOG
from eddyline.adapter.role_refusals import denied, not_owner
from eddyline.adapter.system_catalog import SYSTEM_SCHEMAS
from eddyline.errors import make_error
from eddyline.plan.traverse import gets
from eddyline.sql import statements as st
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.column_reads import Reads
from eddyline.sql.query import BoundQuery
from eddyline.sql.role_statements import ALL_RIGHTS

__all__ = [
    "authorize",
    "authorize_definition",
    "check_any_right",
    "check_columns",
    "check_one_right",
    "check_rights",
    "check_schema",
]


def check_rights(rules: AccessRules, role: Role, item: CatalogItem, *rights: str) -> None:
    """42501 unless the role has all of them, and USAGE of the schema."""
    if role.superuser:
        return
    if item.schema in SYSTEM_SCHEMAS:
        if item.schema == PG_CATALOG and item.name in OF_SUPERUSERS:
            raise denied("table" if item.name == "pg_authid" else "view", item.name)
        return
    check_schema(rules, role, item.schema, "USAGE")
    for right in rights:
        if not rules.allows(role, item.id, right):
            raise denied(item.kind.value, item.name)


def check_one_right(rules: AccessRules, role: Role, item: CatalogItem, rights: Iterable[str]) -> None:
    """42501 unless the role has one of them."""
    if not role.superuser and not any(rules.allows(role, item.id, right) for right in rights):
        raise denied(item.kind.value, item.name)


def check_columns(rules: AccessRules, role: Role, item: CatalogItem, right: str, positions: Iterable[int]) -> None:
    """42501 unless the role has the right on the table or view or on those columns (without any: on some), and USAGE of
    the schema."""
    if role.superuser or item.schema in SYSTEM_SCHEMAS:
        check_rights(rules, role, item)
        return
    check_schema(rules, role, item.schema, "USAGE")
    if not rules.allows_columns(role, item, right, positions):
        raise denied(item.kind.value, item.name)


def check_any_right(rules: AccessRules, role: Role, item: CatalogItem) -> None:
    """42501 unless the role has some right on it, on a column of it, or on what it indexes, and USAGE of the schema."""
    if role.superuser or item.schema in SYSTEM_SCHEMAS:
        return
    check_schema(rules, role, item.schema, "USAGE")
    if any(rules.allows(role, item.on or item.id, right) for right in ALL_RIGHTS[item.rights_kind]):
        return
    if not any(rules.allows_columns(role, item, right, ()) for right in ALL_RIGHTS["column"]):
        raise denied(item.kind.value, item.name)


def check_schema(rules: AccessRules, role: Role, schema: str, right: str) -> None:
    if schema not in SYSTEM_SCHEMAS and not rules.allows(role, schema_key(schema), right):
        raise denied("schema", schema)


def authorize(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, statement: st.Statement) -> None:
    """42501 if the role may not run it.

    ``rules``: as they are now, which may be newer than ``snapshot``.
    """
    if role.superuser and not rules.owners:
        return  # with other owners a view may read what its own may not
    match statement:
        case st.Select() | st.Subscribe():
            _check_query(snapshot, rules, role, statement.query)
        case st.DeclareCursor():
            authorize(snapshot, rules, role, statement.query)
        case st.Explain():
            if statement.item is not None:
                whole = _everything(snapshot, (statement.item.on or statement.item.id,))
                _check_reads(snapshot, rules, role, whole)
            if statement.statement is not None:
                authorize(snapshot, rules, role, statement.statement)
        case st.Insert():
            _check_insert(snapshot, rules, role, statement)
        case st.Update():
            check_columns(rules, role, statement.table, "UPDATE", statement.changed)
            _check_reads(snapshot, rules, role, _used(statement))
        case st.Delete():
            check_rights(rules, role, statement.table, "DELETE")
            _check_reads(snapshot, rules, role, _used(statement))
        case st.Truncate():
            for table in statement.tables:
                check_rights(rules, role, table, "TRUNCATE")
        case st.Copy():
            _check_copy(snapshot, rules, role, statement)
        case st.AlterSystem() if not role.superuser:
            what = "perform ALTER SYSTEM RESET ALL" if statement.name is None else f'set parameter "{statement.name}"'
            raise make_error("42501", f"permission denied to {what}")
        case st.CreateTableAs():
            _check_reads(snapshot, rules, role, statement.reads)
        case st.CreateMaterializedView():
            known = statement.reads
            _check_reads(snapshot, rules, role, known or _everything(snapshot, gets(statement.relation)))
        case _:
            return


def _check_insert(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, statement: st.Insert) -> None:
    check_columns(rules, role, statement.table, "INSERT", statement.given)
    conflict = statement.on_conflict
    if conflict is not None and conflict.assignments is not None:
        check_columns(rules, role, statement.table, "UPDATE", conflict.changed)
    _check_reads(snapshot, rules, role, _used(statement))


def _used(statement: st.Insert | st.Update | st.Delete) -> Reads:
    """What a WITH query reads that nothing refers to is not read."""
    used = gets(statement.relation) | {statement.table.id}
    return tuple(read for read in statement.reads if read[0] in used)


def _check_copy(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, statement: st.Copy) -> None:
    if statement.filename is not None and not role.superuser:
        raise make_error(
            "42501",
            f"must be superuser to COPY {'to' if statement.table is None else 'from'} a file",
            hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
        )
    if statement.subscribe is not None:
        authorize(snapshot, rules, role, statement.subscribe)
    elif statement.query is not None:
        _check_query(snapshot, rules, role, statement.query)
    elif statement.table is not None:
        check_columns(rules, role, statement.table, "INSERT", statement.columns)


def _check_query(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, query: BoundQuery) -> None:
    used = gets(query.relation)
    _check_reads(snapshot, rules, role, tuple(read for read in query.reads if read[0] in used))


def _everything(snapshot: CatalogSnapshot, ids: Iterable[str]) -> Reads:
    """All columns of those items."""
    items = ((id, snapshot.item(id)) for id in sorted(ids))
    return tuple((id, tuple(range(len(item.columns)))) for id, item in items if item is not None)


def _check_reads(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, reads: Reads) -> None:
    seen: set[str] = set()
    for id, positions in reads:
        item = snapshot.item(id)
        if item is not None:
            check_columns(rules, role, item, "SELECT", positions)
            _check_inside(snapshot, rules, item, seen)


def _check_inside(snapshot: CatalogSnapshot, rules: AccessRules, view: CatalogItem, seen: set[str]) -> None:
    """What a view reads is its owner's to read; a materialized view was, when it was made.

    ``seen``: views that were looked into.
    """
    if view.kind is not ItemKind.VIEW or view.id in seen:
        return
    seen.add(view.id)
    owner = rules.named(rules.owner(view.id))
    # Which columns is not known of views of directories from before that was kept.
    reads = _everything(snapshot, view.depends_on) if view.reads is None else view.reads
    for id, positions in reads:
        if id not in view.depends_on:
            continue
        item = snapshot.item(id)
        if item is None:
            continue
        if item.schema in SYSTEM_SCHEMAS:
            check_rights(rules, owner, item)
            continue
        if not rules.allows_columns(owner, item, "SELECT", positions):
            raise denied(item.kind.value, item.name)
        _check_inside(snapshot, rules, item, seen)


def authorize_definition(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], role: Role, statement: st.Statement
) -> None:
    """42501 if the role may not define or drop that.  What there is not is for the definition itself to say."""
    if role.superuser:
        return
    rules = snapshot.access
    match statement:
        case st.CreateSchema():
            if not rules.allows(role, DATABASE_KEY, "CREATE"):
                raise denied("database", "postgres")
            if statement.owner is not None and rules.role(statement.owner).id not in rules.may_become(role):
                raise make_error("42501", f'must be member of role "{statement.owner}"')
        case (
            st.CreateTable() | st.CreateTableAs() | st.CreateView() | st.CreateMaterializedView() | st.CreateSequence()
        ):
            check_schema(rules, role, statement.schema, "CREATE")
            old = snapshot.find(statement.schema, statement.name)
            if isinstance(statement, st.CreateView):
                if statement.or_replace and old is not None:
                    _check_owner(rules, role, old)
                _check_named(snapshot, role, gets(statement.relation))
        case st.CreateIndex():
            _check_owner(rules, role, statement.on)
            check_schema(rules, role, statement.on.schema, "CREATE")
        case st.Drop():
            for schema, name in statement.names:
                item = snapshot.view(search_path).resolve(schema, name)
                if item is not None and not rules.owns(role, schema_key(item.schema)):
                    _check_owner(rules, role, item)
        case st.DropSchema():
            for name in statement.names:
                if name in snapshot.schemas and not rules.owns(role, schema_key(name)):
                    raise not_owner("schema", name)
        case st.AlterSequence():
            item = snapshot.view(search_path).resolve(*statement.name)
            if item is not None:
                _check_owner(rules, role, item)
        case st.AlterRename():
            item = snapshot.view(search_path).resolve(*statement.name)
            if item is not None:
                _check_owner(rules, role, item)
                check_schema(rules, role, item.schema, "CREATE")
        case _:
            return


def _check_named(snapshot: CatalogSnapshot, role: Role, ids: Iterable[str]) -> None:
    """Whether it may name what a view reads, which takes no right to read it."""
    for id in sorted(ids):
        item = snapshot.item(id)
        if item is not None:
            check_schema(snapshot.access, role, item.schema, "USAGE")


def _check_owner(rules: AccessRules, role: Role, item: CatalogItem) -> None:
    if item.schema not in SYSTEM_SCHEMAS and not rules.owns(role, item.on or item.id):
        raise not_owner(item.kind.value, item.name)
