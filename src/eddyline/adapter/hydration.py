"""Waiting until dataflows have their first complete state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.clusters import Cluster
from eddyline.adapter.engine import Engine
from eddyline.adapter.read import Interrupt
from eddyline.controller.controller import Controller
from eddyline.errors import make_error
from eddyline.sql.catalog_view import CatalogItem, ItemKind

__all__ = ["dataflows_behind", "wait_hydrated"]

_LOOK_S = 0.1


def dataflows_behind(item: CatalogItem, catalog: CatalogSnapshot) -> dict[str, list[str]]:
    """By the ids of clusters, those of the item's indexes, and of itself where it is kept fresh."""
    kept = [i for i in catalog.dependents(item.id) if i.kind is ItemKind.INDEX]
    if item.kind in (ItemKind.INDEX, ItemKind.MATERIALIZED_VIEW):
        kept.append(item)
    found: dict[str, list[str]] = {}
    for each in kept:
        found.setdefault(each.cluster, []).append(each.id)
    return found


def wait_hydrated(
    engine: Engine,
    behind: Mapping[str, Sequence[str]],
    name: str,
    interrupt: Interrupt,
    timeout: float | None,
    report: Callable[[int], None],
) -> None:
    """``behind``: ids of dataflows by their clusters'.  ``report`` gets the rows that they hold, now and then.

    57014 when the time is up or ``interrupt`` says so, 53200 if their build was stopped for want of memory, 58000 if a
    cluster has nobody who would build them.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    for cluster_id, ids in behind.items():
        _wait_hydrated(engine, engine.cluster(cluster_id), ids, name, interrupt, deadline, timeout, report)


def _wait_hydrated(
    engine: Engine,
    cluster: Cluster,
    ids: Sequence[str],
    name: str,
    interrupt: Interrupt,
    deadline: float | None,
    timeout: float | None,
    report: Callable[[int], None],
) -> None:
    def ready(controller: Controller) -> bool:
        return all(not controller.exists(i) or controller.hydrated(i) for i in ids)

    while True:
        remaining = None if deadline is None else deadline - time.monotonic()
        step = _LOOK_S if remaining is None else max(0.0, min(_LOOK_S, remaining))
        if cluster.wait_for(ready, step):
            if not engine.catalog.snapshot().unbuilt.isdisjoint(ids):
                raise make_error(
                    "53200",
                    f'the build of "{name}" was stopped for want of memory',
                    hint="Drop it and make it anew once there is more.",
                )
            return
        engine.check_usable()
        interrupt.check()
        if remaining is not None and remaining <= 0:
            raise make_error("57014", f'"{name}" is still hydrating after {timeout} s')
        report(engine.rows_held(ids))
