"""How long a steady view takes to show a write while other views hydrate."""

from __future__ import annotations

import time

import eddyline
from bench.isolation.load import Body, Stream, beside, run_streams
from bench.isolation.reads import WrongAnswerError, churning
from bench.isolation.samples import Samples

__all__ = ["measure_lag"]

_GROUPS = 10
_PER_S = 50.0


def measure_lag(db: eddyline.Connection, for_s: float) -> tuple[Samples, Samples]:
    """From the intended write of one row to the strict read that shows it in the view: idle, and during hydration.

    That is more than the view's lag alone, by the write and the read themselves.
    """
    db.executescript(
        "CREATE TABLE ticks (g int, n bigint);"
        "CREATE VIEW counted AS SELECT g, count(*) AS n FROM ticks GROUP BY g;"
        "CREATE INDEX counted_g ON counted (g)"
    )
    db.wait_hydrated("counted_g")
    written = [0] * _GROUPS

    def body(session: eddyline.Connection) -> Body:
        def write_and_see(n: int) -> None:
            group = n % _GROUPS
            session.execute("INSERT INTO ticks VALUES ($1, $2)", (group, n))
            written[group] += 1
            seen = session.execute("SELECT n FROM counted WHERE g = $1", (group,)).fetchall()
            if seen != [(written[group],)]:
                raise WrongAnswerError(f"{seen} of {written[group]} writes are seen")

        return write_and_see

    def run(seconds: float) -> Samples:
        # One client: each read's answer is known only where nobody else writes.
        return run_streams(db, [Stream("writes and reads", _PER_S, body, clients=1)], seconds)["writes and reads"]

    run(1.0)
    idle = run(for_s)
    with beside(churning(db, [])):
        time.sleep(0.2)
        hydrating = run(for_s)
    return idle, hydrating
