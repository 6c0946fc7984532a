"""What texts have in common but for their literals."""

from __future__ import annotations

import pytest

from eddyline.sql.text_shape import MAX_SHAPED_CHARS, text_shape


def _values(text: str) -> list[tuple[str, str]]:
    shape = text_shape(text)
    assert shape is not None
    return list(zip(shape.marks, shape.values, strict=True))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT v FROM t1 WHERE k = 5", [("i", "5")]),
        ("SELECT v FROM t1 WHERE k = 5 ;\n", [("i", "5")]),
        ("select v from t where k=2147483647 or k=2147483648.5", [("i", "2147483647"), ("1", "2147483648.5")]),
        ("SELECT v FROM t WHERE k = 5000000000", [("l", "5000000000")]),
        ("INSERT INTO t VALUES (1, -2, - 3.50, 'it''s', '')", [
            ("i", "1"), ("-i", "-2"), ("-2", "-3.50"), ("s", "it's"), ("s", "")]),
        ("SELECT a - 5, a -5, a + -5, a*-5 FROM t", [("i", "5"), ("i", "5"), ("-i", "-5"), ("i", "5")]),
        ('SELECT "a 5" FROM t5 WHERE b = 7 LIMIT 10 OFFSET 3', [("i", "7")]),
        ("SELECT 1e5, 0x1F, 1_000, .5, 5., x.5, 6", [("i", "6")]),
    ],
)  # fmt: skip
def test_literals_that_are_taken_out(text: str, found: list[tuple[str, str]]) -> None:
    assert _values(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 2147483648.5, 2147483648",
        "SELECT -2147483648 FROM t WHERE k IN (-2147483648)",
        "SELECT 9223372036854775807",
        "SELECT E'a', 5",
        "SELECT U&'a', 5",
        "SELECT 'a\\b', 5",
        "SELECT $1, 5",
        "SELECT $$a$$, 5",
        "SELECT 5 -- 6",
        "SELECT 5 /* 6 */",
        "SELECT 5; SELECT 6",
        "SELECT a FROM t",
        "EXPLAIN SELECT 5",
        "CREATE VIEW v AS SELECT 5",
        "WITH x AS (SELECT 5) SELECT * FROM x",
        "SELECT 5" + " " * MAX_SHAPED_CHARS,
    ],
)
def test_texts_without_a_shape(text: str) -> None:
    assert text_shape(text) is None


def test_texts_have_one_shape_where_their_literals_have_one_type() -> None:
    def key(literals: str) -> object:
        shape = text_shape(f"INSERT INTO t VALUES ({literals})")
        assert shape is not None
        return shape.key

    assert key("1, 'a'") == key("2, 'it''s'")
    assert len({key(v) for v in ("1", "-1", "5000000000", "-5000000000", "1.5", "1.50", "'1'")}) == 7
    shape = text_shape("UPDATE t SET a = 'x' WHERE k = -7")
    assert shape is not None and shape.template() == "UPDATE t SET a = $1 WHERE k = $2"
