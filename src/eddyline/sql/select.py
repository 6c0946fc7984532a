"""Binding of SELECT, VALUES, set operations and WITH to the bound algebra.

A bound query keeps its output *expressions* apart from its node until it is finished, because a literal of unknown
type takes its type from what the query is used for (a UNION's other arm, the column of an INSERT, text otherwise).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Column, Expr, Literal
from eddyline.plan.late import is_volatile, volatile_refused
from eddyline.repr.types import BIGINT, TEXT, SqlType
from eddyline.sql.algebra import UNIT, Cte, Distinct, Filter, FlatMap, FreeIds, Map, Node, Rows, TopK, With, outputs
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of
from eddyline.sql.binding import Block, Context, Window
from eddyline.sql.comparison import conjuncts, mentions
from eddyline.sql.conversion import coerce, exactly, is_unknown, unify
from eddyline.sql.ctes import bind_ctes
from eddyline.sql.expressions import assign, bind, bind_boolean, limit_value, position_of
from eddyline.sql.from_clause import bind_from
from eddyline.sql.grouping import Grouping
from eddyline.sql.scope import Scope, ScopeColumn
from eddyline.sql.set_operations import Arm, bind_chain, check_order
from eddyline.sql.targets import (
    SortItem,
    Target,
    bind_targets,
    group_sets,
    match_distinct_on,
    sort_items,
)
from eddyline.sql.windows import with_windows

__all__ = ["Finished", "Query", "TargetColumn", "bind_select", "bind_with", "finish"]

_SELECT_FIELDS = (
    "target_list",
    "from_clause",
    "where_clause",
    "group_clause",
    "having_clause",
    "sort_clause",
    "limit_offset",
    "limit_count",
    "limit_option",
    "with_clause",
    "distinct_clause",
    "op",
)


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column that an output is stored in: values are coerced to ``type`` by assignment; ``default`` is what the
    keyword DEFAULT stands for in VALUES."""

    name: str
    type: SqlType
    default: Expr | None = None


