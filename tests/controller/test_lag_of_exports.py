"""What the controller tells of exports, so that writers wait for those that are behind and for no others."""

from __future__ import annotations

import pytest

from eddyline.controller.lag import Lag
from eddyline.expr.ir import Call, Column, FilterStep, Literal, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
    ImportIndex,
    ImportSource,
    MapFilterProject,
)
from eddyline.protocol.messages import Frontiers, Status
from eddyline.repr.types import BIGINT, BOOLEAN
from tests.controller.test_controller import TYPES, describe, index
from tests.controller.test_several_replicas import Several

_OVER_I = ImportIndex("i", TYPES, (0,))


class Lagging(Several):
    """Index ``i`` over ``t``, which both replicas hold the state of at 5; ``j`` reads ``i``."""

    def __init__(self) -> None:
        super().__init__()
        self.commit(5)
        self.controller.create_dataflow(index("i"))
        self.controller.create_dataflow(describe("j", _OVER_I, ExportIndex("j", "t", 0, (0,), TYPES)))
        for replica in ("s1", "s2"):
            self.reaches(6, replica)

    @property
    def lag(self) -> Lag:
        return self.controller.lag

    def reaches(self, upper: int, replica: str, *ids: str) -> None:
        self.says(replica, *(Frontiers(id, upper) for id in ids or ("i", "j")))

    def commits(self, *times: int) -> None:
        for time in times:
            self.commit(time)
            self.lag.wrote(["t"], self.store.last_write("t"))


def test_a_commit_is_passed_when_everything_downstream_has_passed_it() -> None:
    world = Lagging()
    world.commits(7, 8)
    assert world.lag.behind("t") == 2
    world.reaches(9, "s1", "i")
    assert world.lag.behind("t") == 2, "the reader of the index has not"
    world.reaches(8, "s1", "j")
    assert world.lag.behind("t") == 1
    world.reaches(9, "s1", "j")
    assert world.lag.behind("t") == 0


def test_of_several_replicas_the_one_that_is_ahead_counts() -> None:
    world = Lagging()
    world.commits(7, 8)
    world.reaches(8, "s1")
    world.reaches(9, "s2")
    assert world.lag.behind("t") == 0
    world.commits(10)
    world.says("s2", Status("it broke", fatal=True))
    assert world.lag.behind("t") == 1
    world.reaches(11, "s1")
    assert world.lag.behind("t") == 0


def test_without_a_replica_nothing_counts_until_another_one_has_built_it() -> None:
    world = Lagging()
    world.commits(7, 8)
    for replica in ("s1", "s2"):
        world.says(replica, Status("it broke", fatal=True))
    assert world.lag.behind("t") == 0
    world.commits(9)
    world.controller.attach_replica(world.client)
    assert world.lag.behind("t") == 0, "it builds"
    world.reaches(6, "s1")
    assert world.lag.behind("t") == 3, "it has built what was there at 5"
    world.reaches(10, "s1")
    assert world.lag.behind("t") == 0


@pytest.mark.parametrize("export", ["view", "subscription"])
def test_views_and_subscriptions_count_like_indexes(export: str) -> None:
    world = Lagging()
    operator = ExportMaterializedView("x", 0, TYPES) if export == "view" else ExportSubscribe("x", 0, TYPES)
    world.controller.create_dataflow(describe("x", ImportSource("t", TYPES), operator))
    world.commits(7, 8)
    world.reaches(9, "s1")
    assert world.lag.behind("t") == 0, "it is being built"
    world.reaches(6, "s1", "x")
    assert world.lag.behind("t") == 2
    world.controller.drop("x")
    assert world.lag.behind("t") == 0


def test_what_selects_rows_of_a_table_is_passed_by_its_commits() -> None:
    world = Lagging()
    seven = Call("eq", (Column(0, BIGINT), Literal(7, BIGINT)), BOOLEAN)
    source, only = ImportSource("t", TYPES), MapFilterProject(0, Mfp((FilterStep(seven),), (0,), TYPES))
    description = describe("s", source, only, Arrange(1, (0,), TYPES), ExportIndex("s", "v", 2, (0,), TYPES))
    world.controller.create_dataflow(description)
    over = describe("o", ImportIndex("s", TYPES, (0,)), ExportIndex("o", "v", 0, (0,), TYPES))
    world.controller.create_dataflow(over)
    world.reaches(6, "s1", "s", "o")
    world.commits(7, 8)
    world.reaches(9, "s1")
    assert world.lag.behind("t") == 0


def test_a_dropped_index_does_not_hold_writers_up_while_somebody_still_reads_it() -> None:
    world = Lagging()
    hold = world.controller.acquire_hold("j")
    world.commits(7, 8)
    world.reaches(9, "s1", "i")
    world.controller.drop("j")
    assert world.lag.behind("t") == 0
    hold.close()
