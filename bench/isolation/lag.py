"""How long a steady view takes to show a write while other views hydrate."""

from __future__ import annotations

from dataclasses import dataclass

import eddyline
from bench.isolation.anatomy import stage
from bench.isolation.load import Body, Stream, Window, beside, measured_rates, run_streams, settle
from bench.isolation.reads import WrongAnswerError, churning
from bench.isolation.samples import Samples

__all__ = ["LagFigures", "measure_lag"]

_VIEWS = 4
_CAPACITY_S = 2.0


@dataclass
class LagFigures:
    """``per_s``: writes of all clients together, at ``LOAD`` of what they can do beside the hydration."""

    idle: Samples
    hydrating: Samples
    per_s: float


def _steady(db: eddyline.Connection, number: int) -> Stream:
    """Writes of one row to a table of its own, each followed by a strict read of a view until that shows it.

    One client: what a read has to show is known only where nobody else writes.
    """
    table, view = f"ticks_{number}", f"counted_{number}"
    db.executescript(
        f"CREATE TABLE {table} (g int, n bigint);"
        f"CREATE VIEW {view} AS SELECT g, count(*) AS n FROM {table} GROUP BY g;"
        f"CREATE INDEX {view}_g ON {view} (g)"
    )
    db.wait_hydrated(f"{view}_g")
    written = [0]

    def body(session: eddyline.Connection) -> Body:
        def write_and_see(n: int) -> None:
            session.execute(f"INSERT INTO {table} VALUES (1, $1)", (n,))
            written[0] += 1
            stage("write")
            seen = session.execute(f"SELECT n FROM {view} WHERE g = 1").fetchall()
            if seen != [(written[0],)]:
                raise WrongAnswerError(f"{seen} of {written} writes are seen")

        return write_and_see

    return Stream(view, 0.0, body, clients=1)


def measure_lag(db: eddyline.Connection, window: Window, rates: dict[str, float]) -> LagFigures:
    """From the intended write of one row to the strict read that shows it in the view: idle, and during hydration.

    That is more than the view's lag alone, by the write and the read themselves.  ``rates``: those of another arm, to
    be used here as well; if there are none yet, this arm's are noted there, and its window is long enough for a p99.
    """
    steady = [_steady(db, n) for n in range(_VIEWS)]
    own = not rates

    def run(seconds: float) -> Samples:
        found = Samples()
        for samples in run_streams(db, steady, seconds).values():
            found = found.merged(samples)
        return found

    with beside(churning(db, [])):
        if own:
            rates.update(measured_rates(db, steady, _CAPACITY_S))
        for stream in steady:
            stream.per_s = rates[stream.name]
        per_s = sum(rates.values())
        hydrating = run(window.of(per_s) if own else window.for_s)
    settle()
    return LagFigures(run(window.for_s), hydrating, per_s)
