"""Parsed statement → bound ``Statement``: the dispatch over statement kinds.

What PostgreSQL has and we don't is refused by its name (0A000).  Every error that a binder raises is typed; running
out of Python's stack is 54001.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from eddyline.errors import NotSupportedError, exhausted, unsupported
from eddyline.repr.types import SqlType
from eddyline.sql.ast import enum_name
from eddyline.sql.bind_clusters import (
    bind_alter_cluster,
    bind_alter_replica,
    bind_cluster_names,
    bind_cluster_owner,
    bind_create_cluster,
    bind_create_replica,
)
from eddyline.sql.bind_delete import bind_delete
from eddyline.sql.bind_insert import bind_insert
from eddyline.sql.bind_roles import (
    bind_alter_database_settings,
    bind_alter_default_privileges,
    bind_alter_owner,
    bind_alter_role,
    bind_alter_role_settings,
    bind_alter_schema_owner,
    bind_create_role,
    bind_drop_owned,
    bind_drop_role,
    bind_grant,
    bind_grant_role,
    bind_reassign_owned,
    bind_rename_role,
)
from eddyline.sql.bind_sequences import bind_alter_sequence, bind_create_sequence
from eddyline.sql.bind_update import bind_update
from eddyline.sql.catalog_view import CatalogView, ItemKind
from eddyline.sql.copy import bind_copy, bind_copy_subscribe
from eddyline.sql.create_index import bind_create_index, bind_default_index
from eddyline.sql.create_table import bind_create_table, bind_create_table_as
from eddyline.sql.create_view import bind_create_materialized_view, bind_create_view
from eddyline.sql.cursors import (
    bind_close_cursor,
    bind_declare,
    bind_declare_subscribe,
    bind_fetch,
    bind_fetch_extension,
)
from eddyline.sql.drop import bind_create_schema, bind_drop, bind_rename, bind_truncate
from eddyline.sql.explain import bind_explain, bind_explain_extension, bind_explain_object
from eddyline.sql.extensions import ShowCreateSyntax, ShowObjectsSyntax
from eddyline.sql.instead import say_instead
from eddyline.sql.parse import ParsedStatement
from eddyline.sql.reading import bind_as_of, bind_select, bind_subscribe
from eddyline.sql.session_statements import (
    bind_alter_system,
    bind_deallocate,
    bind_discard,
    bind_execute,
    bind_prepare,
    bind_set,
    bind_show,
    bind_transaction,
    bind_unlisten,
)
from eddyline.sql.show_create import bind_show_create
from eddyline.sql.show_objects import BARE_LISTINGS, bind_show_objects
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Statement

__all__ = ["bind_statement"]

Binder = Callable[[StatementBinding], Statement]


def bind_statement(
    parsed: ParsedStatement, catalog: CatalogView, param_types: dict[int, SqlType] | None = None
) -> Statement:
    """The statement with every name resolved against ``catalog`` and every expression typed.

    ``param_types``: types of ``$n`` known beforehand; those found by inference are added.  42P18 for a parameter
    whose type nothing decides.
    """
    binding = StatementBinding(parsed, catalog, param_types if param_types is not None else {})
    try:
        statement = _dispatch(binding)
    except RecursionError as error:
        raise exhausted(error) from error
    except NotSupportedError as refusal:
        say_instead(refusal)
        raise
    binding.parameters.check_all_decided()
    return statement


def _dispatch(binding: StatementBinding) -> Statement:
    binder = _BINDERS.get(binding.parsed.kind)
    if binder is None:
        raise unsupported(_words(binding), hint=_INSTEAD.get(binding.parsed.kind))
    return binder(binding)


def _create_table_as(binding: StatementBinding) -> Statement:
    if enum_name(binding.parsed.node, "objtype") == "OBJECT_MATVIEW":
        return bind_create_materialized_view(binding)
    return bind_create_table_as(binding)


def _show(binding: StatementBinding) -> Statement:
    name = str(binding.parsed.node.name).lower()
    if name in BARE_LISTINGS:
        return bind_show_objects(ShowObjectsSyntax(name), binding.catalog, binding.locate)
    return bind_show(binding)


def _alter_table(binding: StatementBinding) -> Statement:
    owner = bind_alter_owner(binding)
    if owner is None:
        raise unsupported(_words(binding), hint=_INSTEAD["alter_table_stmt"])
    return owner


def _rename(binding: StatementBinding) -> Statement:
    if enum_name(binding.parsed.node, "rename_type") == "OBJECT_ROLE":
        return bind_rename_role(binding)
    return bind_rename(binding)


def _show_create(binding: StatementBinding) -> Statement:
    syntax: ShowCreateSyntax = binding.parsed.node
    return bind_show_create(ItemKind(syntax.kind), syntax.relation, binding.catalog, binding.locate)


def _show_objects(binding: StatementBinding) -> Statement:
    return bind_show_objects(binding.parsed.node, binding.catalog, binding.locate)


def _explain(binding: StatementBinding) -> Statement:
    return bind_explain(binding, _dispatch)


def _explain_extension(binding: StatementBinding) -> Statement:
    return bind_explain_extension(binding, _dispatch)


def _declare(binding: StatementBinding) -> Statement:
    return bind_declare(binding, _dispatch)


def _declare_subscribe(binding: StatementBinding) -> Statement:
    return bind_declare_subscribe(binding, _dispatch)


def _copy_subscribe(binding: StatementBinding) -> Statement:
    return bind_copy_subscribe(binding, _dispatch)


_BINDERS: Final[dict[str, Binder]] = {
    "AlterClusterSyntax": bind_alter_cluster,
    "AlterReplicaSyntax": bind_alter_replica,
    "AsOfSyntax": bind_as_of,
    "ClusterOwnerSyntax": bind_cluster_owner,
    "CopySubscribeSyntax": _copy_subscribe,
    "CreateClusterSyntax": bind_create_cluster,
    "CreateReplicaSyntax": bind_create_replica,
    "DeclareSubscribeSyntax": _declare_subscribe,
    "DefaultIndexSyntax": bind_default_index,
    "DropCluster": bind_cluster_names,
    "DropReplica": bind_cluster_names,
    "ExplainObjectSyntax": bind_explain_object,
    "ExplainSyntax": _explain_extension,
    "FetchSyntax": bind_fetch_extension,
    "RenameCluster": bind_cluster_names,
    "RenameReplica": bind_cluster_names,
    "ShowCreateSyntax": _show_create,
    "ShowObjectsSyntax": _show_objects,
    "ShowReplica": bind_cluster_names,
    "SubscribeSyntax": bind_subscribe,
    "close_portal_stmt": bind_close_cursor,
    "copy_stmt": bind_copy,
    "create_schema_stmt": bind_create_schema,
    "alter_seq_stmt": bind_alter_sequence,
    "create_seq_stmt": bind_create_sequence,
    "create_stmt": bind_create_table,
    "create_table_as_stmt": _create_table_as,
    "deallocate_stmt": bind_deallocate,
    "declare_cursor_stmt": _declare,
    "delete_stmt": bind_delete,
    "discard_stmt": bind_discard,
    "unlisten_stmt": bind_unlisten,
    "drop_stmt": bind_drop,
    "execute_stmt": bind_execute,
    "explain_stmt": _explain,
    "fetch_stmt": bind_fetch,
    "index_stmt": bind_create_index,
    "insert_stmt": bind_insert,
    "prepare_stmt": bind_prepare,
    "rename_stmt": _rename,
    "alter_owner_stmt": bind_alter_schema_owner,
    "alter_database_set_stmt": bind_alter_database_settings,
    "alter_default_privileges_stmt": bind_alter_default_privileges,
    "alter_role_set_stmt": bind_alter_role_settings,
    "alter_role_stmt": bind_alter_role,
    "alter_table_stmt": _alter_table,
    "create_role_stmt": bind_create_role,
    "drop_owned_stmt": bind_drop_owned,
    "drop_role_stmt": bind_drop_role,
    "grant_role_stmt": bind_grant_role,
    "grant_stmt": bind_grant,
    "reassign_owned_stmt": bind_reassign_owned,
    "select_stmt": bind_select,
    "transaction_stmt": bind_transaction,
    "truncate_stmt": bind_truncate,
    "update_stmt": bind_update,
    "alter_system_stmt": bind_alter_system,
    "variable_set_stmt": bind_set,
    "variable_show_stmt": _show,
    "view_stmt": bind_create_view,
}

#: what to do instead of a statement that is not there
_INSTEAD: Final = {
    "alter_table_stmt": "Create another table, and INSERT … SELECT into it.",
    "refresh_mat_view_stmt": "A materialized view is always fresh.",
    "vacuum_stmt": "Nothing needs it.",
}
_NAMES: Final = {
    "alter_table_stmt": "ALTER TABLE",
    "alter_object_schema_stmt": "ALTER … SET SCHEMA",
    "call_stmt": "CALL",
    "check_point_stmt": "CHECKPOINT",
    "comment_stmt": "COMMENT",
    "constraints_set_stmt": "SET CONSTRAINTS",
    "create_enum_stmt": "CREATE TYPE … AS ENUM",
    "composite_type_stmt": "CREATE TYPE",
    "create_trig_stmt": "CREATE TRIGGER",
    "create_plang_stmt": "CREATE LANGUAGE",
    "createdb_stmt": "CREATE DATABASE",
    "define_stmt": "CREATE of such an object",
    "dropdb_stmt": "DROP DATABASE",
    "do_stmt": "DO",
    "lock_stmt": "LOCK TABLE",
    "merge_stmt": "MERGE",
    "refresh_mat_view_stmt": "REFRESH MATERIALIZED VIEW",
    "rule_stmt": "CREATE RULE",
    "vacuum_stmt": "VACUUM",
}


def _words(binding: StatementBinding) -> str:
    """The SQL words of a statement that no binder takes."""
    kind, node = binding.parsed.kind, binding.parsed.node
    if kind == "alter_table_stmt" and node.cmds:
        action = enum_name(node.cmds[0].alter_table_cmd, "subtype").removeprefix("AT_")
        return f"ALTER … {re.sub('(?<!^)(?=[A-Z])', ' ', action).upper()}"
    if kind == "vacuum_stmt" and not node.is_vacuumcmd:
        return "ANALYZE"
    return statement_name(kind)


def statement_name(kind: str) -> str:
    """The SQL words for an AST node kind."""
    return _NAMES.get(kind) or kind.removesuffix("_stmt").replace("_", " ").upper()
