"""Files of rows: csv, JSON lines, parquet.

Arrow reads them.  Where it and the column's own input function do not read a text alike, it is read as text, and the
column's type makes of it what it makes of a literal; also where Arrow refuses a file, since the type may not, and says
better which value it is.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.adapter.ingest_rows import Incoming
from eddyline.errors import Error, InterfaceError, make_error
from eddyline.repr.late_module import LateModule
from eddyline.repr.types import Kind, SqlType, arrow_type

__all__ = ["read_file"]

Rows: TypeAlias = Callable[[Sequence[Any]], Incoming]
Bools: TypeAlias = npt.NDArray[np.bool_]

_csv = LateModule("pyarrow.csv")
_json = LateModule("pyarrow.json")
_parquet = LateModule("pyarrow.parquet")

_TEXTS: Final = frozenset({Kind.TEXT, Kind.VARCHAR})
#: types whose CSV text Arrow reads as PostgreSQL does, where it reads it; the others are read as text
_CSV_DIRECT: Final = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.REAL}) | _TEXTS
#: types whose values are strings in JSON, which Arrow must not take for timestamps by their looks
_JSON_STRINGS: Final = _TEXTS | {
    Kind.BPCHAR,
    Kind.DATE,
    Kind.TIME,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
    Kind.INTERVAL,
    Kind.UUID,
    Kind.BYTEA,
}
_HINTS: Final = {
    ".csv": "Fields are separated by commas, the first line names the columns, and texts are UTF-8; COPY … FROM reads "
    "other kinds (DELIMITER ';', QUOTE, NULL), also from a file that is opened with another encoding.",
    ".jsonl": "Each line is one object.",
    ".ndjson": "Each line is one object.",
}
_REFUSALS: Final = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeDecodeError)


def read_file(path: Path, columns: Mapping[str, SqlType], from_rows: Rows) -> Incoming:
    """The file's rows; its name says what it is.  ``from_rows``: reads dicts.

    58P01 for a missing file, 22023 for another kind, 22P02 for one that is malformed.  A value that its column's type
    refuses is found later, by its line.
    """
    if not path.is_file():
        raise make_error("58P01", f'could not open file "{path}" for reading: no such file')
    suffix = path.suffix.lower()
    try:
        match suffix:
            case ".parquet" | ".pq":
                return Incoming(_parquet.read_table(path), place=lambda row: f'row {row + 1} of "{path}"')
            case ".csv":
                return _read_csv(path, columns)
            case ".jsonl" | ".ndjson":
                return _read_json(path, columns, from_rows)
            case _:
                raise InterfaceError(
                    f'cannot tell the format of "{path}"',
                    sqlstate="22023",
                    hint=f'"{suffix}" is none of .csv, .parquet and .jsonl.',
                )
    except _REFUSALS as problem:
        line = _undecodable_line(path) if suffix in _HINTS else None
        what = str(problem) if line is None else f"line {line} is not UTF-8"
        raise make_error("22P02", f'malformed file "{path}": {what}', hint=_HINTS.get(suffix)) from problem


def _undecodable_line(path: Path) -> int | None:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _at_line(path: Path, lines: Callable[[Path], Iterator[int]]) -> Callable[[int], str]:
    """Where a row is.  ``lines``: of each row, the line that it ends on."""

    def place(row: int) -> str:
        try:
            line = next(islice(lines(path), row, None), None)
        except (OSError, csv.Error, Error):  # the file is another by now, or Python reads it less readily than Arrow
            line = None
        return f'row {row + 1} of "{path}"' if line is None else f'line {line} of "{path}"'

    return place


# -- csv --------------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, columns: Mapping[str, SqlType]) -> Incoming:
    text = pa.large_string()
    types = {name: arrow_type(kind) if kind.kind in _CSV_DIRECT else text for name, kind in columns.items()}
    try:
        table = _csv_table(path, types)
    except pa.ArrowInvalid:
        table = _csv_table(path, dict.fromkeys(columns, text))
    return Incoming(table, place=_at_line(path, _csv_lines))


def _csv_table(path: Path, types: Mapping[str, pa.DataType]) -> pa.Table:
    return _csv.read_csv(
        path,
        parse_options=_csv.ParseOptions(newlines_in_values=True),
        convert_options=_csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        ),
    )


def _csv_lines(path: Path) -> Iterator[int]:
    """Lines without anything are no rows, and the first one names the columns."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file)
        yield from islice((reader.line_num for row in reader if row), 1, None)


# -- JSON lines -------------------------------------------------------------------------------------------------------


def _read_json(path: Path, columns: Mapping[str, SqlType], from_rows: Rows) -> Incoming:
    strings = pa.schema([(name, pa.large_string()) for name, kind in columns.items() if kind.kind in _JSON_STRINGS])
    try:
        table = _json.read_json(path, parse_options=_json.ParseOptions(explicit_schema=strings))
    except pa.ArrowInvalid:  # what is a number here may be a string there, and the column's type take both
        rows = from_rows([found for _, found in _json_objects(path)])
        return replace(rows, place=_at_line(path, _json_lines))
    # Columns that Arrow was told of are there even if no line has them.
    unsaid = [n for n in strings.names if table[n].null_count == len(table) and not _says(path, n, len(table)).any()]

    def given(name: str) -> Bools | None:
        return None if table[name].null_count == 0 else _says(path, name, len(table))

    return Incoming(table.drop_columns(unsaid), given, _at_line(path, _json_lines))


def _says(path: Path, name: str, rows: int) -> Bools:
    """bool[rows]: whether an object has that key, which may be null there."""
    lines = [line for line in path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n") if line.strip()]
    if len(lines) != rows:  # some line has several
        return np.array([name in found for _, found in _json_objects(path, errors="replace")], np.bool_)
    texts = pa.array(lines, pa.large_binary())
    said = np.asarray(pc.match_substring_regex(texts, f'"{re.escape(name)}"\\s*:'.encode()))
    # Beyond plain objects that pattern may be a value's, or the key be written otherwise.
    nested = np.asarray(pc.count_substring(texts, b"{")) != 1
    for row in np.flatnonzero(nested | np.asarray(pc.match_substring(texts, b"\\"))):
        said[row] = name in json.loads(lines[row].decode(errors="replace"))
    return said


def _json_objects(path: Path, *, errors: str = "strict") -> Iterator[tuple[int, Any]]:
    """Each value with the number of its line.  22P02, with its line, for what is no JSON.

    ``errors``: what to do with bytes that are not UTF-8, as ``open`` takes it.
    """
    decoder = json.JSONDecoder(parse_float=Decimal)
    with path.open(encoding="utf-8-sig", errors=errors) as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            while text:
                try:
                    found, end = decoder.raw_decode(text)
                except (json.JSONDecodeError, RecursionError) as problem:
                    message = f'malformed file "{path}": line {number}: {problem}'
                    raise make_error("22P02", message, hint=_HINTS[".jsonl"]) from problem
                yield number, found
                text = text[end:].lstrip()


def _json_lines(path: Path) -> Iterator[int]:
    return (number for number, _ in _json_objects(path, errors="replace"))
