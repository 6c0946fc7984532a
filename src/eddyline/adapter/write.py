"""INSERT, UPDATE, DELETE, TRUNCATE and the bulk calls: what they retract and add.

A write that reads first holds the write locks of what it reads and writes until the transaction ends, and reads the
present (in an explicit transaction: T*, provided nothing it locks has changed since, else 40001).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa

from eddyline.adapter.answer import read_rows
from eddyline.adapter.computed_columns import evaluate_columns, late_columns, raise_evaluation, without_clock
from eddyline.adapter.constant_rows import constant_rows_of_each, is_one_row_of_parameters
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.pending_keys import PendingKeys
from eddyline.adapter.pending_reads import answer_with_pending, reads_pending
from eddyline.adapter.read import ReadContext
from eddyline.adapter.read_plan import ReadPlan, base_tables, plan_read
from eddyline.errors import make_error
from eddyline.expr.evaluate import evaluate, true_rows
from eddyline.expr.ir import Literal, Parameter, walk
from eddyline.expr.text_io import sample_rows
from eddyline.plan.fast_path import ConstantPlan
from eddyline.plan.late import Late
from eddyline.plan.relation import Relation
from eddyline.plan.traverse import gets
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.batch import Batch, concat_arrays
from eddyline.repr.time import Time
from eddyline.repr.types import SqlType
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.statements import Delete, Insert, OnConflict, Returning, Truncate, Update
from eddyline.trace.duplicates import first_equal
from eddyline.trace.order import order_rows
from eddyline.trace.run import consolidate

__all__ = [
    "can_insert_each",
    "check_not_null",
    "delete",
    "delete_rows",
    "insert",
    "insert_each",
    "insert_rows",
    "rows_of",
    "truncate",
    "update",
    "upsert_rows",
    "wait_capacity",
]

_MANY_BATCHES = 16
_AT = Time(0)  # pending rows have no time yet


# -- statements ------------------------------------------------------------------------------------------------------


def insert(context: ReadContext, statement: Insert, parameters: Sequence[Literal], plan: ReadPlan | None) -> Outcome:
    _check_writable(context, "INSERT")
    table = statement.table
    constant = plan is not None and isinstance(plan.fast, ConstantPlan)
    reads = () if constant else base_tables(gets(statement.relation), context.catalog)
    wait_capacity(context, {table.id}, None)
    if reads or statement.on_conflict is not None:
        _lock(context, {table.id, *reads})
    rows = _expanded(rows_of(context, statement.relation, parameters, plan))
    if statement.late is not None:
        rows = _with_late(context, statement.late, rows, parameters)
    if statement.on_conflict is not None and table.primary_key:
        stored = _insert_on_conflict(context, table, rows, statement.on_conflict, parameters)
    else:
        stored = insert_rows(context, table, rows)
    result = _returning(statement.returning, stored, parameters, context)
    return Outcome(f"INSERT 0 {len(stored)}", result=result, affected=len(stored))


def can_insert_each(statement: Insert, plan: ReadPlan) -> bool:
    """Whether many rows of parameters can be inserted at once, as if one after the other."""
    late = () if statement.late is None else statement.late.exprs
    if any(isinstance(node, Parameter) for expr in late for node in walk(expr)):
        return False
    return statement.on_conflict is None and statement.returning is None and is_one_row_of_parameters(plan)


def insert_each(
    context: ReadContext, statement: Insert, parameters: Sequence[Sequence[Literal]], plan: ReadPlan
) -> Outcome:
    """``insert`` once per row of parameters, as one statement.  Requires ``can_insert_each``."""
    _check_writable(context, "INSERT")
    wait_capacity(context, {statement.table.id}, None)
    rows = _untimed(constant_rows_of_each(plan, parameters))
    if statement.late is not None:
        rows = _with_late(context, statement.late, rows, ())
    insert_rows(context, statement.table, rows)
    return Outcome("INSERT 0 1", affected=len(rows))


def update(context: ReadContext, statement: Update, parameters: Sequence[Literal], plan: ReadPlan | None) -> Outcome:
    _check_writable(context, "UPDATE")
    table = statement.table
    wait_capacity(context, {table.id}, None)
    _lock(context, {table.id, *base_tables(gets(statement.relation), context.catalog)})
    found = rows_of(context, statement.relation, parameters, plan)
    if statement.late is not None:
        found = _with_late(context, statement.late, _expanded(found), parameters)
    width = len(table.columns)
    old = Batch(table.types, found.columns[:width], found.times, -found.diffs)
    new = Batch(table.types, found.columns[width : 2 * width], found.times, found.diffs)
    check_not_null(table, new)
    _check_keys(context, table, new, gone=old)
    _add(context, table, old, new)
    affected = int(found.diffs.sum())
    result = _returning(statement.returning, _expanded(found), parameters, context)
    return Outcome(f"UPDATE {affected}", result=result, affected=affected)


def delete(context: ReadContext, statement: Delete, parameters: Sequence[Literal], plan: ReadPlan | None) -> Outcome:
    _check_writable(context, "DELETE")
    table = statement.table
    wait_capacity(context, {table.id}, None)
    _lock(context, {table.id, *base_tables(gets(statement.relation), context.catalog)})
    found = rows_of(context, statement.relation, parameters, plan)
    width = len(table.columns)
    _add(context, table, Batch(table.types, found.columns[:width], found.times, -found.diffs))
    affected = int(found.diffs.sum())
    result = _returning(statement.returning, _expanded(found), parameters, context)
    return Outcome(f"DELETE {affected}", result=result, affected=affected)


def truncate(context: ReadContext, statement: Truncate) -> Outcome:
    _check_writable(context, "TRUNCATE TABLE")
    tables = {t.id for t in statement.tables}
    wait_capacity(context, tables, None)
    _lock(context, tables)
    transaction = context.transaction
    assert transaction.newest is not None
    for table in statement.tables:
        batches = [*_committed(context, table, transaction.newest), *transaction.pending(table.id)]
        live = consolidate(_untimed(Batch.concat(table.types, batches)), context.engine.hasher)
        _add(context, table, live.negated())
    return Outcome("TRUNCATE TABLE")


# -- rows ------------------------------------------------------------------------------------------------------------


def insert_rows(context: ReadContext, table: CatalogItem, rows: Batch) -> Batch:
    """Adds ``rows`` (diffs 1) to the transaction's writes; raises 23502, and 23505 as far as it can be seen now."""
    check_not_null(table, rows)
    explicit = context.transaction.explicit
    if explicit:
        _check_keys(context, table, rows, gone=None)
    _add(context, table, rows, checked=explicit)
    return rows


