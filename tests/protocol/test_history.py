"""The reduced history leads a replica to the same state by the shortest list."""

from __future__ import annotations

from eddyline.expr.ir import Mfp
from eddyline.plan.dataflow import Arrange, DataflowDescription, ExportIndex, ImportSource
from eddyline.protocol.history import CommandHistory
from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    Command,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    KeepSealed,
    Peek,
    Schedule,
    UpdateConfiguration,
)
from eddyline.repr.time import EMPTY
from eddyline.repr.types import BIGINT

TYPES = (BIGINT,)


def create(*ids: str, as_of: int = 5) -> CreateDataflow:
    exports = tuple(ExportIndex(id, "t", 1, (0,), TYPES) for id in ids)
    return CreateDataflow(
        DataflowDescription(ids[0], (ImportSource("t", TYPES), Arrange(0, (0,), TYPES), *exports), as_of, EMPTY)
    )


def peek(uuid: str) -> Peek:
    return Peek("i", uuid, 7, (), None, Mfp((), (0,), TYPES))


def reduced(*commands: Command) -> tuple[Command, ...]:
    history = CommandHistory()
    for command in commands:
        history.push(command)
    first = history.reduced()
    assert history.reduced() == first, "reducing is idempotent"
    return first


def test_live_dataflows_keep_their_order_and_dropped_ones_go() -> None:
    assert reduced(create("a"), create("b"), AllowCompaction("a", EMPTY), create("c")) == (create("b"), create("c"))


def test_as_of_moves_up_to_the_compaction_frontier() -> None:
    assert reduced(create("a"), AllowCompaction("a", 8), AllowCompaction("a", 9)) == (create("a", as_of=9),)


def test_several_exports_meet_and_the_further_one_keeps_its_compaction() -> None:
    commands = reduced(create("a", "b"), AllowCompaction("a", 9), AllowCompaction("b", 7))
    assert commands == (create("a", "b", as_of=7), AllowCompaction("a", 9))
    commands = reduced(create("a", "b"), AllowCompaction("a", EMPTY), AllowCompaction("b", 7))
    assert commands == (create("a", "b", as_of=7), AllowCompaction("a", EMPTY))


def test_an_id_that_comes_again_does_not_inherit_compaction() -> None:
    assert reduced(create("a"), AllowCompaction("a", EMPTY), create("a", as_of=6))[-1] == create("a", as_of=6)


def test_answered_peeks_are_not_sent_again_and_canceled_ones_to_be_answered() -> None:
    history = CommandHistory()
    for command in (create("i"), peek("1"), peek("2"), peek("3"), CancelPeek("2")):
        history.push(command)
    history.answered("1")
    assert history.reduced() == (create("i"), peek("2"), peek("3"), CancelPeek("2"))
    history.answered("2")
    assert history.reduced() == (create("i"), peek("3"))


def test_configuration_and_order_of_the_rest() -> None:
    commands = reduced(
        Hello("n"), CreateInstance(), UpdateConfiguration({"a": "1", "b": "1"}), create("i"), Schedule("i"),
        AllowWrites("i"), KeepSealed("i"), AllowWrites("gone"), KeepSealed("gone"),
        UpdateConfiguration({"a": "2"}), peek("1"), InitializationComplete(),
    )  # fmt: skip
    assert commands == (
        Hello("n"), CreateInstance(), UpdateConfiguration({"a": "2", "b": "1"}), create("i"), Schedule("i"),
        peek("1"), InitializationComplete(), AllowWrites("i"), KeepSealed("i"),
    )  # fmt: skip


def test_history_stays_short_however_many_peeks_pass() -> None:
    history = CommandHistory()
    history.push(create("i"))
    for n in range(10_000):
        history.push(peek(str(n)))
        history.answered(str(n))
    assert len(history) < 3_000
