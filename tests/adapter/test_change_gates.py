"""What a change costs, counted at two sizes of the data for every kind of view: a lost complexity class fails here.

Activations, operator steps, kernel calls, copied bytes: none may follow the rows that are already there.  Merging is
amortised over the changes and counts with them; at most what a few levels more explain is allowed on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.stream import Operator
from eddyline.testing.counting import Counted, counting
from tests.adapter.planned_database import PlannedDatabase, Row

_TABLES = """
CREATE TABLE facts (id bigint, grp bigint, val bigint);
CREATE TABLE groups (grp bigint, name text);
CREATE TABLE small (grp bigint NOT NULL);
"""
_SMALL, _LARGE = 3_000, 48_000
_GROUP_ROWS = 30
_CHANGES = 32

Changes = dict[str, list[Row]]


@dataclass
class Cost:
    """Of all changes of a run together."""

    activations: int = 0
    steps: int = 0
    counted: Counted = field(default_factory=Counted)


class Shape(NamedTuple):
    """``change(i, rows)``: what commit *i* writes into tables of ``rows`` facts."""

    key: str
    select: str
    change: Callable[[int, int], Changes]


def _fact(i: int, rows: int) -> Changes:
    """A new greatest value of its group and of all."""
    return {"facts": [(rows + i, i % 7, (1 << 40) + i)]}


def _fact_and_back(i: int, rows: int) -> Changes:
    """The greatest value of all comes, and goes with the next commit."""
    row = (rows + i // 2, (i // 2) % 7, (1 << 40) + i // 2)
    return {"facts": [row if i % 2 == 0 else (None, *row)]}


def _listed(i: int, rows: int) -> Changes:
    return {"small": [(i % (rows // _GROUP_ROWS),)]}


SHAPES = {
    "grouped": Shape("grp", "SELECT grp, count(*) AS n, sum(val) AS s FROM facts GROUP BY grp", _fact),
    "join": Shape("id", "SELECT f.id, f.val, g.name FROM facts f JOIN groups g ON f.grp = g.grp", _fact),
    "max": Shape("grp", "SELECT grp, max(val) AS m FROM facts GROUP BY grp", _fact),
    "max, deleted": Shape("grp", "SELECT grp, max(val) AS m FROM facts GROUP BY grp", _fact_and_back),
    "max of all, deleted": Shape("m", "SELECT max(val) AS m FROM facts", _fact_and_back),
    "top 10": Shape("id", "SELECT id, val FROM facts ORDER BY val DESC LIMIT 10", _fact),
    "top 10, deleted": Shape("id", "SELECT id, val FROM facts ORDER BY val DESC LIMIT 10", _fact_and_back),
    "distinct count": Shape("grp", "SELECT grp, count(DISTINCT val) AS n FROM facts GROUP BY grp", _fact),
    "outer join": Shape(
        "grp",
        "SELECT g.grp, g.name, s.id FROM groups g LEFT JOIN facts s ON g.grp = s.grp AND s.val > 8000000000",
        _fact,
    ),
    "NOT IN": Shape("grp", "SELECT grp, name FROM groups WHERE grp NOT IN (SELECT grp FROM small)", _listed),
}


@contextmanager
def counted_work() -> Iterator[Cost]:
    """Of dataflows stepped on this thread meanwhile."""
    cost = Cost()
    activate, timed = Dataflow.activate, Dataflow._timed

    def counted_activate(self: Dataflow, expired: Callable[[], bool]) -> bool:
        cost.activations += 1
        return activate(self, expired)

    def counted_step(self: Dataflow, at: int, operator: Operator) -> bool:
        cost.steps += 1
        return timed(self, at, operator)

    with pytest.MonkeyPatch.context() as patch, counting() as cost.counted:
        patch.setattr(Dataflow, "activate", counted_activate)
        patch.setattr(Dataflow, "_timed", counted_step)
        yield cost


def _filled(rows: int) -> PlannedDatabase:
    """Groups of 30; the values are a permutation, so that those of a group are spread."""
    db = PlannedDatabase(_TABLES)
    groups = rows // _GROUP_ROWS
    db.write(
        facts=[(i, i % groups, i * 7919 % rows) for i in range(rows)],
        groups=[(g, f"group {g}") for g in range(groups)],
        small=[(groups + 1,)],
    )
    return db


def _cost_of(shape: Shape, rows: int) -> Cost:
    db = _filled(rows)
    db.run(f"CREATE VIEW v AS {shape.select}; CREATE INDEX v_i ON v ({shape.key})")
    db.rest()
    before = db.read("v_i")
    for i in range(4):  # the first changes find things that later ones find there
        db.write(**shape.change(i, rows))
        db.rest()
    with counted_work() as cost:
        for i in range(4, 4 + _CHANGES):
            db.write(**shape.change(i, rows))
            db.rest()
    if shape.change is _fact_and_back:
        assert db.read("v_i") == before
    else:
        assert db.read("v_i") != before
    return cost


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_change_costs_the_same_over_sixteen_times_the_rows(name: str) -> None:
    small, large = (_cost_of(SHAPES[name], rows) for rows in (_SMALL, _LARGE))
    assert small.activations == large.activations == _CHANGES
    assert large.steps <= small.steps * 1.1
    assert large.counted.kernel_calls <= small.counted.kernel_calls * 1.25
    assert large.counted.bytes <= small.counted.bytes * 1.5 + 1024 * _CHANGES


def test_a_chain_of_ten_views_costs_a_constant_a_view_and_change() -> None:
    """Of maxima of maxima, so that each has state of its own."""
    costs = []
    for rows in (_SMALL, _LARGE):
        db = _filled(rows)
        source = "facts"
        for number in range(10):
            db.run(
                f"CREATE VIEW v{number} AS SELECT grp, max(val) AS val FROM {source} GROUP BY grp;"
                f"CREATE INDEX v{number}_i ON v{number} (grp)"
            )
            source = f"v{number}"
        db.rest()
        with counted_work() as cost:
            for i in range(_CHANGES):
                db.write(**_fact(i, rows))
                db.rest()
        assert max(row[1] for row in db.read("v9_i")) == (1 << 40) + _CHANGES - 1  # type: ignore[type-var]  # integers
        costs.append(cost)
    small, large = costs
    assert small.activations == large.activations == 10 * _CHANGES  # a view once, and not of the square of ten
    assert large.steps <= small.steps * 1.1
    assert large.counted.kernel_calls <= small.counted.kernel_calls * 1.25
    assert large.counted.bytes <= small.counted.bytes * 1.5 + 10 * 1024 * _CHANGES


def test_a_change_of_one_view_in_a_hundred_costs_the_touched_ones() -> None:
    """As many touched ones of 100 views as of 1,000; one that is passed by may catch up."""
    costs = []
    for views in (100, 1_000):
        db = PlannedDatabase(_TABLES)
        for key in range(views):
            db.run(
                f"CREATE VIEW v{key} AS SELECT count(*) AS n, sum(val) AS s FROM facts WHERE grp = {key};"
                f"CREATE INDEX v{key}_i ON v{key} (n)"
            )
        db.rest()
        with counted_work() as cost:
            for i in range(8):
                db.write(facts=[(i * 10 + j, j * 9, i) for j in range(10)])
                db.rest()
        assert list(db.read("v9_i")) == [(8, 28)]
        assert list(db.read("v8_i")) == [(0, None)]
        costs.append(cost)
    few, many = costs
    assert many.activations == few.activations <= 8 * 11
    assert many.steps <= few.steps * 1.05
    assert many.counted.kernel_calls <= few.counted.kernel_calls * 1.05
    assert many.counted.bytes <= few.counted.bytes * 1.05
