"""Which class a dataflow has, checked: what does not have the shape of a one-shot read is maintained instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from eddyline.plan.dataflow import DataflowClass, DataflowDescription, ExportIndex
from eddyline.protocol.soft_assertion import soft_assert
from eddyline.repr.ids import is_transient
from eddyline.repr.time import EMPTY

__all__ = ["checked_shape"]

_Clause = Callable[[DataflowDescription], bool]

#: by what is wrong where one does not hold
_CLAUSES: Final[dict[str, _Clause]] = {
    "it exports more than indexes": lambda d: all(isinstance(e, ExportIndex) for e in d.exports),
    "an export is not transient": lambda d: all(is_transient(e.id) for e in d.exports),
    "it has not a single time": lambda d: d.until == d.as_of + 1,
    "no finite time comes after its own": lambda d: d.until != EMPTY,
    "an import is transient": lambda d: not any(is_transient(i.id) for i in d.imports),
}


def checked_shape(description: DataflowDescription, *, one_shot_reads: bool) -> DataflowDescription:
    """The description with the class that it may have.

    A one-shot read has only transient exports, all of them indexes, a single time with a finite one after it, and no
    transient import; a misfit trips a soft assertion and becomes maintained.  ``one_shot_reads`` False: every read
    becomes maintained, after the check.
    """
    if description.dataflow_class is DataflowClass.MAINTAINED:
        return description
    fits = all(
        soft_assert(holds(description), f"dataflow {description.name} has not the shape of a one-shot read: {fault}")
        for fault, holds in _CLAUSES.items()
    )
    if fits and one_shot_reads:
        return description
    return msgspec.structs.replace(description, dataflow_class=DataflowClass.MAINTAINED)
