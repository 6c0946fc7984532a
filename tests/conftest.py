"""Fixtures shared by all layers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eddyline.testing.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL 15 server per test process; its absence fails the test that asks for it."""
    with PostgresServer() as server:
        yield server
