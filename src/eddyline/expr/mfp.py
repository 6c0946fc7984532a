"""Map, filter, project over an update batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expr.evaluate import evaluate_frame, true_rows
from eddyline.expr.frame import Frame
from eddyline.expr.ir import MapStep, Mfp
from eddyline.expr.registry import RowErrors
from eddyline.expr.text_io import sample_rows
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.rowerror import ERR_TYPES

__all__ = ["apply_mfp", "error_batch"]


def apply_mfp(mfp: Mfp, batch: Batch) -> tuple[Batch, Batch | None]:
    """The output updates and, if any row failed, its errs updates (``ERR_TYPES``) at the row's time with its diff.

    A failed row gives no output row, and later steps do not see it.
    """
    frame = Frame(batch.columns, len(batch))
    origin: Int64s | None = None  # input row of each row of the frame, None: itself
    errs: list[Batch] = []
    for step in mfp.steps:
        if isinstance(step, MapStep):
            value = evaluate_frame(step.expr, frame)
            frame.append(value.array)
            keep = None if value.errors is None else np.delete(np.arange(frame.rows), value.errors.rows)
        else:
            value = evaluate_frame(step.predicate, frame)
            truth = true_rows(value, frame.rows)
            keep = None if truth.all() else np.flatnonzero(truth)
        if value.errors is not None:
            errs.append(error_batch(batch, value.errors, origin))
        if keep is not None:
            frame = frame.select(keep)
            origin = keep if origin is None else origin[keep]
    columns = tuple(frame.column(i) for i in mfp.projection)
    times, diffs = (batch.times, batch.diffs) if origin is None else (batch.times[origin], batch.diffs[origin])
    return Batch(mfp.types, columns, times, diffs), Batch.concat(ERR_TYPES, errs) if errs else None


def error_batch(batch: Batch, errors: RowErrors, origin: npt.NDArray[np.int64] | None = None) -> Batch:
    """Errs updates for failed rows of ``batch``; ``origin`` maps the errors' row numbers to rows of the batch."""
    rows = errors.rows if origin is None else origin[errors.rows]
    failed = batch.take(rows)
    texts = (errors.sqlstates, errors.messages, errors.expressions, sample_rows(failed.columns, batch.types, len(rows)))
    columns = tuple(pa.array(column, type=pa.large_string()) for column in texts)
    return Batch(ERR_TYPES, columns, failed.times, failed.diffs)
