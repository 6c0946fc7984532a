"""Random tables and random changes to them, as SQL that every engine here takes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Column", "Table", "changes", "random_tables"]

#: family -> (declared SQL type, literal of it or None for a random choice)
_DECLARED = {
    "int": "int",
    "bigint": "bigint",
    "smallint": "smallint",
    "numeric": "numeric(10,2)",
    "float": "double precision",
    "text": "text",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
_FAMILIES = ("int", "int", "int", "bigint", "numeric", "text", "text", "bool", "float", "date", "timestamp", "smallint")
_WORDS = ("a", "b", "ab", "Abc", "ba", "", "zz", "é", "x y", "%a_")


@dataclass(frozen=True, slots=True)
class Column:
    """``family``: what the generators reason with (int, bigint, numeric, float, text, bool, date, timestamp)."""

    name: str
    family: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    keyed: bool  # the first column is the primary key

    @property
    def ddl(self) -> str:
        parts = []
        for i, column in enumerate(self.columns):
            constraint = " PRIMARY KEY" if self.keyed and i == 0 else "" if column.nullable else " NOT NULL"
            parts.append(f"{column.name} {_DECLARED[column.family]}{constraint}")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


def random_tables(rng: random.Random) -> tuple[Table, ...]:
    """Two or three tables; the first column is an int, so that joins find partners."""
    return tuple(_random_table(rng, f"t{i}") for i in range(rng.randint(2, 3)))


def _random_table(rng: random.Random, name: str) -> Table:
    keyed = rng.random() < 0.4
    columns = [Column(f"{name}_id" if keyed else "k", "int", nullable=not keyed and rng.random() < 0.8)]
    for i in range(rng.randint(1, 4)):
        columns.append(Column(f"{name[0]}{name[1:]}c{i}", rng.choice(_FAMILIES), nullable=rng.random() < 0.85))
    return Table(name, tuple(columns), keyed)


def literal(rng: random.Random, family: str) -> str:
    """A literal from a small domain, so that values meet."""
    match family:
        case "int" | "bigint" | "smallint":
            return str(rng.randint(-3, 6))
        case "numeric":
            return rng.choice(("0", "1.50", "-2.25", "3.00", "10.10", "0.01", "7"))
        case "float":
            return rng.choice(("0.5", "-1.25", "2", "1000000", "0.0625", "-3"))
        case "text":
            return "'" + rng.choice(_WORDS) + "'"
        case "bool":
            return rng.choice(("true", "false"))
        case "date":
            return f"date '2024-0{rng.randint(1, 3)}-{rng.choice(('01', '15', '28'))}'"
        case "timestamp":
            return f"timestamp '2024-01-{rng.choice(('01', '02', '31'))} {rng.choice(('00:00:00', '12:30:15.5'))}'"
        case _:
            raise AssertionError(family)


def value(rng: random.Random, column: Column) -> str:
    return "NULL" if column.nullable and rng.random() < 0.18 else literal(rng, column.family)


def changes(rng: random.Random, tables: tuple[Table, ...], steps: int) -> Iterator[list[str]]:
    """``steps`` lists of statements; a list of several is one transaction.  Keys are tracked, so none collides."""
    next_key = {t.name: 0 for t in tables}
    for step in range(steps):
        count = rng.choice((1, 1, 1, 2, 3))
        yield [_change(rng, rng.choice(tables), next_key, warm=step >= 3) for _ in range(count)]


def _change(rng: random.Random, table: Table, next_key: dict[str, int], *, warm: bool) -> str:
    kind = rng.choices(("insert", "update", "delete", "truncate"), (6, 2, 3, 0.15))[0] if warm else "insert"
    match kind:
        case "insert":
            return f"INSERT INTO {table.name} VALUES " + ", ".join(
                _row(rng, table, next_key) for _ in range(rng.choice((1, 2, 3, 8)))
            )
        case "update":
            column = rng.choice(table.columns[1:])
            return f"UPDATE {table.name} SET {column.name} = {value(rng, column)} WHERE {_condition(rng, table)}"
        case "delete":
            return f"DELETE FROM {table.name} WHERE {_condition(rng, table)}"
        case _:
            return f"DELETE FROM {table.name}"


def _row(rng: random.Random, table: Table, next_key: dict[str, int]) -> str:
    values = [value(rng, c) for c in table.columns]
    if table.keyed:
        values[0] = str(next_key[table.name])
        next_key[table.name] += 1
    return f"({', '.join(values)})"


def _condition(rng: random.Random, table: Table) -> str:
    column = rng.choice(table.columns)
    if column.nullable and rng.random() < 0.2:
        return f"{column.name} IS NULL"
    operator = "=" if column.family in ("text", "bool") else rng.choice(("=", "<", ">"))
    return f"{column.name} {operator} {literal(rng, column.family)}"