def upsert_rows(context: ReadContext, table: CatalogItem, rows: Batch) -> Batch:
    """Adds ``rows``; those whose key exists replace its row.  Raises 42P10 without a primary key, 21000 on two rows
    with one key."""
    if not table.primary_key:
        raise make_error("42P10", f'table "{table.name}" has no primary key to upsert by')
    _check_writable(context, "INSERT")
    _lock(context, {table.id})
    check_not_null(table, rows)
    _check_distinct_keys(context, table, rows)
    replaced = _live_by_key(context, table, _key_columns(table, rows))
    _add(context, table, replaced.negated(), rows, checked=True)
    return rows


def delete_rows(context: ReadContext, table: CatalogItem, columns: Sequence[pa.Array], rows: int) -> int:
    """Removes rows: ``columns`` are the primary key's or, without one, all of the table's.  22023 for a missing row."""
    _check_writable(context, "DELETE")
    _lock(context, {table.id})
    if not table.primary_key:
        _add(context, table, Batch.at(table.types, tuple(columns), rows, _AT, -1))
        return rows
    live = _live_by_key(context, table, tuple(columns))
    if len(live) < rows:
        keys = [table.types[c] for c in table.primary_key]
        found = _matches(context, _key_columns(table, live), tuple(columns), keys)
        missing = int(np.flatnonzero(found < 0)[0]) if (found < 0).any() else 0
        sample = sample_rows([c.slice(missing, 1) for c in columns], keys)[0]
        raise make_error(
            "22023", f'cannot delete from table "{table.name}": there is no such row', detail=f"Key {sample}."
        )
    _add(context, table, live.negated(), checked=True)
    return rows


