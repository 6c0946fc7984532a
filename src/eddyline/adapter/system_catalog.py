"""The relations that every database has: what the replica does, and what the catalog holds.

Three schemas, with the names that Materialize gives them.  ``mz_introspection``: the logs, one relation each with the
suffix ``_per_worker``, and views that put the workers together.  ``mz_internal``: hydration, dependencies.
``mz_catalog``: the objects by id and name, from the catalog version that a statement is bound to, and the clusters;
it is looked in before the search path.  None of them can be changed, or maintained from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from eddyline.adapter.access_rules import AccessRules
from eddyline.adapter.activity_relations import ACTIVITY_TABLES
from eddyline.adapter.pg_catalog_tables import PG_TABLES
from eddyline.adapter.pg_objects import INFORMATION_SCHEMA, PG_CATALOG
from eddyline.adapter.pg_sequences import catalog_default
from eddyline.adapter.rights_relations import RIGHTS_TABLES
from eddyline.adapter.system_relations import NOBODY, Contents, Row, SystemTable, Viewer, sorted_items
from eddyline.adapter.tool_relations import TOOL_TABLES
from eddyline.expr.ir import Column
from eddyline.plan.relation import Constant
from eddyline.plan.traverse import gets
from eddyline.protocol.logs import LOGS
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT, SqlType
from eddyline.sql.bind_statement import bind_statement
from eddyline.sql.catalog_view import (
    DEFAULT_CLUSTER,
    CatalogCluster,
    CatalogItem,
    ColumnDef,
    ItemKind,
    ShownSetting,
)
from eddyline.sql.parse import parse
from eddyline.sql.statements import Select

__all__ = [
    "IMPLICIT_SCHEMAS",
    "SYSTEM_SCHEMAS",
    "Contents",
    "find_system_item",
    "shown_by",
    "system_item",
    "system_items",
]

CATALOG, INTERNAL, INTROSPECTION = _OWN = ("mz_catalog", "mz_internal", "mz_introspection")
SYSTEM_SCHEMAS: Final = (*_OWN, PG_CATALOG, INFORMATION_SCHEMA)
#: searched before the search path
IMPLICIT_SCHEMAS: Final = (CATALOG, PG_CATALOG)


@dataclass(frozen=True, slots=True)
class _View:
    """A view in SQL, over the relations of ``mz_introspection``."""

    id: str
    schema: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows that a catalog version gives."""

    id: str
    source: SystemTable

    @property
    def schema(self) -> str:
        return self.source.schema

    @property
    def name(self) -> str:
        return self.source.name


def _of_all_workers(columns: str, base: str) -> str:
    """What all workers say alike is told by the first."""
    return f"SELECT {columns}, runtime FROM {base}_per_worker WHERE worker_id = 0"


def _summed(columns: str, sums: tuple[str, ...], base: str) -> str:
    totals = ", ".join(f"CAST(sum({s}) AS bigint) AS {s}" for s in sums)
    return f"SELECT {columns}, {totals}, runtime FROM {base}_per_worker GROUP BY {columns}, runtime"


_SIZES: Final = ("records", "batches", "size", "capacity")
_SIZE_LIST: Final = ", ".join(_SIZES)
_SIZE_SUMS: Final = ", ".join(f"CAST(coalesce(sum({s}), 0) AS bigint) AS {s}" for s in _SIZES)
#: whether an object's dataflow is past its first state on every worker, and how long that took
_HYDRATION: Final = """
    SELECT export_id AS object_id, count(time_ns) = count(*) AS hydrated,
           CASE WHEN count(time_ns) = count(*) THEN max(time_ns) / 1000 * interval '1 microsecond' END
               AS hydration_time,
           runtime
    FROM mz_compute_hydration_times_per_worker WHERE export_id LIKE 'u%' GROUP BY export_id, runtime"""

