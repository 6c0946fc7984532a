"""The measurements of the server, and their section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.isolation.arms import SOLO, TWO, UNSLICED
from bench.isolation.targets import Targets
from bench.server.hydration import INTROSPECTION, LOOKUPS, LOOKUPS_SERIALIZABLE, WireFigures, measure_wire_isolation
from bench.server.lookups import LookupFigures, fill, measure_served_lookups
from bench.server.peers import both
from bench.server.writes import CopyFigures, InsertFigures, measure_commits, measure_copy

__all__ = ["SERVER_TEXT", "ServerFigures", "isolation_lines", "measure_server", "server_lines"]

_LOOKUPS_WANTED = {("prepared", 1): 0.5, ("prepared", 32): 0.3}
_COMMITS_WANTED = 3.0
_COPY_WANTED = 1.0


@dataclass(frozen=True)
class ServerFigures:
    lookups: Sequence[LookupFigures]
    commits: InsertFigures
    copies: Sequence[CopyFigures]
    isolation: WireFigures


def measure_server(*, quick: bool) -> ServerFigures:
    rounds, for_s = (3, 2) if quick else (5, 8)
    with both() as (postgres, eddyline):
        fill(postgres)
        fill(eddyline)
        lookups = measure_served_lookups(postgres, eddyline, rounds=rounds, for_s=for_s)
        commits = measure_commits(postgres, eddyline, samples=1000 if quick else 5000)
        copies = measure_copy(postgres, eddyline, rows=200_000 if quick else 1_000_000, rounds=rounds)
    return ServerFigures(lookups, commits, copies, measure_wire_isolation(quick=quick))


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
    return [*lines, "", *isolation_lines(figures.isolation)]


def isolation_lines(figures: WireFigures) -> list[str]:
    """What was reached, and all figures, of the isolation bench over the wire."""
    two, targets = figures[TWO], Targets()
    for stream in (LOOKUPS, LOOKUPS_SERIALIZABLE):
        for q, limit in ((0.5, 1.5), (0.99, 3.0)):
            text = f"over the wire, {stream}, hydration: p{100 * q:.0f} over idle"
            targets.ratio_at_most(text, two.hydrating[stream], two.idle[stream], q, limit)
    for arm, least in ((UNSLICED, 100.0), (SOLO, 5.0)):
        for stream in (LOOKUPS, LOOKUPS_SERIALIZABLE):
            text = f"over the wire, {stream}, hydration: p99 of {arm} over two runtimes'"
            targets.ratio_at_least(text, figures[arm].hydrating[stream], two.hydrating[stream], 0.99, least)
    inside = two.hydrating[INTROSPECTION]
    targets.quantile_at_most("over the wire, introspection, hydration", inside, 0.99, 50.0)
    lines = [
        *targets.table(),
        "",
        "| over the wire: arm; reads | samples | idle: p50 / p99 ms | hydration: p50 / p99 / worst ms | unanswered |",
        "|---|--:|--:|--:|--:|",
    ]
    for arm, found in figures.items():
        for stream, busy in found.hydrating.items():
            idle = found.idle[stream]
            lines.append(
                f"| {arm}; {stream} | {len(busy)} | {_ms(idle.quantile_ms(0.5))} / {_ms(idle.quantile_ms(0.99))} "
                f"| {_ms(busy.quantile_ms(0.5))} / {_ms(busy.quantile_ms(0.99))} / {busy.worst_ms:.1f} "
                f"| {len(busy.unanswered_ms)} |"
            )
    views = ", ".join(f"{arm} {len(found.cycles)}" for arm, found in figures.items())
    return [*lines, "", f"Views made, hydrated and dropped meanwhile: {views}."]


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _told(met: bool, wanted: str) -> str:
    return wanted if met else f"**missed**: {wanted}"


SERVER_TEXT = """
`eddyline serve --data` and PostgreSQL 15 with its usual settings, each in processes of its own on this machine, with
their directories in one file system, syncing every commit; clients over loopback.  *Point lookups*: a row by primary
key, 100,000 rows, pgbench on one thread.  The servers run in turns; ratios are medians of the rounds' own.  *COPY*:
four columns, from psycopg, into an empty table.  *Over the wire*: the arms, reads and method of
[the isolation bench](benchmarks-isolation.md), of servers in memory: 50 lookups a second of each kind by four psycopg
clients each, through an index, then as many reads of `mz_introspection.mz_dataflows`, from when each was due, the same
in each arm; meanwhile two other clients create, read and drop views over a table of 1,000,000 rows.  A dash: too few
samples.
"""
