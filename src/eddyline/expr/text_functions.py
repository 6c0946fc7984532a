"""Text functions that follow PostgreSQL in characters, not bytes: slicing, padding, trimming, joining, case.

Case follows Unicode's simple mappings, one character to one.  A result past 1 GB is 54000.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import make_error
from eddyline.expr.calendar import Int64s
from eddyline.expr.constants import per_constant
from eddyline.expr.datetime_columns import integers
from eddyline.expr.layout import empty_scalar
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements
from eddyline.expr.rowwise import map_rows
from eddyline.expr.text_output import padded, text_of
from eddyline.expr.text_slices import Characters, bytes_of, offsets_of
from eddyline.repr.types import ELEMENT_KINDS, INTEGER, TEXT, Kind, SqlType, shows_blanks

__all__ = ["MAX_BYTES", "TOO_LONG", "lower_text", "lowered", "raised"]

K = Kind
MAX_BYTES: Final = 2**30 - 5  # a value with its header is below 1 GB
TOO_LONG: Final = "requested length too large"
_TEXT: Final = pa.large_string()
_EMPTY: Final = empty_scalar(pa.large_string())


def lowered(array: pa.Array) -> pa.Array:
    return pc.utf8_lower(array)


def raised(array: pa.Array) -> pa.Array:
    """Upper case; Arrow would raise ß to ẞ, which one-to-one mappings leave alone."""
    if not pc.any(pc.match_substring(array, "ß"), min_count=0).as_py():
        return pc.utf8_upper(array)
    return map_rows([array], _upper, _TEXT).array


def _upper(text: str) -> str:
    return "".join(u if len(u := c.upper()) == 1 else c for c in text)


@implements("lower")
def _lower_function(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return lowered(args[0])


@implements("upper")
def _upper_function(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return raised(args[0])


_WORD: Final = re.compile(r"[^\W_]+")


def lower_text(text: str) -> str:
    """One value of ``lowered``."""
    return "".join(low if len(low := c.lower()) == 1 else low[0] for c in text)


def _initcap(text: str) -> str:
    return _WORD.sub(lambda m: _upper(m[0][0]) + lower_text(m[0][1:]), text)


def _initcap_ascii(array: pa.Array) -> pa.Array:
    """The same for ASCII, byte by byte over the whole column."""
    offsets = offsets_of(array)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.array(bytes_of(array)[first:last])
    upper = (data >= 65) & (data <= 90)
    lower = (data >= 97) & (data <= 122)
    word = upper | lower | ((data >= 48) & (data <= 57))
    begins = word.copy()
    begins[1:] &= ~word[:-1]
    starts = offsets[:-1][np.diff(offsets) > 0] - first
    begins[starts] = word[starts]
    data[upper & ~begins] += 32
    data[lower & begins] -= 32
    bitmap = None if array.null_count == 0 else pc.is_valid(array).buffers()[1]
    buffers = [bitmap, pa.py_buffer(offsets - first), pa.py_buffer(data)]
    return pa.Array.from_buffers(array.type, len(array), buffers)


@implements("initcap")
def _initcap_function(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    text = args[0]
    ascii_only = pc.string_is_ascii(text)
    if pc.all(ascii_only, min_count=0).as_py():
        return _initcap_ascii(text)
    rest = map_rows([pc.if_else(ascii_only, _EMPTY, text)], _initcap, _TEXT).array
    return pc.if_else(ascii_only, _initcap_ascii(pc.if_else(ascii_only, text, _EMPTY)), rest)


@implements("char_length")
def _char_length(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    text = pc.utf8_rtrim(args[0], " ") if shows_blanks(types[0]) else args[0]
    return pc.cast(pc.utf8_length(text), pa.int32())


@implements("octet_length")
def _octet_length(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pc.cast(pc.binary_length(args[0]), pa.int32())


@implements("bpchar_octet_length")
def _bpchar_octet_length(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """Of char(n), whose trailing blanks count here, stored or not."""
    bytes_stored = _byte_lengths(args[0])
    missing = np.maximum((types[0].length or 0) - integers(pc.utf8_length(args[0])), 0)
    return pa.array((bytes_stored + missing).astype(np.int32))


@implements("bit_length")
def _bit_length(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pc.cast(pc.multiply(pc.binary_length(args[0]), 8), pa.int32())


@implements("reverse")
def _reverse(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pc.utf8_reverse(args[0])


@implements("text_concat", fallible=True)
def _concat_operator(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _joined([args[0], args[1]], "emit_null")


def _joined(parts: Sequence[pa.Array], null_handling: str) -> Evaluated:
    total = sum((_byte_lengths(p) for p in parts), np.zeros(len(parts[0]), np.int64))
    too_long = total > MAX_BYTES
    if too_long.any():
        keep = pa.array(~too_long)
        parts = [pc.if_else(keep, p, _EMPTY) for p in parts]
    replace = "" if null_handling == "replace" else None
    options = {"null_handling": null_handling} | ({"null_replacement": replace} if replace is not None else {})
    return Evaluated(
        pc.binary_join_element_wise(*parts, _EMPTY, **options), failures(too_long, "54000", "out of memory")
    )


def _byte_lengths(array: pa.Array) -> Int64s:
    return integers(pc.binary_length(array))


@implements("concat", strict=False, fallible=True)
def _concat(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The output texts of all arguments joined, NULLs as nothing."""
    return _joined([_output(args[i], types[i]) for i in range(len(args))], "replace")


