"""Joins of all kinds from inner equijoins, distinct, union and negate.

LEFT, SEMI, ANTI … need the left rows that have a match.  With equalities only, those are the left rows whose key is
among the distinct keys of the right side.  With a residual condition they are the left rows whose *match columns*
(keys and what the residual reads) are among those of the inner join's rows.  Either way left rows keep their
multiplicity, because they are joined with distinct rows.  Where no left row can have two matches, because the right
side is unique on the key columns, the inner join's own left columns are those rows.  Where the left side has no row
twice, they are the distinct ones of these: that asks for the right rows of a few keys, where the left side is filtered,
instead of the keys of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eddyline.expr.ir import Call, Cast, Column, Expr, Literal, columns_of, map_columns
from eddyline.plan.dataflow import Distinct, ImportIndex, Join
from eddyline.plan.facts import IndexFacts
from eddyline.plan.mfp import MfpBuilder
from eddyline.plan.operators import OperatorList, Stream
from eddyline.plan.predicates import ambiguous, conjuncts, fallible, links_sides
from eddyline.plan.relation import JoinKind
from eddyline.plan.unique import NO_KEYS, UniqueKeys
from eddyline.repr.types import Kind, SqlType

__all__ = ["EquiPair", "JoinFacts", "join_on_keys", "lower_join", "split_condition"]


class EquiPair(NamedTuple):
    """``left`` reads left columns, ``right`` right columns (from 0); both have one type."""

    left: Expr
    right: Expr
    null_safe: bool


def split_condition(on: Sequence[Expr], left_width: int) -> tuple[list[EquiPair], list[Expr]]:
    """(keys, residual).  A fallible equality becomes a key only where no key is without risk and nothing before it
    could be its guard: a key is computed for rows that have no partner, too."""
    predicates = conjuncts(on)
    safe = {i for i, p in enumerate(predicates) if _pair(p, left_width) is not None and not fallible(p)}
    pairs: list[EquiPair] = []
    residual: list[Expr] = []
    for i, predicate in enumerate(predicates):
        pair = _pair(predicate, left_width)
        if pair is not None and (i in safe or (not safe and not residual and not pairs)):
            pairs.append(pair)
        else:
            residual.append(predicate)
    return pairs, residual


def _pair(predicate: Expr, left_width: int) -> EquiPair | None:
    if not isinstance(predicate, Call) or not links_sides(predicate, left_width):
        return None
    first, second = predicate.args
    if max(columns_of(first)) >= left_width:
        first, second = second, first
    second = map_columns(second, lambda c: c - left_width)
    if first.type != second.type:
        common = _common_type(first.type, second.type)
        if common is None:
            return None
        first, second = _as_type(first, common), _as_type(second, common)
    return EquiPair(first, second, predicate.func == "is_not_distinct_from")


def _common_type(a: SqlType, b: SqlType) -> SqlType | None:
    """One layout for two types of a kind: without the modifiers in which they differ."""
    if a.kind is not b.kind:
        return None
    if a.kind is Kind.NUMERIC:
        return SqlType(Kind.NUMERIC, scale=a.scale if a.scale == b.scale else None)
    return SqlType(a.kind)


def _as_type(expr: Expr, sql_type: SqlType) -> Expr:
    return expr if expr.type == sql_type else Cast(expr, sql_type, explicit=False)


class _Side(NamedTuple):
    """A join input ready to be arranged: its stream with the keys appended where they are expressions."""

    stream: Stream
    key: tuple[int, ...]


def _with_keys(stream: Stream, exprs: Sequence[Expr]) -> _Side:
    width = len(stream.types)
    computed = [e for e in exprs if not isinstance(e, Column)]
    places = iter(range(width, width + len(computed)))
    key = tuple(e.index if isinstance(e, Column) else next(places) for e in exprs)
    return _Side(stream.map(computed) if computed else stream, key)


def _plain_columns(exprs: Sequence[Expr], stream: Stream) -> list[int] | None:
    """The base columns that the keys are, if they are columns of the stream's base."""
    if not all(isinstance(e, Column) for e in exprs):
        return None
    base_width = stream.mfp.base_width
    columns = [stream.mfp.columns[e.index] for e in exprs if isinstance(e, Column)]
    return columns if all(c < base_width for c in columns) else None


def join_on_keys(left: Stream, right: Stream, pairs: Sequence[EquiPair], indexes: Sequence[IndexFacts] = ()) -> Stream:
    """The inner join; columns: left's then right's.  Uses an index's arrangement where one has exactly these keys,
    and then applies what stood between the index and the join after it."""
    into = left.into
    lookup = _Lookup(into, indexes)
    left_index = lookup.find(left, [p.left for p in pairs])
    right_index = lookup.find(right, [p.right for p in pairs])
    pairs, left_index, right_index = _agree(pairs, left, left_index, right, right_index)
    left_position, left_mfp = _arranged(left, [p.left for p in pairs], left_index, lookup)
    right_position, right_mfp = _arranged(right, [p.right for p in pairs], right_index, lookup)
    null_safe = tuple(p.null_safe for p in pairs)
    left_types = into.operators[left_position].types
    builder = MfpBuilder((*left_types, *into.operators[right_position].types))
    builder.beside(left_mfp, right_mfp)
    return Stream(into, Join(left_position, right_position, null_safe, builder.build()), builder)


