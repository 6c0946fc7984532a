"""FROM: tables, subqueries, functions, VALUES and joins to a bound node and the names that it brings into scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Coalesce, Column, Expr, Literal
from eddyline.plan.relation import Get, JoinKind
from eddyline.repr.types import BIGINT, SqlType
from eddyline.sql.algebra import UNIT, CteRef, FlatMap, Join, Leaf, Map, Node, Working, WorkingRef
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of, name_list, unwrap, words
from eddyline.sql.binding import Context, CteEntry
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.comparison import conjuncts
from eddyline.sql.conversion import unify
from eddyline.sql.expressions import bind, bind_boolean
from eddyline.sql.named_objects import no_such_relation
from eddyline.sql.resolution import bind_operator
from eddyline.sql.scope import Entry, Scope, ScopeColumn, add_entries
from eddyline.sql.set_returning import bind_table_function, is_set_returning

__all__ = ["FromItem", "bind_from", "table_item"]

#: functions whose rows the catalog has as a relation of their name
_SYSTEM_ROWS: Final = frozenset(["pg_get_keywords"])
_KINDS: Final = {
    "JOIN_INNER": JoinKind.INNER,
    "JOIN_LEFT": JoinKind.LEFT,
    "JOIN_RIGHT": JoinKind.RIGHT,
    "JOIN_FULL": JoinKind.FULL,
}


@dataclass(slots=True)
class FromItem:
    """A bound FROM item: ``entries`` answer qualified names, ``visible`` unqualified ones and ``*``."""

    node: Node
    entries: list[Entry]
    visible: list[ScopeColumn]


def bind_from(items: Sequence[AstNode], context: Context) -> tuple[Node, Scope]:
    """The FROM list of ``context``'s block; without items one row of no columns."""
    scope = Scope(outer=context.scope, owner=context.block)
    node: Node = UNIT
    for number, item in enumerate(items):
        bound = _bind_item(item, context, scope)
        add_entries(scope, bound.entries)
        scope.visible.extend(bound.visible)
        node = bound.node if number == 0 else Join(JoinKind.INNER, node, bound.node, ())
    return node, scope


def _bind_item(item: AstNode, context: Context, left: Scope) -> FromItem:
    """``left`` holds what stands to the left: visible to LATERAL items, hidden from others."""
    kind = kind_of(item)
    inner = unwrap(item)
    match kind:
        case "range_var":
            return _range_var(inner, context)
        case "range_subselect":
            return _range_subselect(inner, context, left)
        case "range_function":
            return _range_function(inner, context, left)
        case "join_expr":
            return _join(inner, context, left)
    raise unsupported(words(kind), position=context.binding.locate(getattr(inner, "location", -1)))


def _not_lateral(context: Context, left: Scope) -> Scope:
    return Scope(outer=context.scope, owner=context.block, hidden=[*left.entries, *left.hidden])


def _range_var(node: AstNode, context: Context) -> FromItem:
    position = context.at(node)
    expect_fields(node, ("schemaname", "relname", "inh", "relpersistence", "alias", "location"), position)
    if not node.schemaname and node.relname in context.ctes:
        return _cte_reference(node, context, context.ctes[node.relname])
    item = table_item(node, context)
    ids = tuple(
        context.binding.new_owned(c.type, context.block, f"{node.alias.aliasname or item.name}.{c.name}")
        for c in item.columns
    )
    context.binding.reads.mention(item.id, ids)
    columns = tuple(ScopeColumn(c.name, i, c.type) for c, i in zip(item.columns, ids, strict=True))
    key = tuple(ids[k] for k in item.primary_key)
    if node.HasField("alias"):
        entry = Entry(node.alias.aliasname, _aliased(columns, node.alias), None, key, item.name)
        _relabel(entry, context)
    else:
        entry = Entry(item.name, columns, item.schema, key)
    return FromItem(Leaf(Get(item.id, item.types), ids), [entry], list(entry.columns))


