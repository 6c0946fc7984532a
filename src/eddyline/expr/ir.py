"""Scalar expressions: the typed tree that the binder emits and the evaluator runs.

Columns are positions in the input row.  Every node has ``type``.  The tree is immutable, hashable, and made of
``msgspec`` structs, so that it travels in protocol messages as it is.

Literals hold *physical* scalars, one encoding per kind (``LiteralValue``): bool, int (all integers; date in days,
time and timestamps in µs since the epoch), float, str (text; numeric as its decimal text, e.g. "1.50"; interval
as "months days micros"; bytea and uuid as hex digits), None for NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from eddyline.repr.types import BOOLEAN, SqlType

__all__ = [
    "CLOCK",
    "OF_THE_MOMENT",
    "SEQUENCE_LOOKS",
    "VOLATILE",
    "AggregateCall",
    "And",
    "Call",
    "Case",
    "Cast",
    "Coalesce",
    "Column",
    "Expr",
    "FilterStep",
    "Literal",
    "LiteralValue",
    "MapStep",
    "Mfp",
    "Or",
    "Parameter",
    "Raise",
    "SortKey",
    "children",
    "columns_of",
    "map_columns",
    "rewrite",
    "walk",
    "with_children",
]

#: ``Call.func`` of now(): replaced by the statement's time before a plan is rendered
CLOCK: Final = "now"
#: what a sequence's row says; arguments, literals: the key of its position, where that begins, by how much it counts
SEQUENCE_LOOKS: Final = ("sequence_last_value", "sequence_log_cnt", "sequence_is_called")
#: calls without an implementation, which are literals before a plan is rendered
OF_THE_MOMENT: Final = frozenset((CLOCK, *SEQUENCE_LOOKS))
#: calls that have an effect, or of which every one gives something else: of rows that were read (``plan.late``), and
#: never in a plan.  They have no implementation either.
VOLATILE: Final = frozenset(("nextval", "currval", "lastval", "setval"))

LiteralValue: TypeAlias = bool | int | float | str | None


class Column(msgspec.Struct, frozen=True, tag_field="op", tag="column"):
    """The value of input column ``index``."""

    index: int
    type: SqlType


class Literal(msgspec.Struct, frozen=True, tag_field="op", tag="literal"):
    value: LiteralValue
    type: SqlType


class Parameter(msgspec.Struct, frozen=True, tag_field="op", tag="parameter"):
    """``$index`` (1-based), replaced by a literal before a plan is rendered."""

    index: int
    type: SqlType


class Call(msgspec.Struct, frozen=True, tag_field="op", tag="call"):
    """An eager function or operator: all arguments are evaluated.  ``func`` names an implementation in
    ``expr.functions``."""

    func: str
    args: tuple[Expr, ...]
    type: SqlType


class Cast(msgspec.Struct, frozen=True, tag_field="op", tag="cast"):
    """An explicit, assignment or implicit cast, typmod included.  ``explicit`` matters for varchar(n)/char(n),
    which truncate when explicit and raise 22001 on assignment.  ``zone``: the session's TimeZone, for casts from and
    to timestamptz; None is UTC."""

    input: Expr
    type: SqlType
    explicit: bool = True
    zone: str | None = None


class Case(msgspec.Struct, frozen=True, tag_field="op", tag="case"):
    """Searched CASE.  A branch is evaluated only for the rows that reach it."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: SqlType


class And(msgspec.Struct, frozen=True, tag_field="op", tag="and"):
    """Three-valued AND, left to right; later arguments see only the rows that are not false yet."""

    args: tuple[Expr, ...]
    type: SqlType = BOOLEAN


class Or(msgspec.Struct, frozen=True, tag_field="op", tag="or"):
    args: tuple[Expr, ...]
    type: SqlType = BOOLEAN


class Coalesce(msgspec.Struct, frozen=True, tag_field="op", tag="coalesce"):
    args: tuple[Expr, ...]
    type: SqlType


