"""Recursive queries as reads: one time for all rounds, bounds, plans.  Answers beside PostgreSQL's are compared in
``tests/frontends/pgwire/scripts/recursion.sql``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import eddyline
from eddyline.adapter import recursion
from tests.cancelling import cancelling

_ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9000000000000) "
_CHAIN = (
    "WITH RECURSIVE c(id, next) AS (SELECT id, next FROM chain WHERE id = $1 "
    "UNION ALL SELECT h.id, h.next FROM c JOIN chain h ON h.id = c.next) "
)


@pytest.fixture(params=["as a table", "with an index", "with a primary key"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    """``chain``: 0 → 1 → … → 29."""
    with eddyline.connect() as db:
        key = " PRIMARY KEY" if request.param == "with a primary key" else ""
        db.execute(f"CREATE TABLE chain (id int{key}, next int)")
        if request.param == "with an index":
            db.execute("CREATE INDEX by_id ON chain (id)")
        db.executemany("INSERT INTO chain VALUES ($1, $2)", [(n, n + 1) for n in range(30)])
        yield db


def ids(db: eddyline.Connection, query: str, parameters: list[Any] | None = None) -> list[Any]:
    return [row[0] for row in db.execute(query, parameters).fetchall()]


def test_rows_come_round_by_round(db: eddyline.Connection) -> None:
    assert ids(db, _CHAIN + "SELECT id FROM c", [3]) == list(range(3, 30))
    assert ids(db, _CHAIN + "SELECT id FROM c WHERE id % 2 = 0 LIMIT 4", [3]) == [4, 6, 8, 10]
    assert ids(db, _CHAIN + "SELECT count(*) FROM c", [99]) == [0]


@pytest.mark.parametrize("isolation", ["strict serializable", "serializable"])
def test_all_rounds_see_one_time(db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    run, rounds = recursion._Answer._run, 0
    with db.session() as other:

        def changing(*arguments: Any) -> Any:
            nonlocal rounds
            rounds += 1
            other.execute("UPDATE chain SET next = NULL WHERE id = $1", [rounds + 3])
            other.execute("INSERT INTO chain VALUES ($1, 0)", [100 + rounds])
            return run(*arguments)

        assert ids(db, _CHAIN + "SELECT count(*) FROM c", [0]) == [30], "every index has the rows"
        db.execute(f"SET transaction_isolation = '{isolation}'")
        with monkeypatch.context() as patch:
            patch.setattr(recursion._Answer, "_run", changing)
            assert ids(db, _CHAIN + "SELECT id FROM c", [0]) == list(range(30))
    assert rounds == 31
    db.execute("SET transaction_isolation = 'strict serializable'")
    assert ids(db, _CHAIN + "SELECT id FROM c", [0]) == [0, 1, 2, 3, 4]


def test_a_transaction_reads_its_own_rows(db: eddyline.Connection) -> None:
    with db.transaction():
        db.execute("INSERT INTO chain VALUES (30, 31), (31, NULL)")
        db.execute("DELETE FROM chain WHERE id = 5")
        assert ids(db, _CHAIN + "SELECT id FROM c", [28]) == [28, 29, 30, 31]
        assert ids(db, _CHAIN + "SELECT id FROM c", [2]) == [2, 3, 4]
        db.rollback()
    assert ids(db, _CHAIN + "SELECT count(*) FROM c", [2]) == [28]


def test_what_a_transaction_has_read_in_rounds_is_checked_when_it_commits(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE notes (n bigint)")
    with db.session() as other:
        db.execute("BEGIN")
        assert ids(db, _CHAIN + "SELECT count(*) FROM c", [0]) == [30]
        db.execute("INSERT INTO notes VALUES (1)")
        other.execute("INSERT INTO chain VALUES (30, NULL)")
        with pytest.raises(eddyline.OperationalError) as caught:
            db.commit()
    assert caught.value.sqlstate == "40001"


def test_views_are_read_in_rounds(db: eddyline.Connection) -> None:
    db.execute("CREATE VIEW doubled AS SELECT id * 2 AS id, next * 2 AS next FROM chain")
    db.execute("CREATE MATERIALIZED VIEW kept AS SELECT id, next FROM chain WHERE id <> 20")
    assert ids(db, _CHAIN.replace("chain", "doubled") + "SELECT id FROM c", [10]) == list(range(10, 60, 2))
    assert ids(db, _CHAIN.replace("chain", "kept") + "SELECT id FROM c", [10]) == list(range(10, 20))
    db.execute("DELETE FROM chain WHERE id = 7")
    assert ids(db, _CHAIN.replace("chain", "doubled") + "SELECT id FROM c", [10]) == [10, 12]


def test_rounds_are_read_as_of_a_time(db: eddyline.Connection) -> None:
    with db.session() as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM chain")
        at = db._engine.timeline.newest  # which the other transaction keeps readable
        db.execute("DELETE FROM chain WHERE id = 7")
        assert ids(db, _CHAIN + f"SELECT id FROM c AS OF {at}", [5]) == list(range(5, 30))
    assert ids(db, _CHAIN + "SELECT id FROM c", [5]) == [5, 6]


@pytest.fixture(scope="module")
def plain() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as db:
        yield db


def test_a_query_without_end_is_ended_by_a_timeout_or_its_client(plain: eddyline.Connection) -> None:
    for query in ("SELECT count(*) FROM t", "SELECT n FROM t WHERE n < 0", "SELECT n FROM t ORDER BY n LIMIT 3"):
        plain.execute("SET statement_timeout = '100ms'")
        with pytest.raises(eddyline.OperationalError) as caught:
            plain.execute(_ENDLESS + query)
        plain.execute("RESET statement_timeout")
        assert caught.value.sqlstate == "57014"
        with cancelling(plain), pytest.raises(eddyline.OperationalError) as caught:
            plain.execute(_ENDLESS + query)
        assert caught.value.sqlstate == "57014"
    assert ids(plain, _ENDLESS + "SELECT n FROM t LIMIT 3") == [1, 2, 3]


def test_a_query_without_end_is_ended_by_bounds_of_memory_and_of_results(plain: eddyline.Connection) -> None:
    wide = "WITH RECURSIVE t(n, x) AS (SELECT 1, repeat('x', 3000) UNION ALL SELECT n + 1, x FROM t) "
    wide_once = wide.replace("UNION ALL", "UNION")
    try:
        plain.execute("SET query_max_memory = '200kB'")
        for query in (wide + "SELECT count(*) FROM t", wide_once + "SELECT n FROM t WHERE n < 0"):
            with pytest.raises(eddyline.OperationalError) as caught:
                plain.execute(query)
            assert (caught.value.sqlstate, "query_max_memory" in caught.value.message) == ("53200", True)
        plain.execute("RESET query_max_memory")
        plain.execute("SET max_result_size = '200kB'")
        with pytest.raises(eddyline.Error) as refused:
            plain.execute(wide + "SELECT n, x FROM t")
        assert (refused.value.sqlstate, "max_result_size" in refused.value.message) == ("54000", True)
        assert ids(plain, wide + "SELECT n FROM t LIMIT 2") == [1, 2]
    finally:
        plain.execute("RESET ALL")


def test_rows_that_multiply_in_each_round_are_counted(plain: eddyline.Connection) -> None:
    twice = (
        "WITH RECURSIVE t(n, x) AS (SELECT 1, 7 UNION ALL SELECT n + 1, x FROM t, (VALUES (1), (1)) v WHERE n < {}) "
    )
    assert plain.execute(
        twice.format(40) + "SELECT n, count(*) FROM t WHERE n > 38 GROUP BY n ORDER BY n"
    ).fetchall() == [
        (39, 2**38),
        (40, 2**39),
    ]
    assert plain.execute(twice.format(4) + "SELECT n FROM t WHERE n < 4").fetchall() == [(1,), *[(2,)] * 2, *[(3,)] * 4]
    with pytest.raises(eddyline.Error) as caught:
        plain.execute(twice.format(10_000) + "SELECT count(*) FROM t")
    assert caught.value.sqlstate == "54000" and "2^40" in caught.value.message


def test_union_tells_rows_apart_as_sql_does(plain: eddyline.Connection) -> None:
    rows = plain.execute(
        "WITH RECURSIVE t(a, b, c) AS (SELECT 1.0::numeric, NULL::text, -0.0::float8 "
        "UNION SELECT a * 1.00, b, abs(c) FROM t) SELECT count(*), min(a) FROM t"
    ).fetchall()
    assert [(n, str(a)) for n, a in rows] == [(1, "1.0")]
    path = "WITH RECURSIVE t(n) AS (SELECT 0 UNION SELECT (n * 7 + 3) % 1009 FROM t) SELECT count(*), sum(n) FROM t"
    seen: list[int] = []
    while (following := (seen[-1] * 7 + 3) % 1009 if seen else 0) not in seen:
        seen.append(following)
    assert plain.execute(path).fetchall() == [(len(seen), sum(seen))]


def test_a_row_that_fails_names_the_query_and_its_columns(plain: eddyline.Connection) -> None:
    with pytest.raises(eddyline.DataError) as caught:
        plain.execute(
            "WITH RECURSIVE down(steps) AS (SELECT 2 UNION ALL SELECT steps - 1 + 0 / steps FROM down) TABLE down"
        )
    assert caught.value.sqlstate == "22012"
    assert caught.value.detail == "in expression 0 / steps, row steps = 0"


def test_what_the_system_tells_of_itself_is_read_in_rounds(plain: eddyline.Connection) -> None:
    plain.executescript("CREATE TABLE base (a int); CREATE VIEW one AS TABLE base; CREATE VIEW two AS TABLE one;")
    rows = plain.execute(
        "WITH RECURSIVE below(id) AS (SELECT id FROM mz_objects WHERE name = 'two' UNION "
        "SELECT referenced_object_id FROM mz_internal.mz_object_dependencies d JOIN below b ON d.object_id = b.id) "
        "SELECT name FROM below JOIN mz_objects USING (id) ORDER BY name"
    ).fetchall()
    assert rows == [("base",), ("one",), ("two",)]
    plain.execute("CREATE INDEX kept ON two (a)")
    plain.wait_hydrated("kept")
    logs = (
        "WITH RECURSIVE t(n, d) AS (SELECT 1, name FROM mz_introspection.mz_dataflows WHERE name = 'two' "
        "UNION ALL SELECT n + 1, d.name FROM t JOIN mz_introspection.mz_dataflows d ON d.name = t.d WHERE n < 3) "
    )
    counts: dict[Any, Any] = dict(plain.execute(logs + "SELECT n, count(*) FROM t GROUP BY n").fetchall())
    assert set(counts) == {1, 2, 3}
    with pytest.raises(eddyline.NotSupportedError):
        plain.execute(logs + "SELECT n FROM t AS OF 1")


def test_explain_shows_the_first_round_and_what_makes_the_next(plain: eddyline.Connection) -> None:
    plain.execute("CREATE TABLE arcs (a int PRIMARY KEY, b int)")
    query = (
        "WITH RECURSIVE reach(b) AS (SELECT b FROM arcs WHERE a = 1 UNION "
        "SELECT arcs.b FROM arcs JOIN reach ON arcs.a = reach.b) SELECT b FROM reach WHERE b > 2 ORDER BY b"
    )
    lines = ids(plain, "EXPLAIN " + query)
    assert lines == [
        "Recursive query reach",
        "  Fast path: lookup in the primary key of arcs, key (1)",
        "    Project b",
        "  then, until a round has nothing new",
        "    Fast path: joined lookups in the primary key of arcs, where they find few rows; else a one-shot dataflow",
        *lines[5:-3],
        "Rows of reach",
        "  Filter (b > 2)",
        "Finish: order b",
    ]
    plain.execute("INSERT INTO arcs VALUES (1, 2), (2, 3)")
    assert "Rows: 1" in ids(plain, "EXPLAIN ANALYZE " + query)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS {}",
        "CREATE MATERIALIZED VIEW v AS {}",
        "CREATE OR REPLACE VIEW v AS SELECT * FROM ({}) AS s",
        "SUBSCRIBE TO ({})",
        "CREATE VIEW v AS SELECT 1 AS a WHERE EXISTS ({})",
    ],
)
def test_what_is_maintained_cannot_be_recursive(plain: eddyline.Connection, statement: str) -> None:
    query = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT n FROM t"
    with pytest.raises(eddyline.NotSupportedError) as caught:
        plain.execute(statement.format(query))
    assert caught.value.message.startswith("a recursive query in a ")
    assert caught.value.hint is not None and "where it is read" in caught.value.hint
    assert ids(plain, query) == [1, 2, 3]


def test_texts_that_differ_by_a_literal_have_answers_of_their_own(plain: eddyline.Connection) -> None:
    for last in (3, 5, 4, 7):
        query = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {last}) SELECT n FROM t"
        assert ids(plain, query) == list(range(1, last + 1))


def test_rounds_are_at_hand_in_processes_of_their_own() -> None:
    with eddyline.connect(processes=1, workers=2) as db:
        db.execute("CREATE TABLE chain (id int, next int)")
        db.executemany("INSERT INTO chain VALUES ($1, $2)", [(n, n + 1) for n in range(8)])
        assert ids(db, _CHAIN + "SELECT id FROM c", [3]) == [3, 4, 5, 6, 7]
        assert ids(db, _CHAIN + "SELECT sum(x.id) FROM c x JOIN chain USING (id)", [3]) == [25]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_reached_is_what_a_walk_reaches(db: eddyline.Connection, seed: int) -> None:
    rng = random.Random(seed)
    arcs = [(rng.randrange(400), rng.randrange(400)) for _ in range(500)]
    db.execute("CREATE TABLE arcs (a int, b int)")
    if seed % 2:
        db.execute("CREATE INDEX ON arcs (a)")
    db.executemany("INSERT INTO arcs VALUES ($1, $2)", arcs)
    start = rng.randrange(400)
    reached, stack = {start}, [start]
    while stack:
        here = stack.pop()
        found = {b for a, b in arcs if a == here} - reached
        reached |= found
        stack.extend(found)
    query = "WITH RECURSIVE r(n) AS (SELECT $1::int UNION SELECT b FROM arcs JOIN r ON a = n) SELECT n FROM r"
    assert sorted(ids(db, query, [start])) == sorted(reached)
    every = "WITH RECURSIVE r(a, n) AS (SELECT a, b FROM arcs UNION SELECT r.a, arcs.b FROM arcs JOIN r ON arcs.a = n) "
    assert sorted(ids(db, every + "SELECT n FROM r WHERE a = $1 UNION SELECT $1::int", [start])) == sorted(reached)


@pytest.mark.parametrize(
    "query",
    [
        "WITH r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r",
        "WITH a AS (SELECT * FROM r), r AS (SELECT 1) SELECT * FROM a",
        "WITH a AS (SELECT (SELECT 1 FROM r)), r AS (SELECT 1) SELECT * FROM a",
    ],
)
def test_a_forgotten_recursive_is_told(plain: eddyline.Connection, query: str) -> None:
    with pytest.raises(eddyline.ProgrammingError) as caught:
        plain.execute(query)
    assert (caught.value.sqlstate, caught.value.message) == ("42P01", 'relation "r" does not exist')
    assert caught.value.detail is not None and caught.value.detail.startswith('There is a WITH item named "r"')
    assert caught.value.hint is not None and "WITH RECURSIVE" in caught.value.hint
    with pytest.raises(eddyline.ProgrammingError) as unrelated:
        plain.execute("WITH a AS (SELECT 1), b AS (SELECT * FROM r) SELECT * FROM b")
    assert unrelated.value.detail is None
