"""Bound queries, evaluated from scratch, give PostgreSQL's stored answers: names, types, rows, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eddyline.errors import Error
from tests.sql.sample import as_bag, run_text

_HERE = Path(__file__).parent


def _stored(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((_HERE / name).read_text())
    return entries


_ALL = [
    case
    for name in ("answers_queries.json", "answers_correlated.json", "answers_typing.json")
    for case in _stored(name)
]


@pytest.mark.parametrize("case", [c for c in _ALL if "rows" in c], ids=lambda c: c["query"][:80])
def test_query_gives_the_stored_answer(case: dict[str, Any]) -> None:
    bound, rows = run_text(case["query"])
    assert list(bound.names) == case["names"]
    assert [t.kind.value for t in bound.types] == case["types"]
    assert as_bag(rows) == as_bag(case["rows"])


@pytest.mark.parametrize("case", [c for c in _ALL if "sqlstate" in c], ids=lambda c: c["query"][:80])
def test_query_gives_the_stored_error(case: dict[str, Any]) -> None:
    with pytest.raises(Error) as caught:
        run_text(case["query"])
    error = caught.value
    assert (error.sqlstate, error.message, error.position) == (case["sqlstate"], case["message"], case["position"])
