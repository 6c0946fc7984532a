"""Which class a dataflow has, checked: what does not have the shape of a one-shot read is maintained instead."""

from __future__ import annotations

import msgspec

from eddyline.plan.dataflow import DataflowClass, DataflowDescription, ExportIndex
from eddyline.protocol.soft_assertion import soft_assert
from eddyline.repr.ids import is_transient
from eddyline.repr.time import EMPTY

__all__ = ["checked_shape"]


def checked_shape(description: DataflowDescription, *, one_shot_reads: bool) -> DataflowDescription:
    """The description with the class that it may have.

    A one-shot read has only transient exports, all of them indexes, a single time, and no transient import; a misfit
    trips a soft assertion and becomes maintained.  ``one_shot_reads`` False: every read becomes maintained, after the
    check.
    """
    if description.dataflow_class is DataflowClass.MAINTAINED:
        return description
    fits = all(
        soft_assert(fulfilled, f"dataflow {description.name} has not the shape of a one-shot read: {fault}")
        for fulfilled, fault in (
            (all(isinstance(e, ExportIndex) for e in description.exports), "it exports more than indexes"),
            (all(is_transient(e.id) for e in description.exports), "an export is not transient"),
            (description.until == description.as_of + 1 and description.until != EMPTY, "it has not a single time"),
            (not any(is_transient(i.id) for i in description.imports), "an import is transient"),
        )
    )
    if fits and one_shot_reads:
        return description
    return msgspec.structs.replace(description, dataflow_class=DataflowClass.MAINTAINED)
