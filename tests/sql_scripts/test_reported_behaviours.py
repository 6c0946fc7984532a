"""Behaviours that users of other systems reported as wrong, here as PostgreSQL has them.

Each case runs with its views as given, and once more with every view kept in an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eddyline
from eddyline.testing.cases import Case, load_cases, play, with_every_view_indexed

_CASES = load_cases(Path(__file__).parent / "reported_behaviours.jsonl")
_NAMED = pytest.mark.parametrize("case", _CASES, ids=lambda c: c.name)


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection


@_NAMED
def test_views_as_given(db: eddyline.Connection, case: Case) -> None:
    play(db, case, case.setup)


@_NAMED
def test_views_kept_in_indexes(db: eddyline.Connection, case: Case) -> None:
    play(db, case, with_every_view_indexed(case))
