"""Reads of the clients of a simulated database, and what is made of their answers."""

from __future__ import annotations

import bisect

from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.pair import Pair
from eddyline.expr.ir import LiteralValue, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ImportIndex,
    ImportSource,
    Operator,
)
from eddyline.plan.facts import IndexFacts
from eddyline.plan.lower import lower
from eddyline.protocol.messages import Peek, PeekResponse
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.ids import transient_id
from eddyline.repr.time import EMPTY, Time
from eddyline.testing.simulation.definitions import PAIR, Definition, defined
from eddyline.testing.simulation.linearizability import Read
from eddyline.testing.simulation.recompute import Answer, answer_of
from eddyline.testing.simulation.world import Index, PendingRead, SimulationError, World, keyed

__all__ = [
    "cancel",
    "cancel_read",
    "lookup_now",
    "read_all_now",
    "read_index",
    "read_one_shot",
    "readers",
    "take_answer",
]

_IDENTITY = Mfp((), (0, 1), PAIR)
#: bytes that one-shot reads may hold, in turn: most of them any number
_BOUNDS = (None, None, None, 1, None, None, 2_500)
_KINDS = ("strict", "strict", "serializable", "past", "future")


def read_index(world: World) -> None:
    """A lookup or a walk."""
    if not world.indexes:
        return
    index = world.rng.choice(list(world.indexes.values()))
    kind = world.rng.choice(_KINDS)
    at = _choose_time(world, kind, (index.id,), index.definition)
    keys = _choose_keys(world, index)
    uuid = world.controller.peek(
        index.id,
        Time(at),
        _IDENTITY,
        key_types=tuple(PAIR[c] for c in index.key),
        keys=None if keys is None else keys[1],
    )
    _begin(world, PendingRead(uuid, "", index.definition, at, keys, (index.id,), kind, world.step))


def read_all_now(world: World) -> None:
    """Every index and materialized view at the newest time, which those of quiet tables have not sealed yet."""
    for index in world.indexes.values():
        at = max(world.now, world.controller.since(index.id))
        uuid = world.controller.peek(index.id, Time(at), _IDENTITY)
        _begin(world, PendingRead(uuid, "", index.definition, at, None, (index.id,), "strict", world.step))
    for id, definition in world.views.items():
        at = max(world.now, world.controller.since(id))
        _one_shot(world, (ImportSource(id, PAIR),), definition, "strict", at)


def read_one_shot(world: World) -> None:
    """A dataflow that lives for one read, over indexes and storage."""
    made = defined(world.rng, world.objects())
    if made is None:
        return
    relation, definition = made
    stored = world.tables.keys() | world.views.keys()
    facts = [
        IndexFacts(i.id, i.on, i.key, PAIR)
        for i in world.indexes.values()
        if i.on not in stored or world.rng.random() < 0.8
    ]
    world.rng.shuffle(facts)
    operators = lower(relation, facts)
    over = tuple(dict.fromkeys(i.id for i in DataflowDescription("", operators, 0, 0).imports))
    kind = world.rng.choice(_KINDS)
    at = _choose_time(world, kind, over, definition)
    _one_shot(world, operators, definition, kind, at)


def _one_shot(world: World, operators: tuple[Operator, ...], definition: Definition, kind: str, at: int) -> None:
    over = tuple(dict.fromkeys(i.id for i in DataflowDescription("", operators, 0, 0).imports))
    number = next(world.numbers)
    id = transient_id(number)
    # By the number and not by chance, so that bounds change nothing about what else happens.
    bound = _BOUNDS[number % len(_BOUNDS)]
    last = len(operators) - 1
    exported = (*operators, Arrange(last, (), PAIR), ExportIndex(id, id, last + 1, (), PAIR))
    world.controller.create_dataflow(
        DataflowDescription(id, exported, at, at + 1, DataflowClass.ONE_SHOT_READ, bound), as_of=Time(at)
    )
    uuid = world.controller.peek(id, Time(at), _IDENTITY, bounds=ReadBounds(memory=bound))
    read = PendingRead(uuid, "", definition, at, None, over, kind, world.step, transient=id)
    read.bounded = bound is not None
    read.over_indexes = any(isinstance(o, ImportIndex) for o in operators)
    _begin(world, read)


def _begin(world: World, read: PendingRead) -> None:
    read.name = f"r{next(world.numbers)}"
    read.waited = read.time > world.now
    world.reads[read.uuid] = read
    world.note(f"{read.name}: {read.kind} read of {read.over} at {read.time}, keys {read.keys}, as {read.transient}")


def _choose_time(world: World, kind: str, over: tuple[str, ...], definition: Definition) -> int:
    since = max(world.controller.since(id) for id in over)
    rng = world.rng
    match kind:
        case "strict":
            return max(world.last_write(definition.tables), since)
        case "serializable":
            upper = min(world.controller.upper(id) for id in over)
            return max(since, min(world.now, world.now if upper == EMPTY else upper - 1))
        case "past":
            return rng.randint(since, max(since, world.now))
        case _:
            return max(since, world.now) + rng.choice((0, 1, 1, 2))


