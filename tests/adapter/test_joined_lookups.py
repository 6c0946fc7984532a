"""Joins that lookups answer: the same rows as the join gives that is computed whole, without a dataflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import eddyline
from eddyline.adapter import read

KEYS = (*range(-1, 12), None)


@pytest.fixture(scope="module")
def db() -> Iterator[eddyline.Connection]:
    """Rows that repeat, keys that are NULL, rows that are gone; ``c`` has a primary key and no index."""
    with eddyline.connect() as db:
        db.execute("CREATE TABLE a (id integer, g bigint, n numeric, x text)")
        db.execute("CREATE TABLE b (k bigint, m numeric(6, 2), y text, z integer)")
        db.execute("CREATE TABLE c (id bigint PRIMARY KEY, w text)")
        for index in ("a (id)", "b (k)", "b (m)", "b (y, k)"):
            name = "_".join(index.translate(str.maketrans("(,)", "   ")).split())
            db.execute(f"CREATE INDEX {name} ON {index}")
        rows = [(n % 9, None if n % 5 == 0 else n % 7, n % 4, f"x{n % 3}") for n in range(60)]
        db.executemany("INSERT INTO a VALUES ($1, $2, $3, $4)", [*rows, *rows[:7]])
        other = [(None if n % 11 == 0 else n % 8, n % 5, f"x{n % 4}", n % 3) for n in range(50)]
        db.executemany("INSERT INTO b VALUES ($1, $2, $3, $4)", [*other, *other[:5]])
        db.executemany("INSERT INTO c VALUES ($1, $2)", [(n, f"w{n}") for n in range(8)])
        db.execute("DELETE FROM a WHERE x = 'x1' AND g = 3")
        db.execute("UPDATE b SET z = 7 WHERE k = 2")
        yield db


QUERIES = {
    "by a column": "SELECT a.x, b.y FROM a JOIN b ON b.k = a.g WHERE a.id = $1",
    "with more conditions": "SELECT a.*, b.* FROM a JOIN b ON b.k = a.g AND b.z < a.n WHERE a.id = $1 AND a.x <> 'x2'",
    "the same key on both sides": "SELECT a.x, b.y, b.k FROM a JOIN b ON b.k = a.id WHERE a.id = $1",
    "the other side first": "SELECT a.x, b.y || '!' FROM b JOIN a ON b.k = a.g AND a.id = $1",
    "left": "SELECT a.g, a.x, b.y, b.z FROM a LEFT JOIN b ON b.k = a.g AND b.z > 0 WHERE a.id = $1",
    "numerics of another scale": "SELECT a.n, b.m FROM a JOIN b ON b.m = a.n WHERE a.id = $1",
    "two key columns": "SELECT a.x, b.z FROM a JOIN b ON b.k = a.g AND b.y = a.x WHERE a.id = $1",
    "three tables": "SELECT a.x, b.y, c.w FROM a JOIN b ON b.k = a.g JOIN c ON c.id = b.k WHERE a.id = $1",
    "a primary key": "SELECT c.w, b.y FROM c JOIN b ON b.k = c.id WHERE c.id = $1",
    "sorted and cut": "SELECT a.x, b.z FROM a JOIN b ON b.k = a.g WHERE a.id = $1 ORDER BY b.z DESC, a.x, b.y LIMIT 3",
    "a division that only unmatched pairs would fail": (
        "SELECT a.x, 10 / (b.k - 3) FROM a JOIN b ON b.k = a.g AND 10 / (b.k - 3) < 9 WHERE a.id = $1 AND a.g <> 3"
    ),
}


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", QUERIES)
def test_lookups_give_what_the_whole_join_gives(
    db: eddyline.Connection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = QUERIES[name]
    expected = {}
    with monkeypatch.context() as patch:
        patch.setattr(read, "_join_lookups", lambda *_: None)
        for key in KEYS:
            expected[key] = db.execute(query, [key]).fetchall()
    assert sum(map(len, expected.values())) > 3

    def refuse(*_: object) -> None:
        raise AssertionError("a dataflow was made")

    monkeypatch.setattr(read, "_peek_one_shot", refuse)
    for key in KEYS:
        found = db.execute(query, [key]).fetchall()
        assert found == expected[key] if "LIMIT" in query else in_order(found) == in_order(expected[key])


def test_a_lookup_that_finds_many_rows_leaves_the_join_to_a_dataflow(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE many (id integer, g bigint)")
    db.execute("CREATE INDEX many_id ON many (id)")
    db.executemany("INSERT INTO many VALUES ($1, $2)", [(1, n % 8) for n in range(400)])
    query = "SELECT count(*) FROM (SELECT many.g, c.w FROM many JOIN c ON c.id = many.g WHERE many.id = 1) AS j"
    assert db.execute("SELECT many.g, c.w FROM many JOIN c ON c.id = many.g WHERE many.id = 1").fetchall()
    assert db.execute(query).fetchone() == (400,)
    assert len(db.execute("SELECT many.g, c.w FROM many JOIN c ON c.id = many.g WHERE many.id = 1").fetchall()) == 400


def test_a_failing_row_of_an_index_fails_the_join(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE s (id integer, d integer)")
    db.execute("CREATE VIEW q AS SELECT id, 6 / d AS r FROM s")
    db.execute("CREATE INDEX q_id ON q (id)")
    db.execute("INSERT INTO s VALUES (1, 2), (2, 0)")
    with pytest.raises(eddyline.DataError) as caught:
        db.execute("SELECT a.x, q.r FROM a JOIN q ON q.id = a.id WHERE a.id = 1")
    assert caught.value.sqlstate == "22012"
    db.execute("DELETE FROM s WHERE d = 0")
    assert {r for _, r in db.execute("SELECT a.x, q.r FROM a JOIN q ON q.id = a.id WHERE a.id = 1").fetchall()} == {3}


def test_an_explicit_transaction_looks_up_at_its_own_time(db: eddyline.Connection) -> None:
    query, other = "SELECT c.w, b.y FROM c JOIN b ON b.k = c.id WHERE c.id = 6", db.session()
    db.execute("BEGIN")
    before = in_order(db.execute(query).fetchall())
    assert before
    other.execute("DELETE FROM b WHERE k = 6")
    assert in_order(db.execute(query).fetchall()) == before
    db.execute("COMMIT")
    assert db.execute(query).fetchall() == []


def test_explain_names_the_lookups(db: eddyline.Connection) -> None:
    lines = [line for (line,) in db.execute(f"EXPLAIN {QUERIES['by a column'].replace('$1', '1')}").fetchall()]
    assert lines[0].startswith("Fast path: joined lookups in index a_id on a, index b_k on b")
