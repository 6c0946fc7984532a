"""bytea: ||, length, octet_length, substring, position, md5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.constants import per_constant
from eddyline.expr.datetime_columns import integers
from eddyline.expr.layout import empty_scalar
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements
from eddyline.expr.text_functions import MAX_BYTES
from eddyline.expr.text_slices import byte_ranges, offsets_of
from eddyline.repr.types import BYTEA, INTEGER, TEXT, Kind, SqlType

__all__: list[str] = []

K = Kind
_EMPTY: Final = empty_scalar(pa.large_binary())


@implements("bytea_concat", fallible=True)
def _concat(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    left, right = args[0], args[1]
    too_long = integers(pc.binary_length(left)) + integers(pc.binary_length(right)) > MAX_BYTES
    if too_long.any():
        left = pc.if_else(pa.array(~too_long), left, _EMPTY)
    return Evaluated(pc.binary_join_element_wise(left, right, _EMPTY), failures(too_long, "54000", "out of memory"))


@implements("bytea_substring", fallible=True)
def _substring(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    offsets = offsets_of(args[0])
    size = np.diff(offsets)
    start = integers(args[1]) - 1
    count = integers(args[2]) if len(args) > 2 else None
    begin = np.clip(start, 0, size)
    end = size if count is None else np.clip(start + count, begin, size)
    errors = None if count is None else failures(count < 0, "22011", "negative substring length not allowed")
    return Evaluated(byte_ranges(args[0], offsets[:-1] + begin, offsets[:-1] + end), errors)


@implements("bytea_position")
def _position(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """1-based byte position of the second argument in the first, 0 if it is not there."""

    def compute(needle: bytes, others: Sequence[pa.Array]) -> Evaluated:
        return Evaluated(pc.cast(pc.add(pc.find_substring(others[0], needle), 1), pa.int32()))

    return per_constant(args, 1, pa.int32(), rows, compute, by_row=lambda data, needle: data.find(needle) + 1).array


declare(
    Overload("||", (K.BYTEA, K.BYTEA), BYTEA, "bytea_concat"),
    Overload("length", (K.BYTEA,), INTEGER, "octet_length"),
    Overload("octet_length", (K.BYTEA,), INTEGER, "octet_length"),
    Overload("bit_length", (K.BYTEA,), INTEGER, "bit_length"),
    Overload("md5", (K.BYTEA,), TEXT, "md5"),
    Overload("position", (K.BYTEA, K.BYTEA), INTEGER, "bytea_position"),
    *(
        Overload(name, (K.BYTEA, K.INTEGER, K.INTEGER)[:count], BYTEA, "bytea_substring")
        for name in ("substring", "substr")
        for count in (2, 3)
    ),
)
