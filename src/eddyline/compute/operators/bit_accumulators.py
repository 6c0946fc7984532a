"""bit_and, bit_or, bit_xor of integers: how often each bit is set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.compute.operators.accumulators import Accumulator, Shown, present_weights
from eddyline.compute.operators.values import from_numbers, integers_of
from eddyline.kernels.reduce import add_weights
from eddyline.repr.batch import Int64s
from eddyline.repr.types import Kind, SqlType

__all__ = ["BitAccumulator"]

_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}


class BitAccumulator(Accumulator):
    """State: the count of values that are not NULL, then for each bit the count of values that have it."""

    def __init__(self, result: SqlType, func: str) -> None:
        self._bits = _BITS[result.kind]
        super().__init__(result, plain=1 + self._bits)
        self._func = func

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        out = np.zeros((count, 1 + self._bits), np.int64)
        used = present_weights(args[0], weights)
        values = integers_of(args[0], self.result)
        add_weights(used, segments, 0, out)
        for bit in range(self._bits):
            add_weights(used * ((values >> bit) & 1), segments, 1 + bit, out)
        return out

    def show(self, states: Int64s) -> Shown:
        counts, bits = states[:, :1], states[:, 1:]
        match self._func:
            case "bit_and":
                chosen = bits == counts
            case "bit_or":
                chosen = bits > 0
            case _:
                chosen = bits % 2 == 1
        # The highest bit is the sign: its weight is negative, and the sum wraps to the right value at 64 bits.
        powers = np.left_shift(np.int64(1), np.arange(self._bits, dtype=np.int64))
        powers[-1] = -powers[-1] if self._bits < 64 else powers[-1]
        values = (chosen * powers).sum(axis=1)
        if self.result.kind is not Kind.BIGINT:
            values = values.astype(np.int16 if self.result.kind is Kind.SMALLINT else np.int32)
        return Shown(from_numbers(values, counts[:, 0] > 0, self.result))
