"""Binding of scalar expressions: PostgreSQL's syntax tree to typed ``ir.Expr`` over column ids.

``bind_value`` may return a row; ``bind`` returns a single value.  Subqueries become ``Ids.subquery`` columns and
aggregates become columns of their block, so what comes out is an ordinary expression.

Left-deep chains of operators (``a || b || …``) are walked iteratively; other nesting uses Python's stack, and the
entry points turn its exhaustion into 54001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.expr.casts import cast_context
from eddyline.expr.datetime_precision import DATETIME_PRECISION
from eddyline.expr.ir import Call, Case, Coalesce, Expr, Literal
from eddyline.repr.types import BOOLEAN, INTERVAL, TEXT, TIMESTAMPTZ, UNKNOWN, Kind, SqlType, is_array
from eddyline.sql.algebra import Subquery, SubqueryKind
from eddyline.sql.array_expressions import (
    array_of,
    array_query,
    bind_quantified_value,
    bind_subscripts,
    quantified_items,
)
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of, name_list, start_of, unwrap, words
from eddyline.sql.binding import Context, RowValue
from eddyline.sql.columns import bind_column
from eddyline.sql.comparison import (
    Value,
    all_of,
    any_of,
    compare,
    distinct,
    negate,
    not_distinct,
    null_test,
)
from eddyline.sql.conversion import (
    can_coerce,
    coerce,
    integer_literal,
    is_unknown,
    number_literal,
    unify,
)
from eddyline.sql.functions import bind_function, bind_grouping
from eddyline.sql.membership import bind_in_list, bind_quantified_array, bind_sublink
from eddyline.sql.resolution import bind_operator, target_type
from eddyline.sql.system_functions import expand_cast, expand_procedure, expand_value
from eddyline.sql.type_names import type_of_name
from eddyline.sql.windows import bind_row_number

__all__ = ["bind", "bind_boolean", "bind_value", "cast_to"]

_FAMILIES: Final = (
    (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT),
    (Kind.REAL, Kind.DOUBLE),
    (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
)
_INTERVAL_FIELDS: Final = {
    1 << 2: "year",
    1 << 1: "month",
    1 << 3: "day",
    1 << 10: "hour",
    1 << 11: "minute",
    1 << 12: "second",
}


def bind(node: AstNode, context: Context) -> Expr:
    """A single value; a row here is 0A000."""
    value = bind_value(node, context)
    if isinstance(value, RowValue):
        raise unsupported("a row value in this place", position=value.position)
    return value


def bind_boolean(node: AstNode, context: Context, clause: str) -> Expr:
    """A condition; 42804 "argument of WHERE must be type boolean, not type integer" otherwise."""
    expr = bind(node, context)
    return as_boolean(expr, context, clause, position_of(node, context))


def as_boolean(expr: Expr, context: Context, clause: str, position: int | None) -> Expr:
    if expr.type.kind is not Kind.BOOLEAN and not is_unknown(expr):
        raise make_error(
            "42804", f"argument of {clause} must be type boolean, not type {expr.type.kind.value}", position=position
        )
    return coerce(expr, BOOLEAN, context.binding.parameters, position=position)


def position_of(node: AstNode, context: Context) -> int | None:
    """Where an expression starts, as PostgreSQL reports it; None when unknown."""
    return context.binding.locate(start_of(node))


def bind_value(node: AstNode, context: Context) -> Value:
    """The expression or row that ``node`` means."""
    kind = kind_of(node)
    binder = _BINDERS.get(kind)
    if binder is None:
        inner = unwrap(node)
        raise unsupported(words(kind), position=context.binding.locate(getattr(inner, "location", -1)))
    return binder(unwrap(node), context)


def _const(node: AstNode, context: Context) -> Expr:
    if node.isnull:
        return Literal(None, UNKNOWN)
    match node.WhichOneof("val"):
        case "ival":
            return integer_literal(int(node.ival.ival))
        case "fval":
            return number_literal(node.fval.fval)
        case "boolval":
            return Literal(bool(node.boolval.boolval), BOOLEAN)
        case "sval":
            return Literal(node.sval.sval, UNKNOWN)
    raise unsupported("a bit string constant", position=context.at(node))


def _parameter(node: AstNode, context: Context) -> Expr:
    return context.binding.parameters.reference(node.number, context.at(node))


def _row(node: AstNode, context: Context) -> RowValue:
    expect_fields(node, ("args", "row_format", "location"), context.at(node))
    items = tuple(bind(a, context) for a in node.args)
    return RowValue(items, context.at(node), tuple(position_of(a, context) for a in node.args))


def _operator_name(node: AstNode, context: Context) -> str:
    names = name_list(node.name)
    if len(names) > 1 and names[0] != "pg_catalog":
        raise unsupported("a schema-qualified operator", position=context.at(node))
    return "<>" if names[-1] == "!=" else names[-1]


def _a_expr(node: AstNode, context: Context) -> Value:
    expect_fields(
        node, ("kind", "name", "lexpr", "rexpr", "location", "rexpr_list_start", "rexpr_list_end"), context.at(node)
    )
    binder = _A_EXPR_KINDS.get(enum_name(node, "kind"))
    if binder is None:
        raise unsupported(enum_name(node, "kind").removeprefix("AEXPR_").replace("_", " "), position=context.at(node))
    return binder(node, context)


def _is_plain_operator(node: AstNode) -> bool:
    return kind_of(node) == "a_expr" and enum_name(node.a_expr, "kind") == "AEXPR_OP" and node.a_expr.HasField("lexpr")


def _op(node: AstNode, context: Context) -> Expr:
    if not node.HasField("lexpr"):
        name = _operator_name(node, context)
        place = position_of(node.rexpr, context)
        return bind_operator(name, (bind(node.rexpr, context),), context.binding.parameters, context.at(node), (place,))
    spine = [node]
    while _is_plain_operator(spine[-1].lexpr):
        spine.append(spine[-1].lexpr.a_expr)
    start = position_of(spine[-1].lexpr, context)  # every left side of the spine starts there
    value: Value = _operand(spine[-1].lexpr, spine[-1].rexpr, context)
    for step in reversed(spine):
        right = _operand(_beside_procedure(step.lexpr, step.rexpr), None, context, isinstance(value, RowValue))
        name = _operator_name(step, context)
        if isinstance(value, RowValue) or isinstance(right, RowValue):
            value = compare(context, name, value, right, context.at(step))
        else:
            positions = (start, position_of(step.rexpr, context))
            value = bind_operator(name, (value, right), context.binding.parameters, context.at(step), positions)
    assert not isinstance(value, RowValue)
    return value


def _beside_procedure(left: AstNode, right: AstNode) -> AstNode:
    """The right side of an operator, which means something else beside some columns of the catalog."""
    if kind_of(left) != "column_ref" or kind_of(left.column_ref.fields[-1]) != "string":
        return right
    expanded = expand_procedure(str(left.column_ref.fields[-1].string.sval), right)
    return right if expanded is None else expanded


def _operand(node: AstNode, other: AstNode | None, context: Context, other_is_row: bool = False) -> Value:
    """A side of an operator: beside a row, a scalar subquery is a row of its columns."""
    beside_row = other_is_row or (other is not None and kind_of(other) == "row_expr")
    if beside_row and kind_of(node) == "sub_link" and enum_name(node.sub_link, "sub_link_type") == "EXPR_SUBLINK":
        return bind_row_subquery(node.sub_link, context)
    return bind_value(node, context)


def bind_row_subquery(node: AstNode, context: Context) -> RowValue:
    result = context.binding.subselect(node.subselect, context)
    ids = context.binding.ids
    items = tuple(
        ids.subquery(
            Subquery(
                SubqueryKind.SCALAR,
                result.node,
                (number, *(i for i in result.ids if i != number)),
                ids.types[number],
                single_row=result.single_row,
            )
        )
        for number in result.ids
    )
    return RowValue(items, context.at(node))


def _sides(node: AstNode, context: Context) -> tuple[int | None, int | None]:
    """Where the two operands stand."""
    return position_of(node.lexpr, context), position_of(node.rexpr, context)


def _distinct(node: AstNode, context: Context) -> Expr:
    left, right = bind_value(node.lexpr, context), bind_value(node.rexpr, context)
    return distinct(context, left, right, context.at(node), places=_sides(node, context))


def _not_distinct(node: AstNode, context: Context) -> Expr:
    left, right = bind_value(node.lexpr, context), bind_value(node.rexpr, context)
    return not_distinct(context, left, right, context.at(node), places=_sides(node, context))


def _nullif(node: AstNode, context: Context) -> Expr:
    left, right = bind(node.lexpr, context), bind(node.rexpr, context)
    parameters, places = context.binding.parameters, _sides(node, context)
    equal = bind_operator("=", (left, right), parameters, context.at(node), places)
    assert isinstance(equal, Call)
    # The result is the first operand as the operator is declared to take it, which has varchar as text and, within a
    # family, every type as it is; a number keeps the digits that it shows.
    taken = equal.args[0].type.kind
    same_family = any(left.type.kind in f and taken in f for f in _FAMILIES)
    kind = Kind.TEXT if taken is Kind.VARCHAR else taken
    result = left if same_family else coerce(left, target_type(kind, left), parameters, position=places[0])
    return Case(((equal, Literal(None, result.type)),), result, result.type)


def _in(node: AstNode, context: Context) -> Expr:
    left = bind_value(node.lexpr, context)
    items = [bind_value(i, context) for i in node.rexpr.list.items]
    negated = _operator_name(node, context) == "<>"
    places = [position_of(i, context) for i in node.rexpr.list.items]
    return bind_in_list(context, left, items, negated=negated, position=context.at(node), places=places)


def _like(node: AstNode, context: Context) -> Expr:
    left, right = bind(node.lexpr, context), bind(node.rexpr, context)
    name, places = _operator_name(node, context), _sides(node, context)
    return bind_operator(name, (left, right), context.binding.parameters, context.at(node), places)


def _between(node: AstNode, context: Context) -> Expr:
    kind = enum_name(node, "kind")
    value = bind_value(node.lexpr, context)
    position, start = context.at(node), position_of(node.lexpr, context)
    first, second = node.rexpr.list.items
    low = (bind_value(first, context), position_of(first, context))

    def test(name: str, bound: tuple[Value, int | None]) -> Expr:
        return compare(context, name, value, bound[0], position, places=(start, bound[1]))

    test(">=", low)  # its errors come before those of the second bound
    high = (bind_value(second, context), position_of(second, context))

    def both(a: tuple[Value, int | None], b: tuple[Value, int | None]) -> Expr:
        return all_of([test(">=", a), test("<=", b)])

    def neither(a: tuple[Value, int | None], b: tuple[Value, int | None]) -> Expr:
        return any_of([test("<", a), test(">", b)])

    match kind:
        case "AEXPR_BETWEEN":
            return both(low, high)
        case "AEXPR_NOT_BETWEEN":
            return neither(low, high)
        case "AEXPR_BETWEEN_SYM":
            return any_of([both(low, high), both(high, low)])
    return all_of([neither(low, high), neither(high, low)])


def _quantified(node: AstNode, context: Context) -> Expr:
    left = bind(node.lexpr, context)
    every = enum_name(node, "kind") == "AEXPR_OP_ALL"
    name, position = _operator_name(node, context), context.at(node)
    items = quantified_items(node.rexpr, context, bind, explicit_cast, lambda n: _type_of(n, context))
    if items is not None:
        return bind_quantified_array(context, left, name, items, every=every, position=position)
    right, place = bind(node.rexpr, context), position_of(node.rexpr, context)
    return bind_quantified_value(context, left, name, right, every=every, position=position, place=place)


def _similar(node: AstNode, context: Context) -> Expr:
    raise unsupported("SIMILAR TO", position=context.at(node))


_A_EXPR_KINDS: Final[dict[str, Callable[[AstNode, Context], Value]]] = {
    "AEXPR_OP": _op,
    "AEXPR_OP_ANY": _quantified,
    "AEXPR_OP_ALL": _quantified,
    "AEXPR_DISTINCT": _distinct,
    "AEXPR_NOT_DISTINCT": _not_distinct,
    "AEXPR_NULLIF": _nullif,
    "AEXPR_IN": _in,
    "AEXPR_LIKE": _like,
    "AEXPR_ILIKE": _like,
    "AEXPR_SIMILAR": _similar,
    "AEXPR_BETWEEN": _between,
    "AEXPR_NOT_BETWEEN": _between,
    "AEXPR_BETWEEN_SYM": _between,
    "AEXPR_NOT_BETWEEN_SYM": _between,
}


def _bool_expr(node: AstNode, context: Context) -> Expr:
    operator = enum_name(node, "boolop")
    word = operator.removesuffix("_EXPR")
    args = [bind_boolean(a, context, word) for a in node.args]
    match operator:
        case "AND_EXPR":
            return all_of(args)
        case "OR_EXPR":
            return any_of(args)
    return negate(args[0])


def _null_test(node: AstNode, context: Context) -> Expr:
    value = bind_value(node.arg, context)
    return null_test(value, is_null=enum_name(node, "nulltesttype") == "IS_NULL")


def _boolean_test(node: AstNode, context: Context) -> Expr:
    test = enum_name(node, "booltesttype")
    arg = bind_boolean(node.arg, context, test.replace("_", " "))
    return Call(test.lower(), (arg,), BOOLEAN)


def _case(node: AstNode, context: Context) -> Expr:
    expect_fields(node, ("arg", "args", "defresult", "location"), context.at(node))
    subject = bind(node.arg, context) if node.HasField("arg") else None
    conditions: list[Expr] = []
    for arm in node.args:
        when = arm.case_when
        if subject is None:
            conditions.append(bind_boolean(when.expr, context, "CASE/WHEN"))
        else:
            test = bind(when.expr, context)
            known = coerce(subject, TEXT, context.binding.parameters) if is_unknown(subject) else subject
            conditions.append(
                bind_operator(
                    "=",
                    (known, test),
                    context.binding.parameters,
                    context.binding.locate(when.location),
                    (position_of(node.arg, context), position_of(when.expr, context)),
                )
            )
    # PostgreSQL weighs the ELSE branch first when it looks for the common type.
    nodes = [node.defresult] if node.HasField("defresult") else []
    nodes += [arm.case_when.result for arm in node.args]
    results = [bind(n, context) for n in nodes]
    if not node.HasField("defresult"):
        results.insert(0, Literal(None, UNKNOWN))
    offset = 0 if node.HasField("defresult") else 1
    positions = [None] * offset + [position_of(n, context) for n in nodes]
    unified, common = unify(results, "CASE", context.binding.parameters, positions)
    return Case(tuple(zip(conditions, unified[1:], strict=True)), unified[0], common)


def _coalesce(node: AstNode, context: Context) -> Expr:
    args, common = _unified(node, context, "COALESCE")
    return args[0] if len(args) == 1 else Coalesce(tuple(args), common)


def _min_max(node: AstNode, context: Context) -> Expr:
    name = enum_name(node, "op").removeprefix("IS_")
    args, common = _unified(node, context, name)
    if len(args) == 1:
        return args[0]
    return Call(name.lower(), tuple(args), common)


def _unified(node: AstNode, context: Context, construct: str) -> tuple[list[Expr], SqlType]:
    args = [bind(a, context) for a in node.args]
    return unify(args, construct, context.binding.parameters, [position_of(a, context) for a in node.args])


def _type_cast(node: AstNode, context: Context) -> Expr:
    position = context.at(node) or context.binding.locate(node.type_name.location)
    expanded = expand_cast(node, context.binding.catalog, position)
    if expanded is not None:
        return bind(expanded, context)
    target, unit = _cast_target(node, context)
    if kind_of(node.arg) == "a_array_expr" and is_array(target):
        return array_of(node.arg.a_array_expr, context, bind, position_of, explicit_cast, target)
    value = bind(node.arg, context)
    if unit is not None:
        if not isinstance(value, Literal) or not is_unknown(value) or not _is_whole(value.value):
            raise unsupported("interval with fields", position=position)
        value = Literal(f"{value.value} {unit}", UNKNOWN)
    return explicit_cast(value, target, context, position, position_of(node.arg, context))


def cast_to(value: Expr, node: AstNode, context: Context) -> Expr:
    """``value`` under the cast that a TypeCast node is."""
    return explicit_cast(value, _type_of(node.type_name, context), context, context.at(node))


def _type_of(type_name: AstNode, context: Context) -> SqlType:
    return type_of_name(type_name, context.binding.locate, catalog_types=True)


def explicit_cast(
    value: Expr, target: SqlType, context: Context, position: int | None, literal_position: int | None = None
) -> Expr:
    """``value::target``; 42846 when there is no such cast."""
    if not is_unknown(value) and value.type.kind is not target.kind and cast_context(value.type, target) is None:
        raise make_error("42846", f"cannot cast type {value.type.kind.value} to {target.kind.value}", position=position)
    return coerce(value, target, context.binding.parameters, explicit=True, position=literal_position)


def _cast_target(node: AstNode, context: Context) -> tuple[SqlType, str | None]:
    """The type, and the unit of ``INTERVAL '1' DAY``."""
    type_name = node.type_name
    if name_list(type_name.names)[-1] == "interval" and len(type_name.typmods) == 1:
        unit = _INTERVAL_FIELDS.get(type_name.typmods[0].a_const.ival.ival)
        if unit is not None:
            return INTERVAL, unit
    return _type_of(type_name, context), None


def _is_whole(value: object) -> bool:
    """A fraction of the unit would have smaller fields, which the type drops."""
    return str(value).strip().lstrip("+-").isdigit()


def _sql_value(node: AstNode, context: Context) -> Expr:
    now = Call("now", (), TIMESTAMPTZ)
    targets = {
        "SVFOP_CURRENT_TIMESTAMP": Kind.TIMESTAMPTZ,
        "SVFOP_CURRENT_DATE": Kind.DATE,
        "SVFOP_LOCALTIMESTAMP": Kind.TIMESTAMP,
        "SVFOP_LOCALTIME": Kind.TIME,
    }
    operation = enum_name(node, "op")
    expanded = expand_value(operation, context.binding.catalog)
    if expanded is not None:
        return bind(expanded, context)
    with_precision = operation.endswith("_N")
    kind = targets.get(operation.removesuffix("_N"))
    if kind is None:
        raise unsupported(operation.removeprefix("SVFOP_"), position=context.at(node))
    precision = node.typmod if with_precision and node.typmod < DATETIME_PRECISION else None
    return explicit_cast(now, SqlType(kind, precision=precision), context, context.at(node))


def _collate(node: AstNode, context: Context) -> Expr:
    name = name_list(node.collname)[-1]
    value = bind(node.arg, context)
    if name not in ("C", "POSIX", "default", "ucs_basic"):
        raise unsupported(f'collation "{name}"', position=context.at(node))
    if is_unknown(value):
        value = coerce(value, TEXT, context.binding.parameters)
    if value.type.kind not in (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR):
        raise make_error(
            "42804", f"collations are not supported by type {value.type.kind.value}", position=context.at(node)
        )
    return value


def _grouping(node: AstNode, context: Context) -> Expr:
    return bind_grouping([bind(a, context) for a in node.args], context, context.at(node))


def _func_call(node: AstNode, context: Context) -> Expr:
    if node.HasField("over"):
        return bind_row_number(node, name_list(node.funcname)[-1], context, bind)
    return bind_function(node, context, bind, explicit_cast, bind_boolean)


def _indirection(node: AstNode, context: Context) -> Expr:
    return bind_subscripts(node, context, bind, position_of)


def _sub_link(node: AstNode, context: Context) -> Expr:
    if enum_name(node, "sub_link_type") == "ARRAY_SUBLINK":
        return array_query(node, context)
    test = bind_value(node.testexpr, context) if node.HasField("testexpr") else None
    return bind_sublink(node, test, context)


def _set_to_default(node: AstNode, context: Context) -> Expr:
    raise make_error("42601", "DEFAULT is not allowed in this context", position=context.at(node))


def _array(node: AstNode, context: Context) -> Expr:
    return array_of(node, context, bind, position_of, explicit_cast)


_BINDERS: Final[dict[str, Callable[[AstNode, Context], Value]]] = {
    "a_const": _const,
    "a_expr": _a_expr,
    "a_array_expr": _array,
    "a_indirection": _indirection,
    "bool_expr": _bool_expr,
    "boolean_test": _boolean_test,
    "case_expr": _case,
    "coalesce_expr": _coalesce,
    "collate_clause": _collate,
    "column_ref": bind_column,
    "func_call": _func_call,
    "grouping_func": _grouping,
    "min_max_expr": _min_max,
    "null_test": _null_test,
    "param_ref": _parameter,
    "row_expr": _row,
    "set_to_default": _set_to_default,
    "sqlvalue_function": _sql_value,
    "sub_link": _sub_link,
    "type_cast": _type_cast,
}


def assign(value: Expr, target: SqlType, column: str, context: Context, position: int | None) -> Expr:
    """``value`` as stored in ``column``; 42804 with PostgreSQL's hint when no assignment cast exists."""
    if not can_coerce(value.type, target, assignment=True):
        raise make_error(
            "42804",
            f'column "{column}" is of type {target.kind.value} but expression is of type {value.type.kind.value}',
            position=position,
            hint="You will need to rewrite or cast the expression.",
        )
    return coerce(value, target, context.binding.parameters, position=position)


def limit_value(node: AstNode, context: Context, clause: str) -> Expr | None:
    """A LIMIT or OFFSET expression as bigint; None for a constant NULL.  No columns (42P10), no subqueries."""
    value = bind(node, context)
    position = position_of(node, context)
    if isinstance(value, Literal) and value.value is None:
        return None
    if not can_coerce(value.type, SqlType(Kind.BIGINT), assignment=True):
        raise make_error(
            "42804",
            f"argument of {clause} must be type bigint, not type {value.type.kind.value}",
            position=position,
        )
    return coerce(value, SqlType(Kind.BIGINT), context.binding.parameters, position=position)


def settled(values: Sequence[Expr], context: Context) -> list[Expr]:
    """Values whose type is still unknown become text."""
    return [coerce(v, TEXT, context.binding.parameters) if is_unknown(v) else v for v in values]
