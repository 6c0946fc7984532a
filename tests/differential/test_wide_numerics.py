"""numeric formulas whose exact display scale takes more than 38 digits work, with PostgreSQL's leading digits."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

import eddyline
from eddyline.testing.postgres import PostgresServer

_SETUP = (
    "CREATE {} TABLE wide (id int, x numeric(12,2), y numeric(14,4), z bigint)",
    "INSERT INTO wide VALUES (1, 12345.67, 3.1415, 1000000007), (2, 0.01, 99999.9999, 3), "
    "(3, 7.00, 0.0001, 12345678901234)",
)
_SAME = (
    "avg(x) * avg(y)", "avg(x) / avg(y) * 100", "100.0 * sum(x) / sum(y)", "round(100.0 * sum(x) / sum(y), 2)",
    "sum(x / y)", "stddev(x) / avg(x)", "avg(x) ^ 2", "(avg(x) ^ 2 + avg(y) ^ 2) ^ 0.5", "sqrt(avg(x) * avg(y))",
    "sum((x / y) ^ 2) - sum(x / y) ^ 2 / count(*)", "exp(avg(ln(x)))", "sum(x) * 1.21 / 3 * 1.17 / 7",
    "(sum(x * y) - sum(x) * sum(y) / count(*)) / (stddev_pop(x) * stddev_pop(y) * count(*))",
)  # fmt: skip
_ROUNDED = (
    "(1 / 3.0) * (1 / 3.0)", "sum(x / y * x / y)", "avg(x / y) * avg(y / x) * avg(x)", "variance(x / y)",
    "sum(x * 1.0 / z) * avg(y) / nullif(sum(z), 0)", "2::numeric ^ 120",
    "(1.0 / 3) * (1.0 / 7) * (1.0 / 11) * (1.0 / 13)",
    "stddev(z) * avg(x) / 3 * avg(y)", "avg(z) * avg(z) * avg(z)", "sum((x / y) * (y / x) * (x / 7) * (x / 7))",
    "(1 / 3.0) * (1 / 3.0) - (1 / 7.0) * (1 / 7.0)", "12345678901234567890.5 + (1 / 3.0) * (1 / 3.0)",
)  # fmt: skip


@pytest.fixture(scope="module")
def databases(postgres: PostgresServer) -> Iterator[tuple[eddyline.Connection, psycopg.Connection[tuple[object, ...]]]]:
    with eddyline.connect() as own, postgres.connect() as other:
        for statement in _SETUP:
            own.execute(statement.format(""))
            other.execute(statement.format("TEMP"))
        yield own, other


def _answers(
    databases: tuple[eddyline.Connection, psycopg.Connection[tuple[object, ...]]], expression: str
) -> tuple[str, str]:
    query = f"SELECT ({expression})::text, count(*) FROM wide"
    own, other = databases
    mine, theirs = own.execute(query).fetchone(), other.execute(query).fetchone()
    assert mine is not None and theirs is not None
    return str(mine[0]), str(theirs[0])


@pytest.mark.parametrize("expression", _SAME)
def test_formulas_that_fit_print_as_postgresql_prints_them(
    databases: tuple[eddyline.Connection, psycopg.Connection[tuple[object, ...]]], expression: str
) -> None:
    mine, theirs = _answers(databases, expression)
    assert mine == theirs


@pytest.mark.parametrize("expression", _ROUNDED)
def test_formulas_that_do_not_fit_are_rounded(
    databases: tuple[eddyline.Connection, psycopg.Connection[tuple[object, ...]]], expression: str
) -> None:
    mine, theirs = (Decimal(text) for text in _answers(databases, expression))
    assert abs(mine - theirs) <= abs(theirs) * Decimal("1e-22")
    assert len(mine.as_tuple().digits) <= 38


def test_a_whole_part_of_more_than_38_digits_is_an_error() -> None:
    with eddyline.connect() as db, pytest.raises(eddyline.DataError) as caught:
        db.execute("SELECT avg(x) * 1e30::numeric FROM (VALUES (1e10::numeric)) v(x)")
    assert caught.value.sqlstate == "22003"
