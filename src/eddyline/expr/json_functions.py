"""JSON made of values, as PostgreSQL writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.array_cells import cell_width
from eddyline.expr.array_layout import flattened, split_parts
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements, merge_errors
from eddyline.expr.rowwise import SLICE_ROWS
from eddyline.expr.text_output import padded, text_of
from eddyline.repr.types import JSON, Kind, SqlType, element_type, is_array

__all__ = ["json_texts"]

K = Kind
_TEXT: Final = pa.large_string()
_NUMBERS: Final = (K.SMALLINT, K.INTEGER, K.BIGINT, K.NUMERIC, K.REAL, K.DOUBLE)
_TIMES: Final = (K.TIMESTAMP, K.TIMESTAMPTZ)
_NOT_FINITE: Final = "^(NaN|-?Infinity)$"


def json_texts(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """Each value as JSON: numbers and truth values bare, arrays as arrays, all else as strings; NULL as ``null``."""
    null = pa.scalar("null", _TEXT)
    if is_array(sql_type):
        return _lists(array, sql_type).fill_null(null)
    if sql_type.kind is K.BOOLEAN:
        return pc.if_else(array, pa.scalar("true", _TEXT), pa.scalar("false", _TEXT)).fill_null(null)
    text = padded(text_of(array, sql_type), sql_type)
    if sql_type.kind is K.JSON:
        return text.fill_null(null)
    if sql_type.kind in _NUMBERS:
        odd = pc.match_substring_regex(text, _NOT_FINITE)
        return pc.if_else(odd, _strings(text), text).fill_null(null)
    if sql_type.kind in _TIMES:
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
        if sql_type.kind is K.TIMESTAMPTZ:  # the offset has its minutes
            text = pc.replace_substring_regex(text, r"([+-]\d\d)$", r"\1:00")
    return _strings(text).fill_null(null)


def _strings(text: pa.Array) -> pa.Array:
    """Texts as JSON strings.  Cost: a Python step for each value."""
    pieces: list[pa.Array] = [pa.array([], _TEXT)]
    for start in range(0, len(text), SLICE_ROWS):
        values = text.slice(start, SLICE_ROWS).to_pylist()
        pieces.append(pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in values], _TEXT))
    return pa.concat_arrays(pieces)


def _lists(array: pa.Array, sql_type: SqlType) -> pa.Array:
    element = element_type(sql_type)
    elements, offsets = flattened(array, element)
    texts = json_texts(elements, element).to_pylist()
    starts = offsets.tolist()
    values: list[str | None] = []
    for row, value in enumerate(array.to_pylist()):
        lengths = () if value is None else split_parts(value, cell_width(element)).lengths
        items = texts[starts[row] : starts[row + 1]]
        for length in reversed(lengths):
            items = ["[" + ",".join(items[i : i + length]) + "]" for i in range(0, len(items), length)]
        values.append(None if value is None else items[0] if lengths else "[]")
    return pa.array(values, _TEXT)


@implements("json_build_object", strict=False, fallible=True)
def json_build_object(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """``{"a" : 1, "b" : null}`` of keys and values in turn; 22023 for a NULL key, or a key without a value."""
    if len(args) % 2:
        everywhere = np.ones(rows, np.bool_)
        message = "argument list must have even number of elements"
        return Evaluated(pa.nulls(rows, _TEXT), failures(everywhere, "22023", message))
    errors = []
    pieces: list[Any] = []
    for at in range(0, len(args), 2):
        key = padded(text_of(args[at], types[at]), types[at])
        missing = key.is_null().to_numpy(zero_copy_only=False)
        errors.append(failures(missing, "22023", f"argument {at + 1}: key must not be null"))
        colon = pa.scalar(" : ", _TEXT)
        pair = pc.binary_join_element_wise(_strings(key), json_texts(args[at + 1], types[at + 1]), colon)
        pieces.append(pair)
    inner = pc.binary_join_element_wise(*pieces, pa.scalar(", ", _TEXT)) if pieces else pa.repeat("", rows).cast(_TEXT)
    braces = (pa.scalar("{", _TEXT), inner, pa.scalar("}", _TEXT), pa.scalar("", _TEXT))
    return Evaluated(pc.binary_join_element_wise(*braces), merge_errors(*errors))


declare(Overload("json_build_object", (), JSON, "json_build_object", variadic=K.UNKNOWN))
