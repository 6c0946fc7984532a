"""Finding and replacing fixed strings: position, strpos, starts_with, replace, split_part, translate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.calendar import Int64s
from eddyline.expr.constants import per_constant
from eddyline.expr.datetime_columns import integers
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements
from eddyline.expr.rowwise import map_rows
from eddyline.expr.text_functions import MAX_BYTES
from eddyline.expr.text_slices import Characters, offsets_of
from eddyline.repr.types import BOOLEAN, INTEGER, TEXT, Kind, SqlType

__all__: list[str] = []

K = Kind
_TEXT: Final = pa.large_string()


@implements("strpos")
def _strpos(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """1-based character position of the second argument in the first, 0 if it is not there."""

    def compute(needle: str, others: Sequence[pa.Array]) -> Evaluated:
        text = others[0]
        found = integers(pc.find_substring(text, needle))
        characters = Characters(text)
        position = offsets_of(text)[:-1] + np.maximum(found, 0)
        index = np.where(found < 0, 0, characters.character_index(position) + 1)
        return Evaluated(pa.array(index.astype(np.int32)))

    return per_constant(args, 1, pa.int32(), rows, compute, by_row=lambda text, needle: text.find(needle) + 1).array


@implements("starts_with")
def _starts_with(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    def compute(prefix: str, others: Sequence[pa.Array]) -> Evaluated:
        return Evaluated(pc.starts_with(others[0], prefix))

    return per_constant(args, 1, pa.bool_(), rows, compute, by_row=str.startswith).array


@implements("replace", fallible=True)
def _replace(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    old, new = args.constant(1), args.constant(2)
    if old is not None and new is not None and old.is_valid and new.is_valid:
        return _replace_constant(args[0], old.as_py(), new.as_py())

    def replaced(text: str, before: str, after: str) -> str:
        return text.replace(before, after) if before else text

    return map_rows([args[0], args[1], args[2]], replaced, _TEXT)


def _replace_constant(text: pa.Array, old: str, new: str) -> Evaluated:
    if not old:
        return Evaluated(text)
    growth = len(new.encode()) - len(old.encode())
    errors = None
    if growth > 0:
        lengths = integers(pc.binary_length(text)) + integers(pc.count_substring(text, old)) * growth
        too_long = lengths > MAX_BYTES
        errors = failures(too_long, "54000", "out of memory")
        if errors is not None:
            text = pc.if_else(pa.array(~too_long), text, pa.scalar("", _TEXT))
    return Evaluated(pc.replace_substring(text, old, new), errors)


@implements("split_part", fallible=True)
def _split_part(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """Field ``n`` (1-based; negative: from the end) of text split at a string; "" past the ends."""
    number = integers(args[2])

    def compute(delimiter: str, others: Sequence[pa.Array]) -> Evaluated:
        text, numbers = others
        return Evaluated(_fields(text, delimiter, integers(numbers)))

    parts = per_constant(args, 1, _TEXT, rows, compute, by_row=_one_field)
    return Evaluated(parts.array, failures(number == 0, "22023", "field position must not be zero"))


def _one_field(text: str, delimiter: str, number: int) -> str:
    fields = text.split(delimiter) if delimiter else [text]
    index = number - 1 if number > 0 else number + len(fields)
    return fields[index] if 0 <= index < len(fields) and number else ""


def _fields(text: pa.Array, delimiter: str, number: Int64s) -> pa.Array:
    rows = len(text)
    if text.null_count:
        text = pc.fill_null(text, "")
    if delimiter:
        pieces = pc.split_pattern(text, delimiter)
        offsets = np.asarray(pieces.offsets).astype(np.int64)
        flat = pieces.values
    else:
        offsets, flat = np.arange(rows + 1), text
    count = np.diff(offsets)
    index = np.where(number > 0, number - 1, count + number)
    inside = (index >= 0) & (index < count)
    at = pa.array(np.where(inside, offsets[:-1] + index, 0), mask=~inside)
    return pc.fill_null(flat.take(at), "")


@implements("translate")
def _translate(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """Characters of the second argument become those at the same place of the third, or vanish."""

    def translated(text: str, before: str, after: str) -> str:
        table: dict[int, str | None] = {}
        for place, character in enumerate(before):
            table.setdefault(ord(character), after[place] if place < len(after) else None)
        return text.translate(table)

    return map_rows([args[0], args[1], args[2]], translated, _TEXT).array


declare(
    Overload("strpos", (K.TEXT, K.TEXT), INTEGER, "strpos"),
    Overload("position", (K.TEXT, K.TEXT), INTEGER, "strpos"),
    Overload("starts_with", (K.TEXT, K.TEXT), BOOLEAN, "starts_with"),
    Overload("^@", (K.TEXT, K.TEXT), BOOLEAN, "starts_with"),
    Overload("replace", (K.TEXT, K.TEXT, K.TEXT), TEXT, "replace"),
    Overload("split_part", (K.TEXT, K.TEXT, K.INTEGER), TEXT, "split_part"),
    Overload("translate", (K.TEXT, K.TEXT, K.TEXT), TEXT, "translate"),
)