class Raise(msgspec.Struct, frozen=True, tag_field="op", tag="raise"):
    """Fails on every row that evaluates it (guard it with CASE): more than one row from a scalar subquery …"""

    sqlstate: str
    message: str
    type: SqlType


Expr: TypeAlias = Column | Literal | Parameter | Call | Cast | Case | And | Or | Coalesce | Raise


class SortKey(msgspec.Struct, frozen=True):
    """One ORDER BY item over input column ``column``."""

    column: int
    desc: bool = False
    nulls_first: bool = False


class AggregateCall(msgspec.Struct, frozen=True):
    """One aggregate of a Reduce.

    ``func``: count (no args: ``count(*)``), sum, avg, min, max, bool_and, bool_or, bit_and, bit_or, bit_xor,
    stddev_pop, stddev_samp, var_pop, var_samp, string_agg, array_agg.  ``order_by`` pairs an expression over the input
    with (desc, nulls_first).
    """

    func: str
    args: tuple[Expr, ...]
    type: SqlType
    distinct: bool = False
    filter: Expr | None = None
    order_by: tuple[tuple[Expr, bool, bool], ...] = ()


class Mfp(msgspec.Struct, frozen=True):
    """Map, filter, project, fused.

    ``steps`` in order: an expression *appends* a column (a later step may read it), a predicate drops the rows for
    which it is not true before later steps run.  ``projection`` picks the output among input and appended columns.
    ``names``: what the input columns are called, for the texts of row errors; empty where nothing says.
    ``view``: the view that computes this: its name; empty if none does.
    """

    steps: tuple[MapStep | FilterStep, ...]
    projection: tuple[int, ...]
    types: tuple[SqlType, ...]  # of the output
    names: tuple[str, ...] = ()
    view: str = ""


class MapStep(msgspec.Struct, frozen=True, tag_field="op", tag="map"):
    expr: Expr


class FilterStep(msgspec.Struct, frozen=True, tag_field="op", tag="filter"):
    predicate: Expr


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in evaluation order."""
    match expr:
        case Column() | Literal() | Parameter() | Raise():
            return ()
        case Cast():
            return (expr.input,)
        case Case():
            return (*(e for when in expr.whens for e in when), expr.otherwise)
        case Call() | And() | Or() | Coalesce():
            return expr.args


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, parents first; iterative, so depth is no concern."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def columns_of(expr: Expr) -> frozenset[int]:
    """The input columns that ``expr`` reads."""
    return frozenset(e.index for e in walk(expr) if isinstance(e, Column))


def rewrite(expr: Expr, replace: Callable[[Expr], Expr]) -> Expr:
    """``expr`` rebuilt bottom-up, each node passed through ``replace``; iterative, so depth is no concern."""
    # In reversed preorder every node comes after its children, and its leftmost child lies on top of the stack.
    done: list[Expr] = []
    for node in reversed(list(walk(expr))):
        count = len(children(node))
        parts = tuple(done.pop() for _ in range(count))
        done.append(replace(with_children(node, parts) if count else node))
    return done[0]


def with_children(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """``expr`` over other subexpressions, in the order of ``children``."""
    match expr:
        case Column() | Literal() | Parameter() | Raise():
            return expr
        case Cast():
            return Cast(parts[0], expr.type, expr.explicit, expr.zone)
        case Case():
            return Case(tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True)), parts[-1], expr.type)
        case Call():
            return Call(expr.func, parts, expr.type)
        case And():
            return And(parts)
        case Or():
            return Or(parts)
        case Coalesce():
            return Coalesce(parts, expr.type)


def map_columns(expr: Expr, column: Callable[[int], int]) -> Expr:
    """``expr`` with every column index passed through ``column``."""

    def replace(node: Expr) -> Expr:
        return Column(column(node.index), node.type) if isinstance(node, Column) else node

    return rewrite(expr, replace)
