"""Random tables, and literals from small domains, as SQL that every engine here takes."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = [
    "EXTRA_FAMILIES",
    "Column",
    "Scoped",
    "Table",
    "declared",
    "literal",
    "plain_family",
    "random_tables",
    "value",
]

#: family -> declared SQL type
_DECLARED = {
    "int": "int",
    "bigint": "bigint",
    "smallint": "smallint",
    "numeric": "numeric(10,2)",
    "free_numeric": "numeric",
    "float": "double precision",
    "odd_float": "double precision",
    "real": "real",
    "text": "text",
    "varchar": "varchar(5)",
    "char": "char(3)",
    "bytea": "bytea",
    "bool": "boolean",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "interval": "interval",
    "uuid": "uuid",
}
_PLAIN = {"smallint": "int", "varchar": "text", "free_numeric": "numeric", "odd_float": "float"}
_COMMON = ("int", "int", "int", "bigint", "numeric", "text", "text", "bool", "float", "date", "timestamp", "smallint")
#: families that only some tables have
EXTRA_FAMILIES = (
    "real",
    "varchar",
    "char",
    "bytea",
    "time",
    "timestamptz",
    "interval",
    "uuid",
    "free_numeric",
    "odd_float",
)
_WORDS = ("a", "b", "ab", "Abc", "ba", "", "zz", "é", "x y", "%a_")
_INTERVALS = ("1 mon", "-1 mon", "2 days", "03:00:00", "1 day 00:30:00", "-00:00:01.5", "1 year 2 mons")
_ZONED = ("2024-03-31 00:30:00+00", "2024-03-31 12:00:00+02", "2024-07-01 23:59:59.25-05", "2023-12-31 23:00:00+00")


@dataclass(frozen=True, slots=True)
class Column:
    """``family``: what the generators reason with; mostly the type's name."""

    name: str
    family: str
    nullable: bool = True
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Scoped:
    """A column that an expression may name.  ``derived``: of a query, not of a table, so of any size."""

    text: str
    family: str
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    keyed: bool  # the first column is the primary key

    @property
    def ddl(self) -> str:
        parts = []
        for i, column in enumerate(self.columns):
            default = f" DEFAULT {column.default}" if column.default is not None else ""
            constraint = " PRIMARY KEY" if self.keyed and i == 0 else "" if column.nullable else " NOT NULL"
            parts.append(f"{column.name} {_DECLARED[column.family]}{default}{constraint}")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


def declared(family: str) -> str:
    """The SQL type of a column of ``family``."""
    return _DECLARED[family]


def plain_family(family: str) -> str:
    """The family of an expression over a column of ``family``."""
    return _PLAIN.get(family, family)


def random_tables(rng: random.Random) -> tuple[Table, ...]:
    """Two or three tables; the first column is an int, so that joins find partners."""
    return tuple(_random_table(rng, f"t{i}") for i in range(rng.randint(2, 3)))


def _random_table(rng: random.Random, name: str) -> Table:
    keyed = rng.random() < 0.45
    columns = [Column(f"{name}_id" if keyed else "k", "int", nullable=not keyed and rng.random() < 0.8)]
    extra = rng.random() < 0.5
    for i in range(rng.randint(1, 4)):
        family = rng.choice(EXTRA_FAMILIES if extra and rng.random() < 0.6 else _COMMON)
        default = literal(rng, family) if rng.random() < 0.25 else None
        columns.append(Column(f"{name}c{i}", family, nullable=rng.random() < 0.85, default=default))
    return Table(name, tuple(columns), keyed)


def literal(rng: random.Random, family: str) -> str:
    """A literal from a small domain, so that values meet."""
    match family:
        case "int" | "bigint" | "smallint":
            return str(rng.randint(-3, 6))
        case "numeric":
            return rng.choice(("0", "1.50", "-2.25", "3.00", "10.10", "0.01", "7"))
        case "free_numeric":
            return rng.choice(("0", "1.5", "-2.125", "3", "12345678901234567890.5", "0.00001", "7"))
        case "float" | "real":
            return rng.choice(("0.5", "-1.25", "2", "1000000", "0.0625", "-3"))
        case "odd_float":
            odd = rng.choice(("NaN", "Infinity", "-Infinity", "-0", "0", "1e-300", "0.1"))
            return f"'{odd}'::double precision"
        case "text" | "varchar":
            return "'" + rng.choice(_WORDS) + "'"
        case "char":
            return "'" + rng.choice(("a", "a ", "ab", "abc", "", "b")) + "'"
        case "bool":
            return rng.choice(("true", "false"))
        case "date":
            return f"date '2024-0{rng.randint(1, 3)}-{rng.choice(('01', '15', '28'))}'"
        case "time":
            return f"time '{rng.choice(('00:00:00', '12:30:00', '23:59:59.999999', '06:00:00.5'))}'"
        case "timestamp":
            return f"timestamp '2024-01-{rng.choice(('01', '02', '31'))} {rng.choice(('00:00:00', '12:30:15.5'))}'"
        case "timestamptz":
            return f"timestamptz '{rng.choice(_ZONED)}'"
        case "interval":
            return f"interval '{rng.choice(_INTERVALS)}'"
        case "uuid":
            return f"uuid '{rng.choice('0a')}0000000-0000-4000-8000-00000000000{rng.randint(0, 2)}'"
        case "bytea":
            return rng.choice((r"'\x'", r"'\x00ff'", r"'\x61'", r"'\x6162'")) + "::bytea"
        case _:
            raise AssertionError(family)


def value(rng: random.Random, column: Column) -> str:
    return "NULL" if column.nullable and rng.random() < 0.18 else literal(rng, column.family)
