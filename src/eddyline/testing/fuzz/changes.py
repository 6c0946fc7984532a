"""Random changes to random tables: every statement that writes, in and out of transactions.

Keys are tracked, so that a statement violates a constraint only where it is meant to, alone in its transaction.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from eddyline.testing.fuzz.schema import Column, Table, literal, plain_family, value

__all__ = ["Change", "changes"]

#: families whose equal values always print alike, so that a LIMIT between ties keeps the same rows everywhere
_ONE_IMAGE = frozenset({"int", "smallint", "bigint", "numeric", "text", "bool", "date", "timestamp", "uuid", "time"})


@dataclass(frozen=True, slots=True)
class Change:
    """Statements to run one after another, a transaction's frame among them."""

    statements: list[str]


def changes(rng: random.Random, tables: tuple[Table, ...], steps: int, used: Counter[str]) -> Iterator[Change]:
    """``steps`` changes; the first three only insert."""
    writer = _Writer(rng, tables, used)
    for step in range(steps):
        yield writer.change(warm=step >= 3)


class _Writer:
    def __init__(self, rng: random.Random, tables: tuple[Table, ...], used: Counter[str]) -> None:
        self.rng = rng
        self.tables = tables
        self.used = used
        self.next_key = {t.name: 0 for t in tables}

    def change(self, *, warm: bool) -> Change:
        rng = self.rng
        if warm and rng.random() < 0.06:
            return Change([self._violation()])
        statements = [self._statement(rng.choice(self.tables), warm=warm) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        if len(statements) == 1 and rng.random() < 0.9:
            return Change(statements)
        ending = rng.choices(("commit", "rollback", "savepoint", "none"), (5, 1, 2, 3))[0]
        self.used[f"transaction_{ending}"] += 1
        match ending:
            case "commit":
                return Change(["BEGIN", *statements, "COMMIT"])
            case "none":
                # Several commits that no read separates: maintenance sees them in one batch.
                more = [self._statement(rng.choice(self.tables), warm=warm) for _ in range(rng.randint(0, 4))]
                return Change([*statements, *more])
            case "rollback":
                return Change(["BEGIN", *statements, "ROLLBACK"])
            case _:
                undone = self._statement(rng.choice(self.tables), warm=warm)
                later = self._statement(rng.choice(self.tables), warm=warm)
                frame = ["BEGIN", *statements, "SAVEPOINT s", undone]
                if rng.random() < 0.3:
                    return Change([*frame, "RELEASE SAVEPOINT s", later, "COMMIT"])
                return Change([*frame, "ROLLBACK TO SAVEPOINT s", later, "COMMIT"])

    def _statement(self, table: Table, *, warm: bool) -> str:
        rng = self.rng
        if not warm:
            return self._insert(table)
        kinds = {
            self._insert: 5.0,
            self._insert_select: 1.0,
            self._insert_series: 0.3,
            self._upsert: 1.5 if table.keyed else 0.0,
            self._update: 2.0,
            self._update_from: 0.8,
            self._delete: 2.0,
            self._delete_using: 0.7,
            self._truncate: 0.15,
        }
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        self.used[kind.__name__.strip("_")] += 1
        statement = kind(table)
        if kind != self._truncate and rng.random() < 0.2:
            self.used["returning"] += 1
            returned = "*" if kind not in (self._update_from, self._delete_using) else f"{table.name}.*"
            statement += f" RETURNING {returned}"
        return statement

    # -- insert

    def _insert(self, table: Table) -> str:
        columns = table.columns
        if self.rng.random() < 0.3:
            self.used["insert_defaults"] += 1
            columns = tuple(
                c for i, c in enumerate(columns) if i == 0 or not (c.nullable or c.default) or self.rng.random() < 0.5
            )
        rows = ", ".join(self._row(table, columns) for _ in range(self.rng.choice((1, 2, 3, 8))))
        return f"INSERT INTO {table.name} ({', '.join(c.name for c in columns)}) VALUES {rows}"

    def _row(self, table: Table, columns: tuple[Column, ...], key: int | None = None) -> str:
        values = [
            "DEFAULT" if c.default is not None and self.rng.random() < 0.2 else value(self.rng, c) for c in columns
        ]
        if table.keyed:
            values[0] = str(self._fresh_key(table) if key is None else key)
        return f"({', '.join(values)})"

    def _fresh_key(self, table: Table) -> int:
        self.next_key[table.name] += 1
        return self.next_key[table.name] - 1

    def _insert_select(self, table: Table) -> str:
        """At most four rows, so that tables don't double."""
        source = self.rng.choice(self.tables)
        outputs = [self._assigned(c, source, "s") for c in table.columns]
        names = ", ".join(c.name for c in table.columns)
        if table.keyed:
            outputs[0] = f"{self._fresh_key(table)}"
        few = self._few(source, 1 if table.keyed else 4)
        return f"INSERT INTO {table.name} ({names}) SELECT {', '.join(outputs)} FROM ({few}) AS s"

    def _insert_series(self, table: Table) -> str:
        """A few dozen rows at once, each value from its number."""
        count = self.rng.randint(20, 40)
        outputs = [self._of_number(c) for c in table.columns]
        if table.keyed:
            outputs[0] = f"{self.next_key[table.name]} + n"
            self.next_key[table.name] += count + 1
        names = ", ".join(c.name for c in table.columns)
        return (
            f"INSERT INTO {table.name} ({names}) SELECT {', '.join(outputs)} FROM generate_series(1, {count}) AS g(n)"
        )

    def _of_number(self, column: Column) -> str:
        match column.family:
            case "int" | "bigint" | "smallint" | "numeric":
                return f"n % {self.rng.choice((3, 7, 11))}"
            case "text":
                return "repeat('a', n % 4)"
            case "date":
                return "date '2024-01-01' + n % 5"
            case _:
                return self._typed(column)

    def _few(self, source: Table, count: int) -> str:
        usable = [c.name for c in source.columns if c.family in _ONE_IMAGE]
        return f"SELECT DISTINCT {', '.join(usable)} FROM {source.name} ORDER BY {', '.join(usable)} LIMIT {count}"

    def _assigned(self, column: Column, source: Table, alias: str) -> str:
        """A value for ``column``: a column of ``source`` of its family that can't be refused, or a literal."""
        fit = [
            c
            for c in source.columns
            if c.family == column.family and c.family in _ONE_IMAGE and (column.nullable or not c.nullable)
        ]
        return f"{alias}.{self.rng.choice(fit).name}" if fit and self.rng.random() < 0.8 else self._typed(column)

    def _typed(self, column: Column) -> str:
        text = literal(self.rng, column.family)
        declared = {"varchar": "varchar(5)", "char": "char(3)"}.get(column.family)
        return f"{text}::{declared}" if declared else text

    def _upsert(self, table: Table) -> str:
        rng = self.rng
        top = self.next_key[table.name] + 2
        keys = rng.sample(range(max(0, top - 6), top), rng.randint(1, min(3, top)))
        self.next_key[table.name] = max(self.next_key[table.name], *(k + 1 for k in keys))
        rows = ", ".join(self._row(table, table.columns, key) for key in keys)
        text = f"INSERT INTO {table.name} VALUES {rows} ON CONFLICT"
        key_column = table.columns[0].name
        if rng.random() < 0.4:
            self.used["on_conflict_do_nothing"] += 1
            return text + rng.choice((" DO NOTHING", f" ({key_column}) DO NOTHING"))
        self.used["on_conflict_do_update"] += 1
        column = rng.choice(table.columns[1:])
        where = f" WHERE {table.name}.{key_column} > {rng.randint(0, 4)}" if rng.random() < 0.3 else ""
        return f"{text} ({key_column}) DO UPDATE SET {column.name} = excluded.{column.name}{where}"

    # -- update and delete

    def _update(self, table: Table) -> str:
        rng = self.rng
        columns = rng.sample(table.columns[1:], min(rng.choice((1, 1, 2)), len(table.columns) - 1))
        settings = ", ".join(f"{c.name} = {self._new_value(table, c)}" for c in columns)
        return f"UPDATE {table.name} SET {settings} WHERE {self._condition(table)}"

    def _new_value(self, table: Table, column: Column) -> str:
        rng = self.rng
        if column.default is not None and rng.random() < 0.2:
            return "DEFAULT"
        if rng.random() < 0.3:
            match column.family:
                case "int" | "bigint":
                    return f"coalesce({column.name} % 7, 0) + {rng.randint(-2, 2)}"
                case "text":
                    return f"coalesce(left({column.name}, 2), '') || 'a'"
                case "bool":
                    return f"coalesce(NOT {column.name}, false)"
                case "date" if column.nullable:
                    return f"{column.name} + 1"
                case "int" if column.nullable:
                    other = rng.choice(self.tables)
                    return f"(SELECT max({other.columns[0].name}) FROM {other.name})"
        return value(rng, column)

    def _update_from(self, table: Table) -> str:
        """Each row has at most one partner, so that every engine writes the same."""
        source = self.rng.choice(self.tables)
        column = self.rng.choice(table.columns[1:])
        key = source.columns[0].name
        fit = [c for c in source.columns if c.family == column.family and c.family in _ONE_IMAGE - {"bool", "uuid"}]
        if not fit or not column.nullable:
            return self._update(table)
        new = f"max({self.rng.choice(fit).name})"
        grouped = f"SELECT {key} AS k0, {new} AS m FROM {source.name} GROUP BY {key}"
        where = f"{table.name}.{table.columns[0].name} = s.k0"
        return f"UPDATE {table.name} SET {column.name} = s.m FROM ({grouped}) AS s WHERE {where}"

    def _delete(self, table: Table) -> str:
        if self.rng.random() < 0.2:
            self.used["delete_in_subquery"] += 1
            other = self.rng.choice(self.tables)
            inner = f"SELECT {other.columns[0].name} FROM {other.name} WHERE {self._condition(other)}"
            return f"DELETE FROM {table.name} WHERE {table.columns[0].name} IN ({inner})"
        return f"DELETE FROM {table.name} WHERE {self._condition(table)}"

    def _delete_using(self, table: Table) -> str:
        other = self.rng.choice(self.tables)
        pair = f"{table.name}.{table.columns[0].name} = o.{other.columns[0].name}"
        condition = self._condition(other, "o.")
        return f"DELETE FROM {table.name} USING {other.name} AS o WHERE {pair} AND {condition}"

    def _truncate(self, table: Table) -> str:
        return f"TRUNCATE {table.name}"

    def _condition(self, table: Table, prefix: str = "") -> str:
        rng = self.rng
        column = rng.choice(table.columns)
        name = f"{prefix}{column.name}"
        if column.nullable and rng.random() < 0.2:
            return f"{name} IS NULL"
        operator = "=" if plain_family(column.family) in ("text", "bool", "char") else rng.choice(("=", "<", ">"))
        return f"{name} {operator} {literal(rng, column.family)}"

    def _violation(self) -> str:
        """A statement that every engine refuses: null in a NOT NULL column, a repeated key, a number out of range."""
        rng = self.rng
        table = rng.choice(self.tables)
        choices = [f"INSERT INTO {table.name} SELECT * FROM nowhere"]
        for i, column in enumerate(table.columns):
            if not column.nullable:
                choices.append(f"UPDATE {table.name} SET {column.name} = NULL")
                values = ["NULL" if j == i else literal(rng, c.family) for j, c in enumerate(table.columns)]
                choices.append(f"INSERT INTO {table.name} VALUES ({', '.join(values)})")
            if column.family == "smallint":
                choices.append(f"UPDATE {table.name} SET {column.name} = coalesce({column.name}, 1) + 70000")
            if column.family == "varchar":
                choices.append(f"UPDATE {table.name} SET {column.name} = coalesce({column.name}, '') || 'longer'")
        if table.keyed:
            row = self._row(table, table.columns, 1000)
            choices.append(f"INSERT INTO {table.name} VALUES {row}, {row}")
        self.used["refused_write"] += 1
        return rng.choice(choices)
