"""A view over a grouped view is touched by what it reads of it: other columns' changes do not meet a key's rows."""

from __future__ import annotations

import pytest

from eddyline.testing.counting import counting
from tests.adapter.planned_database import PlannedDatabase

_TABLES = """
CREATE TABLE facts (id bigint, grp bigint, val bigint);
CREATE TABLE visits (grp bigint, who text);
CREATE VIEW grouped AS SELECT grp, count(*) AS n, min(val) AS least, sum(val) AS total FROM facts GROUP BY grp;
CREATE INDEX grouped_i ON grouped (grp);
"""
_VIEWS = {
    "dropped": "SELECT v.who, g.n FROM visits v JOIN grouped g ON v.grp = g.grp",
    "decided": "SELECT v.who FROM visits v JOIN grouped g ON v.grp = g.grp WHERE g.total > 0",
    "computed": "SELECT v.who, g.total > 0 AS any FROM visits v JOIN grouped g ON v.grp = g.grp",
    "may fail": "SELECT v.who, 100 / g.n AS share FROM visits v JOIN grouped g ON v.grp = g.grp",
    "semi join": "SELECT who FROM visits WHERE grp IN (SELECT grp FROM grouped WHERE total > 0)",
    "outer join": "SELECT v.who, g.n FROM visits v LEFT JOIN grouped g ON v.grp = g.grp",
    "key computed": "SELECT v.who FROM visits v JOIN facts f ON v.grp = f.grp + f.val - f.val",
}
_GROUPS = 4


def _cost(select: str, visits: int) -> int:
    """Bytes copied for changes of the sums that leave the view as it is, with so many rows a group."""
    db = PlannedDatabase(_TABLES)
    db.write(
        facts=[(g * 10 + i, g, i + 1) for g in range(_GROUPS) for i in range(5)],
        visits=[(g, f"visitor {g}.{i}") for g in range(_GROUPS) for i in range(visits)],
    )
    db.run(f"CREATE VIEW v AS {select}; CREATE INDEX v_i ON v (who)")
    db.rest()
    before = db.read("v_i")
    assert len(before) >= _GROUPS * visits

    def change(i: int) -> None:
        db.write(facts=[(None, 2, 0, 3 + i % 2), (2, 0, 4 - i % 2)])
        db.rest()

    change(0)
    with counting() as counted:
        for i in range(1, 9):
            change(i)
    assert db.read("v_i") == before
    return counted.bytes


@pytest.mark.parametrize("name", [n for n in _VIEWS if n != "may fail"])
def test_a_change_that_the_view_does_not_show_costs_the_same_however_many_rows_it_would_meet(name: str) -> None:
    few, many = (_cost(_VIEWS[name], visits) for visits in (10, 1_000))
    assert many <= few * 1.25 + 2048


@pytest.mark.parametrize("name", list(_VIEWS))
def test_a_change_that_the_view_shows_is_shown(name: str) -> None:
    """The views answer as ones that are made afterwards do."""
    db = PlannedDatabase(_TABLES)
    db.write(facts=[(g * 10 + i, g, i + 1) for g in range(3) for i in range(2)], visits=[(g, f"{g}") for g in range(5)])
    db.run(f"CREATE VIEW v AS {_VIEWS[name]}; CREATE INDEX v_i ON v (who)")
    db.rest()
    for changes in ([(7, 3, 5)], [(None, 0, 0, 1), (9, 0, -9)], [(None, 10, 1, 1), (None, 11, 1, 2)]):
        db.write(facts=changes)
        db.rest()
    db.run(f"CREATE VIEW w AS {_VIEWS[name]}; CREATE INDEX w_i ON w (who)")
    db.rest()
    assert db.read("v_i") == db.read("w_i")
