"""Views that select rows of one table by equality, beside a recomputation of each from the table."""

from __future__ import annotations

import random

import pytest

import eddyline

_VIEWS = {
    "one": "SELECT k, v FROM t WHERE k = 1",
    "two": "SELECT count(*) AS n, sum(v) AS s FROM t WHERE 2 = k",
    "several": "SELECT k, count(*) AS n FROM t WHERE k IN (3, 4) OR k = 5 GROUP BY k",
    "named": "SELECT k, v FROM t WHERE s = 'x' AND v > 5",
    "whole": "SELECT s, max(v) AS m FROM t GROUP BY s",
    "joined": "SELECT a.v, b.v AS w FROM t a JOIN t b ON a.v = b.v WHERE a.k = 1 AND b.k = 2",
    "outer_joined": "SELECT a.k, a.v, b.s FROM t a LEFT JOIN t b ON a.v = b.v AND b.k = 4 WHERE a.k = 3",
    "on_views": "SELECT o.v, n.n FROM one o, two n",
    "failing": "SELECT k, 10 / v AS q FROM t WHERE k = 6",
    "failing_test": "SELECT k FROM t WHERE k = 7 AND 10 / v > 1",
}


_KEYS = {"two": "n", "several": "k", "whole": "s", "joined": "v", "on_views": "v"}


@pytest.mark.parametrize("materialized", [False, True])
@pytest.mark.parametrize("interactive", [True, False])
def test_views_of_a_selection_equal_their_query_at_every_commit(interactive: bool, materialized: bool) -> None:
    rng = random.Random(int(interactive) + 2 * int(materialized))
    with eddyline.connect(interactive=interactive) as db:
        db.execute("CREATE TABLE t (k int, v bigint, s text)")
        for name, query in _VIEWS.items():
            db.execute(f"CREATE {'MATERIALIZED ' if materialized else ''}VIEW {name} AS {query}")
            if not materialized:
                db.execute(f"CREATE INDEX {name}_i ON {name} ({_KEYS.get(name, 'k')})")
        for _ in range(25):
            _change(db, rng)
            _check(db, rng.choice(list(_VIEWS)))
        for name in _VIEWS:
            _check(db, name)


def _change(db: eddyline.Connection, rng: random.Random) -> None:
    if rng.random() < 0.25:
        db.execute(f"DELETE FROM t WHERE k = {rng.randrange(8)} OR k IS NULL")
        return
    keys, values, names = ["NULL", *map(str, range(8))], ["0", "1", "2", "7"], ["NULL", "'x'", "'y'"]
    rows = [[rng.choice(choices) for choices in (keys, values, names)] for _ in range(rng.choice([1, 1, 5]))]
    db.execute(f"INSERT INTO t VALUES {', '.join('(' + ', '.join(row) + ')' for row in rows)}")


def _check(db: eddyline.Connection, name: str) -> None:
    query = _VIEWS[name]
    if name == "on_views":
        query = f"SELECT o.v, n.n FROM ({_VIEWS['one']}) o, ({_VIEWS['two']}) n"
    assert _answer(db, f"SELECT * FROM {name}") == _answer(db, query), name


def _answer(db: eddyline.Connection, query: str) -> object:
    """The rows, sorted, or the error's SQLSTATE."""
    try:
        return sorted(db.execute(query).fetchall(), key=repr)
    except eddyline.Error as error:
        return error.sqlstate
