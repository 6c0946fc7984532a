"""Fixtures shared by all layers."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import pytest

from eddyline.adapter.engine import Engine
from eddyline.protocol.soft_assertion import handled_by
from eddyline.testing.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL 15 server per test process; its absence fails the test that asks for it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def layout() -> Iterator[None]:
    """EDDYLINE_INTERACTIVE=0 runs every database of the suite as Solo, whatever it asks for."""
    if os.environ.get("EDDYLINE_INTERACTIVE", "1") != "0":
        yield
        return
    patch = pytest.MonkeyPatch()
    original = Engine.__init__

    @functools.wraps(original)
    def solo(self: Engine, **arguments: object) -> None:
        original(self, **{**arguments, "interactive": False})  # type: ignore[arg-type]  # checked where it goes

    patch.setattr(Engine, "__init__", solo)
    yield
    patch.undo()


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
