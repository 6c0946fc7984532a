"""Row errors: failures of single rows, carried as updates beside the rows (*errs*).

An errs batch is an ordinary ``Batch`` with the row type ``ERR_TYPES``, so that errors are retracted, consolidated,
arranged and compacted like rows.  Reading a collection whose errs are non-empty at the read's time raises one.
"""

from __future__ import annotations

from typing import Final

from eddyline.errors import DatabaseError, make_error
from eddyline.repr.batch import Batch
from eddyline.repr.types import TEXT, SqlType

__all__ = ["ERR_TYPES", "first_row_error", "row_error"]

#: sqlstate, primary message, expression (as SQL-like text), sample row (as text), the view that computes the
#: expression (empty: the query itself)
ERR_TYPES: Final[tuple[SqlType, ...]] = (TEXT, TEXT, TEXT, TEXT, TEXT)


def row_error(sqlstate: str, message: str, expression: str, sample: str, view: str) -> DatabaseError:
    """The exception that a read raises for one errs row.

    Without an expression it is an error of the whole, and ``sample`` says more about it.  A row without columns is
    left out.
    """
    if not expression:
        return make_error(sqlstate, message, detail=sample)
    where = f'in view "{view}", ' if view else "in "
    row = "" if sample == "()" else f", row {sample}"
    return make_error(sqlstate, message, detail=f"{where}expression {expression}{row}")


def first_row_error(errors: Batch) -> DatabaseError:
    """The exception for the first row of an errs batch, which must have one."""
    sqlstate, message, expression, sample, view = (c[0].as_py() for c in errors.columns)
    return row_error(sqlstate, message, expression, sample, view)
