"""Queries that need no dataflow: a walk or a lookup of one index, or constant rows, through one map-filter-project."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

import msgspec

from eddyline.expr.array_layout import elements_of_literal
from eddyline.expr.ir import (
    Call,
    Cast,
    Column,
    Expr,
    FilterStep,
    Literal,
    LiteralValue,
    MapStep,
    Mfp,
    Or,
    Parameter,
    columns_of,
)
from eddyline.plan.facts import IndexFacts
from eddyline.plan.mfp import MfpBuilder
from eddyline.plan.parameters import bind_parameters
from eddyline.plan.predicates import conjuncts, is_constant, lossless_cast
from eddyline.plan.relation import Constant, Filter, Get, Join, JoinKind, Map, Project, Relation
from eddyline.repr.types import Kind, SqlType, element_type, is_array

__all__ = [
    "MAX_KEYS",
    "ConstantPlan",
    "FastPath",
    "PeekPlan",
    "fast_path",
    "linear_over",
    "substitute_in_fast_path",
    "substitute_in_mfp",
]

#: more keys than this are a walk
MAX_KEYS = 1000

_INTEGER_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})


class PeekPlan(msgspec.Struct, frozen=True):
    """Read index ``index`` on ``on`` (or ``on`` itself, by its stored key): the rows with one of ``keys`` (None: all),
    then ``mfp``.

    A key has one literal or parameter for each of the index's key columns, whose types are ``key_types``.  At the
    positions ``each`` it is an array instead, whose elements are values of the column, each of them.
    """

    index: str
    on: str
    key_types: tuple[SqlType, ...]
    keys: tuple[tuple[Expr, ...], ...] | None
    mfp: Mfp
    each: tuple[int, ...] = ()

    @property
    def from_storage(self) -> bool:
        """Whether storage finds the rows, without an index."""
        return self.index == self.on

    def literal_keys(self) -> tuple[tuple[LiteralValue, ...], ...] | None:
        """The keys as values of the key columns' types: no NULL (it equals nothing), no value that the column cannot
        hold, none twice.  No parameters may be left."""
        if self.keys is None:
            return None
        found: dict[tuple[object, ...], tuple[LiteralValue, ...]] = {}
        for key in self.keys:
            sides = [_elements(e) if i in self.each else (_value(e),) for i, e in enumerate(key)]
            for combination in itertools.product(*sides):
                values = [_as_stored(v, t) for v, t in zip(combination, self.key_types, strict=True)]
                if None not in values:
                    identity = tuple(_identity(v, t) for v, t in zip(values, self.key_types, strict=True))
                    found.setdefault(identity, tuple(values))
        return tuple(found.values())

    def too_many(self) -> bool:
        """Whether its arrays come to more keys than are looked up.  No parameters may be left."""
        if not self.each or self.keys is None:
            return False
        sizes = (math.prod(len(_elements(key[i])) for i in self.each) for key in self.keys)
        return sum(sizes) > MAX_KEYS


class ConstantPlan(msgspec.Struct, frozen=True):
    """Literal rows, each once, through ``mfp``."""

    rows: tuple[tuple[LiteralValue, ...], ...]
    types: tuple[SqlType, ...]
    mfp: Mfp


FastPath: TypeAlias = PeekPlan | ConstantPlan


def fast_path(relation: Relation, indexes: Sequence[IndexFacts], stored: Sequence[IndexFacts] = ()) -> FastPath | None:
    """The plan without a dataflow for an optimized relation; None if it needs one.

    ``stored``: keys by which storage itself finds the rows of a table, with the table's id as theirs.  Lookups prefer
    them, since storage is never behind; they are no way to read everything.
    """
    chain: list[Map | Filter | Project | Join] = []
    while True:
        if isinstance(relation, (Map, Filter, Project)):
            chain.append(relation)
            relation = relation.input
        elif isinstance(relation, Join) and _is_listed(relation):
            chain.append(relation)
            relation = relation.left
        else:
            break
    chain.reverse()
    lists = {id(node) for node in chain if isinstance(node, Join)}
    if isinstance(relation, Constant) and not lists:
        return ConstantPlan(relation.rows, relation.types, _through(relation.types, chain, frozenset()))
    if not isinstance(relation, Get):
        return None
    on = relation.id
    own = [i for i in indexes if i.on == on]
    keyed = [i for i in stored if i.on == on]
    if not own and not keyed:
        return None
    found = _equalities(relation.types, chain)
    for index in (*keyed, *sorted(own, key=lambda i: -len(i.key))):
        lookup = _lookup(index, found)
        if lookup is not None:
            keys, each, used = lookup
            if not lists <= used:
                continue  # no step of an mfp says that
            mfp = _through(relation.types, chain, used)
            return PeekPlan(index.id, on, _key_types(index), keys, mfp, each)
    if not own or lists:
        return None
    return PeekPlan(own[0].id, on, _key_types(own[0]), None, _through(relation.types, chain, frozenset()))


def linear_over(relation: Relation) -> tuple[Get, Mfp] | None:
    """(what is read, what is done to each row) if the relation is rows of one object, each by itself."""
    chain: list[Map | Filter | Project] = []
    while isinstance(relation, (Map, Filter, Project)):
        chain.append(relation)
        relation = relation.input
    chain.reverse()
    return (relation, _through(relation.types, chain, frozenset())) if isinstance(relation, Get) else None


def substitute_in_fast_path(plan: FastPath, literals: Sequence[Literal]) -> FastPath:
    """The plan without parameters; ``literals[i - 1]`` for ``$i``.  42P02: there is none."""
    mfp = substitute_in_mfp(plan.mfp, literals)
    if isinstance(plan, ConstantPlan):
        return ConstantPlan(plan.rows, plan.types, mfp)
    keys = plan.keys
    if keys is not None:
        keys = tuple(tuple(bind_parameters(e, literals) for e in key) for key in keys)
    return PeekPlan(plan.index, plan.on, plan.key_types, keys, mfp, plan.each)


def substitute_in_mfp(mfp: Mfp, literals: Sequence[Literal]) -> Mfp:
    """The same without parameters; 42P02: there is none."""
    steps: list[MapStep | FilterStep] = []
    for step in mfp.steps:
        match step:
            case MapStep():
                steps.append(MapStep(bind_parameters(step.expr, literals)))
            case FilterStep():
                steps.append(FilterStep(bind_parameters(step.predicate, literals)))
    return Mfp(tuple(steps), mfp.projection, mfp.types, mfp.names, mfp.view) if steps else mfp


def _key_types(index: IndexFacts) -> tuple[SqlType, ...]:
    return tuple(index.types[c] for c in index.key)


def _is_listed(join: Join) -> bool:
    """Whether it is what a long IN list becomes: rows that have one of these constants."""
    return join.kind is JoinKind.SEMI and isinstance(join.right, Constant)


def _through(types: Sequence[SqlType], chain: Sequence[Map | Filter | Project | Join], used: frozenset[int]) -> Mfp:
    """The chain as one Mfp, without the predicates and lists, whose ids are in ``used``: all lists are."""
    builder = MfpBuilder(types)
    for node in chain:
        match node:
            case Map():
                builder.map(node.exprs)
            case Filter():
                builder.filter(p for p in conjuncts(node.predicates) if id(p) not in used)
            case Project():
                builder.project(node.columns)
    return builder.build()


class EachOf(NamedTuple):
    """The elements of an array, a literal or a parameter."""

    array: Expr


Alternative: TypeAlias = dict[int, Expr | EachOf]


def _equalities(
    types: Sequence[SqlType], chain: Sequence[Map | Filter | Project | Join]
) -> list[tuple[int, list[Alternative]]]:
    """(id of the predicate or list, its alternatives) for each that says: these columns have one of these values."""
    builder = MfpBuilder(types)
    found: list[tuple[int, list[Alternative]]] = []
    for node in chain:
        match node:
            case Map():
                builder.map(node.exprs)
            case Project():
                builder.project(node.columns)
            case Filter():
                for predicate in conjuncts(node.predicates):
                    resolved = builder.resolve(predicate)
                    if all(c < len(types) for c in columns_of(resolved)):
                        alternatives = _alternatives(resolved)
                        if alternatives is not None:
                            found.append((id(predicate), alternatives))
            case Join():
                listed = _listed_alternatives(node, builder, len(types))
                if listed is not None:
                    found.append((id(node), listed))
    return found


def _listed_alternatives(node: Join, builder: MfpBuilder, width: int) -> list[Alternative] | None:
    """A row of the list each, if ON equates columns with those of the list, and says no more."""
    assert isinstance(node.right, Constant)
    offset = len(node.left.types)
    pairs: list[tuple[int, int]] = []
    for predicate in conjuncts(node.on):
        if not isinstance(predicate, Call) or predicate.func != "eq":
            return None
        sides = sorted((_uncast(a) for a in predicate.args), key=lambda a: max(columns_of(a), default=-1))
        value = sides[1]
        if not isinstance(value, Column) or value.index < offset or any(c >= offset for c in columns_of(sides[0])):
            return None
        column = _uncast(builder.resolve(sides[0]))
        if not isinstance(column, Column) or column.index >= width or not _comparable(column.type, value.type):
            return None
        pairs.append((column.index, value.index - offset))
    if not pairs or len({column for column, _ in pairs}) < len(pairs):
        return None
    types = node.right.types
    return [{column: Literal(row[at], types[at]) for column, at in pairs} for row in node.right.rows] or None


def _alternatives(predicate: Expr) -> list[Alternative] | None:
    """The predicate as alternatives over one set of columns: ``a = 1``, ``a = 1 OR a = 2``, ``(a, b) IN (…)``, and
    ``a = ANY (array)``, which is one of its own."""
    members = _membership(predicate)
    if members is not None:
        return [members]
    branches = predicate.args if isinstance(predicate, Or) else (predicate,)
    alternatives: list[Alternative] = []
    for branch in branches:
        alternative: Alternative = {}
        for part in conjuncts((branch,)):
            equality = _equality(part)
            if equality is None or equality[0] in alternative:
                return None
            alternative[equality[0]] = equality[1]
        alternatives.append(alternative)
    columns = alternatives[0].keys()
    return alternatives if columns and all(a.keys() == columns for a in alternatives) else None


def _equality(predicate: Expr) -> tuple[int, Expr] | None:
    """(column, value) if the predicate is that the column equals a literal or parameter that can be looked up."""
    if not isinstance(predicate, Call) or predicate.func != "eq":
        return None
    side, value = (_uncast(a) for a in predicate.args)
    if is_constant(side):
        side, value = value, side
    if not is_constant(value):
        return None
    if not isinstance(side, Column) or not _comparable(side.type, value.type):
        return None
    return (side.index, value)


def _membership(predicate: Expr) -> Alternative | None:
    """The column and the array, if the predicate is that the column equals one of its elements."""
    if not isinstance(predicate, Call) or predicate.func != "any_eq":
        return None
    side, array = _uncast(predicate.args[0]), predicate.args[1]
    if isinstance(array, Cast) and is_constant(array.input) and is_array(array.input.type):
        given, wanted = element_type(array.input.type), element_type(array.type)
        array = array.input if _comparable(wanted, given) and lossless_cast(given, wanted) else array
    if not is_constant(array) or not isinstance(side, Column):
        return None
    return {side.index: EachOf(array)} if _comparable(side.type, element_type(array.type)) else None


def _uncast(expr: Expr) -> Expr:
    """A column or a parameter without a cast that changes neither what it is nor what it equals."""
    plain = isinstance(expr, Cast) and isinstance(expr.input, (Column, Parameter))
    return expr.input if isinstance(expr, Cast) and plain and _same_family(expr.input.type, expr.type) else expr


def _same_family(source: SqlType, target: SqlType) -> bool:
    """Whether a cast keeps both the value and what equality means."""
    if not lossless_cast(source, target):
        return False
    return _comparable(source, target) and source.kind is not Kind.BPCHAR


def _comparable(column: SqlType, value: SqlType) -> bool:
    if column.kind in _INTEGER_BITS:
        return value.kind in _INTEGER_BITS
    if column.kind in _TEXTS:
        return value.kind in _TEXTS
    return column.kind is value.kind


def _lookup(
    index: IndexFacts, found: Sequence[tuple[int, list[Alternative]]]
) -> tuple[tuple[tuple[Expr, ...], ...], tuple[int, ...], frozenset[int]] | None:
    """(keys, where they are arrays, ids of the predicates that they stand for) if the predicates give every key column
    a value."""
    missing = set(index.key)
    used: list[int] = []
    factors: list[list[Alternative]] = []
    for predicate, alternatives in found:
        columns = alternatives[0].keys()
        if columns <= missing:
            missing -= columns
            used.append(predicate)
            factors.append(alternatives)
    count = math.prod(_size(factor) for factor in factors)
    if missing or count > MAX_KEYS:
        return None
    if count > 1 and any(index.types[c].kind is Kind.INTERVAL for c in index.key):
        return None  # two spellings of one interval would be two keys
    keys: list[tuple[Expr, ...]] = []
    each: list[int] = []
    for combination in itertools.product(*factors):
        values = {c: v for alternative in combination for c, v in alternative.items()}
        key = [values[c] for c in index.key]
        each = [i for i, v in enumerate(key) if isinstance(v, EachOf)]  # the same for all: an array stands alone
        keys.append(tuple(v.array if isinstance(v, EachOf) else v for v in key))
    return tuple(keys), tuple(each), frozenset(used)


def _size(factor: list[Alternative]) -> int:
    """How many keys it makes, as far as the plan knows."""
    arrays = [v.array for v in factor[0].values() if isinstance(v, EachOf)]
    return len(_elements(arrays[0])) if arrays and isinstance(arrays[0], Literal) else len(factor)


def _value(expr: Expr) -> LiteralValue:
    if not isinstance(expr, Literal):
        raise TypeError(f"a key is not a literal: {expr}")
    return expr.value


def _elements(array: Expr) -> list[LiteralValue]:
    """Of all its dimensions; none of NULL."""
    value = _value(array)
    return [] if value is None else elements_of_literal(value, array.type)


def _as_stored(value: LiteralValue, column: SqlType) -> LiteralValue:
    """The value in the column's representation; None if no value of the column equals it."""
    if value is None:
        return None
    if column.kind in _INTEGER_BITS:
        limit = 1 << (_INTEGER_BITS[column.kind] - 1)
        return value if -limit <= int(value) < limit else None
    if column.kind is Kind.NUMERIC and column.scale is not None:
        return _at_scale(Decimal(str(value)), column.scale)
    if column.kind is Kind.BPCHAR:
        return str(value).rstrip(" ")
    return value


def _at_scale(value: Decimal, scale: int) -> str | None:
    if not value.is_finite():
        return None
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # finite
    coefficient = int("".join(map(str, digits)))
    surplus = -exponent - scale
    if surplus > 0:
        coefficient, lost = divmod(coefficient, 10**surplus)
        if lost:
            return None
    else:
        coefficient *= 10**-surplus
    text = str(coefficient).rjust(scale + 1, "0")
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :]
    return ("-" if sign and coefficient else "") + whole + ("." + fraction if scale else "")


def _identity(value: LiteralValue, column: SqlType) -> object:
    """Equal for values that are equal to SQL."""
    if column.kind is Kind.NUMERIC:
        number = Decimal(str(value))
        return number if number.is_finite() else str(number)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value
