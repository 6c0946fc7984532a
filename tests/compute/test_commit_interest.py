"""Which dataflows a commit concerns, without a worker: followers, those that select, those that peers are ahead of."""

from __future__ import annotations

from typing import cast

from eddyline.compute.agenda import Agenda
from eddyline.compute.commit_interest import CommitInterest
from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exchange import ExchangeOperator
from eddyline.compute.imports import ImportSourceOperator
from eddyline.compute.inbox import Taken
from eddyline.plan.dataflow import DataflowDescription, ImportSource
from eddyline.protocol.sources import SourceReader
from eddyline.repr.types import BIGINT

ROWS = 1_024  # of a commit that lets one more catch up


class _Source:
    """A source, for its reader."""

    def __init__(self) -> None:
        self.reader = cast(SourceReader, object())


class _Exchange:
    """Whether a peer is ahead."""

    def __init__(self) -> None:
        self.ahead = False

    def outrun(self) -> bool:
        return self.ahead


class World:
    """An agenda of dataflows that have nothing to do until a commit concerns them."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.interest = CommitInterest(self.agenda)
        self._made = 0

    def dataflow(self, *imports: str, selects: bool = False, exchange: _Exchange | None = None) -> Dataflow:
        made = Dataflow(
            number=self._made,
            description=DataflowDescription(f"d{self._made}", tuple(ImportSource(i, (BIGINT,)) for i in imports), 0, 1),
            operators=(),
            exports={},
            arrangements=(),
            exchanges={} if exchange is None else {0: cast(ExchangeOperator, exchange)},
            sources=[cast(ImportSourceOperator, _Source()) for _ in imports],
            selected=frozenset(imports) if selects else frozenset(),
            hydrated=True,
        )
        self._made += 1
        self.agenda.add(made)
        self.interest.add(made)
        return made

    def concerned(self, taken: Taken) -> set[Dataflow]:
        """Those that are scheduled by it; then they have done it."""
        self.interest.committed(taken)
        found = {d for d in self.agenda if d.scheduled}
        while (chosen := self.agenda.choose()) is not None:
            chosen.scheduled = False
            self.agenda.activated(chosen)
            self.interest.activated(chosen)
        return found

    def commit(self, *ids: str, rows: int = 1, touched: tuple[Dataflow, ...] = ()) -> set[Dataflow]:
        return self.concerned(
            Taken([], set(ids), touched=[s.reader for d in touched for s in d.sources], commit_rows=rows)
        )


def test_a_commit_concerns_those_that_follow_what_it_changes() -> None:
    world = World()
    of_t, of_u, of_both = world.dataflow("t"), world.dataflow("u"), world.dataflow("t", "u")
    assert world.commit("t") == {of_t, of_both}
    assert world.commit("u") == {of_u, of_both}
    assert world.commit("other") == set()
    assert world.interest.heeded() == frozenset({"t", "u"})


def test_those_that_select_are_concerned_by_rows_for_them_and_in_turns() -> None:
    world = World()
    selecting = [world.dataflow("t", selects=True) for _ in range(3)]
    assert world.commit("t", touched=(selecting[2],)) == {selecting[2], selecting[0]}
    # One at a time is let catch up, the one that was passed by longest.
    assert [world.commit("t") for _ in range(3)] == [{selecting[1]}, {selecting[0]}, {selecting[2]}]
    assert world.commit("t", rows=2 * ROWS) == set(selecting), "many rows pay for as many"
    assert world.interest.heeded() == frozenset({"t"})


def test_one_that_a_peer_is_ahead_of_is_concerned_by_every_commit_until_it_has_caught_up() -> None:
    world, exchange = World(), _Exchange()
    behind = world.dataflow("t", exchange=exchange)
    world.interest.heard(behind, cast(ExchangeOperator, exchange))
    assert world.commit("other") == set(), "it was told nothing new"
    exchange.ahead = True
    world.interest.heard(behind, cast(ExchangeOperator, exchange))
    assert world.interest.heeded() is None
    assert world.commit("other") == {behind} == world.commit("another")
    exchange.ahead = False
    assert world.commit("other") == set()
    assert world.interest.heeded() == frozenset({"t"})


def test_while_something_hydrates_every_commit_concerns_it() -> None:
    world = World()
    world.dataflow("t")
    builds = world.dataflow("t")
    world.agenda.remove(builds)
    builds.hydrated = False
    world.agenda.add(builds)
    assert world.interest.heeded() is None
    assert builds in world.commit("other")


def test_a_moved_frontier_concerns_those_that_import_it() -> None:
    world = World()
    exporter, importer = world.dataflow("t"), world.dataflow("v")
    world.interest.moved(exporter, "v")
    assert importer.scheduled and not exporter.scheduled
    assert world.interest.importers(["v", "t"]) == [importer, exporter]


def test_nothing_is_kept_of_what_was_dropped() -> None:
    world, exchange = World(), _Exchange()
    exchange.ahead = True
    all_of_them = [
        world.dataflow("t", "u"), world.dataflow("t", selects=True), world.dataflow("t", exchange=exchange),
    ]  # fmt: skip
    world.interest.heard(all_of_them[2], cast(ExchangeOperator, exchange))
    assert world.interest
    for each in all_of_them:
        world.interest.remove(each)
        world.agenda.remove(each)
    assert not world.interest
    assert world.interest.heeded() == frozenset()
    assert world.commit("t", touched=tuple(all_of_them)) == set()
