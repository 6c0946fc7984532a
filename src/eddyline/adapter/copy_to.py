"""COPY TO: result rows as PostgreSQL's text, csv or binary data, or as parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.adapter.copy_streams import sink
from eddyline.adapter.export import export_table
from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.read import Interrupt
from eddyline.errors import make_error
from eddyline.expr.binary_io import binary_cells, messages
from eddyline.expr.text_io import format_column
from eddyline.repr.late_module import LateModule
from eddyline.repr.types import TEXT, Kind, SqlType
from eddyline.sql.statements import BINARY_SIGNATURE, Copy, CopyFormat

__all__ = ["CopyWriter", "Lines", "copy_to"]

_parquet_files = LateModule("pyarrow.parquet")
_SLICE_ROWS = 1 << 16
#: of binary data: a signature, flags, and the length of a header extension
_SIGNATURE: Final = BINARY_SIGNATURE + bytes(8)
_TRAILER: Final = b"\xff\xff"
#: backslash first: the others' replacements bring new ones
_TEXT_ESCAPES: Final = tuple(zip("\\\b\f\n\r\t\v", ("\\\\", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v"), strict=True))
_LARGE: Final = pa.large_string()


class Lines(NamedTuple):
    """Rows as data: row *i* is ``data[offsets[i]:offsets[i + 1]]``."""

    data: bytes
    offsets: npt.NDArray[np.int64]


class CopyWriter:
    """The data of one COPY TO in text, csv or binary, of columns ``names`` of ``types``, piece by piece."""

    def __init__(self, statement: Copy, names: Sequence[str], types: Sequence[SqlType]) -> None:
        self._statement = statement
        self._names = names
        self._types = types
        self._quoted = _always_quoted(statement, names)
        self._begun = False

    def begin(self) -> bytes:
        """What stands before the first row: a header.  In binary it is a part of the first row's message."""
        if self._statement.format is CopyFormat.BINARY:
            return _SIGNATURE
        if not self._statement.header:
            return b""
        texts = [pa.array([name], _LARGE) for name in self._names]
        return _lines(self._statement, texts, (), single=len(texts) == 1).data

    def rows(self, columns: Sequence[pa.Array], rows: int) -> Lines:
        """Cost: linear in the rows; ask for some thousands at a time."""
        if self._statement.format is CopyFormat.BINARY:
            cells = [binary_cells(c, t) for c, t in zip(columns, self._types, strict=True)]
            return Lines(*messages(0, cells, rows))
        if not self._types:
            return Lines(b"\n" * rows, np.arange(rows + 1))
        texts = [format_column(c, t) for c, t in zip(columns, self._types, strict=True)]
        return _lines(self._statement, texts, self._quoted, single=len(texts) == 1)

    def end(self) -> bytes:
        """What stands behind the last row."""
        return _TRAILER if self._statement.format is CopyFormat.BINARY else b""


def copy_to(interrupt: Interrupt, statement: Copy, result: ResultSet, file: Any) -> int:
    """Writes the rows; how many.  The target is opened last, so that a failing query leaves a file as it was."""
    if statement.format is CopyFormat.PARQUET:
        data = _parquet(result)
        with sink(statement.filename, file) as write:
            write(data)
        return result.rows
    writer = CopyWriter(statement, result.names, result.types)
    with sink(statement.filename, file) as write:
        if begin := writer.begin():
            write(begin)
        for start in range(0, result.rows, _SLICE_ROWS):
            interrupt.check()
            rows = min(_SLICE_ROWS, result.rows - start)
            write(writer.rows([c.slice(start, rows) for c in result.columns], rows).data)
        if end := writer.end():
            write(end)
    return result.rows


def _always_quoted(statement: Copy, names: Sequence[str]) -> frozenset[int]:
    """Positions of FORCE_QUOTE; 42703, 42P10."""
    if statement.force_quote == ("*",):
        return frozenset(range(len(names)))
    for name in statement.force_quote:
        if name not in names:
            raise make_error("42703", f'column "{name}" does not exist')
    return frozenset(i for i, n in enumerate(names) if n in statement.force_quote)


def _lines(statement: Copy, texts: Sequence[pa.Array], quoted: Collection[int], *, single: bool) -> Lines:
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
    return _lines_of(ended)


def _lines_of(texts: pa.Array) -> Lines:
    """All values behind one another."""
    if not len(texts):
        return Lines(b"", np.zeros(1, np.int64))
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8)
    start, stop = int(offsets[0]), int(offsets[-1])
    return Lines(texts.buffers()[2].slice(start, stop - start).to_pybytes(), offsets - start)


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
    _parquet_files.write_table(export_table(result.names, types, columns), out)
    return out.getvalue()


def _check_names(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise make_error(
                "42701", f'column "{name}" specified more than once', hint="Parquet columns need names of their own."
            )
