"""What a statement computes of its rows once they are read: calls that have an effect, as ``nextval`` has.

A plan may compute an expression for more rows than there are in the end, for fewer, twice, or once for all.  So
volatile calls never get into one: what stands at the top of a relation is taken off it, and what is below is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eddyline.errors import Error, unsupported
from eddyline.expr.ir import VOLATILE, Call, Case, Column, Expr, Literal, SortKey, columns_of, map_columns, walk
from eddyline.plan.parameters import map_expressions
from eddyline.plan.relation import Let, Map, Project, Relation, Union
from eddyline.repr.types import BOOLEAN, INTEGER, SqlType

__all__ = ["Late", "Split", "has_volatile", "is_volatile", "split", "volatile_refused", "whole"]


@dataclass(frozen=True, slots=True)
class Late:
    """``exprs`` are over the columns of the rows that were read, and the results of those before them; ``columns``
    picks the statement's among all of these.

    ``order``: in which the rows take their turns, by columns that were read; as they come without.
    """

    exprs: tuple[Expr, ...]
    columns: tuple[int, ...]
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """A relation in two parts: ``base``, which can be planned, and ``exprs`` of its rows.

    ``columns``: of the relation: of ``base`` from 0 up, -1, -2 … are results of ``exprs``, in which columns are called
    likewise, since ``base`` may still grow.
    """

    base: Relation
    exprs: tuple[Expr, ...]
    columns: tuple[int, ...]

    def mapped(self, exprs: Sequence[Expr]) -> Split:
        """With further columns, each over those before it."""
        width = len(self.base.types)
        columns, late, kept = list(self.columns), list(self.exprs), list[Expr]()
        for expr in exprs:
            moved = map_columns(expr, columns.__getitem__)
            if is_volatile(moved) or any(column < 0 for column in columns_of(moved)):
                late.append(moved)
                columns.append(-len(late))
            else:
                columns.append(width + len(kept))
                kept.append(moved)
        return Split(Map(self.base, tuple(kept)) if kept else self.base, tuple(late), tuple(columns))

    def ordered(self, order: Sequence[SortKey]) -> tuple[SortKey, ...] | None:
        """``order`` by columns of ``base``; None if it is by what is computed late."""
        keys = tuple(_moved(key, self.columns[key.column]) for key in order)
        return None if any(key.column < 0 for key in keys) else keys

    def finished(self, columns: Sequence[int], order: tuple[SortKey, ...] = ()) -> tuple[Relation, Late | None]:
        """The relation to be planned, with what is computed of its rows.  ``columns``: of this one; ``order``: see
        ``Late``.  Without anything that is late the relation is all there is.
        """
        width = len(self.base.types)

        def placed(column: int) -> int:
            return column if column >= 0 else width - column - 1

        wanted = tuple(placed(self.columns[column]) for column in columns)
        if not self.exprs:
            whole = wanted == tuple(range(width))
            return (self.base if whole else Project(self.base, wanted)), None
        return self.base, Late(tuple(map_columns(expr, placed) for expr in self.exprs), wanted, order)


def _moved(key: SortKey, column: int) -> SortKey:
    return SortKey(column, key.desc, key.nulls_first)


def is_volatile(expr: Expr) -> bool:
    return any(isinstance(node, Call) and node.func in VOLATILE for node in walk(expr))


def has_volatile(relation: Relation) -> bool:
    """O(the relation's expressions)."""
    return _first_volatile(relation) is not None


def _first_volatile(relation: Relation) -> str | None:
    found: list[str] = []

    def look(expr: Expr) -> Expr:
        found.extend(node.func for node in walk(expr) if isinstance(node, Call) and node.func in VOLATILE)
        return expr

    map_expressions(relation, look)
    return found[0] if found else None


def volatile_refused(function: str, place: str) -> Error:
    return unsupported(
        f"{function} in {place}",
        hint="It may stand in the list of a SELECT that is a statement by itself or the source of an INSERT, "
        "in VALUES, SET, RETURNING and DEFAULT.",
    )


def split(relation: Relation) -> Split:
    """0A000 where a volatile call stands so that something else is computed of all its rows."""
    function = _first_volatile(relation)
    if function is None:
        return whole(relation)
    match relation:
        case Project():
            inner = split(relation.input)
            return replace(inner, columns=tuple(inner.columns[column] for column in relation.columns))
        case Map():
            return split(relation.input).mapped(relation.exprs)
        case Let() if not has_volatile(relation.value):
            body = split(relation.body)
            return replace(body, base=Let(relation.name, relation.value, body.base))
        case Union():
            united = _united([split(arm) for arm in relation.inputs])
            if united is not None:
                return united
        case _:
            pass
    raise volatile_refused(function, "this place")


def whole(relation: Relation) -> Split:
    """With nothing that is late."""
    return Split(relation, (), tuple(range(len(relation.types))))


def _united(arms: Sequence[Split]) -> Split | None:
    """Rows of VALUES, each or each few of which are an arm of their own; None where what is late reads columns."""
    if any(column >= 0 for arm in arms for expr in arm.exprs for column in columns_of(expr)):
        return None
    first = arms[0]
    if all(_same(arm, first) for arm in arms):
        bases = [Project(arm.base, tuple(column for column in arm.columns if column >= 0)) for arm in arms]
        numbers = iter(range(len(first.columns)))
        columns = tuple(column if column < 0 else next(numbers) for column in first.columns)
        return Split(Union(tuple(bases)), first.exprs, columns)
    return _united_by_number(arms)


def _same(one: Split, other: Split) -> bool:
    places = [tuple(min(column, 0) for column in each.columns) for each in (one, other)]
    return one.exprs == other.exprs and places[0] == places[1]


def _united_by_number(arms: Sequence[Split]) -> Split:
    """Arms that do not all compute the same: a column says which arm a row is of, and in each only that is computed."""
    types = [_types(arm) for arm in arms]
    width = len(types[0])
    which = Column(width, INTEGER)
    bases: list[Relation] = []
    late: list[Expr] = []
    found: list[list[Expr]] = []  # of each arm, its columns
    for number, (arm, own) in enumerate(zip(arms, types, strict=True)):
        missing = [t for column, t in zip(arm.columns, own, strict=True) if column < 0]
        wide = Map(arm.base, (*(Literal(None, t) for t in missing), Literal(number, INTEGER)))
        last = len(wide.types) - 1
        empty = iter(range(len(arm.base.types), last))
        bases.append(Project(wide, (*(c if c >= 0 else next(empty) for c in arm.columns), last)))
        before = len(late)
        for expr in arm.exprs:
            moved = _behind(expr, before)
            late.append(_if(which, number, moved, Literal(None, expr.type)))
        places = zip(arm.columns, own, strict=True)
        found.append([Column(c - before if c < 0 else i, t) for i, (c, t) in enumerate(places)])
    columns: list[int] = []
    for index in range(width):
        if all(arm.columns[index] >= 0 for arm in arms):
            columns.append(index)
            continue
        value: Expr = found[-1][index]
        for number in reversed(range(len(arms) - 1)):
            value = _if(which, number, found[number][index], value)
        late.append(value)
        columns.append(-len(late))
    return Split(Union(tuple(bases)), tuple(late), tuple(columns))


def _behind(expr: Expr, before: int) -> Expr:
    """Over late columns, where others stand before them."""
    return map_columns(expr, lambda column: column - before)


def _types(parts: Split) -> tuple[SqlType, ...]:
    base = parts.base.types
    return tuple(base[column] if column >= 0 else parts.exprs[-column - 1].type for column in parts.columns)


def _if(which: Column, number: int, value: Expr, otherwise: Expr) -> Expr:
    condition = Call("eq", (which, Literal(number, INTEGER)), BOOLEAN)
    return Case(((condition, value),), otherwise, value.type)
