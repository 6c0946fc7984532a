"""A database defined in SQL whose replica is stepped by hand: planned as ``connect`` plans, deterministic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.adapter.define import maintained_relation
from eddyline.expr.ir import Column
from eddyline.plan.dataflow import Operator
from eddyline.plan.lower import lower_index
from eddyline.plan.relation import Get
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import arrow_type
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, ItemKind
from eddyline.testing.catalog_script import CatalogScript
from tests.compute.runtime_harness import Harness, Rows, dataflow

Row = tuple[object, ...]


class PlannedDatabase:
    """``run`` takes definitions of tables, views and indexes; ``write`` commits, ``rest`` lets the replica finish."""

    def __init__(self, script: str, *, workers: int = 1) -> None:
        self._catalog = CatalogScript()
        #: its clock stands still, so that no activation ends before its work does
        self.replica = Harness(workers=workers, interactive=False, tick=0)
        self._operators: dict[str, tuple[Operator, ...]] = {}
        self.run(script)

    def operators(self, index: str) -> tuple[Operator, ...]:
        """What the index is rendered as."""
        return self._operators[self._catalog.item(index).id]

    def run(self, script: str) -> None:
        known = set(self._catalog.catalog.snapshot().by_id)
        self._catalog.run(script)
        for id, item in self._catalog.catalog.snapshot().by_id.items():
            if id in known:
                continue
            if item.kind is ItemKind.TABLE:
                self.replica.controller.create_table(
                    id,
                    item.types,
                    key=item.primary_key or None,
                    names=tuple(c.name for c in item.columns),
                    table=item.name,
                    constraint=f"{item.name}_pkey",
                    at=Time(self.replica.time),
                )
                self.replica.commit({})
            elif item.kind is ItemKind.INDEX:
                self._create_index(id)

    def _create_index(self, id: str) -> None:
        view = self._catalog.view
        item = view.item(id)
        assert item is not None and item.on is not None
        on = view.item(item.on)
        assert on is not None
        key = tuple(e.index for e in item.keys if isinstance(e, Column))
        relation, facts = maintained_relation(Get(on.id, on.types), view, DEFAULT_CLUSTER_ID, but_not=id)
        operators = lower_index(relation, id, on.id, key, facts.indexes, unique_keys=facts.unique_keys)
        self._operators[id] = operators
        self.replica.controller.create_dataflow(dataflow(id, *operators))

    def write(self, **rows: Sequence[Row]) -> None:
        """One commit; a row that begins with None is its removal: ``(None, *row)``."""
        writes = {}
        for name, changes in rows.items():
            item = self._catalog.item(name)
            width = len(item.types)
            plain = [row[1:] if len(row) > width else row for row in changes]
            columns = tuple(pa.array([r[c] for r in plain], arrow_type(t)) for c, t in enumerate(item.types))
            diffs = np.array([-1 if len(row) > width else 1 for row in changes], np.int64)
            writes[item.id] = Batch(item.types, columns, np.zeros(len(plain), np.int64), diffs)
        self.replica.commit(writes)

    def rest(self) -> None:
        self.replica.settle()

    def read(self, index: str) -> Rows:
        """All rows of the indexed object, with multiplicities."""
        item = self._catalog.item(index)
        assert item.on is not None
        on = self._catalog.view.item(item.on)
        assert on is not None
        return self.replica.read(item.id, types=on.types)
