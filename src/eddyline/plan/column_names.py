"""What the columns of a dataflow are called, for the texts of row errors.

A plan has columns by position.  Their names are put to its operators at the end, from the objects that it imports
downwards, so that no rewrite has to carry them.  They are part of the dataflow's description: however often it is
rendered, whatever the objects are called by then, it gives the same text for the same row, and a retraction cancels
the error that an insertion made.

A column of an object goes by its own name, qualified where another object in the same row has one like it; a computed
one goes by its expression; a literal by its place, ``column1``, as in VALUES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from eddyline.expr.column_names import MfpNames
from eddyline.expr.describe import written
from eddyline.expr.ir import Column, Literal, MapStep, Mfp
from eddyline.plan.dataflow import (
    BatchSource,
    ConstantSource,
    FlatMap,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
    Operator,
    Reduce,
    TopK,
    Union,
)
from eddyline.plan.fast_path import ConstantPlan, FastPath, PeekPlan
from eddyline.plan.lookup_join import LookupJoin, LookupNode
from eddyline.plan.operators import inputs_of

__all__ = ["ObjectNames", "ObjectOf", "name_fast_path", "name_lookup_join", "name_operators"]


class ObjectNames(NamedTuple):
    """An object and its columns as SQL text, in quotes where they need them."""

    name: str
    columns: tuple[str, ...]


#: the names of the object with that id, or of what the index with that id is on; None if nobody knows
ObjectOf: TypeAlias = Callable[[str], ObjectNames | None]


class _Name(NamedTuple):
    """``text`` None: no name.  ``of``: the object whose column it is, None if it is computed."""

    text: str | None
    of: str | None = None


_Names: TypeAlias = tuple[_Name, ...]


def name_operators(operators: Sequence[Operator], object_of: ObjectOf, *, view: str = "") -> tuple[Operator, ...]:
    """The operators of a dataflow, with names where they may fail on a row.  Cost: O(operators * columns).

    ``view``: the view that the dataflow maintains; empty for a read's.
    """
    named: list[Operator] = []
    known: list[_Names] = []
    for operator in operators:
        inputs = [known[i] for i in inputs_of(operator)]
        done, names = _named(operator, inputs, object_of, view)
        named.append(done)
        known.append(names)
    return tuple(named)


def name_fast_path(plan: FastPath, object_of: ObjectOf) -> FastPath:
    """The plan, with names for the columns that its ``mfp`` reads."""
    match plan:
        case ConstantPlan():
            return msgspec.structs.replace(plan, mfp=_named_mfp(plan.mfp, _nameless(len(plan.types)))[0])
        case PeekPlan():
            return _named_peek(plan, object_of)[0]


def name_lookup_join(plan: LookupJoin, object_of: ObjectOf) -> LookupJoin:
    """As ``name_fast_path``, for every lookup and every condition of the plan."""
    return _named_join(plan, object_of)[0]


def _named_peek(plan: PeekPlan, object_of: ObjectOf) -> tuple[PeekPlan, _Names]:
    found = object_of(plan.on)
    if found is None:
        return plan, _nameless(len(plan.mfp.types))
    mfp, names = _named_mfp(plan.mfp, _of_object(plan.on, len(found.columns), object_of))
    return msgspec.structs.replace(plan, mfp=mfp), names


def _named_join(plan: LookupJoin, object_of: ObjectOf) -> tuple[LookupJoin, _Names]:
    left, first = _named_lookup(plan.left, object_of)
    right, second = _named_lookup(plan.right, object_of)
    names = (*first, *second)
    on = _named_mfp(plan.on, names)[0]
    mfp, out = _named_mfp(plan.mfp, names)
    return msgspec.structs.replace(plan, left=left, right=right, on=on, mfp=mfp), out


def _named_lookup(plan: LookupNode, object_of: ObjectOf) -> tuple[LookupNode, _Names]:
    return _named_peek(plan, object_of) if isinstance(plan, PeekPlan) else _named_join(plan, object_of)


def _named(operator: Operator, inputs: Sequence[_Names], object_of: ObjectOf, view: str) -> tuple[Operator, _Names]:
    """The operator with names, and those of its output."""
    match operator:
        case ImportSource() | ImportIndex():
            return operator, _of_object(operator.id, len(operator.types), object_of)
        case ConstantSource() | BatchSource():
            return operator, _nameless(len(operator.types))
        case MapFilterProject():
            mfp, names = _named_mfp(operator.mfp, inputs[0], view)
            return msgspec.structs.replace(operator, mfp=mfp), names
        case Join():
            mfp, names = _named_mfp(operator.mfp, (*inputs[0], *inputs[1]), view)
            return msgspec.structs.replace(operator, mfp=mfp), names
        case FlatMap():
            return _named_flat_map(operator, inputs[0], view)
        case Reduce():
            return _named_reduce(operator, inputs[0], view)
        case TopK() if operator.extreme is not None:
            (*keys, value), texts = inputs[0], _texts(inputs[0])
            return operator, (*keys, value._replace(text=f"{operator.extreme}({texts[-1]})", of=None))
        case Union():
            return operator, tuple(_first_known(names) for names in zip(*inputs, strict=True))
        case _:  # rows as they come in
            return operator, inputs[0]


def _named_flat_map(operator: FlatMap, below: _Names, view: str) -> tuple[Operator, _Names]:
    names = (*below, *(_Name(operator.func) for _ in operator.types[len(below) :]))
    named = msgspec.structs.replace(operator, names=_texts(below), view=view)
    if operator.mfp is None:
        return named, names
    mfp, out = _named_mfp(operator.mfp, names, view)
    return msgspec.structs.replace(named, mfp=mfp), out


def _named_reduce(operator: Reduce, below: _Names, view: str) -> tuple[Operator, _Names]:
    texts = _texts(below)
    keys = [below[k] for k in operator.key]
    values = [
        _Name(f"{call.func}({', '.join(written(arg, texts) for arg in call.args) or '*'})")
        for call in operator.aggregates
    ]
    return msgspec.structs.replace(operator, names=texts, view=view), (*keys, *values)


def _named_mfp(mfp: Mfp, below: _Names, view: str = "") -> tuple[Mfp, _Names]:
    named = msgspec.structs.replace(mfp, names=_texts(below), view=view)
    texts = MfpNames(named)
    names = list(below)
    for step in mfp.steps:
        if not isinstance(step, MapStep):
            continue
        match step.expr:
            case Column(index=index):
                names.append(names[index])
            case Literal():
                names.append(_Name(None))
            case _:
                names.append(_Name(texts[len(names)]))
    return named, tuple(names[c] for c in mfp.projection)


def _of_object(id: str, width: int, object_of: ObjectOf) -> _Names:
    found = object_of(id)
    if found is None or len(found.columns) != width:
        return _nameless(width)
    return tuple(_Name(column, found.name) for column in found.columns)


def _nameless(width: int) -> _Names:
    return (_Name(None),) * width


def _first_known(names: Sequence[_Name]) -> _Name:
    """What a column of a union is called: as in its first input that says."""
    return next((name for name in names if name.text is not None), names[0])


def _texts(names: _Names) -> tuple[str, ...]:
    """The names in one row: qualified if two objects have a column of that name."""
    owners: dict[str, set[str | None]] = {}
    for name in names:
        if name.text is not None:
            owners.setdefault(name.text, set()).add(name.of)
    texts = []
    for i, name in enumerate(names):
        if name.text is None:
            texts.append(f"column{i + 1}")
        elif name.of is not None and len(owners[name.text]) > 1:
            texts.append(f"{name.of}.{name.text}")
        else:
            texts.append(name.text)
    return tuple(texts)