def _output(array: pa.Array, sql_type: SqlType) -> pa.Array:
    return padded(text_of(array, sql_type), sql_type)


@implements("concat_ws", strict=False, fallible=True)
def _concat_ws(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The arguments that are not NULL, with the first between them; NULL if that is NULL."""
    parts = [_output(args[i], types[i]) for i in range(1, len(args))]
    total = sum((_byte_lengths(p) for p in parts), _byte_lengths(args[0]) * len(parts))
    too_long = total > MAX_BYTES
    if too_long.any():
        keep = pa.array(~too_long)
        parts = [pc.if_else(keep, p, _EMPTY) for p in parts]
    # Arrow loses rows that have nothing but NULLs, and those whose separator is NULL.
    nothing = parts[0].is_null()
    for part in parts[1:]:
        nothing = pc.and_(nothing, part.is_null())
    parts[0] = pc.if_else(nothing, _EMPTY, parts[0])
    joined = pc.binary_join_element_wise(*parts, pc.fill_null(args[0], ""), null_handling="skip")
    joined = pc.if_else(args[0].is_valid(), joined, pa.scalar(None, _TEXT))
    return Evaluated(joined, failures(too_long, "54000", "out of memory"))


def _substring_bounds(start: Int64s, count: Int64s | None) -> tuple[Int64s, Int64s]:
    """0-based bounds of SQL's 1-based start and length."""
    begin = start - 1
    return begin, np.full_like(begin, np.iinfo(np.int32).max) if count is None else begin + count


def _small_constant(args: Arguments, index: int) -> int | None:
    """A constant, not NULL number; None otherwise."""
    scalar = args.constant(index)
    value: int | None = None if scalar is None else scalar.as_py()
    return value


@implements("substring", fallible=True)
def _substring(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    fixed = [_small_constant(args, i) for i in range(1, len(args))]
    if all(n is not None for n in fixed):
        first = (fixed[0] or 0) - 1
        stop = None if len(fixed) == 1 else first + (fixed[1] or 0)
        if stop is None or stop >= first:
            return Evaluated(pc.utf8_slice_codeunits(args[0], max(first, 0), stop if stop is None else max(stop, 0)))
    start = integers(args[1])
    count = integers(args[2]) if len(args) > 2 else None
    begin, end = _substring_bounds(start, count)
    errors = None if count is None else failures(count < 0, "22011", "negative substring length not allowed")
    return Evaluated(Characters(args[0]).slices(begin, end), errors)


@implements("left")
def _left(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    fixed = _small_constant(args, 1)
    if fixed is not None:
        return pc.utf8_slice_codeunits(args[0], 0, fixed)
    count = integers(args[1])
    characters = Characters(args[0])
    return characters.slices(np.zeros(rows, np.int64), np.where(count < 0, characters.counts + count, count))


@implements("right")
def _right(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    fixed = _small_constant(args, 1)
    if fixed:
        return pc.utf8_slice_codeunits(args[0], -fixed)
    count = integers(args[1])
    characters = Characters(args[0])
    start = np.where(count < 0, -count, characters.counts - count)
    return characters.slices(start, characters.counts)


def _padding(fill: pa.Array, wanted: Int64s) -> pa.Array:
    """``wanted[i]`` characters of ``fill[i]`` repeated; nothing where ``fill`` is empty."""
    length = integers(pc.utf8_length(fill))
    times = np.where((length > 0) & (wanted > 0), -(-wanted // np.maximum(length, 1)), 0)
    return Characters(pc.binary_repeat(fill, pa.array(times))).slices(np.zeros_like(wanted), wanted)


def _padded(args: Arguments, rows: int, *, on_left: bool) -> Evaluated:
    text = args[0]
    wanted = np.maximum(integers(args[1]), 0)
    fill = args[2] if len(args) > 2 else pa.repeat(pa.scalar(" ", _TEXT), rows)
    too_long = wanted * 4 > MAX_BYTES
    wanted = np.where(too_long, 0, wanted)
    if text.null_count or fill.null_count:
        text, fill = pc.fill_null(text, ""), pc.fill_null(fill, "")
    characters = Characters(text)
    missing = np.maximum(wanted - characters.counts, 0)
    kept = characters.slices(np.zeros(rows, np.int64), wanted)
    padding = _padding(fill, missing)
    pair = (padding, kept) if on_left else (kept, padding)
    return Evaluated(pc.binary_join_element_wise(*pair, _EMPTY), failures(too_long, "54000", TOO_LONG))


@implements("lpad", fallible=True)
def _lpad(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _padded(args, rows, on_left=True)


@implements("rpad", fallible=True)
def _rpad(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _padded(args, rows, on_left=False)


@implements("repeat", fallible=True)
def _repeat(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    times = np.maximum(integers(args[1]), 0)
    too_long = times * _byte_lengths(args[0]) > MAX_BYTES
    repeated = pc.binary_repeat(args[0], pa.array(np.where(too_long, 0, times)))
    return Evaluated(repeated, failures(too_long, "54000", TOO_LONG))


def _trimmed(args: Arguments, rows: int, side: str) -> pa.Array:
    trim = {"both": pc.utf8_trim, "left": pc.utf8_ltrim, "right": pc.utf8_rtrim}[side]
    if len(args) == 1:
        return trim(args[0], " ")

    def compute(characters: str, others: Sequence[pa.Array]) -> Evaluated:
        return Evaluated(trim(others[0], characters) if characters else others[0])

    strip = {"both": str.strip, "left": str.lstrip, "right": str.rstrip}[side]
    return per_constant(args, 1, _TEXT, rows, compute, by_row=strip).array


@implements("btrim")
def _btrim(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _trimmed(args, rows, "both")


@implements("ltrim")
def _ltrim(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _trimmed(args, rows, "left")


@implements("rtrim")
def _rtrim(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _trimmed(args, rows, "right")


def _chr(code: int) -> str:
    if code == 0:
        raise make_error("54000", "null character not permitted")
    if code < 0:
        raise make_error("22023", "character number must be positive")
    if code > 0x10FFFF:
        raise make_error("54000", f"requested character too large for encoding: {code}")
    if 0xD800 <= code <= 0xDFFF:
        raise make_error("54000", f"requested character not valid for encoding: {code}")
    return chr(code)


@implements("chr", fallible=True)
def _chr_function(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return map_rows([args[0]], _chr, _TEXT)


@implements("ascii")
def _ascii(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """The code point of the first character, 0 for the empty string."""
    first = pc.utf8_slice_codeunits(args[0], 0, 1)
    return map_rows([first], lambda text: ord(text) if text else 0, pa.int32()).array


def _quoted(text: str) -> str:
    """As a constant of SQL; one with backslashes says that they are doubled."""
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"


@implements("quote_literal")
def _quote_literal(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return map_rows([args[0]], _quoted, _TEXT).array


@implements("to_hex")
def _to_hex(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    mask = 2**64 - 1 if types[0].kind is K.BIGINT else 2**32 - 1
    return map_rows([args[0]], lambda value: format(value & mask, "x"), _TEXT).array


@implements("md5")
def _md5(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    """Of text (its UTF-8 bytes) or bytea."""
    data = args[0].cast(pa.large_binary())
    return map_rows([data], lambda value: hashlib.md5(value, usedforsecurity=False).hexdigest(), _TEXT).array


declare(
    *(Overload(name, (K.TEXT,), TEXT, name) for name in ("lower", "upper", "initcap", "reverse")),
    *(
        Overload(name, (kind,), INTEGER, "char_length")
        for name in ("length", "char_length", "character_length")
        for kind in (K.TEXT, K.BPCHAR)
    ),
    Overload("octet_length", (K.TEXT,), INTEGER, "octet_length"),
    Overload("octet_length", (K.BPCHAR,), INTEGER, "bpchar_octet_length"),
    Overload("bit_length", (K.TEXT,), INTEGER, "bit_length"),
    Overload("||", (K.TEXT, K.TEXT), TEXT, "text_concat"),
    *(
        Overload("||", pair, TEXT, "text_concat", evaluated=(K.TEXT, K.TEXT))
        for kind in Kind
        if kind not in (K.TEXT, K.VARCHAR, K.BPCHAR, K.UNKNOWN, *ELEMENT_KINDS)
        for pair in ((K.TEXT, kind), (kind, K.TEXT))
    ),
    *(
        Overload(name, (K.TEXT, K.INTEGER, K.INTEGER)[:count], TEXT, "substring")
        for name in ("substring", "substr")
        for count in (2, 3)
    ),
    Overload("left", (K.TEXT, K.INTEGER), TEXT, "left"),
    Overload("right", (K.TEXT, K.INTEGER), TEXT, "right"),
    *(Overload(name, (K.TEXT, K.INTEGER, K.TEXT)[:count], TEXT, name) for name in ("lpad", "rpad") for count in (2, 3)),
    Overload("repeat", (K.TEXT, K.INTEGER), TEXT, "repeat"),
    *(Overload(name, (K.TEXT,) * count, TEXT, name) for name in ("btrim", "ltrim", "rtrim") for count in (1, 2)),
    Overload("quote_literal", (K.TEXT,), TEXT, "quote_literal"),
    *(
        Overload("quote_literal", (kind,), TEXT, "quote_literal", evaluated=(K.TEXT,))
        for kind in Kind
        if kind not in (K.TEXT, K.VARCHAR, K.BPCHAR, K.UNKNOWN)
    ),
    Overload("chr", (K.INTEGER,), TEXT, "chr"),
    Overload("ascii", (K.TEXT,), INTEGER, "ascii"),
    Overload("to_hex", (K.INTEGER,), TEXT, "to_hex"),
    Overload("to_hex", (K.BIGINT,), TEXT, "to_hex"),
    Overload("md5", (K.TEXT,), TEXT, "md5"),
    Overload("concat", (), TEXT, "concat", variadic=K.UNKNOWN),  # of any kinds, mixed
    Overload("concat_ws", (K.TEXT,), TEXT, "concat_ws", variadic=K.UNKNOWN),
)
