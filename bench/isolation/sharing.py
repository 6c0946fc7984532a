"""What publishing an index weighs: resident bytes with many importers, and bytes copied for them."""

from __future__ import annotations

import gc
import resource
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.plan.dataflow import DataflowClass, DataflowDescription, ExportIndex, ImportIndex
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.testing.counting import counting
from eddyline.testing.driver import PAIR, ReplicaDriver, index_on, reexport_of

__all__ = ["SharingFigures", "measure_sharing"]

_IMPORTERS = 48


class SharingFigures(NamedTuple):
    """``resident_bytes`` of the process before, ``added_bytes`` after; what was copied and called in between."""

    resident_bytes: int
    added_bytes: int
    copied_bytes: int
    kernel_calls: int


def measure_sharing(rows: int = 1_000_000) -> SharingFigures:
    """An index of ``rows`` rows, before and after it is published anew and 48 one-shot reads have imported it."""
    d = ReplicaDriver()
    at = d.table("t", [(0, 0)]) + 1
    columns = (pa.array(np.arange(rows)), pa.array(np.arange(rows) % 1000))
    d.store.append({"t": Batch(PAIR, columns, np.zeros(rows, np.int64), np.ones(rows, np.int64))}, Time(at))
    d.create(index_on("i", "t", at))
    d.rest()
    gc.collect()
    before = _resident_bytes()
    with counting() as counted:
        d.create(reexport_of("again", "i", at))
        for n in range(_IMPORTERS):
            operators = (ImportIndex("i", PAIR, (0,)), ExportIndex(f"t{n}", "i", 0, (0,), PAIR))
            d.create(DataflowDescription(f"t{n}", operators, at, at + 1, DataflowClass.ONE_SHOT_READ))
        d.rest()
    gc.collect()
    return SharingFigures(before, _resident_bytes() - before, counted.bytes, counted.kernel_calls)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
