"""Answers as bags of rows that compare across engines, and the two engines that answer beside ours."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

import duckdb
import numpy as np
import psycopg
from psycopg.adapt import Loader

from eddyline.repr.interval import Interval
from eddyline.testing.fuzz.schema import Table, declared

__all__ = ["DuckOracle", "Row", "bag", "bag_of_equals", "equal_text", "loosely_equal", "prepare_postgres"]

Row = Sequence[object]

#: constructs that DuckDB reads in another way than PostgreSQL, or does not have
_NOT_PORTABLE = frozenset(
    {
        "age", "any_list", "at_time_zone", "avg_interval", "avg_numeric", "boolean_chain", "bytea_substring",
        "cast_char", "cast_date", "cast_numeric", "cast_text", "cast_varchar", "ceil", "compare_numbers",
        "concat", "concat_any", "date_bin", "date_trunc", "divide", "extract", "extract_epoch",
        "extract_interval", "extract_time", "floor", "guarded_divide", "interval_divide", "justify", "left",
        "like", "local_at_time_zone", "lpad", "mod", "modulo", "numeric_divide", "numeric_multiply",
        "octet_length", "operator_chain", "plus_interval", "position", "power_numeric", "regex",
        "regexp_replace", "right", "round", "round_to_int", "row_compare", "row_distinct", "row_in", "row_is_null",
        "row_in_list", "sign", "split_part", "stddev", "stddev_float", "string_agg_bytea", "substring",
        "sum_interval", "time_minus", "translate", "trunc", "trunc_in_zone", "type_bytea", "type_char",
        "type_free_numeric", "type_interval", "type_time", "type_timestamptz", "variance",
    }
)  # fmt: skip
_DAYS_PER_MONTH, _MICROS_PER_DAY = 30, 86_400_000_000


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


def bag_of_equals(rows: Iterable[Row]) -> Counter[tuple[str, ...]]:
    """As ``bag``, but values that SQL calls equal are one: which of them stands for its group is left open."""
    return Counter(tuple(equal_text(v) for v in row) for row in rows)


def equal_text(value: object) -> str:
    """The same text for values that SQL calls equal."""
    match value:
        case Decimal():
            return f"{value.normalize():f}" if value else "0"
        case Interval():
            days = value.months * _DAYS_PER_MONTH + value.days
            return str(days * _MICROS_PER_DAY + value.microseconds)
        case _:
            return _text(value)


class _RealLoader(Loader):
    def load(self, data: bytes | bytearray | memoryview) -> float:
        return float(np.float32(bytes(data).decode()))


class _IntervalLoader(Loader):
    """PostgreSQL's text of an interval, part by part: a timedelta would fold months into days."""

    def load(self, data: bytes | bytearray | memoryview) -> Interval:
        text = bytes(data).decode()
        months = 12 * self._count(text, "year") + self._count(text, "mon")
        clock = re.search(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?$", text)
        micros = 0
        if clock:
            hours, minutes, seconds = (int(clock[i]) for i in (2, 3, 4))
            micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((clock[5] or "0").ljust(6, "0"))
            micros = -micros if clock[1] == "-" else micros
        return Interval(months, self._count(text, "day"), micros)

    @staticmethod
    def _count(text: str, unit: str) -> int:
        found = re.search(rf"([+-]?\d+) {unit}s?\b", text)
        return int(found[1]) if found else 0


def prepare_postgres(postgres: psycopg.Connection[tuple[object, ...]]) -> None:
    """Has it give Python values that compare with ours, and give up on what takes it more than five seconds."""
    postgres.adapters.register_loader("float4", _RealLoader)
    postgres.adapters.register_loader("interval", _IntervalLoader)
    postgres.prepare_threshold = None
    postgres.execute("SET statement_timeout = '5s'")


class DuckOracle:
    """The same tables in DuckDB: PostgreSQL's rows, copied before each comparison, so that only the query differs."""

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self._duck = duckdb.connect()
        self._duck.execute("SET threads TO 1")
        self._duck.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for table in tables:
            columns = ", ".join(f"{c.name} {_duck_type(c.family)}" for c in table.columns)
            self._duck.execute(f"CREATE TABLE {table.name} ({columns})")

    def load(self, table: str, rows: list[tuple[object, ...]]) -> None:
        self._duck.execute(f"DELETE FROM {table}")
        if rows:
            marks = ", ".join(["(" + ", ".join("?" * len(rows[0])) + ")"] * len(rows))
            values = [str(v) if isinstance(v, Interval) else v for row in rows for v in row]
            self._duck.execute(f"INSERT INTO {table} VALUES {marks}", values)

    def create_view(self, name: str, query: str, constructs: Iterable[str]) -> bool:
        """Whether DuckDB has all of it, and reads it as PostgreSQL does."""
        if not _NOT_PORTABLE.isdisjoint(constructs):
            return False
        try:
            self._duck.execute(f"CREATE VIEW {name} AS {query}")
        except duckdb.Error:
            return False
        return True

    def rows(self, view: str) -> list[tuple[object, ...]] | None:
        """None where DuckDB fails on these rows."""
        try:
            return list(self._duck.execute(f"SELECT * FROM {view}").fetchall())
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


def _duck_type(family: str) -> str:
    return "decimal(38, 10)" if family == "free_numeric" else declared(family)
