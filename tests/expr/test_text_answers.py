"""Text functions, patterns and regular expressions against PostgreSQL 15's answers (``text_answers.jsonl``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.expr.harness import call

_LINES = [json.loads(line) for line in (Path(__file__).parent / "text_answers.jsonl").read_text("utf-8").splitlines()]


def _name(line: dict[str, Any]) -> str:
    return f"{line['call']}({','.join(line['types'])})"


@pytest.mark.parametrize("line", _LINES, ids=_name)
def test_calls_answer_as_postgres_does(line: dict[str, Any]) -> None:
    results = call(line["call"], line["types"], line["rows"])
    for row, result, expected in zip(line["rows"], results, line["answers"], strict=True):
        assert result == expected, row
