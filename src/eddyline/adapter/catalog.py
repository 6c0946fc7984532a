"""The catalog: immutable, numbered versions of what exists, and the one place where the newest version is kept.

Invariants:
I1  a snapshot never changes; a change makes a new one that shares what it can (copy-on-write dicts);
I2  a schema's names are unique over all kinds of items, indexes included;
I3  every id in ``depends_on`` and ``on`` of an item names an item of the same snapshot;
I4  versions grow by one with each published change; ids are never used twice.

Readers take ``Catalog.snapshot`` on any thread.  What a statement changes is computed by the pure functions of
``adapter.catalog_changes``, and published when its transaction commits.  Until then the transaction has a *draft* of
its own, whose version is below zero and of no other snapshot, and whose new items are *unbuilt*: they have a name and a
meaning, but no collection, no dataflow, and nothing that could be read but what the transaction has written.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from eddyline.adapter.access_rules import AccessRules, schema_key
from eddyline.adapter.session_list import ActivitySeen
from eddyline.adapter.system_catalog import (
    IMPLICIT_SCHEMAS,
    SYSTEM_SCHEMAS,
    find_system_item,
    system_item,
    system_items,
)
from eddyline.adapter.system_relations import NO_SESSION, NOBODY, SessionFacts, Viewer
from eddyline.errors import InterfaceError, make_error
from eddyline.sql.catalog_view import (
    DEFAULT_CLUSTER,
    DEFAULT_CLUSTER_ID,
    DEFAULT_REPLICA,
    DEFAULT_REPLICA_ID,
    CatalogCluster,
    CatalogItem,
    CatalogReplica,
    ItemKind,
    ShownSetting,
)

__all__ = ["DEFAULT_SCHEMA", "Catalog", "CatalogSnapshot", "SearchPathView", "resolve_name"]

DEFAULT_SCHEMA: Final = "public"

_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


def _first_clusters() -> Mapping[str, CatalogCluster]:
    replica = CatalogReplica(DEFAULT_REPLICA_ID, DEFAULT_REPLICA)
    return {DEFAULT_CLUSTER_ID: CatalogCluster(DEFAULT_CLUSTER_ID, DEFAULT_CLUSTER, (replica,))}


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """One version.  ``schemas``: schema → item name → id.  ``readers``: id → ids that depend on it, oldest first.

    ``unbuilt``: ids of indexes and materialized views whose build was stopped; of a draft, also of what its transaction
    creates.
    ``clusters``: by id; another mapping only where a cluster or a replica has changed.
    """

    version: int
    schemas: Mapping[str, Mapping[str, str]]
    by_id: Mapping[str, CatalogItem]
    readers: Mapping[str, tuple[str, ...]]
    unbuilt: frozenset[str] = frozenset()
    access: AccessRules = field(default_factory=AccessRules)
    clusters: Mapping[str, CatalogCluster] = field(default_factory=_first_clusters)

    @staticmethod
    def initial() -> CatalogSnapshot:
        """Version 0: the schema ``public``, empty, and the cluster ``default`` with one replica."""
        return CatalogSnapshot(0, {DEFAULT_SCHEMA: {}}, {}, {})

    @property
    def draft(self) -> bool:
        return self.version < 0

    def numbered(self, version: int) -> CatalogSnapshot:
        return replace(self, version=version)

    def with_access(self, access: AccessRules) -> CatalogSnapshot:
        return replace(self, version=self.version + 1, access=access)

    def without_builds(self, ids: Iterable[str]) -> CatalogSnapshot:
        """With the builds of ``ids`` stopped: reads do without them."""
        return replace(self, version=self.version + 1, unbuilt=self.unbuilt.union(ids))

    def made_by(self, role_id: int, key: str, kind: str, schema: str | None = None) -> CatalogSnapshot:
        """The same version, in which the role owns what ``key`` stands for, and has granted of it what it does by
        default.  ``kind``: table (views too), or schema; ``schema``: which it is in."""
        access = self.access.made(key, role_id, kind, schema)
        return self if access is self.access else replace(self, access=access)

    def view(
        self,
        search_path: Iterable[str] = (DEFAULT_SCHEMA,),
        zone: str | None = None,
        users: tuple[str, str] = ("postgres", "postgres"),
        cluster: str = DEFAULT_CLUSTER,
        facts: SessionFacts = NO_SESSION,
    ) -> SearchPathView:
        return SearchPathView(self, tuple(search_path), zone, users, cluster, facts)

    def find(self, schema: str, name: str) -> CatalogItem | None:
        item_id = self.schemas.get(schema, _NO_NAMES).get(name)
        return None if item_id is None else self.by_id[item_id]

    def item(self, item_id: str, viewer: Viewer = NOBODY) -> CatalogItem | None:
        """The item with that id, of the system's own too.  ``viewer``: the session that looks."""
        return self.by_id.get(item_id) or system_item(item_id, self, viewer)

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        """All items (of one schema), ordered by schema and name; the system's own only where one of its is named."""
        if schema in SYSTEM_SCHEMAS:
            return system_items(schema, self)
        names = sorted(self.schemas) if schema is None else [schema]
        return tuple(
            self.by_id[item_id] for name in names for _, item_id in sorted(self.schemas.get(name, _NO_NAMES).items())
        )

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        """The items that read ``item_id`` directly, indexes included, oldest first."""
        return tuple(self.by_id[reader] for reader in self.readers.get(item_id, ()))

    def with_item(self, item: CatalogItem) -> CatalogSnapshot:
        """With ``item`` added, or in place of the item with its id.  Requires: its name is free, or its own (I2)."""
        by_id = {**self.by_id, item.id: item}
        names = {**self.schemas[item.schema], item.name: item.id}
        schemas = {**self.schemas, item.schema: names}
        readers = dict(self.readers)
        old = self.by_id.get(item.id)
        if old is not None:
            if (old.schema, old.name) != (item.schema, item.name):
                schemas[old.schema] = {n: i for n, i in schemas[old.schema].items() if (n, i) != (old.name, item.id)}
            _unlink(readers, old, keep=_sources(item))
        for source in _sources(item):
            if item.id not in readers.get(source, ()):
                readers[source] = (*readers.get(source, ()), item.id)
        unbuilt = self.unbuilt | {item.id} if self.draft and old is None else self.unbuilt
        return replace(self, version=self.version + 1, schemas=schemas, by_id=by_id, readers=readers, unbuilt=unbuilt)

    def without_items(self, gone: Iterable[CatalogItem]) -> CatalogSnapshot:
        """Without ``gone``.  Requires: whatever reads them is among them (I3)."""
        dropped = {item.id: item for item in gone}
        touched = {item.schema for item in dropped.values()}
        schemas = {
            schema: {n: i for n, i in names.items() if i not in dropped} if schema in touched else names
            for schema, names in self.schemas.items()
        }
        by_id = {item_id: item for item_id, item in self.by_id.items() if item_id not in dropped}
        readers = dict(self.readers)
        for item in dropped.values():
            _unlink(readers, item)
            readers.pop(item.id, None)
        access = self.access.without_keys(dropped)
        return replace(
            self,
            version=self.version + 1,
            schemas=schemas,
            by_id=by_id,
            readers=readers,
            unbuilt=self.unbuilt.difference(dropped),
            access=access,
        )

    def with_schema(self, schema: str) -> CatalogSnapshot:
        return replace(self, version=self.version + 1, schemas={**self.schemas, schema: {}})

    def opened_with(self, workers: int, processes: int, settings: Mapping[str, str]) -> CatalogSnapshot:
        """With the first replica as the database is opened, and ``settings`` over its own."""
        cluster = self.clusters[DEFAULT_CLUSTER_ID]
        replicas = tuple(
            replace(r, workers=workers, processes=processes, settings={**r.settings, **settings})
            if r.id == DEFAULT_REPLICA_ID
            else r
            for r in cluster.replicas
        )
        return replace(self, clusters={**self.clusters, cluster.id: replace(cluster, replicas=replicas)})

    def cluster_named(self, name: str) -> CatalogCluster | None:
        return next((c for c in self.clusters.values() if c.name == name), None)

    def cluster_names(self) -> set[str]:
        return {cluster.name for cluster in self.clusters.values()}

    def kept_in(self, cluster_id: str) -> list[CatalogItem]:
        """The indexes and materialized views of a cluster, oldest first."""
        kinds = (ItemKind.INDEX, ItemKind.MATERIALIZED_VIEW)
        found = [i for i in self.by_id.values() if i.kind in kinds and i.cluster == cluster_id]
        return sorted(found, key=lambda item: int(item.id[1:]))

    def with_cluster(self, cluster: CatalogCluster) -> CatalogSnapshot:
        """With ``cluster`` added, or in place of the one with its id.  Requires: its name is free, or its own."""
        return replace(self, version=self.version + 1, clusters={**self.clusters, cluster.id: cluster})

    def without_cluster(self, cluster_id: str) -> CatalogSnapshot:
        """Without the cluster, in which nothing is kept (unchecked)."""
        rest = {i: cluster for i, cluster in self.clusters.items() if i != cluster_id}
        access = self.access.without_keys([cluster_id])
        return replace(self, version=self.version + 1, clusters=rest, access=access)

    def without_schema(self, schema: str) -> CatalogSnapshot:
        """Without ``schema``, which is empty (unchecked)."""
        rest = {name: items for name, items in self.schemas.items() if name != schema}
        access = self.access.without_keys([schema_key(schema)])
        return replace(self, version=self.version + 1, schemas=rest, access=access)


