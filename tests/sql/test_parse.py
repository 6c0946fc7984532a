"""Text → statements: kinds, texts, positions; PostgreSQL's messages for what it refuses."""

from __future__ import annotations

import threading

import pytest

from eddyline.errors import DataError, Error, OperationalError, ProgrammingError
from eddyline.sql.extensions import AsOfSyntax, SubscribeSyntax
from eddyline.sql.parse import ParsedStatement, parse


def only(text: str) -> ParsedStatement:
    (statement,) = parse(text)
    return statement


def refusal(text: str) -> Error:
    with pytest.raises(Error) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("text", ["", "   ", ";", ";;\n;", "-- only a comment", "/* a /* nested */ one */ ;"])
def test_nothing_to_run(text: str) -> None:
    assert parse(text) == []


def test_statements_come_apart_with_their_texts() -> None:
    found = parse("SELECT 1;\n -- first\n INSERT INTO t VALUES (';') ; /* end */")
    assert [(s.kind, s.text) for s in found] == [
        ("select_stmt", "SELECT 1"),
        ("insert_stmt", "INSERT INTO t VALUES (';')"),
    ]


def test_extensions_and_plain_statements_mix() -> None:
    found = parse("SELECT 'é'; SUBSCRIBE t; SELECT a FROM t AS OF 5;")
    assert [s.kind for s in found] == ["select_stmt", "SubscribeSyntax", "AsOfSyntax"]
    assert [s.text for s in found] == ["SELECT 'é'", "SUBSCRIBE t", "SELECT a FROM t AS OF 5"]


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("SELECT * FORM t", 'syntax error at or near "FORM"', 10),
        ("SELECT 'é', 1 FORM t FROM", 'syntax error at or near "t"', 20),
        ("SELECT", None, None),
        ("SELECT (", "syntax error at end of input", 9),
        ("SELECT 'abc", 'unterminated quoted string at or near "\'abc"', 8),
        ('SELECT "abc', 'unterminated quoted identifier at or near ""abc"', 8),
        ("SELECT $x$abc", 'unterminated dollar-quoted string at or near "$x$abc"', 8),
        ("/* x", 'unterminated /* comment at or near "/* x"', 1),
        ("SELECT 1x", 'trailing junk after numeric literal at or near "1x"', 8),
        ('SELECT ""', 'zero-length delimited identifier at or near """"', 8),
        ("SELECT 1; SELECT FROM WHERE; SELECT 2", 'syntax error at or near "WHERE"', 23),
        ("SELECT 'é'; SELECT 'é' FROM ; SELECT 1", 'syntax error at or near ";"', 29),
        ("SUBSCRIBE t; SELECT * FORM t", 'syntax error at or near "FORM"', 23),
    ],
)
def test_syntax_errors_are_postgresql_s(text: str, message: str | None, position: int | None) -> None:
    if message is None:
        assert only(text).kind == "select_stmt"
        return
    error = refusal(text)
    assert (error.sqlstate, error.message, error.position) == ("42601", message, position)
    assert isinstance(error, ProgrammingError)


def test_nul_is_refused_at_its_place() -> None:
    error = refusal("SELECT 1\x00 FROM t")
    assert isinstance(error, DataError)
    assert (error.sqlstate, error.position) == ("22021", 9)
    assert error.message == 'invalid byte sequence for encoding "UTF8": 0x00'


def test_a_lone_surrogate_is_refused() -> None:
    error = refusal("SELECT '\ud800'")
    assert (error.sqlstate, error.position) == ("22021", 9)
    assert error.message == 'invalid byte sequence for encoding "UTF8": 0xed 0xa0 0x80'


def test_bad_unicode_escape() -> None:
    assert refusal("SELECT U&'\\zz'").sqlstate == "42601"
    assert refusal(r"SELECT E'\u00'").sqlstate == "22025"
    assert refusal(r"SELECT E'\u0000'").sqlstate == "42601"
    assert refusal(r"SELECT E'\ud83d'").sqlstate == "42601"
    assert refusal("SELECT cast('1' AS float(54))").sqlstate == "22023"


