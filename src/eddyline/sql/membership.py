"""IN, ANY, ALL, EXISTS and scalar subqueries in expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import And, Call, Expr, Literal
from eddyline.repr.types import BOOLEAN
from eddyline.sql.algebra import Node, Rows, Subquery, SubqueryKind
from eddyline.sql.ast import AstNode, enum_name, name_list
from eddyline.sql.binding import Context, RowValue, SubselectResult
from eddyline.sql.comparison import Value, all_of, any_of, compare, mentions, negate
from eddyline.sql.conversion import coerce, common_type, exactly, is_unknown
from eddyline.sql.resolution import COMPARISONS

__all__ = ["bind_in_list", "bind_quantified_array", "bind_sublink"]

#: An IN list of more constants than this is joined with, not compared item by item.
LONG_LIST_ITEMS: Final = 64


def bind_in_list(
    context: Context,
    left: Value,
    items: Sequence[Value],
    *,
    negated: bool,
    position: int | None,
    places: Sequence[int | None],
) -> Expr:
    """``left [NOT] IN (items)``.  ``places``: where the items stand."""
    left, items = _common(context, left, items, places)
    if len(items) > LONG_LIST_ITEMS and not isinstance(left, RowValue) and all(isinstance(i, Literal) for i in items):
        result = _long_list(context, left, [i for i in items if isinstance(i, Literal)], position)
        return negate(result) if negated else result
    if negated:
        return all_of(
            [compare(context, "<>", left, i, position, places=(None, p)) for i, p in zip(items, places, strict=True)]
        )
    return any_of(
        [compare(context, "=", left, i, position, places=(None, p)) for i, p in zip(items, places, strict=True)]
    )


def _common(
    context: Context, left: Value, items: Sequence[Value], places: Sequence[int | None]
) -> tuple[Value, Sequence[Value]]:
    """Untyped items take the common type of the list, so that ``1 IN ('1', 2)`` compares integers."""
    scalars = [v for v in (left, *items) if not isinstance(v, RowValue)]
    if len(scalars) <= len(items) or isinstance(left, RowValue) or not any(is_unknown(v) for v in scalars):
        return left, items
    target = common_type(scalars, "IN")
    if not is_unknown(left) and target.kind is not left.type.kind:
        return left, items
    parameters = context.binding.parameters

    def typed(value: Expr, place: int | None) -> Expr:
        return coerce(value, target, parameters, position=place) if is_unknown(value) else value

    rest = [typed(i, p) for i, p in zip(items, places, strict=True) if not isinstance(i, RowValue)]
    return typed(left, None), rest


def _long_list(context: Context, left: Expr, items: list[Literal], position: int | None) -> Expr:
    ids = context.binding.ids
    target = common_type(items, "IN")
    values = tuple((exactly(coerce(i, target, context.binding.parameters), target),) for i in items)
    column = ids.new(target)
    node = Rows(values, (column,), (target,))
    return _quantified(context, left, "=", _Listed(node, (column,)), kind=SubqueryKind.ANY, position=position)


@dataclass(frozen=True, slots=True)
class _Listed:
    """The rows of a literal list, as if a subquery had given them."""

    node: Node
    ids: tuple[int, ...]


def bind_quantified_array(
    context: Context, left: Expr, name: str, items: Sequence[Expr], *, every: bool, position: int | None
) -> Expr:
    """``left op ANY/ALL (ARRAY[items])``."""
    tests = [compare(context, name, left, i, position) for i in items]
    for test in tests:
        if test.type != BOOLEAN:
            raise make_error("42809", "op ANY/ALL (array) requires operator to yield boolean", position=position)
    return all_of(tests) if every else any_of(tests)


def bind_sublink(node: AstNode, test: Value | None, context: Context) -> Expr:
    """A subquery in an expression.  ``test``: the bound left side of IN, ANY or ALL."""
    kind = enum_name(node, "sub_link_type")
    position = context.at(node)
    if kind in ("MULTIEXPR_SUBLINK", "CTE_SUBLINK"):
        raise unsupported("this subquery", position=position)
    result = context.binding.subselect(node.subselect, context)
    ids = context.binding.ids
    if kind == "EXISTS_SUBLINK":
        return ids.subquery(Subquery(SubqueryKind.EXISTS, result.node, result.ids, BOOLEAN))
    if kind == "EXPR_SUBLINK":
        if len(result.ids) != 1:
            raise make_error("42601", "subquery must return only one column", position=position)
        value = ids.types[result.ids[0]]
        return ids.subquery(Subquery(SubqueryKind.SCALAR, result.node, result.ids, value, single_row=result.single_row))
    assert test is not None
    name = name_list(node.oper_name)[-1] if node.oper_name else "="
    name = "<>" if name == "!=" else name
    which = SubqueryKind.ALL if kind == "ALL_SUBLINK" else SubqueryKind.ANY
    return _quantified(context, test, name, result, kind=which, position=position)


def _quantified(
    context: Context,
    test: Value,
    name: str,
    result: SubselectResult | _Listed,
    *,
    kind: SubqueryKind,
    position: int | None,
) -> Expr:
    ids = context.binding.ids
    width = len(test.items) if isinstance(test, RowValue) else 1
    if len(result.ids) != width:
        few = "too few" if len(result.ids) < width else "too many"
        raise make_error("42601", f"subquery has {few} columns", position=position)
    columns = tuple(ids.column(i) for i in result.ids)
    right: Value = RowValue(columns) if isinstance(test, RowValue) else columns[0]
    comparison = compare(context, name, test, right, position)
    if comparison.type != BOOLEAN:
        raise make_error("42804", "row comparison operator must yield type boolean", position=position)
    return ids.subquery(_comparison_subquery(kind, result, comparison, width))


def _comparison_subquery(
    kind: SubqueryKind, result: SubselectResult | _Listed, comparison: Expr, width: int
) -> Subquery:
    """Splits the comparison, where it is plain, into the outer row's sides and the subquery's sides."""
    inner = frozenset(result.ids)
    parts = comparison.args if isinstance(comparison, And) and width > 1 else (comparison,)
    tests: list[Expr] = []
    values: list[Expr] = []
    operators: set[str] = set()
    for part in parts:
        if not isinstance(part, Call) or part.func not in COMPARISONS or len(part.args) != 2:
            return Subquery(kind, result.node, result.ids, BOOLEAN, comparison=comparison)
        left, right = part.args
        if mentions(left) & inner or mentions(right) - inner:
            return Subquery(kind, result.node, result.ids, BOOLEAN, comparison=comparison)
        tests.append(left)
        values.append(right)
        operators.add(part.func)
    operator = operators.pop() if len(operators) == 1 else None
    if len(parts) != width or (width > 1 and operator != "eq"):
        operator = None
    return Subquery(kind, result.node, result.ids, BOOLEAN, tuple(tests), tuple(values), comparison, operator)
