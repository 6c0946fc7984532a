"""What a database can do where its process is short of memory: say what dataflows hold, and stop a build."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from eddyline.adapter.catalog import Catalog
from eddyline.adapter.clusters import Cluster
from eddyline.adapter.control import Control
from eddyline.compute.runtime import Runtime
from eddyline.controller.controller import Controller
from eddyline.errors import DatabaseError

__all__ = ["MemoryRelief"]

_log = logging.getLogger("eddyline.engine")


class MemoryRelief:
    """``memory_guard.Relief`` of a database: see there what each call does.  Any thread.

    Replicas with processes of their own are left out, since theirs is not this process's memory.
    ``controller``: as ``Engine.control``.  ``commit_lock``: the database's.
    """

    def __init__(
        self,
        catalog: Catalog,
        control: Control,
        commit_lock: threading.RLock,
        *,
        controller: Callable[[], AbstractContextManager[Controller]],
        clusters: Callable[[], Mapping[str, Cluster]],
    ) -> None:
        self._catalog = catalog
        self._control = control
        self._commit_lock = commit_lock
        self._controller = controller
        self._clusters = clusters

    def _runtimes(self) -> list[Runtime]:
        """Those in this process."""
        return [runtime for cluster in self._clusters().values() for runtime in cluster.runtimes()]

    def weigh_dataflows(self, *, on: bool) -> None:
        for runtime in self._runtimes():
            runtime.held.want(on=on)

    def held_bytes(self) -> dict[str, int]:
        """What several replicas hold of the same is added up."""
        totals: Counter[str] = Counter()
        for runtime in self._runtimes():
            totals.update(runtime.held.totals())
        return dict(totals)

    def builds_under_way(self) -> list[str]:
        here = [id for id, cluster in self._clusters().items() if cluster.runtimes()]
        with self._controller() as controller:
            return controller.building(here)

    def stop_build(self, id: str, why: DatabaseError) -> None:
        """The catalog keeps the objects, as ``unbuilt``."""
        with self._commit_lock:
            base = self._catalog.snapshot()
            with self._controller() as controller:
                gone = controller.built_on(id)
            names = [base.by_id[i].name for i in gone if i in base.by_id]
            # Whoever plans from here on does without them.
            self._catalog.publish(base, base.without_builds(i for i in gone if i in base.by_id))
            tell = self._control.take_down(gone, why)
        tell()
        _log.error("not kept fresh any longer, until made anew: %s", ", ".join(names))
