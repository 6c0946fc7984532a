"""What of a source a filter lets a dataflow do without."""

from __future__ import annotations

import pytest

from eddyline.compute.selection import selection_of
from eddyline.expr.ir import And, Call, Column, Expr, FilterStep, Literal, MapStep, Mfp, Or
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ExportSubscribe,
    ImportSource,
    MapFilterProject,
    Operator,
    Union,
)
from eddyline.protocol.sources import Selection
from eddyline.repr.time import EMPTY
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT

TYPES = (INTEGER, BIGINT, TEXT, DOUBLE)


def _equal(column: int, value: int | str | float | None, *, swapped: bool = False) -> Expr:
    literal_type = {int: BIGINT, str: TEXT, float: DOUBLE, type(None): BIGINT}[type(value)]
    sides = (Column(column, TYPES[column]), Literal(value, literal_type))
    return Call("eq", sides[::-1] if swapped else sides, BOOLEAN)


_FALLIBLE = Call("eq", (Call("div", (Literal(1, BIGINT), Column(1, BIGINT)), BIGINT), Literal(0, BIGINT)), BOOLEAN)


def _mfp(*steps: FilterStep | MapStep) -> MapFilterProject:
    return MapFilterProject(0, Mfp(steps, (0,), TYPES[:1]))


def _dataflow(*operators: Operator, one_shot: bool = False) -> DataflowDescription:
    kind = DataflowClass.ONE_SHOT_READ if one_shot else DataflowClass.MAINTAINED
    return DataflowDescription("v", (ImportSource("t", TYPES), *operators), 0, EMPTY, kind)


def _selected(predicate: Expr) -> Selection | None:
    return selection_of(_dataflow(_mfp(FilterStep(predicate))), 0)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (_equal(0, 5), Selection(0, BIGINT, (5,))),
        (_equal(0, 5, swapped=True), Selection(0, BIGINT, (5,))),
        (_equal(2, "x"), Selection(2, TEXT, ("x",))),
        (Or((_equal(1, 5), Or((_equal(1, 6), _equal(1, 7))))), Selection(1, BIGINT, (5, 6, 7))),
        (And((_equal(2, "x"), _equal(0, 5))), Selection(2, TEXT, ("x", None))),
        (And((_equal(0, 5), _FALLIBLE)), Selection(0, BIGINT, (5, None))),
    ],
)
def test_an_equality_selects(predicate: Expr, expected: Selection) -> None:
    assert _selected(predicate) == expected


@pytest.mark.parametrize(
    "predicate",
    [
        And((_FALLIBLE, _equal(0, 5))),  # rows of other keys fail, too
        Or((_equal(0, 5), _equal(1, 5))),
        Or((_equal(0, 5), _FALLIBLE)),
        _equal(3, 0.0),  # equal values of many images
        _equal(0, None),
        Call("lt", (Column(0, INTEGER), Literal(5, BIGINT)), BOOLEAN),
    ],
)
def test_what_is_no_plain_equality_selects_nothing(predicate: Expr) -> None:
    assert _selected(predicate) is None


def test_what_may_fail_before_the_filter_sees_every_row() -> None:
    assert selection_of(_dataflow(_mfp(MapStep(_FALLIBLE), FilterStep(_equal(0, 5)))), 0) is None


def test_all_readers_of_a_source_must_select() -> None:
    one, other = _mfp(FilterStep(_equal(0, 5))), _mfp(FilterStep(_equal(0, 6)))
    assert selection_of(_dataflow(one, other, Union((1, 2), TYPES[:1])), 0) == Selection(0, BIGINT, (5, 6))
    assert selection_of(_dataflow(one, Arrange(0, (0,), TYPES)), 0) is None
    assert selection_of(_dataflow(one, _mfp(FilterStep(_equal(1, 6)))), 0) is None


def test_subscriptions_and_one_shot_reads_follow_everything() -> None:
    view = _mfp(FilterStep(_equal(0, 5)))
    exported = (view, Arrange(1, (0,), TYPES[:1]), ExportIndex("i", "v", 2, (0,), TYPES[:1]))
    assert selection_of(_dataflow(*exported), 0) is not None
    assert selection_of(_dataflow(*exported, one_shot=True), 0) is None
    assert selection_of(_dataflow(view, ExportSubscribe("s", 1, TYPES[:1])), 0) is None
