"""The figures as lines of the page."""

from __future__ import annotations

from bench.tpch.measure import TpchFigures

__all__ = ["TPCH_TEXT", "tpch_lines"]

TPCH_TEXT = """
Each of TPC-H's 22 queries as a view with an index on its first column: from CREATE VIEW until the index is complete,
with one worker, in turns with DuckDB on one thread over the same Arrow tables, whose answer is compared.  The ratio is
the median of the pairs'; CPU is the process's.  *Refresh*: 0.1 % of the orders come with their lineitems in one
transaction and as many go in another, with all the views there at once, until every view has been read whole; DuckDB
computes all of them again.
"""


def tpch_lines(figures: TpchFigures) -> list[str]:
    lines = [
        "| view | rows | s | CPU s | DuckDB s | times DuckDB, by clock | by CPU | pairs |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    built = [b for b in figures.builds if not b.missing]
    for b in built:
        lines.append(
            f"| {b.query} | {b.rows:,} | {b.eddyline_s:.3f} | {b.eddyline_cpu_s:.3f} | {b.duckdb_s:.3f} "
            f"| {b.ratio:.1f}× | {b.cpu_ratio:.1f}× | {b.pairs} |"
        )
    ours, cpu = sum(b.eddyline_s for b in built), sum(b.eddyline_cpu_s for b in built)
    theirs, their_cpu = sum(b.duckdb_s for b in built), sum(b.duckdb_cpu_s for b in built)
    lines += [
        f"| all {len(built)} | | {ours:.2f} | {cpu:.2f} | {theirs:.2f} "
        f"| {ours / theirs:.1f}× | {cpu / their_cpu:.1f}× | |",
        "",
        f"Scale factor {figures.scale:g}; loading the tables took {figures.load_s:.1f} s.",
    ]
    lines += [f"{b.query} is not there: {b.missing}" for b in figures.builds if b.missing]
    if (r := figures.refresh) is not None:
        lines += [
            "",
            "| refresh of all | rows changed | s | CPU s | DuckDB s | times faster, by clock | by CPU | rounds |",
            "|---|--:|--:|--:|--:|--:|--:|--:|",
            f"| {len(built)} views | {r.rows:,} | {r.eddyline_s:.3f} | {r.eddyline_cpu_s:.3f} | {r.duckdb_s:.2f} "
            f"| {r.ratio:.1f}× | {r.cpu_ratio:.1f}× | {r.rounds} |",
        ]
    return lines
