"""What statements about clusters do to a catalog version: pure functions, as those of ``catalog_changes``.

Clusters and replicas that are made get ids from whoever asks, the same each time that a statement is applied.  Whoever
applies one to the newest version compares the clusters before and after, and has the engine do what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from eddyline.adapter.access_rules import Role
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change, announced, cascade_notice
from eddyline.adapter.dependencies import dependency_lines, readers_of
from eddyline.adapter.notices import skipped
from eddyline.adapter.provisioning import OVERRIDABLE
from eddyline.adapter.role_refusals import not_owner
from eddyline.errors import Error, make_error, unsupported
from eddyline.sql.catalog_view import (
    DEFAULT_CLUSTER_ID,
    DEFAULT_REPLICA_ID,
    CatalogCluster,
    CatalogItem,
    CatalogReplica,
    unknown_cluster,
    unknown_replica,
)
from eddyline.sql.cluster_statements import (
    AS_OPENED,
    AlterCluster,
    AlterReplica,
    ClusterOwner,
    ClusterStatement,
    CreateCluster,
    CreateReplica,
    DropCluster,
    DropReplica,
    RenameCluster,
    RenameReplica,
    ReplicaChanges,
    ReplicaName,
)
from eddyline.sql.words import Named

__all__ = ["NewReplicas", "change_clusters", "named_cluster", "named_replica"]

_RESERVED: Final = ("pg_", "mz_")
_REQUIRED: Final = "because it is required by the database system"
_OPENED: Final = "Its workers and processes are said where the database is opened."


@dataclass(frozen=True, slots=True)
class NewReplicas:
    """What a new replica is where its statement does not say.

    ``processes``: as the database was opened.  ``checked``: a setting's value, from its name and its text, in its
    shortest form, or 22023.  ``id``: of a cluster or replica with that number in the statement.
    """

    processes: int
    checked: Callable[[str, str], str]
    id: Callable[[int], str]


def change_clusters(
    snapshot: CatalogSnapshot,
    search_path: tuple[str, ...],
    statement: ClusterStatement,
    actor: Role,
    new: NewReplicas,
) -> Change:
    """The catalog after the statement.

    42501 for whom neither owns the cluster nor is a superuser, who alone makes clusters; 42704, 42710, 22023; 2BP01
    for a cluster in which something is kept, without CASCADE, and for what every database has.
    """
    match statement:
        case CreateCluster():
            return _create(snapshot, statement, actor, new)
        case CreateReplica():
            return _create_replica(snapshot, statement, actor, new)
        case DropCluster():
            return _drop(snapshot, search_path, statement, actor)
        case DropReplica():
            return _drop_replicas(snapshot, statement, actor)
        case RenameCluster():
            return _rename(snapshot, statement, actor)
        case RenameReplica():
            return _rename_replica(snapshot, statement, actor)
        case ClusterOwner():
            return _owner(snapshot, statement, actor)
        case AlterCluster():
            return _alter(snapshot, statement, actor, new)
        case AlterReplica():
            return _alter_replica(snapshot, statement, actor, new)


def named_cluster(snapshot: CatalogSnapshot, name: Named) -> CatalogCluster:
    """42704."""
    found = snapshot.cluster_named(name.name)
    if found is None:
        raise _unknown(snapshot, name)
    return found


def named_replica(snapshot: CatalogSnapshot, name: ReplicaName) -> tuple[CatalogCluster, CatalogReplica]:
    """42704."""
    cluster = named_cluster(snapshot, name.cluster)
    found = cluster.replica(name.replica.name)
    if found is None:
        raise unknown_replica(cluster, name.replica.name, position=name.cluster.position)
    return cluster, found


def _unknown(snapshot: CatalogSnapshot, name: Named) -> Error:
    return unknown_cluster(name.name, (c.name for c in snapshot.clusters.values()), position=name.position)


def _owned(snapshot: CatalogSnapshot, name: Named, actor: Role) -> CatalogCluster:
    """The cluster, which is the actor's; 42704, 42501."""
    found = named_cluster(snapshot, name)
    if not snapshot.access.owns(actor, found.id):
        raise not_owner("cluster", found.name)
    return found


def _owned_replica(snapshot: CatalogSnapshot, name: ReplicaName, actor: Role) -> tuple[CatalogCluster, CatalogReplica]:
    _owned(snapshot, name.cluster, actor)
    return named_replica(snapshot, name)


# -- making -----------------------------------------------------------------------------------------------------------


def _create(snapshot: CatalogSnapshot, statement: CreateCluster, actor: Role, new: NewReplicas) -> Change:
    name = statement.name.name
    if not actor.superuser:
        raise make_error("42501", "permission denied to create cluster", hint="Must be superuser to create clusters.")
    if snapshot.cluster_named(name) is not None and statement.if_not_exists:
        return Change(snapshot, notices=(skipped("cluster", name, exists=True),))
    _check_free(snapshot, statement.name)
    replicas = tuple(
        _made(CatalogReplica(new.id(number), given.name.name), given.said, new)
        for number, given in enumerate(statement.replicas, 1)
    )
    made = CatalogCluster(new.id(0), name, replicas)
    changed = snapshot.with_cluster(made)
    return Change(changed.with_access(changed.access.with_owner(made.id, actor.id)))