_VIEW_TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (INTROSPECTION, "mz_dataflows", _of_all_workers("id, name", "mz_dataflows")),
    (INTROSPECTION, "mz_dataflow_operators", _of_all_workers("id, name", "mz_dataflow_operators")),
    (
        INTROSPECTION,
        "mz_dataflow_operator_dataflows",
        """SELECT o.id, o.name, o.dataflow_id, d.name AS dataflow_name, o.runtime
           FROM mz_dataflow_operators_per_worker o JOIN mz_dataflows_per_worker d
             ON d.id = o.dataflow_id AND d.worker_id = o.worker_id
           WHERE o.worker_id = 0""",
    ),
    (INTROSPECTION, "mz_compute_exports", _of_all_workers("export_id, dataflow_id", "mz_compute_exports")),
    (
        INTROSPECTION,
        "mz_compute_frontiers",
        """SELECT export_id, min(time) AS time, runtime FROM mz_compute_frontiers_per_worker
           GROUP BY export_id, runtime""",
    ),
    (
        INTROSPECTION,
        "mz_compute_import_frontiers",
        """SELECT export_id, import_id, min(time) AS time, runtime FROM mz_compute_import_frontiers_per_worker
           GROUP BY export_id, import_id, runtime""",
    ),
    (INTROSPECTION, "mz_arrangement_sizes", _summed("operator_id", _SIZES, "mz_arrangement_sizes")),
    (
        INTROSPECTION,
        "mz_records_per_dataflow_operator",
        f"""SELECT o.id, o.name, o.dataflow_id, {_SIZE_LIST}, s.runtime
            FROM mz_arrangement_sizes s JOIN mz_dataflow_operators_per_worker o
              ON o.id = s.operator_id AND o.worker_id = 0""",
    ),
    (
        INTROSPECTION,
        "mz_records_per_dataflow",
        f"""SELECT d.id, d.name, {_SIZE_SUMS}, d.runtime
            FROM mz_dataflows d LEFT JOIN mz_records_per_dataflow_operator o ON o.dataflow_id = d.id
            GROUP BY d.id, d.name, d.runtime""",
    ),
    (INTROSPECTION, "mz_active_peeks", _of_all_workers("id, object_id, type, time", "mz_active_peeks")),
    (
        INTROSPECTION,
        "mz_peek_durations_histogram",
        _summed("type, duration_ns", ("count",), "mz_peek_durations_histogram"),
    ),
    (INTROSPECTION, "mz_scheduling_elapsed", _summed("id", ("elapsed_ns",), "mz_scheduling_elapsed")),
    (
        INTROSPECTION,
        "mz_compute_operator_durations_histogram",
        _summed("id, duration_ns", ("count",), "mz_compute_operator_durations_histogram"),
    ),
    (INTROSPECTION, "mz_compute_error_counts", _summed("export_id", ("count",), "mz_compute_error_counts")),
    (INTERNAL, "mz_compute_hydration_statuses", _HYDRATION),
    (
        INTERNAL,
        "mz_hydration_statuses",
        f"SELECT object_id, hydrated, runtime FROM ({_HYDRATION}) AS statuses",
    ),
)


def _texts(*names: str) -> tuple[tuple[str, SqlType], ...]:
    return tuple((name, TEXT) for name in names)


def _schemas(contents: Contents) -> Iterator[Row]:
    yield from ((name, name) for name in sorted({*contents.schemas, *SYSTEM_SCHEMAS}))


def _tables(contents: Contents) -> Iterator[Row]:
    yield from ((i.id, i.schema, i.name) for i in sorted_items(contents, ItemKind.TABLE))


def _views(contents: Contents) -> Iterator[Row]:
    yield from ((i.id, i.schema, i.name, i.definition) for i in sorted_items(contents, ItemKind.VIEW))


def _materialized_views(contents: Contents) -> Iterator[Row]:
    views = sorted_items(contents, ItemKind.MATERIALIZED_VIEW)
    yield from ((i.id, i.schema, i.name, i.definition, i.cluster) for i in views)


def _indexes(contents: Contents) -> Iterator[Row]:
    yield from ((i.id, i.name, i.on, i.cluster) for i in sorted_items(contents, ItemKind.INDEX))


def _index_columns(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.INDEX):
        for position, key in enumerate(item.keys, 1):
            yield item.id, position, key.index + 1 if isinstance(key, Column) else None


def _columns(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents):
        for position, column in enumerate(item.columns, 1):
            default = catalog_default(contents, column)
            yield item.id, column.name, position, not column.not_null, str(column.type), default


def _objects(contents: Contents) -> Iterator[Row]:
    yield from ((i.id, i.schema, i.name, i.kind.value.replace(" ", "-")) for i in sorted_items(contents))


