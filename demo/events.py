"""The event log: each day's flights, with corrections and deletions of earlier ones that arrive late.

It is made once, from a seed, and fed to both engines; neither ever sees the other's tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

__all__ = ["Day", "days"]

_SEED = 2013
_CORRECTED_SHARE = 0.02
_DELETED_SHARE = 0.005
_LATE_ROWS = 10_000  # how far back a correction or deletion reaches


@dataclass(frozen=True, slots=True)
class Day:
    """``corrected`` holds whole new rows for ids added earlier; ``deleted`` only their ids."""

    date: dt.date
    added: pa.Table
    corrected: pa.Table
    deleted: pa.Table

    @property
    def rows(self) -> int:
        return sum(len(rows) for rows in (self.added, self.corrected, self.deleted))


def days(flights: pa.Table) -> Iterator[Day]:
    """One ``Day`` per date, in order."""
    random = np.random.default_rng(_SEED)
    dates = flights["flight_date"].to_numpy()
    starts = np.flatnonzero(np.r_[True, dates[1:] != dates[:-1]])
    stops = np.r_[starts[1:], len(dates)]
    alive = np.ones(flights.num_rows, bool)
    for start, stop in zip(starts, stops, strict=True):
        reach = max(0, int(start) - _LATE_ROWS)
        candidates = reach + np.flatnonzero(alive[reach:start])
        wanted = round((stop - start) * (_CORRECTED_SHARE + _DELETED_SHARE))
        late = random.permutation(candidates)[:wanted]
        deletions = round(len(late) * _DELETED_SHARE / (_CORRECTED_SHARE + _DELETED_SHARE))
        deleted, corrected = np.sort(late[:deletions]), np.sort(late[deletions:])
        alive[deleted] = False
        yield Day(
            date=flights["flight_date"][int(start)].as_py(),
            added=flights.slice(int(start), int(stop - start)),
            corrected=_with_other_delays(flights.take(pa.array(corrected)), random),
            deleted=pa.table({"id": flights["id"].take(pa.array(deleted))}),
        )


def _with_other_delays(rows: pa.Table, random: np.random.Generator) -> pa.Table:
    """``rows`` with new delays; about one in eight becomes a cancelled flight (no delays)."""
    cancelled = random.random(rows.num_rows) < 0.125
    for name in ("dep_delay", "arr_delay"):
        values = random.integers(-20, 300, rows.num_rows).astype(np.int32)
        column = pa.array(values, mask=cancelled)
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows
