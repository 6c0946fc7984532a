"""What a read will do, decided from the catalog alone: cacheable per statement and catalog version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from eddyline.adapter.object_names import object_names
from eddyline.adapter.system_catalog import SYSTEM_SCHEMAS
from eddyline.errors import unsupported
from eddyline.expr.ir import CLOCK, OF_THE_MOMENT, Call, Column, Expr, Literal, Mfp, rewrite
from eddyline.expr.ir import walk as parts_of
from eddyline.plan.column_names import ObjectNames, ObjectOf, name_fast_path, name_lookup_join, name_operators
from eddyline.plan.dataflow import Operator
from eddyline.plan.facts import CatalogFacts, IndexFacts
from eddyline.plan.fast_path import FastPath, PeekPlan, fast_path, linear_over
from eddyline.plan.inline import inline_views
from eddyline.plan.lookup_join import LookupJoin, lookup_join
from eddyline.plan.lower import lower
from eddyline.plan.optimize import optimize
from eddyline.plan.parameters import has_parameters, map_expressions
from eddyline.plan.recursion import Recursion, Unrolled, has_recursion, unroll
from eddyline.plan.relation import Constant, Relation
from eddyline.plan.traverse import gets
from eddyline.repr.ids import is_working
from eddyline.repr.types import SqlType
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind
from eddyline.sql.show_create import quoted

__all__ = [
    "ReadPlan",
    "RecursionPlan",
    "at_the_moment",
    "base_tables",
    "catalog_facts",
    "definitions",
    "everything_read",
    "index_facts",
    "plan_read",
    "read_of_the_moment",
    "refuse_system_relations",
]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """``relation`` is optimized, over stored collections and indexed views.

    ``join``: lookups that answer it where they find few rows; the dataflow is for when they do not.
    ``operators``: the plan of a one-shot dataflow, where neither parameters nor the clock change it.
    ``tables``: the base tables below, through views and materialized views.
    ``stored_keys``: primary keys, by which storage finds rows.
    ``clocked``: it reads something ``OF_THE_MOMENT``.
    ``recursions``: whose rows it reads; each may read those before it.
    ``walk``: what is done to each row of a recursion or a round, if that is all that it does.
    """

    relation: Relation
    fast: FastPath | None
    join: LookupJoin | None
    operators: tuple[Operator, ...] | None
    tables: tuple[str, ...]
    facts: CatalogFacts
    stored_keys: tuple[IndexFacts, ...]
    clocked: bool
    parameterised: bool
    recursions: tuple[RecursionPlan, ...] = ()
    walk: PeekPlan | None = None

    def parts(self) -> Iterator[ReadPlan]:
        """Itself, and the plans of its recursions."""
        yield self
        for recursion in self.recursions:
            yield recursion.base
            yield from recursion.step.parts()


@dataclass(frozen=True, slots=True)
class RecursionPlan:
    """As ``plan.recursion.Recursion``, planned."""

    id: str
    round_id: str
    base: ReadPlan
    step: ReadPlan
    every: bool
    label: str
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]


def plan_read(
    relation: Relation, catalog: CatalogView, *, use_indexes: bool = True, cluster: str | None = None
) -> ReadPlan:
    """As ``cluster`` (an id) answers it, or the session's.

    ``use_indexes`` False: from storage alone, every view computed.
    """
    cluster = catalog.cluster_id if cluster is None else cluster
    unrolled = unroll(relation) if has_recursion(relation) else Unrolled((), relation)
    return _plan_unrolled(unrolled, _Planning(catalog, cluster, use_indexes, object_names(catalog)))


class _Planning(NamedTuple):
    """For whom, and what columns are called."""

    catalog: CatalogView
    cluster: str | None
    use_indexes: bool
    names: ObjectOf

    def knowing(self, recursions: Iterable[Recursion]) -> _Planning:
        """With the columns of recursions, and of their rounds."""
        own = {
            id: ObjectNames(quoted(r.label), tuple(map(quoted, r.columns)))
            for r in recursions
            for id in (r.id, r.round_id)
        }
        return self._replace(names=lambda id: own.get(id) or self.names(id))


def _plan_unrolled(unrolled: Unrolled, planning: _Planning) -> ReadPlan:
    """``tables`` and what it depends on are of the whole."""
    planning = planning.knowing(unrolled.recursions) if unrolled.recursions else planning
    plan = _plan_plain(unrolled.body, planning)
    if not unrolled.recursions:
        return plan
    recursions = tuple(
        RecursionPlan(
            r.id,
            r.round_id,
            _plan_plain(r.base, planning),
            _plan_unrolled(r.step, planning),
            r.every,
            r.label,
            r.columns,
            r.types,
        )
        for r in unrolled.recursions
    )
    parts = [plan, *(part for r in recursions for part in (r.base, r.step))]
    return replace(
        plan,
        recursions=recursions,
        tables=tuple(sorted({table for part in parts for table in part.tables})),
        clocked=any(part.clocked for part in parts),
        parameterised=any(part.parameterised for part in parts),
    )


def _plan_plain(relation: Relation, planning: _Planning) -> ReadPlan:
    catalog, cluster, use_indexes, names = planning
    facts = catalog_facts(relation, catalog, cluster) if use_indexes else _without_indexes(relation, catalog)
    definition = definitions(catalog, facts)
    optimized = optimize(inline_views(relation, definition), facts)
    stored_keys = tuple(_stored_keys(gets(optimized), catalog))
    fast = fast_path(optimized, facts.indexes, stored_keys)
    chain = linear_over(optimized)
    walk = None if chain is None or not is_working(chain[0].id) else _walk(chain[0].id, chain[1], names)
    clocked, parameterised = read_of_the_moment(optimized) is not None, has_parameters(optimized)
    fixed = fast is None and not clocked and not parameterised
    joined = None if fast is not None or clocked else lookup_join(optimized, facts.indexes, stored_keys)
    operators: tuple[Operator, ...] | None = None
    if fixed:
        operators = lower(optimized, facts.indexes, unique_keys=facts.unique_keys, single_time=True)
        operators = name_operators(operators, names)
    return ReadPlan(
        relation=optimized,
        fast=None if fast is None else name_fast_path(fast, names),
        join=None if joined is None else name_lookup_join(joined, names),
        operators=operators,
        tables=base_tables(gets(relation), catalog),
        facts=facts,
        stored_keys=stored_keys,
        clocked=clocked,
        parameterised=parameterised,
        walk=walk,
    )


def _walk(id: str, mfp: Mfp, names: ObjectOf) -> PeekPlan:
    walk = name_fast_path(PeekPlan(id, id, (), None, mfp), names)
    assert isinstance(walk, PeekPlan)
    return walk


def definitions(catalog: CatalogView, facts: CatalogFacts) -> Callable[[str], Relation | None]:
    """What an item that is neither stored nor indexed is computed from; None for those that are."""
    indexed = {i.on for i in facts.indexes}

    def definition(item_id: str) -> Relation | None:
        item = catalog.item(item_id)
        if item is None or item_id in indexed:
            return None
        if item.kind is ItemKind.TABLE:
            return None if catalog.built(item_id) else Constant((), item.types)
        if item.kind is ItemKind.SEQUENCE:
            return item.relation
        return None if item.kind is ItemKind.MATERIALIZED_VIEW and catalog.built(item_id) else item.relation

    return definition


def _stored_keys(ids: Iterable[str], catalog: CatalogView) -> Iterator[IndexFacts]:
    for id in sorted(ids):
        item = catalog.item(id)
        if item is not None and item.kind is ItemKind.TABLE and item.primary_key and catalog.built(id):
            yield IndexFacts(id, id, item.primary_key, item.types)


def base_tables(ids: Iterable[str], catalog: CatalogView) -> tuple[str, ...]:
    """The tables that ``ids`` depend on, through views and materialized views."""
    return tuple(sorted(i.id for i in _closure(ids, catalog) if i.kind is ItemKind.TABLE))


def everything_read(relation: Relation, catalog: CatalogView) -> list[CatalogItem]:
    """What ``relation`` reads, and what that is made from."""
    return _closure(gets(relation), catalog)


def _closure(ids: Iterable[str], catalog: CatalogView) -> list[CatalogItem]:
    seen: dict[str, CatalogItem] = {}
    stack = list(ids)
    while stack:
        item_id = stack.pop()
        item = catalog.item(item_id)
        if item is None or item_id in seen:
            continue
        seen[item_id] = item
        stack.extend(item.depends_on)
    return list(seen.values())


def refuse_system_relations(relation: Relation, catalog: CatalogView, what: str) -> None:
    """0A000 if ``relation`` reads a relation of the system's, through whatever views."""
    found = next((i for i in _closure(gets(relation), catalog) if i.schema in SYSTEM_SCHEMAS), None)
    if found is not None:
        raise unsupported(
            f'{what} over the system relation "{found.schema}.{found.name}"',
            hint="Read it with SELECT, whenever it is wanted: system relations are not on the timeline of tables.",
        )


