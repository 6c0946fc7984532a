"""Arrays as text, ``{1,NULL,"a b"}``, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.array_cells import cell_width, cells_of
from eddyline.expr.array_layout import MAX_DIMENSIONS, Parts, flattened, has_tails, join_parts, joined, split_parts
from eddyline.expr.registry import Evaluated, RowErrors
from eddyline.expr.rowwise import SLICE_ROWS
from eddyline.repr.types import SqlType, element_type, is_vector

__all__ = ["ReadTexts", "arrays_from_text", "arrays_to_text", "joined_text"]

#: texts as a column of the element type, with the rows on which that fails
ReadTexts: TypeAlias = Callable[[pa.Array], Evaluated]

_TEXT: Final = pa.large_string()
_BLANKS: Final = " \t\n\r\v\f"
_QUOTED: Final = r'(?i)^null$|^$|["\\{},\s\x0b]'
_BOUNDS: Final = re.compile(r"\s*\[\s*([+-]?\d+)\s*(?::\s*([+-]?\d+)\s*)?\]")
_PLAIN: Final = re.compile(r'\{[^"\\{}\s,]+(?:,[^"\\{}\s,]+)*\}')
_SPECIAL: Final = frozenset('{},"\\')


# -- out --------------------------------------------------------------------------------------------------------------


def arrays_to_text(array: pa.Array, sql_type: SqlType, show: Callable[[pa.Array, SqlType], pa.Array]) -> pa.Array:
    """Output text of each array.  ``show``: that of elements.  Cost: linear; a Python step for each array of more
    than one plain dimension."""
    element = element_type(sql_type)
    elements, offsets = flattened(array, element)
    texts = show(elements, element)
    if is_vector(sql_type):
        return joined_text(texts, offsets, " ", array)
    texts = pc.fill_null(_quoted(texts), pa.scalar("NULL", _TEXT))
    inner = joined_text(texts, offsets, ",", array)
    shown = pc.binary_join_element_wise(pa.scalar("{", _TEXT), inner, pa.scalar("}", _TEXT), pa.scalar("", _TEXT))
    tails = has_tails(array)
    if not tails.any():
        return shown
    values = shown.to_pylist()
    for row in np.flatnonzero(tails).tolist():
        parts = split_parts(array[row].as_py(), cell_width(element))
        items = texts.slice(int(offsets[row]), len(parts.cells)).to_pylist()
        values[row] = _bounds_text(parts) + _nested_text(items, parts.lengths)
    return pa.array(values, _TEXT)


def joined_text(texts: pa.Array, offsets: np.ndarray, delimiter: str, rows: pa.Array) -> pa.Array:
    """The texts of each row with ``delimiter`` between them; NULL where ``rows`` is."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts)
    text = pc.binary_join(lists, pa.scalar(delimiter, _TEXT))
    return pc.if_else(rows.is_valid(), text, pa.scalar(None, _TEXT))


def _quoted(texts: pa.Array) -> pa.Array:
    needed = pc.match_substring_regex(texts, _QUOTED)
    if not pc.any(needed).as_py():
        return texts
    inner = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    mark, nothing = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
    return pc.if_else(needed, pc.binary_join_element_wise(mark, inner, mark, nothing), texts)


def _bounds_text(parts: Parts) -> str:
    """``[0:1]=`` unless every dimension counts from 1."""
    if all(lower == 1 for lower in parts.lowers):
        return ""
    pairs = zip(parts.lowers, parts.lengths, strict=True)
    return "".join(f"[{lower}:{lower + length - 1}]" for lower, length in pairs) + "="


def _nested_text(items: Sequence[str], lengths: Sequence[int]) -> str:
    level = list(items)
    for length in reversed(lengths):
        level = ["{" + ",".join(level[i : i + length]) + "}" for i in range(0, len(level), length)]
    return level[0]


# -- in ---------------------------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A text taken apart: its items in row-major order."""

    items: list[str | None]
    lengths: tuple[int, ...]
    lowers: tuple[int, ...]


