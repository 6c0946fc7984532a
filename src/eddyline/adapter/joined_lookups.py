"""Running a join of lookups: each finds a few rows, which are joined here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Expr, Literal, Mfp
from eddyline.expr.literals import scalar_literal
from eddyline.expr.mfp import apply_mfp
from eddyline.plan.fast_path import PeekPlan, substitute_in_fast_path, substitute_in_mfp
from eddyline.plan.lookup_join import LookupJoin, LookupNode, keyed_by
from eddyline.plan.parameters import bind_parameters
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.rowerror import first_row_error
from eddyline.repr.types import BIGINT

__all__ = ["join_lookups"]

#: rows of one side, and pairs, that are few
_FEW_ROWS = 256
_FEW_PAIRS = 16_384

Look = Callable[[PeekPlan], Batch | None]


def join_lookups(plan: LookupNode, literals: Sequence[Literal], look: Look) -> Batch | None:
    """The rows of ``plan``; None if there are many on the way, or ``look`` could not tell.  Raises what rows raise.

    ``look`` gives the rows of a lookup without parameters, all diffs positive.
    """
    if isinstance(plan, PeekPlan):
        bound = substitute_in_fast_path(plan, literals)
        assert isinstance(bound, PeekPlan)
        return look(bound)
    left = join_lookups(plan.left, literals, look)
    if left is None or len(left) > _FEW_ROWS:
        return None
    right = _right(plan, left, literals, look)
    if right is None or len(left) * len(right) > _FEW_PAIRS:
        return None
    return _through(substitute_in_mfp(plan.mfp, literals), _joined(plan, left, right, literals))


def _right(plan: LookupJoin, left: Batch, literals: Sequence[Literal], look: Look) -> Batch | None:
    side: LookupNode | None = plan.right
    if plan.keys is not None:
        assert isinstance(plan.right, PeekPlan), "only a lookup takes keys"
        side = keyed_by(plan.right, _values(plan.keys, left, literals))
    return None if side is None else join_lookups(side, literals, look)


def _values(keys: Sequence[Expr], rows: Batch, literals: Sequence[Literal]) -> list[tuple[Literal, ...]]:
    """The values of ``keys`` for each distinct combination that the rows have."""
    columns = []
    for key in keys:
        expr = bind_parameters(key, literals)
        done = evaluate(expr, rows.columns, len(rows))
        if done.errors is not None:
            raise make_error(done.errors.sqlstates[0], done.errors.messages[0])
        columns.append([Literal(scalar_literal(scalar, expr.type), expr.type) for scalar in done.array])
    return list(dict.fromkeys(zip(*columns, strict=True)))


def _joined(plan: LookupJoin, left: Batch, right: Batch, literals: Sequence[Literal]) -> Batch:
    """The pairs that ON lets through, and with ``outer`` the left rows that have none."""
    types = (*left.types, *right.types)
    of_left, of_right = np.repeat(np.arange(len(left)), len(right)), np.tile(np.arange(len(right)), len(left))
    pairs = _beside(left, of_left, right, of_right)
    # The left row's number goes along as one more column.
    numbered = Batch((*types, BIGINT), (*pairs.columns, pa.array(of_left)), pairs.times, pairs.diffs)
    on = substitute_in_mfp(plan.on, literals)
    width = len(types)
    matched = _through(Mfp(on.steps, (*on.projection, width), (*on.types, BIGINT), on.names), numbered)
    found = Batch(types, matched.columns[:width], matched.times, matched.diffs)
    if not plan.outer:
        return found
    alone = np.setdiff1d(np.arange(len(left)), np.asarray(matched.columns[width]))
    nulls = tuple(pa.nulls(len(alone), c.type) for c in Batch.empty(right.types).columns)
    kept = left.take(alone)
    return Batch.concat(types, [found, Batch(types, (*kept.columns, *nulls), kept.times, kept.diffs)])


def _beside(left: Batch, of_left: Int64s, right: Batch, of_right: Int64s) -> Batch:
    first, second = left.take(of_left), right.take(of_right)
    return Batch(
        (*left.types, *right.types), (*first.columns, *second.columns), first.times, first.diffs * second.diffs
    )


def _through(mfp: Mfp, batch: Batch) -> Batch:
    rows, errors = apply_mfp(mfp, batch)
    if errors is not None and len(errors):
        raise first_row_error(errors)
    return rows