def table_item(node: AstNode, context: Context) -> CatalogItem:
    """The table or view that a RangeVar names; 42P01 without one, 42809 for an index."""
    position = context.at(node)
    item = context.binding.catalog.resolve(node.schemaname or None, node.relname)
    if item is None:
        missing = no_such_relation(node, position)
        if not node.schemaname and node.relname in context.later:
            missing.detail = (
                f'There is a WITH item named "{node.relname}", but it cannot be referenced from this part of the query.'
            )
            missing.hint = "Use WITH RECURSIVE, or re-order the WITH items to remove forward references."
        raise missing
    if item.kind is ItemKind.INDEX:
        raise make_error("42809", f'"{item.name}" is an index', position=position)
    return item


def _cte_reference(node: AstNode, context: Context, entry: CteEntry) -> FromItem:
    types = [context.binding.ids.types[i] for i in entry.cte.ids]
    alias = node.alias.aliasname or node.relname
    ids = tuple(
        context.binding.new_owned(t, context.block, f"{alias}.{n}") for t, n in zip(types, entry.names, strict=True)
    )
    columns = tuple(ScopeColumn(n, i, t) for n, i, t in zip(entry.names, ids, types, strict=True))
    if node.HasField("alias"):
        columns = _aliased(columns, node.alias)
    found: Node
    if isinstance(entry.cte, Working):
        context.block.round_of = entry.cte.name
        found = WorkingRef(entry.cte, ids)
    else:
        found = CteRef(entry.cte, ids)
    return FromItem(found, [Entry(alias, columns)], list(columns))


def _aliased(columns: tuple[ScopeColumn, ...], alias: AstNode) -> tuple[ScopeColumn, ...]:
    """``columns`` under the names of the alias's column list; 42P10 if it is too long."""
    names = name_list(alias.colnames)
    if len(names) > len(columns):
        raise make_error(
            "42P10",
            f'table "{alias.aliasname}" has {len(columns)} columns available but {len(names)} columns specified',
        )
    renamed = tuple(replace(c, name=n) for c, n in zip(columns, names, strict=False))
    return (*renamed, *columns[len(names) :])


def _relabel(entry: Entry, context: Context) -> None:
    for column in entry.columns:
        context.binding.ids.labels[column.id] = f"{entry.alias}.{column.name}"


def _range_subselect(node: AstNode, context: Context, left: Scope) -> FromItem:
    expect_fields(node, ("lateral", "subquery", "alias"))
    scope = left if node.lateral else _not_lateral(context, left)
    result = context.binding.subselect(node.subquery, context.within(scope))
    found, numbers = _told_apart(result.node, result.ids, scope, context)
    columns = tuple(
        ScopeColumn(name, context.binding.own(number, context.block), context.binding.ids.types[number])
        for name, number in zip(result.names, numbers, strict=True)
    )
    return FromItem(found, *_entry_of(columns, node, context))


def _told_apart(node: Node, ids: Sequence[int], scope: Scope, context: Context) -> tuple[Node, list[int]]:
    """``ids``, but new ones for a column that is shown twice, or is one of an outer query's.

    They have the same values and are columns of their own to GROUP BY: a grouping set that has one nulls the other.
    """
    made = context.binding.ids
    known = {column.id for each in scope.chain() for entry in each.entries for column in entry.columns}
    numbers: list[int] = []
    copies: list[tuple[int, Expr]] = []
    for number in ids:
        if number in known:
            copies.append((made.new(made.types[number]), made.column(number)))
            numbers.append(copies[-1][0])
        else:
            known.add(number)
            numbers.append(number)
    return (Map(node, tuple(copies)) if copies else node), numbers


def _entry_of(
    columns: tuple[ScopeColumn, ...], node: AstNode, context: Context
) -> tuple[list[Entry], list[ScopeColumn]]:
    if not node.HasField("alias"):
        return [Entry(None, columns)], list(columns)
    entry = Entry(node.alias.aliasname, _aliased(columns, node.alias))
    _relabel(entry, context)
    return [entry], list(entry.columns)


