"""``row_number() OVER (…)``: rows of a partition gathered in arrays, in order, and unnested with their number.

All columns that are still needed go into arrays of one order, which all of them end, so that it has no ties but of
equal rows.  Other window functions are 0A000.
"""

from __future__ import annotations

from collections.abc import Iterable

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import AggregateCall, Expr, Literal
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT, Kind, SqlType, array_type
from eddyline.sql.algebra import FlatMap, FreeIds, Ids, Node, Reduce, outputs
from eddyline.sql.ast import AstNode, expect_fields
from eddyline.sql.binding import Block, Context, Window
from eddyline.sql.conversion import bare_name, coerce, is_unknown
from eddyline.sql.functions import Bind
from eddyline.sql.ordering import sort_flags

__all__ = ["bind_row_number", "with_windows"]

#: values of these show differently though they are equal, which an array does not keep
_SHOWN: tuple[Kind, ...] = (Kind.REAL, Kind.DOUBLE)


def bind_row_number(node: AstNode, name: str, context: Context, bind: Bind) -> Expr:
    """The column of a window function's call, entered into its block; 42P20 where none may stand."""
    position, block = context.at(node), context.block
    if block.inside_aggregate:
        raise make_error("42803", "aggregate function calls cannot contain window function calls", position=position)
    if block.forbids is not None:
        raise make_error("42P20", f"window functions are not allowed in {block.forbids}", position=position)
    if name != "row_number" or node.args:
        raise unsupported("OVER with a function other than row_number()", position=position)
    over = node.over
    expect_fields(over, ("partition_clause", "order_clause", "frame_options", "location"), position)

    def known(item: AstNode) -> Expr:
        value = bind(item, context)
        return coerce(value, TEXT, context.binding.parameters) if is_unknown(value) else value

    partition = tuple(known(n) for n in over.partition_clause)
    order = tuple((known(n.sort_by.node), *sort_flags(n.sort_by, context.binding.locate)) for n in over.order_clause)
    number = context.binding.ids.new(BIGINT, name)
    block.windows[number] = Window(partition, order)
    return context.binding.ids.column(number)


def with_windows(node: Node, block: Block, ids: Ids, above: Iterable[Expr]) -> Node:
    """``node`` with the block's row numbers.  ``above``: what is computed of its columns later."""
    free = FreeIds(ids)
    wanted = free.of_exprs(above)
    for number, window in block.windows.items():
        rest = [e for w in block.windows.values() if w is not window for e in w.exprs]
        columns = sorted((wanted | free.of_exprs(rest)) & outputs(node))
        node = _numbered(node, number, window, columns, ids)
    return node


def _numbered(node: Node, number: int, window: Window, columns: list[int], ids: Ids) -> Node:
    gathered: list[tuple[int, AggregateCall]] = []
    values: list[Expr] = [ids.column(c) for c in columns]
    order = (*window.order, *((v, False, False) for v in values))
    for value in values or [Literal(True, BOOLEAN)]:
        array = _array_of(value.type)
        gathered.append((ids.new(array), AggregateCall("array_agg", (value,), array, order_by=order)))
    keys = tuple((ids.new(e.type), e) for e in window.partition)
    arrays = tuple(ids.column(n) for n, _ in gathered)
    made = (*(columns or [ids.new(BOOLEAN)]), number)
    return FlatMap(
        Reduce(node, keys, tuple(gathered), not keys), "unnest", arrays, made, tuple(ids.types[n] for n in made)
    )


def _array_of(sql_type: SqlType) -> SqlType:
    found = array_type(sql_type)
    varies = sql_type.kind in _SHOWN or (sql_type.kind is Kind.NUMERIC and sql_type.scale is None)
    if found is None or varies or (sql_type.kind is Kind.BPCHAR and sql_type.length is None):
        raise unsupported(
            f"row_number() beside a column of type {bare_name(sql_type)}", hint="Cast the column to text below."
        )
    return found
