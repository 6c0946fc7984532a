"""What a worker does about a new connection's history: all at once, when it is complete."""

from __future__ import annotations

import pytest

from eddyline.compute.worker_connection import WorkerConnection
from eddyline.plan.dataflow import DataflowDescription, ExportSubscribe
from eddyline.protocol.messages import AllowCompaction, Command, CreateDataflow, Hello, InitializationComplete
from eddyline.repr.time import Frontier
from eddyline.repr.types import BIGINT
from tests.compute.runtime_harness import indexed


def _told(connection: WorkerConnection, *commands: Command) -> list[bool]:
    return [connection.history(command) for command in commands]


def test_the_first_connection_has_no_history_and_a_repeated_nonce_is_no_new_one() -> None:
    connection = WorkerConnection()
    assert connection.number == 0
    assert connection.hello(Hello("a"))
    assert connection.settled
    assert not connection.hello(Hello("a"))
    assert connection.number == 1


def test_a_history_is_reconciled_once_it_is_complete() -> None:
    connection = WorkerConnection()
    connection.hello(Hello("a"))
    kept, gone = indexed("i", "t"), indexed("j", "t")
    for description in (kept, gone):
        connection.ledger.create(description)
    assert connection.hello(Hello("b"))
    assert not connection.settled
    new = indexed("k", "t")
    assert _told(connection, CreateDataflow(kept), CreateDataflow(new), InitializationComplete()) == [
        False,
        False,
        True,
    ]
    done = connection.reconcile()
    assert connection.settled
    assert connection.number == 2
    assert done.dropped == ("j",)
    assert done.retained == {"i": Frontier(kept.as_of)}
    assert done.commands == (CreateDataflow(new), InitializationComplete())


def test_a_third_connection_forgets_what_the_second_had_said_so_far() -> None:
    connection = WorkerConnection()
    for nonce in ("a", "b"):
        connection.hello(Hello(nonce))
    _told(connection, AllowCompaction("x", 7))
    connection.hello(Hello("c"))
    assert _told(connection, InitializationComplete()) == [True]
    assert connection.reconcile().commands == (InitializationComplete(),)


def test_a_subscription_never_goes_on() -> None:
    connection = WorkerConnection()
    connection.hello(Hello("a"))
    subscription = DataflowDescription("s", (ExportSubscribe("s", 0, (BIGINT,), with_snapshot=True),), 1, 9)
    connection.ledger.create(subscription)
    connection.hello(Hello("b"))
    _told(connection, CreateDataflow(subscription), InitializationComplete())
    done = connection.reconcile()
    assert done.dropped == ("s",) and not done.retained


def test_a_lane_is_settled_by_its_interactive_worker() -> None:
    lane = WorkerConnection()
    lane.hello(Hello("a"))
    lane.hello(Hello("b"))
    assert not lane.settled
    lane.settle()
    assert lane.settled
    lane.hello(Hello("c"))
    _told(lane, InitializationComplete())
    with pytest.raises(AssertionError, match="interactive worker"):
        lane.settle()
