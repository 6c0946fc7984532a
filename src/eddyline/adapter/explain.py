"""EXPLAIN: how a statement would be answered, or how an object is kept fresh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eddyline.adapter.define import maintained_relation
from eddyline.adapter.explain_json import plan_document
from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.read import ReadAnswer
from eddyline.adapter.read_plan import ReadPlan, RecursionPlan, plan_read
from eddyline.errors import unsupported
from eddyline.expr.text_io import literal_array
from eddyline.plan.explain import Names, explain_finishing, explain_query, explain_relation, used_indexes
from eddyline.plan.facts import IndexFacts
from eddyline.plan.relation import Get, Relation
from eddyline.protocol.read_costs import PHASES
from eddyline.repr.batch import concat_arrays
from eddyline.repr.time import Time
from eddyline.repr.types import JSON, TEXT
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind
from eddyline.sql.statements import CreateTableAs, Delete, Explain, Insert, Select, Subscribe, Update

__all__ = ["Analyzed", "explain", "explain_analyzed"]

_PHASE_NAMES = {
    "queue": "Queue",
    "wait_publication": "Wait for publication",
    "wait_seal": "Wait for seal",
    "dataflow": "Dataflow",
    "walk": "Walk",
    "finish": "Finish",
}
#: the end of the year 9999
_LAST_SHOWN_US = 253_402_300_799_999_999


def explain(statement: Explain, catalog: CatalogView) -> ResultSet:
    """One row per line of the plan, or one with all of it as JSON."""
    names = _names(catalog)
    if statement.item is not None:
        text = _object_plan(statement.item, catalog, names)
    else:
        text = _statement_plan(statement, catalog, names)
    return _result(statement, text)


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A read that was run for EXPLAIN ANALYZE.  ``isolation``: by what its time was chosen.  Times in nanoseconds."""

    answer: ReadAnswer
    rows: int
    isolation: str
    planning_ns: int
    finishing_ns: int
    execution_ns: int


def explain_analyzed(statement: Explain, run: Analyzed, catalog: CatalogView) -> ResultSet:
    """The plan that was run, then its time, who answered, and where the time went.

    The phases are those of ``PeekPhases``; *Finish* also has the ordering and limiting behind it.  What they do not
    account for until *Execution Time* is handing the read over and its answer back.
    """
    select, answer = statement.statement, run.answer
    assert isinstance(select, Select)
    plan, phases = answer.plan, answer.phases
    finishing = _finishing(select)
    lines = _plan_text(plan, _names(catalog)).splitlines() + ([] if finishing is None else finishing.splitlines())
    lines.append(f"Time: {_time(answer.at)}, {run.isolation}")
    lines.append(f"Runtime: {phases.runtime}, lane: {phases.lane}")
    lines.append(f"Rows: {run.rows}")
    if statement.shows("timing"):
        for phase in PHASES:
            spent = phases.of(phase) + (run.finishing_ns if phase == "finish" else 0)
            lines.append(f"{_PHASE_NAMES[phase]}: {_milliseconds(spent)}")
    if statement.shows("summary"):
        lines.append(f"Planning Time: {_milliseconds(run.planning_ns)}")
        lines.append(f"Execution Time: {_milliseconds(run.execution_ns)}")
    return _result(statement, "\n".join(lines))


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3f} ms"


def _time(at: Time) -> str:
    """In µs, and as a timestamp where that has four digits of a year."""
    if at > _LAST_SHOWN_US:
        return str(at)
    text = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at)).isoformat(" ", "microseconds")
    return f"{at} ({text.removesuffix(':00')})"


def _names(catalog: CatalogView) -> Names:
    return Names(lambda i: _name(catalog, i), lambda i: _columns(catalog, i))


def _result(statement: Explain, text: str) -> ResultSet:
    if statement.as_json:
        rows = literal_array(plan_document(text.splitlines()), JSON, 1)
        return ResultSet(("QUERY PLAN",), (JSON,), (rows,), 1)
    lines = [literal_array(line, TEXT, 1) for line in text.splitlines()]
    return ResultSet(("QUERY PLAN",), (TEXT,), (concat_arrays(lines),), len(lines))


def _finishing(select: Select) -> str | None:
    query = select.query
    columns = [
        *query.names,
        *(f"#{i}" for i in range(len(query.names), len(query.names) + query.hidden_columns)),
    ]
    return explain_finishing(query.order, query.limit, query.offset, columns)


