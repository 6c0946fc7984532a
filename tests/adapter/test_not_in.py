"""NOT IN a query, maintained: NULLs come and go on both sides, and a change meets one join."""

from __future__ import annotations

import pytest

from eddyline.compute.operators.join import JoinOperator
from tests.adapter.planned_database import PlannedDatabase, Row

_TABLES = "CREATE TABLE outside (x bigint, n bigint); CREATE TABLE inside (y bigint);"
_CONDITIONS = (
    "x NOT IN (SELECT y FROM inside)",
    "NOT x IN (SELECT y FROM inside)",
    "x <> ALL (SELECT y FROM inside)",
    "x + 1 NOT IN (SELECT y + 1 FROM inside)",
)


def _expected(outside: list[Row], inside: list[int | None]) -> set[Row]:
    if not inside:
        return set(outside)
    if None in inside:
        return set()
    return {row for row in outside if row[0] is not None and row[0] not in inside}


@pytest.mark.parametrize("condition", _CONDITIONS)
def test_is_what_the_three_values_say_after_each_change(condition: str) -> None:
    db = PlannedDatabase(_TABLES)
    db.run(f"CREATE VIEW v AS SELECT x, n FROM outside WHERE {condition}; CREATE INDEX v_i ON v (n)")
    outside: list[Row] = [(1, 0), (2, 1), (None, 2)]
    db.write(outside=outside)
    inside: list[int | None] = []
    for value in (2, 2, None, 3, None, 1):
        inside.append(value)
        db.write(inside=[(value,)])
        db.rest()
        assert {tuple(row) for row in db.read("v_i")} == _expected(outside, inside)
    while inside:
        db.write(inside=[(None, inside.pop(0))])
        db.rest()
        assert {tuple(row) for row in db.read("v_i")} == _expected(outside, inside)


def test_a_change_that_leaves_the_flags_meets_one_join(monkeypatch: pytest.MonkeyPatch) -> None:
    db = PlannedDatabase(_TABLES)
    db.write(outside=[(i, i) for i in range(100)], inside=[(0,)])
    db.run(f"CREATE VIEW v AS SELECT x, n FROM outside WHERE {_CONDITIONS[0]}; CREATE INDEX v_i ON v (n)")
    db.rest()
    matched: list[int] = []
    send = JoinOperator._send

    def counted(self: JoinOperator, *args: object) -> None:
        matched.append(1)
        send(self, *args)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(JoinOperator, "_send", counted)
    for i in range(1, 9):
        db.write(inside=[(i,)])
        db.rest()
    assert len(matched) == 8
    assert len(db.read("v_i")) == 91
