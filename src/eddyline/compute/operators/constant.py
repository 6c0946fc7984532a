"""Literal rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.stream import Output
from eddyline.expr.literals import literal_scalar
from eddyline.plan.dataflow import ConstantSource
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY
from eddyline.repr.types import arrow_type

__all__ = ["ConstantOperator"]


class ConstantOperator:
    """The node's rows at as_of, on the first worker; complete at once."""

    def __init__(self, name: str, node: ConstantSource, output: Output, context: OperatorContext) -> None:
        self.name = name
        self._node = node
        self._output = output
        self._context = context

    def step(self) -> bool:
        if self._output.frontier == EMPTY:
            return False
        rows = len(self._node.rows)
        if rows and self._context.worker == 0:
            columns = tuple(self._column(i) for i in range(len(self._node.types)))
            times = np.full(rows, self._context.as_of, np.int64)
            self._output.send(Batch(self._node.types, columns, times, np.ones(rows, np.int64)))
        return self._output.advance(EMPTY)

    def pending(self) -> bool:
        return self._output.frontier != EMPTY

    def close(self) -> None:
        """Nothing is held."""

    def _column(self, index: int) -> pa.Array:
        sql_type = self._node.types[index]
        scalars = [literal_scalar(row[index], sql_type) for row in self._node.rows]
        return pa.array(scalars, arrow_type(sql_type))
