"""The isolation bench over the wire: the arms, the streams and the method of ``bench.isolation``, asked by psycopg.

The clients are threads of this process, which has an interpreter of its own: what they wait for each other is theirs,
and the same in every arm.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from bench.isolation.arms import BIG_ROWS, HOT_ROWS, SOLO, TWO, UNSLICED
from bench.isolation.hydration import HydrationFigures, measure_hydration
from bench.isolation.load import Stream, Window
from bench.isolation.reads import SERIALIZABLE, STRICT, introspection, lookups
from bench.server.peers import Peer, eddyline_server

__all__ = ["INTROSPECTION", "LOOKUPS", "LOOKUPS_SERIALIZABLE", "WireFigures", "measure_wire_isolation"]

LOOKUPS: Final = "strict lookups"
LOOKUPS_SERIALIZABLE: Final = "serializable lookups"
INTROSPECTION: Final = "introspection"
_PER_S: Final = 50.0
_QUIET: Final = 0.05
_QUIET_S: Final = 0.3
_SETTLING_S: Final = 15.0
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

#: by arm
WireFigures = Mapping[str, HydrationFigures]


class _Session:
    """See ``bench.isolation.sessions``."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def execute(self, text: str, /) -> Any:
        return self._connection.execute(text)

    def cursor(self) -> Any:
        """Whose parameters are ``$1``, and which prepares what it is asked again."""
        return psycopg.RawCursor(self._connection)

    def wait_hydrated(self, name: str, /) -> None:
        """A strict read waits for the view."""
        self._connection.execute(f"SELECT count(*) FROM {name}").fetchall()


class _Served:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    @contextmanager
    def session(self) -> Iterator[_Session]:
        with self._peer.connect() as connection:
            yield _Session(connection)


def measure_wire_isolation(*, quick: bool) -> WireFigures:
    """All three arms, with one rate of reads for all."""
    window = Window(3.0, stretch=False) if quick else Window(22.0, stretch=True)
    rates: dict[str, float] = {}
    return {name: _measure(name, window, rates) for name in (TWO, UNSLICED, SOLO)}


def _measure(name: str, window: Window, rates: dict[str, float]) -> HydrationFigures:
    with eddyline_server(None, interactive=name == TWO, unsliced=name == UNSLICED) as peer:
        with peer.connect() as connection:
            # No primary key: storage itself finds rows by that one, and no runtime would have a part in it.
            connection.execute("CREATE TABLE hot (k bigint, v bigint)")
            connection.execute(f"INSERT INTO hot SELECT i, i FROM generate_series(0, {HOT_ROWS - 1}) g(i)")
            connection.execute("CREATE INDEX hot_k ON hot (k)")
            connection.execute("CREATE TABLE big (k bigint, g bigint, v bigint)")
            connection.execute(f"INSERT INTO big SELECT i, i % 1000, i % 997 FROM generate_series(1, {BIG_ROWS}) g(i)")
            connection.execute("CREATE INDEX big_k ON big (k)")
            connection.execute("SELECT v FROM big WHERE k = 1").fetchall()  # waits for its index
        inside = Stream(INTROSPECTION, _PER_S, introspection)
        return measure_hydration(
            _Served(peer), window, rates, asked=_streams(), inside=inside, settle=_settled(peer.process)
        )


def _streams() -> Sequence[Stream]:
    return [
        Stream(LOOKUPS, _PER_S, functools.partial(lookups, STRICT)),
        Stream(LOOKUPS_SERIALIZABLE, _PER_S, functools.partial(lookups, SERIALIZABLE)),
    ]


def _settled(process: int) -> Callable[[], None]:
    """As ``bench.isolation.load.settle``, of another process."""

    def settle() -> None:
        end = time.perf_counter() + _SETTLING_S
        while time.perf_counter() < end:
            used, begun = _cpu_s(process), time.perf_counter()
            time.sleep(_QUIET_S)
            if _cpu_s(process) - used < _QUIET * (time.perf_counter() - begun):
                return

    return settle


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
