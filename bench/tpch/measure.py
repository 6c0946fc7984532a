"""Views that come to be over loaded tables and follow changes, in turns with DuckDB on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from math import isclose
from typing import Any

import duckdb
import pyarrow as pa

import eddyline
from bench.tpch.data import SCHEMA, TABLES, Refresh, split_orders, tables
from bench.tpch.queries import KEYS, QUERIES

__all__ = ["BuildFigures", "RefreshFigures", "TpchFigures", "differences", "loaded", "measure_tpch", "reference"]

_CHUNK_ROWS = 250_000

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class BuildFigures:
    """Seconds of one query: medians of the pairs by the clock and by CPU, and the median of their ratios.

    ``missing``: why there is no such view; the other fields are 0 then.
    """

    query: str
    rows: int = 0
    eddyline_s: float = 0.0
    eddyline_cpu_s: float = 0.0
    duckdb_s: float = 0.0
    duckdb_cpu_s: float = 0.0
    ratio: float = 0.0
    cpu_ratio: float = 0.0
    pairs: int = 0
    missing: str = ""
    #: seconds by the clock of each pair: ours, DuckDB's
    taken: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class RefreshFigures:
    """One refresh of all views together; DuckDB computes all of them again.  ``rows`` inserted and deleted."""

    rows: int
    eddyline_s: float
    eddyline_cpu_s: float
    duckdb_s: float
    ratio: float
    cpu_ratio: float
    rounds: int
    #: as a build's
    taken: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class TpchFigures:
    scale: float
    load_s: float
    builds: list[BuildFigures]
    refresh: RefreshFigures | None


@dataclass(slots=True)
class _Taken:
    """Seconds by the clock and of the process's CPU."""

    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @contextmanager
    def timed(self) -> Iterator[None]:
        clock, cpu = time.perf_counter(), time.process_time()
        yield
        self.clock.append(time.perf_counter() - clock)
        self.cpu.append(time.process_time() - cpu)

    def over(self, other: _Taken) -> tuple[float, float]:
        """Medians of the pairs' ratios."""
        return (
            statistics.median(a / b for a, b in zip(self.clock, other.clock, strict=True)),
            statistics.median(a / b for a, b in zip(self.cpu, other.cpu, strict=True)),
        )

    def beside(self, other: _Taken) -> tuple[tuple[float, float], ...]:
        return tuple((round(a, 4), round(b, 4)) for a, b in zip(self.clock, other.clock, strict=True))


def measure_tpch(
    scale: float, *, pairs: int, at_most_s: float, rounds: int, queries: Sequence[str] = tuple(QUERIES)
) -> TpchFigures:
    """Builds of each query in ``pairs`` turns (fewer once one has taken ``at_most_s``), then ``rounds`` refreshes.

    AssertionError if an answer differs from DuckDB's.
    """
    first, refreshes = split_orders(tables(scale), max(rounds, 1))
    begun = time.perf_counter()
    with loaded(first) as db:
        load_s = time.perf_counter() - begun
        builds = [_measure_build(db, first, query, pairs, at_most_s) for query in queries]
        built = [b.query for b in builds if not b.missing]
        refresh = _measure_refresh(db, first, refreshes, built) if rounds else None
        return TpchFigures(scale, load_s, builds, refresh)


@contextmanager
def loaded(found: Mapping[str, pa.Table]) -> Iterator[eddyline.Connection]:
    """A database with the tables."""
    with eddyline.connect() as db:
        db.executescript(SCHEMA)
        for name in TABLES:
            for start in range(0, found[name].num_rows, _CHUNK_ROWS):
                db.append(name, found[name].slice(start, _CHUNK_ROWS))
        yield db


