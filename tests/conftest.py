"""Fixtures shared by all layers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from eddyline.kernels.warm import warm
from eddyline.protocol.soft_assertion import handled_by
from eddyline.testing.postgres import PostgresServer
from tests.layouts import by_default, chosen

# The same examples in each run, however slow the machine is at the moment.
settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL 15 server per test process; its absence fails the test that asks for it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """All are loaded: no test finds another's first moments."""
    warm()


@pytest.fixture(scope="session", autouse=True)
def layout() -> Iterator[None]:
    """Databases that do not say which layout they want get that of the run."""
    with by_default(interactive=chosen()):
        yield


@pytest.fixture
def two_runtimes(layout: None) -> Iterator[None]:
    """For tests of what only two runtimes have: their databases have them in either run."""
    with by_default(interactive=True):
        yield


@pytest.fixture(autouse=True)
def soft_assertions_fail() -> Iterator[None]:
    """A soft assertion fails the test in which it is tripped, unless the test asks for ``tripped``."""

    def fail(text: str) -> None:
        raise AssertionError(text)

    with handled_by(fail):
        yield


@pytest.fixture
def tripped(soft_assertions_fail: None) -> Iterator[list[str]]:
    """The texts of the soft assertions that were tripped, which do not raise then."""
    texts: list[str] = []
    with handled_by(texts.append):
        yield texts
