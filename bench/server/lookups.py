"""Select-only point lookups by pgbench, in each of its protocol modes."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.server.peers import Peer

__all__ = ["CLIENTS", "MODES", "LookupFigures", "fill", "measure_served_lookups"]

MODES = ("prepared", "extended", "simple")
CLIENTS = (1, 32)
ROWS = 100_000
_SCRIPT = f"\\set id random(1, {ROWS})\nSELECT val FROM facts WHERE id = :id;\n"


@dataclass(frozen=True)
class LookupFigures:
    """Lookups a second, medians over the rounds; ``ratio``: the median of the rounds' own."""

    mode: str
    clients: int
    postgres_per_s: float
    eddyline_per_s: float
    ratio: float


def fill(peer: Peer) -> None:
    with peer.connect() as connection:
        connection.execute("CREATE TABLE facts (id bigint PRIMARY KEY, val bigint)")
        connection.execute(f"INSERT INTO facts SELECT i, i * 3 FROM generate_series(1, {ROWS}) AS g(i)")
        if connection.execute("SELECT val FROM facts WHERE id = 77").fetchall() != [(231,)]:
            raise AssertionError(f"a wrong answer of {peer.name}")


def measure_served_lookups(
    postgres: Peer, eddyline: Peer, *, rounds: int, for_s: int, modes: Sequence[str] = MODES
) -> list[LookupFigures]:
    """The servers in turns, ``rounds`` times ``for_s`` seconds each.  Both have been filled."""
    figures = []
    with tempfile.NamedTemporaryFile("w", suffix=".sql", prefix="lookup-") as script:
        script.write(_SCRIPT)
        script.flush()
        for mode in modes:
            for clients in CLIENTS:
                pairs = []
                for _ in range(rounds):
                    pairs.append([_run(peer, Path(script.name), mode, clients, for_s) for peer in (postgres, eddyline)])
                theirs, ours = zip(*pairs, strict=True)
                ratio = statistics.median(mine / other for other, mine in pairs)
                figures.append(LookupFigures(mode, clients, statistics.median(theirs), statistics.median(ours), ratio))
    return figures


def _run(peer: Peer, script: Path, mode: str, clients: int, for_s: int) -> float:
    """Transactions a second."""
    pgbench = shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench"
    done = subprocess.run(
        [pgbench, "-n", "-M", mode, "-f", script, "-c", str(clients), "-j", "1", "-T", str(for_s),
         "-h", "127.0.0.1", "-p", str(peer.port), "-U", peer.user, "postgres"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if done.returncode or found is None:
        raise RuntimeError(f"pgbench: {done.stdout}{done.stderr}")
    return float(found[1])
