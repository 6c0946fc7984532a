"""The rows of an INSERT: what is given, cast to the table's columns, and the defaults of what is not.

Rows that take values of a sequence take them in the order in which they are written: those of VALUES from the first to
the last, those of a SELECT by its ORDER BY.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from postgast import find_nodes
from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error
from eddyline.expr.ir import VOLATILE, Case, Column, Expr, SortKey
from eddyline.plan.late import Late, Split, is_volatile, split, volatile_refused, whole
from eddyline.plan.relation import Constant, Relation, TopK
from eddyline.repr.types import BOOLEAN
from eddyline.sql.ast import AstNode, enum_name, kind_of, name_list, unwrap
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.expressions import position_of
from eddyline.sql.literal_rows import literal_rows
from eddyline.sql.query import BoundQuery
from eddyline.sql.select import TargetColumn
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.written_table import check_not_generated, column_position, default_of

__all__ = ["inserted_rows"]


@dataclass(slots=True)
class _Given:
    """The columns of what is inserted: ``positions`` in the table, in order.

    ``flags``: of a position, the column that says in which rows DEFAULT stands instead.
    """

    positions: list[int]
    flags: dict[int, int] = field(default_factory=dict)


def inserted_rows(
    node: AstNode, table: CatalogItem, binding: StatementBinding
) -> tuple[Relation, Late | None, tuple[int, ...]]:
    """Every column of the table in order; with what is computed of the rows once they are read, if anything is, and the
    positions of the columns that are given.

    42601, 42701, 42703 for columns that do not fit, 428C9 for a value of one that is GENERATED ALWAYS.
    """
    if not node.HasField("select_stmt"):
        return (*_complete(whole(Constant(((),), ())), _Given([]), table), ())
    positions = _target_positions(node, table, binding)
    select = node.select_stmt.select_stmt
    if select.values_lists:
        given = positions[: len(select.values_lists[0].list.items)]
        return (*_values(node, select, positions, table, binding), given)
    targets = [TargetColumn(c.name, c.type, c.default) for c in (table.columns[p] for p in positions)]
    query = binding.query(node.select_stmt, targets, _with_clause(node), place=None)
    width = len(query.types)
    _check_width(width, positions, node, _output_position(select, len(positions), binding), binding)
    return (*_selected(query, _chosen(node, positions[:width], table), table), positions[:width])


def _with_clause(node: AstNode) -> AstNode | None:
    return node.with_clause if node.HasField("with_clause") else None


def _check_width(
    width: int, positions: Sequence[int], node: AstNode, extra: int | None, binding: StatementBinding
) -> None:
    """``extra``: where the first expression too many is."""
    if width > len(positions):
        raise make_error("42601", "INSERT has more expressions than target columns", position=extra)
    if node.cols and width < len(positions):
        position = binding.locate(unwrap(node.cols[width]).location)
        raise make_error("42601", "INSERT has more target columns than expressions", position=position)


def _target_positions(node: AstNode, table: CatalogItem, binding: StatementBinding) -> tuple[int, ...]:
    if not node.cols:
        return tuple(range(len(table.columns)))
    positions: list[int] = []
    for target in map(unwrap, node.cols):
        location = binding.locate(target.location)
        position = column_position(table, target, location)
        if position in positions:
            raise make_error("42701", f'column "{target.name}" specified more than once', position=location)
        positions.append(position)
    return tuple(positions)


def _output_position(select: AstNode, index: int, binding: StatementBinding) -> int | None:
    """Where output ``index`` of a plain SELECT is written; None where stars or set operations hide it."""
    if index >= len(select.target_list):
        return None
    return position_of(select.target_list[index].res_target.val, binding.context())


# --- OVERRIDING ----------------------------------------------------------------------------------------------------


def _ignored(node: AstNode, position: int, table: CatalogItem) -> bool:
    """Whether OVERRIDING USER VALUE has the column take its default, whatever is given."""
    return enum_name(node, "override") == "OVERRIDING_USER_VALUE" and bool(table.columns[position].identity)


def _check_given(node: AstNode, position: int, table: CatalogItem) -> None:
    column = table.columns[position]
    if enum_name(node, "override") != "OVERRIDING_SYSTEM_VALUE":
        check_not_generated(column, f'cannot insert a non-DEFAULT value into column "{column.name}"')


def _chosen(node: AstNode, positions: Sequence[int], table: CatalogItem) -> list[int | None]:
    """The positions that the columns of a SELECT are stored in; None for those that are ignored."""
    chosen: list[int | None] = []
    for position in positions:
        if _ignored(node, position, table):
            chosen.append(None)
        else:
            _check_given(node, position, table)
            chosen.append(position)
    return chosen


# --- SELECT --------------------------------------------------------------------------------------------------------


def _selected(query: BoundQuery, chosen: list[int | None], table: CatalogItem) -> tuple[Relation, Late | None]:
    positions = [p for p in chosen if p is not None]
    kept = [index for index, p in enumerate(chosen) if p is not None]
    missing = set(range(len(table.columns))).difference(positions)
    if not query.volatile and not any(is_volatile(default_of(table, p)) for p in missing):
        return _complete(_only(whole(query.as_relation()), kept), _Given(positions), table)
    parts = split(query.relation)
    order = parts.ordered(query.order)
    if query.limit is not None or query.offset is not None:
        if order is None:
            raise volatile_refused("ORDER BY of such a function", "an INSERT … SELECT with LIMIT")
        parts = replace(parts, base=TopK(parts.base, (), order, query.limit, query.offset))
    return _complete(_only(parts, kept), _Given(positions), table, order or ())


def _only(parts: Split, columns: Sequence[int]) -> Split:
    return replace(parts, columns=tuple(parts.columns[column] for column in columns))


def _complete(
    parts: Split, given: _Given, table: CatalogItem, order: tuple[SortKey, ...] = ()
) -> tuple[Relation, Late | None]:
    """The columns of ``parts`` in their places, the others from their defaults."""
    places = {position: index for index, position in enumerate(given.positions)}
    computed: list[Expr] = []
    width = len(parts.columns)
    for position, column in enumerate(table.columns):
        flag = given.flags.get(position)
        if flag is not None:
            default = default_of(table, position)
            value = Column(places[position], column.type)
            computed.append(Case(((Column(flag, BOOLEAN), default),), value, column.type))
        elif position not in places:
            computed.append(default_of(table, position))
        else:
            continue
        places[position] = width + len(computed) - 1
    return parts.mapped(computed).finished([places[p] for p in range(len(table.columns))], order)


# --- VALUES --------------------------------------------------------------------------------------------------------


def _values(
    node: AstNode, select: AstNode, positions: tuple[int, ...], table: CatalogItem, binding: StatementBinding
) -> tuple[Relation, Late | None]:
    width = len(select.values_lists[0].list.items)
    extra = None
    if width > len(positions):
        extra = position_of(select.values_lists[0].list.items[len(positions)], binding.context())
    _check_width(width, positions, node, extra, binding)
    positions = positions[:width]
    ragged = any(len(entry.list.items) != width for entry in select.values_lists)
    given = _Given(list(positions))
    if not ragged and any(_of_sequence(table, p) for p in positions):
        select, given = _without_defaults(node, select, positions, table)
    types = [table.columns[p].type for p in given.positions] + [BOOLEAN] * len(given.flags)
    plain = None
    if binding.catalog.zone is None and _with_clause(node) is None:  # it reads literals as UTC does
        plain = literal_rows(select, types)
    if plain is not None:
        return _complete(whole(plain), given, table)
    targets = [TargetColumn(c.name, c.type, c.default) for c in (table.columns[p] for p in given.positions)]
    takes_turns = len(select.values_lists) > 1 and not ragged and _takes_turns(select, given, table)
    if takes_turns:
        select = _numbered(select)
    query = binding.query(pb.Node(select_stmt=select), targets, _with_clause(node), place=None)
    if query.order or query.limit is not None or query.offset is not None or not takes_turns:
        if given.flags:
            return _complete(split(query.as_relation()), given, table)
        return _selected(query, [*given.positions], table)
    parts = split(query.relation)
    last = len(query.types) - 1
    order = parts.ordered((SortKey(last),))
    return _complete(_only(parts, range(last)), given, table, order or ())


def _of_sequence(table: CatalogItem, position: int) -> bool:
    """Whether the column's default is to be computed for each row by itself, or nothing else may be given."""
    column = table.columns[position]
    return bool(column.identity) or (column.default is not None and is_volatile(column.default))