def _insert_on_conflict(
    context: ReadContext, table: CatalogItem, rows: Batch, conflict: OnConflict, parameters: Sequence[Literal]
) -> Batch:
    check_not_null(table, rows)
    keys = _key_columns(table, rows)
    key_types = [table.types[c] for c in table.primary_key]
    first = first_equal(keys, key_types, len(rows), context.engine.hasher)
    once = first == np.arange(len(rows))
    existing = _live_by_key(context, table, tuple(c.take(pa.array(np.flatnonzero(once))) for c in keys))
    match = _matches(context, _key_columns(table, existing), keys, key_types)
    fresh = rows.take(np.flatnonzero(once & (match < 0)))
    if conflict.assignments is None:
        _add(context, table, fresh, checked=True)
        return fresh
    if not once.all():
        raise make_error(
            "21000",
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            hint="Ensure that no rows proposed for insertion within the same command have "
            "duplicate constrained values.",
        )
    hit = np.flatnonzero(match >= 0)
    old = existing.take(match[hit])
    both = (*old.columns, *rows.take(hit).columns)
    if conflict.where is not None:
        condition = evaluate(without_clock(conflict.where, parameters, context), both, len(hit))
        raise_evaluation(condition.errors)
        kept = np.flatnonzero(true_rows(condition, len(hit)))
        old = old.take(kept)
        both = tuple(c.take(pa.array(kept)) for c in both)
    columns = evaluate_columns(conflict.assignments, both, len(old), parameters, context)
    new = Batch.at(table.types, columns, len(old), _AT)
    check_not_null(table, new)
    _check_keys(context, table, new, gone=old.negated())
    _add(context, table, old.negated(), new, fresh)
    return Batch.concat(table.types, [fresh, new])


# -- reading what is there -------------------------------------------------------------------------------------------


def _committed(context: ReadContext, table: CatalogItem, newest: Time) -> Iterable[Batch]:
    """The table's updates as of ``newest``, or as soon after as it is readable."""
    store = context.engine.store
    if not context.transaction.built(table.id):
        return ()
    return store.snapshot(table.id, Time(max(store.since(table.id), newest)))


def rows_of(context: ReadContext, relation: Relation, parameters: Sequence[Literal], plan: ReadPlan | None) -> Batch:
    """The relation as the transaction sees it, without times.  ``plan``: as committed, if it is at hand."""
    if reads_pending(context, relation):
        bounds = ReadBounds(memory=context.bounds.memory)
        return _untimed(answer_with_pending(context, relation, parameters, plan, bounds=bounds).rows)
    if plan is None:
        plan = plan_read(relation, context.catalog)
    batch, _ = read_rows(context, plan, relation, parameters)
    return _untimed(batch)


def _live_by_key(context: ReadContext, table: CatalogItem, keys: tuple[pa.Array, ...]) -> Batch:
    """The rows with one of ``keys`` (distinct) as the transaction sees them, consolidated."""
    transaction, engine = context.transaction, context.engine
    assert transaction.newest is not None
    if transaction.built(table.id):
        live = engine.store.lookup(table.id, keys, Time(max(engine.store.since(table.id), transaction.newest)))
    else:
        live = Batch.empty(table.types)
    pending = transaction.pending(table.id)
    if not pending:
        return _untimed(live)
    types = [table.types[c] for c in table.primary_key]
    index = transaction.pending_keys.setdefault(table.id, PendingKeys())
    for batch in pending[index.batches :]:
        index.add(engine.hasher.hash_rows(_key_columns(table, batch), types, len(batch)))
    candidates = index.candidates(engine.hasher.hash_rows(keys, types, len(keys[0])), pending, _MANY_BATCHES)
    if candidates is None:  # often the same rows, so that most changes cancel
        changes = transaction.net_pending(table.id, engine.hasher)
    elif candidates:
        changes = Batch.concat(table.types, candidates)
    else:
        return _untimed(live)
    ours = np.flatnonzero(_matches(context, keys, _key_columns(table, changes), types) >= 0)
    return consolidate(_untimed(Batch.concat(table.types, [live, changes.take(ours)])), engine.hasher)


