"""Map, filter, project over an update batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expr.column_names import MfpNames
from eddyline.expr.evaluate import evaluate_frame, true_rows
from eddyline.expr.frame import Frame
from eddyline.expr.ir import Expr, MapStep, Mfp, Raise, walk
from eddyline.expr.quick_filter import quick_truth
from eddyline.expr.registry import RowErrors
from eddyline.expr.text_io import sample_rows
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.rowerror import ERR_TYPES

__all__ = ["apply_mfp", "error_batch"]


def apply_mfp(mfp: Mfp, batch: Batch) -> tuple[Batch, Batch | None]:
    """The output updates and, if any row failed, its errs updates (``ERR_TYPES``) at the row's time with its diff.

    A failed row gives no output row, and later steps do not see it.
    """
    if not mfp.steps:
        return Batch(mfp.types, tuple([batch.columns[i] for i in mfp.projection]), batch.times, batch.diffs), None
    names = MfpNames(mfp) if mfp.names or not batch.columns else None
    frame = Frame(batch.columns, len(batch), names=names)
    origin: Int64s | None = None  # input row of each row of the frame, None: itself
    errs: list[Batch] = []
    for step in mfp.steps:
        expr = step.expr if isinstance(step, MapStep) else step.predicate
        if not isinstance(step, MapStep):
            truth = quick_truth(expr, frame)
            if truth is not None:
                if not truth.all():
                    frame, origin = _kept(frame, origin, np.flatnonzero(truth))
                continue
        value = evaluate_frame(expr, frame)
        if isinstance(step, MapStep):
            frame.append(value.array)
            keep = None if value.errors is None else np.delete(np.arange(frame.rows), value.errors.rows)
        else:
            truth = true_rows(value, frame.rows)
            keep = None if truth.all() else np.flatnonzero(truth)
        if value.errors is not None:
            errs.append(_described(batch, value.errors, origin, expr, names, mfp.view))
        if keep is not None:
            frame, origin = _kept(frame, origin, keep)
    columns = tuple(frame.column(i) for i in mfp.projection)
    times, diffs = (batch.times, batch.diffs) if origin is None else (batch.times[origin], batch.diffs[origin])
    return Batch(mfp.types, columns, times, diffs), Batch.concat(ERR_TYPES, errs) if errs else None


def _kept(frame: Frame, origin: Int64s | None, keep: Int64s) -> tuple[Frame, Int64s]:
    return frame.select(keep), keep if origin is None else origin[keep]


def _described(
    batch: Batch, errors: RowErrors, origin: Int64s | None, expr: Expr, names: MfpNames | None, view: str
) -> Batch:
    """The columns that ``expr`` reads come first in the sample, which may be cut."""
    if names is None:
        return error_batch(batch, errors, origin, view=view)
    read = names.read_by(expr)
    shown = sorted(range(names.inputs), key=lambda c: (c not in read, c))
    if any(isinstance(e, Raise) for e in walk(expr)):
        # Of a subquery: what its plan counts and keeps of it are columns that nobody wrote, and the row that it was
        # for comes twice.
        first = {names[c]: c for c in reversed(shown) if c not in read}
        shown = [c for c in shown if first.get(names[c]) == c]
    return error_batch(batch, errors, origin, names=names, shown=shown, view=view)


def error_batch(
    batch: Batch,
    errors: RowErrors,
    origin: npt.NDArray[np.int64] | None = None,
    *,
    names: Sequence[str] = (),
    shown: Sequence[int] | None = None,
    view: str = "",
) -> Batch:
    """Errs updates for failed rows of ``batch``; ``origin`` maps the errors' row numbers to rows of the batch.

    ``names``: of the batch's columns, if they are known; then ``shown`` are the columns in the sample (None: those
    that have a name).  The text is a function of the row, the expression and the names alone, so that the retraction
    of a row cancels its error.
    """
    rows = errors.rows if origin is None else origin[errors.rows]
    failed = batch.take(rows)
    columns, types = failed.columns, batch.types
    if names:
        picked = range(len(names)) if shown is None else shown
        columns, types = tuple(columns[c] for c in picked), tuple(types[c] for c in picked)
        names = [names[c] for c in picked]
    samples = sample_rows(columns, types, len(rows), names=names)
    texts = (errors.sqlstates, errors.messages, errors.expressions, samples, [view] * len(rows))
    arrays = tuple(pa.array(column, type=pa.large_string()) for column in texts)
    return Batch(ERR_TYPES, arrays, failed.times, failed.diffs)
