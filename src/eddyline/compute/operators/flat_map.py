"""Table functions over the rows of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.mfp import send_through
from eddyline.compute.operators.series import series_of
from eddyline.compute.operators.stateless import pass_errors
from eddyline.compute.operators.unnest import unnested
from eddyline.compute.stream import Output, Stream
from eddyline.errors import InternalError
from eddyline.expr.describe import describe, written
from eddyline.expr.ir import MapStep, Mfp
from eddyline.expr.mfp import apply_mfp, error_batch
from eddyline.expr.registry import RowErrors
from eddyline.plan.dataflow import FlatMap
from eddyline.repr.batch import Batch
from eddyline.repr.types import BIGINT, SqlType, element_type

__all__ = ["FlatMapOperator"]


_FUNCTIONS: Final = {"generate_series": series_of, "unnest": unnested}


def _made(func: str, types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    """The types of the columns that a function appends, by those of its arguments."""
    if func == "unnest":
        return (*(element_type(t) for t in types), BIGINT)
    return (types[0],)


class FlatMapOperator:
    """Each input row as often as its function gives rows, their columns appended; stateless.

    A batch's rows are produced piece by piece over as many activations as it takes.
    """

    def __init__(self, name: str, input: Stream, node: FlatMap, output: Output, context: OperatorContext) -> None:
        if node.func not in _FUNCTIONS:
            raise InternalError(f"table function {node.func} is not known")
        self._pieces = _FUNCTIONS[node.func]
        self.name = name
        self._input = input
        self._node = node
        self._output = output
        self._context = context
        #: the pieces of the batch under way
        self._work: Iterator[int] | None = None

    def step(self) -> bool:
        moved = pass_errors(self._input, self._output)
        rows = 0
        while rows < self._context.budget_rows:
            if self._work is None:
                if not self._input.updates:
                    break
                self._work = self._expand(self._input.updates.popleft())
            moved = True
            done = next(self._work, None)
            if done is None:
                self._work = None
            else:
                rows += done
        if self._work is None and self._input.drained():
            moved |= self._output.advance(self._input.frontier)
        return moved

    def pending(self) -> bool:
        return self._work is not None or not self._input.drained() or self._input.frontier > self._output.frontier

    def close(self) -> None:
        self._work = None

    def _expand(self, batch: Batch) -> Iterator[int]:
        budget = self._context.budget_rows
        for start in range(0, len(batch), budget):
            part, errors = self._with_arguments(batch.slice(start, min(start + budget, len(batch))))
            self._output.send_errors(errors)
            width = len(batch.types)
            args = part.columns[width:]
            source = Batch(batch.types, part.columns[:width], part.times, part.diffs)
            pieces, failed = self._pieces(args, part.types[width:], budget)
            if failed is not None:
                self._output.send_errors(
                    error_batch(source, self._named(failed), names=self._node.names, view=self._node.view)
                )
            types = (*batch.types, *_made(self._node.func, part.types[width:]))
            for piece in pieces:
                rows = source.take(piece.rows)
                out = Batch(types, (*rows.columns, *piece.columns), rows.times, rows.diffs)
                send_through(self._node.mfp, out, self._output)
                yield len(out)
            yield len(part)

    def _with_arguments(self, batch: Batch) -> tuple[Batch, Batch | None]:
        """The batch with the function's arguments appended, less the rows on which one fails."""
        width = len(batch.types)
        args = self._node.args
        projection = tuple(np.arange(width + len(args)).tolist())
        types = (*batch.types, *(arg.type for arg in args))
        return apply_mfp(
            Mfp(tuple(MapStep(arg) for arg in args), projection, types, self._node.names, self._node.view), batch
        )

    def _named(self, failed: RowErrors) -> RowErrors:
        names = self._node.names
        args = [written(arg, names) if names else describe(arg) for arg in self._node.args]
        return failed._replace(expressions=[f"{self._node.func}({', '.join(args)})"] * len(failed.rows))
