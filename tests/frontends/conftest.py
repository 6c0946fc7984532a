"""Fixtures of the frontends' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection
