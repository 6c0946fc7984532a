"""Functions whose arguments may be of any kind: untyped literals are text there."""

from __future__ import annotations

import pytest

from tests.sql.sample import run_text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT concat('a', 'b')", "ab"),
        ("SELECT concat('a', 1, true, NULL, 2.50)", "a1t2.50"),
        ("SELECT concat_ws(',', 'a', NULL, 1)", "a,1"),
    ],
)
def test_concat_takes_literals_of_any_kind(query: str, expected: str) -> None:
    assert run_text(query)[1] == [(expected,)]
