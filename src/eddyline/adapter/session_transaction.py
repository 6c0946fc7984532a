"""The transaction of a session: how one begins, what runs in it, and how it ends.

Invariants:
I1  outside of a transaction each statement has one of its own, committed right after it; within a *block*, of
    statements that a client sends together, the first one begins an *implicit* transaction, committed at its end;
I2  one in which a statement failed only ends: by ROLLBACK, ROLLBACK TO or a COMMIT that rolls it back;
I3  at its end cursors are told, locks and holds given back, and settings of its own gone; a rollback also brings back
    those that it found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from eddyline.adapter.catalog import CatalogSnapshot, SearchPathView
from eddyline.adapter.cursors import Cursors
from eddyline.adapter.define import commit_with_definitions
from eddyline.adapter.engine import Engine
from eddyline.adapter.notices import warning
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read import Interrupt, ReadContext
from eddyline.adapter.session_sequences import SessionSequences
from eddyline.adapter.setting_statements import same_kind, set_transaction
from eddyline.adapter.setting_values import isolation_level
from eddyline.adapter.settings import Settings
from eddyline.adapter.transaction import Transaction
from eddyline.errors import make_error
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.sql import statements as st

__all__ = ["SessionTransaction", "TransactionStatus"]

#: I: no transaction, T: in one, E: in one that has failed
TransactionStatus: TypeAlias = str


class SessionTransaction:
    """``seen``: a version of the catalog as the session sees it.  Owner: the session's running statement."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        cursors: Cursors,
        seen: Callable[[CatalogSnapshot], SearchPathView],
        sequences: SessionSequences,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._cursors = cursors
        self._seen = seen
        self._sequences = sequences
        #: the explicit one, or the implicit one of a block
        self.current: Transaction | None = None
        #: whether what runs is one of the statements that a client sends together
        self.block = False

    # -- what there is --------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether the next statement has a transaction of its own, and commits it."""
        return self.current is None and not self.block

    @property
    def explicit(self) -> Transaction | None:
        """The one that a BEGIN began."""
        return None if self.current is None or self.current.implicit else self.current

    @property
    def implicit(self) -> bool:
        """Whether a block's statements have begun one, which its end commits."""
        return self.current is not None and self.current.implicit

    @property
    def failed(self) -> bool:
        return self.current is not None and self.current.failed

    @property
    def status(self) -> TransactionStatus:
        if self.explicit is None:
            return "I"
        return "E" if self.failed else "T"

    def catalog(self) -> CatalogSnapshot:
        """As the transaction has it; the newest where it has not begun to read."""
        if self.current is not None and self.current.catalog is not None:
            return self.current.catalog
        return self._engine.catalog.snapshot()

    def fail(self) -> None:
        if self.current is not None:
            self.current.failed = True

    # -- statements that only concern it --------------------------------------------------------------------------

    def statement(self, statement: st.Statement, interrupt: Interrupt) -> Outcome | None:
        """What one of BEGIN … ROLLBACK TO SAVEPOINT does; None for any other.  25P01, 25001, 3B001, as ``commit``."""
        match statement:
            case st.Begin():
                return self.begin(statement)
            case st.Commit():
                return self._commit_statement(statement, interrupt)
            case st.Rollback():
                return self._rollback_statement(statement)
            case st.Savepoint():
                self._required("SAVEPOINT").savepoint(statement.name, self._settings.state)
                return Outcome("SAVEPOINT")
            case st.Release():
                self._required("RELEASE SAVEPOINT").release(statement.name)
                return Outcome("RELEASE")
            case st.RollbackTo():
                self._settings.state = self._required("ROLLBACK TO SAVEPOINT").rollback_to(statement.name)
                return Outcome("ROLLBACK")
            case _:
                return None

    def _required(self, what: str) -> Transaction:
        if self.explicit is None:
            raise make_error("25P01", f"{what} can only be used in transaction blocks")
        return self.explicit

    def begin(self, statement: st.Begin) -> Outcome:
        if self.current is not None:
            return self._begin_again(self.current, statement)
        in_force = self._settings.in_force
        level = in_force.isolation if statement.isolation is None else isolation_level(statement.isolation)
        self.current = Transaction(True, level)
        self.current.read_only = in_force.read_only if statement.read_only is None else statement.read_only
        self.current.settings = self._settings.state
        return Outcome(statement.tag)

    def begin_implicit(self) -> None:
        """Where a block begins to do something."""
        self.begin(st.Begin())
        assert self.current is not None, "just begun"
        self.current.implicit = True

    def _begin_again(self, transaction: Transaction, statement: st.Begin) -> Outcome:
        """In a transaction: only an implicit one becomes something else, an explicit one."""
        if not transaction.implicit:
            return Outcome(statement.tag, notices=(warning("there is already a transaction in progress", "25001"),))
        set_transaction(self._settings, transaction, st.SetTransaction(statement.isolation, statement.read_only))
        transaction.implicit = False
        return Outcome(statement.tag)

    def _commit_statement(self, statement: st.Commit, interrupt: Interrupt) -> Outcome:
        explicit = self.explicit
        if explicit is None:
            if statement.chain:
                self._required("COMMIT AND CHAIN")
            committed = self.commit(interrupt)
            return Outcome("COMMIT", notices=(warning("there is no transaction in progress", "25P01"),), time=committed)
        failed, next_one = explicit.failed, same_kind(explicit)
        committed = self.commit(interrupt)
        if statement.chain:
            self.begin(next_one)
        return Outcome("ROLLBACK" if failed else "COMMIT", time=committed)

    def _rollback_statement(self, statement: st.Rollback) -> Outcome:
        explicit = self.explicit
        if explicit is None:
            if statement.chain:
                self._required("ROLLBACK AND CHAIN")
            self.end(committed=False)
            return Outcome("ROLLBACK", notices=(warning("there is no transaction in progress", "25P01"),))
        next_one = same_kind(explicit)
        self.end(committed=False)
        if statement.chain:
            self.begin(next_one)
        return Outcome("ROLLBACK")

    # -- what runs in it ------------------------------------------------------------------------------------------

    def run(self, interrupt: Interrupt, body: Callable[[ReadContext], Outcome]) -> Outcome:
        """Runs ``body`` in the open transaction, or in one of its own that is committed after it."""
        transaction, settings = self.current, self._settings.in_force
        own = transaction is None
        if transaction is None:
            transaction = Transaction(False, settings.isolation)
            transaction.read_only = settings.read_only
        transaction.lock_timeout_s = settings.lock_timeout_s
        try:
            transaction.begin_reading(self._engine)
            assert transaction.catalog is not None
            context = ReadContext(
                self._engine,
                transaction,
                self._seen(transaction.catalog),
                interrupt,
                self._sequences,
                settings.read_bounds,
            )
            outcome = body(context)
            if not own:
                return outcome
            committed = self._commit_writes(transaction, interrupt)
            if committed is None:
                return outcome
            return Outcome(outcome.tag, outcome.result, outcome.affected, outcome.notices, committed, outcome.feed)
        finally:
            if own:
                transaction.end(self._engine)

    # -- its end --------------------------------------------------------------------------------------------------

    def commit(self, interrupt: Interrupt) -> Time | None:
        """Commits it, or rolls it back if it has failed; its time, None if it wrote nothing or there is none.

        40001, 40P01, 55P03, 57014, and what the directory's disk refuses (53100 …): then it is rolled back.
        """
        transaction = self.current
        if transaction is None:
            return None
        committed = False
        try:
            at = None if transaction.failed else self._commit_writes(transaction, interrupt)
            committed = not transaction.failed
            return at
        finally:
            self.end(committed=committed)

    def _commit_writes(self, transaction: Transaction, interrupt: Interrupt) -> Time | None:
        if not transaction.changed:
            return None
        engine = self._engine
        settings = self._settings.in_force
        with interrupt.waking(engine.locks.look_again):
            engine.locks.acquire(
                transaction.owner,
                # What else it writes it only adds to, for which nobody has to be kept out but who reads it to write it.
                transaction.writes.keys() - transaction.owner.held,
                timeout_s=settings.lock_timeout_s,
                check=interrupt.check,
                deadline=interrupt.deadline,
                shared=True,
            )
        writes = {t: Batch.concat(b[0].types, b) for t, b in transaction.writes.items()}
        with engine.commit_lock:  # nobody writes or drops between the checks and the commit
            engine.check_usable()
            there = engine.catalog.snapshot().by_id
            if any(t not in there and transaction.built(t) for t in writes):
                raise make_error("40001", "a table of the transaction was dropped meanwhile")
            transaction.check_reads(engine)
            interrupt.check()
            begun = commit_with_definitions(
                engine, transaction.definitions, writes, wait=settings.synchronous, checked=transaction.checked()
            )
        return None if begun is None else engine.finish_commit(begun)

    def end(self, *, committed: bool) -> None:
        transaction, self.current = self.current, None
        if transaction is not None:
            self._cursors.end_transaction(committed=committed)
            if not committed and transaction.settings is not None:
                self._settings.state = transaction.settings
            transaction.end(self._engine)
        self._settings.end_transaction()