def _range_function(node: AstNode, context: Context, left: Scope) -> FromItem:
    expect_fields(node, ("lateral", "ordinality", "functions", "alias"))
    relation = _system_rows(node)
    if relation is not None:
        return _range_var(relation, context)
    if len(node.functions) > 1:
        raise unsupported("ROWS FROM with several functions", hint="Use unnest of several arrays.")
    call = node.functions[0].list.items[0]
    inside = context.within(left)
    forbids, context.block.forbids = context.block.forbids, "functions in FROM"
    try:
        bound, numbers, name = _table_function(call, inside, ordinality=node.ordinality)
    finally:
        context.block.forbids = forbids
    for number in numbers:
        context.binding.own(number, context.block)
    # A function of one column gives it the table alias for a name, unless columns are listed.
    values = numbers[:-1] if node.ordinality else numbers
    names = [node.alias.aliasname or name if len(values) == 1 else name] * len(values)
    types = context.binding.ids.types
    columns = tuple(
        ScopeColumn(n, number, types[number])
        for n, number in zip((*names, *(("ordinality",) if node.ordinality else ())), numbers, strict=True)
    )
    if not node.HasField("alias"):
        entry = Entry(name, columns)
        _relabel(entry, context)
        return FromItem(bound, [entry], list(columns))
    return FromItem(bound, *_entry_of(columns, node, context))


def _system_rows(node: AstNode) -> AstNode | None:
    """The relation that a call without arguments gives the rows of; None for others."""
    call = node.functions[0].list.items[0]
    if kind_of(call) != "func_call" or call.func_call.args or node.ordinality:
        return None
    name = name_list(call.func_call.funcname)[-1]
    if name not in _SYSTEM_ROWS:
        return None
    relation = pb.RangeVar(schemaname="pg_catalog", relname=name, inh=True, relpersistence="p", location=-1)
    if node.HasField("alias"):
        relation.alias.CopyFrom(node.alias)
    return relation


def _table_function(call: AstNode, context: Context, *, ordinality: bool) -> tuple[Node, tuple[int, ...], str]:
    """The node, its columns (their number the last one with ``ordinality``), and the function's name."""
    ids = context.binding.ids
    if not is_set_returning(call):
        value = bind(call, context)
        number = ids.new(value.type)
        computed = [(number, value)]
        if ordinality:
            computed.append((ids.new(BIGINT), Literal(1, BIGINT)))
        name = name_list(call.func_call.funcname)[-1] if kind_of(call) == "func_call" else kind_of(call)
        return Map(UNIT, tuple(computed)), tuple(n for n, _ in computed), name
    function = bind_table_function(call.func_call, context)
    if ordinality and function.func != "unnest":
        raise unsupported(f"{function.name} WITH ORDINALITY", position=context.at(call.func_call))
    numbers = tuple(ids.new(t, function.name) for t in function.types)
    made = (*numbers, ids.new(BIGINT, "ordinality")) if function.func == "unnest" else numbers
    node = FlatMap(UNIT, function.func, function.args, made, tuple(ids.types[n] for n in made))
    return node, made if ordinality else numbers, function.name


