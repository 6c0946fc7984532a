"""Whatever users append, as rows of Arrow columns: Arrow, pandas, Polars, lists of dicts, files.

The result may share memory with what was given.
"""

from __future__ import annotations

import datetime as dt
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.adapter.ingest_rows import Incoming
from eddyline.errors import InterfaceError, make_error
from eddyline.frontends.ingest_files import read_file
from eddyline.frontends.ingest_frames import (
    NOT_CONVERTIBLE,
    is_pandas,
    is_polars,
    pandas_table,
    polars_table,
    without_views,
)
from eddyline.repr.interval import Interval
from eddyline.repr.types import Kind, SqlType

__all__ = ["incoming"]


def incoming(data: object, columns: Mapping[str, SqlType]) -> Incoming:
    """``data`` as rows to come in.  ``columns``: the target's columns, which guide the reading of text files.

    Raises InterfaceError for a kind of object that can't be read, DataError (22P02, 22000) for malformed content,
    OperationalError (58P01) for a missing file.
    """
    match data:
        case str() | os.PathLike():
            return read_file(Path(data), columns, lambda rows: _from_rows(rows, columns))
        case Sequence() | Iterator() if not _is_frame(data):
            return _from_rows(list(data), columns)
        case _:
            return Incoming(_table(data, columns))


def _is_frame(data: object) -> bool:
    """Whether it says itself what its columns are, whatever else it is."""
    return hasattr(data, "__arrow_c_stream__") or is_pandas(data) or is_polars(data)


def _table(data: object, columns: Mapping[str, SqlType]) -> pa.Table:
    match data:
        case pa.Table():
            return data
        case pa.RecordBatch():
            return pa.Table.from_batches([data])
        case pa.RecordBatchReader():
            return data.read_all()
        case Mapping():
            return _from_mapping(data, columns)
        case _ if is_pandas(data):
            return pandas_table(data, lambda name, values: _array(name, values, columns.get(name)))
        case _ if is_polars(data):
            return polars_table(data)
        case _ if hasattr(data, "__arrow_c_stream__"):
            return _from_stream(data)
        case _:
            raise _no_table(data)


def _from_stream(data: object) -> pa.Table:
    try:
        table = pa.table(data)
    except pa.ArrowInvalid as problem:  # the stream of a single column
        raise _no_table(data) from problem
    return pa.table([without_views(column) for column in table.columns], names=table.column_names)


def _no_table(data: object) -> InterfaceError:
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        hint = "collect() a lazy frame first"
    else:
        hint = "pass an Arrow table, a pandas or Polars frame, a list of dicts, or the path of a file"
    return InterfaceError(f"cannot append a {type(data).__name__}", sqlstate="42804", hint=hint)


def _from_mapping(data: Mapping[str, Any], columns: Mapping[str, SqlType]) -> pa.Table:
    _check_names(data)
    arrays = [_array(name, values, columns.get(name)) for name, values in data.items()]
    lengths = {len(a) for a in arrays}
    if len(lengths) > 1:
        raise make_error("22000", f"columns have different lengths: {sorted(lengths)}")
    return pa.Table.from_arrays(arrays, names=list(data))


def _from_rows(data: Sequence[Any], columns: Mapping[str, SqlType]) -> Incoming:
    names: dict[str, None] = {}
    for number, row in enumerate(data):
        if not isinstance(row, Mapping):
            raise InterfaceError(
                f"row {number + 1} is a {type(row).__name__}, not a mapping of column names to values",
                sqlstate="42804",
                hint="Use dicts, or executemany() with an INSERT for rows without names.",
            )
        names.update(dict.fromkeys(row))
    _check_names(names)
    arrays = [_array(name, [row.get(name) for row in data], columns.get(name)) for name in names]
    if not names:  # rows all the same, of nothing but defaults
        return Incoming(pa.Table.from_struct_array(pa.array(data, pa.struct([]))))
    table = pa.Table.from_arrays(arrays, names=list(names))
    if sum(map(len, data)) == len(names) * len(data):
        return Incoming(table)
    given = {name: np.array([name in row for row in data]) for name in names if name in columns}
    return Incoming(table, given.get)


def _check_names(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise InterfaceError(f"a column's name is a str, not a {type(name).__name__}", sqlstate="42602")


def _array(name: str, values: Any, target: SqlType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InterfaceError(
            f'column "{name}" has one value of type {type(values).__name__}, not a sequence of values',
            sqlstate="42804",
            hint="A dict maps columns to their values; put a single row into a list.",
        )
    if not hasattr(values, "__array__"):
        values = list(values)
        # Arrow would give all decimals one scale; a numeric whose scale varies by value keeps each one's own.
        varies = target is not None and target.kind is Kind.NUMERIC and target.scale is None
        if varies and not any(isinstance(v, (bool, np.bool_)) for v in values):
            return _as_text(name, values)
    try:
        return pa.array(values)
    except NOT_CONVERTIBLE:
        return _as_text(name, list(values))


def _as_text(name: str, values: Sequence[Any]) -> pa.Array:
    """Values that Arrow finds no common type for, as text for the column's own input function."""
    try:
        return pa.array([_text_of(name, v) for v in values], pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as problem:
        raise make_error("22021", f'column "{name}" has values that are not text: {problem}') from problem


_WITH_TEXT = (str, int, float, Decimal, dt.date, dt.time, dt.timedelta, uuid.UUID, Interval, np.generic)


def _text_of(name: str, value: object) -> str | None:
    """The input text of a Python value.  42804 for one that has none: what ``str`` makes of it is no data."""
    if value is None or (isinstance(value, dt.datetime | np.datetime64 | np.timedelta64) and value != value):  # noqa: PLR0124 - NaT
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return "\\x" + bytes(value).hex()
    if isinstance(value, _WITH_TEXT) and not isinstance(value, np.complexfloating):
        return str(value)
    raise make_error("42804", f'a value of type {type(value).__name__} cannot be used for column "{name}"')