def _clusters(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    yield from ((c.id, c.name, rules.named(rules.owner(c.id)).name) for c in contents.clusters.values())


def _cluster_replicas(contents: Contents) -> Iterator[Row]:
    for cluster in contents.clusters.values():
        yield from ((r.id, r.name, cluster.id, r.workers, r.processes) for r in cluster.replicas)


def _dependencies(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents):
        sources = item.depends_on if item.on is None else item.depends_on | {item.on}
        yield from ((item.id, source) for source in sorted(sources))


_TABLES: Final = tuple(
    _Table(f"st{number}", source)
    for number, source in enumerate(
        (
            *(
                SystemTable(*parts)
                for parts in (
                    (CATALOG, "mz_schemas", _texts("id", "name"), _schemas),
                    (CATALOG, "mz_tables", _texts("id", "schema_id", "name"), _tables),
                    (CATALOG, "mz_views", _texts("id", "schema_id", "name", "definition"), _views),
                    (
                        CATALOG,
                        "mz_materialized_views",
                        _texts("id", "schema_id", "name", "definition", "cluster_id"),
                        _materialized_views,
                    ),
                    (CATALOG, "mz_indexes", _texts("id", "name", "on_id", "cluster_id"), _indexes),
                    (
                        CATALOG,
                        "mz_index_columns",
                        (("index_id", TEXT), ("index_position", BIGINT), ("on_position", BIGINT)),
                        _index_columns,
                    ),
                    (
                        CATALOG,
                        "mz_columns",
                        (
                            *_texts("id", "name"),
                            ("position", BIGINT),
                            ("nullable", BOOLEAN),
                            *_texts("type", "default"),
                        ),
                        _columns,
                    ),
                    (CATALOG, "mz_objects", _texts("id", "schema_id", "name", "type"), _objects),
                    (CATALOG, "mz_clusters", _texts("id", "name", "owner"), _clusters),
                    (
                        CATALOG,
                        "mz_cluster_replicas",
                        (*_texts("id", "name", "cluster_id"), ("workers", BIGINT), ("processes", BIGINT)),
                        _cluster_replicas,
                    ),
                    (INTERNAL, "mz_object_dependencies", _texts("object_id", "referenced_object_id"), _dependencies),
                )
            ),
            *PG_TABLES,
            # What comes later comes last: views that are kept know relations by their numbers.
            *RIGHTS_TABLES,
            *ACTIVITY_TABLES,
            *TOOL_TABLES,
        ),
        1,
    )
)
_VIEWS: Final = tuple(_View(f"sv{n}", *text) for n, text in enumerate(_VIEW_TEXTS, 1))
_LOG_ITEMS: Final = tuple(
    CatalogItem(log.id, INTROSPECTION, log.name, ItemKind.VIEW, tuple(ColumnDef(n, t) for n, t in log.columns))
    for log in LOGS
)
_ALL: Final[tuple[CatalogItem | _View | _Table, ...]] = (*_LOG_ITEMS, *_VIEWS, *_TABLES)
_SOURCES: Final = {source.id: source for source in _ALL}
_NAMES: Final[Mapping[tuple[str, str], str]] = {(s.schema, s.name): s.id for s in _ALL}


def find_system_item(schema: str, name: str, contents: Contents, viewer: Viewer = NOBODY) -> CatalogItem | None:
    """``viewer``: the session that looks."""
    id = _NAMES.get((schema, name))
    return None if id is None else system_item(id, contents, viewer)


def shown_by(item: CatalogItem) -> tuple[str, ...]:
    """The members of a catalog view that a system relation shows, so that it is another one when they are; none of any
    other item."""
    source = _SOURCES.get(item.id)
    return source.source.shows if isinstance(source, _Table) else ()


def system_items(schema: str, contents: Contents) -> tuple[CatalogItem, ...]:
    """The relations of a system schema, ordered by name."""
    found = (system_item(id, contents) for (where, _), id in sorted(_NAMES.items()) if where == schema)
    return tuple(item for item in found if item is not None)


def system_item(id: str, contents: Contents, viewer: Viewer = NOBODY) -> CatalogItem | None:
    """All of them are views to those who read them; a log is one without a body.  O(catalog) for what shows it."""
    match _SOURCES.get(id):
        case _View() as view:
            return _bound(view)
        case _Table() as table:
            source = table.source
            types = tuple(t for _, t in source.columns)
            columns = tuple(ColumnDef(n, t) for n, t in source.columns)
            if source.body is not None:
                body = source.body(contents)
            else:
                rows = source.rows(contents) if source.seen is None else source.seen(contents, viewer)
                body = Constant(tuple(rows), types)
            return CatalogItem(table.id, table.schema, table.name, ItemKind.VIEW, columns, relation=body)
        case log:
            return log


@cache
def _bound(view: _View) -> CatalogItem:
    """The view's body, bound when somebody first asks for it."""
    select = bind_statement(parse(view.text)[0], _Introspection(), {})
    assert isinstance(select, Select)
    query = select.query
    relation = query.as_relation()
    columns = tuple(ColumnDef(n, t) for n, t in zip(query.names, query.types, strict=True))
    item = CatalogItem(view.id, view.schema, view.name, ItemKind.VIEW, columns)
    return replace(item, relation=relation, definition=" ".join(view.text.split()), depends_on=gets(relation))


class _Nothing:
    """A catalog in which nothing was made."""

    schemas: Mapping[str, Mapping[str, str]] = {}
    by_id: Mapping[str, CatalogItem] = {}
    access = AccessRules()
    unbuilt: frozenset[str] = frozenset()
    clusters: Mapping[str, CatalogCluster] = {}


class _Introspection:
    """What the texts above see: the schema ``mz_introspection`` alone."""

    version = 0
    search_path = (INTROSPECTION,)
    zone = None
    users = ("postgres", "postgres")
    process = 0
    settings: tuple[ShownSetting, ...] = ()
    creation_schema = None
    cluster = DEFAULT_CLUSTER
    cluster_id = None

    def clusters(self) -> tuple[CatalogCluster, ...]:
        return ()

    def has_schema(self, schema: str) -> bool:
        return schema == INTROSPECTION

    def schema_names(self) -> tuple[str, ...]:
        return (INTROSPECTION,)

    def resolve(self, schema: str | None, name: str) -> CatalogItem | None:
        return find_system_item(schema or INTROSPECTION, name, _Nothing())

    def item(self, item_id: str) -> CatalogItem | None:
        return system_item(item_id, _Nothing())

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        return system_items(schema or INTROSPECTION, _Nothing())

    def indexes_on(self, item_id: str) -> tuple[CatalogItem, ...]:
        return ()

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        return ()

    def built(self, item_id: str) -> bool:
        return True
