"""pandas and Polars frames as Arrow tables; neither library is imported here.

A frame that Arrow cannot take as a whole is read column by column, so that what stands in the way is told by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from eddyline.errors import InterfaceError, make_error

__all__ = ["NOT_CONVERTIBLE", "is_pandas", "is_polars", "pandas_table", "polars_table", "without_views"]

#: what Arrow raises for values it finds no common type for; NumPy's and pandas' scalars raise Python's own
NOT_CONVERTIBLE = (ValueError, TypeError, NotImplementedError, OverflowError, AttributeError)


def is_pandas(data: object) -> bool:
    return _is_frame_of("pandas", data)


def is_polars(data: object) -> bool:
    return _is_frame_of("polars", data)


def _is_frame_of(library: str, data: object) -> bool:
    """Also of classes that a program has derived; a lazy frame is none."""
    names = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__}
    return (library, "DataFrame") in names


def pandas_table(data: Any, column: Callable[[str, Iterable[Any]], pa.Array | pa.ChunkedArray]) -> pa.Table:
    """A pandas frame's columns, behind those levels of its index that have names: an index without a name is the rows'
    numbers, or what a filter has left of them.

    ``column``: makes an array of values that are of several types.  Missing values of whatever kind are NULL.
    42701 for two columns of one name.
    """
    levels = {str(name): data.index.get_level_values(i) for i, name in enumerate(data.index.names) if name is not None}
    names = [*levels, *map(str, data.columns)]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise make_error(
                "42701",
                f'column "{name}" specified more than once',
                hint="The named levels of a frame's index are columns too; reset_index(drop=True) drops them.",
            )
    series = [*levels.values(), *(data.iloc[:, i] for i in range(data.shape[1]))]
    return pa.table([_pandas_column(*pair, column) for pair in zip(names, series, strict=True)], names=names)


def _pandas_column(
    name: str, values: Any, column: Callable[[str, Iterable[Any]], pa.Array | pa.ChunkedArray]
) -> pa.Array | pa.ChunkedArray:
    try:
        found = pa.array(values, from_pandas=True)
    except NOT_CONVERTIBLE:
        missing = values.isna()
        return column(name, [None if gone else v for v, gone in zip(values, missing, strict=True)])
    return without_views(found) if isinstance(found, pa.ChunkedArray) else found


def polars_table(data: Any) -> pa.Table:
    """A Polars frame's columns.  42804 for types that are not of Arrow: an Object is an address in memory."""
    for name, kind in data.schema.items():
        if str(kind) == "Object":
            raise InterfaceError(
                f'column "{name}" of the frame is of type Object, whose values only Python knows',
                sqlstate="42804",
                hint="Cast the column to a type of Polars', such as String.",
            )
    try:
        table = pa.table(data)
    except NOT_CONVERTIBLE as problem:
        raise InterfaceError(
            f"cannot read the frame's columns: {problem}",
            sqlstate="42804",
            hint="Cast the column to a type that Arrow has, such as Int64 or String.",
        ) from problem
    return pa.table([without_views(column) for column in table.columns], names=table.column_names)


def without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow has few kernels for views, so that they become plain strings."""
    if pa.types.is_dictionary(column.type):
        kind = _viewless(column.type.value_type)
        if kind == column.type.value_type:
            return column
        chunks = [pa.DictionaryArray.from_arrays(c.indices, c.dictionary.cast(kind)) for c in column.chunks]
        return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, kind))
    kind = _viewless(column.type)
    return column if kind == column.type else column.cast(kind)


def _viewless(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(data_type):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(data_type) else data_type