class _Lookup:
    """Which arrangement of an imported object has given key columns."""

    def __init__(self, into: OperatorList, indexes: Sequence[IndexFacts]) -> None:
        self._into = into
        self._indexes = indexes

    def find(self, stream: Stream, exprs: Sequence[Expr]) -> IndexFacts | None:
        on = self.object_of(stream)
        columns = _plain_columns(exprs, stream)
        if on is None or not columns:
            return None
        for index in self._indexes:
            if index.on == on and sorted(index.key) == sorted(columns):
                return index
        return None

    def object_of(self, stream: Stream) -> str | None:
        """The indexed object that the stream reads directly."""
        if not isinstance(stream.base, int):
            return None
        operator = self._into.operators[stream.base]
        if not isinstance(operator, ImportIndex):
            return None
        return next((i.on for i in self._indexes if i.id == operator.id), None)

    def position(self, index: IndexFacts) -> int:
        return self._into.add(ImportIndex(index.id, index.types, index.key))


def _agree(
    pairs: Sequence[EquiPair],
    left: Stream,
    left_index: IndexFacts | None,
    right: Stream,
    right_index: IndexFacts | None,
) -> tuple[list[EquiPair], IndexFacts | None, IndexFacts | None]:
    """The pairs in the order of the index that is used; the right one is given up if the two orders disagree."""
    ordered = list(pairs)
    if left_index is not None:
        ordered = _in_key_order(pairs, _plain_columns([p.left for p in pairs], left) or [], left_index.key)
        if right_index is not None:
            columns = _plain_columns([p.right for p in ordered], right) or []
            if tuple(columns) != right_index.key:
                right_index = None
    elif right_index is not None:
        ordered = _in_key_order(pairs, _plain_columns([p.right for p in pairs], right) or [], right_index.key)
    return ordered, left_index, right_index


def _in_key_order(pairs: Sequence[EquiPair], columns: list[int], key: tuple[int, ...]) -> list[EquiPair]:
    return [pairs[columns.index(c)] for c in key]


def _arranged(
    stream: Stream, exprs: Sequence[Expr], index: IndexFacts | None, lookup: _Lookup
) -> tuple[int, MfpBuilder]:
    """(position of the arrangement, what is still to be applied to its rows)."""
    if index is not None:
        return lookup.position(index), stream.mfp
    side = _with_keys(stream, exprs)
    position = side.stream.arranged(side.key)
    pending = MfpBuilder(side.stream.types)
    pending.project(range(len(stream.types)))
    return position, pending


class JoinFacts(NamedTuple):
    """``left`` and ``right``: unique keys of the two sides; ``left_filtered``: whether the left one is likely small."""

    indexes: Sequence[IndexFacts]
    left: UniqueKeys = NO_KEYS
    right: UniqueKeys = NO_KEYS
    left_filtered: bool = False


def lower_join(kind: JoinKind, left: Stream, right: Stream, on: Sequence[Expr], facts: JoinFacts) -> Stream:
    """A join of any kind.  Output columns as ``relation.Join`` has them."""
    width, right_width = len(left.types), len(right.types)
    if kind is JoinKind.RIGHT:
        flipped = JoinFacts(facts.indexes, facts.right, facts.left)
        swapped = lower_join(JoinKind.LEFT, right, left, _flip(on, width, right_width), flipped)
        return swapped.project((*range(right_width, right_width + width), *range(right_width)))
    pairs, residual = split_condition(on, width)
    if kind is JoinKind.INNER:
        return join_on_keys(left, right, pairs, facts.indexes).filter(residual)
    return _Matching(kind, left.shared(), right.shared(), pairs, residual, facts).lower()


