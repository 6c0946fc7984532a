"""One served database per test process; each test works in a schema of its own."""

from __future__ import annotations

import itertools
import select
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from eddyline.frontends.pgwire.connection import WireConnection
from eddyline.testing.served import ServedDatabase

_schemas = itertools.count(1)

Connection = psycopg.Connection[tuple[object, ...]]


def told(client: psycopg.Connection[Any], within_s: float) -> bool:
    """Whether the server has said something that was not asked for: that it ends the session, say."""
    return bool(select.select([client.fileno()], [], [], within_s)[0])


def newcomers(served: ServedDatabase) -> Callable[[], set[WireConnection]]:
    """Gives the connections that are open and were not yet; those of earlier tests may end meanwhile."""
    before = set(served.server.open_connections)
    return lambda: set(served.server.open_connections) - before


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