def _matches(
    context: ReadContext, left: Sequence[pa.Array], right: Sequence[pa.Array], types: Sequence[SqlType]
) -> np.ndarray:
    """int64[right rows]: the first left row with an equal key, or -1."""
    count = len(left[0])
    both = tuple(concat_arrays([a, b]) for a, b in zip(left, right, strict=True))
    first = first_equal(both, types, len(both[0]), context.engine.hasher)[count:]
    return np.where(first < count, first, -1)


def _key_columns(table: CatalogItem, rows: Batch) -> tuple[pa.Array, ...]:
    return tuple(rows.columns[c] for c in table.primary_key)


# -- checks ----------------------------------------------------------------------------------------------------------


def check_not_null(table: CatalogItem, rows: Batch) -> None:
    for i, column in enumerate(table.columns):
        if column.not_null and rows.columns[i].null_count:
            bad = int(np.flatnonzero(np.asarray(rows.columns[i].is_null()))[0])
            row = sample_rows([c.slice(bad, 1) for c in rows.columns], rows.types)[0]
            raise make_error(
                "23502",
                f'null value in column "{column.name}" of relation "{table.name}" violates not-null constraint',
                detail=f"Failing row contains {row}.",
            )


def _check_distinct_keys(context: ReadContext, table: CatalogItem, rows: Batch) -> None:
    keys = _key_columns(table, rows)
    types = [table.types[c] for c in table.primary_key]
    first = first_equal(keys, types, len(rows), context.engine.hasher)
    again = np.flatnonzero(first != np.arange(len(rows)))
    if len(again):
        key = sample_rows([c.slice(int(again[0]), 1) for c in keys], types)[0]
        raise make_error("21000", "an upsert cannot affect a row a second time", detail=f"Key {key} is given twice.")


def _check_keys(context: ReadContext, table: CatalogItem, rows: Batch, *, gone: Batch | None) -> None:
    """23505 where adding ``rows`` after taking ``gone`` away gives a key two rows.

    Storage checks again at commit; this tells the statement that is at fault.
    """
    if not table.primary_key or not len(rows):
        return
    keys = _key_columns(table, rows)
    types = [table.types[c] for c in table.primary_key]
    hasher = context.engine.hasher
    first = first_equal(keys, types, len(rows), hasher)
    distinct = np.flatnonzero(first == np.arange(len(rows)))
    if len(distinct) < len(rows):
        keys = tuple(c.take(pa.array(distinct)) for c in keys)
    live = _live_by_key(context, table, keys)
    if not len(live) and len(distinct) == len(rows):
        return
    after = [live, _untimed(rows)] if gone is None else [live, _untimed(gone), _untimed(rows)]
    net = consolidate(Batch.concat(table.types, after), hasher)
    positive = net.take(np.flatnonzero(net.diffs > 0))
    left = _key_columns(table, positive)
    same = first_equal(left, types, len(positive), hasher)
    clash = np.flatnonzero((same != np.arange(len(positive))) | (positive.diffs > 1))
    if len(clash):
        values = sample_rows([c.slice(int(clash[0]), 1) for c in left], types)[0]
        names = ", ".join(table.columns[c].name for c in table.primary_key)
        raise make_error(
            "23505",
            f'duplicate key value violates unique constraint "{table.name}_pkey"',
            detail=f"Key ({names})={values} already exists.",
        )