def test_a_long_literal_is_no_trouble() -> None:
    text = "SELECT '" + "x" * 10_000_000 + "'"
    assert only(text).node.target_list[0].res_target.val.a_const.sval.sval == "x" * 10_000_000


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT " + "+".join(["1"] * 200_000),
        "SELECT " + "NOT " * 50_000 + "true",
        "SELECT " + "CASE WHEN true THEN " * 6_000 + "1" + " END" * 6_000,
        " UNION ALL ".join(["SELECT 1, 2"] * 100_000),
        "SELECT * FROM a" + " JOIN b ON true AND true" * 50_000,
        "SELECT 1" + "::int" * 100_000,
        "(" * 100_000,
    ],
    ids=["brackets", "operators", "not", "case", "union", "join", "casts", "open"],
)
def test_deep_nesting_is_refused_before_it_recurses(text: str) -> None:
    error = refusal(text)
    assert isinstance(error, OperationalError)
    assert (error.sqlstate, error.message) == ("54001", "stack depth limit exceeded")


def test_moderate_nesting_passes() -> None:
    assert only("SELECT " + "+".join(["1"] * 2_000)).kind == "select_stmt"
    assert only("SELECT (" * 200 + "1" + ")" * 200).kind == "select_stmt"


def test_breadth_is_not_depth() -> None:
    assert only("INSERT INTO t VALUES " + ", ".join(["(1, 'x', -2, a + b)"] * 5_000)).kind == "insert_stmt"
    assert only("SELECT " + " OR ".join(["a = 1 AND b = 2"] * 5_000)).kind == "select_stmt"


def test_locations_become_character_positions() -> None:
    statement = only("SELECT 'é', a")
    location = statement.node.target_list[1].res_target.location
    assert statement.position(location) == 13
    assert statement.position(-1) is None


def test_locations_in_a_script_with_extensions() -> None:
    text = "SUBSCRIBE t; SELECT 'é', a"
    statement = parse(text)[1]
    assert statement.position(statement.node.target_list[1].res_target.location) == text.index("a", 20) + 1


def test_locations_inside_an_as_of_query() -> None:
    text = "SELECT 'é', a FROM t AS OF 5 + b LIMIT 3"
    statement = only(text)
    assert isinstance(statement.node, AsOfSyntax)
    query, as_of = statement.node.query, statement.node.as_of
    assert statement.position(query.target_list[1].res_target.location) == text.index("a FROM") + 1
    assert statement.position(as_of.a_expr.rexpr.column_ref.location) == text.index("b LIMIT") + 1
    assert query.HasField("limit_count")


def test_locations_inside_subscribe() -> None:
    text = "SUBSCRIBE TO (SELECT a FROM t) AS OF b"
    statement = only(text)
    assert isinstance(statement.node, SubscribeSyntax)
    assert statement.position(statement.node.query.target_list[0].res_target.location) == text.index("a FROM") + 1
    assert statement.node.as_of is not None
    assert statement.position(statement.node.as_of.column_ref.location) == len(text)


def test_threads_do_not_disturb_each_other() -> None:
    texts = [
        "SELECT 1",
        "SELECT (",
        "SUBSCRIBE t",
        "SELECT " + "+".join(["1"] * 300),
        "SELECT 'x",
        "SELECT 1; SELECT 2",
    ]

    def outcome(text: str) -> object:
        try:
            return [(s.kind, s.text) for s in parse(text)]
        except Error as error:
            return error.sqlstate, error.message, error.position

    expected = {text: outcome(text) for text in texts}
    wrong: list[str] = []

    def work(start: int) -> None:
        wrong.extend(t for i in range(40) if outcome(t := texts[(start + i) % len(texts)]) != expected[t])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
