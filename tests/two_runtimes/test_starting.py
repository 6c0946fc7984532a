"""What a dataflow does before its Schedule, and a view's before its AllowWrites: nothing that anybody could see."""

from __future__ import annotations

from typing import cast

import pytest

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.compute.worker import Worker
from eddyline.plan.dataflow import (
    Arrange,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ImportIndex,
    ImportSource,
    MapFilterProject,
)
from eddyline.protocol.messages import AllowWrites, CreateDataflow, InitializationComplete, Peek, Schedule
from eddyline.repr.time import EMPTY, MIN_TIME
from eddyline.testing.driver import PAIR, ReplicaDriver, index_on, read_of, reexport_of, view_on
from eddyline.testing.process_group import ProcessGroup
from tests.compute.runtime_harness import identity, pairs
from tests.two_runtimes.driver import read_over
from tests.two_runtimes.test_driver import LARGE, Layout, bag, each_kind, each_layout
from tests.two_runtimes.test_invariants import ROWS, published

MANY = [(k, 10 * k + n) for k in range(6) for n in range(2)]
PASS = MapFilterProject(0, identity(PAIR))
#: dataflows that export j at time 1: which commands run them, and what they read
STARTS = {
    "an index": ("j",),
    "a re-export": ("j",),
    "an index of two": ("k", "j"),
}


def _described(kind: str) -> DataflowDescription:
    match kind:
        case "an index":
            return index_on("j", "t", 1)
        case "a re-export":
            return reexport_of("j", "i", 1)
        case _:
            operators = (
                ImportSource("t", PAIR),
                Arrange(0, (0,), PAIR),
                ExportIndex("j", "t", 1, (0,), PAIR),
                Arrange(0, (1,), PAIR),
                ExportIndex("k", "t", 3, (1,), PAIR),
            )
            return DataflowDescription("twins", operators, 1, EMPTY)


def rests(dataflow: Dataflow) -> bool:
    """No operator of it has ever made a step."""
    return not any(dataflow.durations) and not any(dataflow.elapsed_ns)


@pytest.mark.parametrize("kind", list(STARTS))
def test_p23_schedule_runs_a_dataflow_and_nothing_does_before(kind: str) -> None:
    d = published()
    d.send(CreateDataflow(_described(kind)))
    d.create(read_over("t1", "j", 1))
    walk, read, lookup = d.peek("j", 1), d.peek("t1", 1), Peek("j", "now", 1, PAIR[:1], ((2,),), identity(PAIR))
    *earlier, last = map(Schedule, STARTS[kind])
    for commands in ([], earlier):
        d.send(*commands)
        d.commit("t", [(4, 40)])
        d.settle()
        assert rests(d.maintainer()._exporters["j"])
        assert d.frontiers("j") == [1], "it says that nothing below its as_of will come"
        assert int(d.slot("j").frontier()) == MIN_TIME
        assert d.answers(walk) == d.answers(read) == []
        assert d.pair.answer_now(lookup) is None
    d.send(last)
    d.settle()
    assert d.rows(walk) == d.rows(read) == dict.fromkeys(ROWS, 1)
    assert d.frontiers("j")[-1] == d.time + 1
    assert d.pair.answer_now(lookup) is not None


def test_p24_a_view_is_not_written_before_writes_are_allowed() -> None:
    d = published()
    d.view("v", 1)
    d.view("w", 1)
    d.send(CreateDataflow(view_on("v", "t", 1, PASS)), Schedule("v"))
    over_index = (ImportIndex("i", PAIR, (0,)), PASS, ExportMaterializedView("w", 1, PAIR))
    d.send(CreateDataflow(DataflowDescription("w", over_index, 1, EMPTY)), Schedule("w"))
    d.settle()
    held = [d.maintainer()._exporters[id].held_bytes() for id in ("v", "w")]
    for n in range(20):
        d.commit("t", [(n, n)] * 10)
        d.settle()
    assert [int(d.store.upper(id)) for id in ("v", "w")] == [MIN_TIME, MIN_TIME]
    assert EMPTY not in d.frontiers("v") and max(d.frontiers("v"), default=0) <= 1
    assert [d.maintainer()._exporters[id].held_bytes() for id in ("v", "w")] == held, "what waits does not pile up"
    d.send(AllowWrites("v"))
    d.settle()
    assert d.store.upper("v") == d.time + 1
    assert int(d.store.upper("w")) == MIN_TIME, "each is allowed by itself"
    d.send(AllowWrites("w"))
    d.settle()
    for time in (1, d.time):
        assert d.stored("v", time) == d.stored("w", time) == d.stored("t", time)
    assert max(d.frontiers("w")) == d.time + 1


# -- any layout


@each_layout
@each_kind
def test_an_index_that_is_scheduled_late_has_what_it_would_have_had(layout: Layout, interactive: bool) -> None:
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", MANY)
    d.send(CreateDataflow(index_on("u2", "u1", at)), CreateDataflow(reexport_of("u3", "u2", at)))
    walk, lookup = d.peek("u2", at), d.peek("u3", at, (3,))
    d.write("u1", [(3, 99)])
    d.rest()
    d.compact("u2", at + 1)
    d.rest()
    assert d.answers(walk) == d.answers(lookup) == []
    assert d.frontiers("u2") == d.frontiers("u3") == [at]
    d.send(Schedule("u2"))
    d.rest()
    assert d.answers(lookup) == [], "the re-export is not scheduled yet, though what it shares is sealed"
    d.send(Schedule("u3"))
    d.rest()
    assert len(d.answers(walk)) == 1
    assert d.rows(lookup) == bag([(3, 30), (3, 31)])
    newer = d.peek("u2", at + 1)
    d.rest()
    assert d.rows(newer) == bag([*MANY, (3, 99)])
    for id in ("u2", "u3"):
        uppers = d.frontiers(id)
        assert uppers == sorted(set(uppers))
        assert uppers[-1] == at + 2
        d.drop(id)
    d.rest()
    assert d.at_rest()


