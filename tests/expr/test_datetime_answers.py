"""Dates, times and intervals against PostgreSQL 15's answers (``datetime_answers.jsonl``; TimeZone UTC)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.expr.harness import call, cast

_LINES = [
    json.loads(line) for line in (Path(__file__).parent / "datetime_answers.jsonl").read_text("utf-8").splitlines()
]


def _name(line: dict[str, Any]) -> str:
    return f"{line['call']}({','.join(line['types'])})" if "call" in line else f"{line['cast']}->{line['to']}"


@pytest.mark.parametrize("line", [x for x in _LINES if "call" in x], ids=_name)
def test_calls_answer_as_postgres_does(line: dict[str, Any]) -> None:
    results = call(line["call"], line["types"], line["rows"])
    for row, result, expected in zip(line["rows"], results, line["answers"], strict=True):
        assert result == expected, row


@pytest.mark.parametrize("line", [x for x in _LINES if "cast" in x], ids=_name)
def test_casts_answer_as_postgres_does(line: dict[str, Any]) -> None:
    results = cast(line["cast"], line["to"], line["values"])
    for value, result, expected in zip(line["values"], results, line["answers"], strict=True):
        assert result == expected, value
