"""Random definitions and changes, reopened now and then after a crash: everything is as a database in memory has it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from eddyline.adapter.durability import Durability
from eddyline.adapter.restoring import open_engine, restored_engine
from eddyline.errors import DatabaseError
from eddyline.frontends.connection import Connection
from eddyline.testing.torn_files import TornFiles

COLUMNS = {
    "int": ("1", "-7", "NULL", "2147483647"),
    "text": ("'a'", "''", "NULL", "'ünïcode'", "repeat('long ', 300)"),
    "numeric(12,3)": ("1.5", "NULL", "-0.001"),
    "numeric": ("1.50", "1.5", "1e20", "NULL"),
    "double precision": ("0.1", "'-0'", "'NaN'", "NULL", "'Infinity'"),
    "timestamptz": ("'2024-02-29 12:00Z'", "'infinity'", "NULL"),
    "date": ("'2000-01-01'", "NULL"),
    "interval": ("'1 month 2 days'", "'30 days'", "NULL"),
    "bytea": (r"'\x00ff'", "NULL"),
    "uuid": ("'00000000-0000-0000-0000-00000000002a'", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "char(5)": ("'ab'", "NULL"),
    "time": ("'23:59:59.999999'", "NULL"),
    "smallint": ("3", "NULL"),
}


class Script:
    """Statements that mostly make sense; what does not is refused by both databases alike."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._tables: dict[str, list[str]] = {}
        self._made = 0

    def statement(self) -> str:
        rng = self._rng
        if not self._tables or rng.random() < 0.08:
            return self._create_table()
        table = rng.choice(sorted(self._tables))
        match rng.choice(("insert",) * 8 + ("delete", "update", "view", "mv", "index", "drop", "rename", "block")):
            case "insert":
                return self._insert(table)
            case "delete":
                return f"DELETE FROM {table} WHERE k % {rng.randint(2, 5)} = 0"
            case "update":
                return f"UPDATE {table} SET k = k + 1000 WHERE k % {rng.randint(2, 9)} = 1"
            case "view":
                return f"CREATE OR REPLACE VIEW {table}_view AS SELECT k + {rng.randint(1, 3)} AS k FROM {table}"
            case "mv":
                source = rng.choice((table, f"{table}_view"))
                query = f"SELECT k % 5 AS g, count(*) FROM {source} GROUP BY 1"
                return f"CREATE MATERIALIZED VIEW {self._name('m')} AS {query}"
            case "index":
                return f"CREATE INDEX ON {rng.choice((table, f'{table}_view'))} (k)"
            case "drop":
                if rng.random() < 0.3:
                    del self._tables[table]
                    return f"DROP TABLE {table} CASCADE"
                return f"DROP VIEW {table}_view"
            case "rename":
                new = self._name("r")
                self._tables[new] = self._tables.pop(table)
                return f"ALTER TABLE {table} RENAME TO {new}"
            case _:
                end = rng.choice(("COMMIT", "ROLLBACK"))
                return f"BEGIN; {self._insert(table)}; CREATE TABLE {self._name('x')} AS SELECT 1 AS k; {end}"

    def _name(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}{self._made}"

    def _create_table(self) -> str:
        name, types = self._name("t"), self._rng.sample(sorted(COLUMNS), self._rng.randint(1, 5))
        self._tables[name] = types
        columns = ", ".join(f"c{i} {t}" for i, t in enumerate(types))
        key = self._rng.choice(("", " PRIMARY KEY"))
        return f"CREATE TABLE {name} (k int{key}, {columns})"

    def _insert(self, table: str) -> str:
        values = ", ".join(
            f"({self._rng.randrange(60)}, {', '.join(self._rng.choice(COLUMNS[t]) for t in self._tables[table])})"
            for _ in range(self._rng.choice((1, 1, 3, 12)))
        )
        return f"INSERT INTO {table} VALUES {values}"


def run(db: Connection, text: str) -> str | None:
    """The SQLSTATE that it is refused with."""
    try:
        db.executescript(text)
    except DatabaseError as error:
        db.rollback()
        return error.sqlstate
    return None


def everything(db: Connection) -> dict[str, Sequence[str]]:
    """All objects, with the rows of those that have any, as text."""
    names = db.execute("SELECT name, type FROM mz_catalog.mz_objects WHERE id LIKE 'u%' ORDER BY name, type").fetchall()
    found: dict[str, Sequence[str]] = {}
    for name, kind in names:
        found[f"{kind} {name}"] = (
            [] if kind == "index" else sorted(map(repr, db.execute(f"SELECT * FROM {name}").fetchall()))
        )
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_reopened_database_is_as_one_in_memory(seed: int) -> None:
    decisions, script = random.Random(seed), Script(seed)
    rng = random.Random(seed)  # of the files, which threads draw from at moments of their own
    files = TornFiles(rng)

    def reopened() -> Connection:
        return Connection(restored_engine(Durability(files, log_file_bytes=4000, least_log_bytes=10_000)), owner=True)

    memory, durable = Connection(open_engine(None), owner=True), reopened()
    refused = reopenings = 0
    for step in range(120):
        text = script.statement()
        code = run(memory, text)
        assert run(durable, text) == code, text
        refused += code is not None
        if decisions.random() < 0.05 or step == 119:
            left = decisions.choice((files.crash(rng), files.kill(), files))
            durable.close()
            files = left
            durable = reopened()
            assert everything(durable) == everything(memory)
            reopenings += 1
    assert reopenings > 1
    assert refused < 80
    for db in (memory, durable):
        db.close()
