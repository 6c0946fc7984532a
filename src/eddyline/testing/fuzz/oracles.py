"""Answers as bags of rows that compare across engines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

import duckdb

from eddyline.testing.fuzz.schema import Table

__all__ = ["DuckOracle", "bag", "loosely_equal"]

Row = Sequence[object]

#: constructs that DuckDB reads in another way than PostgreSQL
_NOT_PORTABLE = frozenset(
    {
        "divide", "modulo", "mod", "numeric_divide", "regex", "row_compare", "substring", "round", "trunc", "sign", "row_in",
        "cast_text", "concat", "extract", "date_trunc", "cast_numeric", "numeric_multiply", "reverse", "cast_date", "floor",
        "ceil", "avg_numeric", "stddev", "variance", "like", "left", "right", "position", "split_part", "repeat",
    }
)  # fmt: skip


def bag(rows: Iterable[Row]) -> Counter[tuple[str, ...]]:
    """Rows by the text of their values: numerics count their scale, floats their every bit."""
    return Counter(tuple(_text(v) for v in row) for row in rows)


def _text(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case float() if value == 0:
            return "0.0"
        case float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


class DuckOracle:
    """The same tables in DuckDB."""

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self._duck = duckdb.connect()
        self._duck.execute("SET threads TO 1")
        self._duck.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for table in tables:
            self._duck.execute(table.ddl.replace(" PRIMARY KEY", ""))

    def execute(self, statement: str) -> None:
        self._duck.execute(statement)

    def rows(self, query: str, constructs: Iterable[str]) -> list[Row] | None:
        """The query's rows; None where it uses what DuckDB reads differently or does not have."""
        if not _NOT_PORTABLE.isdisjoint(constructs):
            return None
        try:
            return list(self._duck.execute(query).fetchall())
        except duckdb.Error:
            return None

    def close(self) -> None:
        self._duck.close()


def loosely_equal(left: Iterable[Row], right: Iterable[Row]) -> bool:
    """Equal as bags, numbers to nine digits whatever their type."""
    return _loose(left) == _loose(right)


def _loose(rows: Iterable[Row]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(_loose_text(v) for v in row) for row in rows)


def _loose_text(value: object) -> str:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = float(value)
        return "0" if number == 0 else f"{number:.9g}" if math.isfinite(number) else str(number)
    return _text(value)
