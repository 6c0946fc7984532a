"""What a transaction sees of its own changes: against a model in Python, statement by statement."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import eddyline

Rows = Counter[tuple[int, int | None]]


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE keyed (id integer PRIMARY KEY, v integer)")
        db.execute("CREATE TABLE plain (id integer, v integer)")
        db.execute("CREATE INDEX plain_id ON plain (id)")
        db.execute("CREATE VIEW doubled AS SELECT id, v * 2 AS w FROM plain")
        for table in ("keyed", "plain"):
            db.executemany(f"INSERT INTO {table} VALUES ($1, $2)", [(n, n % 3) for n in range(12)])
        yield db


def change(model: Rows, rng: random.Random, keyed: bool) -> tuple[str, list[int]]:
    """A statement and its parameters; the model takes the change as well."""
    key, value = rng.randrange(16), rng.randrange(5)
    match rng.choice(("insert", "update", "update", "delete", "update some")):
        case "insert":
            if keyed and any(row[0] == key for row in model):
                return "SELECT 1", []
            model[key, value] += 1
            return "INSERT INTO {} VALUES ($1, $2)", [key, value]
        case "update":
            for row, count in [(r, n) for r, n in model.items() if r[0] == key]:
                del model[row]
                model[key, value] += count
            return "UPDATE {} SET v = $2 WHERE id = $1", [key, value]
        case "update some":
            for row, count in [(r, n) for r, n in model.items() if r[1] == value]:
                del model[row]
                model[row[0], value + 1] += count
            return "UPDATE {} SET v = v + 1 WHERE v = $1", [value]
        case _:
            for row in [r for r in model if r[0] == key]:
                del model[row]
            return "DELETE FROM {} WHERE id = $1", [key]


def check(db: eddyline.Connection, table: str, model: Rows, rng: random.Random) -> None:
    assert Counter(db.execute(f"SELECT id, v FROM {table}").fetchall()) == model
    key = rng.randrange(16)
    found = db.execute(f"SELECT v FROM {table} WHERE id = $1 ORDER BY v", [key]).fetchall()
    assert found == sorted((v,) for (id, v), n in model.items() if id == key for _ in range(n))
    assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (model.total(),)
    first = db.execute(f"SELECT id, v FROM {table} ORDER BY v DESC, id LIMIT 3").fetchall()
    assert first == sorted(model.elements(), key=lambda r: (-(r[1] or 0), r[0]))[:3]
    if table == "plain":
        assert Counter(db.execute("SELECT * FROM doubled").fetchall()) == Counter(
            {(id, None if v is None else 2 * v): n for (id, v), n in model.items()}
        )


@pytest.mark.parametrize("table", ["keyed", "plain"])
@pytest.mark.parametrize("seed", range(3))
def test_every_statement_sees_those_before_it(db: eddyline.Connection, table: str, seed: int) -> None:
    rng = random.Random(f"{table}{seed}")
    model: Rows = Counter(db.execute(f"SELECT id, v FROM {table}").fetchall())
    db.execute("BEGIN")
    saved = [Rows(model)]
    for step in range(40):
        if rng.random() < 0.1:
            db.execute(f"SAVEPOINT s{len(saved)}")
            saved.append(Rows(model))
        elif len(saved) > 1 and rng.random() < 0.1:
            back = rng.randrange(1, len(saved))
            db.execute(f"ROLLBACK TO s{back}")
            del saved[back + 1 :]
            model = Rows(saved[back])
        statement, parameters = change(model, rng, table == "keyed")
        db.execute(statement.format(table), parameters)
        if step % 3 == 0:
            check(db, table, model, rng)
    check(db, table, model, rng)
    db.execute("COMMIT")
    check(db, table, model, rng)


def test_a_committed_row_that_fails_is_no_failure_once_the_transaction_has_deleted_it(db: eddyline.Connection) -> None:
    query = "SELECT 6 / (v - 1) FROM plain WHERE id < 3"
    db.execute("BEGIN")
    db.execute("INSERT INTO plain VALUES (2, 3)")
    db.execute("SAVEPOINT s")
    with pytest.raises(eddyline.DataError):
        db.execute(query)
    db.execute("ROLLBACK TO s")
    db.execute("DELETE FROM plain WHERE v = 1")
    assert Counter(db.execute(query).fetchall()) == Counter([(-6,), (6,), (3,)])
    db.execute("ROLLBACK")


def test_one_row_changed_many_times(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    for _ in range(60):
        assert db.execute("UPDATE keyed SET v = v + 1 WHERE id = 5").rowcount == 1
    db.execute("DELETE FROM keyed WHERE id = 5")
    db.execute("INSERT INTO keyed VALUES (5, 7)")
    with pytest.raises(eddyline.IntegrityError):
        db.execute("INSERT INTO keyed VALUES (5, 8)")
    db.execute("ROLLBACK")
    assert db.execute("SELECT v FROM keyed WHERE id = 5").fetchall() == [(2,)]