def _sources(item: CatalogItem) -> frozenset[str]:
    return item.depends_on if item.on is None else item.depends_on | {item.on}


def _unlink(readers: dict[str, tuple[str, ...]], item: CatalogItem, keep: frozenset[str] = frozenset()) -> None:
    """Takes ``item`` out of the readers of its sources, but for those in ``keep``."""
    for source in _sources(item) - keep:
        left = tuple(reader for reader in readers.get(source, ()) if reader != item.id)
        if left:
            readers[source] = left
        else:
            readers.pop(source, None)


@dataclass(frozen=True, slots=True)
class SearchPathView:
    """A snapshot seen through a search path, from a cluster: the ``CatalogView`` that binding wants."""

    snapshot: CatalogSnapshot
    search_path: tuple[str, ...]
    zone: str | None = None
    users: tuple[str, str] = ("postgres", "postgres")
    cluster: str = DEFAULT_CLUSTER
    facts: SessionFacts = NO_SESSION

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def settings(self) -> tuple[ShownSetting, ...]:
        return self.facts.settings()

    @property
    def activity(self) -> tuple[ActivitySeen, ...]:
        return self.facts.activity()

    @property
    def process(self) -> int:
        return self.facts.process()

    @property
    def cluster_id(self) -> str | None:
        found = self.snapshot.cluster_named(self.cluster)
        return None if found is None else found.id

    def clusters(self) -> tuple[CatalogCluster, ...]:
        return tuple(sorted(self.snapshot.clusters.values(), key=lambda c: c.name))

    @property
    def creation_schema(self) -> str | None:
        return next((s for s in self.search_path if s in self.snapshot.schemas), None)

    def has_schema(self, schema: str) -> bool:
        return schema in self.snapshot.schemas or schema in SYSTEM_SCHEMAS

    def resolve(self, schema: str | None, name: str) -> CatalogItem | None:
        if schema is not None:
            return self._find(schema, name)
        for candidate in (*IMPLICIT_SCHEMAS, *self.search_path):
            item = self._find(candidate, name)
            if item is not None:
                return item
        return None

    def _find(self, schema: str, name: str) -> CatalogItem | None:
        if schema in SYSTEM_SCHEMAS:
            return find_system_item(schema, name, self.snapshot, self)
        return self.snapshot.find(schema, name)

    def item(self, item_id: str) -> CatalogItem | None:
        return self.snapshot.item(item_id, self)

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        return self.snapshot.items(schema)

    def schema_names(self) -> tuple[str, ...]:
        return tuple(sorted((*self.snapshot.schemas, *SYSTEM_SCHEMAS)))

    def indexes_on(self, item_id: str) -> tuple[CatalogItem, ...]:
        return tuple(d for d in self.snapshot.dependents(item_id) if d.kind is ItemKind.INDEX)

    def built(self, item_id: str) -> bool:
        return item_id not in self.snapshot.unbuilt

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        return self.snapshot.dependents(item_id)

    def shown(self, item: CatalogItem) -> str:
        """The item's name as messages show it: qualified unless the search path finds it."""
        found = self.resolve(None, item.name)
        return item.name if found is not None and found.id == item.id else f"{item.schema}.{item.name}"


