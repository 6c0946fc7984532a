"""SUBSCRIBE: a dataflow whose changes are handed out as they are sealed."""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from eddyline.adapter.backlog import Backlog
from eddyline.adapter.control import Feed
from eddyline.adapter.object_names import object_names
from eddyline.adapter.outcome import Change, SubscriptionFeed
from eddyline.adapter.read import Interrupt, ObjectDroppedError, ReadContext, held_time, imported
from eddyline.adapter.read_plan import ReadPlan, everything_read, plan_read, read_of_the_moment, refuse_system_relations
from eddyline.errors import Error, NoLongerReadableError, OperationalError, make_error, unsupported
from eddyline.expr.ir import Literal
from eddyline.plan.column_names import name_operators
from eddyline.plan.dataflow import DataflowDescription
from eddyline.plan.lower import lower_subscribe
from eddyline.plan.parameters import substitute_parameters
from eddyline.protocol.messages import SubscribeResponse
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.statements import Subscribe

__all__ = ["open_subscription", "subscribe_text"]

_log = logging.getLogger("eddyline.engine")

_ids = itertools.count(1)
#: how often a time that is to be closed is looked at, and who should make changes where nobody does
_TICK_S = 0.05
_NAME = re.compile(r"\s*[^\W\d]\w*(\.[^\W\d]\w*)?\s*")
_PROGRESS_S = 1.0


def open_subscription(
    context: ReadContext,
    statement: Subscribe,
    parameters: Sequence[Literal],
    *,
    as_of: Time | None,
    up_to: Time | None,
    waiting: Callable[[Interrupt], AbstractContextManager[None]],
    max_backlog: int | None,
) -> SubscriptionFeed:
    """Starts it at ``as_of`` (None: the time of a strict read now).  22023 for an unreadable time or an empty range.

    ``waiting`` gives each wait for changes what may interrupt it.
    ``max_backlog``: bytes of changes that may wait for the reader (None: any); past it the subscription ends, and its
    reader gets 53400.
    """
    if context.transaction.changed:
        raise unsupported("SUBSCRIBE in a transaction that has written")
    relation = statement.query.as_relation()
    refuse_system_relations(relation, context.catalog, "SUBSCRIBE")
    plan = plan_read(relation, context.catalog)
    if plan.clocked:
        what = read_of_the_moment(plan.relation)
        raise unsupported(f"{what} in a subscription", hint="Keep the value in a table of one row and join with it.")
    engine = context.engine
    id = f"s{next(_ids)}"
    backlog = Backlog(max_backlog)

    def dropped(item: CatalogItem) -> None:
        backlog.fail(_dropped_error(item))

    reads = frozenset(item.id for item in everything_read(relation, context.catalog))
    until = Frontier(up_to) if up_to is not None else EMPTY
    feed = Feed(backlog.put, dropped, backlog.fail, backlog.look_again, reads)
    try:
        _begin(context, statement, plan, parameters, id, as_of, until, feed)
    except (NoLongerReadableError, ObjectDroppedError):
        if not plan.facts.indexes:
            raise
        # An index was dropped meanwhile, or has forgotten the time: storage has what there is.
        plan = plan_read(relation, context.catalog, use_indexes=False)
        _begin(context, statement, plan, parameters, id, as_of, until, feed)
    now = engine.catalog.snapshot()
    engine.dropped(item for i in reads if now.item(i) is None and (item := context.catalog.item(i)) is not None)
    subscription = _Running(context, id, until, backlog, waiting, progress=statement.progress)
    return SubscriptionFeed(
        statement.query.names,
        statement.query.types,
        statement.snapshot,
        statement.progress,
        receive=subscription.receive,
        ended=lambda: subscription.ended,
        close=subscription.close,
        on_news=backlog.on_news,
        patience_s=subscription.patience_s,
    )


def _begin(
    context: ReadContext,
    statement: Subscribe,
    plan: ReadPlan,
    parameters: Sequence[Literal],
    id: str,
    as_of: Time | None,
    until: Frontier,
    feed: Feed,
) -> None:
    """Has the cluster keep ``feed`` told from ``as_of`` on.  ``NoLongerReadableError``, ``ObjectDroppedError``."""
    facts = plan.facts
    optimized = substitute_parameters(plan.relation, parameters) if plan.parameterised else plan.relation
    operators = lower_subscribe(
        optimized, id, facts.indexes, with_snapshot=statement.snapshot, unique_keys=facts.unique_keys
    )
    operators = name_operators(operators, object_names(context.catalog))
    with context.engine.control() as controller:
        with held_time(context, controller, imported(operators), plan.tables, as_of) as at:
            if until <= at:
                raise make_error("22023", f"UP TO {until} is not after AS OF {at}")
            description = DataflowDescription(statement.name or "subscription", operators, at, until)
            controller.create_dataflow(description, as_of=at, cluster=context.cluster.id)
        context.cluster.feed(id, feed)


