"""The times that AS OF and UP TO ask for."""

from __future__ import annotations

import pyarrow as pa

from eddyline.adapter.computed_columns import evaluate_columns
from eddyline.adapter.read import ReadContext
from eddyline.errors import make_error
from eddyline.expr.ir import Expr, Literal
from eddyline.repr.time import Time

__all__ = ["time_asked"]


def time_asked(expr: Expr | None, literals: tuple[Literal, ...], context: ReadContext) -> Time | None:
    """The value of AS OF or UP TO, in µs; 22023 for NULL and for times before the epoch."""
    if expr is None:
        return None
    value = evaluate_columns((expr,), (), 1, literals, context)[0].cast(pa.int64())[0].as_py()
    if value is None or value < 0:
        raise make_error("22023", "AS OF and UP TO take a time at or after the epoch")
    return Time(value)