def _choose_keys(world: World, index: Index) -> tuple[tuple[int, ...], tuple[tuple[LiteralValue, ...], ...]] | None:
    if world.rng.random() < 0.4 or not index.key:
        return None
    keys = [tuple(world.rng.randrange(5) for _ in index.key) for _ in range(world.rng.choice((1, 1, 2, 3)))]
    return index.key, tuple(dict.fromkeys(keys))


def lookup_now(world: World) -> None:
    """On the caller's thread, if that needs no waiting."""
    if not world.indexes or not world.attached:
        return
    index = world.rng.choice(list(world.indexes.values()))
    at = _choose_time(world, world.rng.choice(("strict", "serializable", "past")), (index.id,), index.definition)
    keys = _choose_keys(world, index)
    with_types = tuple(PAIR[c] for c in index.key)
    peek = Peek(index.id, "", at, with_types, None if keys is None else keys[1], _IDENTITY)
    answer = world.replica.answer_now(peek)
    if answer is None:
        return
    read = PendingRead("", "on the spot", index.definition, at, keys, (index.id,), "now", world.step)
    _compare(world, read, answer_of(answer))
    world.coverage["answer: on the caller's thread"] += 1


def cancel_read(world: World) -> None:
    waiting = [r for r in world.reads.values() if not r.canceled]
    if not waiting:
        return
    cancel(world, world.rng.choice(waiting), with_drop=world.rng.random() < 0.5)


def cancel(world: World, read: PendingRead, *, with_drop: bool) -> None:
    """``with_drop``: of what was made for it, at once instead of with the answer."""
    read.canceled = True
    if world.pairs:
        published = all(_published(pair, id) for pair in world.pairs for id in read.over)
        world.coverage[f"cancel: {'after' if published else 'before'} publication"] += 1
    world.note(f"cancel {read.name}")
    world.controller.cancel_peek(read.uuid)
    if read.transient is not None and with_drop:
        world.controller.drop(read.transient)


def readers(pair: Pair) -> list[InteractiveWorker]:
    return [w for w in pair.interactive._commanded if isinstance(w, InteractiveWorker)]


def _published(pair: Pair, id: str) -> bool:
    """Whether the index is published wherever the reader knows it; what is no index is."""
    for reader in readers(pair):
        peer = reader.traces.get(id)
        if peer is not None and not peer.arrangement.oks.attached:
            return False
    return True


# -- answers


def take_answer(world: World, response: PeekResponse) -> None:
    """Checks it against a recompute, and drops what was made for the read."""
    read = world.reads.pop(response.uuid, None)
    if read is None:
        raise SimulationError("an answer to no read, or the second one")
    if read.transient is not None:
        world.controller.drop(read.transient)
    if response.canceled:
        if not read.canceled:
            raise SimulationError(f"{read.name} is canceled, which nobody asked for")
        world.coverage["cancel: canceled"] += 1
        world.note(f"{read.name}: canceled")
        return
    answer = answer_of(response)
    if answer == "58000":
        if world.answered_for:
            raise SimulationError(f"{read.name} fails though a replica is there")
        world.note(f"{read.name}: lost")
        return
    if read.bounded and answer == "53200":
        world.coverage["answer: past its memory"] += 1
        world.note(f"{read.name}: past its memory")
        return
    _compare(world, read, answer)
    world.note(f"{read.name}: {sorted(answer.items(), key=repr) if not isinstance(answer, str) else answer}")
    _count(world, read, answer)
    if read.kind == "strict":
        world.strict_reads.append(_strict_read(world, read, answer))


def _compare(world: World, read: PendingRead, answer: Answer) -> None:
    expected = world.expected(read)
    if answer != expected:
        raise SimulationError(
            f"{read.name} ({read.kind}) of {read.over} at {read.time}, keys {read.keys}:\n"
            f"  answered {answer}\n  expected {expected}"
        )


def _strict_read(world: World, read: PendingRead, answer: Answer) -> Read:
    """``saw`` compares values alone: the time that was chosen has no part in it."""
    times, recompute = world.write_times, world.recompute

    def saw(count: int) -> bool:
        return keyed(recompute.answer(read.definition, times[count - 1] if count else 0), read) == answer

    return Read(read.name, read.began, world.step, saw)


def _count(world: World, read: PendingRead, answer: Answer) -> None:
    c = world.coverage
    c["answer"] += 1
    c["processes: answer"] += world.processes > 1
    c["answer: an error"] += isinstance(answer, str)
    c["answer: strict"] += read.kind == "strict"
    newer = bisect.bisect_right(world.write_times, read.time)
    c["answer: at a past time"] += read.kind == "past" and newer < len(world.write_times)
    c["answer: waited for a later write"] += read.waited
    c["cancel: answered before"] += read.canceled
    c["clusters: a view of the second is read"] += not world.apart.isdisjoint(read.over)
    if read.transient is None:
        c["placeholder: peek answered"] += read.over_placeholder
        return
    c["answer: one-shot over indexes" if read.over_indexes else "answer: one-shot over storage"] += 1
    c["placeholder: one-shot read answered"] += read.over_placeholder
