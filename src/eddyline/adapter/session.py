"""Sessions: one statement at a time, in a transaction, by kind of statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar, get_args

from eddyline.adapter import write
from eddyline.adapter.apart import on_caller
from eddyline.adapter.as_of import time_asked
from eddyline.adapter.asked_lookups import AskedLookups, KnownLookup, Rows
from eddyline.adapter.bulk_writes import BulkWrites
from eddyline.adapter.catalog import CatalogSnapshot, SearchPathView, resolve_name
from eddyline.adapter.copy import HANDED_OVER, copy
from eddyline.adapter.cursors import Cursors
from eddyline.adapter.define import Definition, define, truncate
from eddyline.adapter.engine import Engine
from eddyline.adapter.explain import explain
from eddyline.adapter.finishing import constant_value
from eddyline.adapter.hydration import dataflows_behind, wait_hydrated
from eddyline.adapter.named_statements import NamedStatement, SessionStatements, aborted
from eddyline.adapter.outcome import Outcome, SubscriptionFeed
from eddyline.adapter.prepare import Prepared, bind_parsed, is_prepared, literals_of, prepare_text
from eddyline.adapter.read import Interrupt, ReadContext
from eddyline.adapter.read_plan import plan_read
from eddyline.adapter.role_settings import login_settings
from eddyline.adapter.running import Call, Running
from eddyline.adapter.selecting import explain_analyze, select
from eddyline.adapter.session_role import SessionRole
from eddyline.adapter.session_sequences import SessionSequences
from eddyline.adapter.session_transaction import SessionTransaction, TransactionStatus
from eddyline.adapter.setting_statements import literal_result, setting_statement
from eddyline.adapter.setting_values import duration_s
from eddyline.adapter.settings import InForce, Settings
from eddyline.adapter.shared_texts import shared_statement
from eddyline.adapter.short_memory import admitted
from eddyline.adapter.subscribe import open_subscription, subscribe_text
from eddyline.adapter.system_relations import SessionFacts
from eddyline.adapter.system_settings import MAX_SUBSCRIPTION_BACKLOG
from eddyline.errors import Error, InterfaceError, exhausted, make_error, unsupported
from eddyline.expr.ir import Literal, LiteralValue
from eddyline.repr.time import Time
from eddyline.sql import statements as st
from eddyline.sql.arguments import coerce_arguments
from eddyline.sql.parse import ParsedStatement, parse

__all__ = ["Session"]

T = TypeVar("T")
_MANY_ROWS = 2_000  # rows of executemany that become columns at a time
_DEFINITIONS = get_args(Definition)
_ALLOWED_WHEN_FAILED = (st.Rollback, st.RollbackTo, st.Commit)


class Session:
    """``user``: a role, whose rights it has.  ``ended``: called once, when it is closed."""

    def __init__(self, engine: Engine, user: str = "postgres", *, ended: Callable[[], None] = lambda: None) -> None:
        self._engine = engine
        self._ended = ended
        self._turn = threading.RLock()  # one statement at a time
        self._closed = False
        login = login_settings(engine.catalog.snapshot(), user)
        self._settings = Settings(engine.system, user, self._is_superuser, self._cluster_names, login)
        self.cursors = Cursors()  # owner: the running statement
        self._sequences = SessionSequences(engine, lambda: self._role)
        self._transaction = SessionTransaction(engine, self._settings, self.cursors, self._seen, self._sequences)
        self._role = SessionRole(engine, self._settings, self._transaction.catalog, user)
        self.bulk = BulkWrites(engine, self._role, self._transaction.catalog, self._run_bulk)
        #: what it has parsed, bound and prepared; owner: the running statement
        self.statements = SessionStatements(
            engine, self._names, lambda: self._transaction.failed, self._transaction.fail, self.cursors
        )
        self._running = Running()
        self._asked = AskedLookups(engine, self._running)
        #: what others see of it
        self.activity = engine.sessions.enter(user, lambda: self._transaction.current, self._settings.get, self.cancel)
        self._facts = SessionFacts(self._settings.shown, engine.sessions.seen, self.activity.number)

    # -- life -----------------------------------------------------------------------------------------------------

    def check_usable(self) -> None:
        if self._closed:
            raise InterfaceError("the session is closed")
        self._engine.check_usable()

    @property
    def in_transaction(self) -> bool:
        return self._transaction.explicit is not None

    @property
    def settings_state(self) -> InForce:
        """What is in force; another object after each change, of the database's settings too."""
        return self._settings.in_force

    def _is_superuser(self, role: str) -> bool:
        return self._engine.catalog.snapshot().access.is_superuser(role)

    def _cluster_names(self) -> set[str]:
        return self._engine.catalog.snapshot().cluster_names()

    def setting(self, name: str) -> str:
        """The value in force; 42704."""
        return self._settings.get(name)

    def begin_with(self, name: str, value: str) -> None:
        """As SET does, and what RESET goes back to: what a client asks for as it comes.  42704, 55P02, 22023, 42501."""
        if self._role.become(st.Set(name.lower(), (value,))) is None:
            self._settings.begin_with(name, value)

    def duration_s(self, name: str) -> float | None:
        """The setting of that name, which is a duration; None for none."""
        return duration_s(self._settings.get(name))

    @property
    def zone(self) -> str | None:
        """TimeZone; None is UTC."""
        return self._settings.in_force.zone

    @property
    def status(self) -> TransactionStatus:
        """What the protocol tells clients after each request."""
        return self._transaction.status

    def close(self) -> None:
        """Rolls back and ends the session, cancelling what runs.  Twice is harmless."""
        if self._closed:
            return
        self._closed = True
        self._engine.sessions.leave(self.activity)
        if self._engine.forked():
            return  # its locks may be held by threads that the child does not have
        try:
            self._engine.apart.run(self._close)
        finally:
            self._ended()

    def _close(self) -> None:
        self._running.cancel()
        with self._turn:
            self._transaction.end(committed=False)
            self.cursors.clear()
            self.statements.clear()
            self._asked.clear()

    def cancel(self) -> None:
        """From any thread: the running statement, and waits for a subscription's changes, fail with 57014."""
        self._engine.apart.run(self._running.cancel)

    @property
    def interrupt(self) -> Interrupt:
        """What the running statement is to end with: 57014, 53200.  On its thread."""
        return self._running.interrupt

    @contextmanager
    def _waiting(self, interrupt: Interrupt) -> Iterator[None]:
        """While a subscription of this session, or the hydration of something, is waited for."""
        self.check_usable()
        with self._running.waiting(interrupt):
            yield

    # -- statements that are prepared first -----------------------------------------------------------------------

    def execute_bound(self, statement: NamedStatement, arguments: Sequence[Literal], *, file: Any = None) -> Outcome:
        """As ``execute``, with literals of the statement's parameter types."""
        literals = tuple(arguments)
        if file is None:
            with self._turn:
                self.check_usable()
                if self._transaction.idle:
                    quick = self._asked.answer_bound(statement, literals, self._settings.in_force)
                    if quick is not None:
                        return quick
        return self._apart(
            lambda: self._counted(lambda interrupt: self._execute_shared(statement, literals, interrupt, file))
        )

    # -- lookups without a thread -------------------------------------------------------------------------------------

    def known_lookup(self, statement: NamedStatement) -> KnownLookup | None:
        """What ``rows_at_once`` answers it with, if it was asked before and is a lookup."""
        return self._asked.known(statement.asked_as, self._settings.in_force)

    def rows_at_once(self, known: KnownLookup, literals: Sequence[LiteralValue]) -> Rows | None:
        """The rows as Python values, for a thread that must not wait.  None: nothing has happened, ask otherwise."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            if not self._transaction.idle or self._closed or not self._engine.usable_at_once:
                return None
            return self._asked.rows(known, literals, self._settings.in_force)
        finally:
            self._turn.release()

    # -- blocks: statements that a client sends together --------------------------------------------------------------

    def begin_block(self) -> None:
        """From here to ``end_block`` statements outside of a transaction make one, which is committed there.

        BEGIN makes it an explicit one.
        """
        self._transaction.block = True

    def end_block(self) -> None:
        """Commits what the block's statements have done; rolls it back if one of them failed.  Raises as ``commit``."""
        with self._turn:
            self._transaction.block = False
            if self._transaction.implicit:
                self._run(self._transaction.commit)

    def fail(self) -> None:
        """Something that the client asked for went wrong outside of any statement: its transaction is failed too."""
        self._transaction.fail()

    # -- statements -----------------------------------------------------------------------------------------------

    def execute(self, text: str, parameters: Sequence[Any] | None = None, *, file: Any = None) -> Outcome:
        """Runs the one statement of ``text``.  ``file``: what COPY FROM STDIN reads or TO STDOUT writes."""
        if file is None and not self._engine.apart.serving:
            # On this thread, whatever it is: there is nothing that an interrupt could leave half done.
            with self._turn:
                self.check_usable()
                if self._transaction.idle:
                    outcome = self._asked.answer(text, parameters, self._settings.in_force)
                    if outcome is None and parameters is None and type(text) is str:
                        outcome = self._answer_shared(text)
                    if outcome is not None:
                        return outcome
        with self.activity.request(text):
            return self._apart(lambda: self._counted(lambda stop: self._execute(text, parameters, stop, file)))

    def shared(self, text: str) -> tuple[NamedStatement, tuple[Literal, ...]] | None:
        """The statement that ``text`` shares with those that differ by literals alone, and its literals, for
        ``execute_bound``; None: it is to be bound by itself.
        """
        return None if self._transaction.failed else shared_statement(self._engine, text, self._names())

    def _answer_shared(self, text: str) -> Outcome | None:
        """The answer of a lookup that was asked before, with other literals; None: ask otherwise."""
        shared = shared_statement(self._engine, text, self._names(), learn=False)
        return None if shared is None else self._asked.answer_bound(*shared, self._settings.in_force)

    def _apart(self, body: Callable[[], T]) -> T:
        """``body()`` in its turn, where nothing interrupts it half-way."""

        call = Call()

        def run() -> T:
            with self._turn, self._running.call(call):
                self.check_usable()
                return body()

        return self._engine.apart.run(run, lambda: self._running.cancel_call(call))

    def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> Outcome:
        """Once per row of parameters, all in one transaction."""
        with self.activity.request(text):
            return self._apart(lambda: self._execute_many(text, rows))

    def _execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> Outcome:
        own = self._transaction.current is None
        if own:
            self._transaction.begin(st.Begin())
        affected = 0
        outcome = Outcome("")
        try:
            given = on_caller(lambda: iter(rows))
            while part := on_caller(lambda: list(islice(given, _MANY_ROWS))):
                at_once = self._run(partial(self._insert_each, text, part)) if len(part) > 1 else None
                for outcome in (self.execute(text, row) for row in part) if at_once is None else (at_once,):
                    affected += max(outcome.affected, 0)
        except BaseException:
            if own:
                self._transaction.end(committed=False)
            raise
        finished = self.commit() if own else None
        return Outcome(outcome.tag, affected=affected, time=finished)

    def _insert_each(self, text: str, rows: Sequence[Sequence[Any]], interrupt: Interrupt) -> Outcome | None:
        """The rows of ``executemany`` in one go, where they are rows of a plain INSERT; None where not."""
        if self._transaction.current is None or self._transaction.failed:
            return None
        try:
            catalog = self._names()
            prepared = prepare_text(self._engine, text, catalog, rows[0])
            if prepared is None or prepared.guessed or prepared.plan is None:
                return None
            statement, plan = prepared.statement, prepared.plan
            if not isinstance(statement, st.Insert) or not write.can_insert_each(statement, plan):
                return None
            self._role.authorize(statement)
            self._engine.memory.admit()
            literals = [literals_of(prepared.param_types, row, self._settings.in_force.zone) for row in rows]
            return self._transaction.run(
                interrupt, lambda context: write.insert_each(context, statement, literals, plan)
            )
        except BaseException:
            self._transaction.fail()
            raise

    def execute_script(self, text: str) -> Outcome:
        """All statements of ``text`` in order; the last one's outcome."""
        with self.activity.request(text):
            return self._apart(lambda: self._execute_each(parse(text)))

    def _execute_each(self, statements: Sequence[ParsedStatement]) -> Outcome:
        outcome = Outcome("")
        for parsed in statements:
            outcome = self._counted(partial(self._execute_parsed, parsed))
        return outcome

    def _counted(self, body: Callable[[Interrupt], T]) -> T:
        """Runs a statement, whose outcome counts in the metrics."""
        error: BaseException | None = None
        try:
            return self._run(body)
        except BaseException as problem:
            error = problem
            raise
        finally:
            self._engine.metrics.statement(error)

    def _run(self, body: Callable[[Interrupt], T]) -> T:
        with self._running.statement(self._settings.in_force.statement_timeout_s) as interrupt:
            if self._closed:  # by a ``close`` that came too early to cancel this
                interrupt.cancel()
            try:
                return body(interrupt)
            except (RecursionError, MemoryError) as problem:
                raise exhausted(problem) from problem

    def _execute(self, text: str, parameters: Sequence[Any] | None, interrupt: Interrupt, file: Any) -> Outcome:
        catalog = self._names()
        if parameters is None and type(text) is str and not is_prepared(self._engine, text, catalog):
            shared = self.shared(text)
            if shared is not None:
                return self._execute_shared(*shared, interrupt, file)
        try:
            prepared = prepare_text(self._engine, text, catalog, parameters)
        except Error:
            if self._transaction.failed:
                parse(text)  # a syntax error comes first
                raise aborted() from None
            self._transaction.fail()
            raise
        if prepared is None:
            return Outcome("")
        outcome = self._execute_prepared(prepared, parameters, interrupt, file)
        if self._transaction.current is None and isinstance(prepared.statement, st.Select):
            self._asked.remember(text, parameters, catalog.version, self._settings.in_force, prepared)
        return outcome

    def _execute_shared(
        self, statement: NamedStatement, literals: tuple[Literal, ...], interrupt: Interrupt, file: Any
    ) -> Outcome:
        outcome = self._execute_with(statement.prepared, lambda: literals, interrupt, file)
        if self._transaction.current is None:
            self._asked.remember_bound(statement, self._settings.in_force)
        return outcome

    def _execute_parsed(self, parsed: Any, interrupt: Interrupt) -> Outcome:
        try:
            prepared = bind_parsed(parsed, self._names())
        except Error:
            if self._transaction.failed:
                raise aborted() from None
            self._transaction.fail()
            raise
        return self._execute_prepared(prepared, None, interrupt, None)

    def _execute_prepared(
        self, prepared: Prepared, parameters: Sequence[Any] | None, interrupt: Interrupt, file: Any
    ) -> Outcome:
        types, zone = prepared.param_types, self._settings.in_force.zone
        return self._execute_with(prepared, lambda: literals_of(types, parameters, zone), interrupt, file)

    def _execute_with(
        self, prepared: Prepared, arguments: Callable[[], tuple[Literal, ...]], interrupt: Interrupt, file: Any
    ) -> Outcome:
        statement = prepared.statement
        if self._transaction.failed and not isinstance(statement, _ALLOWED_WHEN_FAILED):
            raise aborted()
        try:
            literals = arguments()
            session_level = self._session_statement(statement, interrupt)
            if session_level is not None:
                return session_level
            if isinstance(statement, st.Execute):
                return self._execute_named(statement, interrupt, file)
            if self._transaction.block and self._transaction.current is None:
                self._transaction.begin_implicit()
            return self._transaction.run(interrupt, lambda context: self._statement(context, prepared, literals, file))
        except BaseException:
            self._transaction.fail()
            raise

    def _names(self) -> SearchPathView:
        """The catalog as the session's settings show it."""
        return self._seen(self._transaction.catalog())

    def _seen(self, catalog: CatalogSnapshot) -> SearchPathView:
        path, settings = self._role.search_path, self._settings.in_force
        return catalog.view(path, settings.zone, settings.users, settings.cluster, self._facts)

    # -- transactions ---------------------------------------------------------------------------------------------

    def commit(self) -> Time | None:
        """Commits the open transaction; its time, None if it wrote nothing or there is none."""
        return self._apart(lambda: self._counted(self._transaction.commit))

    def rollback(self) -> None:
        """Rolls the open transaction back."""
        self._apart(lambda: self._transaction.end(committed=False))

    # -- statements that only concern the session -------------------------------------------------------------------

    def _session_statement(self, statement: st.Statement, interrupt: Interrupt) -> Outcome | None:
        done = self._transaction.statement(statement, interrupt)
        if done is not None:
            return done
        match statement:
            case st.Prepare():
                return self._prepare(statement)
            case st.Deallocate():
                return self.statements.deallocate(statement)
            case st.Discard():
                return self._discard(statement)
            case st.Unlisten():
                return Outcome("UNLISTEN")
            case st.Fetch():
                return self.cursors.fetch(statement)
            case st.CloseCursor():
                return self.cursors.close(statement)
            case _:
                return setting_statement(self._engine, self._settings, self._role, self._transaction.current, statement)

    def _prepare(self, statement: st.Prepare) -> Outcome:
        declared = {i: t for i, t in enumerate(statement.param_types, 1) if t is not None}
        self.statements.add(statement.name, NamedStatement.bound(statement.parsed, declared, self._names()))
        return Outcome("PREPARE")

    def _execute_named(self, statement: st.Execute, interrupt: Interrupt, file: Any) -> Outcome:
        catalog = self._names()
        prepared = self.statements.get(statement.name).prepared
        values = [constant_value(a) for a in coerce_arguments(statement, prepared.param_types, catalog.zone)]
        return self._execute_prepared(prepared, values, interrupt, file)

    def _discard(self, statement: st.Discard) -> Outcome:
        if statement.target == "all":
            if self._transaction.current is not None:
                raise make_error("25001", "DISCARD ALL cannot run inside a transaction block")
            self.statements.clear()
            self.cursors.clear()
            self._settings.reset(None)
            self._role.become(st.Reset("session_authorization"))
        if statement.target in ("all", "sequences"):
            self._sequences.clear()
        return Outcome(f"DISCARD {statement.target.upper()}")

    # -- statements in a transaction --------------------------------------------------------------------------------

    def _statement(self, context: ReadContext, prepared: Prepared, literals: tuple[Literal, ...], file: Any) -> Outcome:
        statement = prepared.statement
        self._role.authorize(statement)
        with admitted(context, statement) as allowed:
            return self._run_statement(allowed, prepared, literals, file)

    def _run_statement(
        self, context: ReadContext, prepared: Prepared, literals: tuple[Literal, ...], file: Any
    ) -> Outcome:
        statement = prepared.statement
        match statement:
            case st.Select():
                return select(context, statement, prepared.plan, literals)
            case st.Insert():
                return write.insert(context, statement, literals, prepared.plan)
            case st.Update():
                return write.update(context, statement, literals, prepared.plan)
            case st.Delete():
                return write.delete(context, statement, literals, prepared.plan)
            case st.Truncate():
                return truncate(context, statement, self._role.acting)
            case st.Copy() if statement.subscribe is not None:
                if file is not HANDED_OVER:
                    raise unsupported("COPY of a subscription", hint="Use subscribe().")
                return replace(self._subscribe(context, statement.subscribe, literals), tag="COPY")
            case st.Copy():
                return copy(context, statement, literals, file)
            case st.DeclareCursor():
                return self._declare_cursor(context, statement, literals)
            case st.Subscribe():
                return self._subscribe(context, statement, literals)
            case st.Explain() if statement.analyze:
                return Outcome("EXPLAIN", explain_analyze(context, statement, literals))
            case st.Explain():
                return Outcome("EXPLAIN", explain(statement, context.catalog))
            case st.ShowObjects():
                return Outcome("SHOW", literal_result(statement.names, statement.types, statement.rows))
            case _ if isinstance(statement, _DEFINITIONS):
                return define(context, self._role.named(statement), self._role.acting)
            case _:
                raise make_error("0A000", f"{type(statement).__name__} is not supported")

    def _subscribe(self, context: ReadContext, statement: st.Subscribe, literals: tuple[Literal, ...]) -> Outcome:
        feed = open_subscription(
            context,
            statement,
            literals,
            as_of=time_asked(statement.as_of, literals, context),
            up_to=time_asked(statement.up_to, literals, context),
            waiting=self._waiting,
            max_backlog=self._settings.bytes(MAX_SUBSCRIPTION_BACKLOG),
        )
        return Outcome("SUBSCRIBE", feed=feed)

    def _declare_cursor(
        self, context: ReadContext, statement: st.DeclareCursor, literals: tuple[Literal, ...]
    ) -> Outcome:
        if self._transaction.current is None and not statement.hold:
            raise make_error("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        self.cursors.check_free(statement.name)
        query = statement.query
        if isinstance(query, st.Subscribe):
            outcome = self._subscribe(context, query, literals)
        else:
            outcome = select(context, query, plan_read(query.query.relation, context.catalog), literals)
        self.cursors.declare(statement, outcome)
        if self._transaction.current is None:
            self.cursors.end_transaction(committed=True)
        return Outcome("DECLARE CURSOR")

    # -- bulk calls -------------------------------------------------------------------------------------------------

    def _run_bulk(self, body: Callable[[ReadContext], Outcome]) -> Outcome:
        return self._apart(lambda: self._run_as_statement(body))

    def _run_as_statement(self, body: Callable[[ReadContext], Outcome]) -> Outcome:
        if self._transaction.failed:
            raise aborted()
        try:
            return self._counted(lambda interrupt: self._transaction.run(interrupt, body))
        except BaseException:
            self._transaction.fail()
            raise

    # -- subscriptions and hydration ----------------------------------------------------------------------------------

    def subscribe(
        self,
        query: str,
        *,
        snapshot: bool,
        progress: bool,
        as_of: int | None,
        up_to: int | None,
        parameters: Sequence[Any] | None,
    ) -> SubscriptionFeed:
        named = resolve_name(query, self._transaction.catalog(), self._role.search_path)[1] is not None
        text = subscribe_text(query, named=named, snapshot=snapshot, progress=progress, as_of=as_of, up_to=up_to)
        outcome = self.execute(text, parameters)
        assert outcome.feed is not None
        return outcome.feed

    def wait_hydrated(self, name: str, *, timeout: float | None, report: Callable[[int], None]) -> None:
        """Waits for the dataflows behind ``name``: an index, a materialized view, or a table or view's indexes.

        42P01, 42501 without any right on it, 57014.
        """
        self.check_usable()
        catalog = self._transaction.catalog()
        item = resolve_name(name, catalog, self._role.search_path)[1]
        if item is None:
            raise make_error("42P01", f'relation "{name}" does not exist')
        self._role.check_any(item)
        ids = dataflows_behind(item, catalog)
        interrupt = Interrupt(self._settings.in_force.statement_timeout_s)

        def wait() -> None:
            with self._waiting(interrupt):
                wait_hydrated(self._engine, ids, name, interrupt, timeout, report)

        self._engine.apart.run(wait, interrupt.cancel)
