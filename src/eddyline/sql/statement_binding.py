"""What the binders of single statements share: the statement, the catalog, the parameters, and ways to bind parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import postgast
from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Column, Expr
from eddyline.plan.late import volatile_refused
from eddyline.plan.relation import Map, Project, Relation
from eddyline.repr.types import Kind, SqlType
from eddyline.sql.ast import AstNode, kind_of, unwrap
from eddyline.sql.binding import Binding, Block, Context
from eddyline.sql.catalog_view import CatalogItem, CatalogView
from eddyline.sql.column_reads import ColumnReads, StatementReads
from eddyline.sql.conversion import Parameters, can_coerce, coerce, exactly
from eddyline.sql.decorrelate import positional
from eddyline.sql.expressions import bind, position_of
from eddyline.sql.grammar_threads import called
from eddyline.sql.parse import ParsedStatement
from eddyline.sql.query import BoundQuery, RowSource, bind_expression, bind_query
from eddyline.sql.scope import Scope
from eddyline.sql.select import TargetColumn, bind_subselect

__all__ = ["StatementBinding", "deparse_expression", "item_columns"]


_DEFAULTS: Final = "DEFAULT expressions"


class StatementBinding:
    """One statement while it is bound.  ``param_types`` is filled in as contexts decide types.

    ``reads``: the columns that it names, as they are met.
    """

    def __init__(self, parsed: ParsedStatement, catalog: CatalogView, param_types: dict[int, SqlType]) -> None:
        self.parsed = parsed
        self.catalog = catalog
        self.param_types = param_types
        self.parameters = Parameters(param_types, catalog.zone)
        self.locate = parsed.locator()
        self.reads = StatementReads()

    def for_inner(self, parsed: ParsedStatement) -> StatementBinding:
        """For a statement inside this one (EXPLAIN)."""
        return StatementBinding(parsed, self.catalog, self.param_types)

    def position_of(self, node: AstNode) -> int | None:
        return position_of(node, self.context())

    def context(self, forbids: str | None = None) -> Context:
        """A place for expressions outside any query; aggregates there are refused as "not allowed in {forbids}"."""
        reads = ColumnReads(self.reads)
        binding = Binding(self.catalog, self.parameters, self.locate, bind_subselect, reads=reads)
        return Context(binding, Scope(), Block(depth=0, forbids=forbids), {})

    def query(
        self,
        node: AstNode,
        targets: Sequence[TargetColumn | None] = (),
        ctes: AstNode | None = None,
        place: str | None = "this place",
    ) -> BoundQuery:
        """A SelectStmt, or the Node around one.  ``place``: see ``bind_query``."""
        if kind_of(node) not in ("select_stmt", "SelectStmt"):
            raise unsupported(f"{kind_of(node).removesuffix('_stmt').replace('_', ' ').upper()} inside a statement")
        return bind_query(
            unwrap(node),
            self.catalog,
            self.param_types,
            locate=self.locate,
            targets=targets,
            ctes=ctes,
            place=place,
            reads=self.reads,
        )

    def constant(self, node: AstNode, place: str) -> Expr:
        """An expression without columns, subqueries and aggregates; what has no type yet stays UNKNOWN."""
        _refuse_column_references(node, place, self)
        context = self.context(place)
        value = bind(node, context)
        if context.binding.volatile is not None and place != _DEFAULTS:
            raise volatile_refused(context.binding.volatile, place)
        return positional(value, {}, context.binding.ids, place)

    def coerce(self, value: Expr, target: SqlType, position: int | None) -> Expr:
        return coerce(value, target, self.parameters, position=position)

    def default(self, node: AstNode, target: SqlType, column: str) -> Expr:
        """A DEFAULT expression as stored in ``column``; 42804 when no assignment cast leads there."""
        value = self.constant(node, _DEFAULTS)
        position = self.position_of(node)
        if not can_coerce(value.type, target, assignment=True):
            raise make_error(
                "42804",
                f'column "{column}" is of type {target.kind.value} '
                f"but default expression is of type {value.type.kind.value}",
                position=position,
                hint="You will need to rewrite or cast the expression.",
            )
        return exactly(self.coerce(value, target, position), target)

    def over_item(self, node: AstNode, item: CatalogItem, place: str) -> Expr:
        """An expression over the columns of ``item``, positional; no subqueries, no aggregates."""
        _refuse_subqueries(node, place.removesuffix("s"), self)
        source = RowSource(item.name, item_columns(item), schema=item.schema)
        return self.over((source,), node, place)

    def over(self, sources: Sequence[RowSource], node: AstNode, place: str, target: TargetColumn | None = None) -> Expr:
        return bind_expression(
            node,
            self.catalog,
            self.param_types,
            sources=sources,
            locate=self.locate,
            target=target,
            forbids=place,
            reads=self.reads,
        )

    def condition(self, sources: Sequence[RowSource], node: AstNode, clause: str) -> Expr:
        """A boolean expression over ``sources``; 42804 for another type."""
        value = self.over(sources, node, clause)
        position = self.position_of(node)
        if value.type.kind is not Kind.BOOLEAN:
            raise make_error(
                "42804",
                f"argument of {clause} must be type boolean, not type {value.type.kind.value}",
                position=position,
            )
        return value

    def cast_columns(self, relation: Relation, types: tuple[SqlType, ...]) -> Relation:
        """``relation`` with column *i* as ``types[i]``, by assignment casts that exist."""
        if relation.types == types:
            return relation
        sources = [Column(i, t) for i, t in enumerate(relation.types)]
        exprs = tuple(
            exactly(self.coerce(source, target, None), target) for source, target in zip(sources, types, strict=True)
        )
        width = len(sources)
        return Project(Map(relation, exprs), tuple(range(width, 2 * width)))

    def refuse_parameters(self) -> None:
        """Definitions cannot hold parameters: 42P02 at the first one."""
        for found in postgast.find_nodes(self.parsed.node, pb.ParamRef):
            raise make_error("42P02", f"there is no parameter ${found.number}", position=self.locate(found.location))


def item_columns(item: CatalogItem) -> tuple[tuple[str, SqlType], ...]:
    return tuple((c.name, c.type) for c in item.columns)


def deparse_expression(node: AstNode) -> str:
    """An expression as SQL text."""
    target = pb.Node(res_target=pb.ResTarget(val=node))
    select = pb.SelectStmt(target_list=[target], limit_option=pb.LIMIT_OPTION_DEFAULT, op=pb.SETOP_NONE)
    tree = pb.ParseResult(stmts=[pb.RawStmt(stmt=pb.Node(select_stmt=select))])
    return str(called(postgast.deparse, tree)).removeprefix("SELECT ")


def _refuse_column_references(node: AstNode, place: str, binding: StatementBinding) -> None:
    """PostgreSQL's messages for the first column or subquery in an expression that may have neither."""
    shown = place.removesuffix("s")
    for found in postgast.find_nodes(node, pb.ColumnRef):
        raise make_error("0A000", f"cannot use column reference in {shown}", position=binding.locate(found.location))
    _refuse_subqueries(node, shown, binding)


def _refuse_subqueries(node: AstNode, shown: str, binding: StatementBinding) -> None:
    for found in postgast.find_nodes(node, pb.SubLink):
        raise make_error("0A000", f"cannot use subquery in {shown}", position=binding.locate(found.location))
