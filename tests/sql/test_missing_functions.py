"""Functions of PostgreSQL's that are not there are refused by name; names that nobody has do not exist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import eddyline


@pytest.fixture(scope="module")
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=True) as connection:
        yield connection


def error_of(db: eddyline.Connection, expression: str) -> tuple[str | None, str]:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(f"SELECT {expression}")
    return caught.value.sqlstate, str(caught.value).splitlines()[0]


@pytest.mark.parametrize(
    "name",
    ["pg_listening_channels", "to_tsvector", "json_array_length", "pg_advisory_lock", "upper_inc", "inet_client_addr"],
)
def test_functions_are_refused_by_name(db: eddyline.Connection, name: str) -> None:
    assert error_of(db, f"{name}(1)") == ("0A000", f"function {name} is not supported")


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("age(now())", "age(timestamp with time zone)"),
        ("age('2024-01-01')", "age(unknown)"),
        ("array_agg(ARRAY[1])", "array_agg(integer[])"),
        ("btrim('\\x01'::bytea, '\\x01')", "btrim(bytea, unknown)"),
        ("regexp_replace('a', 'a', 'b', 1)", "regexp_replace(unknown, unknown, unknown, integer)"),
        ("regexp_replace('a', 'a', 'b', 1, 1)", "regexp_replace(unknown, unknown, unknown, integer, integer)"),
        (
            "regexp_replace('a', 'a', 'b', 1, 1, 'i')",
            "regexp_replace(unknown, unknown, unknown, integer, integer, unknown)",
        ),
        ("substring('abc' SIMILAR 'b' ESCAPE '#')", "substring(unknown, unknown, unknown)"),
        ("to_timestamp('2024', 'YYYY')", "to_timestamp(unknown, unknown)"),
        ("json_build_object()", "json_build_object()"),
    ],
)
def test_further_meanings_of_a_name_are_refused_by_their_arguments(
    db: eddyline.Connection, call: str, shown: str
) -> None:
    assert error_of(db, call) == ("0A000", f"function {shown} is not supported")


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("age('2024-02-01', '2024-01-01'::timestamp)", "1 mon"),
        ("btrim('xax', 'x')", "a"),
        ("regexp_replace('Aa', 'a', 'b', 'gi')", "bb"),
        ("substring('abc', 2, 1)", "b"),
        ("substring('abc', '2', '1')", None),
        ("to_timestamp(0)::date", "1970-01-01"),
    ],
)
def test_the_meanings_that_are_there_are_found(db: eddyline.Connection, call: str, answer: str | None) -> None:
    if answer is None:  # of three texts, as in PostgreSQL
        assert error_of(db, call)[0] == "0A000"
    else:
        assert db.execute(f"SELECT CAST({call} AS text)").fetchall() == [(answer,)]


def test_what_nobody_has_does_not_exist(db: eddyline.Connection) -> None:
    assert error_of(db, "no_such_function(1)") == ("42883", "function no_such_function(integer) does not exist")
    assert error_of(db, "pg_no_such()") == ("42883", "function pg_no_such() does not exist")
    assert error_of(db, "age(true)") == ("42883", "function age(boolean) does not exist")