def _takes_turns(select: AstNode, given: _Given, table: CatalogItem) -> bool:
    """Whether rows take values of a sequence."""
    missing = set(range(len(table.columns))).difference(given.positions)
    if given.flags or any(_of_sequence(table, p) for p in missing):
        return True
    return any(name_list(call.funcname)[-1] in VOLATILE for call in find_nodes(select, pb.FuncCall))


def _without_defaults(
    node: AstNode, select: AstNode, positions: Sequence[int], table: CatalogItem
) -> tuple[AstNode, _Given]:
    """VALUES without the columns in which DEFAULT stands in each row.  Where it stands in some, NULL does instead, and
    a further column says in which.
    """
    rows = [list(entry.list.items) for entry in select.values_lists]
    kept: list[int] = []
    mixed: list[int] = []
    for index, position in enumerate(positions):
        asked = [kind_of(row[index]) == "set_to_default" for row in rows]
        if _ignored(node, position, table):
            continue
        if not all(asked):
            _check_given(node, position, table)
        if not _of_sequence(table, position) or not any(asked):
            kept.append(index)
        elif not all(asked):
            kept.append(index)
            mixed.append(index)
    given = _Given([positions[index] for index in kept])
    given.flags = {positions[index]: len(kept) + number for number, index in enumerate(mixed)}
    changed = pb.SelectStmt()
    changed.CopyFrom(select)
    for entry, row in zip(changed.values_lists, rows, strict=True):
        asked = [kind_of(item) == "set_to_default" for item in row]
        items = [_NULL if index in mixed and asked[index] else row[index] for index in kept]
        items += [_boolean(value=asked[index]) for index in mixed]
        del entry.list.items[:]
        entry.list.items.extend(items)
    return changed, given


_NULL = pb.Node(a_const=pb.A_Const(isnull=True, location=-1))


def _boolean(*, value: bool) -> AstNode:
    return pb.Node(a_const=pb.A_Const(boolval=pb.Boolean(boolval=value), location=-1))


def _numbered(select: AstNode) -> AstNode:
    """VALUES with the rows' numbers as a last column."""
    changed = pb.SelectStmt()
    changed.CopyFrom(select)
    for number, entry in enumerate(changed.values_lists):
        entry.list.items.append(pb.Node(a_const=pb.A_Const(ival=pb.Integer(ival=number), location=-1)))
    return changed
