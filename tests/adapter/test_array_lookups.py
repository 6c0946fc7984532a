"""``k = ANY ($1)`` over a key: looked up element by element on the caller's thread, with the answers of a scan."""

from __future__ import annotations

import datetime
import random
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

import eddyline


@pytest.fixture(scope="module")
def db() -> Iterator[eddyline.Connection]:
    """A table by which all is found, ``plain`` with the same rows and nothing to find them by."""
    with eddyline.connect() as connection:
        columns = (
            "i int, s smallint, b bigint, t text, c varchar(9), n numeric(9,2), m numeric, d date, u uuid, f float8"
        )
        connection.execute(f"CREATE TABLE keyed ({columns}, PRIMARY KEY (i))")
        connection.execute(f"CREATE TABLE plain ({columns})")
        connection.execute(
            """INSERT INTO plain SELECT k, nullif(k % 50, 7), k % 90, 'x' || k % 60, 'y' || k % 60, k / 4.0,
               k % 70 / 8.0, DATE '2020-01-01' + k % 40,
               ('00000000-0000-0000-0000-' || lpad((k % 30)::text, 12, '0'))::uuid, k % 20 / 2.0
               FROM generate_series(1, 400) AS k"""
        )
        connection.execute("INSERT INTO keyed SELECT * FROM plain")
        for column in "sbtcnmduf":
            connection.execute(f"CREATE INDEX keyed_{column} ON keyed ({column})")
        connection.execute("CREATE INDEX keyed_pair ON keyed (s, t)")
        connection.execute("CREATE VIEW per_t AS SELECT t, count(*) AS n, sum(i) AS total FROM keyed GROUP BY t")
        connection.execute("CREATE VIEW plain_per_t AS SELECT t, count(*) AS n, sum(i) AS total FROM plain GROUP BY t")
        connection.execute("CREATE INDEX per_t_t ON per_t (t)")
        connection.wait_hydrated("keyed", timeout=60)
        connection.wait_hydrated("per_t", timeout=60)
        yield connection


Rng = random.Random
VALUES: dict[str, tuple[str, Callable[[Rng], object]]] = {
    "i": ("int[]", lambda r: r.randint(-3, 420)),
    "s": ("bigint[]", lambda r: r.choice((r.randint(0, 60), 100_000))),
    "b": ("int[]", lambda r: r.randint(0, 100)),
    "t": ("text[]", lambda r: f"x{r.randint(0, 70)}"),
    "c": ("text[]", lambda r: f"y{r.randint(0, 70)}"),
    "n": ("numeric[]", lambda r: Decimal(r.randint(0, 900)) / r.choice((4, 8, 1))),
    "m": ("numeric[]", lambda r: Decimal(r.randint(0, 600)) / r.choice((8, 16))),
    "d": ("date[]", lambda r: datetime.date(2020, 1, 1) + datetime.timedelta(r.randint(0, 60))),
    "u": ("uuid[]", lambda r: uuid.UUID(int=r.choice((0, 5, 9, 16)))),
    "f": ("float8[]", lambda r: r.choice((r.randint(0, 30) / 2, -0.0, float("nan")))),
}


def found(db: eddyline.Connection, text: str, *parameters: object) -> list[str]:
    return sorted(map(repr, db.execute(text, parameters).fetchall()))


@pytest.mark.parametrize("column", list(VALUES))
def test_the_answer_is_that_of_a_scan(db: eddyline.Connection, column: str) -> None:
    rng = random.Random(column)
    kind, value = VALUES[column]
    text = f"SELECT * FROM {{}} WHERE {column} = ANY ($1::{kind})"
    looked_up = str(db.execute("EXPLAIN " + text.format("keyed"), [None]).fetchall()[0][0])
    assert "lookup" in looked_up and "ANY ($1)" in looked_up
    assert "lookup" not in str(db.execute("EXPLAIN " + text.format("plain"), [None]).fetchall())
    for size in (0, 1, 2, 5, 40, 40, 1000, 1001, 3000):
        elements = [value(rng) if rng.random() > 0.05 else None for _ in range(size)]
        assert found(db, text.format("keyed"), elements) == found(db, text.format("plain"), elements), elements
    assert found(db, text.format("keyed"), None) == []
    square = [[value(rng), value(rng)], [value(rng), None]]
    assert found(db, text.format("keyed"), square) == found(db, text.format("plain"), square)


