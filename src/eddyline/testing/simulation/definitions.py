"""What the simulated clients define and read: small relations from two bigint columns to two bigint columns.

Each is kept twice: over the objects that it names, which is what is planned, and over base tables alone, which is what
is recomputed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from eddyline.expr.ir import AggregateCall, Call, Column, Expr, Literal, SortKey
from eddyline.plan.relation import (
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType

__all__ = ["PAIR", "SHAPES", "Definition", "defined", "table_definition"]

PAIR: tuple[SqlType, ...] = (BIGINT, BIGINT)
_MOST_DEPTH = 3


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """``relation``: over base ``tables`` alone; ``depth``: definitions below it."""

    relation: Relation
    tables: tuple[str, ...]
    depth: int = 0


def table_definition(id: str) -> Definition:
    return Definition(Get(id, PAIR), (id,))


def _column(index: int) -> Column:
    return Column(index, BIGINT)


def _count(value: int) -> Literal:
    return Literal(value, BIGINT)


def _greater(column: int, bound: int) -> Expr:
    return Call("gt", (_column(column), _count(bound)), BOOLEAN)


def _same(left: Relation, right: Relation, bound: int) -> Relation:
    return left


def _filter(left: Relation, right: Relation, bound: int) -> Relation:
    return Filter(left, (_greater(1, bound),))


def _join(left: Relation, right: Relation, bound: int) -> Relation:
    on = Call("eq", (_column(0), _column(2)), BOOLEAN)
    return Project(Join(JoinKind.INNER, left, right, (on,)), (0, 3))


def _left_join(left: Relation, right: Relation, bound: int) -> Relation:
    on = Call("eq", (_column(0), _column(2)), BOOLEAN)
    return Project(Join(JoinKind.LEFT, left, right, (on,)), (1, 3))


def _reduce(left: Relation, right: Relation, bound: int) -> Relation:
    return Reduce(left, (_column(0),), (AggregateCall("count", (), BIGINT),))


def _total(left: Relation, right: Relation, bound: int) -> Relation:
    counts = (AggregateCall("count", (), BIGINT), AggregateCall("count", (_column(1),), BIGINT))
    return Reduce(left, (), counts, global_row=True)


def _distinct(left: Relation, right: Relation, bound: int) -> Relation:
    return Distinct(left)


def _union(left: Relation, right: Relation, bound: int) -> Relation:
    return Union((left, right))


def _except(left: Relation, right: Relation, bound: int) -> Relation:
    return Threshold(Union((left, Negate(right))))


def _top(left: Relation, right: Relation, bound: int) -> Relation:
    return TopK(left, (0,), (SortKey(1, desc=True),), _count(1))


def _divide(left: Relation, right: Relation, bound: int) -> Relation:
    """Fails while a row has ``bound`` in its second column."""
    difference = Call("int_sub", (_column(1), _count(bound)), BIGINT)
    return Project(Map(left, (Call("int_div", (_count(12), difference), BIGINT),)), (0, 2))


SHAPES = {
    "same": _same,
    "filter": _filter,
    "join": _join,
    "left join": _left_join,
    "reduce": _reduce,
    "total": _total,
    "distinct": _distinct,
    "union": _union,
    "except": _except,
    "top": _top,
    "divide": _divide,
}


def defined(rng: random.Random, inputs: dict[str, Definition]) -> tuple[Relation, Definition] | None:
    """A random relation over one or two of ``inputs``: as planned, and its definition.  None: all are too deep."""
    shallow = [id for id, d in inputs.items() if d.depth < _MOST_DEPTH]
    if not shallow:
        return None
    left, right = rng.choice(shallow), rng.choice(shallow)
    name = rng.choice(list(SHAPES))
    shape, bound = SHAPES[name], rng.randrange(4)
    one, other = inputs[left], inputs[right]
    tables = one.tables if name not in ("join", "left join", "union", "except") else (*one.tables, *other.tables)
    definition = Definition(
        shape(one.relation, other.relation, bound),
        tuple(sorted(set(tables))),
        1 + max(one.depth, other.depth),
    )
    return shape(Get(left, PAIR), Get(right, PAIR), bound), definition
