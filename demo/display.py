"""What the viewer sees: a progress bar and live tables on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.lookups import Lookups

__all__ = ["Display", "Snapshot"]

_PLAIN_LINES = 12


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where the stream is.  ``batch_ms``: the last day's changes applied and the ten worst planes read after them."""

    date: str
    days_done: int
    rows: int
    rows_per_second: float
    batch_ms: float
    checks: int
    lookups: Sequence[Lookups]
    worst: Sequence[tuple[object, ...]]


class Display:
    """``with Display(days) as display: …``: ``say`` lines and ``update`` the picture."""

    def __init__(self, days: int) -> None:
        self._console = Console(highlight=False)
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
            self._live = None

    def say(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(line, markup=False)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def update(self, now: Snapshot) -> None:
        self._progress.update(self._task, completed=now.days_done)
        if self._live is not None:
            self._live.update(_picture(self._progress, now))
        elif now.days_done >= self._last_line + self._days // _PLAIN_LINES or now.days_done == self._days:
            self._last_line = now.days_done
            self.say(_line(now))


def _line(now: Snapshot) -> str:
    lookups = "  ".join(f"{each.isolation} p50 {_ms(each, 0.5)} p99 {_ms(each, 0.99)}" for each in now.lookups)
    return (
        f"{now.date}  {now.rows:>7,} rows  {now.rows_per_second:>7,.0f} rows/s  batch {now.batch_ms:5.1f} ms  "
        f"lookups: {lookups}  {now.checks} checks passed"
    )


def _ms(lookups: Lookups, q: float) -> str:
    return f"{lookups.quantile_ms(q):.1f} ms"


def _picture(progress: Progress, now: Snapshot) -> Group:
    left = Group(_figures(now), Padding(_lookups(now), (1, 0, 0, 0)))
    both = Table.grid(padding=(0, 4))
    both.add_row(left, _worst(now))
    return Group(Padding(progress, (1, 0)), both)


def _figures(now: Snapshot) -> Table:
    table = Table(title=f"today is {now.date}", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right", min_width=10)
    table.add_row("changes so far", f"{now.rows:,}")
    table.add_row("rows per second", f"{now.rows_per_second:,.0f}")
    table.add_row("this batch", f"{now.batch_ms:.1f} ms")
    table.add_row("comparisons passed", str(now.checks))
    return table


def _lookups(now: Snapshot) -> Table:
    table = Table(title="lookups meanwhile", title_justify="left")
    table.add_column("session")
    for heading in ("p50", "p99"):
        table.add_column(heading, justify="right", min_width=9)
    for each in now.lookups:
        table.add_row(each.isolation, _ms(each, 0.5), _ms(each, 0.99))
    return table


def _worst(now: Snapshot) -> Table:
    table = Table(title="ten worst planes", title_justify="left")
    for heading in ("plane", "minutes late", "flights"):
        table.add_column(heading, justify="right")
    for row in now.worst:
        table.add_row(*(str(v) for v in row))
    return table
