"""Calls and casts against the answers of PostgreSQL 15 (``postgres_answers.jsonl``: one call or cast per line)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.expr.harness import call, cast

_LINES = [
    json.loads(line) for line in (Path(__file__).parent / "postgres_answers.jsonl").read_text("utf-8").splitlines()
]


def _name(line: dict[str, Any]) -> str:
    if "call" in line:
        return f"{line['call']}({','.join(line['types'])})"
    return f"{line['cast']}->{line['to']}{'' if line['explicit'] else ' assigned'}"


@pytest.mark.parametrize("line", [x for x in _LINES if "call" in x], ids=_name)
def test_calls_answer_as_postgres_does(line: dict[str, Any]) -> None:
    results = call(line["call"], line["types"], line["rows"])
    for row, result, expected in zip(line["rows"], results, line["answers"], strict=True):
        assert result == expected, row


@pytest.mark.parametrize("line", [x for x in _LINES if "cast" in x], ids=_name)
def test_casts_answer_as_postgres_does(line: dict[str, Any]) -> None:
    results = cast(line["cast"], line["to"], line["values"], explicit=line["explicit"])
    for value, result, expected in zip(line["values"], results, line["answers"], strict=True):
        assert result == expected, value
