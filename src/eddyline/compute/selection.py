"""Which rows of a source a dataflow can have any use for, where a filter says so by equality.

A thousand views that each keep the rows of one key of one table would otherwise all be activated by every commit, to
find that its rows are somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eddyline.expr.ir import And, Call, Column, Expr, FilterStep, Literal, LiteralValue, Or
from eddyline.plan.dataflow import (
    BatchSource,
    ConstantSource,
    DataflowClass,
    DataflowDescription,
    ExportSubscribe,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
    Operator,
    Union,
)
from eddyline.protocol.sources import Selection
from eddyline.repr.types import Kind, SqlType

__all__ = ["passed_by", "selection_of"]

_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
#: kinds of one layout and one image per value, so that an equal literal has an equal hash
_PLAIN = frozenset({Kind.BOOLEAN, Kind.TEXT, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID})


def selection_of(description: DataflowDescription, position: int) -> Selection | None:
    """The rows of the source at ``position`` that get past the filters of all who read it; None: perhaps all.

    Rows left out give neither rows nor errors, so that leaving them out changes nothing.  A subscription reports
    progress at every commit, and a one-shot read takes none: neither is selective.  O(operators).
    """
    if description.dataflow_class is not DataflowClass.MAINTAINED:
        return None
    if any(isinstance(o, ExportSubscribe) for o in description.operators):
        return None
    readers = [o for o in description.operators if position in _inputs(o)]
    selections = [_of_filter(o) for o in readers]
    found = [s for s in selections if s is not None]
    if not found or len(found) < len(selections) or len({(s.column, s.type) for s in found}) > 1:
        return None
    values = tuple(dict.fromkeys(v for s in found for v in s.values))
    return Selection(found[0].column, found[0].type, values)


def passed_by(description: DataflowDescription) -> frozenset[str]:
    """The sources whose commits are none of the dataflow's business, but for those with rows that it selects."""
    selected: set[str] = set()
    followed: set[str] = set()
    for position, operator in enumerate(description.operators):
        match operator:
            case ImportSource():
                (followed if selection_of(description, position) is None else selected).add(operator.id)
            case ImportIndex():
                followed.add(operator.id)
            case _:
                pass
    return frozenset(selected - followed)


def _inputs(operator: Operator) -> Sequence[int]:
    """The positions that an operator reads."""
    match operator:
        case ImportSource() | ImportIndex() | ConstantSource() | BatchSource():
            return ()
        case Union():
            return operator.inputs
        case Join():
            return operator.left, operator.right
        case _:
            return (operator.input,)


def _of_filter(operator: Operator) -> Selection | None:
    """By the first equality among the tests that every row meets, and that can't fail, before anything else."""
    if not isinstance(operator, MapFilterProject):
        return None
    for step in operator.mfp.steps:
        if not isinstance(step, FilterStep):
            return None
        tests = step.predicate.args if isinstance(step.predicate, And) else (step.predicate,)
        for number, test in enumerate(tests):
            selection = _of_test(test)
            if selection is None:
                return None
            if number + 1 == len(tests):
                return selection
            # What is neither true nor false meets the later tests, which may fail on it.
            return Selection(selection.column, selection.type, (*selection.values, None))
    return None


def _of_test(test: Expr) -> Selection | None:
    """``column = literal``, or several of them with OR."""
    alternatives = list(_equalities(test))
    first = alternatives[0]
    if first is None or any(a is None or a[:2] != first[:2] for a in alternatives):
        return None
    return Selection(first[0], first[1], tuple(a[2] for a in alternatives if a is not None))


def _equalities(test: Expr) -> Iterator[tuple[int, SqlType, LiteralValue] | None]:
    if isinstance(test, Or):
        for arg in test.args:
            yield from _equalities(arg)
        return
    if not isinstance(test, Call) or test.func != "eq":
        yield None
        return
    left, right = test.args
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(left, Column) and isinstance(right, Literal) and right.value is not None:
        same = left.type.kind is right.type.kind and left.type.kind in _PLAIN
        if same or {left.type.kind, right.type.kind} <= _INTEGERS:
            yield left.index, right.type, right.value
            return
    yield None
