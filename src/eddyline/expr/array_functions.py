"""Functions and operators of arrays, one overload for each kind of array.

Elements are compared and moved as cells (``array_cells``), equal where their values are.  What subscripts, lengths,
``ARRAY[…]`` and comparisons with all elements need is done by columns; what changes single arrays takes a Python step
per distinct row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.array_cells import NULL_MARK, CellColumn, cell_of, cell_width, cells_of, elements_of
from eddyline.expr.array_layout import (
    EMPTY,
    Parts,
    arrays_of,
    flattened,
    has_tails,
    join_parts,
    plain,
    split_parts,
    taken,
)
from eddyline.expr.array_text import joined_text
from eddyline.expr.registry import (
    Arguments,
    Evaluated,
    Function,
    Overload,
    RowErrors,
    declare,
    failures,
    implementation,
    implements,
)
from eddyline.expr.rowwise import SLICE_ROWS
from eddyline.expr.text_output import padded, text_of
from eddyline.repr.types import ARRAY_KINDS, BOOLEAN, INTEGER, TEXT, Kind, SqlType, element_type

__all__ = ["QUANTIFIED"]

K = Kind
Int64s = npt.NDArray[np.int64]
_BINARY: Final = pa.large_binary()
_INT: Final = pa.int32()
_TEXT: Final = pa.large_string()
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
#: operators that ANY and ALL take, by implementation
QUANTIFIED: Final = (
    *_COMPARISONS, "like", "not_like", "ilike", "not_ilike", "regex_match", "regex_imatch",
    "regex_not_match", "regex_not_imatch",
)  # fmt: skip


def _widths(sql_type: SqlType) -> int | None:
    return cell_width(element_type(sql_type))


def _cell_array(column: pa.Array, element: SqlType) -> pa.Array:
    """Elements as cells; a NULL's cell is not NULL."""
    cells = cells_of(column, element)
    buffers = [None, pa.py_buffer(cells.offsets), pa.py_buffer(cells.data)]
    return pa.Array.from_buffers(_BINARY, len(column), buffers)


def _each_row(columns: Sequence[pa.Array], function: Callable[..., Any], layout: pa.DataType) -> Evaluated:
    """``function`` of each distinct row's values, NULLs as None; DatabaseErrors become row errors."""
    known: dict[tuple[Any, ...], Any] = {}
    failed: list[tuple[int, DatabaseError]] = []
    pieces: list[pa.Array] = [pa.array([], layout)]
    for start in range(0, len(columns[0]), SLICE_ROWS):
        values: list[Any] = []
        slices = [c.slice(start, SLICE_ROWS).to_pylist() for c in columns]
        for row, arguments in enumerate(zip(*slices, strict=True), start):
            if arguments not in known:
                known[arguments] = _attempt(function, arguments)
            value = known[arguments]
            if isinstance(value, DatabaseError):
                failed.append((row, value))
                value = None
            values.append(value)
        pieces.append(pa.array(values, layout))
    errors = None
    if failed:
        rows = np.array([row for row, _ in failed], np.int64)
        errors = RowErrors(rows, [e.sqlstate for _, e in failed], [e.message for _, e in failed], [])
    return Evaluated(pa.concat_arrays(pieces), errors)


