"""What the viewer sees: a progress bar and a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["Display", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    date: str
    days_done: int
    rows: int
    rows_per_second: float
    batch_ms: float
    lookup_p50_ms: float
    lookup_p99_ms: float
    checks: int
    worst: Sequence[tuple[object, ...]]


class Display:
    def __init__(self, days: int) -> None:
        self._console = Console()
        self._live: Live | None = None
        self._progress = Progress(
            TextColumn("streaming flights"), BarColumn(), MofNCompleteColumn(), TextColumn("days"), TimeElapsedColumn()
        )
        self._task = self._progress.add_task("days", total=days)
        self._days = days
        self._last_line = 0

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(line)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def update(self, now: Snapshot) -> None:
        self._progress.update(self._task, completed=now.days_done)
        if self._live is not None:
            self._live.update(Group(self._progress, self._figures(now), self._worst(now)))
        elif now.days_done >= self._last_line + self._days // 12 or now.days_done == self._days:
            self._last_line = now.days_done
            self.say(
                f"{now.date}  {now.rows:>7} rows  {now.rows_per_second:>8.0f} rows/s  batch {now.batch_ms:6.1f} ms  "
                f"lookup p50 {now.lookup_p50_ms:.2f} ms p99 {now.lookup_p99_ms:.2f} ms  {now.checks} checks passed"
            )

    def _figures(self, now: Snapshot) -> Table:
        table = Table(title=f"today is {now.date}", expand=False)
        for heading in ("rows", "rows/s", "batch", "lookup p50", "lookup p99", "checks passed"):
            table.add_column(heading, justify="right")
        table.add_row(
            f"{now.rows:,}",
            f"{now.rows_per_second:,.0f}",
            f"{now.batch_ms:.1f} ms",
            f"{now.lookup_p50_ms:.2f} ms",
            f"{now.lookup_p99_ms:.2f} ms",
            str(now.checks),
        )
        return table

    def _worst(self, now: Snapshot) -> Table:
        table = Table(title="ten worst planes (minutes late, flights)", expand=False)
        for heading in ("plane", "minutes", "flights"):
            table.add_column(heading, justify="right")
        for row in now.worst:
            table.add_row(*(str(v) for v in row))
        return table
