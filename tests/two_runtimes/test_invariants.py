"""One test per invariant of a replica of two runtimes.  Each has a mutant in ``mutants``, under which it fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.layout import WorkerLayout, interactive_layout
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.process_settings import SWITCH_INTERVAL
from eddyline.compute.worker import Worker
from eddyline.errors import DatabaseError
from eddyline.expr.ir import Call, Column, FilterStep, Literal, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowDescription,
    ExportIndex,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
)
from eddyline.protocol.messages import Frontiers, InitializationComplete, Peek, UpdateConfiguration
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import BIGINT, BOOLEAN
from eddyline.trace.publication import PublicationPoint
from eddyline.trace.trace import Trace, TraceHandle
from tests.compute.runtime_harness import PAIR, Harness, dataflow, identity, indexed, one_shot, pairs
from tests.two_runtimes.driver import Adversary, Driver, Pairs, read_over

LARGE = Mfp((FilterStep(Call("gt", (Column(1, BIGINT), Literal(15, BIGINT)), BOOLEAN)),), (0, 1), PAIR)
ROWS: Pairs = [(1, 10), (2, 20), (3, 30)]


def published(workers: int = 1) -> Driver:
    """Table t, index i on it at time 1, known to and settled on both sides."""
    d = Driver(workers)
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.settle()
    return d


def test_i01_an_import_stays_readable_from_create_to_drop() -> None:
    db = Harness(1, interactive=True)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    at = Time(db.time)
    db.controller.create_dataflow(read_over("t1", "i", at), as_of=at)
    over_table = (ImportSource("t", PAIR), Arrange(0, (), PAIR), ExportIndex("t2", "t2", 1, (), PAIR))
    db.controller.create_dataflow(one_shot("t2", at, *over_table), as_of=at)
    for n in range(5):
        db.commit({"t": pairs([(n, n)])})
        db.settle()
        assert db.controller.since("i") <= at
        assert db.store.since("t") <= at
    db.controller.drop("t1")
    db.commit({"t": pairs([(7, 7)])})
    db.settle()
    assert db.controller.since("i") > at
    assert db.store.since("t") <= at, "the other one has not been dropped"
    db.controller.drop("t2")
    db.settle()
    db.commit({"t": pairs([(8, 8)])})
    db.settle()
    assert db.store.since("t") > at


def test_i02_a_trace_compacts_only_as_far_as_the_slower_runtime_has_come() -> None:
    d = published()
    for n in range(4):
        d.commit("t", [(n, 100 + n)])
    d.maintain()
    d.create(read_over("t1", "i", 2))
    uuid = d.peek("t1", 2)
    d.cancel(uuid)
    d.drop("t1")
    d.compact("i", 5)
    d.maintain()
    assert d.trace("i").since == 1, "the reader has not come to the compaction"
    d.serve()
    assert not d.pair.failed, "the queued create still builds"
    assert len(d.answers(uuid)) == 1
    d.settle()
    assert d.trace("i").since == 5


def test_i03_the_peer_hold_is_there_from_publication_on() -> None:
    d = Driver()
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.commit("t", [(4, 40)])
    d.maintain()
    d.compact("i", 2)
    d.maintain()
    assert d.trace("i").since == 1, "the reader has not even seen the create"
    d.serve()
    assert d.trace("i").since == 2
    d.create(d.index("j", "t", 2))
    d.serve()
    d.compact("j", 3)
    d.maintain()
    assert d.trace("j").since == 2, "a reader that came first holds what it recorded"


def test_i04_peer_holds_do_not_stop_merging() -> None:
    d = published()
    for n in range(40):
        d.commit("t", [(n, n)] * 100)
        d.maintain()
    runs = d.trace("i").snapshot().runs
    assert runs[0].upper > 2, "the first run was merged although the reader stands at its end"
    assert len(runs) < 12


def test_i05_since_comes_from_the_trace_and_holds_only_rise() -> None:
    d = published()
    d.commit("t", [(4, 40)])
    d.commit("t", [(5, 50)])
    d.maintain()
    d.compact("i", 3)
    d.serve()
    assert d.slot("i").since == 1, "the reader is ahead, the trace still has the times"
    hold = d.slot("i").hold(Frontier(2))
    hold.downgrade(Frontier(1))
    assert hold.since == 2
    d.maintain()
    assert d.slot("i").since == 2
    hold.close()
    assert d.slot("i").since == 3
    placeholder = PublicationPoint(d.trace("i").layout)
    early = placeholder.hold(Frontier(5))
    early.downgrade(Frontier(4))
    assert early.since == 5, "nor do those fall that are older than the trace"


def test_i06_since_is_checked_and_held_in_one_step() -> None:
    d = published()
    d.commit("t", [(4, 40)])
    d.settle()
    trace = d.trace("i")

    def compact() -> None:
        for handle in list(trace._holds):
            if trace._holds[handle][0] < 2:
                trace._holds[handle] = (Frontier(2), trace._holds[handle][1])
        trace._follow_holds()

    trace._lock = Adversary(compact)  # type: ignore[assignment]  # a lock in all that is used
    hold = None
    try:
        hold = d.slot("i").oks.hold(Frontier(1))
    except ValueError:
        return
    assert trace._holds_of(hold.handle) is not None  # type: ignore[arg-type]  # checked where it goes
    assert trace.since <= 1 or trace._holds[hold.handle][0] >= trace.since  # type: ignore[index]  # held above


@pytest.mark.parametrize("maintained", [False, True])
def test_i07_an_import_below_since_ends_the_runtime_instead_of_answering(maintained: bool) -> None:
    d = published()
    for n in range(4):
        d.commit("t", [(n, 100 + n)])
    d.compact("i", 5)
    d.settle()
    read = read_over("t1", "i", 2)
    d.create(DataflowDescription("j", read.operators, 2, EMPTY) if maintained else read)
    uuid = d.peek("t1", 2)
    for _ in range(20):
        d.pair.step()
    assert d.pair.failed
    assert d.answers(uuid) == []


def test_i08_a_placeholder_is_sealed_nowhere() -> None:
    d = Driver()
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    uuid = d.peek("i", 1)
    lookup = d.peek("i", 1, 2)
    d.serve()
    assert d.answers(uuid) == d.answers(lookup) == []
    slot = d.slot("i")
    assert slot.frontier() == slot.since == slot.oks.upper == slot.errs.upper == 0
    d.settle()
    assert d.rows(uuid) == dict.fromkeys(ROWS, 1)
    assert d.rows(lookup) == {(2, 20): 1}


def test_i09_what_a_point_says_is_sealed_is_there() -> None:
    d = Driver()
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    expected: dict[int, int] = {1: 3}
    for n in range(6):
        expected[d.commit("t", [(n, n)] * 5)] = 3 + 5 * (n + 1)
        for _ in range(3):
            d.pair.maintenance.step()
            d.pair.interactive.step()
            sealed = int(d.slot("i").frontier()) - 1
            if sealed >= 1:
                snapshot = d.slot("i").oks.snapshot()
                assert snapshot.upper > sealed, "the frontier is ahead of its runs"
                rows = snapshot.read_at(Time(sealed))
                assert int(rows.diffs.sum()) == expected.get(sealed)


def test_i10_dataflows_are_built_in_arrival_order_over_placeholders() -> None:
    d = Driver(2)
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.create(read_over("t1", "i", 1))
    table = (ImportSource("t", PAIR), Arrange(0, (), PAIR), ExportIndex("t2", "t", 1, (), PAIR))
    d.create(one_shot("t2", 1, *table))
    first, second = d.peek("t1", 1), d.peek("t2", 1)
    d.serve()
    for worker in range(2):
        built = {f.number: f.description.name for f in d.lane(worker)._agenda}
        assert built == {0: "t1", 1: "t2"}, "a peer takes no number, and nothing is put off"
    assert d.rows(second) == dict.fromkeys(ROWS, 1), "it does not wait for the other one"
    assert d.answers(first) == []
    d.settle()
    assert d.rows(first) == dict.fromkeys(ROWS, 1)
    assert d.maintainer()._next_number == 1


def test_i11_peers_report_no_frontiers() -> None:
    d = published()
    d.create(read_over("t1", "i", 1))
    d.commit("t", [(4, 40)])
    d.settle()
    d.drop("t1")
    d.drop("i")
    d.serve()
    assert EMPTY not in d.frontiers("i"), "only maintenance can say that it is gone"
    d.maintain()
    for id in ("i", "t1"):
        uppers = d.frontiers(id)
        assert uppers == sorted(set(uppers)), id
        assert uppers[-1] == EMPTY
    assert not d.reader().lane._indexes
    assert not d.maintainer()._peers


def test_i12_every_peek_is_answered_exactly_once() -> None:
    d = published()
    d.commit("t", [(n, n) for n in range(100)])
    d.maintain()
    before = d.peek("i", 9)
    d.serve()
    during = d.peek("i", 2)
    d.pair.interactive.step(0)
    after, lookup, unknown = d.peek("i", 2), d.peek("i", 2, 3), d.peek("nothing", 2)
    d.create(read_over("t1", "i", 2))
    local = d.peek("t1", 2)
    for uuid in (before, during):
        d.cancel(uuid)
    d.settle()
    for uuid in (before, during, after, lookup, unknown, local):
        d.cancel(uuid)
        d.settle()
        assert len(d.answers(uuid)) == 1, uuid
    assert d.answers(before)[0].canceled
    assert d.answers(during)[0].canceled
    assert len(d.rows(after)) == 103


def test_i13_no_wake_up_is_lost() -> None:
    d = published()
    uuid = "p"
    d.reader()._handle(Peek("i", uuid, 2, PAIR[:1], None, identity(PAIR)))
    d.commit("t", [(4, 40)])
    d.slot("i")._lock = Adversary(d.maintain)  # type: ignore[assignment]  # a lock in all that is used
    assert not d.pair.interactive.step(0), "it was not sealed when the reader looked"
    assert d.slot("i").frontier() > 2, "maintenance went on at the worst moment"
    assert d.reader().inbox._awake, "the reader would sleep on an answer that is there"
    d.serve()
    assert len(d.rows(uuid)) == 4
    later = d.peek("i", d.time + 1)
    d.serve()
    assert not d.reader().inbox._awake, "it sleeps"
    d.commit("t", [(5, 50)])
    d.maintain()
    assert d.reader().inbox._awake, "it is woken, after the point has moved"
    d.serve()
    assert len(d.rows(later)) == 5


def test_i14_both_runtimes_have_the_same_worker_layout() -> None:
    layout = WorkerLayout(workers=4, processes=1)
    assert interactive_layout(None, layout, process=0) is None
    text = '{"workers": 4, "processes": 1, "addresses": ["127.0.0.1:2101"]}'
    config = interactive_layout(text, layout, process=0)
    assert config is not None
    assert (config.layout, config.process, config.addresses) == (layout, 0, ("127.0.0.1:2101",))
    for other in ('{"workers": 2, "processes": 1}', '{"workers": 2, "processes": 2}', "[]", "{"):
        with pytest.raises(DatabaseError) as refused:
            interactive_layout(other, layout, process=0)
        assert refused.value.sqlstate == "22023"


@pytest.mark.parametrize("reader_first", [False, True])
def test_i15_a_recreated_index_is_never_the_old_one(reader_first: bool) -> None:
    d = published()
    old = d.slot("i")
    d.hello()
    d.create(d.index("i", "t", 1, mfp=(MapFilterProject(0, LARGE),)))
    uuid = d.peek("i", 1)
    d.send(InitializationComplete())
    if reader_first:
        d.serve()
        assert d.answers(uuid) == [], "the new one is not published yet"
    d.settle()
    assert not d.pair.failed
    assert d.rows(uuid) == {(2, 20): 1, (3, 30): 1}
    assert d.slot("i", 2) is not old
    assert len(d.pair.registries[0]) == 1, "the old slot went when both had left it"


@pytest.mark.parametrize("hydrated", [False, True])
def test_i16_both_runtimes_retain_the_same_whatever_their_progress(hydrated: bool) -> None:
    d = Driver()
    d.table("t", ROWS)
    d.create(d.index("j", "t", 1))
    d.create(d.index("i", "t", 1))
    d.pair.maintenance.step()
    assert not d.maintainer()._exporters["i"].hydrated
    d.create(read_over("t1", "i", 1))
    d.serve()
    read = d.lane()._exporters["t1"]
    if hydrated:
        d.settle()
    d.hello()
    d.create(d.index("i", "t", 1))
    d.create(d.index("j", "t", 1, mfp=(MapFilterProject(0, LARGE),)))
    d.create(read_over("t1", "i", 1))
    d.send(InitializationComplete())
    d.settle()
    assert not d.pair.failed
    assert d.lane()._exporters["t1"] is read
    assert d.rows_of_peek("t1", 1) == dict.fromkeys(ROWS, 1)
    assert d.maintainer().connection.ledger._renders == d.reader().connection.ledger._renders == {"i": 1, "j": 2}
    assert d.rows_of_peek("i", 1) == dict.fromkeys(ROWS, 1)


def test_i17_a_publisher_that_goes_away_seals_nothing() -> None:
    d = published()
    uuid = d.peek("i", 5)
    d.serve()
    d.drop("i")
    d.pair.maintenance.step()
    assert d.slot("i").frontier() == 2
    d.reader()._answer_queued()
    assert d.answers(uuid) == []
    d.serve()
    assert d.error(uuid) == "XX000"


@pytest.mark.parametrize("maintained", [False, True])
def test_i18_a_bound_import_holds_nothing(maintained: bool) -> None:
    d = published()
    again = (ImportIndex("i", PAIR, (0,)), Arrange(0, (1,), PAIR), ExportIndex("j", "t", 1, (1,), PAIR))
    d.create(DataflowDescription("j", again, 1, EMPTY) if maintained else read_over("t1", "i", 1))
    d.commit("t", [(4, 40)])
    d.settle()
    d.compact("i", 2)
    d.settle()
    assert "t1" in d.lane()._exporters or "j" in d.maintainer()._exporters, "what reads it is still there"
    assert d.trace("i").since == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_i19_process_settings_are_applied_by_one_runtime(workers: int) -> None:
    applied: list[Mapping[str, str]] = []
    d = Driver(workers, configure=applied.append)
    settings = {SWITCH_INTERVAL: "700"}
    d.send(UpdateConfiguration(settings))
    d.serve()
    assert applied == [], "until maintenance comes to it, the interactive runtime serves with the former values"
    d.settle()
    assert applied == [settings]
    d.hello()
    d.send(UpdateConfiguration(settings))
    d.send(InitializationComplete())
    d.settle()
    assert applied == [settings, settings], "once for each connection"


def test_i20_maintenance_does_not_wait_for_a_reader() -> None:
    d = published()
    d.peek("i", 50)
    d.create(read_over("t1", "i", 50))
    table = (ImportSource("t", PAIR), Arrange(0, (), PAIR), ExportIndex("t2", "t", 1, (), PAIR))
    d.create(one_shot("t2", 50, *table))
    d.pair.interactive.step(0)
    for n in range(20):
        d.commit("t", [(n, n)])
        d.maintain()
        assert d.slot("i").frontier() == d.time + 1
    assert max(d.frontiers("i")) == d.time + 1


@pytest.mark.parametrize("side", ["maintenance", "interactive", "lane"])
def test_i21_a_failure_of_any_thread_ends_both_runtimes(side: str) -> None:
    d = published()
    workers: dict[str, Worker | InteractiveWorker] = {
        "maintenance": d.maintainer(),
        "interactive": d.reader(),
        "lane": d.lane(),
    }

    def explode() -> bool:
        raise RuntimeError("boom")

    workers[side].step = explode  # type: ignore[method-assign]  # for this one worker
    (d.pair.maintenance if side == "maintenance" else d.pair.interactive).step()
    uuid = d.peek("i", 1)
    assert not d.pair.maintenance.step()
    assert not d.pair.interactive.step()
    assert d.answers(uuid) == []
    assert d.fatal() == ["RuntimeError: boom"]


def test_i22_an_import_keeps_no_run_boundary() -> None:
    d = published()
    d.commit("t", [(4, 40)])
    d.create(read_over("t1", "i", 2))
    d.settle()
    assert d.trace("i")._lowest_through == EMPTY, "nothing that reads here holds a boundary"
    d.commit("t", [(5, 50)])
    d.create(read_over("t2", "i", 2))
    d.settle()
    assert d.trace("i")._lowest_through == EMPTY
    assert len(d.rows_of_peek("t2", 2)) == 4


def test_i22_a_join_holds_no_boundary_past_what_it_has_consumed() -> None:
    """While the indexes that it reads run ahead of it."""
    d = Driver(budget_rows=2)
    d.table("t", ROWS)
    operators = (
        ImportIndex("i", PAIR, (0,)),
        ImportIndex("j", PAIR, (0,)),
        Join(0, 1, (False,), Mfp((), (1, 3), PAIR)),
        Arrange(2, (0,), PAIR),
        ExportIndex("k", "k", 3, (0,), PAIR),
    )
    d.create(d.index("i", "t", 1))
    d.create(d.index("j", "t", 1))
    d.create(DataflowDescription("k", operators, 1, EMPTY))
    d.pair.maintenance.step()
    one, other, joining = (d.maintainer()._exporters[id] for id in "ijk")
    join = next(o for o in joining.operators if isinstance(o, JoinOperator))
    behind = 0
    for n in range(8):
        d.commit("t", [(n % 3, n), (3, n)])
        one.activate(lambda: False)
        if n % 2:
            other.activate(lambda: False)
        for _ in range(3):
            joining.activate(lambda: True)
            for side in (join._left, join._right):
                assert isinstance(side.handle, TraceHandle)
                assert side.handle.through <= side.consumed, "it would begin where no run does"
                behind += side.consumed < side.handle.trace.upper
    assert behind > 10, "the traces were ahead"
    d.settle()
    assert join._left.consumed == d.time + 1
    assert sum(d.rows_of_peek("k", d.time).values()) == sum(n * n for n in _counts(d).values())


def _counts(d: Driver) -> Counter[object]:
    """Rows of table t by key."""
    found: Counter[object] = Counter()
    for (key, _), count in d.stored("t", d.time).items():
        found[key] += count
    return found


def test_a_reexport_shares_the_trace_and_holds_for_itself() -> None:
    d = published()
    again = dataflow("j", ImportIndex("i", PAIR, (0,)), ExportIndex("j", "t", 0, (0,), PAIR))
    d.create(type(again)("j", again.operators, 1, EMPTY))
    d.commit("t", [(4, 40)])
    d.commit("t", [(5, 50)])
    d.settle()
    assert d.trace("j") is d.trace("i")
    d.compact("i", 3)
    d.settle()
    assert d.trace("i").since == 1, "the meet of both"
    d.drop("i")
    d.settle()
    uuid = d.peek("j", 3)
    d.settle()
    assert len(d.rows(uuid)) == 5
    d.compact("j", 2)
    d.settle()
    assert d.trace("j").since == 2


def test_snapshots_are_shared_by_reference() -> None:
    d = published()
    d.create(read_over("t1", "i", 1))
    d.settle()
    trace: Trace = d.trace("i")
    dataflow_ = d.lane()._exporters["t1"]
    frozen = dataflow_.operators[0]._index.arrangement.oks.snapshot()  # type: ignore[attr-defined]  # of the import operator
    assert all(a is b for a, b in zip(frozen.runs, trace.snapshot().runs, strict=True))


def test_every_slot_and_hold_goes_with_what_asked_for_it() -> None:
    d = published(2)
    for n in range(1, 4):
        d.create(read_over(f"t{n}", "i", 1))
        d.peek(f"t{n}", 1)
        if n % 2:
            d.settle()
        d.drop(f"t{n}")
    d.drop("i")
    d.settle()
    assert d.pair.at_rest()
    assert not any(isinstance(r, Frontiers) and r.id == "i" and r.upper > 2 and r.upper < EMPTY for r in d.receive())
