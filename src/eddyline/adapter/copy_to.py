"""COPY TO: result rows as PostgreSQL's text or csv, or as parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from eddyline.adapter.copy_streams import sink
from eddyline.adapter.export import export_table
from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.read import Interrupt
from eddyline.errors import make_error
from eddyline.expr.text_io import format_column
from eddyline.repr.types import TEXT, Kind
from eddyline.sql.statements import Copy, CopyFormat

__all__ = ["copy_to"]

_SLICE_ROWS = 1 << 16
#: backslash first: the others' replacements bring new ones
_TEXT_ESCAPES: Final = tuple(zip("\\\b\f\n\r\t\v", ("\\\\", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v"), strict=True))
_LARGE: Final = pa.large_string()


def copy_to(interrupt: Interrupt, statement: Copy, result: ResultSet, file: Any) -> int:
    """Writes the rows; how many.  The target is opened last, so that a failing query leaves a file as it was."""
    if statement.format is CopyFormat.PARQUET:
        data = _parquet(result)
        with sink(statement.filename, file) as write:
            write(data)
        return result.rows
    quoted = _always_quoted(statement, result.names)
    with sink(statement.filename, file) as write:
        if statement.header:
            write(_lines(statement, [pa.array([n], _LARGE) for n in result.names], (), single=len(result.names) == 1))
        for part in _slices(result):
            interrupt.check()
            texts = [format_column(c, t) for c, t in zip(part, result.types, strict=True)]
            rows = len(part[0]) if part else 0
            write(_lines(statement, texts, quoted, single=len(texts) == 1) if texts else b"\n" * rows)
        if not result.types:
            write(b"\n" * result.rows)
    return result.rows


def _slices(result: ResultSet) -> Iterator[list[pa.Array]]:
    for start in range(0, result.rows if result.types else 0, _SLICE_ROWS):
        yield [c.slice(start, _SLICE_ROWS) for c in result.columns]


def _always_quoted(statement: Copy, names: Sequence[str]) -> frozenset[int]:
    """Positions of FORCE_QUOTE; 42703, 42P10."""
    if statement.force_quote == ("*",):
        return frozenset(range(len(names)))
    for name in statement.force_quote:
        if name not in names:
            raise make_error("42703", f'column "{name}" does not exist')
    return frozenset(i for i, n in enumerate(names) if n in statement.force_quote)


def _lines(statement: Copy, texts: Sequence[pa.Array], quoted: Collection[int], *, single: bool) -> bytes:
    """The rows of columns of texts, NULL where a value is, in the statement's format."""
    null = pa.scalar(statement.null, _LARGE)
    if statement.format is CopyFormat.CSV:
        cells = [_csv_cells(statement, text, always=i in quoted, single=single) for i, text in enumerate(texts)]
    else:
        cells = [_text_cells(text, statement.delimiter) for text in texts]
    filled = [pc.fill_null(c, null) for c in cells]
    joined = filled[0]
    if len(filled) > 1:
        joined = pc.binary_join_element_wise(*filled, pa.scalar(statement.delimiter, _LARGE))
    ended = pc.binary_join_element_wise(joined, pa.scalar("", _LARGE), pa.scalar("\n", _LARGE))
    return _bytes_of(ended)


def _bytes_of(texts: pa.Array) -> bytes:
    """All values behind one another."""
    if not len(texts):
        return b""
    offsets = pa.Array.from_buffers(pa.int64(), len(texts) + 1, [None, texts.buffers()[1]], offset=texts.offset)
    data: bytes = texts.buffers()[2].slice(offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py()).to_pybytes()
    return data


def _text_cells(text: pa.Array, delimiter: str) -> pa.Array:
    escapes = [*_TEXT_ESCAPES]
    if delimiter not in "\t":
        escapes.append((delimiter, "\\" + delimiter))
    special = "[" + "".join(re.escape(c) for c, _ in escapes) + "]"
    if not pc.any(pc.match_substring_regex(text, special)).as_py():
        return text
    for plain, escaped in escapes:
        text = pc.replace_substring(text, plain, escaped)
    return text


def _csv_cells(statement: Copy, text: pa.Array, *, always: bool, single: bool) -> pa.Array:
    quote, escape = statement.quote, statement.escape
    special = "[" + "".join(_in_class(c) for c in (statement.delimiter, quote)) + "\r\n]"
    needed = pc.or_(pc.match_substring_regex(text, special), pc.equal(text, pa.scalar(statement.null, _LARGE)))
    if single:
        needed = pc.or_(needed, pc.equal(text, pa.scalar("\\.", _LARGE)))
    if not always and not pc.any(needed).as_py():
        return text
    inner = text
    if escape != quote:
        inner = pc.replace_substring(inner, escape, escape + escape)
    inner = pc.replace_substring(inner, quote, escape + quote)
    mark = pa.scalar(quote, _LARGE)
    wrapped = pc.binary_join_element_wise(mark, inner, mark, pa.scalar("", _LARGE))
    return wrapped if always else pc.if_else(needed, wrapped, text)


def _in_class(c: str) -> str:
    return f"\\x{ord(c):02x}"


def _parquet(result: ResultSet) -> bytes:
    """Intervals as text: parquet has no type for months, days and microseconds that readers agree on."""
    columns, types = list(result.columns), list(result.types)
    for i, t in enumerate(types):
        if t.kind is Kind.INTERVAL:
            columns[i], types[i] = format_column(columns[i], t), TEXT
    _check_names(result.names)
    out = io.BytesIO()
    pa.parquet.write_table(export_table(result.names, types, columns), out)
    return out.getvalue()


def _check_names(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise make_error(
                "42701", f'column "{name}" specified more than once', hint="parquet columns need names of their own"
            )
