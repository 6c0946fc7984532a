"""The comparison of every view with the recomputation, and what is said about it."""

from __future__ import annotations

import eddyline
from demo.oracle import Recomputation, differences
from demo.views import VIEWS

__all__ = ["Verdicts"]

_SHOWN_DIFFERENCES = 5


class Verdicts:
    """``check`` compares all views; the first difference of each is remembered."""

    def __init__(self) -> None:
        self.passed = {view.name: 0 for view in VIEWS}
        self.failed: dict[str, list[str]] = {}
        self.rows = {view.name: 0 for view in VIEWS}

    def check(self, db: eddyline.Connection, oracle: Recomputation) -> None:
        for view in VIEWS:
            ours = db.execute(f"SELECT * FROM {view.name}").fetchall()
            wrong = differences(view, ours, oracle.rows(view))
            if not ours:
                wrong.append("the view is empty")
            self.rows[view.name] = len(ours)
            if wrong:
                self.failed.setdefault(view.name, wrong)
            else:
                self.passed[view.name] += 1

    @property
    def checks(self) -> int:
        """How many comparisons every view has passed."""
        return min(self.passed.values())

    def lines(self) -> list[str]:
        lines = []
        for view in VIEWS:
            wrong = self.failed.get(view.name, [])
            verdict = "DIFFERS" if wrong else "equal"
            counts = f"{self.rows[view.name]:>6} rows  {self.passed[view.name]:>2} checks"
            lines.append(f"{verdict:8} {view.name:21} {counts}  {view.title}")
            lines.extend(f"         {line}" for line in wrong[:_SHOWN_DIFFERENCES])
        return lines
