"""Reads in a transaction that has written: what is committed, and what the transaction itself has changed.

Where each row of one table gives rows by itself, the pending changes go through the same map-filter-project as the
committed rows, which are read as ever, by index or key: a statement costs what it reads and one pass over the net
changes.  Any other relation is computed over tables with the changes laid over them as literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eddyline.adapter.answer import answer_read
from eddyline.adapter.overlay import overlaid
from eddyline.adapter.read import ReadAnswer, ReadContext
from eddyline.adapter.read_plan import ReadPlan, at_the_moment, base_tables, plan_read
from eddyline.errors import DataError
from eddyline.expr.ir import Literal
from eddyline.expr.mfp import apply_mfp
from eddyline.plan.fast_path import linear_over
from eddyline.plan.parameters import substitute_parameters
from eddyline.plan.relation import Relation
from eddyline.plan.traverse import gets
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.batch import Batch
from eddyline.trace.run import consolidate

__all__ = ["answer_with_pending", "reads_pending"]


def reads_pending(context: ReadContext, relation: Relation) -> bool:
    """Whether the transaction has changed a table that the relation reads, through whatever views."""
    written = context.transaction.writes
    return bool(written) and not written.keys().isdisjoint(base_tables(gets(relation), context.catalog))


def answer_with_pending(
    context: ReadContext,
    relation: Relation,
    parameters: Sequence[Literal],
    plan: ReadPlan | None,
    *,
    bounds: ReadBounds,
) -> ReadAnswer:
    """All rows of ``relation`` as the transaction sees them.  ``plan``: as committed, if it is at hand.

    Raises as ``answer_read``.
    """
    plan = plan_read(relation, context.catalog) if plan is None else plan
    answer = _linear(context, relation, parameters, plan, bounds)
    if answer is not None:
        return answer
    changes = {t: [_net(context, t)] for t in context.transaction.writes}
    over = overlaid(relation, context.catalog, changes)
    whole = plan_read(over, context.catalog, use_indexes=False)
    return answer_read(context, whole, over, parameters, bounds=bounds)


def _net(context: ReadContext, table: str) -> Batch:
    return context.transaction.net_pending(table, context.engine.hasher)


def _linear(
    context: ReadContext, relation: Relation, parameters: Sequence[Literal], plan: ReadPlan, bounds: ReadBounds
) -> ReadAnswer | None:
    """None if the relation is not linear in one table, or if a row fails, committed or not: whether it still counts is
    for the whole to say.
    """
    fixed = plan.relation
    if plan.parameterised:
        fixed = substitute_parameters(fixed, parameters)
    if plan.clocked:
        fixed = at_the_moment(fixed, context.moment)
    found = linear_over(fixed)
    if found is None or found[0].id not in context.transaction.writes:
        return None
    rows, errors = apply_mfp(found[1], _net(context, found[0].id))
    if errors is not None and len(errors):
        return None
    try:
        answer = answer_read(context, plan, relation, parameters, bounds=bounds)
    except DataError:
        return None
    committed = Batch(rows.types, answer.rows.columns, np.zeros(len(answer.rows), np.int64), answer.rows.diffs)
    if not len(rows):
        return answer
    both = consolidate(Batch.concat(rows.types, [committed, rows]), context.engine.hasher)
    return replace(answer, rows=both)