@pytest.mark.parametrize(
    "where",
    [
        "s = ANY ($1::int[]) AND t = ANY ($2::text[])",
        "s = ANY ($1::int[]) AND t IN ('x3', 'x4', 'x5') AND $2::text[] IS NOT NULL",
        "s = ANY ($1::int[]) AND i > 50 AND $2::text[] IS NOT NULL",
        "i = ANY ($1::int[]) AND t = ANY ($2::text[])",
        "(s = ANY ($1::int[]) OR s = 3) AND t = ANY ($2::text[])",
        "s <> ALL ($1::int[]) AND t = ANY ($2::text[])",
        "NOT s = ANY ($1::int[]) AND t = ANY ($2::text[])",
    ],
)
def test_it_goes_together_with_other_conditions(db: eddyline.Connection, where: str) -> None:
    rng = random.Random(where)
    for sizes in ((0, 3), (3, 3), (40, 30), (1, 1), (60, 70)):
        numbers = [rng.choice((None, rng.randint(0, 60))) for _ in range(sizes[0])]
        texts = [f"x{rng.randint(0, 70)}" for _ in range(sizes[1])]
        answers = [found(db, f"SELECT i, s, t FROM {o} WHERE {where}", numbers, texts) for o in ("keyed", "plain")]
        assert answers[0] == answers[1], (numbers, texts)


def test_long_lists_of_constants_are_looked_up_too(db: eddyline.Connection) -> None:
    numbers = ", ".join(str(k % 130) for k in range(0, 900, 7))
    names = ", ".join(f"'x{k}'" for k in range(90))
    for where in (
        f"i IN ({numbers})",
        f"s IN ({numbers}, NULL) AND t IN ({names})",
        f"t IN ({names}) AND i > 100",
        f"t IN ({names}) AND i IN ({numbers})",
        f"i NOT IN ({numbers})",
        f"s IN ({numbers}) OR t IN ('x1')",
        f"(s, t) IN ({', '.join(f'({k % 50}, {chr(39)}x{k % 60}{chr(39)})' for k in range(80))})",
    ):
        answers = [found(db, f"SELECT i, s, t FROM {o} WHERE {where}") for o in ("keyed", "plain")]
        assert answers[0] == answers[1], where
    assert "lookup" in str(db.execute(f"EXPLAIN SELECT * FROM keyed WHERE i IN ({numbers})").fetchall()[0][0])


def test_views_joins_and_limits(db: eddyline.Connection) -> None:
    names = ["x1", "x2", "x77", None, "x2"]
    for text in (
        "SELECT * FROM {0}per_t WHERE t = ANY ($1::text[])",
        "SELECT k.i, v.total FROM {1} k JOIN {0}per_t v ON v.t = k.t WHERE k.t = ANY ($1::text[])",
        "SELECT k.i, v.total FROM {1} k LEFT JOIN {0}per_t v ON v.t = k.t WHERE k.t = ANY ($1::text[]) AND k.i < 200",
        "SELECT i FROM {1} WHERE t = ANY ($1::text[]) ORDER BY i DESC LIMIT 5",
        "SELECT count(*), min(i) FROM {1} WHERE t = ANY ($1::text[])",
        "SELECT i FROM {1} WHERE t = ANY ($1::text[]) AND i = ANY (ARRAY[1, 2, 61, 62])",
        "SELECT i FROM {1} WHERE t = ANY ($1::text[]) AND i = ANY ('{{1,2,61,62}}')",
    ):
        for elements in (names, [f"x{k}" for k in range(1500)]):
            answers = [found(db, text.format(*o), elements) for o in (("", "keyed"), ("plain_", "plain"))]
            assert answers[0] == answers[1], (text, len(elements))


def test_changes_find_their_rows_by_it_too() -> None:
    with eddyline.connect() as db:
        for name, key in (("keyed", ", PRIMARY KEY (i)"), ("plain", "")):
            db.execute(f"CREATE TABLE {name} (i int, n int{key})")
            db.execute(f"INSERT INTO {name} SELECT k, 0 FROM generate_series(1, 2000) AS k")
            for size in (3, 1200):
                elements = [None, 5000, *range(1, size)]
                db.execute(f"UPDATE {name} SET n = n + 1 WHERE i = ANY ($1)", [elements])
            db.execute(f"DELETE FROM {name} WHERE i = ANY ($1)", [[7, 8, 9, 7]])
            db.execute("BEGIN")
            db.execute(f"UPDATE {name} SET n = 100 WHERE i = ANY ($1)", [[1, 10]])
            assert found(db, f"SELECT n FROM {name} WHERE i = ANY ($1)", [1, 10, 11]) == ["(1,)", "(100,)", "(100,)"]
            db.execute("COMMIT")
        assert found(db, "SELECT * FROM keyed") == found(db, "SELECT * FROM plain")


def test_the_caller_answers_it_itself(db: eddyline.Connection) -> None:
    for column in ("i", "t"):
        elements: list[object] = [1, 2, 3] if column == "i" else ["x1", "x2"]
        kind, _ = VALUES[column]
        text = f"SELECT i FROM keyed WHERE {column} = ANY ($1::{kind})"
        db.execute(text, [elements])
        before = caller_reads(db)
        db.execute(text, [elements])
        assert caller_reads(db) == before + 1, column


def caller_reads(db: eddyline.Connection) -> int:
    counts = [
        float(line.rsplit(" ", 1)[1])
        for line in db.metrics().splitlines()
        if line.startswith("eddyline_reads_total") and 'lane="caller"' in line
    ]
    return int(sum(counts))
