"""How long a steady view takes to show a write while other views hydrate."""

from __future__ import annotations

import eddyline
from bench.isolation.load import Body, Stream, beside, run_streams
from bench.isolation.reads import WrongAnswerError, churning
from bench.isolation.samples import Samples

__all__ = ["measure_lag"]

_VIEWS = 4
_PER_S = 10.0


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
            seen = session.execute(f"SELECT n FROM {view} WHERE g = 1").fetchall()
            if seen != [(written[0],)]:
                raise WrongAnswerError(f"{seen} of {written} writes are seen")

        return write_and_see

    return Stream(view, _PER_S, body, clients=1)


def measure_lag(db: eddyline.Connection, for_s: float) -> tuple[Samples, Samples]:
    """From the intended write of one row to the strict read that shows it in the view: idle, and during hydration.

    That is more than the view's lag alone, by the write and the read themselves.
    """
    steady = [_steady(db, n) for n in range(_VIEWS)]

    def run(seconds: float) -> Samples:
        found = Samples()
        for samples in run_streams(db, steady, seconds).values():
            found = found.merged(samples)
        return found

    run(1.0)
    idle = run(for_s)
    with beside(churning(db, [])):
        hydrating = run(for_s)
    return idle, hydrating
