"""Hints for what other tools and drivers taught."""

from __future__ import annotations

import pytest

from eddyline.errors import Error
from eddyline.sql.habits import placeholder_hint
from eddyline.sql.parse import parse


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("\\d", "psql"),
        ("SELECT 1;\n\\dt orders", "psql"),
        ("describe orders", "SHOW COLUMNS"),
        ("SELECT %s", "$1"),
        ("SELECT %(id)s", "$1"),
        ("SELECT * FROM t WHERE id = :id", "$1"),
        ("SELECT ?", "execute(statement, [value])"),
        ("SELECT * FROM t WHERE id = ? AND x", "execute(statement, [value])"),
    ],
)
def test_a_syntax_error_says_what_is_written_here_instead(text: str, hint: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text)
    assert caught.value.sqlstate == "42601"
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("text", ["SELECT FROM WHERE", "SELEC 1", "SELECT 1 +"])
def test_an_ordinary_mistake_gets_no_such_hint(text: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text)
    assert caught.value.hint is None


@pytest.mark.parametrize("text", ["SELECT a::text", "SELECT 5 % 2", "SELECT 'at 10:30'", "SELECT time '10:30:00'"])
def test_ordinary_sql_has_no_placeholders(text: str) -> None:
    assert placeholder_hint(text) is None