def _check_free(snapshot: CatalogSnapshot, name: Named) -> None:
    """42939, 42710."""
    if name.name.startswith(_RESERVED):
        raise make_error(
            "42939",
            f'unacceptable cluster name "{name.name}"',
            detail=f'The prefix "{name.name[:3]}" is reserved.',
            position=name.position,
        )
    if snapshot.cluster_named(name.name) is not None:
        raise make_error("42710", f'cluster "{name.name}" already exists', position=name.position)


def _create_replica(snapshot: CatalogSnapshot, statement: CreateReplica, actor: Role, new: NewReplicas) -> Change:
    cluster, name = _owned(snapshot, statement.name.cluster, actor), statement.name.replica
    if cluster.replica(name.name) is not None and statement.if_not_exists:
        return Change(snapshot, notices=(skipped("cluster replica", f"{cluster.name}.{name.name}", exists=True),))
    _check_replica_free(cluster, name)
    made = _made(CatalogReplica(new.id(0), name.name), statement.said, new)
    return _with_replicas(snapshot, cluster, (*cluster.replicas, made))


def _check_replica_free(cluster: CatalogCluster, name: Named) -> None:
    if cluster.replica(name.name) is not None:
        raise make_error(
            "42710", f'cluster replica "{cluster.name}.{name.name}" already exists', position=name.position
        )


def _made(bare: CatalogReplica, said: ReplicaChanges, new: NewReplicas) -> CatalogReplica:
    """A new replica as it is said to be."""
    processes = said.processes if said.processes not in (None, AS_OPENED) else new.processes
    assert processes is not None, "one of both is a number"
    sized = replace(bare, workers=said.workers or bare.workers, processes=processes)
    return replace(sized, settings=_settings(sized, said, new))


def _with_replicas(snapshot: CatalogSnapshot, cluster: CatalogCluster, replicas: tuple[CatalogReplica, ...]) -> Change:
    if replicas == cluster.replicas:
        return Change(snapshot)
    return Change(snapshot.with_cluster(replace(cluster, replicas=replicas)))


# -- changing ---------------------------------------------------------------------------------------------------------


def _alter(snapshot: CatalogSnapshot, statement: AlterCluster, actor: Role, new: NewReplicas) -> Change:
    """The first replica shows what others are made like; when there are to be fewer, the newest go."""
    cluster = _owned(snapshot, statement.name, actor)
    ids = _Ids(new)
    kept = cluster.replicas if statement.factor is None else cluster.replicas[: statement.factor]
    if any(r.id == DEFAULT_REPLICA_ID for r in cluster.replicas[len(kept) :]):
        raise _required(f"cluster replica {cluster.name}.{cluster.replicas[0].name}", statement.name)
    replicas = [_changed(cluster, replica, statement.said, new, ids) for replica in kept]
    like = replicas[0] if replicas else None
    while statement.factor is not None and len(replicas) < statement.factor:
        name = _free_name(replicas)
        if like is None:
            replicas.append(_made(CatalogReplica(ids.next(), name), statement.said, new))
        else:
            replicas.append(replace(like, id=ids.next(), name=name))
    return _with_replicas(snapshot, cluster, tuple(replicas))


def _alter_replica(snapshot: CatalogSnapshot, statement: AlterReplica, actor: Role, new: NewReplicas) -> Change:
    cluster, replica = _owned_replica(snapshot, statement.name, actor)
    changed = _changed(cluster, replica, statement.said, new, _Ids(new))
    return _with_replicas(snapshot, cluster, tuple(changed if r is replica else r for r in cluster.replicas))


class _Ids:
    """Ids of new replicas, in the order of the statement."""

    def __init__(self, new: NewReplicas) -> None:
        self._new = new
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return self._new.id(self._count)


def _changed(
    cluster: CatalogCluster, replica: CatalogReplica, said: ReplicaChanges, new: NewReplicas, ids: _Ids
) -> CatalogReplica:
    """A replica of another size is another one, of the same name.  0A000 for the one that is opened with."""
    workers = replica.workers if said.workers is None else said.workers
    processes = replica.processes if said.processes is None else said.processes
    if processes == AS_OPENED:
        processes = new.processes
    sized = replace(replica, workers=workers, processes=processes)
    if sized != replica:
        if replica.id == DEFAULT_REPLICA_ID:
            raise unsupported(f"another size of {cluster.name}.{replica.name}", hint=_OPENED)
        sized = replace(sized, id=ids.next())
    return replace(sized, settings=_settings(sized, said, new))


def _settings(replica: CatalogReplica, said: ReplicaChanges, new: NewReplicas) -> Mapping[str, str]:
    """42704 for what is no setting of a replica, 22023 for a value that is none, 0A000 without processes of its own."""
    settings = {} if said.reset else dict(replica.settings)
    if (said.settings or said.reset) and not replica.processes:
        raise make_error(
            "0A000",
            "the replica is in the program's own process",
            hint="connect(processes=1)" if replica.id == DEFAULT_REPLICA_ID else "Give it PROCESSES = 1.",
        )
    for name, values in said.settings.items():
        if name not in OVERRIDABLE:
            known = ", ".join(sorted(OVERRIDABLE))
            raise make_error("42704", f'"{name}" is no setting of a replica', hint=f"Known: {known}.")
        settings.pop(name, None)
        if values is not None:
            settings[name] = new.checked(name, ", ".join(values))
    return settings


