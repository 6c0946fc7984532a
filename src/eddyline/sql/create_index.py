"""CREATE INDEX and CREATE DEFAULT INDEX: key expressions over the columns of what is indexed."""

from __future__ import annotations

from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Column, Expr
from eddyline.sql.ast import AstNode, expect_fields, kind_of, name_list, unwrap
from eddyline.sql.bind_clusters import cluster_of
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.extensions import DefaultIndexSyntax
from eddyline.sql.named_objects import existing_relation
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import CreateIndex, Statement

__all__ = ["bind_create_index", "bind_default_index"]

#: an index finds rows by key; PostgreSQL's methods that do the same are accepted
_METHODS: Final = ("btree", "hash")
_OTHER_METHODS: Final = ("brin", "gin", "gist", "spgist")


def bind_create_index(binding: StatementBinding) -> Statement:
    """ASC, DESC and NULLS FIRST are accepted and mean nothing: an index has no order that a query could see."""
    node = binding.parsed.node
    binding.refuse_parameters()
    _refuse_clauses(node)
    on = _indexable(node.relation, binding)
    elements = [unwrap(e) for e in node.index_params]
    keys = tuple(_key(e, on, binding) for e in elements)
    stem = "_".join([on.name, *map(_key_label, elements)])
    cluster = cluster_of(binding.parsed, binding.catalog)
    return CreateIndex(on, keys, node.idxname or None, stem, node.if_not_exists, cluster)


def bind_default_index(binding: StatementBinding) -> Statement:
    """An index by the primary key, or by all columns without one."""
    syntax: DefaultIndexSyntax = binding.parsed.node
    on = _indexable(syntax.relation, binding)
    positions = on.primary_key or tuple(range(len(on.columns)))
    keys = tuple(Column(i, on.columns[i].type) for i in positions)
    cluster = cluster_of(binding.parsed, binding.catalog, syntax.cluster)
    return CreateIndex(on, keys, syntax.name, f"{on.name}_primary", cluster=cluster)


def _refuse_clauses(node: AstNode) -> None:
    if node.unique:
        raise unsupported("CREATE UNIQUE INDEX", hint="Declare a PRIMARY KEY instead.")
    if node.HasField("where_clause"):
        raise unsupported("a partial index")
    if node.index_including_params:
        raise unsupported("INCLUDE", hint="An index holds all columns anyway.")
    if node.access_method in _OTHER_METHODS:
        raise unsupported(f"index access method {node.access_method}")
    if node.access_method not in _METHODS:
        raise make_error("42704", f'access method "{node.access_method}" does not exist')
    expect_fields(node, ("idxname", "relation", "access_method", "index_params", "concurrent", "if_not_exists"))


def _indexable(range_var: AstNode, binding: StatementBinding) -> CatalogItem:
    item = existing_relation(range_var, binding.catalog, binding.locate)
    if item.kind is ItemKind.INDEX:
        raise make_error("42809", f'"{item.name}" is an index', position=binding.locate(range_var.location))
    return item


def _key(element: AstNode, on: CatalogItem, binding: StatementBinding) -> Expr:
    if element.collation and name_list(element.collation)[-1] not in ("C", "POSIX", "default"):
        raise unsupported("a collation other than C")
    if element.opclass or element.opclassopts:
        raise unsupported("an operator class")
    expect_fields(element, ("name", "expr", "collation", "ordering", "nulls_ordering"))
    if not element.name:
        return binding.over_item(element.expr, on, "index expressions")
    for position, column in enumerate(on.columns):
        if column.name == element.name:
            return Column(position, column.type)
    raise make_error("42703", f'column "{element.name}" does not exist')


def _key_label(element: AstNode) -> str:
    """What PostgreSQL puts into the index's name for the key."""
    if element.name:
        return str(element.name)
    if kind_of(element.expr) == "func_call":
        return name_list(element.expr.func_call.funcname)[-1]
    return "expr"
