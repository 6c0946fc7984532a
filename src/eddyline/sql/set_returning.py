"""Functions that return sets: in FROM, and as items of a SELECT list, where they go side by side.

All but ``generate_series`` are ``unnest`` of arrays: of several at once, the shorter ones filled up with NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eddyline.errors import make_error
from eddyline.expr.functions import Overload
from eddyline.expr.ir import Call, Cast, Expr, Literal
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    NUMERIC,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    element_type,
    is_array,
)
from eddyline.sql.ast import AstNode, expect_fields, kind_of, name_list
from eddyline.sql.binding import Context
from eddyline.sql.conversion import can_coerce, coerce, is_unknown
from eddyline.sql.expressions import bind, position_of
from eddyline.sql.functions import SET_RETURNING
from eddyline.sql.resolution import bind_call, choose_overload, function_error, without_vector

__all__ = ["TableFunction", "bind_table_function", "is_set_returning"]

K = Kind
_SERIES: Final = (
    *(
        Overload("generate_series", (k,) * n, t, "generate_series")
        for k, t in ((K.INTEGER, INTEGER), (K.BIGINT, BIGINT), (K.NUMERIC, NUMERIC))
        for n in (2, 3)
    ),
    *(
        Overload("generate_series", (k, k, K.INTERVAL), t, "generate_series")
        for k, t in ((K.TIMESTAMP, TIMESTAMP), (K.TIMESTAMPTZ, TIMESTAMPTZ))
    ),
)


@dataclass(frozen=True, slots=True)
class TableFunction:
    """``func`` of ``algebra.FlatMap`` with its arguments.

    ``types``: of its columns, of ``unnest`` without their number.
    """

    name: str
    func: str
    args: tuple[Expr, ...]
    types: tuple[SqlType, ...]


def is_set_returning(node: AstNode) -> bool:
    """Whether a syntax node is a call of such a function."""
    return kind_of(node) == "func_call" and name_list(node.func_call.funcname)[-1] in SET_RETURNING


def bind_table_function(function: AstNode, context: Context) -> TableFunction:
    """The call of a set-returning function."""
    position = context.at(function)
    expect_fields(function, ("funcname", "args", "funcformat", "location"), position)
    name = name_list(function.funcname)[-1]
    args = [bind(a, context) for a in function.args]
    places = [position_of(a, context) for a in function.args]
    match name:
        case "_pg_expandarray":
            return _pairs(args, context, position)
        case "unnest":
            return _unnest(args, context, position)
        case "generate_subscripts":
            return _subscripts(args, context, position)
        case "string_to_table":
            split = bind_call("string_to_array", args, context.binding.parameters, position, places)
            return TableFunction(name, "unnest", (split,), (element_type(split.type),))
    return _series(args, context, position)


def _series(args: Sequence[Expr], context: Context, position: int | None) -> TableFunction:
    call = choose_overload("generate_series", _SERIES, args, context.binding.parameters, position)
    assert isinstance(call, Call)
    cast = tuple(Cast(a, NUMERIC, False) if a.type.kind is K.NUMERIC and a.type != NUMERIC else a for a in call.args)
    return TableFunction("generate_series", "generate_series", cast, (call.type,))


def _unnest(args: Sequence[Expr], context: Context, position: int | None) -> TableFunction:
    arrays = [without_vector(a) for a in args]
    if not arrays or any(is_unknown(a) for a in arrays):
        if arrays and all(is_unknown(a) for a in arrays):
            raise make_error("42725", "function unnest(unknown) is not unique", position=position)
        raise function_error("unnest", [a.type for a in args], ambiguous=False, position=position)
    if not all(is_array(a.type) for a in arrays):
        raise function_error("unnest", [a.type for a in args], ambiguous=False, position=position)
    return TableFunction("unnest", "unnest", tuple(arrays), tuple(element_type(a.type) for a in arrays))


def _pairs(args: Sequence[Expr], context: Context, position: int | None) -> TableFunction:
    """The items of an array and their numbers from 1 on, by two arrays side by side."""
    if len(args) != 1 or not is_array(args[0].type):
        raise function_error("_pg_expandarray", [a.type for a in args], ambiguous=False, position=position)
    array = without_vector(args[0])
    left_out = (Literal(None, INTEGER), Literal(True, BOOLEAN))
    whole = Call("array_slice", (array, *left_out, *left_out), array.type)  # which counts from 1
    numbers = Call("array_subscripts", (whole, Literal(1, INTEGER), Literal(False, BOOLEAN)), SqlType(K.INTEGER_ARRAY))
    return TableFunction("_pg_expandarray", "unnest", (array, numbers), (element_type(array.type), INTEGER))


def _subscripts(args: Sequence[Expr], context: Context, position: int | None) -> TableFunction:
    fits = len(args) in (2, 3) and is_array(args[0].type) and can_coerce(args[1].type, INTEGER)
    if not fits or not all(can_coerce(a.type, BOOLEAN) for a in args[2:]):
        raise function_error("generate_subscripts", [a.type for a in args], ambiguous=False, position=position)
    parameters = context.binding.parameters
    backwards = coerce(args[2], BOOLEAN, parameters) if len(args) > 2 else Literal(False, BOOLEAN)
    values = (without_vector(args[0]), coerce(args[1], INTEGER, parameters), backwards)
    call = Call("array_subscripts", values, SqlType(K.INTEGER_ARRAY))
    return TableFunction("generate_subscripts", "unnest", (call,), (INTEGER,))
