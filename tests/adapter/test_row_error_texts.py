"""Row errors say where, what and which row, in the words of the user, in both layouts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import eddyline
from eddyline.compute.operators.mfp import MfpOperator
from tests.waiting import wait_until

SETUP = """
CREATE TABLE t (id int PRIMARY KEY, qty int, s text);
CREATE TABLE u (id int PRIMARY KEY, k int, "Big N" int);
INSERT INTO t VALUES (7, 0, 'x'), (8, 2, '3');
INSERT INTO u VALUES (7, 0, 5);
CREATE VIEW indexed AS SELECT id, 1 / qty AS r FROM t;
CREATE DEFAULT INDEX ON indexed;
CREATE MATERIALIZED VIEW projection AS SELECT id, 100 / (qty - 2) AS r FROM t;
CREATE MATERIALIZED VIEW above AS SELECT r + 1 AS z FROM projection;
CREATE MATERIALIZED VIEW filtered AS SELECT id FROM t WHERE 10.5 / qty > 3;
CREATE MATERIALIZED VIEW joined AS
  SELECT t.s FROM t JOIN u ON t.id = u.id AND t.id / u.k > 1 AND u."Big N" > 0;
CREATE MATERIALIZED VIEW outer_joined AS SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE 5 / u."Big N" / u.k = 1;
CREATE MATERIALIZED VIEW argument AS SELECT s, sum(10 / qty) FROM t GROUP BY s;
CREATE MATERIALIZED VIEW smallest AS SELECT s, 1 / min(qty) FROM t GROUP BY s;
CREATE MATERIALIZED VIEW typed AS SELECT s::int AS n FROM t;
CREATE MATERIALIZED VIEW "Odd name" AS SELECT "Big N" % k FROM u;
CREATE MATERIALIZED VIEW steps AS SELECT t.id FROM t, generate_series(1, 10, t.qty) AS g;
"""

ROW = "row qty = 0, id = 7, s = 'x'"

CASES = {
    "SELECT * FROM indexed": f'in view "indexed", expression 1 / qty, {ROW}',
    "SELECT r FROM indexed WHERE id = 8": f'in view "indexed", expression 1 / qty, {ROW}',
    "SELECT * FROM projection": """in view "projection", expression 100 / (qty - 2), row qty = 2, id = 8, s = '3'""",
    "SELECT * FROM above": """in view "projection", expression 100 / (qty - 2), row qty = 2, id = 8, s = '3'""",
    "SELECT * FROM filtered": f'in view "filtered", expression 10.5 / qty, {ROW}',
    "SELECT * FROM joined": ("""in view "joined", expression t.id / k, row t.id = 7, k = 0, s = 'x', u.id = 7"""),
    "SELECT * FROM outer_joined": (
        """in view "outer_joined", expression (5 / "Big N") / k, row k = 0, "Big N" = 5, t.id = 7, u.id = 7"""
    ),
    "SELECT * FROM argument": f'in view "argument", expression 10 / qty, {ROW}',
    "SELECT * FROM smallest": """in view "smallest", expression 1 / min(qty), row min(qty) = 0, s = 'x'""",
    "SELECT * FROM typed": """in view "typed", expression s::integer, row s = 'x', id = 7, qty = 0""",
    'SELECT * FROM "Odd name"': 'in view "Odd name", expression "Big N" % k, row k = 0, "Big N" = 5, id = 7',
    "SELECT * FROM steps": ("""in view "steps", expression generate_series(1, 10, qty), row id = 7, qty = 0"""),
    "SELECT sum(1 / qty) FROM t": f"in expression 1 / qty, {ROW}",
    "SELECT 1 / qty FROM t WHERE id = 7": f"in expression 1 / qty, {ROW}",
    "SELECT t.s FROM t JOIN u ON t.id = u.id WHERE 1 / (t.qty + u.k) > 0 AND t.id = 7": (
        "in expression 1 / (qty + k), row qty = 0, k = 0, t.id = 7, s = 'x', u.id = 7"
    ),
    "SELECT 1 / 0": "in expression 1 / 0",
    "SELECT 1 / x FROM (VALUES (1), (0)) AS w (x)": "in expression 1 / column1, row column1 = 0",
}


@pytest.fixture(scope="module", params=[True, False], ids=["two runtimes", "one runtime"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        for statement in SETUP.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        yield connection


@pytest.mark.parametrize("query", CASES)
def test_the_detail_says_where_what_and_which_row(db: eddyline.Connection, query: str) -> None:
    with pytest.raises(eddyline.DataError) as caught:
        db.execute(query)
    assert caught.value.detail == CASES[query]


def rebuilt(db: eddyline.Connection, query: str) -> list[tuple[object, ...]]:
    """The answer, asked for again while the replica is lost."""

    def answered() -> list[list[tuple[object, ...]]]:
        try:
            return [db.execute(query).fetchall()]
        except eddyline.OperationalError as error:
            assert error.sqlstate == "58000"
            return []

    return wait_until(answered, "the replica comes back")[0]


@pytest.mark.parametrize("interactive", [True, False])
def test_an_error_goes_with_its_row_after_the_replica_was_rebuilt(
    interactive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with eddyline.connect(interactive=interactive) as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, qty int)")
        db.execute("INSERT INTO t VALUES (7, 0), (8, 2)")
        db.execute("CREATE MATERIALIZED VIEW ratio AS SELECT id, 6 / qty AS r FROM t")
        with pytest.raises(eddyline.DataError):
            db.execute("SELECT * FROM ratio")
        db.execute("ALTER TABLE t RENAME TO renamed")
        step, failures = MfpOperator.step, [RuntimeError("injected")]

        def failing(self: MfpOperator) -> bool:
            if failures:
                raise failures.pop()
            return step(self)

        monkeypatch.setattr(MfpOperator, "step", failing)
        db.execute("INSERT INTO renamed VALUES (9, 0)")
        with pytest.raises(eddyline.DataError, match="division by zero"):
            rebuilt(db, "SELECT * FROM ratio")
        db.execute("UPDATE renamed SET qty = 3 WHERE qty = 0")
        assert not failures
        assert sorted(rebuilt(db, "SELECT * FROM ratio")) == [(7, 2), (8, 3), (9, 2)]


def test_an_error_goes_with_its_row_whatever_the_table_is_called_by_then() -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, qty int)")
        db.execute("INSERT INTO t VALUES (7, 0), (8, 2)")
        db.execute("CREATE MATERIALIZED VIEW a AS SELECT l.id, 6 / l.qty AS r FROM t l JOIN t r ON l.qty = r.qty")
        db.execute("CREATE MATERIALIZED VIEW b AS SELECT r AS other FROM a")
        for view in ("a", "b"):
            with pytest.raises(eddyline.DataError, match="division by zero"):
                db.execute(f"SELECT * FROM {view}")
        db.execute("ALTER TABLE t RENAME TO renamed")
        db.execute("CREATE MATERIALIZED VIEW c AS SELECT id AS same, r AS ratio FROM a")
        with pytest.raises(eddyline.DataError) as caught:
            db.execute("SELECT * FROM c")
        assert caught.value.detail is not None and caught.value.detail.startswith('in view "a", expression 6 / qty')
        db.execute("UPDATE renamed SET qty = 3 WHERE id = 7")
        assert sorted(db.execute("SELECT * FROM a").fetchall()) == [(7, 2), (8, 3)]
        assert sorted(db.execute("SELECT * FROM b").fetchall()) == [(2,), (3,)]
        assert sorted(db.execute("SELECT * FROM c").fetchall()) == [(7, 2), (8, 3)]


def test_a_subquery_with_two_rows_is_told_by_the_row_that_it_was_for_alone() -> None:
    with eddyline.connect() as db:
        db.executescript("CREATE TABLE a (k int); CREATE TABLE b (k int, v int)")
        db.executescript("INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1, 5), (2, 6), (2, 7)")
        for query, row in (
            ("SELECT k, (SELECT v FROM b WHERE b.k = a.k) FROM a", ", row k = 2"),
            ("SELECT (SELECT v FROM b)", ""),
        ):
            with pytest.raises(eddyline.Error) as caught:
                db.execute(query)
            assert (caught.value.sqlstate, caught.value.detail) == ("21000", f"in expression (SELECT ...){row}")


def test_expressions_are_called_as_users_call_them() -> None:
    texts = {
        "date_trunc('foo', at)": "date_trunc('foo', at)",
        "at + make_interval(0, 0, 0, days)": "at + make_interval(0, 0, 0, days)",
        "abs(small)": "abs(small)",
        "- small": "- small",
        "at - interval '300000 years'": "at - '300000 years'::interval",
    }
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (at timestamptz, days int, small int)")
        db.execute("INSERT INTO t VALUES ('2024-01-01 UTC', 2000000000, -2147483648)")
        for query, text in texts.items():
            with pytest.raises(eddyline.DataError) as caught:
                db.execute(f"SELECT {query} FROM t")
            assert str(caught.value.detail).startswith(f"in expression {text}, row ")
