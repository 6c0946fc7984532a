"""Recursive queries: reads in rounds, all of them at one time.

Each round is a read of its own, of the recursive term over the rows of the round before, which are at hand.  What the
read reads is held at its time from the first round to the last.  A query without end goes on until somebody ends it:
its client, statement_timeout, query_max_memory or max_result_size; or a LIMIT without an order that needs no more rows,
if nothing but filters and expressions stands between it and the recursion.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec
import numpy as np

from eddyline.adapter.constant_rows import constant_rows, raise_first
from eddyline.adapter.finishing import constant_value
from eddyline.adapter.read import (
    FirstRows,
    ObjectDroppedError,
    ReadAnswer,
    ReadContext,
    answer_at,
    check_there,
    choose_time,
    fixed_plan,
    on_this_thread,
    wait_closed,
)
from eddyline.adapter.read_plan import ReadPlan, RecursionPlan, at_the_moment, plan_read
from eddyline.errors import NoLongerReadableError, make_error
from eddyline.expr.ir import Literal, Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.plan.fast_path import ConstantPlan, PeekPlan, linear_over, substitute_in_mfp
from eddyline.plan.parameters import substitute_parameters
from eddyline.plan.recursion import first_rows_only, working_reads
from eddyline.plan.relation import Relation
from eddyline.plan.traverse import gets
from eddyline.protocol.read_costs import PHASES, PeekPhases, ReadBounds, out_of_memory, result_too_large
from eddyline.repr.batch import Batch
from eddyline.repr.ids import is_working
from eddyline.repr.time import MIN_TIME, Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.sql.catalog_view import ItemKind
from eddyline.trace.duplicates import first_equal
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, build_run
from eddyline.trace.trace import Trace

__all__ = ["answer_recursive"]

#: counted with multiplicities; what multiplies in every round is past it long before its rows need much room
_MOST_ROWS: Final = 2.0**40
_START: Final = Frontier(MIN_TIME)


def answer_recursive(
    context: ReadContext,
    plan: ReadPlan,
    relation: Relation,
    parameters: Sequence[Literal],
    bounds: ReadBounds,
    as_of: Time | None,
    first: FirstRows | None,
) -> ReadAnswer:
    """See ``answer.answer_read``.

    Rows come in the order of the rounds where nothing but filters and expressions stands above the recursion.
    54000 past 2^40 rows.
    """
    if as_of is not None:
        wait_closed(context, plan, as_of)
    try:
        return _answer_held(context, plan, parameters, bounds, as_of, first)
    except (NoLongerReadableError, ObjectDroppedError):
        if not any(part.facts.indexes for part in plan.parts()):
            raise
    from_storage = plan_read(relation, context.catalog, use_indexes=False)
    return _answer_held(context, from_storage, parameters, bounds, as_of, first)


def _answer_held(
    context: ReadContext,
    plan: ReadPlan,
    parameters: Sequence[Literal],
    bounds: ReadBounds,
    as_of: Time | None,
    first: FirstRows | None,
) -> ReadAnswer:
    with _time_held(context, plan, as_of) as at:
        return _Answer(context, parameters, bounds, at).of(plan, first)


@contextmanager
def _time_held(context: ReadContext, plan: ReadPlan, as_of: Time | None) -> Iterator[Time]:
    """The time of the read.  What it reads stays readable there until the end, indexes too."""
    engine, collections = context.engine, tuple(dict.fromkeys(_collections(plan, context)))
    with engine.control() as controller:
        check_there(controller, collections)
        holds = controller.acquire_holds(collections)
        try:
            at = choose_time(context, controller, collections, plan.tables, as_of)
            holds.downgrade(Frontier(at))
        except BaseException:
            holds.close()
            raise
    try:
        yield at
    finally:
        with engine.control_unchecked():
            holds.close()


def _collections(plan: ReadPlan, context: ReadContext) -> Iterator[str]:
    """What its parts read: objects that are stored, and the indexes on them."""
    for part in plan.parts():
        for id in sorted(gets(part.relation)):
            if is_working(id):
                continue
            indexes = [index.id for index in part.facts.indexes if index.on == id]
            yield from indexes
            item = context.catalog.item(id)
            if not indexes or (item is not None and item.kind is not ItemKind.VIEW):
                yield id


class _Enough(NamedTuple):
    """So many rows (with multiplicities) are enough, counted once they are through ``mfp``."""

    mfp: Mfp
    rows: int


class _Answer:
    """One answer, at one time, on one thread."""

    def __init__(self, context: ReadContext, parameters: Sequence[Literal], bounds: ReadBounds, at: Time) -> None:
        self._context = context
        self._parameters = parameters
        self._bounds = bounds
        self._at = at
        # by id() of plans that outlive this
        self._fixed: dict[int, ReadPlan] = {}
        self._walks: dict[int, PeekPlan | None] = {}
        self._reads: dict[int, frozenset[str]] = {}
        self._limits: dict[int, dict[str, _Enough]] = {}
        self._phases: list[PeekPhases] = []

    def of(self, plan: ReadPlan, first: FirstRows | None) -> ReadAnswer:
        start = time.perf_counter_ns()
        walk = self._walk(plan)
        walked = next((r for r in plan.recursions if walk is not None and walk.on == r.id), None)
        known = self._known(plan, {}, but_not=walked)
        if walk is not None and walked is not None:
            limited = first is not None and not first.order
            enough = _Enough(walk.mfp, first.limit) if first is not None and limited else None
            rows = self._collected(walked, known, walk.mfp, enough, self._bounds.result)
        else:
            rows = self._run(plan, known, self._bounds)
        return ReadAnswer(rows, self._at, plan, self._spent(start, len(rows)))

    def _spent(self, start_ns: int, rows: int) -> PeekPhases:
        """Of all rounds that a runtime answered; without one, of this thread."""
        if not self._phases:
            return on_this_thread(start_ns, rows)
        sums = {f"{phase}_ns": sum(p.of(phase) for p in self._phases) for phase in PHASES}
        return msgspec.structs.replace(self._phases[-1], rows=rows, **sums)

    # -- recursions --------------------------------------------------------------------------------------------------

    def _known(
        self, plan: ReadPlan, known: Mapping[str, Batch], *, but_not: RecursionPlan | None = None
    ) -> dict[str, Batch]:
        """``known`` and the rows of the recursions that the plan reads, however indirectly."""
        found = dict(known)
        if not plan.recursions:
            return found
        needed = set(self._reads_of(plan))
        for recursion in reversed(plan.recursions):
            if recursion.id in needed:
                for part in (recursion.base, *recursion.step.parts()):
                    needed |= self._reads_of(part)
        enough = self._enough(plan)
        for recursion in plan.recursions:
            if recursion.id in needed and recursion is not but_not:
                found[recursion.id] = self._collected(recursion, found, None, enough.get(recursion.id))
        return found

    def _enough(self, plan: ReadPlan) -> dict[str, _Enough]:
        """How many rows of recursions the plan wants, where it says so."""
        if id(plan) in self._limits:
            return self._limits[id(plan)]
        found: dict[str, _Enough] = {}
        self._limits[id(plan)] = found
        for only in first_rows_only(self._bound(plan)):
            limit, offset = constant_value(only.limit), 0 if only.offset is None else constant_value(only.offset)
            if isinstance(limit, int):
                found[only.id] = _Enough(only.mfp, limit + (offset if isinstance(offset, int) else 0))
        return found

    def _collected(
        self,
        recursion: RecursionPlan,
        known: Mapping[str, Batch],
        mfp: Mfp | None,
        enough: _Enough | None,
        most_bytes: int | None = None,
    ) -> Batch:
        """The rows of all rounds, through ``mfp``, or of the first rounds that have ``enough``.

        ``most_bytes``: of rows with their multiplicities.
        """
        types = recursion.types if mfp is None else mfp.types
        pieces: list[Batch] = []
        counted = held = shown = 0.0
        for fresh in self._rounds(recursion, known):
            kept = fresh if mfp is None else _through(mfp, fresh)
            pieces.append(kept)
            held += kept.nbytes
            self._check_memory(held + fresh.nbytes)
            if most_bytes is not None and len(kept):
                shown += kept.column_bytes * (_rows(kept) / len(kept))
                if shown > most_bytes:
                    raise result_too_large(int(shown), most_bytes)
            if enough is not None:
                counted += _rows(kept if enough.mfp is mfp else _through(enough.mfp, fresh))
                if counted >= enough.rows:
                    break
        return Batch.concat(types, pieces)

    def _rounds(self, recursion: RecursionPlan, known: Mapping[str, Batch]) -> Iterator[Batch]:
        """The rows that each round adds, none of them empty."""
        seen = None if recursion.every else _Seen(recursion.types, self._context.engine.hasher)
        total = 0.0
        bounds = ReadBounds(memory=self._bounds.memory)
        fresh = self._run(recursion.base, known, bounds)
        while True:
            self._context.interrupt.check()
            if seen is not None:
                fresh = seen.new_of(fresh)
                self._check_memory(seen.nbytes)
            if not len(fresh):
                return
            total += _rows(fresh)
            if total > _MOST_ROWS:
                raise make_error(
                    "54000",
                    f'recursive query "{recursion.label}" gives more than 2^40 rows',
                    hint="Use UNION instead of UNION ALL, or end it by a condition in its recursive term.",
                )
            yield fresh
            within = {**known, recursion.round_id: fresh}
            fresh = self._run(recursion.step, self._known(recursion.step, within), bounds)

    def _check_memory(self, held: float) -> None:
        bound = self._bounds.memory
        if bound is not None and held > bound:
            raise out_of_memory(int(held), bound)

    # -- plans without recursions of their own -----------------------------------------------------------------------

    def _run(self, plan: ReadPlan, known: Mapping[str, Batch], bounds: ReadBounds) -> Batch:
        """The plan's rows; ``known`` has the rows of the recursions that it reads."""
        if isinstance(plan.fast, ConstantPlan):
            return constant_rows(plan, self._parameters, self._context.moment, self._context.catalog)
        walk = self._walk(plan)
        if walk is not None:
            return _through(walk.mfp, known[walk.on])
        fixed = self._fixed.get(id(plan))
        if fixed is None:
            fixed = self._fixed[id(plan)] = fixed_plan(self._context, plan, self._parameters)
        at_hand = {id: known[id] for id in self._reads_of(plan)}
        answer = answer_at(self._context, fixed, self._parameters, self._at, bounds, at_hand)
        if answer.phases.runtime != "none":
            self._phases.append(answer.phases)
        return answer.rows

    def _walk(self, plan: ReadPlan) -> PeekPlan | None:
        """What is done to each of the rows at hand, if that is all that the plan does."""
        if id(plan) not in self._walks:
            walk = plan.walk
            if walk is not None and plan.clocked:
                chain = linear_over(self._bound(plan))
                assert chain is not None
                walk = msgspec.structs.replace(walk, mfp=chain[1])
            elif walk is not None and plan.parameterised:
                walk = msgspec.structs.replace(walk, mfp=substitute_in_mfp(walk.mfp, self._parameters))
            self._walks[id(plan)] = walk
        return self._walks[id(plan)]

    def _bound(self, plan: ReadPlan) -> Relation:
        """Without parameters and clock."""
        relation = substitute_parameters(plan.relation, self._parameters) if plan.parameterised else plan.relation
        return at_the_moment(relation, self._context.moment) if plan.clocked else relation

    def _reads_of(self, plan: ReadPlan) -> frozenset[str]:
        found = self._reads.get(id(plan))
        if found is None:
            found = self._reads[id(plan)] = working_reads(plan.relation)
        return found


