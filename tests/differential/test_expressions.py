"""Generated expressions mean what they mean to PostgreSQL: value, result type, SQLSTATE.

The texts have no parentheses beyond those the grammar asks for, so that precedence decides what is applied to what.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal

import psycopg
import pytest

import eddyline
from eddyline.testing.cells import text_rows, type_names
from eddyline.testing.expression_texts import ROWS, TABLE, ExpressionTexts
from eddyline.testing.postgres import PostgresServer

SEEDS = 40
PER_SEED = 100
_BATCH = 25

Answer = tuple[str, list[str | None]] | str  # (type, one text per row) or an SQLSTATE
_Postgres = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def postgres_table(postgres: PostgresServer) -> Iterator[_Postgres]:
    with postgres.connect() as connection:
        connection.execute(TABLE.replace("TABLE", "TEMP TABLE"))
        connection.execute("INSERT INTO e VALUES " + ", ".join(ROWS))
        yield connection


@pytest.fixture(scope="module")
def own_table() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO e VALUES " + ", ".join(ROWS))
        yield connection


def _query(expressions: Sequence[str], where: str) -> str:
    return f"SELECT {', '.join(expressions)} FROM e {where} ORDER BY id"


def _postgres_answers(connection: _Postgres, expressions: Sequence[str], where: str = "") -> list[Answer]:
    try:
        cursor = connection.execute(_query(expressions, where))
    except psycopg.Error as error:
        if len(expressions) == 1:
            return [error.sqlstate or "?"]
        return [_postgres_answers(connection, [e], where)[0] for e in expressions]
    result = cursor.pgresult
    assert result is not None
    answers: list[Answer] = []
    for column in range(result.nfields):
        kind = connection.adapters.types.get(result.ftype(column))
        cells = [result.get_value(row, column) for row in range(result.ntuples)]
        answers.append((kind.regtype if kind else "?", [None if c is None else c.decode() for c in cells]))
    return answers


def _own_answers(connection: eddyline.Connection, expressions: Sequence[str], where: str = "") -> list[Answer]:
    try:
        cursor = connection.execute(_query(expressions, where))
    except eddyline.Error as error:
        if len(expressions) == 1:
            return [error.sqlstate]
        return [_own_answers(connection, [e], where)[0] for e in expressions]
    rows = text_rows(cursor)
    columns = [[row[i] for row in rows] for i in range(len(expressions))]
    return [(kind, column) for kind, column in zip(type_names(cursor), columns, strict=True)]


def _rounded(mine: Answer, theirs: Answer) -> bool:
    """Whether they differ only where 38 digits do not hold all that PostgreSQL shows."""
    if isinstance(mine, str) or isinstance(theirs, str) or mine[0] != theirs[0] or mine[0] != "numeric":
        return False
    return all(
        a == b or (a is not None and b is not None and _shortened(a, b))
        for a, b in zip(mine[1], theirs[1], strict=True)
    )


def _shortened(mine: str, theirs: str) -> bool:
    a, b = Decimal(mine), Decimal(theirs)
    return len(mine) < len(theirs) and abs(a - b) <= abs(b) * Decimal("1e-20")


def _difference(own: eddyline.Connection, postgres: _Postgres, text: str) -> str | None:
    """How the answers differ.

    Where both fail, each row is asked for by itself: rows are not evaluated in one order.  PostgreSQL also fails while
    it plans, over no rows, where a constant fails; here it fails on the rows that reach it.
    """
    mine, theirs = _own_answers(own, [text])[0], _postgres_answers(postgres, [text])[0]
    if mine == theirs or _rounded(mine, theirs):
        return None
    nowhere = "WHERE id = 0"
    if _postgres_answers(postgres, [text], nowhere) == [theirs] and not isinstance(
        _own_answers(own, [text], nowhere)[0], str
    ):
        return None
    if isinstance(mine, str) and isinstance(theirs, str):
        for id in range(1, len(ROWS) + 1):
            where = f"WHERE id = {id}"
            mine, theirs = _own_answers(own, [text], where)[0], _postgres_answers(postgres, [text], where)[0]
            if mine != theirs:
                break
        else:
            return None
    return f"{text}\n    here       {mine}\n    PostgreSQL {theirs}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_expressions_mean_what_postgresql_says(
    seed: int, own_table: eddyline.Connection, postgres_table: _Postgres
) -> None:
    texts = ExpressionTexts(random.Random(seed))
    differences = []
    for _ in range(PER_SEED // _BATCH):
        batch = [texts.next() for _ in range(_BATCH)]
        mine, theirs = _own_answers(own_table, batch), _postgres_answers(postgres_table, batch)
        for text, a, b in zip(batch, mine, theirs, strict=True):
            if a != b and (difference := _difference(own_table, postgres_table, text)) is not None:
                differences.append(difference)
    assert not differences, "\n".join(differences)
