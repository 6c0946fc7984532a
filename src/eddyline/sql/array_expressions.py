"""``ARRAY[…]``, ``ARRAY(query)``, subscripts and slices, ANY and ALL over arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from eddyline.errors import DatabaseError, make_error, unsupported
from eddyline.expr.array_functions import QUANTIFIED
from eddyline.expr.array_layout import EMPTY, nested_of
from eddyline.expr.ir import AggregateCall, Call, Cast, Coalesce, Column, Expr, Literal
from eddyline.repr.types import BOOLEAN, INTEGER, TEXT, SqlType, array_type, element_type, is_array
from eddyline.sql.algebra import Filter, FlatMap, Map, Node, Reduce, Subquery, SubqueryKind
from eddyline.sql.ast import AstNode, kind_of
from eddyline.sql.binding import Context
from eddyline.sql.comparison import compare
from eddyline.sql.conversion import bare_name, can_coerce, coerce, exactly, is_unknown, unify
from eddyline.sql.membership import bind_quantified_array
from eddyline.sql.resolution import without_vector

__all__ = ["array_of", "array_query", "bind_quantified_value", "bind_subscripts", "quantified_items"]

#: of what information_schema._pg_expandarray gives
_PAIR_FIELDS: Final = {"x": 1, "n": 2}
#: as many constants are compared one by one, which an index may serve
_FEW_ITEMS: Final = 64


class Bind(Protocol):
    def __call__(self, node: AstNode, context: Context, /) -> Expr: ...


Place = Callable[[AstNode, Context], int | None]
CastTo = Callable[[Expr, SqlType, Context, int | None, int | None], Expr]


def _no_array(element: SqlType, position: int | None) -> DatabaseError:
    return unsupported(
        f"an array of {bare_name(element)}", position=position, hint="Cast the elements to text, or keep them in rows."
    )


def array_of(
    node: AstNode, context: Context, bind: Bind, place: Place, cast: CastTo, target: SqlType | None = None
) -> Expr:
    """``ARRAY[a, b, …]``.  ``target``: the type of array that it is cast to.  42P18 for an empty one without it."""
    position = context.at(node)
    if not node.elements:
        if target is None:
            raise make_error(
                "42P18",
                "cannot determine type of empty array",
                position=position,
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            )
        return Literal(EMPTY.hex(), target)
    places = [place(e, context) for e in node.elements]
    if target is not None:
        return _cast_elements(node, context, bind, cast, target, places)
    values, common = unify([bind(e, context) for e in node.elements], "ARRAY", context.binding.parameters, places)
    if is_array(common):
        return Call("stack_arrays", tuple(values), common)
    found = array_type(common)
    if found is None:
        raise _no_array(common, position)
    return Call("make_array", tuple(values), found)


def _cast_elements(
    node: AstNode, context: Context, bind: Bind, cast: CastTo, target: SqlType, places: Sequence[int | None]
) -> Expr:
    """Each element is cast by itself, as PostgreSQL does; those that are lists are arrays of ``target``."""
    element = element_type(target)
    values = []
    nested = any(kind_of(e) == "a_array_expr" for e in node.elements)
    for item in node.elements:
        if kind_of(item) == "a_array_expr":
            values.append(array_of(item.a_array_expr, context, bind, _nowhere, cast, target))
            continue
        value = bind(item, context)
        nested = nested or is_array(value.type)
        values.append(value)
    wanted = target if nested else element
    made = [exactly(cast(v, wanted, context, at, at), wanted) for v, at in zip(values, places, strict=True)]
    return Call("stack_arrays" if nested else "make_array", tuple(made), target)


def _nowhere(node: AstNode, context: Context) -> int | None:
    return None


def array_query(node: AstNode, context: Context) -> Expr:
    """``ARRAY(query)``: the values of its one column in its order; ``{}`` without rows.

    Without ORDER BY the elements of an unnested array keep their order.
    """
    position = context.at(node)
    result = context.binding.subselect(node.subselect, context, ordered=True)
    if len(result.ids) != 1:
        raise make_error("42601", "subquery must return only one column", position=position)
    ids = context.binding.ids
    value = ids.column(result.ids[0])
    found = array_type(value.type)
    if found is None:
        raise _no_array(value.type, position)
    keys = result.order or _unnested_order(result.node)
    order = tuple((ids.column(number), desc, first) for number, desc, first in keys)
    gathered, shown = ids.new(found), ids.new(found)
    call = AggregateCall("array_agg", (value,), found, order_by=order)
    reduced = Reduce(result.node, (), ((gathered, call),), True)
    filled = Coalesce((ids.column(gathered), Literal(EMPTY.hex(), found)), found)
    return ids.subquery(
        Subquery(SubqueryKind.SCALAR, Map(reduced, ((shown, filled),)), (shown,), found, single_row=True)
    )


def _unnested_order(node: Node) -> tuple[tuple[int, bool, bool], ...]:
    """That of the array whose elements the rows are, if they are that, maybe computed with and filtered."""
    while isinstance(node, Map | Filter):
        node = node.input
    if isinstance(node, FlatMap) and node.func == "unnest":
        return ((node.ids[-1], False, False),)
    return ()


# -- subscripts -------------------------------------------------------------------------------------------------------


def bind_subscripts(node: AstNode, context: Context, bind: Bind, place: Place) -> Expr:
    """``value[i][j]`` and ``value[a:b]``; 42804 for what is no array."""
    position = place(node.arg, context)
    first = node.indirection[0]
    at = _PAIR_FIELDS.get(first.string.sval) if kind_of(first) == "string" and len(node.indirection) == 1 else None
    if at is not None and kind_of(node.arg) == "column_ref":
        column = bind(node.arg, context)
        if isinstance(column, Column) and column.index in context.binding.pairs:
            return Call("array_element", (column, Literal(at, INTEGER)), element_type(column.type))
    if any(kind_of(i) != "a_indices" for i in node.indirection):
        raise unsupported("field selection from a composite value", position=position)
    value = without_vector(bind(node.arg, context))
    if not is_array(value.type):
        raise make_error(
            "42804",
            f"cannot subscript type {bare_name(value.type)} because it does not support subscripting",
            position=position,
        )
    indices = [i.a_indices for i in node.indirection]
    if not any(i.is_slice for i in indices):
        subscripts = tuple(_subscript(i.uidx, context, bind, place) for i in indices)
        return Call("array_element", (value, *subscripts), element_type(value.type))
    bounds: list[Expr] = []
    for index in indices:
        low = _bound(index, "lidx", context, bind, place)
        high = _bound(index, "uidx", context, bind, place)
        if not index.is_slice:  # beside slices a single subscript is where one ends
            low = (Literal(1, INTEGER), Literal(False, BOOLEAN))
        bounds += (*low, *high)
    return Call("array_slice", (value, *bounds), value.type)


def _bound(index: AstNode, field: str, context: Context, bind: Bind, place: Place) -> tuple[Expr, Expr]:
    """The subscript, and whether there is none."""
    if not index.HasField(field):
        return Literal(None, INTEGER), Literal(True, BOOLEAN)
    return _subscript(getattr(index, field), context, bind, place), Literal(False, BOOLEAN)


def _subscript(node: AstNode, context: Context, bind: Bind, place: Place) -> Expr:
    value = bind(node, context)
    if not can_coerce(value.type, INTEGER, assignment=True):
        raise make_error("42804", "array subscript must have type integer", position=place(node, context))
    return coerce(value, INTEGER, context.binding.parameters, position=place(node, context))


# -- ANY and ALL ------------------------------------------------------------------------------------------------------


def quantified_items(
    node: AstNode, context: Context, bind: Bind, cast: CastTo, target_of: Callable[[AstNode], SqlType]
) -> list[Expr] | None:
    """The values of ``ARRAY[a, b, …]``, maybe under a cast, of one dimension; None for another value."""
    inner, target = node, None
    if kind_of(node) == "type_cast" and kind_of(node.type_cast.arg) == "a_array_expr":
        inner, target = node.type_cast.arg, target_of(node.type_cast.type_name)
    if kind_of(inner) != "a_array_expr" or any(kind_of(e) == "a_array_expr" for e in inner.a_array_expr.elements):
        return None
    if target is None:
        return [bind(e, context) for e in inner.a_array_expr.elements] or None
    if not is_array(target):
        return None
    element = element_type(target)
    return [cast(bind(e, context), element, context, None, None) for e in inner.a_array_expr.elements]


def bind_quantified_value(
    context: Context, left: Expr, name: str, right: Expr, *, every: bool, position: int | None, place: int | None
) -> Expr:
    """``left op ANY/ALL (right)`` where ``right`` is an array's value; 42809 for what is none."""
    parameters = context.binding.parameters
    if is_unknown(right):
        known = TEXT if is_unknown(left) else SqlType(left.type.kind)
        wanted = array_type(known)
        if wanted is None:
            raise _no_array(known, position)
        right = coerce(right, wanted, parameters, position=place)
    right = without_vector(right)
    if not is_array(right.type):
        raise make_error("42809", "op ANY/ALL (array) requires array on right side", position=position)
    element = element_type(right.type)
    if isinstance(right, Literal) and right.value is not None:
        items = nested_of(right.value, right.type)
        if items and len(items) <= _FEW_ITEMS and not isinstance(items[0], list):
            literals = [Literal(i, element) for i in items]
            return bind_quantified_array(context, left, name, literals, every=every, position=position)
    item = context.binding.ids.column(context.binding.ids.new(element))
    test = compare(context, name, left, item, position)
    if test.type != BOOLEAN:
        raise make_error("42809", "op ANY/ALL (array) requires operator to yield boolean", position=position)
    if not isinstance(test, Call) or test.func not in QUANTIFIED or len(test.args) != 2:
        raise unsupported(f"operator {name} with ANY/ALL over an array", position=position)
    first, second = test.args
    compared = array_type(second.type)
    if compared is None or first == item:
        raise unsupported(f"operator {name} with ANY/ALL over such an array", position=position)
    if compared != right.type:
        right = Cast(right, compared, False)
    return Call(f"{'all' if every else 'any'}_{test.func}", (first, right), BOOLEAN)