def _through(mfp: Mfp, rows: Batch) -> Batch:
    """Raises the first row's error."""
    done, errors = apply_mfp(mfp, rows)
    raise_first(errors)
    return done


def _rows(batch: Batch) -> float:
    """With their multiplicities."""
    return float(np.sum(batch.diffs, dtype=np.float64))


class _Seen:
    """The rows that UNION has had, as SQL tells them apart."""

    def __init__(self, types: tuple[SqlType, ...], hasher: Hasher) -> None:
        self._layout = Layout(types, tuple(range(len(types))))
        self._hasher = hasher
        self._trace = Trace(self._layout)

    @property
    def nbytes(self) -> int:
        return self._trace.bytes

    def new_of(self, rows: Batch) -> Batch:
        """Each row that is new once, in order.  O(rows × log(rows seen)), amortised."""
        types, count = self._layout.types, len(rows)
        first = first_equal(rows.columns, types, count, self._hasher)
        candidates = rows.take(np.flatnonzero(first == np.arange(count)))
        round_number = self._trace.upper
        hashes = self._hasher.hash_rows(candidates.columns, types, len(candidates))
        null_safe = (True,) * len(types)
        found = self._trace.snapshot().probe(candidates.columns, types, hashes, below=round_number, null_safe=null_safe)
        new = np.ones(len(candidates), bool)
        new[found.probe_rows] = False
        fresh = candidates.take(np.flatnonzero(new))
        fresh = Batch.at(types, fresh.columns, len(fresh), Time(round_number))
        following = Frontier(round_number + 1)
        run = build_run(fresh, self._layout, self._hasher, lower=round_number, upper=following, since=_START)
        self._trace.insert(run)
        return fresh