def _attempt(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except DatabaseError as error:
        return error


# -- making arrays ----------------------------------------------------------------------------------------------------


@implements("make_array", strict=False)
def make_array(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """``ARRAY[a, b, …]`` of values of one type; of none ``{}``."""
    count = len(args)
    if not count:
        return pa.repeat(pa.scalar(EMPTY, _BINARY), rows)
    both = pa.concat_arrays([args[i] for i in range(count)])
    place = np.arange(rows * count)
    elements = both.take(pa.array(place % count * rows + place // count))
    return arrays_of(elements, np.arange(rows + 1, dtype=np.int64) * count, types[0])


def _unlike() -> DatabaseError:
    return make_error("2202E", "multidimensional arrays must have array expressions with matching dimensions")


@implements("stack_arrays", strict=False, fallible=True)
def stack_arrays(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """``ARRAY[a, b, …]`` of arrays: one dimension more.  A NULL among them is an empty one."""
    width = _widths(result)

    def stack(*arrays: bytes | None) -> bytes:
        parts = [split_parts(EMPTY if a is None else a, width) for a in arrays]
        if not any(p.cells for p in parts):
            return EMPTY
        first = parts[0]
        if any(p[1:] != first[1:] for p in parts):
            raise _unlike()
        cells = [cell for p in parts for cell in p.cells]
        return join_parts(Parts(cells, (len(parts), *first.lengths), (1, *first.lowers)))

    return _each_row([args[i] for i in range(len(args))], stack, _BINARY)


def _one_more(array: bytes | None, cell: bytes, width: int | None, *, front: bool) -> bytes:
    cells, lengths, lowers = split_parts(EMPTY if array is None else array, width)
    if len(lengths) > 1:
        raise make_error("22000", "argument must be empty or one-dimensional array")
    lower = lowers[0] if lowers else 1
    if front:
        return join_parts(Parts([cell, *cells], (len(cells) + 1,), (lower,)))
    return join_parts(Parts([*cells, cell], (len(cells) + 1,), (lower,)))


@implements("array_append", strict=False, fallible=True)
def array_append(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    width = _widths(result)
    columns = [args[0], _cell_array(args[1], types[1])]
    return _each_row(columns, lambda array, cell: _one_more(array, cell, width, front=False), _BINARY)


@implements("array_prepend", strict=False, fallible=True)
def array_prepend(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    width = _widths(result)
    columns = [_cell_array(args[0], types[0]), args[1]]
    return _each_row(columns, lambda cell, array: _one_more(array, cell, width, front=True), _BINARY)


@implements("array_cat", strict=False, fallible=True)
def array_cat(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    width = _widths(result)
    return _each_row([args[0], args[1]], lambda a, b: _concatenated(a, b, width), _BINARY)


def _concatenated(first: bytes | None, second: bytes | None, width: int | None) -> bytes | None:
    """A NULL or empty array adds nothing; one of a dimension less is one more row."""
    if first is None or second is None:
        return second if first is None else first
    a, b = split_parts(first, width), split_parts(second, width)
    if not a.cells or not b.cells:
        return first if a.cells else second
    cells = a.cells + b.cells
    deep, flat = (a, b) if len(a.lengths) >= len(b.lengths) else (b, a)
    if len(a.lengths) == len(b.lengths):
        if a.lengths[1:] != b.lengths[1:] or a.lowers[1:] != b.lowers[1:]:
            raise make_error("2202E", "cannot concatenate incompatible arrays")
        return join_parts(Parts(cells, (a.lengths[0] + b.lengths[0], *a.lengths[1:]), a.lowers))
    if deep.lengths[1:] != flat.lengths or deep.lowers[1:] != flat.lowers:
        raise make_error("2202E", "cannot concatenate incompatible arrays")
    return join_parts(Parts(cells, (deep.lengths[0] + 1, *deep.lengths[1:]), deep.lowers))


# -- dimensions -------------------------------------------------------------------------------------------------------


def _dimension(name: str, found: Callable[[Parts, int], int | None]) -> None:
    @implements(name)
    def dimension(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        width = _widths(types[0])
        at = args.constant(1)
        if at is not None and at.is_valid and at.as_py() == 1 and not has_tails(args[0]).any():
            return _of_plain(args[0], types[0], name)

        def one(array: bytes | None, number: int | None) -> int | None:
            if array is None or number is None:
                return None
            parts = split_parts(array, width)
            return found(parts, number - 1) if 1 <= number <= len(parts.lengths) else None

        return _each_row([args[0], args[1]], one, _INT).array

    del dimension


def _of_plain(array: pa.Array, sql_type: SqlType, name: str) -> pa.Array:
    """Length, or first or last subscript, of arrays that count from 1: NULL of empty ones."""
    counts = np.diff(taken(array, element_type(sql_type)).offsets)
    values = np.ones(len(counts)) if name == "array_lower" else counts
    return pa.array(values.astype(np.int32), _INT, mask=counts == 0)


_dimension("array_length", lambda parts, i: parts.lengths[i])
_dimension("array_lower", lambda parts, i: parts.lowers[i])
_dimension("array_upper", lambda parts, i: parts.lowers[i] + parts.lengths[i] - 1)


@implements("cardinality")
def cardinality(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pa.array(np.diff(taken(args[0], element_type(types[0])).offsets).astype(np.int32))


def _of_parts(name: str, layout: pa.DataType, found: Callable[[Parts], Any]) -> None:
    @implements(name)
    def one(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        width = _widths(types[0])
        return _each_row([args[0]], lambda a: None if a is None else found(split_parts(a, width)), layout).array

    del one


def _dims_text(parts: Parts) -> str | None:
    pairs = zip(parts.lowers, parts.lengths, strict=True)
    return "".join(f"[{low}:{low + length - 1}]" for low, length in pairs) or None


_of_parts("array_ndims", _INT, lambda parts: len(parts.lengths) or None)
_of_parts("array_dims", _TEXT, _dims_text)


@implements("array_subscripts", strict=False)
def array_subscripts(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """The subscripts of a dimension as an integer array: what generate_subscripts gives one by one."""
    width = _widths(types[0])

    def found(array: bytes | None, number: int | None, backwards: bool | None) -> bytes:
        if array is None or number is None or backwards is None:
            return EMPTY
        parts = split_parts(array, width)
        if not 1 <= number <= len(parts.lengths):
            return EMPTY
        low = parts.lowers[number - 1]
        values = list(range(low, low + parts.lengths[number - 1]))
        return plain([cell_of(v, INTEGER) for v in (reversed(values) if backwards else values)])

    return _each_row([args[0], args[1], args[2]], found, _BINARY).array


# -- elements and slices ----------------------------------------------------------------------------------------------


@implements("array_element")
def array_element(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """``array[i][j]``; NULL outside of it, or with another number of subscripts than it has dimensions."""
    element = element_type(types[0])
    if len(args) == 2 and not has_tails(args[0]).any():
        return _plain_element(args[0], args[1], element)
    width = cell_width(element)

    def found(array: bytes | None, *subscripts: int | None) -> bytes | None:
        if array is None or None in subscripts:
            return None
        parts = split_parts(array, width)
        if len(parts.lengths) != len(subscripts):
            return None
        at = 0
        for subscript, length, lower in zip(subscripts, parts.lengths, parts.lowers, strict=True):
            assert subscript is not None
            if not lower <= subscript < lower + length:
                return None
            at = at * length + subscript - lower
        return parts.cells[at]

    nothing = cell_of(None, element)
    found_cells = _each_row([args[i] for i in range(len(args))], found, _BINARY).array.fill_null(nothing)
    return elements_of(_cell_column(found_cells), element)


def _cell_column(cells: pa.Array) -> CellColumn:
    _, offsets, data = cells.buffers()
    places = np.frombuffer(offsets, np.int64, len(cells) + 1, cells.offset * 8) if len(cells) else np.zeros(1, np.int64)
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return CellColumn(octets[int(places[0]) : int(places[-1])], places - places[0])


def _plain_element(array: pa.Array, subscripts: pa.Array, element: SqlType) -> pa.Array:
    elements, offsets = flattened(array, element)
    wanted = np.asarray(pc.fill_null(subscripts, 0)).astype(np.int64)
    inside = (wanted >= 1) & (wanted <= np.diff(offsets))
    place = pa.array(np.where(inside, offsets[:-1] + wanted - 1, 0), mask=~inside)
    return elements.take(place)


@implements("array_slice", strict=False)
def array_slice(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """``array[a:b][c:d]``.  Arguments: the array, then for each dimension its first and last subscript and whether each
    was left out (NULL stands for that there)."""
    width = _widths(types[0])

    def found(array: bytes | None, *bounds: Any) -> bytes | None:
        if array is None:
            return None
        pairs = [bounds[i : i + 4] for i in range(0, len(bounds), 4)]
        if any(value is None and not left_out for pair in pairs for value, left_out in (pair[:2], pair[2:])):
            return None
        return _sliced(split_parts(array, width), pairs)

    return _each_row([args[i] for i in range(len(args))], found, _BINARY).array


def _sliced(parts: Parts, pairs: Sequence[Sequence[Any]]) -> bytes:
    """Dimensions without bounds are taken whole; the slice counts from 1."""
    if len(pairs) > len(parts.lengths):
        return EMPTY
    starts, counts = [], []
    for i, (length, lower) in enumerate(zip(parts.lengths, parts.lowers, strict=True)):
        bounds: Sequence[Any] = pairs[i] if i < len(pairs) else (None, True, None, True)
        low, open_low, high, open_high = bounds
        first = lower if open_low else max(low, lower)
        last = lower + length - 1 if open_high else min(high, lower + length - 1)
        if first > last:
            return EMPTY
        starts.append(first - lower)
        counts.append(last - first + 1)
    positions = np.arange(len(parts.cells)).reshape(parts.lengths)
    chosen = positions[tuple(slice(s, s + c) for s, c in zip(starts, counts, strict=True))].reshape(-1).tolist()
    return join_parts(Parts([parts.cells[i] for i in chosen], tuple(counts), (1,) * len(counts)))


@implements("trim_array", fallible=True)
def trim_array(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    width = _widths(types[0])

    def trimmed(array: bytes | None, count: int | None) -> bytes | None:
        if array is None or count is None:
            return None
        parts = split_parts(array, width)
        length = parts.lengths[0] if parts.lengths else 0
        if not 0 <= count <= length:
            raise make_error("2202E", f"number of elements to trim must be between 0 and {length}")
        if not length:
            return EMPTY
        return _sliced(parts, [(None, True, parts.lowers[0] + length - 1 - count, False)])

    return _each_row([args[0], args[1]], trimmed, _BINARY)


# -- searching --------------------------------------------------------------------------------------------------------


def _flat(array: bytes, width: int | None) -> Parts:
    parts = split_parts(array, width)
    if len(parts.lengths) > 1:
        raise make_error("0A000", "searching for elements in multidimensional arrays is not supported")
    return parts


@implements("array_position", strict=False, fallible=True)
def array_position(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The subscript of the first element that equals a value (NULL: of the first NULL), from a subscript on."""
    width = _widths(types[0])

    def found(array: bytes | None, cell: bytes, start: int | None = 1) -> int | None:
        if array is None:
            return None
        parts = _flat(array, width)
        if start is None:
            raise make_error("22004", "initial position must not be null")
        lower = parts.lowers[0] if parts.lowers else 1
        skipped = max(start - lower, 0) if len(args) > 2 else 0
        rest = parts.cells[skipped:]
        return rest.index(cell) + skipped + lower if cell in rest else None

    columns = [args[0], _cell_array(args[1], types[1]), *([args[2]] if len(args) > 2 else [])]
    return _each_row(columns, found, _INT)


@implements("array_positions", strict=False, fallible=True)
def array_positions(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    width = _widths(types[0])

    def found(array: bytes | None, cell: bytes) -> bytes | None:
        if array is None:
            return None
        parts = _flat(array, width)
        lower = parts.lowers[0] if parts.lowers else 1
        return plain([cell_of(i, INTEGER) for i, c in enumerate(parts.cells, lower) if c == cell])

    return _each_row([args[0], _cell_array(args[1], types[1])], found, _BINARY)


@implements("array_remove", strict=False, fallible=True)
def array_remove(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    width = _widths(types[0])

    def left(array: bytes | None, cell: bytes) -> bytes | None:
        if array is None:
            return None
        parts = split_parts(array, width)
        if len(parts.lengths) > 1:
            raise make_error("0A000", "removing elements from multidimensional arrays is not supported")
        cells = [c for c in parts.cells if c != cell]
        return join_parts(Parts(cells, (len(cells),), parts.lowers))

    return _each_row([args[0], _cell_array(args[1], types[1])], left, _BINARY)


@implements("array_replace", strict=False)
def array_replace(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    width = _widths(types[0])

    def replaced(array: bytes | None, old: bytes, new: bytes) -> bytes | None:
        if array is None:
            return None
        parts = split_parts(array, width)
        return join_parts(parts._replace(cells=[new if c == old else c for c in parts.cells]))

    columns = [args[0], _cell_array(args[1], types[1]), _cell_array(args[2], types[2])]
    return _each_row(columns, replaced, _BINARY).array


def _sets(name: str, holds: Callable[[set[bytes], set[bytes]], bool]) -> None:
    """A NULL element equals nothing."""

    @implements(name)
    def test(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        width = _widths(types[0])

        def one(first: bytes | None, second: bytes | None) -> bool | None:
            if first is None or second is None:
                return None
            return holds(set(split_parts(first, width).cells), set(split_parts(second, width).cells))

        return _each_row([args[0], args[1]], one, pa.bool_()).array

    del test


def _has_null(cells: set[bytes]) -> bool:
    return any(c[0] == NULL_MARK for c in cells)


_sets("array_contains", lambda a, b: not _has_null(b) and b <= a)
_sets("array_contained", lambda a, b: not _has_null(a) and a <= b)
_sets("array_overlaps", lambda a, b: any(c[0] != NULL_MARK for c in a & b))


# -- text -------------------------------------------------------------------------------------------------------------


@implements("array_to_string", strict=False)
def array_to_string(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """The elements' texts with a delimiter between them; a NULL is left out, or stands as the third argument."""
    element = element_type(types[0])
    elements, offsets = flattened(args[0], element)
    texts = padded(text_of(elements, element), element)
    delimiter = args.constant(1)
    null = args.constant(2) if len(args) > 2 else pa.scalar(None, _TEXT)
    if delimiter is not None and delimiter.is_valid and null is not None:
        if not null.is_valid:
            kept = texts.is_valid().to_numpy(zero_copy_only=False)
            offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
            texts = texts.drop_null()
        else:
            texts = texts.fill_null(null)
        return joined_text(texts, offsets, delimiter.as_py(), args[0])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts).to_pylist()
    nulls = args[2].to_pylist() if len(args) > 2 else [None] * rows
    given = zip(args[0].is_valid().to_pylist(), lists, args[1].to_pylist(), nulls, strict=True)
    values = [_listed(items, mark, n) if valid and mark is not None else None for valid, items, mark, n in given]
    return pa.array(values, _TEXT)


def _listed(texts: Sequence[str | None], delimiter: str, null: str | None) -> str:
    shown = (null if text is None else text for text in texts)
    return delimiter.join(text for text in shown if text is not None)


@implements("string_to_array", strict=False)
def string_to_array(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """The parts between delimiters; with a NULL delimiter the characters, with an empty one the whole.

    Parts that equal the third argument are NULL.
    """

    def split(text: str | None, delimiter: str | None, null: str | None = None) -> bytes | None:
        if text is None:
            return None
        if not text:
            return EMPTY
        parts = list(text) if delimiter is None else text.split(delimiter) if delimiter else [text]
        return plain([cell_of(None if null is not None and p == null else p, TEXT) for p in parts])

    return _each_row([args[i] for i in range(len(args))], split, _BINARY).array


# -- ANY and ALL ------------------------------------------------------------------------------------------------------


def _quantified(operator: str, *, every: bool) -> Function:
    """``value operator ANY (array)``: arguments value and array, brought to the operator's types."""

    def test(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        element = element_type(types[1])
        elements, offsets = flattened(args[1], element)
        counts = np.diff(offsets)
        source = np.repeat(np.arange(rows), counts)
        sides = Arguments([args[0].take(pa.array(source)), elements], len(source))
        found = implementation(operator).function(sides, (types[0], element), BOOLEAN, len(source))
        answer, errors = found if isinstance(found, Evaluated) else Evaluated(found)
        known = sides[0].is_valid().to_numpy(zero_copy_only=False) & elements.is_valid().to_numpy(zero_copy_only=False)
        known &= answer.is_valid().to_numpy(zero_copy_only=False)
        truth = answer.fill_null(False).to_numpy(zero_copy_only=False)
        decides = known & (~truth if every else truth)
        decided = np.bincount(source, decides, rows) > 0
        unsure = (np.bincount(source, ~known, rows) > 0) & ~decided
        unsure |= args[1].is_null().to_numpy(zero_copy_only=False)
        shown = ~decided if every else decided
        return Evaluated(pa.array(shown, pa.bool_(), mask=unsure), _of_rows(errors, source, known))

    return test


def _of_rows(errors: RowErrors | None, source: Int64s, known: npt.NDArray[np.bool_]) -> RowErrors | None:
    """The first failure of each row, on elements that are not NULL."""
    if errors is None:
        return None
    real = [i for i, row in enumerate(errors.rows.tolist()) if known[row]]
    rows, first = np.unique(source[errors.rows[real]], return_index=True)
    places = [real[i] for i in first.tolist()]
    if not places:
        return failures(np.zeros(0, np.int64), "", "")
    return RowErrors(rows, [errors.sqlstates[i] for i in places], [errors.messages[i] for i in places], [])


for _operator in QUANTIFIED:
    _fallible = _operator not in _COMPARISONS
    implements(f"any_{_operator}", strict=False, fallible=_fallible)(_quantified(_operator, every=False))
    implements(f"all_{_operator}", strict=False, fallible=_fallible)(_quantified(_operator, every=True))


# -- what they are called ---------------------------------------------------------------------------------------------


def _as_array(types: Sequence[SqlType]) -> SqlType:
    """The type of the arrays among the arguments, with modifiers that all of them share."""
    arrays = [t for t in types if t.kind in ARRAY_KINDS.values()]
    elements = [t for t in types if t not in arrays and t.kind in ARRAY_KINDS]
    same = all(t == arrays[0] for t in arrays) and all(t == element_type(arrays[0]) for t in elements)
    return arrays[0] if same else SqlType(arrays[0].kind)


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


_INTEGERS: Final = SqlType(K.INTEGER_ARRAY)
_TEXTS: Final = SqlType(K.TEXT_ARRAY)


def _declare(array: Kind, element: Kind) -> None:
    declare(
        Overload("array_append", (array, element), _as_array, "array_append"),
        Overload("array_prepend", (element, array), _as_array, "array_prepend"),
        Overload("array_cat", (array, array), _as_array, "array_cat"),
        Overload("||", (array, array), _as_array, "array_cat"),
        Overload("||", (array, element), _as_array, "array_append"),
        Overload("||", (element, array), _as_array, "array_prepend"),
        Overload("array_position", (array, element), INTEGER, "array_position"),
        Overload("array_position", (array, element, K.INTEGER), INTEGER, "array_position"),
        Overload("array_positions", (array, element), _INTEGERS, "array_positions"),
        Overload("array_remove", (array, element), _first, "array_remove"),
        Overload("array_replace", (array, element, element), _first, "array_replace"),
        Overload("trim_array", (array, K.INTEGER), _first, "trim_array"),
        Overload("@>", (array, array), BOOLEAN, "array_contains"),
        Overload("<@", (array, array), BOOLEAN, "array_contained"),
        Overload("&&", (array, array), BOOLEAN, "array_overlaps"),
        Overload("array_length", (array, K.INTEGER), INTEGER, "array_length"),
        Overload("array_lower", (array, K.INTEGER), INTEGER, "array_lower"),
        Overload("array_upper", (array, K.INTEGER), INTEGER, "array_upper"),
        Overload("array_ndims", (array,), INTEGER, "array_ndims"),
        Overload("array_dims", (array,), TEXT, "array_dims"),
        Overload("cardinality", (array,), INTEGER, "cardinality"),
        Overload("array_to_string", (array, K.TEXT), TEXT, "array_to_string"),
        Overload("array_to_string", (array, K.TEXT, K.TEXT), TEXT, "array_to_string"),
    )


for _element, _array in ARRAY_KINDS.items():
    _declare(_array, _element)
declare(
    Overload("string_to_array", (K.TEXT, K.TEXT), _TEXTS, "string_to_array"),
    Overload("string_to_array", (K.TEXT, K.TEXT, K.TEXT), _TEXTS, "string_to_array"),
)