def _dropped_error(item: CatalogItem) -> Error:
    return make_error(
        "42P01",
        f'the subscription was ended: {item.kind.value} "{item.name}", which it reads, was dropped',
        hint="Subscribe again to what there is now.",
    )


def subscribe_text(
    query: str, *, named: bool, snapshot: bool, progress: bool, as_of: int | None, up_to: int | None
) -> str:
    """The statement that subscribes to ``query``: a SELECT, or the name of an object, which ``named`` says there is."""
    options = f"WITH (SNAPSHOT = {str(snapshot).lower()}, PROGRESS = {str(progress).lower()})"
    bounds = ("" if as_of is None else f" AS OF {int(as_of)}") + ("" if up_to is None else f" UP TO {int(up_to)}")
    # A name of nothing is taken for a name too: then the error says so.
    called = named or _NAME.fullmatch(query) is not None
    what = f"TO {query}" if called else f"({query.rstrip().rstrip(';')})"
    return f"SUBSCRIBE {what}{bounds} {options}"


class _Running:
    """One thread receives; any thread closes."""

    def __init__(
        self,
        context: ReadContext,
        id: str,
        until: Frontier,
        backlog: Backlog,
        waiting: Callable[[Interrupt], AbstractContextManager[None]],
        *,
        progress: bool,
    ) -> None:
        self._engine = context.engine
        self._id = id
        self._until = until
        self._backlog = backlog
        self._waiting = waiting
        self._progress = progress
        self._news = time.monotonic()  # when time was last known to pass; the receiving thread's
        self._begun = False  # the state that it begins with is known
        self.ended = False

    def receive(self, timeout: float | None, from_first: bool) -> Change | None:
        given = Interrupt(None)
        return self._engine.apart.run(lambda: self._receive_unless(given, timeout, from_first), given.cancel)

    def _receive_unless(self, given: Interrupt, timeout: float | None, from_first: bool) -> Change | None:
        with self._waiting(given):
            return self._receive(timeout, from_first, given)

    def _receive(self, timeout: float | None, from_first: bool, interrupt: Interrupt) -> Change | None:
        with interrupt.waking(self._backlog.look_again):
            return self._next_change(timeout, from_first, interrupt)

    def _next_change(self, timeout: float | None, from_first: bool, interrupt: Interrupt) -> Change | None:
        since = time.monotonic()
        while not self.ended:
            waits = timeout is None or (from_first and not self._begun)
            remaining = None if timeout is None or waits else max(0.0, since + timeout - time.monotonic())
            patience = (s for s in (remaining, self.patience_s()) if s is not None)
            response = self._backlog.get(min(patience, default=None))
            if response is None:
                self._engine.check_usable()
                interrupt.check()
                self._tick()
                if remaining is not None and remaining <= 0:
                    return None
                continue
            self._news = time.monotonic()
            if not self._begun:
                self._begun, since = True, self._news
            if isinstance(response, Error):
                self.close()
                raise response
            change = self._change(response)
            if change is not None:
                return change
        return None

    def patience_s(self) -> float | None:
        """For how long only news gives the reader something to do; None: for ever."""
        waits = []
        if self._progress:
            waits.append(max(0.0, self._news + _PROGRESS_S - time.monotonic()) + _TICK_S)
        if self._until != EMPTY and self._engine.store.tables_upper < self._until:
            waits.append(_TICK_S)
        if not self._engine.usable_at_once:
            waits.append(_TICK_S)
        return min(waits, default=None)

    def _tick(self) -> None:
        """While nothing is written, no time closes: an empty commit does it where somebody waits for one."""
        store, now = self._engine.store, time.monotonic()
        due = self._until != EMPTY and store.tables_upper < self._until <= self._engine.timeline.now()
        if due or (self._progress and now - self._news > _PROGRESS_S):
            try:
                self._engine.commit({})
            except OperationalError as problem:
                # The disk of the directory is full, say: the time closes once it is not.
                _log.warning("a time is not closed: %s", problem.message)
            self._news = now

    def _change(self, response: SubscribeResponse) -> Change | None:
        if response.error is not None:
            sqlstate, message, detail = response.error
            self.close()
            raise make_error(sqlstate, message, detail=detail, hint=response.hint)
        if response.upper >= self._until or response.upper == EMPTY:
            self.ended = True
            self.close()
        batch = response.rows.payload if response.rows is not None else None
        if batch is None:
            return Change(Time(response.lower), Frontier(response.upper), Batch.empty(())) if self._progress else None
        assert isinstance(batch, Batch)
        if not len(batch) and not self._progress:
            return None
        return Change(Time(response.lower), Frontier(response.upper), batch)

    def close(self) -> None:
        self.ended = True
        if self._engine.forked():
            return
        self._backlog.look_again()  # whoever waits for changes is to see that
        self._engine.apart.run(lambda: self._engine.end_subscription(self._id))
