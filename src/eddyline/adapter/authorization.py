"""Whether a role may run a statement.  Views are read with their owners' rights, one below the other.

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
from eddyline.sql.role_statements import ALL_RIGHTS

__all__ = [
    "authorize",
    "authorize_definition",
    "check_any_right",
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


def check_any_right(rules: AccessRules, role: Role, item: CatalogItem) -> None:
    """42501 unless the role has some right on it, or on what it indexes, and USAGE of the schema."""
    if role.superuser or item.schema in SYSTEM_SCHEMAS:
        return
    check_schema(rules, role, item.schema, "USAGE")
    if not any(rules.allows(role, item.on or item.id, right) for right in ALL_RIGHTS[item.rights_kind]):
        raise denied(item.kind.value, item.name)


def check_schema(rules: AccessRules, role: Role, schema: str, right: str) -> None:
    if schema not in SYSTEM_SCHEMAS and not rules.allows(role, schema_key(schema), right):
        raise denied("schema", schema)


def authorize(
    snapshot: CatalogSnapshot, rules: AccessRules, role: Role, statement: st.Statement, *, reads_target: bool
) -> None:
    """42501 if the role may not run it.

    ``reads_target``: an UPDATE or DELETE looks at the columns of its table, or an INSERT names
    those of a conflict.

    ``rules``: as they are now, which may be newer than ``snapshot``.
    """
    if role.superuser and not rules.owners:
        return  # with other owners a view may read what its own may not
    match statement:
        case st.Select() | st.Subscribe():
            _check_reads(snapshot, rules, role, gets(statement.query.relation))
        case st.DeclareCursor():
            authorize(snapshot, rules, role, statement.query, reads_target=True)
        case st.Explain():
            if statement.item is not None:
                _check_reads(snapshot, rules, role, [statement.item.on or statement.item.id])
            if statement.statement is not None:
                authorize(snapshot, rules, role, statement.statement, reads_target=True)
        case st.Insert():
            _check_insert(snapshot, rules, role, statement, reads_target=reads_target)
        case st.Update() | st.Delete():
            check_rights(rules, role, statement.table, "UPDATE" if isinstance(statement, st.Update) else "DELETE")
            read = gets(statement.relation)
            kept = read if reads_target else read - {statement.table.id}
            _check_reads(snapshot, rules, role, kept)
        case st.Truncate():
            for table in statement.tables:
                check_rights(rules, role, table, "TRUNCATE")
        case st.Copy():
            _check_copy(snapshot, rules, role, statement)
        case st.AlterSystem() if not role.superuser:
            what = "perform ALTER SYSTEM RESET ALL" if statement.name is None else f'set parameter "{statement.name}"'
            raise make_error("42501", f"permission denied to {what}")
        case st.CreateTableAs() | st.CreateMaterializedView():
            _check_reads(snapshot, rules, role, gets(statement.relation))
        case _:
            return


def _check_insert(
    snapshot: CatalogSnapshot, rules: AccessRules, role: Role, statement: st.Insert, *, reads_target: bool
) -> None:
    check_rights(rules, role, statement.table, "INSERT")
    conflict = statement.on_conflict
    if conflict is not None and conflict.assignments is not None:
        check_rights(rules, role, statement.table, "UPDATE")
    if statement.returning is not None or (conflict is not None and reads_target):
        check_rights(rules, role, statement.table, "SELECT")
    _check_reads(snapshot, rules, role, gets(statement.relation))


def _check_copy(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, statement: st.Copy) -> None:
    if statement.filename is not None and not role.superuser:
        raise make_error(
            "42501",
            f"must be superuser to COPY {'to' if statement.table is None else 'from'} a file",
            hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
        )
    if statement.subscribe is not None:
        authorize(snapshot, rules, role, statement.subscribe, reads_target=True)
    elif statement.query is not None:
        _check_reads(snapshot, rules, role, gets(statement.query.relation))
    elif statement.table is not None:
        check_rights(rules, role, statement.table, "INSERT")


def _check_reads(snapshot: CatalogSnapshot, rules: AccessRules, role: Role, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for id in sorted(ids):
        item = snapshot.item(id)
        if item is not None:
            check_rights(rules, role, item, "SELECT")
            _check_inside(snapshot, rules, item, seen)


def _check_inside(snapshot: CatalogSnapshot, rules: AccessRules, view: CatalogItem, seen: set[str]) -> None:
    """What a view reads is its owner's to read; a materialized view was, when it was made.

    ``seen``: views that were looked into.
    """
    if view.kind is not ItemKind.VIEW or view.id in seen:
        return
    seen.add(view.id)
    owner = rules.named(rules.owner(view.id))
    for id in sorted(view.depends_on):
        item = snapshot.item(id)
        if item is None:
            continue
        if item.schema in SYSTEM_SCHEMAS:
            check_rights(rules, owner, item)
            continue
        if not rules.allows(owner, item.id, "SELECT"):
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