@each_layout
def test_a_read_that_is_not_scheduled_answers_nothing_and_holds_its_time(layout: Layout) -> None:
    d = ReplicaDriver(*layout)
    at = d.table("u1", MANY)
    d.create(index_on("u2", "u1", at))
    d.rest()
    d.send(CreateDataflow(read_of("t3", "u2", at, LARGE)))
    uuid = d.peek("t3", at)
    for n in range(3):
        d.write("u1", [(9, 90 + n)])
    d.compact("u2", at + 3)
    d.rest()
    assert d.answers(uuid) == []
    assert d.frontiers("t3") == [at]
    d.send(Schedule("t3"))
    d.rest("interactive")
    assert d.rows(uuid) == bag([r for r in MANY if r[1] > 30]), "as of its time"
    assert d.frontiers("t3")[-1] == EMPTY


@each_layout
@each_kind
def test_what_was_never_scheduled_is_dropped_without_a_trace(layout: Layout, interactive: bool) -> None:
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", MANY)
    d.view("u4", at)
    unscheduled = (
        index_on("u2", "u1", at),
        reexport_of("u3", "u2", at),
        view_on("u4", "u1", at),
        read_of("t5", "u2", at),
    )
    d.send(*map(CreateDataflow, unscheduled))
    uuid = d.peek("t5", at)
    d.rest()
    d.cancel(uuid)
    assert int(d.store.upper("u4")) == MIN_TIME
    for id in ("t5", "u4", "u3", "u2"):
        d.drop(id)
    d.store.drop("u4")
    d.rest()
    assert d.answer(uuid).canceled
    assert [d.frontiers(id) for id in ("u2", "u3", "u4", "t5")] == [[at, EMPTY]] * 4
    assert d.at_rest()


def _renders(d: ReplicaDriver) -> list[int]:
    """How many dataflows each maintaining worker has built."""
    hosts = [p.replica for p in d.replica.processes] if isinstance(d.replica, ProcessGroup) else [d.replica]
    runtimes: list[Runtime] = [r for host in hosts for r in host.runtimes if r.role is not Role.INTERACTIVE]
    return [cast(Worker, w)._next_number for r in runtimes for w in r._commanded]


@each_layout
@each_kind
@pytest.mark.parametrize("again", [True, False])
def test_a_reconnection_keeps_what_waits_and_what_runs(layout: Layout, interactive: bool, again: bool) -> None:
    """``again``: the new history schedules what the old connection had not."""
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", MANY)
    d.view("u4", at)
    view, waiting, running = view_on("u4", "u1", at), index_on("u2", "u1", at), index_on("u3", "u1", at)
    d.send(*map(CreateDataflow, (view, waiting, running)), Schedule("u4"), Schedule("u3"))
    d.rest()
    before = _renders(d)
    d.hello()
    d.send(*map(CreateDataflow, (view, waiting, running)))
    d.send(*([Schedule("u2"), Schedule("u4"), Schedule("u3")] if again else []), InitializationComplete())
    d.rest()
    assert _renders(d) == before, "nothing was built anew"
    one, other = d.peek("u2", at), d.peek("u3", at)
    d.rest()
    assert d.rows(other) == bag(MANY), "what was scheduled stays so"
    assert int(d.store.upper("u4")) == MIN_TIME
    if not again:
        assert d.answers(one) == []
        d.send(Schedule("u2"))
    d.send(AllowWrites("u4"))
    d.write("u1", [(0, 7)])
    d.rest()
    assert d.rows(one) == bag(MANY)
    assert d.store.upper("u4") == d.time + 1


@each_layout
@each_kind
def test_a_view_that_may_be_written_late_is_read_in_the_meantime(layout: Layout, interactive: bool) -> None:
    """Its readers wait for it, as for any view that hydrates."""
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", MANY)
    d.view("u2", at)
    d.send(CreateDataflow(view_on("u2", "u1", at, LARGE)), Schedule("u2"))
    d.create(index_on("u3", "u2", at))
    uuid = d.peek("u3", at)
    d.write("u1", [(8, 88)])
    d.rest()
    assert d.answers(uuid) == []
    assert int(d.store.upper("u2")) == MIN_TIME
    d.send(AllowWrites("u2"))
    d.rest()
    assert d.rows(uuid) == bag([r for r in MANY if r[1] > 30])


def test_a_sink_that_may_not_write_does_not_take_storage_over() -> None:
    """What another writer of the view has staged stays."""
    d = published()
    d.view("v", 1)
    d.store.stage_view("v", pairs([(7, 70)]))
    d.send(CreateDataflow(view_on("v", "t", 1)), Schedule("v"))
    d.settle()
    assert d.store.size("v")[0] == 1
    d.send(AllowWrites("v"))
    d.settle()
    assert d.stored("v", 1) == dict.fromkeys(ROWS, 1), "it begins with nothing"


def test_dropping_the_export_that_was_not_scheduled_starts_the_other() -> None:
    d = published()
    d.send(CreateDataflow(_described("an index of two")), Schedule("j"))
    uuid = d.peek("j", 1)
    d.settle()
    assert d.answers(uuid) == []
    d.drop("k")
    d.settle()
    assert d.rows(uuid) == dict.fromkeys(ROWS, 1)
