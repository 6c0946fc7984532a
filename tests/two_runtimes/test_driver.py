"""Replicas of 1, 2 and 4 workers, and of two processes, spoken to without a controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

import pytest

from eddyline.compute.placement import Role
from eddyline.compute.worker import Worker
from eddyline.expr.ir import Call, Column, FilterStep, Literal, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
)
from eddyline.protocol.messages import CreateDataflow, InitializationComplete, Schedule
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import BIGINT, BOOLEAN
from eddyline.testing.channel import Channel
from eddyline.testing.driver import PAIR, ReplicaDriver, index_on, read_of, reexport_of
from eddyline.testing.interpret import Bag, Row
from eddyline.testing.process_group import ProcessGroup

ROWS = [(k, 10 * k + n) for k in range(6) for n in range(2)]
LARGE = MapFilterProject(
    0, Mfp((FilterStep(Call("gt", (Column(1, BIGINT), Literal(30, BIGINT)), BOOLEAN)),), (0, 1), PAIR)
)
#: workers in each process, and processes
Layout = tuple[int, int]
each_layout = pytest.mark.parametrize(
    "layout", [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2)], ids=lambda p: "x".join(map(str, p))
)
each_kind = pytest.mark.parametrize("interactive", [True, False])


def bag(rows: Iterable[Row]) -> Bag:
    return Counter(rows)


@each_layout
@each_kind
def test_an_index_is_peeked_by_key_and_whole_once_it_has_sealed_the_time(layout: Layout, interactive: bool) -> None:
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", ROWS)
    d.create(index_on("u2", "u1", at))
    early = d.peek("u2", at)
    d.rest()
    walk, lookup, both, later = (
        d.peek("u2", at),
        d.peek("u2", at, (3,)),
        d.peek("u2", at, (3,), (5,)),
        d.peek("u2", at + 1),
    )
    d.rest()
    assert d.rows(early) == d.rows(walk) == bag(ROWS)
    assert d.rows(lookup) == bag([(3, 30), (3, 31)])
    assert d.rows(both) == bag([(3, 30), (3, 31), (5, 50), (5, 51)])
    assert d.answers(later) == []
    d.write("u1", [(3, 30)], [-1])
    d.rest()
    assert d.rows(later) == bag(ROWS) - bag([(3, 30)])
    uppers = d.frontiers("u2")
    assert uppers == sorted(set(uppers))
    assert uppers[-1] == at + 2


@each_layout
@pytest.mark.parametrize("interactive_first", [False, True])
def test_a_read_over_an_unpublished_index_resolves_after_publication_only(
    layout: Layout, interactive_first: bool
) -> None:
    d = ReplicaDriver(*layout)
    at = d.table("u1", ROWS)
    # The read is scheduled, and the index is not: however long everything goes on, there is nothing to read.
    d.send(CreateDataflow(index_on("u2", "u1", at)))
    d.create(read_of("t3", "u2", at, LARGE))
    uuid = d.peek("t3", at)
    if interactive_first:
        d.rest("interactive")
    d.rest()
    d.write("u1", [(0, 99)])
    d.rest()
    assert d.answers(uuid) == []
    assert d.frontiers("t3") == [], "it has sealed nothing"
    d.send(Schedule("u2"))
    d.rest("maintenance")
    assert d.answers(uuid) == []
    d.rest("interactive")
    assert d.rows(uuid) == bag([r for r in ROWS if r[1] > 30]), "as of its time, the later write left out"
    assert d.frontiers("t3") == [EMPTY]


@each_layout
@pytest.mark.parametrize("dropped_first", [False, True])
def test_a_read_over_an_unpublished_index_is_canceled_before_publication(layout: Layout, dropped_first: bool) -> None:
    d = ReplicaDriver(*layout)
    at = d.table("u1", ROWS)
    d.send(CreateDataflow(index_on("u2", "u1", at)))
    d.create(read_of("t3", "u2", at))
    uuid = d.peek("t3", at)
    if not dropped_first:
        d.rest()
        assert d.answers(uuid) == []
    d.cancel(uuid)
    d.drop("t3")
    d.rest()
    assert d.answer(uuid).canceled
    assert d.frontiers("t3")[-1:] == [EMPTY]
    d.compact("u2", at + 5)
    d.send(Schedule("u2"))
    for _ in range(6):
        d.write("u1", [(0, 0)])
    d.rest()
    assert len(d.answers(uuid)) == 1
    after = d.peek("u2", d.time)
    d.rest()
    assert d.rows(after) == bag([*ROWS, *[(0, 0)] * 6])
    d.drop("u2")
    d.rest()
    assert d.at_rest()


@each_layout
def test_a_join_of_two_indexes_of_which_one_is_published(layout: Layout) -> None:
    d = ReplicaDriver(*layout)
    at = d.table("u1", ROWS)
    d.create(index_on("u2", "u1", at))
    d.rest()
    d.create(index_on("u3", "u1", at, LARGE))
    operators = (
        ImportIndex("u2", PAIR, (0,)),
        ImportIndex("u3", PAIR, (0,)),
        Join(0, 1, (False,), Mfp((), (1, 3), PAIR)),
        Arrange(2, (), PAIR),
        ExportIndex("t4", "t4", 3, (), PAIR),
    )
    d.create(DataflowDescription("t4", operators, at, at + 1, DataflowClass.ONE_SHOT_READ))
    uuid = d.peek("t4", at)
    d.rest("interactive")
    assert d.answers(uuid) == []
    d.rest()
    expected = bag([(one[1], other[1]) for one in ROWS for other in ROWS if one[0] == other[0] and other[1] > 30])
    assert d.rows(uuid) == expected


@each_layout
@each_kind
def test_a_reexport_answers_and_holds_for_itself(layout: Layout, interactive: bool) -> None:
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", ROWS)
    d.create(index_on("u2", "u1", at), reexport_of("u3", "u2", at))
    for n in range(4):
        d.write("u1", [(9, n)])
    d.rest()
    d.compact("u2", at + 3)
    d.rest()
    behind, kept = d.peek("u2", at), d.peek("u3", at)
    d.rest()
    assert d.answer(behind).error is not None, "it has been given up for this one"
    assert d.rows(kept) == bag(ROWS), "and is held for that one"
    d.drop("u2")
    d.rest()
    gone, whole = d.peek("u2", d.time), d.peek("u3", d.time)
    d.rest()
    assert d.answer(gone).error is not None
    assert d.rows(whole) == bag([*ROWS, *((9, n) for n in range(4))])
    d.drop("u3")
    d.rest()
    assert d.at_rest()


@each_layout
@pytest.mark.parametrize("first", ["maintenance", "interactive"])
@pytest.mark.parametrize("rested", [False, True])
def test_a_connection_that_recreates_an_index_shows_the_new_one(layout: Layout, first: str, rested: bool) -> None:
    """At an equal as_of, whichever runtime reconciles first, and whether the old one was published or not."""
    d = ReplicaDriver(*layout)
    at = d.table("u1", ROWS)
    d.create(index_on("u2", "u1", at), index_on("u3", "u1", at))
    old = d.peek("u2", at + 1)
    if rested:
        d.rest()
    d.hello()
    d.create(index_on("u2", "u1", at, LARGE), index_on("u3", "u1", at), read_of("t4", "u2", at))
    walk, lookup, read, retained = d.peek("u2", at), d.peek("u2", at, (4,)), d.peek("t4", at), d.peek("u3", at)
    d.send(InitializationComplete())
    d.rest(first)
    if first == "interactive":
        assert d.answers(walk) == d.answers(lookup) == d.answers(read) == [], "the new one is not published"
    d.rest()
    assert not d.replica.failed
    large = bag([r for r in ROWS if r[1] > 30])
    assert d.rows(walk) == d.rows(read) == large
    assert d.rows(lookup) == bag([(4, 40), (4, 41)])
    assert d.rows(retained) == bag(ROWS)
    assert d.answers(old) == [], "the connection that asked is gone"
    for id in ("t4", "u2", "u3"):
        d.drop(id)
    d.rest()
    assert d.at_rest(), "the old incarnation went when both had left it"


@each_layout
def test_a_second_reconnection_before_the_first_is_over(layout: Layout) -> None:
    d = ReplicaDriver(*layout)
    at = d.table("u1", ROWS)
    d.create(index_on("u2", "u1", at))
    d.hello()
    d.create(index_on("u2", "u1", at, LARGE))
    d.rest("interactive")
    d.hello()
    d.create(index_on("u2", "u1", at))
    uuid = d.peek("u2", at)
    d.send(InitializationComplete())
    d.rest("interactive")
    d.rest()
    assert not d.replica.failed
    assert d.rows(uuid) == bag(ROWS)


@each_kind
@each_layout
def test_a_read_of_a_view_whose_tables_are_quiet_is_answered(layout: Layout, interactive: bool) -> None:
    """The view seals nothing by itself when other tables are written: whoever reads it asks for that."""
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", ROWS)
    d.table("u2", [])
    d.store.create_view("u3", PAIR, names=(), view="v", as_of=Time(at))
    view = (ImportSource("u1", PAIR), ExportMaterializedView("u3", 0, PAIR))
    read = (ImportSource("u3", PAIR), Arrange(0, (), PAIR), ExportIndex("t4", "t4", 1, (), PAIR))
    d.create(DataflowDescription("v", view, at, EMPTY))
    d.rest()
    d.write("u2", [(1, 1)])
    time = d.write("u2", [(2, 2)]) + 1
    d.create(DataflowDescription("t4", read, time, time + 1, DataflowClass.ONE_SHOT_READ))
    uuid = d.peek("t4", time)
    d.rest()
    assert d.answers(uuid) == [], "the time is not over"
    d.write("u2", [(3, 3)])
    d.rest()
    assert d.rows(uuid) == bag(ROWS)


@each_kind
@each_layout
def test_a_view_that_is_made_anew_is_asked_by_the_index_that_goes_on_reading_it(
    layout: Layout, interactive: bool
) -> None:
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", ROWS)
    d.table("u2", [])
    d.store.create_view("u3", PAIR, names=(), view="v", as_of=Time(at))
    view = DataflowDescription("v", (ImportSource("u1", PAIR), ExportMaterializedView("u3", 0, PAIR)), at, EMPTY)
    d.create(view, index_on("u4", "u3", at))
    d.rest()
    d.compact("u3", at + 1)
    d.hello()
    d.create(view, index_on("u4", "u3", at))
    d.send(InitializationComplete())
    d.rest()
    d.write("u2", [(1, 1)])
    uuid = d.peek("u4", d.time)
    d.rest()
    assert d.rows(uuid) == bag(ROWS)


@each_kind
@each_layout
def test_a_new_connection_hears_nothing_of_earlier_reads_before_its_history_ends(
    layout: Layout, interactive: bool
) -> None:
    d = ReplicaDriver(*layout, interactive=interactive)
    at = d.table("u1", ROWS)
    read = (ImportSource("u1", PAIR), Arrange(0, (), PAIR), ExportIndex("t2", "t2", 1, (), PAIR))
    d.create(DataflowDescription("t2", read, at, at + 1, DataflowClass.ONE_SHOT_READ))
    d.hello()
    d.rest()
    assert d.frontiers("t2") == []
    d.create(DataflowDescription("t2", read, at, at + 1, DataflowClass.ONE_SHOT_READ))
    d.send(InitializationComplete())
    d.rest()
    assert d.frontiers("t2") == [EMPTY]
    uuid = d.peek("t2", at)
    d.rest()
    assert d.rows(uuid) == bag(ROWS)


@each_kind
@pytest.mark.parametrize("processes", [2, 3])
def test_a_reconnection_of_processes_renders_nothing_that_goes_on(processes: int, interactive: bool) -> None:
    """Each worker of each runtime counts what it rendered."""
    d = ReplicaDriver(2, processes, interactive=interactive)
    group = d.replica
    assert isinstance(group, ProcessGroup)
    at = d.table("u1", ROWS)
    kept, changed = index_on("u2", "u1", at), index_on("u3", "u1", at)
    d.create(kept, changed)
    d.rest()

    def rendered() -> list[int]:
        runtimes = [p.runtime(role) for p in group.processes for role in p.mailboxes if role is not Role.INTERACTIVE]
        workers = [w for runtime in runtimes for w in runtime._commanded]
        assert len(workers) == 2 * processes
        return [cast(Worker, w)._next_number for w in workers]

    assert rendered() == [2] * 2 * processes
    d.hello()
    d.create(kept, changed)
    d.send(InitializationComplete())
    d.rest()
    assert rendered() == [2] * 2 * processes, "nothing was built anew"
    d.hello()
    d.create(kept, index_on("u3", "u1", at, LARGE))
    d.send(InitializationComplete())
    d.write("u1", [(9, 99)])
    d.rest()
    assert rendered() == [3] * 2 * processes, "and then what had changed"
    whole, large = d.peek("u2", d.time), d.peek("u3", d.time)
    d.rest()
    assert d.rows(whole) == bag([*ROWS, (9, 99)])
    assert d.rows(large) == bag([r for r in ROWS if r[1] > 30] + [(9, 99)])


def arrive(channel: Channel[Any]) -> None:
    """Everything that is on its way."""
    while channel.move():
        continue


@each_kind
def test_a_process_that_has_none_of_the_rows_hears_of_them_from_another_first(interactive: bool) -> None:
    """Nobody asks for the time: what is sealed is said without a read, as a subscription needs it."""
    d = ReplicaDriver(1, 2, interactive=interactive)
    group = cast(ProcessGroup, d.replica)
    role = Role.MAINTENANCE if interactive else Role.SOLO
    d.create(index_on("u2", "u1", d.table("u1", ROWS)))
    d.rest()
    lines = group._lines
    for key in range(40):  # the row falls to either process
        at = d.write("u1", [(key, 7)])
        for early, late in ((0, 1), (1, 0)):
            while lines[early].move():
                continue
            arrive(lines[early].updates)
            while group.processes[early].runtime(role).step():
                continue
            arrive(group._mesh[role, early, late])
            while group.processes[late].runtime(role).step():
                continue
        d.rest()
        assert d.frontiers("u2")[-1] == at + 1
