"""Opening a database: a new one in memory, or the one that a directory has.

What a directory has becomes visible at once: its tables with their rows, then the catalog.  Indexes and materialized
views are computed anew from the tables, in the background, as when they were made, but for those indexes that replicas
go on with which an earlier program has left.  What is computed then begins at the time up to which these have seen the
tables, and what was committed later is told them: so tables are restored as of that time, with later commits at theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_documents import catalog_of, next_id_of
from eddyline.adapter.define import make
from eddyline.adapter.durability import Durability, files_of
from eddyline.adapter.engine import Engine
from eddyline.adapter.memory_use import ServerMemory
from eddyline.adapter.provisioning import (
    ClusterSpec,
    Provisioning,
    ReplicaSettings,
    first_replica,
    replica_settings,
)
from eddyline.sql.catalog_view import CatalogCluster, CatalogItem, ItemKind
from eddyline.storage.compaction import LEAST_LOG_BYTES
from eddyline.storage.directory import LOG_FILE_BYTES

__all__ = ["open_engine", "restored_engine"]


def open_engine(
    path: str | os.PathLike[str] | None,
    *,
    workers: int = 1,
    interactive: bool = True,
    memory_limit_bytes: int | None = None,
    server_memory: ServerMemory | None = None,
    process_settings: bool | Mapping[str, str] = True,
    provisioning: Provisioning | None = None,
    log_file_bytes: int = LOG_FILE_BYTES,
    least_log_bytes: int = LEAST_LOG_BYTES,
) -> Engine:
    """The database in the directory ``path``, which is made if nothing is there; a new one in memory for None.

    ``log_file_bytes``, ``least_log_bytes``: see ``DurableLog`` and ``Compaction``.

    Raises what ``Engine`` and ``open_directory`` do; then the directory is free again.
    """
    durability = None
    if path is not None:
        durability = Durability(files_of(path), log_file_bytes=log_file_bytes, least_log_bytes=least_log_bytes)
    return restored_engine(
        durability,
        workers=workers,
        interactive=interactive,
        memory_limit_bytes=memory_limit_bytes,
        server_memory=server_memory,
        process_settings=process_settings,
        provisioning=provisioning,
    )


def restored_engine(
    durability: Durability | None,
    *,
    workers: int = 1,
    interactive: bool = True,
    memory_limit_bytes: int | None = None,
    server_memory: ServerMemory | None = None,
    process_settings: bool | Mapping[str, str] = True,
    provisioning: Provisioning | None = None,
) -> Engine:
    """As ``open_engine``, of a directory that is open already; it is closed if this raises."""
    try:
        found = CatalogSnapshot.initial() if durability is None else catalog_of(durability.documents)
        like = first_replica(workers, provisioning, interactive=interactive)
        engine = Engine(
            workers=workers,
            interactive=interactive,
            memory_limit_bytes=memory_limit_bytes,
            server_memory=server_memory,
            process_settings=process_settings,
            provisioning=provisioning,
            clusters=[_spec(cluster, like) for cluster in found.clusters.values()],
            durability=durability,
        )
    except BaseException:
        if durability is not None:
            durability.close()
        raise
    if durability is not None:
        try:
            opened = found.opened_with(like.workers, like.processes, like.overrides)
            _restore(engine, durability, opened)
            engine.start_replicas()
        except BaseException:
            engine.close()
            raise
    engine.guard_memory()
    return engine


def _spec(cluster: CatalogCluster, like: ReplicaSettings) -> ClusterSpec:
    return ClusterSpec(cluster.id, cluster.name, tuple(replica_settings(r, like=like) for r in cluster.replicas))


def _restore(engine: Engine, durability: Durability, found: CatalogSnapshot) -> None:
    items = sorted(found.by_id.values(), key=_number)
    seen = engine.look()
    since = min([durability.newest, *seen.values()])
    for item in items:
        if item.kind is ItemKind.TABLE:
            make(engine, item, found.view((item.schema,)), since)
    durability.restore(engine.store, since=since)
    if seen:
        # So that what a replica has kept is as far as what it is told at most: no commit will have such a time.
        engine.store.inherit(durability.reserved)
    engine.start_upkeep()
    maintained = [item for item in items if item.kind in (ItemKind.INDEX, ItemKind.MATERIALIZED_VIEW)]
    # Each is made over those before it: what it was first made from is among them.
    there = found.without_items(reversed(maintained))
    for item in maintained:
        there = there.with_item(item)
        make(engine, item, there.view((item.schema,)), durability.newest, since=seen.get(item.cluster))
    engine.sequences.begin(item.sequence for item in items if item.sequence is not None)
    engine.catalog.restore(found, next_id_of(durability.documents))


def _number(item: CatalogItem) -> int:
    return int(item.id[1:])