@contextmanager
def reference(found: Mapping[str, pa.Table]) -> Iterator[Any]:
    """DuckDB on one thread over the tables."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in TABLES:
            connection.register(name, found[name])
        yield connection


def _measure_build(
    db: eddyline.Connection, found: Mapping[str, pa.Table], query: str, pairs: int, at_most_s: float
) -> BuildFigures:
    ours, theirs = _Taken(), _Taken()
    begun = time.perf_counter()
    with reference(found) as other:
        for _ in range(pairs):
            try:
                with ours.timed():
                    _build(db, query)
            except eddyline.NotSupportedError as error:
                return BuildFigures(query, missing=str(error))
            mine = _rows(_read(db, query))
            db.execute(f"DROP VIEW {query}")
            with theirs.timed():
                answer = other.sql(QUERIES[query]).to_arrow_table()
            _check(query, mine, _rows(answer))
            if time.perf_counter() - begun > at_most_s:
                break
    ratio, cpu_ratio = ours.over(theirs)
    return BuildFigures(
        query,
        len(mine),
        eddyline_s=statistics.median(ours.clock),
        eddyline_cpu_s=statistics.median(ours.cpu),
        duckdb_s=statistics.median(theirs.clock),
        duckdb_cpu_s=statistics.median(theirs.cpu),
        ratio=ratio,
        cpu_ratio=cpu_ratio,
        pairs=len(ours.clock),
        taken=ours.beside(theirs),
    )


def _build(db: eddyline.Connection, query: str) -> None:
    db.execute(f"CREATE VIEW {query} AS {QUERIES[query]}")
    db.execute(f"CREATE INDEX {query}_i ON {query} ({KEYS[query]})")
    db.wait_hydrated(f"{query}_i")


def _measure_refresh(
    db: eddyline.Connection, found: dict[str, pa.Table], refreshes: Sequence[Refresh], queries: Sequence[str]
) -> RefreshFigures:
    """A strict read of every view after the changes of a round: it waits until the view has taken them.

    Both give their answers as Arrow tables.
    """
    for query in queries:
        _build(db, query)
    ours, theirs = _Taken(), _Taken()
    for refresh in refreshes:
        found = refresh.after(found)
        with ours.timed():
            with db.transaction():
                for name, table in refresh.new.items():
                    db.append(name, table)
            with db.transaction():
                for name, table in refresh.old.items():
                    db.delete(name, table)
            mine = {query: _read(db, query) for query in queries}
        with reference(found) as other, theirs.timed():
            answers = {query: other.sql(QUERIES[query]).to_arrow_table() for query in queries}
        for query in queries:
            _check(query, _rows(mine[query]), _rows(answers[query]))
    for query in queries:
        db.execute(f"DROP VIEW {query}")
    ratio, cpu_ratio = theirs.over(ours)
    return RefreshFigures(
        rows=refreshes[0].rows,
        eddyline_s=statistics.median(ours.clock),
        eddyline_cpu_s=statistics.median(ours.cpu),
        duckdb_s=statistics.median(theirs.clock),
        ratio=ratio,
        cpu_ratio=cpu_ratio,
        rounds=len(refreshes),
        taken=ours.beside(theirs),
    )


def _read(db: eddyline.Connection, query: str) -> pa.Table:
    return db.execute(f"SELECT * FROM {query}").arrow()


def _rows(table: pa.Table) -> Rows:
    return [tuple(row.values()) for row in table.to_pylist()]


def _check(query: str, mine: Rows, theirs: Rows) -> None:
    wrong = differences(mine, theirs)
    if wrong:
        raise AssertionError(f"{query}: {wrong}")


def differences(mine: Rows, theirs: Rows) -> str:
    """What tells two answers apart, without order; ``""`` if nothing does.

    Numbers may differ by 1e-9 of their size: DuckDB's averages and quotients of decimals are floats.
    """
    if len(mine) != len(theirs):
        return f"{len(mine)} rows for {len(theirs)}"
    for left, right in zip(sorted(map(_plain, mine), key=_order), sorted(map(_plain, theirs), key=_order), strict=True):
        if not all(_alike(a, b) for a, b in zip(left, right, strict=True)):
            return f"{left} for {right}"
    return ""


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(float(v) if isinstance(v, (int, float, Decimal)) else str(v) for v in row)


def _order(row: tuple[Any, ...]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Texts before numbers: each answer of TPC-H has a key of texts and exact numbers before its sums."""
    return tuple(v for v in row if isinstance(v, str)), tuple(v for v in row if isinstance(v, float))


def _alike(a: float | str, b: float | str) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return isclose(a, b, rel_tol=1e-9)
    return a == b
