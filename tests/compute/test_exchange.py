"""Dealing rows by key hash: complete, disjoint, frontiers by the least sender, late and early messages."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.exchange import Channel, ExchangeOperator, Mailboxes, Message
from eddyline.compute.stream import Output, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.trace.hasher import Hasher
from tests.compute.runtime_harness import Harness, collect, indexed, pairs

CHANNEL = Channel(0, 0)


class Peers:
    """The same exchange on every worker."""

    def __init__(self, workers: int, key: tuple[int, ...] | None) -> None:
        self.mailboxes = Mailboxes(workers)
        self.hasher = Hasher(5)
        self.inputs: list[Output] = []
        self.outputs: list[Stream] = []
        self.operators: list[ExchangeOperator] = []
        for worker in range(workers):
            source, sink = Output(), Output()
            context = OperatorContext(self.hasher, Time(0), worker=worker, workers=workers)
            self.inputs.append(source)
            self.operators.append(
                ExchangeOperator(
                    "x", source.connect(), key, sink, channel=CHANNEL, mailboxes=self.mailboxes, context=context
                )
            )
            self.outputs.append(sink.connect())

    def step(self, worker: int) -> None:
        for message in self.mailboxes.take(worker):
            self.operators[worker].deliver(message)
        while self.operators[worker].pending():
            self.operators[worker].step()

    def settle(self) -> None:
        for _ in range(2):
            for worker in range(len(self.operators)):
                self.step(worker)


def errors(text: str, diff: int) -> Batch:
    row = Batch.empty(ERR_TYPES)
    columns = tuple(type(c).from_pandas([text], type=c.type) for c in row.columns)
    return Batch(ERR_TYPES, columns, np.array([1]), np.array([diff]))


@pytest.mark.parametrize("workers", [2, 3])
def test_every_row_goes_to_the_owner_of_its_key(workers: int) -> None:
    peers = Peers(workers, (0,))
    sent: Counter[tuple[object, ...]] = Counter()
    for worker, source in enumerate(peers.inputs):
        rows = [(n % 17, worker) for n in range(100)]
        sent.update(rows)
        source.send(pairs(rows))
        source.advance(Frontier(5))
    peers.settle()
    found: Counter[tuple[object, ...]] = Counter()
    owners: dict[object, int] = {}
    for worker, output in enumerate(peers.outputs):
        for row, count in collect(output.updates).items():
            found[row] += count
            assert owners.setdefault(row[0], worker) == worker
        assert output.frontier == 5
    assert found == sent


def test_the_frontier_is_the_least_over_all_senders() -> None:
    peers = Peers(2, (0,))
    peers.inputs[0].advance(Frontier(9))
    peers.settle()
    assert [o.frontier for o in peers.outputs] == [0, 0]
    peers.inputs[1].advance(Frontier(4))
    peers.settle()
    assert [o.frontier for o in peers.outputs] == [4, 4]
    peers.inputs[1].advance(EMPTY)
    peers.settle()
    assert [o.frontier for o in peers.outputs] == [9, 9]


def test_updates_arrive_before_the_frontier_that_covers_them() -> None:
    peers = Peers(2, (0,))
    for t in range(1, 20):
        for source in peers.inputs:
            source.send(pairs([(n, t) for n in range(8)]).advanced(Time(t)))
            source.advance(Frontier(t + 1))
        peers.step(t % 2)
        for output in peers.outputs:
            times = Counter(int(x) for b in output.updates for x in b.times)
            assert all(t < output.frontier or times[t] <= 16 for t in times)
    peers.settle()
    assert sum(len(b) for o in peers.outputs for b in o.updates) == 19 * 16


def test_without_a_key_everything_is_gathered_on_the_first_worker() -> None:
    peers = Peers(3, None)
    for source in peers.inputs:
        source.send(pairs([(1, 1), (2, 2)]))
        source.send_errors(errors("22012", 1))
        source.advance(Frontier(2))
    peers.settle()
    assert collect(peers.outputs[0].updates) == {(1, 1): 3, (2, 2): 3}
    assert len(peers.outputs[0].errors) == 3
    assert all(o.drained() for o in peers.outputs[1:])


def test_an_error_meets_its_retraction() -> None:
    peers = Peers(3, (0,))
    for n in range(20):
        peers.inputs[n % 3].send_errors(errors(f"e{n}", 1))
        peers.inputs[(n + 1) % 3].send_errors(errors(f"e{n}", -1))
    peers.settle()
    for output in peers.outputs:
        assert collect(output.errors) == {}


def test_messages_for_a_dataflow_not_yet_built_wait_and_those_for_a_dropped_one_go() -> None:
    db = Harness(2)
    db.table("t")
    db.commit({"t": pairs([(n, n) for n in range(50)])})
    db.controller.create_dataflow(indexed("i", "t"))
    for _ in range(20):
        db.solo.step(0)
    assert db.read("i") == {(n, n): 1 for n in range(50)}
    db.controller.drop("i")
    for _ in range(5):
        db.solo.step(1)
    db.commit({"t": pairs([(99, 99)])})
    db.settle()
    db.controller.create_dataflow(indexed("j", "t"))
    assert len(db.read("j")) == 51


def test_mailbox_wakes_its_worker() -> None:
    mailboxes = Mailboxes(2)
    woken: list[int] = []
    mailboxes.set_waker(1, lambda: woken.append(1))
    message = Message(CHANNEL, 0, Frontier(1))
    mailboxes.send(1, message)
    mailboxes.send(0, message)
    assert woken == [1]
    assert mailboxes.take(1) == [message]
    assert mailboxes.take(1) == []