def catalog_facts(
    relation: Relation, catalog: CatalogView, cluster: str | None, *, but_not: str | None = None
) -> CatalogFacts:
    """Keys of everything that ``relation`` may come to read, and the indexes that ``cluster`` (an id) keeps of it.

    ``but_not``: an index not to use.
    """
    items = _closure(gets(relation), catalog)
    indexes = tuple(
        facts
        for item in items
        for index in catalog.indexes_on(item.id)
        if index.cluster == cluster and index.id != but_not and catalog.built(index.id)
        if (facts := index_facts(index, item)) is not None
    )
    return CatalogFacts(indexes, _unique_keys(items))


def _without_indexes(relation: Relation, catalog: CatalogView) -> CatalogFacts:
    return CatalogFacts((), _unique_keys(_closure(gets(relation), catalog)))


def _unique_keys(items: Iterable[CatalogItem]) -> dict[str, tuple[tuple[int, ...], ...]]:
    return {i.id: (i.primary_key,) for i in items if i.primary_key}


def index_facts(index: CatalogItem, on: CatalogItem) -> IndexFacts | None:
    """None for an index on expressions, which no plan reads."""
    key = tuple(e.index for e in index.keys if isinstance(e, Column))
    if len(key) != len(index.keys):
        return None
    return IndexFacts(index.id, on.id, key, on.types)


def read_of_the_moment(relation: Relation) -> str | None:
    """What it reads that is neither a table's nor a constant: the clock, or where a sequence stands.  None: nothing."""
    found: set[str] = set()

    def look(expr: Expr) -> Expr:
        found.update(e.func for e in parts_of(expr) if isinstance(e, Call) and e.func in OF_THE_MOMENT)
        return expr

    map_expressions(relation, look)
    if not found:
        return None
    return "now()" if CLOCK in found else "a sequence"


def at_the_moment(relation: Relation, value: Callable[[Call], Literal]) -> Relation:
    """``relation`` with what ``value`` says of calls that are ``OF_THE_MOMENT``."""

    def fix(expr: Expr) -> Expr:
        return rewrite(expr, lambda e: value(e) if isinstance(e, Call) and e.func in OF_THE_MOMENT else e)

    return map_expressions(relation, fix)
