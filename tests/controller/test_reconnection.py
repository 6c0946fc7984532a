"""What the controller does when it connects again to a replica that went on meanwhile."""

from __future__ import annotations

import pytest

from eddyline.repr.time import Time
from tests.compute.runtime_harness import Harness, indexed, one_shot, pairs


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("read", [True, False])
def test_what_a_dropped_dataflow_held_is_given_back_though_its_end_was_lost(interactive: bool, read: bool) -> None:
    db = Harness(1, interactive=interactive)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    description = indexed("i", "t")
    if read:
        description = one_shot("t9", db.time, *indexed("t9", "t").operators)
    db.controller.create_dataflow(description, as_of=Time(db.time))
    since = db.store.since("t")
    db.controller.drop(description.exports[0].id)
    db.commit({"t": pairs([(2, 2)])})
    assert db.store.since("t") == since, "the replica has not come to the create"
    db.solo.settle()
    while db.solo.receive(0) is not None:
        pass  # lost with the connection
    db.controller.attach_replica(db.solo)
    db.settle()
    db.commit({"t": pairs([(3, 3)])})
    assert db.store.since("t") == db.time
    db.settle()
    assert not db.solo.failed
    assert not db.controller._leaving
