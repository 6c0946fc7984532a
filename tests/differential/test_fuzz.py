"""Random schemas, changes and queries: every view after every step equals PostgreSQL's, and DuckDB's where it can.

Every other seed's database has one runtime.  The counts are those of ``SEEDS`` seeds; they hold whatever process ran
which part, since each part leaves its tally in a directory that all of them share, and the last one adds them up.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import eddyline
from eddyline.testing.fuzz.constructs import CONSTRUCTS
from eddyline.testing.fuzz.oracles import prepare_postgres
from eddyline.testing.fuzz.run import Mismatch, Tally, run_seed
from eddyline.testing.postgres import PostgresServer

#: the seeds say which layout they are of
pytestmark = pytest.mark.both_layouts

SEEDS, STEPS, CHUNK = 300, 20, 10
LONG_SEEDS = 1000


@pytest.fixture(scope="module")
def oracle(postgres: PostgresServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with postgres.connect() as connection:
        prepare_postgres(connection)
        yield connection


@pytest.fixture(scope="session")
def tallies(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """One directory for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    directory = shared / "fuzz-tallies"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_view_equals_postgresql_after_every_step(
    first: int, oracle: psycopg.Connection[tuple[object, ...]], tallies: Path
) -> None:
    tally = Tally()
    for seed in range(first, first + CHUNK):
        run_seed(seed, STEPS, oracle, tally)
    part = tallies / f"part-{first}"
    part.with_suffix(".new").write_bytes(pickle.dumps(tally))
    part.with_suffix(".new").rename(part)
    parts = sorted(tallies.glob("part-*[0-9]"))
    if len(parts) == SEEDS // CHUNK:
        _check_totals([pickle.loads(p.read_bytes()) for p in parts])


def _check_totals(tallies: list[Tally]) -> None:
    total = Tally()
    for tally in tallies:
        total += tally
    assert set(total.used) == CONSTRUCTS
    rare = {construct: count for construct, count in total.used.items() if count < 20}
    assert not rare, f"constructs that occur fewer than 20 times in {SEEDS} seeds: {rare}"
    abandoned = total.checks["abandoned"]
    assert abandoned <= 0.03 * SEEDS, f"{abandoned} of {SEEDS} seeds were too much for PostgreSQL"
    rejected = sum(total.rejected.values())
    assert rejected <= 0.05 * total.queries, f"{rejected} of {total.queries} queries rejected: {total.rejected}"
    assert not total.duck_differences, "\n".join(total.duck_differences)
    least = {
        "view": SEEDS * STEPS * 2, "ordered": 300, "lookup": 300, "prepared": 200, "parameter": 200, "as_of": 300,
        "in_transaction": 500, "repeated_read": 500, "subscription": SEEDS - abandoned, "returning": 500,
        "refused_alike": 100, "failed_alike": 500, "duckdb_equal": 1000,
    }  # fmt: skip
    missed = {kind: total.checks[kind] for kind, count in least.items() if total.checks[kind] < count}
    assert not missed, f"compared too seldom: {missed}"


def test_a_missing_row_is_noticed(
    oracle: psycopg.Connection[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = eddyline.Cursor.fetchall
    monkeypatch.setattr(eddyline.Cursor, "fetchall", lambda cursor: whole(cursor)[1:])
    with pytest.raises(Mismatch, match="missing"):
        run_seed(0, STEPS, oracle, Tally())


@pytest.mark.parametrize("first", range(10_000, 10_020, CHUNK))
def test_rows_sharded_over_workers_give_the_same_answers(
    first: int, oracle: psycopg.Connection[tuple[object, ...]]
) -> None:
    tally = Tally()
    for seed in range(first, first + CHUNK):
        run_seed(seed, STEPS, oracle, tally, workers=2)


@pytest.mark.long
@pytest.mark.parametrize("first", range(20_000, 20_000 + LONG_SEEDS, CHUNK))
def test_more_of_the_same(first: int, oracle: psycopg.Connection[tuple[object, ...]]) -> None:
    tally = Tally()
    for seed in range(first, first + CHUNK):
        run_seed(seed, STEPS, oracle, tally, workers=1 + seed // 2 % 2)
