"""Single-row commits, and COPY of many rows."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from bench.server.peers import Peer

__all__ = ["CopyFigures", "InsertFigures", "measure_commits", "measure_copy"]

_TURNS = 10
_PIECE = 256 << 10


@dataclass(frozen=True)
class InsertFigures:
    """Milliseconds of an INSERT of one row that commits by itself, prepared; ``ratio``: of the medians."""

    postgres_p50: float
    postgres_p99: float
    eddyline_p50: float
    eddyline_p99: float
    ratio: float


@dataclass(frozen=True)
class CopyFigures:
    """Rows a second, medians; ``ratio``: median of the rounds' own."""

    what: str
    rows: int
    postgres_per_s: float
    eddyline_per_s: float
    ratio: float


def measure_commits(postgres: Peer, eddyline: Peer, *, samples: int) -> InsertFigures:
    """In turns, so that a disk that is slow for a while is so for both."""
    taken: dict[str, list[float]] = {postgres.name: [], eddyline.name: []}
    with postgres.connect() as theirs, eddyline.connect() as ours:
        for connection in (theirs, ours):
            connection.execute("CREATE TABLE entries (id bigint PRIMARY KEY, val text)")
            for i in range(50):
                connection.execute("INSERT INTO entries VALUES (%s, %s)", (-i - 1, "warm"), prepare=True)
        for turn in range(_TURNS):
            for name, connection in ((postgres.name, theirs), (eddyline.name, ours)):
                for i in range(samples // _TURNS):
                    begun = time.perf_counter()
                    connection.execute("INSERT INTO entries VALUES (%s, %s)", (turn * samples + i, "x"), prepare=True)
                    taken[name].append((time.perf_counter() - begun) * 1e3)
    p50 = {name: float(np.median(t)) for name, t in taken.items()}
    p99 = {name: float(np.quantile(t, 0.99)) for name, t in taken.items()}
    ratio = p50[eddyline.name] / p50[postgres.name]
    return InsertFigures(p50[postgres.name], p99[postgres.name], p50[eddyline.name], p99[eddyline.name], ratio)


def measure_copy(postgres: Peer, eddyline: Peer, *, rows: int, rounds: int) -> list[CopyFigures]:
    """COPY FROM STDIN of the same bytes, in text and in CSV, into a table without and one with a primary key."""
    figures = []
    for key in ("", " PRIMARY KEY"):
        for form, separator in (("text", "\t"), ("csv", ",")):
            data = "".join(
                f"{i}{separator}{i % 1000}{separator}{i * 7 % 1000 / 8}{separator}name of {i}\n" for i in range(rows)
            ).encode()
            pairs = []
            for _ in range(rounds):
                pairs.append([_copied(peer, key, form, data, rows) for peer in (postgres, eddyline)])
            theirs, ours = zip(*pairs, strict=True)
            ratio = statistics.median(mine / other for other, mine in pairs)
            what = form + (", primary key" if key else "")
            figures.append(CopyFigures(what, rows, statistics.median(theirs), statistics.median(ours), ratio))
    return figures


def _copied(peer: Peer, key: str, form: str, data: bytes, rows: int) -> float:
    """Rows a second, from the first byte to the commit."""
    with peer.connect() as connection:
        connection.execute(f"CREATE TABLE loaded (id bigint{key}, grp int, val double precision, name text)")
        begun = time.perf_counter()
        with connection.cursor() as cursor, cursor.copy(f"COPY loaded FROM STDIN (FORMAT {form})") as copy:
            for at in range(0, len(data), _PIECE):
                copy.write(data[at : at + _PIECE])
        took = time.perf_counter() - begun
        found = connection.execute("SELECT count(*), sum(id) FROM loaded").fetchone()
        if found is None or found[0] != rows or found[1] != rows * (rows - 1) // 2:
            raise AssertionError(f"{peer.name} has {found}")
        connection.execute("DROP TABLE loaded")
    return rows / took
