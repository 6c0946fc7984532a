"""EXPLAIN: how a statement would be answered, or how an object is kept fresh."""

from __future__ import annotations

from eddyline.adapter.define import maintained_relation
from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.read_plan import plan_read
from eddyline.errors import unsupported
from eddyline.expr.text_io import literal_array
from eddyline.plan.explain import Names, explain_finishing, explain_query, explain_relation
from eddyline.plan.relation import Get, Relation
from eddyline.repr.batch import concat_arrays
from eddyline.repr.types import TEXT
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind
from eddyline.sql.statements import CreateTableAs, Delete, Explain, Insert, Select, Subscribe, Update

__all__ = ["explain"]


def explain(statement: Explain, catalog: CatalogView) -> ResultSet:
    """One row per line of the plan.  ANALYZE is not supported."""
    if any(o in statement.options for o in ("analyze", "buffers", "wal", "settings")):
        raise unsupported(f"EXPLAIN {next(iter(statement.options)).upper()}")
    names = Names(lambda i: _name(catalog, i), lambda i: _columns(catalog, i))
    if statement.item is not None:
        text = _object_plan(statement.item, catalog, names)
    else:
        text = _statement_plan(statement, catalog, names)
    lines = [literal_array(line, TEXT, 1) for line in text.splitlines()]
    return ResultSet(("QUERY PLAN",), (TEXT,), (concat_arrays(lines),), len(lines))


def _statement_plan(statement: Explain, catalog: CatalogView, names: Names) -> str:
    match statement.statement:
        case Select() as select:
            query = select.query
            columns = [
                *query.names,
                *(f"#{i}" for i in range(len(query.names), len(query.names) + query.hidden_columns)),
            ]
            finishing = explain_finishing(query.order, query.limit, query.offset, columns)
            plan = _query_plan(query.relation, catalog, names)
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
    return explain_query(plan.relation, plan.facts.indexes, names, plan.stored_keys)


def _object_plan(item: CatalogItem, catalog: CatalogView, names: Names) -> str:
    match item.kind:
        case ItemKind.INDEX:
            on = catalog.item(item.on) if item.on is not None else None
            assert on is not None
            relation, _ = maintained_relation(Get(on.id, on.types), catalog, but_not=item.id)
        case ItemKind.VIEW | ItemKind.MATERIALIZED_VIEW if item.relation is not None:
            relation, _ = maintained_relation(item.relation, catalog, but_not=None)
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
