"""CREATE, ALTER and DROP of clusters and replicas: first the catalog is changed, then the engine does what differs.

What is new is made before the catalog shows it, and taken away again if it cannot be; what is gone goes after nobody
can find it any more.  Processes are started in the background: a statement waits for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, TypeAlias

from eddyline.adapter.access_rules import Role
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change
from eddyline.adapter.cluster_changes import NewReplicas, change_clusters
from eddyline.adapter.define import commit_with_definitions
from eddyline.adapter.engine import Engine
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.provisioning import ClusterSpec, replica_settings
from eddyline.adapter.transaction import Defining
from eddyline.sql.catalog_view import CatalogCluster
from eddyline.sql.cluster_statements import (
    ClusterStatement,
    CreateCluster,
    CreateReplica,
    DropCluster,
    DropReplica,
)

__all__ = ["define_clusters", "tag_of"]

Clusters: TypeAlias = Mapping[str, CatalogCluster]

_TAGS: Final[dict[type, str]] = {
    CreateCluster: "CREATE CLUSTER",
    CreateReplica: "CREATE CLUSTER REPLICA",
    DropCluster: "DROP CLUSTER",
    DropReplica: "DROP CLUSTER REPLICA",
}


def tag_of(statement: ClusterStatement) -> str:
    tag = _TAGS.get(type(statement))
    if tag is not None:
        return tag
    return "ALTER CLUSTER REPLICA" if type(statement).__name__.endswith("Replica") else "ALTER CLUSTER"


def define_clusters(engine: Engine, statement: ClusterStatement, search_path: tuple[str, ...], actor: Role) -> Outcome:
    """Does the statement, at once and by itself.

    Raises as ``change_clusters``, and what keeps a commit from being made.
    """
    ids: dict[int, str] = {}

    def new_id(number: int) -> str:
        if number not in ids:
            ids[number] = engine.catalog.allocate_id()
        return ids[number]

    first = engine.first_replica.settings
    new = NewReplicas(first.processes, engine.system.checked, new_id)

    def change(snapshot: CatalogSnapshot) -> Change:
        # As it is in that version: its rights may have changed since.
        role = snapshot.access.role(actor.name)
        return change_clusters(snapshot, search_path, statement, role, new)

    tag = tag_of(statement)
    with engine.commit_lock:
        base = engine.catalog.snapshot()
        done = change(base)
        if done.snapshot is base:
            return Outcome(tag, notices=done.notices)
        before, after = base.clusters, done.snapshot.clusters
        _begin(engine, before, after)
        try:
            commit_with_definitions(engine, [Defining(tag, "", change)], {}, wait=True)
        except BaseException:
            _end(engine, after, before)
            raise
        _end(engine, before, after)
        later = _follow(engine, before, after)
    return Outcome(tag, notices=(*done.notices, *dict.fromkeys(later)))


def _begin(engine: Engine, before: Clusters, after: Clusters) -> None:
    """Makes what there is only after it."""
    made = partial(replica_settings, like=engine.first_replica.settings)
    for id, cluster in after.items():
        old = before.get(id)
        if old is None:
            engine.create_cluster(ClusterSpec(id, cluster.name, tuple(map(made, cluster.replicas))))
            continue
        there = {replica.id for replica in old.replicas}
        for replica in cluster.replicas:
            if replica.id not in there:
                engine.create_replica(id, made(replica))


def _end(engine: Engine, before: Clusters, after: Clusters) -> None:
    """Takes away what there is only before it."""
    for id, cluster in before.items():
        new = after.get(id)
        if new is None:
            engine.drop_cluster(id)
            continue
        there = {replica.id for replica in new.replicas}
        for replica in cluster.replicas:
            if replica.id not in there:
                engine.drop_replica(id, replica.id)


def _follow(engine: Engine, before: Clusters, after: Clusters) -> list[str]:
    """What is still there is as it is now called and set; gives notices."""
    notices: list[str] = []
    for id, cluster in after.items():
        old = before.get(id)
        if old is None or old is cluster:
            continue
        if old.name != cluster.name:
            engine.cluster(id).rename(cluster.name)
        known = {replica.id: replica for replica in old.replicas}
        for replica in cluster.replicas:
            was = known.get(replica.id)
            if was is None:
                continue
            if was.name != replica.name:
                engine.cluster(id).rename(replica.name, replica.id)
            if was.settings != replica.settings:
                notices += engine.cluster(id).replica(replica.id).override(replica.settings)
    return notices
