"""``?`` placeholders become ``$n`` where, and only where, they are placeholders."""

from __future__ import annotations

import pytest

from eddyline.sql.qmark import qmark_position, qmark_to_dollar


@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        ("SELECT ?", "SELECT $1", 1),
        ("INSERT INTO t VALUES (?,?, ?)", "INSERT INTO t VALUES ($1,$2, $3)", 3),
        ("a=? AND b<>?", "a=$1 AND b<>$2", 2),
        ("?+?", "$1+$2", 2),
        ("?||'x'", "$1||'x'", 1),
        ("?::int", "$1::int", 1),
        ("SELECT '?', \"?\", $$?$$ -- ?\n /* ? */ , ?", "SELECT '?', \"?\", $$?$$ -- ?\n /* ? */ , $1", 1),
        ("SELECT E'\\'?' || ?", "SELECT E'\\'?' || $1", 1),
        ("a ?| b", "a ?| b", 0),
        ("SELECT $1, ?", "SELECT $1, ?", 0),
        ("SELECT 'open ?", "SELECT 'open ?", 0),
        ("SELECT 1", "SELECT 1", 0),
        ("é = ?", "é = $1", 1),
        ("SELECT '\ud800' ?", "SELECT '\ud800' ?", 0),
    ],
)
def test_placeholders(text: str, expected: str, count: int) -> None:
    assert qmark_to_dollar(text) == (expected, count)


def test_positions_go_back_to_the_text_as_written() -> None:
    text = "é=? AND " + "?," * 12 + "x"
    rewritten, _ = qmark_to_dollar(text)
    for mark in ("é", "AND", "x"):
        assert qmark_position(text, rewritten.index(mark) + 1) == text.index(mark) + 1
