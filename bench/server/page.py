"""The measurements of the server, and their section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.server.hydration import WireIsolationFigures, measure_wire_isolation
from bench.server.lookups import LookupFigures, fill, measure_served_lookups
from bench.server.peers import both
from bench.server.writes import CopyFigures, InsertFigures, measure_commits, measure_copy

__all__ = ["SERVER_TEXT", "ServerFigures", "measure_server", "server_lines"]

_LOOKUPS_WANTED = {("prepared", 1): 0.5, ("prepared", 32): 0.3}
_COMMITS_WANTED = 3.0
_COPY_WANTED = 1.0


@dataclass(frozen=True)
class ServerFigures:
    lookups: Sequence[LookupFigures]
    commits: InsertFigures
    copies: Sequence[CopyFigures]
    isolation: Sequence[WireIsolationFigures]


def measure_server(*, quick: bool) -> ServerFigures:
    rounds, for_s = (3, 2) if quick else (5, 8)
    with both() as (postgres, eddyline):
        fill(postgres)
        fill(eddyline)
        lookups = measure_served_lookups(postgres, eddyline, rounds=rounds, for_s=for_s)
        commits = measure_commits(postgres, eddyline, samples=1000 if quick else 5000)
        copies = measure_copy(postgres, eddyline, rows=200_000 if quick else 1_000_000, rounds=rounds)
    isolation = measure_wire_isolation(big_rows=1_000_000, for_s=6.0 if quick else 20.0)
    return ServerFigures(lookups, commits, copies, isolation)


def server_lines(figures: ServerFigures) -> list[str]:
    lines = ["| point lookups by pgbench | PostgreSQL / s | Eddyline / s | ratio | wanted |", "|---|--:|--:|--:|--:|"]
    for f in figures.lookups:
        wanted = _LOOKUPS_WANTED.get((f.mode, f.clients))
        told = "" if wanted is None else _told(f.ratio >= wanted, f"≥ {wanted}×")
        clients = "1 connection" if f.clients == 1 else f"{f.clients} connections"
        lines.append(
            f"| {f.mode}, {clients} | {f.postgres_per_s:,.0f} | {f.eddyline_per_s:,.0f} | {f.ratio:.2f}× | {told} |"
        )
    c, met = figures.commits, _told(figures.commits.ratio <= _COMMITS_WANTED, "≤ 3×")
    lines += [
        "",
        "| | PostgreSQL: p50 / p99 ms | Eddyline: p50 / p99 ms | ratio | wanted |",
        "|---|--:|--:|--:|--:|",
        f"| INSERT of a row, its commit synced | {c.postgres_p50:.2f} / {c.postgres_p99:.2f} "
        f"| {c.eddyline_p50:.2f} / {c.eddyline_p99:.2f} | {c.ratio:.1f}× | {met} |",
        "",
        "| COPY FROM STDIN | rows | PostgreSQL rows/s | Eddyline rows/s | ratio | wanted |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {f.what} | {f.rows:,} | {f.postgres_per_s:,.0f} | {f.eddyline_per_s:,.0f} | {f.ratio:.2f}× "
        f"| {_told(f.ratio >= _COPY_WANTED, '≥ 1×')} |"
        for f in figures.copies
    ]
    lines += [
        "",
        "| lookups over the wire | idle: p50 / p99 ms | views hydrating: p50 / p99 / longest ms | lookups | views |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {f.layout} | {f.idle_p50:.2f} / {f.idle_p99:.2f} "
        f"| {f.hydrating_p50:.2f} / {f.hydrating_p99:.2f} / {f.hydrating_longest:.1f} | {f.samples:,} | {f.views} |"
        for f in figures.isolation
    ]
    return lines


def _told(met: bool, wanted: str) -> str:
    return wanted if met else f"**missed**: {wanted}"


SERVER_TEXT = """
`eddyline serve --data` and PostgreSQL 15 with its usual settings, each in processes of its own on this machine, with
their directories in one file system, syncing every commit; clients over loopback.  *Point lookups*: a row by primary
key, 100,000 rows, pgbench on one thread.  The servers run in turns; ratios are medians of the rounds' own.  *COPY*:
four columns, from psycopg, into an empty table.  *Lookups over the wire*: 100 a second by four psycopg clients through
an index, from when each was due, while two other clients create, read and drop views over a table of 1,000,000 rows.
"""
