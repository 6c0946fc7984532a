"""Running a read: choosing its time, holding its inputs there, peeking.

A strict read's time is the last write to its base tables (at or before T*), moved up to the least time at which what it
reads is readable; the answer is the same at any time in between.  See ``docs/model.md``.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import msgspec

from eddyline.adapter.clusters import Cluster
from eddyline.adapter.constant_rows import constant_rows, literal_column, raise_first
from eddyline.adapter.engine import Engine
from eddyline.adapter.joined_lookups import join_lookups
from eddyline.adapter.object_names import object_names
from eddyline.adapter.read_plan import ReadPlan, at_the_moment, plan_read
from eddyline.adapter.session_sequences import SessionSequences
from eddyline.adapter.setting_values import SERIALIZABLE
from eddyline.adapter.transaction import Transaction
from eddyline.adapter.waiter import Waiter
from eddyline.controller.controller import Collections, Controller
from eddyline.errors import DatabaseError, NoLongerReadableError, OperationalError, make_error
from eddyline.expr.ir import CLOCK, Call, Literal, Mfp, SortKey
from eddyline.expr.mfp import apply_mfp
from eddyline.plan.column_names import name_operators
from eddyline.plan.dataflow import (
    Arrange,
    BatchSource,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ImportIndex,
    ImportSource,
    Operator,
    TopK,
)
from eddyline.plan.fast_path import ConstantPlan, PeekPlan, substitute_in_fast_path
from eddyline.plan.lookup_join import LookupJoin, peeks_of
from eddyline.plan.lower import lower
from eddyline.plan.parameters import substitute_parameters
from eddyline.plan.relation import Relation
from eddyline.protocol.messages import Peek, PeekResponse
from eddyline.protocol.read_costs import UNBOUNDED, PeekPhases, ReadBounds
from eddyline.repr.batch import Batch
from eddyline.repr.ids import is_log, transient_id
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import TIMESTAMPTZ
from eddyline.sql.catalog_view import CatalogView, unknown_cluster

__all__ = [
    "SEAL_WAIT_S",
    "FirstRows",
    "Interrupt",
    "ObjectDroppedError",
    "ReadAnswer",
    "ReadContext",
    "answer_at",
    "answer_plan",
    "check_there",
    "choose_time",
    "fixed_plan",
    "held_time",
    "imported",
    "on_this_thread",
    "wait_closed",
]

_transient_ids = itertools.count(1)
_WAIT_SLICE_S = 0.05
#: how long a read waits for its index by itself, before it has the replica wait: maintenance that keeps up takes less
SEAL_WAIT_S: Final = 0.05
_DROPPED = "an object of the statement was dropped meanwhile"
#: more rows at hand than these are not looked through for a few that are joined by lookups
_WALKED_ROWS: Final = 4096
_NOTHING: Final[Mapping[str, Batch]] = {}


class Interrupt:
    """Cancellation and deadline of one statement.  ``cancel`` and ``stop`` from any thread.

    ``reading``: the dataflow of its own whose answer the statement waits for; of its thread.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self.deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._failure: DatabaseError | None = None  # guarded by _lock
        self._wake: Callable[[], None] | None = None  # guarded by _lock
        self.reading: str | None = None

    def cancel(self) -> None:
        self.stop(cancelled_error())

    def stop(self, failure: DatabaseError) -> None:
        """The statement fails with that, or with what it was stopped with before."""
        with self._lock:
            if self._failure is None:
                self._failure = failure
            wake = self._wake
        if wake is not None:
            wake()

    def cancelled(self) -> bool:
        """Whether it was cancelled or stopped."""
        with self._lock:
            return self._failure is not None

    @property
    def failure(self) -> DatabaseError | None:
        """What it was cancelled or stopped with."""
        with self._lock:
            return self._failure

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """While the statement waits: ``wake`` is called once it is cancelled or stopped, at once if it was before.

        On the thread that stops it, without a lock; O(1), and harmless after the wait.  It has the waiter ``check``.
        """
        with self._lock:
            outer, self._wake = self._wake, wake
            stopped = self._failure is not None
        if stopped:
            wake()
        try:
            yield
        finally:
            with self._lock:
                self._wake = outer

    def remaining_s(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def expired(self) -> bool:
        """Whether the statement was cancelled or its time is up."""
        return self.cancelled() or (self.deadline is not None and time.monotonic() >= self.deadline)

    def check(self) -> None:
        """Raises 57014 if the statement was cancelled or its time is up; what it was stopped with, if it was."""
        with self._lock:
            failure = self._failure
        if failure is not None:
            raise failure
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise timeout_error()


def cancelled_error() -> DatabaseError:
    return make_error("57014", "canceling statement due to user request")


def timeout_error() -> DatabaseError:
    return make_error("57014", "canceling statement due to statement timeout")


@dataclass(frozen=True, slots=True)
class ReadContext:
    """Who reads: the engine, the transaction, the names in sight, what may interrupt, what a read may take.

    ``admitted``: it may have dataflows of its own however little memory is left.  ``sequences``: the session's.
    """

    engine: Engine
    transaction: Transaction
    catalog: CatalogView
    interrupt: Interrupt
    sequences: SessionSequences
    bounds: ReadBounds = UNBOUNDED
    admitted: bool = False

    def moment(self, call: Call) -> Literal:
        """What a call gives that is ``OF_THE_MOMENT``."""
        if call.func == CLOCK:
            return Literal(self.transaction.now_us, TIMESTAMPTZ)
        return self.engine.sequences.shown(call)

    @property
    def cluster(self) -> Cluster:
        """Where what it reads is rendered: 42704 if the session's cluster is gone."""
        id = self.catalog.cluster_id
        if id is None:
            raise unknown_cluster(self.catalog.cluster, (c.name for c in self.catalog.clusters()))
        return self.engine.cluster(id)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """``rows`` with their multiplicities (diffs > 0), exact at ``at``.  ``plan``: the one that was run.

    ``phases``: of the peek; where no runtime was asked, its ``runtime`` is ``none``.
    """

    rows: Batch
    at: Time
    plan: ReadPlan
    phases: PeekPhases


class ObjectDroppedError(OperationalError):
    """40001: what the plan reads is gone; another plan may do without it."""

    default_sqlstate = "40001"


class FirstRows(NamedTuple):
    """What of a result is wanted: the first ``limit`` rows in ``order`` (ties: canonical order), any if it is empty."""

    limit: int
    order: tuple[SortKey, ...]


class _Wanted(NamedTuple):
    """What a read may take, and which rows are enough (None: all).  ``at_hand``: rows that it reads as collections."""

    bounds: ReadBounds
    first: FirstRows | None = None
    at_hand: Mapping[str, Batch] = _NOTHING

    @property
    def limit(self) -> int | None:
        return None if self.first is None else self.first.limit

    @property
    def order(self) -> tuple[SortKey, ...]:
        return () if self.first is None else self.first.order


def answer_plan(
    context: ReadContext,
    plan: ReadPlan,
    relation: Relation,
    parameters: Sequence[Literal],
    bounds: ReadBounds,
    as_of: Time | None,
    first: FirstRows | None,
) -> ReadAnswer:
    """See ``answer.answer_read``; the plan has no recursions."""
    if isinstance(plan.fast, ConstantPlan):
        start = time.perf_counter_ns()
        rows = constant_rows(plan, parameters, context.moment, context.catalog)
        return ReadAnswer(rows, _time_without_tables(context, as_of), plan, on_this_thread(start, len(rows)))
    wanted = _Wanted(bounds, first)
    try:
        return _read_at(context, plan, parameters, as_of, wanted)
    except (NoLongerReadableError, ObjectDroppedError):
        if not plan.facts.indexes:
            raise
    return _read_at(context, plan_read(relation, context.catalog, use_indexes=False), parameters, as_of, wanted)


def answer_at(
    context: ReadContext,
    plan: ReadPlan,
    parameters: Sequence[Literal],
    at: Time,
    bounds: ReadBounds,
    at_hand: Mapping[str, Batch],
) -> ReadAnswer:
    """Runs a plan without recursions of its own at a time whose collections are held.

    ``at_hand``: the rows of those that it reads, by id; their diffs count.
    """
    return _read_at(context, plan, parameters, at, _Wanted(bounds, at_hand=at_hand))


def fixed_plan(context: ReadContext, plan: ReadPlan, parameters: Sequence[Literal]) -> ReadPlan:
    """``plan`` with parameters and clock put in, to be run many times in one statement."""
    prepared = _prepared(context, plan, parameters)
    if isinstance(prepared, PeekPlan):
        return replace(plan, fast=prepared, join=None, operators=None, clocked=False, parameterised=False)
    return replace(plan, fast=None, operators=prepared, clocked=False, parameterised=False)


def on_this_thread(start_ns: int, rows: int) -> PeekPhases:
    return PeekPhases("none", "caller", walk_ns=time.perf_counter_ns() - start_ns, rows=rows)


def _time_without_tables(context: ReadContext, as_of: Time | None) -> Time:
    newest = context.transaction.newest
    return as_of if as_of is not None else newest if newest is not None else Time(0)


def _read_at(
    context: ReadContext, plan: ReadPlan, parameters: Sequence[Literal], as_of: Time | None, wanted: _Wanted
) -> ReadAnswer:
    if as_of is not None:
        wait_closed(context, plan, as_of)
    if plan.join is not None:
        joined = _join_lookups(context, plan, plan.join, parameters, as_of, wanted)
        if joined is not None:
            return joined
    prepared = _prepared(context, plan, parameters)
    if isinstance(prepared, PeekPlan):
        if prepared.from_storage:
            return _look_up_storage(context, plan, prepared, as_of)
        return _peek_index(context, plan, prepared, as_of, wanted)
    if wanted.at_hand:
        prepared = tuple(_at_hand(o, wanted.at_hand) for o in prepared)
    if wanted.order and wanted.limit is not None:
        top = TopK(len(prepared) - 1, (), wanted.order, wanted.limit, 0, prepared[-1].types)
        prepared = (*prepared, top)
    return _peek_one_shot(context, plan, prepared, as_of, wanted)


def _at_hand(operator: Operator, rows: Mapping[str, Batch]) -> Operator:
    found = rows.get(operator.id) if isinstance(operator, ImportSource) else None
    return operator if found is None else BatchSource(found, operator.types)


def _join_lookups(
    context: ReadContext,
    plan: ReadPlan,
    join: LookupJoin,
    parameters: Sequence[Literal],
    as_of: Time | None,
    wanted: _Wanted,
) -> ReadAnswer | None:
    """On this thread, if every index has sealed the time and few rows are found; else None."""
    start = time.perf_counter_ns()
    lookups = tuple(peeks_of(join))
    stored = tuple(dict.fromkeys(p.on for p in lookups if p.from_storage))
    with _time_held(context, tuple(dict.fromkeys(p.index for p in lookups)), stored, plan.tables, as_of) as at:

        def look(peek: PeekPlan) -> Batch | None:
            at_hand = wanted.at_hand.get(peek.on)
            if at_hand is not None:
                if len(at_hand) > _WALKED_ROWS:
                    return None
                rows, errors = apply_mfp(peek.mfp, at_hand)
                raise_first(errors)
                return rows
            if peek.too_many():
                return None
            if peek.from_storage:
                return _stored_rows(context, peek, at)
            asked = Peek(peek.index, "", at, peek.key_types, peek.literal_keys(), peek.mfp, bounds=wanted.bounds)
            answer, _ = _answered_here(context, asked, at)
            return None if answer is None else _read_answer(answer, context, at, plan).rows

        rows = join_lookups(join, parameters, look)
    return None if rows is None else ReadAnswer(rows, at, plan, on_this_thread(start, len(rows)))


def _look_up_storage(context: ReadContext, plan: ReadPlan, peek: PeekPlan, as_of: Time | None) -> ReadAnswer:
    """Rows of a table by its primary key, on this thread: storage has every commit as soon as it is acknowledged."""
    start = time.perf_counter_ns()
    with _time_held(context, (peek.on,), (peek.on,), plan.tables, as_of) as at:
        found = _stored_rows(context, peek, at)
    return ReadAnswer(found, at, plan, on_this_thread(start, len(found)))


@contextmanager
def _time_held(
    context: ReadContext,
    collections: Sequence[str],
    stored: Sequence[str],
    tables: Sequence[str],
    as_of: Time | None,
) -> Iterator[Time]:
    """``choose_time``; ``stored`` are held until the end, since storage compacts on threads of its own."""
    engine = context.engine
    if not stored:
        yield choose_time(context, engine.collections, collections, tables, as_of)
        return
    with engine.control() as controller:
        check_there(controller, collections)
        holds = controller.acquire_holds(stored)
        try:
            at = choose_time(context, controller, collections, tables, as_of)
        except BaseException:
            holds.close()
            raise
    try:
        yield at
    finally:
        with engine.control_unchecked():
            holds.close()


def _stored_rows(context: ReadContext, peek: PeekPlan, at: Time) -> Batch:
    keys, store = peek.literal_keys(), context.engine.store
    assert keys is not None
    columns = tuple(literal_column([key[i] for key in keys], t) for i, t in enumerate(peek.key_types))
    rows = store.lookup(peek.on, columns, at) if keys else Batch.empty(store.types(peek.on))
    found, errors = apply_mfp(peek.mfp, rows)
    raise_first(errors)
    return found


def _peek_index(
    context: ReadContext, plan: ReadPlan, peek: PeekPlan, as_of: Time | None, wanted: _Wanted
) -> ReadAnswer:
    """Off the index: on this thread if it has sealed the time, or does so soon, else by the replica once it has."""
    engine = context.engine
    keys = peek.literal_keys()
    # Without a lock: should since pass the time meanwhile, nobody answers, and it is chosen again.
    at = choose_time(context, engine.collections, (peek.index,), plan.tables, as_of)
    limit, order, bounds = wanted.limit, wanted.order, wanted.bounds
    lookup = Peek(peek.index, "", at, peek.key_types, keys, peek.mfp, limit, order, bounds)
    answer, waited_ns = _answered_here(context, lookup, at)
    if answer is None:
        at, answer = _send_peek(context, plan, lookup, as_of)
    if waited_ns and answer.phases is not None:
        sealing = answer.phases.wait_seal_ns + waited_ns
        phases = msgspec.structs.replace(answer.phases, wait_seal_ns=sealing)
        answer = msgspec.structs.replace(answer, phases=phases)
    return _read_answer(answer, context, at, plan)


def _answered_here(context: ReadContext, peek: Peek, at: Time) -> tuple[PeekResponse | None, int]:
    """(the answer, found here, if the index has sealed ``at`` or does so soon; ns waited for that).  57014."""
    cluster, expired = context.cluster, context.interrupt.expired
    answer = cluster.answer_now(peek, expired)
    if answer is not None:
        return answer, 0
    start = time.perf_counter_ns()
    sealed = cluster.wait_sealed(peek.target, at, SEAL_WAIT_S, expired)
    waited_ns = 0 if sealed is None else time.perf_counter_ns() - start
    context.interrupt.check()
    return cluster.answer_now(peek, expired) if sealed else None, waited_ns


def _send_peek(context: ReadContext, plan: ReadPlan, peek: Peek, as_of: Time | None) -> tuple[Time, PeekResponse]:
    """The replica's answer, and its time, chosen anew."""
    engine, cluster, waiter = context.engine, context.cluster, Waiter()
    with engine.control() as controller:
        at = choose_time(context, controller, (peek.target,), plan.tables, as_of)
        uuid = controller.peek(
            peek.target,
            at,
            peek.mfp,
            key_types=peek.key_types,
            keys=peek.keys,
            limit=peek.limit,
            order=peek.order,
            bounds=peek.bounds,
            cluster=cluster.id,
        )
        cluster.expect(uuid, waiter)
    try:
        return at, _wait(context, waiter)
    finally:
        cluster.forget(uuid)


def _peek_one_shot(
    context: ReadContext,
    plan: ReadPlan,
    operators: tuple[Operator, ...],
    as_of: Time | None,
    wanted: _Wanted,
) -> ReadAnswer:
    """By a dataflow that lives for this read."""
    engine, cluster, waiter = context.engine, context.cluster, Waiter()
    transient = transient_id(next(_transient_ids))
    types = operators[-1].types
    imports = imported(operators)
    if imports and not context.admitted:
        engine.memory.admit()
    context.interrupt.reading = transient
    with engine.control() as controller, held_time(context, controller, imports, plan.tables, as_of) as at:
        one_shot = _one_shot(transient, operators, at, wanted.bounds.memory)
        controller.create_dataflow(one_shot, as_of=at, cluster=cluster.id)
        everything = Mfp((), tuple(range(len(types))), types)
        uuid = controller.peek(transient, at, everything, limit=wanted.limit, bounds=wanted.bounds)
        cluster.expect(uuid, waiter)
    try:
        answer = _wait(context, waiter)
    finally:
        context.interrupt.reading = None
        cluster.forget(uuid)
        with engine.control_unchecked() as controller:
            controller.drop(transient)
    return _read_answer(answer, context, at, plan)


def _prepared(context: ReadContext, plan: ReadPlan, parameters: Sequence[Literal]) -> PeekPlan | tuple[Operator, ...]:
    """What to send, without parameters and clock."""
    if plan.operators is not None:
        return plan.operators
    if isinstance(plan.fast, PeekPlan) and not plan.clocked:
        fast = substitute_in_fast_path(plan.fast, parameters) if plan.parameterised else plan.fast
        assert isinstance(fast, PeekPlan)
        if not fast.too_many():
            return fast
    relation = plan.relation
    if plan.parameterised:
        relation = substitute_parameters(relation, parameters)
    if plan.clocked:
        relation = at_the_moment(relation, context.moment)
    operators = lower(relation, plan.facts.indexes, unique_keys=plan.facts.unique_keys, single_time=True)
    return name_operators(operators, object_names(context.catalog))


def imported(operators: Sequence[Operator]) -> tuple[str, ...]:
    """Ids of the collections that a dataflow reads."""
    return tuple(dict.fromkeys(o.id for o in operators if isinstance(o, (ImportSource, ImportIndex))))


def _one_shot(id: str, operators: tuple[Operator, ...], at: Time, memory: int | None) -> DataflowDescription:
    """The dataflow whose result can be peeked as index ``id``."""
    last, types = len(operators) - 1, operators[-1].types
    exported = (*operators, Arrange(last, (), types), ExportIndex(id, id, last + 1, (), types))
    # The greatest time has no finite end: such a read is maintained until it is dropped.
    finite = at + 1 < EMPTY
    kind = DataflowClass.ONE_SHOT_READ if finite else DataflowClass.MAINTAINED
    return DataflowDescription(id, exported, at, at + 1, kind, memory)


@contextmanager
def held_time(
    context: ReadContext,
    controller: Controller,
    collections: Sequence[str],
    tables: Sequence[str],
    as_of: Time | None,
) -> Iterator[Time]:
    """``choose_time`` with the collections held meanwhile: storage compacts on threads of its own."""
    check_there(controller, collections)
    holds = controller.acquire_holds(collections)
    try:
        yield choose_time(context, controller, collections, tables, as_of)
    finally:
        holds.close()


def check_there(controller: Controller, collections: Sequence[str]) -> None:
    """``ObjectDroppedError`` unless there are all of them."""
    if not all(controller.exists(c) for c in collections):
        raise ObjectDroppedError(_DROPPED)


def choose_time(
    context: ReadContext,
    known: Collections,
    collections: Sequence[str],
    tables: Sequence[str],
    as_of: Time | None,
) -> Time:
    """The time of a read of ``collections``, whose base tables are ``tables``.

    ``NoLongerReadableError`` if the collections can't answer at any time it may have, ``ObjectDroppedError`` if they
    are gone.
    """
    engine, transaction = context.engine, context.transaction
    assert transaction.newest is not None
    readable = [known.readable(c) for c in collections]
    there = [r for r in readable if r is not None]
    if len(there) < len(readable):
        raise ObjectDroppedError(_DROPPED)
    if collections and as_of is None and all(map(is_log, collections)):
        return transaction.newest  # logs are as they were last sealed, at whatever time they are read
    since = max((s for s, _ in there), default=Frontier(0))
    if as_of is not None:
        if as_of < since:
            raise NoLongerReadableError.at(as_of, since)
        return as_of
    if transaction.isolation == SERIALIZABLE and not transaction.explicit:
        upper = min((u for _, u in there), default=EMPTY)
        sealed = transaction.newest if upper == EMPTY else Time(upper - 1)
        return Time(max(since, min(sealed, transaction.newest)))
    if transaction.explicit:
        transaction.reads.update(tables)
    written = engine.store.newest_write(tables)
    if transaction.explicit:
        at = max(min(written, transaction.newest), since)
        if at > transaction.newest:
            raise NoLongerReadableError.at(transaction.newest, since)
        return Time(at)
    return Time(max(written, since))


def wait_closed(context: ReadContext, plan: ReadPlan, as_of: Time) -> None:
    """A read in the future waits for the clock, then closes the time with an empty commit."""
    engine = context.engine
    while plan.tables and engine.store.tables_upper <= as_of:
        engine.check_open()
        context.interrupt.check()
        ahead_s = (as_of - engine.timeline.now()) / 1e6
        if ahead_s < 0:
            engine.commit({})
        else:
            time.sleep(min(_WAIT_SLICE_S, ahead_s + 1e-6))


def _wait(context: ReadContext, waiter: Waiter) -> PeekResponse:
    interrupt = context.interrupt

    def stopped() -> None:
        failure = interrupt.failure
        if failure is not None:
            waiter.fail(failure)

    with interrupt.waking(stopped):
        if not waiter.wait(interrupt.remaining_s()):
            raise timeout_error()
    if waiter.failure is not None:
        raise waiter.failure
    assert waiter.answer is not None
    return waiter.answer


def _read_answer(answer: PeekResponse, context: ReadContext, at: Time, plan: ReadPlan) -> ReadAnswer:
    if answer.error is not None:
        sqlstate, message, detail = answer.error
        raise make_error(sqlstate, message, detail=detail, hint=answer.hint)
    if answer.canceled or answer.rows is None:
        context.interrupt.check()
        raise cancelled_error()
    assert answer.phases is not None, "an answer with rows says where its time went"
    return ReadAnswer(answer.rows.batch(), at, plan, answer.phases)
