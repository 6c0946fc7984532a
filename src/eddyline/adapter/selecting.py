"""SELECT in a transaction, and EXPLAIN ANALYZE, which runs one."""

from __future__ import annotations

import time
from dataclasses import replace

from eddyline.adapter.answer import answer_read
from eddyline.adapter.as_of import time_asked
from eddyline.adapter.computed_columns import late_columns
from eddyline.adapter.explain import Analyzed, explain_analyzed
from eddyline.adapter.finishing import Finishing, finishing
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.pending_reads import answer_with_pending, reads_pending
from eddyline.adapter.read import ReadAnswer, ReadContext
from eddyline.adapter.read_plan import ReadPlan, plan_read
from eddyline.adapter.signals import signalled
from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Literal, SortKey
from eddyline.plan.late import Late
from eddyline.plan.relation import Relation
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.batch import Batch
from eddyline.sql import statements as st

__all__ = ["explain_analyze", "select"]


def select(context: ReadContext, statement: st.Select, plan: ReadPlan | None, literals: tuple[Literal, ...]) -> Outcome:
    """The rows, finished."""
    if statement.late is not None:
        return _select_late(context, statement, statement.late, plan, literals)
    answer, end = _answer(context, statement, plan, literals)
    result = end.result(answer.rows, answer.at, context.bounds)
    if not statement.signals:
        return Outcome(f"SELECT {result.rows}", result)
    told, notices = signalled(context, statement.signals, result)
    return Outcome(f"SELECT {told.rows}", told, notices=tuple(notices))


def _select_late(
    context: ReadContext, statement: st.Select, late: Late, plan: ReadPlan | None, literals: tuple[Literal, ...]
) -> Outcome:
    """Calls are made for the rows that LIMIT leaves, in their order; for all, if the order is by what they give."""
    query, width = statement.query, len(statement.query.relation.types)
    order = tuple(SortKey(late.columns[k.column], k.desc, k.nulls_first) for k in query.order)
    given = all(key.column < width for key in order)
    types = query.relation.types
    read = replace(query, names=("",) * width, types=types, order=order if given else (), hidden_columns=0)
    if not given:
        read = replace(read, limit=None, offset=None)
    answer, end = _answer(context, st.Select(read), plan, literals)
    rows = end.result(answer.rows, answer.at, ReadBounds(memory=context.bounds.memory))
    columns = late_columns(late, rows.columns, rows.rows, literals, context)
    known = (*types, *(expr.type for expr in late.exprs))
    batch = Batch.at(tuple(known[c] for c in late.columns), columns, rows.rows, answer.at)
    last_step = finishing(query if not given else replace(query, order=(), limit=None, offset=None), literals)
    result = last_step.result(batch, answer.at, context.bounds)
    return Outcome(f"SELECT {result.rows}", result)


def explain_analyze(context: ReadContext, statement: st.Explain, literals: tuple[Literal, ...]) -> ResultSet:
    """Runs the read, and says where its time went instead of what it found."""
    read = statement.statement
    assert isinstance(read, st.Select)
    if read.late is not None:
        raise unsupported("EXPLAIN ANALYZE of a call of a sequence", hint="EXPLAIN shows the plan without running it.")
    start = time.perf_counter_ns()
    plan = plan_read(read.query.relation, context.catalog)
    planned = time.perf_counter_ns()
    answer, last_step = _answer(context, read, plan, literals)
    answered = time.perf_counter_ns()
    rows = last_step.result(answer.rows, answer.at, context.bounds).rows
    end = time.perf_counter_ns()
    isolation = context.transaction.isolation if read.as_of is None else "as of"
    run = Analyzed(answer, rows, isolation, planned - start, end - answered, end - planned)
    return explain_analyzed(statement, run, context.catalog)


def _answer(
    context: ReadContext, statement: st.Select, plan: ReadPlan | None, literals: tuple[Literal, ...]
) -> tuple[ReadAnswer, Finishing]:
    """The rows of a SELECT before they are finished, and what finishes them."""
    query, bounds = statement.query, context.bounds
    relation: Relation = query.relation
    as_of = time_asked(statement.as_of, literals, context)
    if context.transaction.changed and as_of is not None:
        raise make_error("0A000", "AS OF is not supported in a transaction that has written")
    # What a LIMIT leaves is known only in the end.
    walked = bounds if query.limit is None else ReadBounds(memory=bounds.memory)
    end = finishing(query, literals)
    if reads_pending(context, relation):
        return answer_with_pending(context, relation, literals, plan, bounds=walked), end
    assert plan is not None
    answer = answer_read(context, plan, relation, literals, bounds=walked, as_of=as_of, first=end.first)
    return answer, end
