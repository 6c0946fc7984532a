"""The reads that are measured, and the work that they are to be isolated from."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable

from bench.isolation.arms import HOT_ROWS, SENT
from bench.isolation.load import Body, Stream
from bench.isolation.sessions import Database, Session

__all__ = [
    "HERE_STRICT",
    "INTROSPECTION",
    "RANGES",
    "SENT_SERIALIZABLE",
    "SENT_STRICT",
    "SERIALIZABLE",
    "STRICT",
    "churning",
    "introspection",
    "looking_inside",
    "lookups",
    "streams",
]

STRICT = "strict serializable"
SERIALIZABLE = "serializable"
SENT_STRICT = f"{SENT}, strict lookups"
SENT_SERIALIZABLE = f"{SENT}, serializable lookups"
#: the embedded database's own way: on the thread that asks, where the index has sealed the time
HERE_STRICT = "on the caller's thread, strict lookups"
RANGES = f"{SENT}, range counts"
INTROSPECTION = f"{SENT}, introspection"

_LOOKUPS_PER_S = 50.0
_RANGES_PER_S = 12.0
_RANGE_ROWS = 2_000


class WrongAnswerError(AssertionError):
    """What is measured must also be right."""


def lookups(isolation: str, session: Session) -> Body:
    session.execute(f"SET transaction_isolation = '{isolation}'")
    cursor = session.cursor()

    def look_up(n: int) -> None:
        key = n * 7919 % HOT_ROWS
        if cursor.execute("SELECT v FROM hot WHERE k = $1", (key,)).fetchall() != [(key,)]:
            raise WrongAnswerError("a lookup")

    return look_up


def ranges(session: Session) -> Body:
    session.execute(f"SET transaction_isolation = '{SERIALIZABLE}'")
    cursor = session.cursor()

    def count(n: int) -> None:
        low = n * 7919 % (HOT_ROWS - _RANGE_ROWS)
        found = cursor.execute("SELECT count(*) FROM hot WHERE k >= $1 AND k < $2", (low, low + _RANGE_ROWS)).fetchall()
        if found != [(_RANGE_ROWS,)]:
            raise WrongAnswerError("a range count")

    return count


def introspection(session: Session) -> Body:
    cursor = session.cursor()

    def look(n: int) -> None:
        if not cursor.execute("SELECT * FROM mz_introspection.mz_dataflows").fetchall():
            raise WrongAnswerError("no dataflow is running")

    return look


def streams() -> list[Stream]:
    """Fresh ones, at the rates of a quiet day."""
    return [
        Stream(SENT_STRICT, _LOOKUPS_PER_S, functools.partial(lookups, STRICT)),
        Stream(SENT_SERIALIZABLE, _LOOKUPS_PER_S, functools.partial(lookups, SERIALIZABLE)),
        Stream(HERE_STRICT, _LOOKUPS_PER_S, functools.partial(lookups, STRICT)),
        Stream(RANGES, _RANGES_PER_S, ranges),
    ]


def looking_inside() -> Stream:
    """Reads of what runs on the replica; measured by itself, since a quantile wants more of them than anybody sends."""
    return Stream(INTROSPECTION, _LOOKUPS_PER_S, introspection)


def churning(db: Database, cycles: list[float], loops: int = 2) -> list[Callable[[threading.Event], None]]:
    """Closed loops that create a view over the big table, wait until it is hydrated, and drop it; seconds per cycle."""

    def churn(loop: int, stop: threading.Event) -> None:
        with db.session() as session:
            n = 0
            while not stop.is_set():
                start, name = time.perf_counter(), f"view_{loop}_{n}"
                session.execute(
                    f"CREATE MATERIALIZED VIEW {name} AS SELECT g, count(*) AS c, sum(v) AS s FROM big GROUP BY g"
                )
                session.execute(f"CREATE INDEX {name}_g ON {name} (g)")
                session.wait_hydrated(name)
                session.execute(f"DROP MATERIALIZED VIEW {name}")
                cycles.append(time.perf_counter() - start)
                n += 1

    return [functools.partial(churn, n) for n in range(loops)]