def _free_name(replicas: Iterable[CatalogReplica]) -> str:
    taken, number = {r.name for r in replicas}, 1
    while f"r{number}" in taken:
        number += 1
    return f"r{number}"


def _rename(snapshot: CatalogSnapshot, statement: RenameCluster, actor: Role) -> Change:
    cluster = _owned(snapshot, statement.name, actor)
    if cluster.id == DEFAULT_CLUSTER_ID:
        raise unsupported(f'renaming the cluster "{cluster.name}"', hint="Sessions begin in the cluster of that name.")
    _check_free(snapshot, statement.new_name)
    return Change(snapshot.with_cluster(replace(cluster, name=statement.new_name.name)))


def _rename_replica(snapshot: CatalogSnapshot, statement: RenameReplica, actor: Role) -> Change:
    cluster, replica = _owned_replica(snapshot, statement.name, actor)
    _check_replica_free(cluster, statement.new_name)
    renamed = replace(replica, name=statement.new_name.name)
    return _with_replicas(snapshot, cluster, tuple(renamed if r is replica else r for r in cluster.replicas))


def _owner(snapshot: CatalogSnapshot, statement: ClusterOwner, actor: Role) -> Change:
    cluster, new = _owned(snapshot, statement.name, actor), snapshot.access.role(statement.owner)
    if snapshot.access.owner(cluster.id) == new.id:
        return Change(snapshot)
    if not actor.superuser and new.id not in snapshot.access.may_become(actor):
        raise make_error("42501", f'must be member of role "{new.name}"')
    return Change(snapshot.with_access(snapshot.access.with_owner(cluster.id, new.id)))


# -- dropping ---------------------------------------------------------------------------------------------------------


def _required(what: str, name: Named) -> Error:
    return make_error("2BP01", f"cannot drop {what} {_REQUIRED}", position=name.position)


def _drop(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: DropCluster, actor: Role) -> Change:
    notices: list[str] = []
    clusters: list[CatalogCluster] = []
    for name in statement.names:
        if snapshot.cluster_named(name.name) is None and statement.if_exists:
            notices.append(skipped("cluster", name.name, exists=False))
            continue
        found = _owned(snapshot, name, actor)
        if found.id == DEFAULT_CLUSTER_ID:
            raise _required(f"cluster {found.name}", name)
        if found not in clusters:
            clusters.append(found)
    members = [item for cluster in clusters for item in snapshot.kept_in(cluster.id)]
    readers = readers_of(snapshot, members)
    if members and not statement.cascade:
        raise _in_use(snapshot, search_path, clusters, members, readers)
    view = snapshot.view(search_path)
    notices.extend(cascade_notice([f"{i.kind.value} {view.shown(i)}" for i in (*members, *announced(readers))]))
    gone = (*reversed(readers), *reversed(members))
    changed = snapshot.without_items(gone) if gone else snapshot
    for cluster in clusters:
        changed = changed.without_cluster(cluster.id)
    return Change(changed, dropped=gone, notices=tuple(notices))


def _in_use(
    snapshot: CatalogSnapshot,
    search_path: tuple[str, ...],
    clusters: list[CatalogCluster],
    members: list[CatalogItem],
    readers: list[CatalogItem],
) -> Error:
    """2BP01, which names what is kept there, and what reads that."""
    view, names = snapshot.view(search_path), {c.id: c.name for c in clusters}
    lines = [f"{i.kind.value} {view.shown(i)} depends on cluster {names[i.cluster]}" for i in members]
    lines.extend(dependency_lines(view, members, announced(readers)))
    what = f"cluster {clusters[0].name}" if len(clusters) == 1 else "desired object(s)"
    return make_error(
        "2BP01",
        f"cannot drop {what} because other objects depend on {'it' if len(clusters) == 1 else 'them'}",
        detail="\n".join(lines),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )


def _drop_replicas(snapshot: CatalogSnapshot, statement: DropReplica, actor: Role) -> Change:
    notices: list[str] = []
    changed = snapshot
    for name in statement.names:
        cluster = changed.cluster_named(name.cluster.name)
        if statement.if_exists and (cluster is None or cluster.replica(name.replica.name) is None):
            shown = f"{name.cluster.name}.{name.replica.name}"
            notices.append(skipped("cluster replica", shown, exists=False))
            continue
        cluster, replica = _owned_replica(changed, name, actor)
        if replica.id == DEFAULT_REPLICA_ID:
            raise _required(f"cluster replica {cluster.name}.{replica.name}", name.cluster)
        changed = _with_replicas(changed, cluster, tuple(r for r in cluster.replicas if r is not replica)).snapshot
    return Change(changed, notices=tuple(notices))
