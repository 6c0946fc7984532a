"""Arguments of EXECUTE, made the types of the prepared statement's parameters."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.errors import make_error
from eddyline.expr.ir import Expr
from eddyline.repr.types import SqlType
from eddyline.sql.conversion import Parameters, can_coerce, coerce, exactly
from eddyline.sql.statements import Execute

__all__ = ["coerce_arguments"]


def coerce_arguments(execute: Execute, types: Sequence[SqlType], zone: str | None = None) -> tuple[Expr, ...]:
    """One constant expression per parameter, of ``types`` (``$1`` first), by assignment casts.
    ``zone``: the session's TimeZone.

    Raises: 42601 for a wrong number of arguments; 42804 for a type that does not go there; 22P02 and the like for a
    quoted literal that the type cannot read.
    """
    if len(execute.arguments) != len(types):
        raise make_error(
            "42601",
            f'wrong number of parameters for prepared statement "{execute.name}"',
            detail=f"Expected {len(types)} parameters but got {len(execute.arguments)}.",
        )
    coerced = []
    for number, (value, target) in enumerate(zip(execute.arguments, types, strict=True), start=1):
        if not can_coerce(value.type, target, assignment=True):
            raise make_error(
                "42804",
                f"parameter ${number} of type {value.type} cannot be coerced to the expected type {target}",
                hint="You will need to rewrite or cast the expression.",
            )
        coerced.append(exactly(coerce(value, target, Parameters({}, zone)), target))
    return tuple(coerced)
