"""What is to be reached, and what was: a table, and for each miss the measured reason."""

from __future__ import annotations

from bench.isolation.reasons import of_quantile
from bench.isolation.samples import Samples

__all__ = ["Targets"]


class Targets:
    """Collected in the order in which they come."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str]] = []
        self._missed: list[str] = []

    def table(self) -> list[str]:
        """Without reasons."""
        found = ["| target, 2 cores | figure | |", "|---|--:|---|"]
        return found + [f"| {text} | {figure} | {verdict} |" for text, figure, verdict in self._rows]

    def lines(self) -> list[str]:
        found = ["## Targets", "", *self.table()]
        if self._missed:
            found += ["", "## Why targets are missed", "", *self._missed]
        return found

    def at_most(self, text: str, value: float | None, limit: float, unit: str, why: str) -> None:
        self._add(f"{text} ≤ {limit:g}{unit}", value, unit, why, met=value is not None and value <= limit)

    def at_least(self, text: str, value: float | None, limit: float, unit: str, why: str) -> None:
        self._add(f"{text} ≥ {limit:g}{unit}", value, unit, why, met=value is not None and value >= limit)

    def quantile_at_most(self, text: str, samples: Samples, q: float, limit_ms: float) -> None:
        self.at_most(f"{text}: {_name(q)}", samples.quantile_ms(q), limit_ms, " ms", of_quantile(samples, q))

    def worst_at_most(self, text: str, samples: Samples, limit_ms: float) -> None:
        self.at_most(f"{text}: worst", samples.worst_ms, limit_ms, " ms", of_quantile(samples, 1.0))

    def ratio_at_most(self, text: str, above: Samples, below: Samples, q: float, limit: float) -> None:
        """Of the quantiles of ``above`` and ``below``."""
        why = f"*above*: {of_quantile(above, q)}. *Below*: {of_quantile(below, q)}"
        self.at_most(text, _over(above, below, q), limit, "×", why)

    def ratio_at_least(self, text: str, above: Samples, below: Samples, q: float, least: float) -> None:
        why = f"*above*: {of_quantile(above, q)}. *Below*: {of_quantile(below, q)}"
        self.at_least(text, _over(above, below, q), least, "×", why)

    def reported(self, text: str, samples: Samples, q: float) -> None:
        """A figure without a limit; its reason is told like that of a miss."""
        value = samples.quantile_ms(q)
        self._rows.append((f"{text}: {_name(q)}", _figure(value, " ms"), "reported"))
        if value is not None:
            self._missed.append(f"* {text}: {_name(q)} (no limit): {of_quantile(samples, q)}.")

    def _add(self, text: str, value: float | None, unit: str, why: str, *, met: bool) -> None:
        verdict = "too few samples" if value is None else "met" if met else "**missed**"
        self._rows.append((text, _figure(value, unit), verdict))
        if value is not None and not met:
            self._missed.append(f"* {text}, {_figure(value, unit)}: {why}.")


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.4g}{unit}"


def _name(q: float) -> str:
    return f"p{100 * q:.0f}"


def _over(above: Samples, below: Samples, q: float) -> float | None:
    high, low = above.quantile_ms(q), below.quantile_ms(q)
    return None if high is None or low is None or low == 0 else high / low
