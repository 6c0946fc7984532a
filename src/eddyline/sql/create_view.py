"""CREATE VIEW and CREATE MATERIALIZED VIEW: the bound query, its column names, and its text as written."""

from __future__ import annotations

from typing import Any, NoReturn

from postgast import pg_query_pb2

from eddyline.errors import make_error, unsupported
from eddyline.plan.recursion import has_recursion
from eddyline.sql.ast import enum_name, expect_fields, name_list
from eddyline.sql.bind_clusters import cluster_of
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.create_table import MAX_COLUMNS, named_columns
from eddyline.sql.grammar import scan_tokens
from eddyline.sql.named_objects import new_name
from eddyline.sql.query import BoundQuery
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import CreateMaterializedView, CreateView, Statement

__all__ = ["bind_create_materialized_view", "bind_create_view"]

_COMMENTS = (pg_query_pb2.SQL_COMMENT, pg_query_pb2.C_COMMENT)


def bind_create_view(binding: StatementBinding) -> Statement:
    """A view is computed wherever it is read: the cluster that IN CLUSTER names has to be there, and that is all."""
    node = binding.parsed.node
    if binding.parsed.cluster is not None:
        cluster_of(binding.parsed, binding.catalog)
    if enum_name(node, "with_check_option") not in ("NO_CHECK_OPTION", ""):
        raise unsupported("WITH CHECK OPTION")
    if node.options:
        raise unsupported("WITH (…) of a view")
    expect_fields(node, ("view", "aliases", "query", "replace", "with_check_option"))
    schema, name = new_name(node.view, binding.catalog, binding.locate)
    query = _definition(binding, "a view")
    given = name_list(node.aliases)
    if len(given) > len(query.names):
        raise make_error("42601", "CREATE VIEW specifies more column names than columns")
    columns = named_columns(query.names, query.types, given)
    _check_width(len(columns))
    text = query_text(binding.parsed.text)
    return CreateView(schema, name, columns, query.as_relation(), text, node.replace, query.reads)


def bind_create_materialized_view(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    into = node.into
    if into.skip_data:
        raise unsupported("WITH NO DATA for a materialized view, which is always fresh,")
    expect_fields(into, ("rel", "col_names", "on_commit", "view_query"))
    schema, name = new_name(into.rel, binding.catalog, binding.locate)
    query = _definition(binding, "a materialized view")
    given = name_list(into.col_names)
    if len(given) > len(query.names):
        raise make_error("42601", "too many column names were specified")
    columns = named_columns(query.names, query.types, given)
    _check_width(len(columns))
    text = query_text(binding.parsed.text)
    cluster = cluster_of(binding.parsed, binding.catalog)
    return CreateMaterializedView(
        schema, name, columns, query.as_relation(), text, node.if_not_exists, cluster, query.reads
    )


class _AnySession:
    """A catalog for what is bound once and read by many: who asks, and with which settings, it does not know."""

    def __init__(self, catalog: CatalogView) -> None:
        self._catalog = catalog

    def __getattr__(self, member: str) -> Any:
        return getattr(self._catalog, member)

    @property
    def users(self) -> NoReturn:
        raise unsupported(
            "the current user or a right of it in a view",
            hint="A view is bound once, for all who read it: say the role, or ask where the view is read.",
        )

    @property
    def process(self) -> NoReturn:
        raise unsupported("pg_backend_pid in a view", hint="A view is bound once, for all who read it.")

    @property
    def settings(self) -> NoReturn:
        raise unsupported(
            "current_setting in a view", hint="A view is bound once, for all who read it: ask where the view is read."
        )


def _definition(binding: StatementBinding, place: str) -> BoundQuery:
    binding.refuse_parameters()
    catalog: Any = _AnySession(binding.catalog)
    query = StatementBinding(binding.parsed, catalog, binding.param_types).query(binding.parsed.node.query, place=place)
    if has_recursion(query.relation):
        raise unsupported("a recursive query in a view")
    return query


def _check_width(columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise make_error("54011", f"target lists can have at most {MAX_COLUMNS} entries")


def query_text(text: str) -> str:
    """What stands after the first AS outside brackets, without a closing WITH [NO] DATA."""
    data = text.encode()
    depth = 0
    start = len(data)
    tokens = [t for t in scan_tokens(text) if t.token not in _COMMENTS]
    for index, token in enumerate(tokens):
        depth += (token.token == ord("(")) - (token.token == ord(")"))
        if depth == 0 and token.token == pg_query_pb2.AS:
            start = tokens[index + 1].start
            break
    words = [data[t.start : t.end].upper() for t in tokens[-2:]]
    end = tokens[-1].end
    if words == [b"WITH", b"DATA"]:
        end = tokens[-3].end
    return data[start:end].decode()
