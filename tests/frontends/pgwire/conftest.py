"""One served database per test process; each test works in a schema of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from eddyline.testing.served import ServedDatabase

_schemas = itertools.count(1)

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="session")
def served() -> Iterator[ServedDatabase]:
    with ServedDatabase() as database:
        yield database


@pytest.fixture
def schema(served: ServedDatabase) -> Iterator[str]:
    name = f"s{next(_schemas)}"
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield name
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def pg(served: ServedDatabase, schema: str) -> Iterator[Connection]:
    """In autocommit, with the test's schema in the path."""
    with psycopg.connect(served.url, autocommit=True, options=f"-c search_path={schema}") as connection:
        yield connection