def resolve_name(
    name: str, catalog: CatalogSnapshot, search_path: tuple[str, ...]
) -> tuple[str | None, CatalogItem | None]:
    """An item by a name as Python code gives it: exact, or with its schema and a dot, or with quotes as in SQL.

    42602 for what is no str.
    """
    if not isinstance(name, str):
        raise InterfaceError(f"a name is a str, not a {type(name).__name__}", sqlstate="42602")
    view = catalog.view(search_path)
    item = view.resolve(None, name)
    if item is not None:
        return None, item
    quoted = _QUOTED.fullmatch(name)
    if quoted is not None:
        schema, rest = (None if part is None else _unquoted(part) for part in quoted.groups())
        assert rest is not None
        return schema, view.resolve(schema, rest)
    if "." not in name:
        return None, None
    schema, _, rest = name.partition(".")
    return schema, view.resolve(schema, rest)


#: a name as SQL writes it, at least one part of which is quoted
_QUOTED: Final = re.compile(r'(?=.*")(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)')


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part[0] == '"' else part


@dataclass(slots=True)
class Catalog:
    """The newest snapshot.  ``publish`` is called by one committer at a time; anything else from any thread."""

    _current: CatalogSnapshot = field(default_factory=CatalogSnapshot.initial)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next_id: int = 1  # guarded by _lock
    _drafts: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def snapshot(self) -> CatalogSnapshot:
        return self._current

    def allocate_id(self) -> str:
        """A fresh item id: "u1", "u2" …; one that a rolled-back statement took is not used again."""
        with self._lock:
            number, self._next_id = self._next_id, self._next_id + 1
            return f"u{number}"

    @property
    def next_id(self) -> int:
        """No item has this number yet, nor a higher one."""
        with self._lock:
            return self._next_id

    def restore(self, snapshot: CatalogSnapshot, next_id: int) -> None:
        """Begins with what a directory has.  Before anybody else uses the catalog."""
        with self._lock:
            self._current, self._next_id = snapshot, next_id

    def draft_of(self, snapshot: CatalogSnapshot) -> CatalogSnapshot:
        """``snapshot`` as the next draft; that of a change keeps what is unbuilt."""
        with self._lock:
            # Two apart: a change of a draft counts its version up before it is numbered itself.
            return snapshot.numbered(-2 * next(self._drafts))

    def publish(self, base: CatalogSnapshot, changed: CatalogSnapshot) -> CatalogSnapshot:
        """Makes ``changed``, which was derived from ``base``, the newest version; 40001 if another came between."""
        with self._lock:
            if self._current is not base:
                raise make_error(
                    "40001",
                    "could not serialize access due to concurrent update",
                    detail="The catalog was changed by another transaction.",
                    hint="Retry the transaction.",
                )
            self._current = changed if changed.version > base.version else base
            return self._current
