"""Any read answered: by one plan, or, where it has recursive queries, by many at one time."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.adapter.read import FirstRows, ReadAnswer, ReadContext, answer_plan
from eddyline.adapter.read_plan import ReadPlan
from eddyline.adapter.recursion import answer_recursive
from eddyline.errors import unsupported
from eddyline.expr.ir import Literal
from eddyline.plan.relation import Relation
from eddyline.plan.traverse import gets
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.batch import Batch
from eddyline.repr.ids import is_log
from eddyline.repr.time import Time

__all__ = ["answer_read", "read_rows"]


def read_rows(
    context: ReadContext,
    plan: ReadPlan,
    relation: Relation,
    parameters: Sequence[Literal],
    *,
    as_of: Time | None = None,
    first: FirstRows | None = None,
) -> tuple[Batch, Time]:
    """As ``answer_read``, for rows that the statement goes on with and are no result: they have no largest size."""
    bounds = ReadBounds(memory=context.bounds.memory)
    answer = answer_read(context, plan, relation, parameters, bounds=bounds, as_of=as_of, first=first)
    return answer.rows, answer.at


def answer_read(
    context: ReadContext,
    plan: ReadPlan,
    relation: Relation,
    parameters: Sequence[Literal],
    *,
    bounds: ReadBounds,
    as_of: Time | None = None,
    first: FirstRows | None = None,
) -> ReadAnswer:
    """Runs ``plan``.

    ``first``: that they are enough, so that reading the others may be saved; more may come, in any order.
    ``relation`` is what the plan was made from: where the time can't be read from indexes any more, it is planned again
    over storage.  Raises what the rows raise; 22023 for an unreadable ``as_of``; 53200 and 54000 past ``bounds``;
    57014; 58000.
    """
    if as_of is not None and any(is_log(id) for part in plan.parts() for id in gets(part.relation)):
        raise unsupported("AS OF with an introspection relation", hint="What a replica does is only known as it is.")
    answering = answer_recursive if plan.recursions else answer_plan
    answer = answering(context, plan, relation, parameters, bounds, as_of, first)
    context.engine.metrics.read(answer.phases)
    return answer
