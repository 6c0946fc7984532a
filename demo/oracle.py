"""The recomputation: DuckDB, fed from the event log, computing every view from scratch."""

from __future__ import annotations

import math
from decimal import Decimal

import duckdb
import pyarrow as pa

from demo.events import Day
from demo.records import Records
from demo.views import TABLES, View

__all__ = ["Recomputation", "differences"]

Row = tuple[object, ...]


class Recomputation:
    def __init__(self, records: Records) -> None:
        self._duck = duckdb.connect()
        self._duck.execute("SET threads TO 1")
        for name, columns in TABLES.items():
            self._duck.execute(f"CREATE TABLE {name} ({columns.replace('int PRIMARY KEY', 'int')})")
        for name in ("airlines", "airports", "planes", "weather"):
            self._insert(name, getattr(records, name))

    def _insert(self, name: str, rows: pa.Table) -> None:
        self._duck.register("incoming", rows)
        columns = ", ".join(rows.column_names)
        self._duck.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming")
        self._duck.unregister("incoming")

    def apply(self, day: Day) -> None:
        for gone in (day.corrected, day.deleted):
            self._duck.register("gone", gone)
            self._duck.execute("DELETE FROM flights WHERE id IN (SELECT id FROM gone)")
            self._duck.unregister("gone")
        self._insert("flights", day.added)
        self._insert("flights", day.corrected)
        self._duck.execute("DELETE FROM clock")
        self._duck.execute("INSERT INTO clock VALUES (1, ?)", [day.date])

    def rows(self, view: View) -> list[Row]:
        rows: list[Row] = self._duck.execute(view.query).fetchall()
        return rows


def differences(view: View, ours: list[Row], theirs: list[Row]) -> list[str]:
    """What differs, as readable lines; empty when the two bags of rows agree (floats to 9 digits)."""
    mine = {row[: view.keys]: row for row in ours}
    other = {row[: view.keys]: row for row in theirs}
    lines = [f"{len(ours)} rows against {len(theirs)}"] if len(ours) != len(theirs) else []
    for key in sorted(mine.keys() | other.keys(), key=repr):
        left, right = mine.get(key), other.get(key)
        if left is None or right is None or not all(map(_same, left, right)):
            lines.append(f"{left} against {right}")
    return lines


def _same(left: object, right: object) -> bool:
    if isinstance(left, (float, Decimal)) and isinstance(right, (int, float, Decimal)):
        return math.isclose(float(left), float(right), rel_tol=1e-9, abs_tol=1e-9)
    return left == right
