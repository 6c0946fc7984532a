"""The logs: what each worker of each runtime records of its own doings, as indexes with fixed ids and row types.

A log has a timeline of its own (microseconds of the runtime's clock): whoever reads one sees what was last sealed,
at whatever time the rest of the read is.  Its rows lie with the worker that wrote them and not by key, so that a
dataflow imports a log as a stream, like a stored collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eddyline.repr.ids import log_id
from eddyline.repr.types import BIGINT, TEXT, SqlType

__all__ = [
    "ACTIVE_PEEKS",
    "ARRANGEMENT_SIZES",
    "DATAFLOWS",
    "ERROR_COUNTS",
    "EXPORTS",
    "FRONTIERS",
    "HYDRATION_TIMES",
    "IMPORT_FRONTIERS",
    "LOGS",
    "OPERATORS",
    "OPERATOR_DURATIONS",
    "PEEK_DURATIONS",
    "SCHEDULING_ELAPSED",
    "Log",
]


@dataclass(frozen=True, slots=True)
class Log:
    """``name``: of the relation in SQL.  ``key``: the columns that it is indexed by; rows are unique."""

    id: str
    name: str
    columns: tuple[tuple[str, SqlType], ...]
    key: tuple[int, ...]

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(t for _, t in self.columns)


def _log(number: int, name: str, *columns: str, texts: tuple[str, ...], key: int = 1) -> Log:
    """``texts``: the columns that are no counts.  Every row ends with the runtime that wrote it."""
    typed = tuple((c, TEXT if c in texts else BIGINT) for c in columns)
    return Log(log_id(number), f"{name}_per_worker", (*typed, ("runtime", TEXT)), tuple(range(key)))


DATAFLOWS: Final = _log(1, "mz_dataflows", "id", "worker_id", "name", texts=("name",))
OPERATORS: Final = _log(2, "mz_dataflow_operators", "id", "worker_id", "name", "dataflow_id", texts=("name",))
EXPORTS: Final = _log(3, "mz_compute_exports", "export_id", "worker_id", "dataflow_id", texts=("export_id",))
#: without a row once the frontier is empty: nothing can change any more
FRONTIERS: Final = _log(4, "mz_compute_frontiers", "export_id", "worker_id", "time", texts=("export_id",))
IMPORT_FRONTIERS: Final = _log(
    5, "mz_compute_import_frontiers", "export_id", "import_id", "worker_id", "time", texts=("export_id", "import_id")
)
#: of the rows and the errors of an arrangement; sizes in bytes
ARRANGEMENT_SIZES: Final = _log(
    6, "mz_arrangement_sizes", "operator_id", "worker_id", "records", "batches", "size", "capacity", texts=()
)
ACTIVE_PEEKS: Final = _log(
    7, "mz_active_peeks", "id", "worker_id", "object_id", "type", "time", texts=("id", "object_id", "type")
)
#: ``duration_ns``: the least power of two that is not below; ``count``: peeks answered since the runtime began
PEEK_DURATIONS: Final = _log(
    8, "mz_peek_durations_histogram", "type", "worker_id", "duration_ns", "count", texts=("type",), key=3
)
SCHEDULING_ELAPSED: Final = _log(9, "mz_scheduling_elapsed", "id", "worker_id", "elapsed_ns", texts=())
OPERATOR_DURATIONS: Final = _log(
    10, "mz_compute_operator_durations_histogram", "id", "worker_id", "duration_ns", "count", texts=(), key=3
)
#: ``time_ns``: from the dataflow's creation to its hydration; NULL while it hydrates
HYDRATION_TIMES: Final = _log(
    11, "mz_compute_hydration_times", "export_id", "worker_id", "time_ns", texts=("export_id",)
)
ERROR_COUNTS: Final = _log(12, "mz_compute_error_counts", "export_id", "worker_id", "count", texts=("export_id",))

LOGS: Final = (
    DATAFLOWS,
    OPERATORS,
    EXPORTS,
    FRONTIERS,
    IMPORT_FRONTIERS,
    ARRANGEMENT_SIZES,
    ACTIVE_PEEKS,
    PEEK_DURATIONS,
    SCHEDULING_ELAPSED,
    OPERATOR_DURATIONS,
    HYDRATION_TIMES,
    ERROR_COUNTS,
)