def _check_writable(context: ReadContext, command: str) -> None:
    if context.transaction.read_only:
        raise make_error("25006", f"cannot execute {command} in a read-only transaction")


def _lock(context: ReadContext, tables: set[str]) -> None:
    """Takes the write locks, then makes sure that what is read is what will be written over."""
    engine, transaction, interrupt = context.engine, context.transaction, context.interrupt
    with interrupt.waking(engine.locks.look_again):
        engine.locks.acquire(
            transaction.owner,
            tables,
            timeout_s=transaction.lock_timeout_s,
            check=interrupt.check,
            deadline=interrupt.deadline,
        )
    with engine.control() as controller:
        if not all(controller.exists(t) for t in tables if transaction.built(t)):
            raise make_error("40001", "a table of the statement was dropped meanwhile", hint="Retry the transaction.")
    if not transaction.explicit:
        transaction.refresh(engine)
        return
    assert transaction.newest is not None
    if engine.store.newest_write(tables) > transaction.newest:
        raise make_error("40001", "could not serialize access due to concurrent update", hint="Retry the transaction.")


def wait_capacity(context: ReadContext, tables: Collection[str], timeout: float | None) -> None:
    """Before a statement that writes ``tables`` takes its locks: waits while maintenance is far behind.

    A transaction that has locks or has written goes on, as others may wait for it.  53300 when the time is up, 57014
    when cancelled.
    """
    interrupt, engine, transaction = context.interrupt, context.engine, context.transaction
    began = time.monotonic()
    bound = timeout if timeout is not None else interrupt.remaining_s()
    with interrupt.waking(engine.store.look_again):
        done = engine.store.wait_capacity(bound, interrupt.cancelled)
    if done and not (transaction.writes or transaction.owner.held or transaction.owner.shared):
        left = None if bound is None else max(0.0, bound - (time.monotonic() - began))
        done = engine.lag.wait(tables, left, interrupt.cancelled)
    if not done:
        interrupt.check()
        engine.check_open()
        raise make_error(
            "53300", "maintenance is too far behind to take more writes", hint="Try again, or allow a longer timeout."
        )


# -- small things ----------------------------------------------------------------------------------------------------


def _add(context: ReadContext, table: CatalogItem, *batches: Batch, checked: bool = False) -> None:
    """``checked``: as for ``Transaction.add``, of all ``batches`` together."""
    for batch in batches:
        context.transaction.add(table.id, batch, checked=checked)


def _untimed(batch: Batch) -> Batch:
    return Batch(batch.types, batch.columns, np.zeros(len(batch), np.int64), batch.diffs)


def _expanded(batch: Batch) -> Batch:
    """One row per occurrence."""
    if not len(batch) or int(batch.diffs.max()) == 1:
        return batch
    once = batch.take(np.repeat(np.arange(len(batch)), batch.diffs))
    return Batch(once.types, once.columns, once.times, np.ones(len(once), np.int64))


def _with_late(context: ReadContext, late: Late, rows: Batch, parameters: Sequence[Literal]) -> Batch:
    """The statement's rows, from those that were read, each once: in their order, with what is computed of them."""
    if late.order and len(rows) > 1:
        rows = rows.take(order_rows(rows.columns, rows.types, late.order, len(rows)))
    columns = late_columns(late, rows.columns, len(rows), parameters, context)
    types = (*rows.types, *(expr.type for expr in late.exprs))
    return Batch.at(tuple(types[column] for column in late.columns), columns, len(rows), _AT)


def _returning(
    returning: Returning | None, rows: Batch, parameters: Sequence[Literal], context: ReadContext
) -> ResultSet | None:
    if returning is None:
        return None
    columns = evaluate_columns(returning.exprs, rows.columns, len(rows), parameters, context)
    return ResultSet(returning.names, returning.types, columns, len(rows))