class _Matching:
    """The kinds of join that ask which rows have a match."""

    def __init__(
        self,
        kind: JoinKind,
        left: Stream,
        right: Stream,
        pairs: Sequence[EquiPair],
        residual: Sequence[Expr],
        facts: JoinFacts,
    ) -> None:
        self._kind = kind
        self._left = left
        self._right = right
        self._pairs = pairs
        self._residual = residual
        self._facts = facts

    def lower(self) -> Stream:
        kind, left, right, into = self._kind, self._left, self._right, self._left.into
        if kind is JoinKind.SEMI:
            return self._matched(is_left=True)
        unmatched = into.union(left, into.negate(self._matched(is_left=True)))
        if kind is JoinKind.ANTI:
            return unmatched
        parts = [self._inner(), unmatched.map([Literal(None, t) for t in right.types])]
        if kind is JoinKind.FULL:
            unmatched_right = into.union(right, into.negate(self._matched(is_left=False)))
            padded = unmatched_right.map([Literal(None, t) for t in left.types])
            width, right_width = len(left.types), len(right.types)
            parts.append(padded.project((*range(right_width, right_width + width), *range(right_width))))
        return into.union(*parts)

    def _inner(self) -> Stream:
        """The inner join.  Equal operators are rendered once, so that asking twice costs nothing."""
        return join_on_keys(self._left, self._right, self._pairs, self._facts.indexes).filter(self._residual).rendered()

    def _matched(self, *, is_left: bool) -> Stream:
        """The rows of one side that have a match, with their multiplicities."""
        width = len(self._left.types)
        side, other = (self._left, self._right) if is_left else (self._right, self._left)
        if self._at_most_one_match(is_left=is_left):
            return self._inner().project(range(width) if is_left else range(width, width + len(side.types)))
        if is_left and self._pairs and self._is_few_and_distinct():
            return self._distinct_matched()
        if self._residual:
            own, keys = self._match_columns(is_left=is_left)
            null_safe = [True] * len(own)
        else:
            own = [p.left if is_left else p.right for p in self._pairs]
            keys = self._keys(other, [p.right if is_left else p.left for p in self._pairs])
            null_safe = [p.null_safe for p in self._pairs]
        distinct = side.into.stream(Distinct(keys.position(), keys.types))
        on = [
            EquiPair(mine, Column(i, t), safe)
            for i, (mine, t, safe) in enumerate(zip(own, distinct.types, null_safe, strict=True))
        ]
        return join_on_keys(side, distinct, on, self._facts.indexes).project(range(len(side.types)))

    def _keys(self, side: Stream, exprs: Sequence[Expr]) -> Stream:
        """The values of a side's keys, but for those that match nothing."""
        keys = _with_keys(side, exprs)
        values = keys.stream.project(keys.key)
        unmatchable = _not_null(values.types, self._pairs)
        return values.filter(unmatchable) if unmatchable else values

    def _is_few_and_distinct(self) -> bool:
        """Whether the left side is likely small, and the different ones of its rows, as often as they come, are it."""
        unique = bool(self._facts.left) and not any(ambiguous(t) for t in self._left.types)
        return unique and self._facts.left_filtered

    def _distinct_matched(self) -> Stream:
        """``_matched`` of a left side without duplicates: the different left rows of the inner join."""
        width = len(self._left.types)
        if self._residual or self._kind not in (JoinKind.SEMI, JoinKind.ANTI):  # the inner join is there anyway
            pairs = self._inner()
        else:
            right = self._keys(self._right, [p.right for p in self._pairs])
            on = [EquiPair(p.left, Column(i, p.right.type), p.null_safe) for i, p in enumerate(self._pairs)]
            pairs = join_on_keys(self._left, right, on, self._facts.indexes)
        rows = pairs.project(range(width))
        return rows.into.stream(Distinct(rows.position(), rows.types))

    def _at_most_one_match(self, *, is_left: bool) -> bool:
        """Whether the other side's key columns are unique, so that the inner join has no row of this side twice."""
        exprs = [p.right if is_left else p.left for p in self._pairs]
        columns = frozenset(e.index for e in exprs if isinstance(e, Column))
        return any(key <= columns for key in (self._facts.right if is_left else self._facts.left))

    def _match_columns(self, *, is_left: bool) -> tuple[list[Expr], Stream]:
        """What decides over a match: the side's keys and what the residual reads, and the values that have one."""
        side = self._left if is_left else self._right
        first = 0 if is_left else len(self._left.types)
        inside = range(first, first + len(side.types))
        read = sorted({c - first for p in self._residual for c in columns_of(p) if c in inside})
        own = [p.left if is_left else p.right for p in self._pairs]
        own.extend(Column(c, side.types[c]) for c in read)
        found = _with_keys(self._inner(), [map_columns(e, lambda c: c + first) for e in own])
        return own, found.stream.project(found.key)


def _flip(on: Sequence[Expr], left_width: int, right_width: int) -> list[Expr]:
    """Conditions over (left, right) as ones over (right, left)."""
    return [map_columns(p, lambda c: c + right_width if c < left_width else c - left_width) for p in on]


def _not_null(types: Sequence[SqlType], pairs: Sequence[EquiPair]) -> list[Expr]:
    """NULL keys match nothing: they need not be kept."""
    from_type = zip(range(len(types)), types, pairs, strict=True)
    return [_is_not_null(Column(i, t)) for i, t, pair in from_type if not pair.null_safe]


def _is_not_null(expr: Expr) -> Expr:
    return Call("is_not_null", (expr,), SqlType(Kind.BOOLEAN))