def _statement_plan(statement: Explain, catalog: CatalogView, names: Names) -> str:
    match statement.statement:
        case Select() as select:
            finishing = _finishing(select)
            plan = _query_plan(select.query.relation, catalog, names)
            return plan if finishing is None else f"{plan}\n{finishing}"
        case Subscribe() as subscribe:
            return "Subscribe\n" + _indented(_query_plan(subscribe.query.as_relation(), catalog, names))
        case Insert() | Update() | Delete() as write:
            head = f"{type(write).__name__} on {_name(catalog, write.table.id)}"
            return head + "\n" + _indented(_query_plan(write.relation, catalog, names))
        case CreateTableAs() as create:
            return _query_plan(create.relation, catalog, names)
        case _:
            raise unsupported("EXPLAIN of this statement")


def _query_plan(relation: Relation, catalog: CatalogView, names: Names) -> str:
    plan = plan_read(relation, catalog)
    return "\n".join([_plan_text(plan, names), *_elsewhere(relation, catalog, plan)])


def _plan_text(plan: ReadPlan, names: Names) -> str:
    """Recursive queries first, each with its first round and what makes a round of the one before."""
    names = _with_recursions(names, plan.recursions) if plan.recursions else names
    parts = []
    for recursion in plan.recursions:
        end = "a round is empty" if recursion.every else "a round has nothing new"
        parts += [
            f"Recursive query {recursion.label}",
            _indented(_plan_text(recursion.base, names)),
            f"  then, until {end}",
            _indented(_indented(_plan_text(recursion.step, names))),
        ]
    return "\n".join([*parts, explain_query(plan.relation, plan.facts.indexes, names, plan.stored_keys)])


def _with_recursions(names: Names, recursions: Sequence[RecursionPlan]) -> Names:
    """``names`` and those of recursive queries, as a whole and in rounds."""
    labels = {r.id: r.label for r in recursions} | {r.round_id: f"{r.label}, the round before" for r in recursions}
    columns = {id: r.columns for r in recursions for id in (r.id, r.round_id)}
    return Names(lambda i: labels.get(i) or names.object_name(i), lambda i: columns.get(i) or names.columns(i))


def _elsewhere(relation: Relation, catalog: CatalogView, plan: ReadPlan) -> list[str]:
    """Indexes that would be read in another cluster, where this one has none like them."""
    here = {(facts.on, facts.key) for facts in _read(plan)}
    lines = []
    for cluster in catalog.clusters():
        if cluster.id == catalog.cluster_id:
            continue
        others = _read(plan_read(relation, catalog, cluster=cluster.id))
        names = [_name(catalog, facts.id) for facts in others if (facts.on, facts.key) not in here]
        if names:
            lines.append(f"In cluster {cluster.name}, indexes used: {', '.join(names)}")
    return lines


def _read(plan: ReadPlan) -> list[IndexFacts]:
    found: list[IndexFacts] = []
    for part in plan.parts():
        used = used_indexes(part.relation, part.facts.indexes, part.stored_keys) if part.facts.indexes else ()
        found += [facts for facts in part.facts.indexes if facts.id in used and facts not in found]
    return found


def _object_plan(item: CatalogItem, catalog: CatalogView, names: Names) -> str:
    match item.kind:
        case ItemKind.INDEX:
            on = catalog.item(item.on) if item.on is not None else None
            assert on is not None
            relation, _ = maintained_relation(Get(on.id, on.types), catalog, item.cluster, but_not=item.id)
        case ItemKind.MATERIALIZED_VIEW if item.relation is not None:
            relation, _ = maintained_relation(item.relation, catalog, item.cluster)
        case ItemKind.VIEW if item.relation is not None:
            relation, _ = maintained_relation(item.relation, catalog, catalog.cluster_id)
        case _:
            relation = Get(item.id, item.types)
    return explain_relation(relation, names)


def _name(catalog: CatalogView, item_id: str) -> str:
    item = catalog.item(item_id)
    return item.name if item is not None else item_id


def _columns(catalog: CatalogView, item_id: str) -> list[str] | None:
    item = catalog.item(item_id)
    return [c.name for c in item.columns] if item is not None and item.columns else None


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
