"""Map, filter and project over a stream."""

from __future__ import annotations

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.stateless import pass_errors
from eddyline.compute.stream import Output, Stream
from eddyline.expr.mfp import apply_mfp
from eddyline.plan.dataflow import Mfp
from eddyline.repr.batch import Batch

__all__ = ["MfpOperator", "send_through"]


def send_through(mfp: Mfp | None, batch: Batch, output: Output) -> None:
    """``mfp`` over ``batch``, rows and errors to ``output``; None passes the batch as it is."""
    if mfp is None:
        output.send(batch)
        return
    rows, errors = apply_mfp(mfp, batch)
    output.send(rows)
    output.send_errors(errors)


class MfpOperator:
    """Evaluates each update on arrival; a failing row becomes an error update with its time and diff."""

    def __init__(self, name: str, input: Stream, mfp: Mfp, output: Output, context: OperatorContext) -> None:
        self.name = name
        self._input = input
        self._mfp = mfp
        self._output = output
        self._budget_rows = context.budget_rows

    def step(self) -> bool:
        moved = pass_errors(self._input, self._output)
        rows = 0
        while self._input.updates and rows < self._budget_rows:
            batch = self._input.updates.popleft()
            if len(batch) > self._budget_rows:
                self._input.updates.appendleft(batch.slice(self._budget_rows, len(batch)))
                batch = batch.slice(0, self._budget_rows)
            rows += len(batch)
            send_through(self._mfp, batch, self._output)
            moved = True
        if self._input.drained():
            moved |= self._output.advance(self._input.frontier)
        return moved

    def pending(self) -> bool:
        source = self._input
        return bool(source.updates or source.errors) or source.frontier > self._output.frontier

    def close(self) -> None:
        """Nothing is held."""