def _join(node: AstNode, context: Context, left: Scope) -> FromItem:
    expect_fields(node, ("jointype", "is_natural", "larg", "rarg", "using_clause", "quals", "alias"))
    kind = _KINDS.get(enum_name(node, "jointype"))
    if kind is None:
        raise unsupported(enum_name(node, "jointype"))
    first = _bind_item(node.larg, context, left)
    second = _bind_item(node.rarg, context, _right_scope(first, kind, left))
    scope = Scope(outer=context.scope, owner=context.block, hidden=[*left.entries, *left.hidden])
    add_entries(scope, first.entries)
    add_entries(scope, second.entries)
    scope.visible = [*first.visible, *second.visible]
    names = name_list(node.using_clause)
    if node.is_natural:
        theirs = {c.name for c in second.visible}
        names = tuple(dict.fromkeys(c.name for c in first.visible if c.name in theirs))
    if names:
        result = _using(kind, first, second, names=names, scope=scope, context=context)
    else:
        result = FromItem(Join(kind, first.node, second.node, ()), scope.entries, scope.visible)
    if node.HasField("quals"):
        forbids, context.block.forbids = context.block.forbids, "JOIN conditions"
        try:
            on = bind_boolean(node.quals, context.within(scope), "JOIN/ON")
        finally:
            context.block.forbids = forbids
        result.node = Join(kind, first.node, second.node, conjuncts(on))
    if node.HasField("alias"):
        entry = Entry(node.alias.aliasname, _aliased(tuple(result.visible), node.alias))
        return FromItem(result.node, [entry], list(entry.columns))
    return result


def _right_scope(first: FromItem, kind: JoinKind, left: Scope) -> Scope:
    """What LATERAL items on a join's right side may see: its left side too, unless rows of the right survive alone."""
    scope = Scope(list(left.entries), list(left.visible), left.outer, left.owner, list(left.hidden))
    if kind in (JoinKind.INNER, JoinKind.LEFT):
        scope.entries.extend(first.entries)
        scope.visible.extend(first.visible)
    else:
        scope.hidden.extend(first.entries)
    return scope


def _using(
    kind: JoinKind, first: FromItem, second: FromItem, *, names: Sequence[str], scope: Scope, context: Context
) -> FromItem:
    """JOIN … USING: equality on the named columns, each shown once, first."""
    on: list[Expr] = []
    merged: list[ScopeColumn] = []
    computed: list[tuple[int, Expr]] = []
    if len(set(names)) != len(names):
        repeated = next(n for n in names if list(names).count(n) > 1)
        raise make_error("42701", f'column name "{repeated}" appears more than once in USING clause')
    for name in names:
        a, b = _using_column(first, name, "left"), _using_column(second, name, "right")
        ids = context.binding.ids
        left, right = ids.column(a.id), ids.column(b.id)
        context.binding.reads.read(a.id)
        context.binding.reads.read(b.id)
        pair, common = unify([left, right], "JOIN/USING", context.binding.parameters)
        on.append(bind_operator("=", (left, right), context.binding.parameters, None))
        value = _merged_value(kind, pair, common)
        if isinstance(value, Column):
            merged.append(ScopeColumn(name, value.index, value.type))
            continue
        number = context.binding.new_owned(common, context.block, name)
        computed.append((number, value))
        merged.append(ScopeColumn(name, number, common))
    node: Node = Join(kind, first.node, second.node, tuple(on))
    if computed:
        node = Map(node, tuple(computed))
    shown = set(names)
    rest = [c for c in (*first.visible, *second.visible) if c.name not in shown]
    return FromItem(node, scope.entries, [*merged, *rest])


def _merged_value(kind: JoinKind, pair: Sequence[Expr], common: SqlType) -> Expr:
    match kind:
        case JoinKind.RIGHT:
            return pair[1]
        case JoinKind.FULL:
            return Coalesce(tuple(pair), common)
    # Prefer the side that needs no cast; for an inner join they are equal.
    uncast = kind is JoinKind.INNER and isinstance(pair[1], Column) and not isinstance(pair[0], Column)
    return pair[1] if uncast else pair[0]


def _using_column(item: FromItem, name: str, side: str) -> ScopeColumn:
    found = [c for c in item.visible if c.name == name]
    if not found:
        raise make_error("42703", f'column "{name}" specified in USING clause does not exist in {side} table')
    if len(found) > 1:
        raise make_error("42702", f'common column name "{name}" appears more than once in {side} table')
    return found[0]
