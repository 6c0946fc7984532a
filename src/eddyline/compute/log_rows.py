"""What the logs say of one dataflow, or of a worker's peeks, at this moment: rows by log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exports import IndexExport
from eddyline.compute.peek_log import PeekLog
from eddyline.compute.placement import Role
from eddyline.compute.state_size import Stateful
from eddyline.protocol import logs
from eddyline.repr.time import EMPTY

__all__ = ["LogRow", "LogRows", "dataflow_rows", "peek_rows"]

LogRow = tuple[int | str | None, ...]
LogRows = dict[str, frozenset[LogRow]]

#: room for the operators of one dataflow among the ids of all
_OPERATORS: Final = 100_000


def dataflow_rows(dataflow: Dataflow, hydrated_ns: int | None, worker: int, role: Role) -> LogRows:
    """``hydrated_ns``: how long hydration took, if it is over.

    Ids differ between the runtimes of a replica, and agree between the workers of one; no operator has a dataflow's.
    O(operators, runs and columns of the dataflow).
    """
    id = 2 * (dataflow.number + 1) + (role is Role.INTERACTIVE)
    name = dataflow.description.name
    rows: dict[str, list[LogRow]] = {
        logs.DATAFLOWS.id: [(id, worker, name)],
        logs.EXPORTS.id: [(e, worker, id) for e in _exports(dataflow)],
        logs.HYDRATION_TIMES.id: [(e, worker, hydrated_ns) for e in _exports(dataflow)],
    }
    _add_frontiers(rows, dataflow, worker)
    _add_operators(rows, dataflow, id, worker)
    return _of_runtime(rows, role)


def peek_rows(peeks: PeekLog, worker: int, role: Role) -> tuple[int, LogRows]:
    """With the version of ``peeks`` that they are of."""
    version, active, counts = peeks.rows()
    rows: dict[str, list[LogRow]] = {
        logs.ACTIVE_PEEKS.id: [(uuid, worker, target, kind, at) for uuid, target, kind, at in active],
        logs.PEEK_DURATIONS.id: [(kind, worker, ns, count) for kind, ns, count in counts],
    }
    return version, _of_runtime(rows, role)


def _of_runtime(rows: dict[str, list[LogRow]], role: Role) -> LogRows:
    return {log: frozenset((*row, role.value) for row in its) for log, its in rows.items()}


def _exports(dataflow: Dataflow) -> Iterable[str]:
    return (id for id in dataflow.exports if id not in dataflow.dropped_exports)


def _add_frontiers(rows: dict[str, list[LogRow]], dataflow: Dataflow, worker: int) -> None:
    frontiers = rows[logs.FRONTIERS.id] = []
    imports = rows[logs.IMPORT_FRONTIERS.id] = []
    errors = rows[logs.ERROR_COUNTS.id] = []
    inputs = {id: edge.frontier for id, edge in dataflow.inputs}
    for id in _exports(dataflow):
        export = dataflow.exports[id]
        frontier = export.frontier()
        if frontier < EMPTY:
            frontiers.append((id, worker, int(frontier)))
        imports += [(id, source, worker, int(f)) for source, f in inputs.items() if f < EMPTY]
        if isinstance(export, IndexExport):
            failing = sum(int(run.diffs.sum()) for run in export.arrangement.errs.snapshot().runs)
            if failing:
                errors.append((id, worker, failing))


def _add_operators(rows: dict[str, list[LogRow]], dataflow: Dataflow, id: int, worker: int) -> None:
    operators = rows[logs.OPERATORS.id] = []
    sizes = rows[logs.ARRANGEMENT_SIZES.id] = []
    elapsed = rows[logs.SCHEDULING_ELAPSED.id] = []
    durations = rows[logs.OPERATOR_DURATIONS.id] = []
    prefix = len(dataflow.description.name) + 1
    for at, operator in enumerate(dataflow.operators):
        its_id = id * _OPERATORS + at
        operators.append((its_id, worker, operator.name[prefix:], id))
        if dataflow.elapsed_ns[at]:
            elapsed.append((its_id, worker, dataflow.elapsed_ns[at]))
        durations += [(its_id, worker, 1 << power, count) for power, count in dataflow.durations[at].items()]
        if isinstance(operator, Stateful):
            sizes.append((its_id, worker, *operator.state_size()))