def arrays_from_text(texts: pa.Array, sql_type: SqlType, read: ReadTexts) -> Evaluated:
    """Each text as an array: 22P02 for one that is none, 2202E for unlike lengths, and the elements' own errors.

    Cost: a Python step for each character that is not in a plain list, then what ``read`` takes.
    """
    parse = _vector if is_vector(sql_type) else parse_array
    reads: list[_Read | None] = []
    failed: dict[int, DatabaseError] = {}
    for start in range(0, len(texts), SLICE_ROWS):
        for text in texts.slice(start, SLICE_ROWS).to_pylist():
            try:
                reads.append(None if text is None else parse(text))
            except DatabaseError as error:
                failed[len(reads)] = error
                reads.append(None)
    counts = np.array([0 if r is None else len(r.items) for r in reads], np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    elements = read(pa.array([item for r in reads if r is not None for item in r.items], _TEXT))
    _keep_first(failed, elements.errors, offsets)
    cells = cells_of(elements.array, element_type(sql_type))
    arrays = joined(cells, offsets, np.array([r is not None for r in reads], np.bool_))
    return Evaluated(_with_tails(arrays, reads, cell_width(element_type(sql_type))), _row_errors(failed))


def _keep_first(failed: dict[int, DatabaseError], errors: RowErrors | None, offsets: np.ndarray) -> None:
    """The first failure of an element of each array, as the array's."""
    if errors is None:
        return
    rows = np.searchsorted(offsets, errors.rows, side="right") - 1
    for row, state, message in zip(rows.tolist(), errors.sqlstates, errors.messages, strict=True):
        failed.setdefault(row, make_error(state, message))


def _row_errors(failed: dict[int, DatabaseError]) -> RowErrors | None:
    if not failed:
        return None
    rows = sorted(failed)
    return RowErrors(
        np.array(rows, np.int64), [failed[r].sqlstate for r in rows], [failed[r].message for r in rows], []
    )


def _with_tails(arrays: pa.Array, reads: Sequence[_Read | None], width: int | None) -> pa.Array:
    """The arrays with the dimensions that were read."""
    odd = [i for i, r in enumerate(reads) if r is not None and r.items and (len(r.lengths) > 1 or r.lowers != (1,))]
    if not odd:
        return arrays
    values = arrays.to_pylist()
    for i in odd:
        found = reads[i]
        assert found is not None
        values[i] = join_parts(Parts(split_parts(values[i], width).cells, found.lengths, found.lowers))
    return pa.array(values, pa.large_binary())


def _malformed(text: str, detail: str) -> DatabaseError:
    return make_error("22P02", f'malformed array literal: "{text}"', detail=detail)


def _vector(text: str) -> _Read:
    items = text.split()
    return _Read(list(items), (len(items),) if items else (), (0,) if items else ())


def parse_array(text: str) -> _Read:
    """The items of an array's text, and its dimensions."""
    if _PLAIN.fullmatch(text):
        found = text[1:-1].split(",")
        return _Read([None if f.upper() == "NULL" else f for f in found], (len(found),), (1,))
    bounds, at = _bounds(text)
    scan = _Scan(text, at)
    scan.array()
    lengths = scan.lengths()
    if not scan.items:
        return _Read([], (), ())
    if not bounds:
        return _Read(scan.items, lengths, (1,) * len(lengths))
    if tuple(upper - lower + 1 for lower, upper in bounds) != lengths:
        raise _malformed(text, "Specified array dimensions do not match array contents.")
    return _Read(scan.items, lengths, tuple(lower for lower, _ in bounds))


def _bounds(text: str) -> tuple[list[tuple[int, int]], int]:
    """``[2:3][1:4]=`` before the items, and where those begin."""
    bounds: list[tuple[int, int]] = []
    at = 0
    while match := _BOUNDS.match(text, at):
        first, last = (1, int(match[1])) if match[2] is None else (int(match[1]), int(match[2]))
        if last < first:
            raise make_error("2202E", "upper bound cannot be less than lower bound")
        if not -(2**31) <= first <= last < 2**31 - 1:
            raise make_error("22003", "array bound is out of integer range")
        bounds.append((first, last))
        at = match.end()
    if not bounds:
        return [], 0
    rest = text[at:].lstrip(_BLANKS)
    if not rest.startswith("="):
        raise _malformed(text, 'Missing "=" after array dimensions.')
    if len(bounds) > MAX_DIMENSIONS:
        raise make_error(
            "54000", f"number of array dimensions ({len(bounds)}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
        )
    return bounds, len(text) - len(rest) + 1


class _Scan:
    """One pass over an array's text."""

    def __init__(self, text: str, at: int) -> None:
        self.items: list[str | None] = []
        self._text = text
        self._at = at
        self._counts: list[int | None] = []  # by depth: how many each list has; None: not known yet
        self._leaf: int | None = None  # the depth at which items stand

    def lengths(self) -> tuple[int, ...]:
        return tuple(c or 0 for c in self._counts)

    def array(self) -> None:
        self._blanks()
        if self._peek() != "{":
            raise self._error('Array value must start with "{" or dimension information.')
        self._list(0)
        self._blanks()
        if self._at < len(self._text):
            raise self._error("Junk after closing right brace.")

    def _error(self, detail: str) -> DatabaseError:
        return _malformed(self._text, detail)

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _blanks(self) -> None:
        while self._peek() and self._peek() in _BLANKS:
            self._at += 1

    def _list(self, depth: int) -> None:
        """From its brace to behind its end."""
        if depth >= MAX_DIMENSIONS:
            raise make_error(
                "54000",
                f"number of array dimensions ({depth + 1}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
            )
        if depth == len(self._counts):
            self._counts.append(None)
        self._at += 1
        count = 0
        self._blanks()
        if self._peek() == "}":
            self._at += 1
        else:
            count = self._members(depth)
        known = self._counts[depth]
        if known is not None and known != count:
            raise self._error("Multidimensional arrays must have sub-arrays with matching dimensions.")
        self._counts[depth] = count

    def _members(self, depth: int) -> int:
        count = 0
        while True:
            self._blanks()
            if self._peek() == "{":
                if self._leaf is not None and self._leaf <= depth:
                    raise self._error('Unexpected "{" character.')
                self._list(depth + 1)
            else:
                if self._leaf is None:
                    self._leaf = depth
                if self._leaf != depth or len(self._counts) > depth + 1:
                    raise self._error("Multidimensional arrays must have sub-arrays with matching dimensions.")
                self.items.append(self._item())
            count += 1
            self._blanks()
            match self._peek():
                case ",":
                    self._at += 1
                case "}":
                    self._at += 1
                    return count
                case "":
                    raise self._error("Unexpected end of input.")
                case other:
                    raise self._error(f'Unexpected "{other}" character.' if other in _SPECIAL else _AFTER_QUOTE)

    def _item(self) -> str | None:
        if self._peek() == '"':
            return self._quoted()
        text, at = self._text, self._at
        parts: list[str] = []
        escaped = False
        kept = 0  # characters that trimming must leave
        while at < len(text) and text[at] not in ",{}":
            if text[at] == '"':
                raise self._error(_AFTER_QUOTE)
            if text[at] == "\\":
                at += 1
                escaped = True
                if at >= len(text):
                    raise self._error("Unexpected end of input.")
            parts.append(text[at])
            at += 1
            if parts[-1] not in _BLANKS or text[at - 2 : at - 1] == "\\":
                kept = len(parts)
        self._at = at
        item = "".join(parts[:kept])
        if not item:
            shown = self._peek()
            raise self._error(f'Unexpected "{shown}" character.' if shown else "Unexpected end of input.")
        return None if not escaped and item.upper() == "NULL" else item

    def _quoted(self) -> str:
        text, at = self._text, self._at + 1
        parts: list[str] = []
        while at < len(text) and text[at] != '"':
            if text[at] == "\\":
                at += 1
                if at >= len(text):
                    break
            parts.append(text[at])
            at += 1
        if at >= len(text):
            raise self._error("Unexpected end of input.")
        self._at = at + 1
        return "".join(parts)


_AFTER_QUOTE: Final = "Unexpected array element."
