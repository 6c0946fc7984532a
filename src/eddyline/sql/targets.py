"""SELECT lists, and the clauses whose items may refer to them: GROUP BY, ORDER BY, DISTINCT ON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Call, Cast, Expr
from eddyline.repr.types import BIGINT, TEXT, Kind, SqlType
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of, name_list, string_of, unwrap
from eddyline.sql.binding import Context, RowValue
from eddyline.sql.comparison import mentions
from eddyline.sql.conversion import coerce, is_unknown
from eddyline.sql.expressions import bind, bind_value, cast_to, position_of
from eddyline.sql.functions import PAIRS
from eddyline.sql.grouping import cross_product
from eddyline.sql.ordering import sort_flags
from eddyline.sql.scope import ScopeColumn, find_entry, missing_entry, star_columns
from eddyline.sql.set_returning import bind_table_function, is_set_returning

__all__ = ["SortItem", "Target", "bind_targets", "group_sets", "match_distinct_on", "output_name", "sort_items"]

MAX_COLUMNS = 1664


@dataclass(slots=True)
class Target:
    """One output column."""

    name: str
    expr: Expr
    position: int | None = None


@dataclass(frozen=True, slots=True)
class SortItem:
    expr: Expr
    desc: bool
    nulls_first: bool
    position: int | None


def bind_targets(nodes: Iterable[AstNode], context: Context) -> list[Target]:
    """The SELECT list (or RETURNING), stars expanded; 54011 past 1,664 columns."""
    targets: list[Target] = []
    for node in nodes:
        target = node.res_target
        expect_fields(target, ("name", "val", "location"), context.at(target))
        star = _star(target.val, context)
        if star is not None:
            for column in star:
                context.binding.reads.read(column.id)
                owner = context.binding.owners.get(column.id)
                if owner is not None:
                    owner.mentions.setdefault(column.id, context.at(target))
            targets.extend(Target(c.name, context.binding.ids.column(c.id), context.at(target)) for c in star)
            continue
        series = _series(target.val, context)
        expr = series if series is not None else bind(target.val, context)
        name = target.name or output_name(target.val) or "?column?"
        targets.append(Target(name, expr, position_of(target.val, context)))
    if len(targets) > MAX_COLUMNS:
        raise make_error("54011", f"target lists can have at most {MAX_COLUMNS} entries")
    return targets


def _series(node: AstNode, context: Context) -> Expr | None:
    """A set-returning function as a whole item of the SELECT list, maybe cast: the rows multiply."""
    if kind_of(node) == "type_cast":
        inner = _series(node.type_cast.arg, context)
        return None if inner is None else cast_to(inner, node.type_cast, context)
    field = _field_of(node)
    if field is not None:
        return _pair(node.a_indirection.arg.func_call, context)[field]
    if not is_set_returning(node):
        return None
    if name_list(node.func_call.funcname) == PAIRS:
        return _paired(_pair(node.func_call, context), context)
    block, position = context.block, context.at(node.func_call)
    if block.forbids is not None:
        raise unsupported("a set-returning function in this place", position=position)
    function = bind_table_function(node.func_call, context)
    if len(function.types) > 1:
        raise unsupported("unnest of several arrays outside FROM", position=position)
    kinds = {function.func, *(func for func, _ in block.series.values())}
    if block.series and kinds != {"unnest"}:
        raise unsupported(
            "generate_series beside another set-returning function", position=position, hint="Call it in FROM."
        )
    number = context.binding.ids.new(function.types[0], function.name)
    block.series[number] = (function.func, function.args)
    return context.binding.ids.column(number)


def _field_of(node: AstNode) -> int | None:
    """Of ``(_pg_expandarray(a)).x`` 0, of ``.n`` 1; None for others."""
    if kind_of(node) != "a_indirection" or not is_set_returning(node.a_indirection.arg):
        return None
    inner = node.a_indirection
    if name_list(inner.arg.func_call.funcname) != PAIRS or len(inner.indirection) != 1:
        return None
    names = {"x": 0, "n": 1}
    return names.get(string_of(inner.indirection[0])) if kind_of(inner.indirection[0]) == "string" else None


def _pair(call: AstNode, context: Context) -> tuple[Expr, Expr]:
    """The two columns of a call of ``_pg_expandarray``."""
    block, ids = context.block, context.binding.ids
    if block.forbids is not None or any(func != "unnest" for func, _ in block.series.values()):
        raise unsupported("a set-returning function in this place", position=context.at(call))
    function = bind_table_function(call, context)
    columns = [ids.new(t, function.name) for t in function.types]
    for number, argument in zip(columns, function.args, strict=True):
        block.series[number] = ("unnest", (argument,))
    return ids.column(columns[0]), ids.column(columns[1])


def _paired(columns: tuple[Expr, Expr], context: Context) -> Expr:
    """Both as one column, an array of the two."""
    ids = context.binding.ids
    number = ids.new(SqlType(Kind.BIGINT_ARRAY), "_pg_expandarray")
    wide = tuple(Cast(c, BIGINT, False) for c in columns)
    context.block.pairs[number] = Call("make_array", wide, SqlType(Kind.BIGINT_ARRAY))
    context.binding.pairs.add(number)
    return ids.column(number)


def _star(node: AstNode, context: Context) -> Sequence[ScopeColumn] | None:
    if kind_of(node) != "column_ref" or kind_of(node.column_ref.fields[-1]) != "a_star":
        return None
    position = context.at(node.column_ref)
    names = [string_of(f) for f in node.column_ref.fields[:-1]]
    if not names:
        columns = star_columns(context.scope)
        if not context.scope.entries:
            raise make_error("42601", "SELECT * with no tables specified is not valid", position=position)
        return columns
    if len(names) > 2:
        raise unsupported("a reference to another database", position=position)
    entry = find_entry(context.scope, names[0] if len(names) == 2 else None, names[-1])
    if entry is None:
        raise missing_entry(context.scope, names[-1], position)
    return entry.columns


def output_name(node: AstNode) -> str | None:
    """The name that PostgreSQL gives an unnamed output, None where it has none ("?column?")."""
    return _name_and_strength(node)[0]


def _name_and_strength(node: AstNode) -> tuple[str | None, int]:
    """2: a real name; 1: a type's name, which a CASE's ELSE may lend."""
    inner = unwrap(node)
    match kind_of(node):
        case "column_ref":
            names = [string_of(f) for f in inner.fields if kind_of(f) == "string"]
            return (names[-1], 2) if names else (None, 0)
        case "func_call":
            return name_list(inner.funcname)[-1], 2
        case "a_expr" if enum_name(inner, "kind") == "AEXPR_NULLIF":
            return "nullif", 2
        case "type_cast":
            name, strength = _name_and_strength(inner.arg)
            return (name, strength) if strength > 1 else (name_list(inner.type_name.names)[-1], 1)
        case "collate_clause":
            return _name_and_strength(inner.arg)
        case "grouping_func":
            return "grouping", 2
        case "sub_link":
            return _sublink_name(inner)
        case "case_expr":
            name, strength = _name_and_strength(inner.defresult) if inner.HasField("defresult") else (None, 0)
            return (name, strength) if strength > 1 else ("case", 1)
        case "coalesce_expr":
            return "coalesce", 2
        case "a_array_expr":
            return "array", 2
        case "a_indirection":
            return _name_and_strength(inner.arg)
        case "min_max_expr":
            return enum_name(inner, "op").removeprefix("IS_").lower(), 2
        case "row_expr":
            return "row", 2
        case "sqlvalue_function":
            return enum_name(inner, "op").removeprefix("SVFOP_").removesuffix("_N").lower(), 2
    return None, 0


def _sublink_name(node: AstNode) -> tuple[str | None, int]:
    match enum_name(node, "sub_link_type"):
        case "EXISTS_SUBLINK":
            return "exists", 2
        case "ARRAY_SUBLINK":
            return "array", 2
        case "EXPR_SUBLINK":
            select = node.subselect.select_stmt
            while select.HasField("larg"):
                select = select.larg
            if select.target_list:
                first = select.target_list[0].res_target
                return first.name or output_name(first.val), 2
    return None, 0


def sort_items(nodes: Iterable[AstNode], targets: list[Target], context: Context, clause: str) -> list[SortItem]:
    """ORDER BY (SortBy nodes) or DISTINCT ON (expressions): output names, then positions, then expressions."""
    items: list[SortItem] = []
    for node in nodes:
        desc, nulls_first = False, False
        inner = node
        if kind_of(node) == "sort_by":
            desc, nulls_first = sort_flags(node.sort_by, context.binding.locate)
            inner = node.sort_by.node
        position = position_of(inner, context)
        expr = _by_name(inner, targets, clause, position)
        if expr is None:
            expr = _by_position(inner, targets, clause, position)
        if expr is None:
            expr = _matching(bind(inner, context), targets)
        if is_unknown(expr):
            expr = coerce(expr, TEXT, context.binding.parameters)
        items.append(SortItem(expr, desc, nulls_first, position))
    return items


def _matching(expr: Expr, targets: list[Target]) -> Expr:
    return next((t.expr for t in targets if t.expr == expr), expr)


def _by_name(node: AstNode, targets: list[Target], clause: str, position: int | None) -> Expr | None:
    if kind_of(node) != "column_ref" or len(node.column_ref.fields) != 1:
        return None
    field = node.column_ref.fields[0]
    if kind_of(field) != "string":
        return None
    found = [t.expr for t in targets if t.name == string_of(field)]
    if any(e != found[0] for e in found[1:]):
        raise make_error("42702", f'{clause} "{string_of(field)}" is ambiguous', position=position)
    return found[0] if found else None


def _by_position(node: AstNode, targets: list[Target], clause: str, position: int | None) -> Expr | None:
    if kind_of(node) != "a_const":
        return None
    if node.a_const.isnull or node.a_const.WhichOneof("val") != "ival":
        raise make_error("42601", f"non-integer constant in {clause}", position=position)
    number = int(node.a_const.ival.ival)
    if not 1 <= number <= len(targets):
        raise make_error("42P10", f"{clause} position {number} is not in select list", position=position)
    return targets[number - 1].expr


def group_sets(nodes: Iterable[AstNode], targets: list[Target], context: Context) -> list[tuple[Expr, ...]]:
    """The grouping sets that a GROUP BY list stands for; empty without one."""
    items = [_group_item(n, targets, context) for n in nodes]
    return cross_product(items, None) if items else []


def _group_item(node: AstNode, targets: list[Target], context: Context) -> list[tuple[Expr, ...]]:
    if kind_of(node) != "grouping_set":
        return [_group_exprs(node, targets, context)]
    inner = node.grouping_set
    match enum_name(inner, "kind"):
        case "GROUPING_SET_EMPTY":
            return [()]
        case "GROUPING_SET_SIMPLE":
            return [tuple(e for n in inner.content for e in _group_exprs(n, targets, context))]
        case "GROUPING_SET_ROLLUP":
            parts = [_group_exprs(n, targets, context) for n in inner.content]
            return [tuple(e for p in parts[:size] for e in p) for size in range(len(parts), -1, -1)]
        case "GROUPING_SET_CUBE":
            if len(inner.content) > 12:
                raise make_error("54011", "CUBE is limited to 12 elements", position=context.at(inner))
            parts = [_group_exprs(n, targets, context) for n in inner.content]
            masks = range(2 ** len(parts) - 1, -1, -1)
            return [
                tuple(e for i, p in enumerate(parts) if mask >> (len(parts) - 1 - i) & 1 for e in p) for mask in masks
            ]
        case "GROUPING_SET_SETS":
            return [s for n in inner.content for s in _group_item(n, targets, context)]
    raise unsupported(enum_name(inner, "kind"), position=context.at(inner))


def _group_exprs(node: AstNode, targets: list[Target], context: Context) -> tuple[Expr, ...]:
    """One GROUP BY expression, or several in parentheses.  An input column's name goes before an output's."""
    if kind_of(node) == "row_expr":
        return tuple(e for n in node.row_expr.args for e in _group_exprs(n, targets, context))
    position = position_of(node, context)
    expr = None
    if kind_of(node) == "column_ref" and len(node.column_ref.fields) == 1:
        name = string_of(node.column_ref.fields[0]) if kind_of(node.column_ref.fields[0]) == "string" else ""
        if not any(c.name == name for c in context.scope.visible):
            expr = _by_name(node, targets, "GROUP BY", position)
    if expr is None:
        expr = _by_position(node, targets, "GROUP BY", position)
    if expr is None:
        bound = bind_value(node, context)
        if isinstance(bound, RowValue):
            return bound.items
        expr = bound
    if any(number in context.block.aggregates for number in mentions(expr)):
        raise make_error("42803", "aggregate functions are not allowed in GROUP BY", position=position)
    if mentions(expr) & context.block.series.keys():
        raise unsupported("GROUP BY a set-returning function", position=position)
    return (coerce(expr, TEXT, context.binding.parameters) if is_unknown(expr) else expr,)


def match_distinct_on(distinct_on: list[SortItem], order: list[SortItem]) -> None:
    """42P10 unless the first ORDER BY items are the DISTINCT ON expressions, in any order."""
    missing = {item.expr: item for item in distinct_on}
    known = set(missing)
    for item in order:
        if not missing:
            return
        if item.expr not in known:
            raise make_error(
                "42P10",
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=next(iter(missing.values())).position,
            )
        missing.pop(item.expr, None)
