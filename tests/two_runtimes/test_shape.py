"""The shape of a one-shot read, as the controller checks it before the replica hears of the dataflow."""

from __future__ import annotations

import msgspec
import pytest

from eddyline.controller.controller import Controller
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
    ImportSource,
)
from eddyline.repr.time import EMPTY, MAX_TIME, MIN_TIME, Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.compute.runtime_harness import PAIR, indexed, one_shot
from tests.controller.test_controller import Recorder
from tests.two_runtimes.driver import read_over

AT = 5


def told(description: DataflowDescription, *, one_shot_reads: bool = True) -> DataflowDescription:
    """What the replica hears of it, beside table t, index i on it, and read t1 of that."""
    controller, replica = Controller(TableStore(Hasher(1))), Recorder()
    controller.attach_replica(replica)
    controller.create_table("t", PAIR, key=None, names=("k", "v"), table="t", constraint="", at=Time(MIN_TIME))
    controller.create_dataflow(indexed("i", "t"), as_of=Time(AT))
    controller.create_dataflow(read_over("t1", "i", AT), as_of=Time(AT))
    controller.one_shot_reads = one_shot_reads
    controller.create_dataflow(description, as_of=Time(description.as_of))
    return replica.dataflows()[-1]


def _misfits() -> dict[str, DataflowDescription]:
    good, source = read_over("t2", "i", AT), ImportSource("t", PAIR)
    return {
        "not transient": one_shot("r", AT, source, Arrange(0, (), PAIR), ExportIndex("r", "t", 1, (), PAIR)),
        "a subscription": one_shot("t2", AT, source, ExportSubscribe("t2", 0, PAIR)),
        "a view": one_shot("t2", AT, source, ExportMaterializedView("t2", 0, PAIR)),
        "an index and more": one_shot("t2", AT, *good.operators, source, ExportSubscribe("t3", 3, PAIR)),
        "several times": msgspec.structs.replace(good, until=AT + 4),
        "no time": msgspec.structs.replace(good, until=AT),
        "unbounded": msgspec.structs.replace(good, until=EMPTY),
        "greatest time": msgspec.structs.replace(good, as_of=MAX_TIME, until=EMPTY),
        "transient import": read_over("t2", "t1", AT),
    }


@pytest.mark.parametrize("fault", list(_misfits()))
def test_p06_a_misfit_trips_a_soft_assertion_and_is_maintained(fault: str, tripped: list[str]) -> None:
    wrong = _misfits()[fault]
    assert told(wrong) == msgspec.structs.replace(wrong, dataflow_class=DataflowClass.MAINTAINED)
    assert len(tripped) == 1


def test_p07_what_fits_stays_and_the_flag_rewrites_it_after_the_check(tripped: list[str]) -> None:
    good, wrong = read_over("t2", "i", AT), _misfits()["several times"]
    assert told(good) == good
    assert told(good, one_shot_reads=False) == msgspec.structs.replace(good, dataflow_class=DataflowClass.MAINTAINED)
    maintained = msgspec.structs.replace(good, name="m", until=EMPTY, dataflow_class=DataflowClass.MAINTAINED)
    assert told(maintained) == told(maintained, one_shot_reads=False) == maintained
    assert tripped == []
    assert told(wrong, one_shot_reads=False).dataflow_class is DataflowClass.MAINTAINED
    assert len(tripped) == 1, "the check comes first"
