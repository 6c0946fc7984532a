"""The catalog and the settings as documents of a durable directory.

``item/<id>``: a catalog item as it is bound.  ``schemas``: the names of all schemas.  ``setting/<name>``: a value of
ALTER SYSTEM.  ``cluster/<id>``: a cluster with its replicas; of the one that the database is opened with, workers
and processes are as it is opened.  ``replica/<name>``: a setting of that one's replica, where it has no document yet.
``access``: roles, memberships, owners and grants.  ``next_id``: ids from this number on were never used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from eddyline.adapter.access_rules import AccessRules
from eddyline.adapter.catalog import DEFAULT_SCHEMA, CatalogSnapshot
from eddyline.errors import make_error
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, CatalogCluster, CatalogItem, ItemKind
from eddyline.storage.log import Changes

__all__ = ["catalog_changes", "catalog_of", "next_id_of", "setting_changes", "settings_of"]

_Document = TypeVar("_Document")

_ITEM = "item/"
_SCHEMAS = "schemas"
_SETTING = "setting/"
_REPLICA = "replica/"
_CLUSTER = "cluster/"
_NEXT_ID = "next_id"
_ACCESS = "access"
_encoder = msgspec.msgpack.Encoder(order="deterministic")
_items = msgspec.msgpack.Decoder(CatalogItem)
_names = msgspec.msgpack.Decoder(list[str])
_clusters = msgspec.msgpack.Decoder(CatalogCluster)
_rules = msgspec.msgpack.Decoder(AccessRules)


def catalog_changes(base: CatalogSnapshot, changed: CatalogSnapshot, next_id: int) -> Changes:
    """What leads from one version to the other.  O(items).

    54001 for an item that is nested too deeply to be read again.
    """
    put = {_NEXT_ID: str(next_id).encode(), _SCHEMAS: _encoder.encode(list(changed.schemas))}
    if changed.access is not base.access:
        put[_ACCESS] = _encoder.encode(changed.access)
    created = {}
    for id, item in changed.by_id.items():
        if base.by_id.get(id) is not item:
            put[_ITEM + id] = _encoded(item)
            if item.kind is ItemKind.TABLE and id not in base.by_id:
                created[id] = item.types
    if changed.clusters is not base.clusters:
        for id, cluster in changed.clusters.items():
            if base.clusters.get(id) is not cluster:
                put[_CLUSTER + id] = _encoder.encode(cluster)
    gone = [item for id, item in base.by_id.items() if id not in changed.by_id]
    return Changes(
        put=put,
        removed=(
            *(_ITEM + item.id for item in gone),
            *(_CLUSTER + id for id in base.clusters if id not in changed.clusters),
        ),
        created=created,
        dropped=tuple(item.id for item in gone if item.kind is ItemKind.TABLE),
    )


def _encoded(item: CatalogItem) -> bytes:
    try:
        data = _encoder.encode(item)
        _items.decode(data)
    except RecursionError as problem:
        raise make_error(
            "54001", "stack depth limit exceeded", detail=f'"{item.name}" is nested too deeply.'
        ) from problem
    return data


def catalog_of(documents: Mapping[str, bytes]) -> CatalogSnapshot:
    """The catalog that the documents have.  XX001 for an item that is not understood."""
    snapshot = CatalogSnapshot.initial()
    if _SCHEMAS in documents:
        snapshot = snapshot.without_schema(DEFAULT_SCHEMA)
        for schema in _names.decode(documents[_SCHEMAS]):
            snapshot = snapshot.with_schema(schema)
    items = _decoded(documents, _ITEM, _items, "catalog item")
    for item in sorted(items, key=lambda item: int(item.id[1:])):
        snapshot = snapshot.with_item(item)
    for cluster in _clusters_of(documents):
        snapshot = snapshot.with_cluster(cluster)
    if _ACCESS in documents:
        snapshot = snapshot.with_access(_access(documents[_ACCESS]))
    return snapshot


def _clusters_of(documents: Mapping[str, bytes]) -> list[CatalogCluster]:
    """XX001 for one that is not understood."""
    found = _decoded(documents, _CLUSTER, _clusters, "cluster")
    settings = _values(documents, _REPLICA)
    if settings and not any(cluster.id == DEFAULT_CLUSTER_ID for cluster in found):
        first = CatalogSnapshot.initial().clusters[DEFAULT_CLUSTER_ID]
        found.append(replace(first, replicas=(replace(first.replicas[0], settings=settings),)))
    return found


def _access(data: bytes) -> AccessRules:
    try:
        return _rules.decode(data)
    except msgspec.MsgspecError as error:
        raise make_error("XX001", "the roles of the catalog are not understood", detail=str(error)) from error


def _decoded(
    documents: Mapping[str, bytes], prefix: str, decoder: msgspec.msgpack.Decoder[_Document], called: str
) -> list[_Document]:
    """Of the documents whose names begin so, by name.  XX001 for one that is not understood."""
    found = []
    for name, data in sorted(documents.items()):
        if name.startswith(prefix):
            try:
                found.append(decoder.decode(data))
            except msgspec.MsgspecError as error:
                told = f"{called} {name.removeprefix(prefix)} is not understood"
                raise make_error("XX001", told, detail=str(error)) from error
    return found


def next_id_of(documents: Mapping[str, bytes]) -> int:
    return int(documents.get(_NEXT_ID, b"1"))


def setting_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The documents to put and to remove."""
    put = {_SETTING + name: value.encode() for name, value in after.items() if before.get(name) != value}
    return put, tuple(_SETTING + name for name in before if name not in after)


def settings_of(documents: Mapping[str, bytes]) -> dict[str, str]:
    """The values that were set."""
    return _values(documents, _SETTING)


def _values(documents: Mapping[str, bytes], prefix: str) -> dict[str, str]:
    return {n.removeprefix(prefix): data.decode() for n, data in documents.items() if n.startswith(prefix)}