@dataclass(slots=True)
class Query:
    """``targets`` over ``node``'s columns, the order and bounds still to be applied.

    ``single_row``: exactly one row per evaluation, whatever the data.
    """

    node: Node
    targets: list[Target]
    context: Context
    order: list[SortItem] = field(default_factory=list)
    limit: Expr | None = None
    offset: Expr | None = None
    single_row: bool = False
    ctes: tuple[Cte, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """A query as a node: ``ids`` are its columns; ``order`` is what remains to be applied to the rows."""

    node: Node
    ids: tuple[int, ...]
    names: tuple[str, ...]
    order: tuple[tuple[int, bool, bool], ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    single_row: bool = False
    ctes: tuple[Cte, ...] = ()

    def bounded(self, *, ordered: bool = False) -> Finished:
        """With LIMIT and OFFSET made part of the node, as a query inside another one needs; a mere order is dropped,
        unless it is asked for."""
        node = self.node
        order = self.order if ordered else ()
        if self.limit is not None or self.offset is not None:
            keep = tuple(dict.fromkeys((*self.ids, *(number for number, _, _ in order))))
            node = TopK(node, (), self.order, self.limit, self.offset, keep)
        if self.ctes:
            node = With(self.ctes, node)
        bounded = self.limit is not None or self.offset is not None
        return Finished(node, self.ids, self.names, order, single_row=self.single_row and not bounded)


def bind_subselect(node: AstNode, context: Context, *, ordered: bool = False) -> Finished:
    """A nested SELECT as a node; the hook that expressions call.  ``ordered``: with the order of its rows."""
    if kind_of(node) not in ("select_stmt", "SelectStmt"):
        raise unsupported(f"{kind_of(node).removesuffix('_stmt').upper()} inside a query")
    select = node.select_stmt if kind_of(node) == "select_stmt" else node
    return finish(bind_select(select, context)).bounded(ordered=ordered)


def bind_select(stmt: AstNode, context: Context, targets: Sequence[TargetColumn | None] = ()) -> Query:
    """A SelectStmt within ``context``, whose scope is the enclosing one.

    ``targets``: where the outputs are stored; lets VALUES take its columns' types from there.
    """
    ctes: tuple[Cte, ...] = ()
    if stmt.HasField("with_clause"):
        context, ctes = bind_with(stmt.with_clause, context)
    if enum_name(stmt, "op") in ("SETOP_NONE", ""):
        query = _bind_values(stmt, context, targets) if stmt.values_lists else _bind_block(stmt, context)
    else:
        query = _bind_set_operation(stmt, context)
    query.ctes = ctes
    return query


def bind_with(clause: AstNode, context: Context) -> tuple[Context, tuple[Cte, ...]]:
    """See ``bind_ctes``."""
    return bind_ctes(clause, context, _bind_arm)


def _bind_arm(arm: AstNode, context: Context) -> Arm:
    """One side of a set operation."""
    query = bind_select(arm, context)
    if not (query.order or query.limit or query.offset or query.ctes):
        return Arm(query.node, query.targets)
    bounded = finish(query).bounded()
    columns = [context.binding.ids.column(i) for i in bounded.ids]
    targets = [Target(t.name, c, t.position) for t, c in zip(query.targets, columns, strict=True)]
    return Arm(bounded.node, targets)


def _bind_set_operation(stmt: AstNode, outer: Context) -> Query:
    context = _new_block(outer)
    chain = bind_chain(stmt, outer, _bind_arm)
    scope = Scope(outer=outer.scope, owner=context.block)
    scope.visible = [
        ScopeColumn(t.name, t.expr.index, t.expr.type) for t in chain.targets if isinstance(t.expr, Column)
    ]
    query = Query(chain.node, chain.targets, context)
    query.order = sort_items(stmt.sort_clause, chain.targets, context.within(scope), "ORDER BY")
    check_order(query.order, chain.targets)
    _bind_limits(stmt, query, outer)
    return query


def _new_block(context: Context) -> Context:
    return replace(context, block=Block(depth=context.block.depth + 1))


def _clause(context: Context, forbids: str, node: AstNode, word: str) -> Expr:
    """A condition in which aggregates may not stand."""
    context.block.forbids = forbids
    try:
        return bind_boolean(node, context, word)
    finally:
        context.block.forbids = None


def _bind_block(stmt: AstNode, outer: Context) -> Query:
    expect_fields(stmt, _SELECT_FIELDS)
    inner = _new_block(outer)
    block = inner.block
    block.forbids = "FROM clause of their own query level"
    node, scope = bind_from(stmt.from_clause, inner)
    block.forbids = None
    context = inner.within(scope)
    targets = bind_targets(stmt.target_list, context)
    if stmt.HasField("where_clause"):
        node = Filter(node, conjuncts(_clause(context, "WHERE", stmt.where_clause, "WHERE")))
    having = bind_boolean(stmt.having_clause, context, "HAVING") if stmt.HasField("having_clause") else None
    order = sort_items(stmt.sort_clause, targets, context, "ORDER BY")
    block.forbids = "GROUP BY"
    sets = group_sets(stmt.group_clause, targets, context)
    block.forbids = None
    distinct_on = _distinct_on(stmt, targets, context)
    grouped = bool(stmt.group_clause) or bool(block.aggregates) or having is not None or bool(block.groupings)
    if block.aggregates and block.round_of is not None:
        raise make_error(
            "42P19",
            "aggregate functions are not allowed in a recursive query's recursive term",
            position=block.aggregate_at,
        )
    if grouped:
        grouping = Grouping(context.binding, block, scope, sets or [()])
        for target in targets:
            target.expr = grouping.lift(target.expr)
        order = [replace(o, expr=grouping.lift(o.expr)) for o in order]
        distinct_on = [replace(o, expr=grouping.lift(o.expr)) for o in distinct_on]
        lifted = grouping.lift(having) if having is not None else None
        node = grouping.build(node)
        if lifted is not None:
            node = Filter(node, conjuncts(lifted))
        block.series = {n: (f, tuple(map(grouping.lift, args))) for n, (f, args) in block.series.items()}
        block.windows = {n: _lifted(w, grouping) for n, w in block.windows.items()}
    if block.windows:
        later = [t.expr for t in targets] + [o.expr for o in (*order, *distinct_on)]
        later += [arg for _, args in block.series.values() for arg in args]
        node = with_windows(node, block, context.binding.ids, later)
    node = _with_series(node, context)
    query = Query(node, targets, context, order)
    global_row = grouped and not stmt.group_clause and having is None
    query.single_row = not block.series and (global_row or (not grouped and node is UNIT))
    if stmt.distinct_clause:
        _apply_distinct(query, distinct_on, context)
    _bind_limits(stmt, query, outer)
    return query


def _lifted(window: Window, grouping: Grouping) -> Window:
    return Window(
        tuple(map(grouping.lift, window.partition)), tuple((grouping.lift(e), d, n) for e, d, n in window.order)
    )


def _with_series(node: Node, context: Context) -> Node:
    """The set-returning functions of the SELECT list, arrays side by side."""
    series, ids = context.block.series, context.binding.ids
    arrays = [n for n, (func, _) in series.items() if func == "unnest"]
    for number, (func, args) in series.items():
        if func != "unnest":
            node = FlatMap(node, func, args, (number,), (ids.types[number],))
    if arrays:
        numbers = (*arrays, ids.new(BIGINT, "ordinality"))
        args = tuple(series[n][1][0] for n in arrays)
        node = FlatMap(node, "unnest", args, numbers, tuple(ids.types[n] for n in numbers))
    return Map(node, tuple(context.block.pairs.items())) if context.block.pairs else node


def _distinct_on(stmt: AstNode, targets: list[Target], context: Context) -> list[SortItem]:
    """The expressions of DISTINCT ON; none for a plain DISTINCT."""
    items = [n for n in stmt.distinct_clause if kind_of(n)]
    return sort_items(items, targets, context, "DISTINCT ON")


def _materialise(query: Query) -> list[int]:
    """Makes columns of the targets; returns their ids."""
    ids = query.context.binding.ids
    computed: list[tuple[int, Expr]] = []
    columns: list[int] = []
    known: dict[Expr, int] = {}
    available = outputs(query.node)  # an outer query's column is not one of ours until it is mapped
    for target in query.targets:
        expr = target.expr
        if is_unknown(expr):
            expr = coerce(expr, TEXT, query.context.binding.parameters)
        if isinstance(expr, Column) and expr.index in available:
            number = expr.index
        elif expr in known and not is_volatile(expr):
            number = known[expr]
        else:
            number = ids.new(expr.type, target.name)
            computed.append((number, expr))
            known.setdefault(expr, number)
        columns.append(number)
    if computed:
        query.node = Map(query.node, tuple(computed))
    replaced = {t.expr: ids.column(n) for t, n in zip(query.targets, columns, strict=True)}
    query.order = [replace(o, expr=replaced.get(o.expr, o.expr)) for o in query.order]
    for target, number in zip(query.targets, columns, strict=True):
        target.expr = ids.column(number)
    return columns


def _apply_distinct(query: Query, distinct_on: list[SortItem], context: Context) -> None:
    plain = not distinct_on
    if not plain:
        match_distinct_on(distinct_on, query.order)
    targets_before = {t.expr: i for i, t in enumerate(query.targets)}
    columns = _materialise(query)
    ids = context.binding.ids
    if plain:
        shown = set(columns)
        for item in query.order:
            if not (isinstance(item.expr, Column) and item.expr.index in shown):
                raise make_error(
                    "42P10",
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    position=item.position,
                )
        query.node = Distinct(query.node, tuple(dict.fromkeys(columns)))
        return
    available = outputs(query.node)
    on_ids: list[int] = []
    computed: list[tuple[int, Expr]] = []
    for expr in (item.expr for item in distinct_on):
        if expr in targets_before:
            on_ids.append(columns[targets_before[expr]])
        elif isinstance(expr, Column) and expr.index in available:
            on_ids.append(expr.index)
        else:
            on_ids.append(ids.new(expr.type))
            computed.append((on_ids[-1], expr))
            query.order = [replace(o, expr=ids.column(on_ids[-1])) if o.expr == expr else o for o in query.order]
    if computed:
        query.node = Map(query.node, tuple(computed))
    order = _order_columns(query)
    keep = tuple(dict.fromkeys((*columns, *on_ids, *(o[0] for o in order))))
    one = Literal(1, BIGINT)
    query.node = TopK(query.node, tuple(dict.fromkeys(on_ids)), order, one, None, keep)


def _order_columns(query: Query) -> tuple[tuple[int, bool, bool], ...]:
    """The sort keys as columns, those that are not yet one being computed."""
    ids = query.context.binding.ids
    available = outputs(query.node)
    computed: dict[Expr, int] = {}
    keys: list[tuple[int, bool, bool]] = []
    for number, item in enumerate(query.order):
        expr = item.expr
        if isinstance(expr, Literal):
            continue  # the same for all rows
        if isinstance(expr, Column) and expr.index in available:
            column = expr.index
        else:
            column = computed.setdefault(expr, ids.new(expr.type))
            query.order[number] = replace(item, expr=ids.column(column))
        if all(k[0] != column for k in keys):
            keys.append((column, item.desc, item.nulls_first))
    if computed:
        query.node = Map(query.node, tuple((n, e) for e, n in computed.items()))
    return tuple(keys)


def _bind_limits(stmt: AstNode, query: Query, outer: Context) -> None:
    if enum_name(stmt, "limit_option") == "LIMIT_OPTION_WITH_TIES":
        raise unsupported("FETCH FIRST … WITH TIES")
    block = Block(outer.block.depth + 1)
    context = replace(outer, scope=query.context.scope, block=block)
    for name, clause in (("limit_count", "LIMIT"), ("limit_offset", "OFFSET")):
        if not stmt.HasField(name):
            continue
        context.block.forbids = clause
        node = getattr(stmt, name)
        if name == "limit_count" and kind_of(node) == "a_const" and node.a_const.isnull:
            continue
        value = limit_value(node, context, clause)
        position = position_of(node, context)
        for number in FreeIds(context.binding.ids).of_exprs(() if value is None else (value,)):
            if context.binding.owners.get(number) is query.context.block:
                position = query.context.block.mentions.get(number, position)
                raise make_error("42P10", f"argument of {clause} must not contain variables", position=position)
        if value is not None and mentions(value):
            raise unsupported(f"a subquery or an outer column in {clause}", position=position)
        if value is not None and is_volatile(value):
            raise volatile_refused(str(context.binding.volatile), clause)
        if isinstance(value, Literal) and isinstance(value.value, int) and value.value < 0:
            state = "2201W" if clause == "LIMIT" else "2201X"
            raise make_error(state, f"{clause} must not be negative")
        if clause == "LIMIT":
            query.limit = value
        else:
            query.offset = value


def _bind_values(stmt: AstNode, outer: Context, targets: Sequence[TargetColumn | None]) -> Query:
    expect_fields(
        stmt, ("values_lists", "sort_clause", "limit_offset", "limit_count", "limit_option", "with_clause", "op")
    )
    context = _new_block(outer)
    context.block.forbids = "VALUES"
    rows: list[list[Expr]] = []
    places: list[list[int | None]] = []
    for entry in stmt.values_lists:
        items = entry.list.items
        if rows and len(items) != len(rows[0]):
            raise make_error(
                "42601",
                "VALUES lists must all be the same length",
                position=position_of(items[0], context) if items else None,
            )
        rows.append([_value(n, i, targets, context) for i, n in enumerate(items)])
        places.append([position_of(n, context) for n in items])
    width = len(rows[0])
    columns = [
        unify([row[i] for row in rows], "VALUES", context.binding.parameters, [p[i] for p in places])
        for i in range(width)
    ]
    types = tuple(t for _, t in columns)
    ids = tuple(context.binding.new_owned(t, context.block, f"column{i + 1}") for i, t in enumerate(types))
    node = Rows(tuple(zip(*(values for values, _ in columns), strict=True)), ids, types)
    names = [f"column{i + 1}" for i in range(width)]
    result = [Target(n, context.binding.ids.column(i)) for n, i in zip(names, ids, strict=True)]
    query = Query(node, result, context)
    query.order = sort_items(stmt.sort_clause, result, context, "ORDER BY")
    _bind_limits(stmt, query, outer)
    return query


def _value(node: AstNode, number: int, targets: Sequence[TargetColumn | None], context: Context) -> Expr:
    target = targets[number] if number < len(targets) else None
    if kind_of(node) == "set_to_default" and target is not None:
        return exactly(target.default, target.type) if target.default is not None else Literal(None, target.type)
    value = bind(node, context)
    if target is None:
        return value
    return exactly(assign(value, target.type, target.name, context, position_of(node, context)), target.type)


def finish(query: Query, targets: Sequence[TargetColumn | None] = ()) -> Finished:
    """The query with its outputs as columns.  ``targets``: assignment coercion of the outputs (42804)."""
    for target, column in zip(query.targets, targets, strict=False):
        if column is not None:
            stored = assign(target.expr, column.type, column.name, query.context, target.position)
            target.expr = exactly(stored, column.type)
    columns = _materialise(query)
    order = _order_columns(query)
    return Finished(
        query.node,
        tuple(columns),
        tuple(t.name for t in query.targets),
        order,
        query.limit,
        query.offset,
        query.single_row,
        query.ctes,
    )
