"""Rows that the plan itself holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.stream import Output
from eddyline.expr.literals import literal_scalar
from eddyline.plan.dataflow import BatchSource, ConstantSource
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY
from eddyline.repr.types import arrow_type

__all__ = ["ConstantOperator"]


class ConstantOperator:
    """The node's rows at as_of, on the first worker; complete at once."""

    def __init__(self, name: str, node: ConstantSource | BatchSource, output: Output, context: OperatorContext) -> None:
        self.name = name
        self._node = node
        self._output = output
        self._context = context

    def step(self) -> bool:
        if self._output.frontier == EMPTY:
            return False
        if self._context.worker == 0:
            rows = self._rows()
            if len(rows):
                self._output.send(rows)
        return self._output.advance(EMPTY)

    def pending(self) -> bool:
        return self._output.frontier != EMPTY

    def close(self) -> None:
        """Nothing is held."""

    def _rows(self) -> Batch:
        node, at = self._node, self._context.as_of
        if isinstance(node, ConstantSource):
            columns = tuple(_column(node, i) for i in range(len(node.types)))
            return Batch.at(node.types, columns, len(node.rows), at)
        assert isinstance(node.rows, Batch), "rows are decoded with their message"
        return Batch(node.types, node.rows.columns, np.full(len(node.rows), at, np.int64), node.rows.diffs)


def _column(node: ConstantSource, index: int) -> pa.Array:
    sql_type = node.types[index]
    return pa.array([literal_scalar(row[index], sql_type) for row in node.rows], arrow_type(sql_type))
