"""UPDATE, DELETE and INSERT … SELECT on small bags: the rows they retract, add and return, against PostgreSQL.

The relation of a bound statement is evaluated from scratch; PostgreSQL runs the statement itself.  Statements are
such that several matching FROM rows do not make the result ambiguous.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from eddyline.sql.statements import Delete, Insert, Update
from eddyline.testing.catalog_script import CatalogScript
from eddyline.testing.postgres import PostgresServer
from tests.plan import naive

SETUP = (
    "CREATE TABLE k (a int PRIMARY KEY, b int, c text)",
    "CREATE TABLE n (a int, b int, c text)",
    "CREATE TABLE o (a int, b int)",
)
STATEMENTS = (
    "UPDATE k SET b = b + 1 RETURNING a, b",
    "UPDATE k SET (a, b) = (a + 100, a)",
    "UPDATE k SET b = a, a = a + 100 RETURNING *",
    "UPDATE n SET b = NULL WHERE a > 1 RETURNING n.*",
    "UPDATE n SET a = a + 1, c = 'new' WHERE b IN (SELECT b FROM o)",
    "UPDATE n SET a = a + 1 WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.b = n.b)",
    "UPDATE n SET c = 'joined' FROM o WHERE o.a = n.a RETURNING n.a, n.c",
    "UPDATE k SET b = q.m FROM (SELECT a, max(b) AS m FROM o GROUP BY a) AS q WHERE q.a = k.a RETURNING k.a, q.m",
    "UPDATE n SET b = q.m FROM (SELECT a, max(b) AS m FROM o GROUP BY a) AS q WHERE q.a = n.a RETURNING n.a, n.b, q.m",
    "UPDATE n AS x SET b = (SELECT max(b) FROM o WHERE o.a = x.a)",
    "UPDATE n SET (a, b) = (SELECT max(o.b), min(o.a) FROM o WHERE o.a = n.a) WHERE a IN (SELECT a FROM o)",
    "WITH q AS (SELECT DISTINCT a FROM o) UPDATE n SET c = 'cte' FROM q WHERE q.a = n.a",
    "UPDATE n SET c = 'self' FROM n AS m WHERE m.a = n.b",
    "DELETE FROM k WHERE b > 1 RETURNING a",
    "DELETE FROM n WHERE a IN (SELECT a FROM o) RETURNING *",
    "DELETE FROM n USING o WHERE o.a = n.a RETURNING n.a, n.b",
    "DELETE FROM k USING o, n WHERE o.a = k.a AND n.a = o.a",
    "DELETE FROM n WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.a = n.a)",
    "WITH q AS (SELECT a FROM o WHERE b > 1) DELETE FROM n USING q WHERE q.a = n.a",
    "INSERT INTO n (b, a) SELECT a, b FROM o RETURNING a, b, c",
    "INSERT INTO n SELECT a, count(*), 'lit' FROM n GROUP BY a",
    "INSERT INTO n VALUES (1, NULL, 'v'), (1, NULL, 'v'), (2, (SELECT max(a) FROM o), DEFAULT)",
)


@pytest.fixture(scope="module")
def server(postgres: PostgresServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with postgres.connect() as connection:
        for text in SETUP:
            connection.execute(text.replace("CREATE TABLE", "CREATE TEMP TABLE").encode())
        yield connection


def random_rows(rng: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    def small() -> int | None:
        return rng.choice([None, 0, 1, 2, 3])

    keyed = [(a, small(), rng.choice(["x", "y", None])) for a in rng.sample(range(5), rng.randrange(5))]
    bag = [(small(), small(), rng.choice(["x", "y"])) for _ in range(rng.randrange(5))]
    return {
        "k": keyed,
        "n": bag + rng.choices(bag, k=rng.randrange(3)) if bag else [],
        "o": [(small(), small()) for _ in range(rng.randrange(5))],
    }


@pytest.mark.parametrize("text", STATEMENTS)
def test_effects_are_postgresql_s(server: psycopg.Connection[tuple[object, ...]], text: str) -> None:
    script = CatalogScript(*SETUP)
    statement: Any = script.bind(text)
    rng = random.Random(text)
    for _ in range(12):
        tables = random_rows(rng)
        after, returned = expected(server, text, tables, statement.table.name)
        bags = {script.item(name).id: Counter(rows) for name, rows in tables.items()}
        found = naive.relation(statement.relation, bags)
        changed = Counter(bags[statement.table.id])
        width = len(statement.table.columns)
        match statement:
            case Insert():
                changed.update(found)
            case Update():
                changed.subtract(project(found, range(width)))
                changed.update(project(found, range(width, 2 * width)))
            case Delete():
                changed.subtract(project(found, range(width)))
        assert +changed == after, tables
        assert not -changed
        if statement.returning is not None:
            rows = [
                tuple(naive.scalar(e, row) for e in statement.returning.exprs)
                for row, count in found.items()
                for _ in range(count)
            ]
            assert Counter(rows) == returned, tables


def project(bag: Counter[tuple[Any, ...]], columns: range) -> Counter[tuple[Any, ...]]:
    result: Counter[tuple[Any, ...]] = Counter()
    for row, count in bag.items():
        result[tuple(row[c] for c in columns)] += count
    return result


def expected(
    server: psycopg.Connection[tuple[object, ...]], text: str, tables: dict[str, list[tuple[Any, ...]]], target: str
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """The target's rows after the statement, and what it returned; rolled back."""
    with server.transaction(force_rollback=True), server.cursor() as cursor:
        for name, rows in tables.items():
            for row in rows:
                values = ", ".join(["%s"] * len(row))
                cursor.execute(f"INSERT INTO {name} VALUES ({values})".encode(), row)
        cursor.execute(text.encode())
        returned = Counter(cursor.fetchall() if cursor.description else [])
        cursor.execute(f"SELECT * FROM {target}".encode())
        after = Counter(cursor.fetchall())
    return after, returned
