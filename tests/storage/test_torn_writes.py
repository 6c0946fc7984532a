"""Power lost at any operation: what was acknowledged is there, and nothing is half there."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from eddyline.testing.torn_files import Faults, PowerLoss, TornFiles
from tests.storage.log_model import Contents, Database

SEEDS = int(os.environ.get("EDDYLINE_CRASHES", "5000"))
_SHARES = 10


def _work(database: Database, rng: random.Random, counts: Counter[str], steps: int) -> None:
    """Commits, several at a time, some not waited for, and compaction between them."""
    for _ in range(steps):
        match rng.choice(("commit", "commit", "group", "early", "compact", "flush")):
            case "commit":
                database.settle([database.queue(*database.random_commit(rng))])
                counts["commits"] += 1
            case "group":
                database.settle([database.queue(*database.random_commit(rng)) for _ in range(rng.randint(2, 4))])
                counts["groups"] += 1
            case "early":
                commit = database.queue(*database.random_commit(rng), wait=False)
                counts["early"] += commit.early
            case "compact":
                for _ in range(rng.choice((1, 3, 30))):
                    database.compaction.step()
            case "flush":
                database.group.flush()
                database.settle([])


def _check_crash(seed: int, counts: Counter[str]) -> None:
    rng = random.Random(seed)
    files = TornFiles(rng)
    allowed: list[Contents] = [Contents()]
    for _ in range(rng.randint(1, 3)):
        files.faults = Faults(lose_power_at=rng.randrange(rng.choice((12, 60, 250))))
        database = None
        try:
            database = Database(files)
            assert database.acknowledged in allowed, f"seed {seed}: {database.acknowledged} is none of {allowed}"
            _work(database, rng, counts, rng.randint(1, 25))
        except PowerLoss:
            counts["in an operation"] += 1
        if database is not None:
            counts["tables written"] += database.compaction.tables_written
            allowed = database.possible
        files = files.crash(rng) if rng.random() < 0.8 else files.kill()
        files.faults = Faults()
        if rng.random() < 0.5:
            opened = Database(files)
            assert opened.acknowledged in allowed, f"seed {seed}: {opened.acknowledged} is none of {allowed}"
            allowed = [opened.acknowledged]
            files = files.kill()
    found = Database(files)
    assert found.acknowledged in allowed, f"seed {seed}: {found.acknowledged} is none of {allowed}"


@pytest.mark.parametrize("share", range(_SHARES))
def test_a_loss_of_power_loses_nothing_acknowledged_and_keeps_nothing_by_halves(share: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(share * SEEDS // _SHARES, (share + 1) * SEEDS // _SHARES):
        _check_crash(seed, counts)
    # That the crashes met all of it.
    for what in ("commits", "groups", "early", "tables written", "in an operation"):
        assert counts[what] >= SEEDS // _SHARES // 4, counts


def test_without_syncs_a_loss_of_power_leaves_some_earlier_state() -> None:
    """``fsync`` off: how much is lost is the system's, but what is left is a state that there was."""
    lost = kept = 0
    for seed in range(SEEDS // 10):
        rng = random.Random(seed)
        files = TornFiles(rng, Faults(lose_power_at=rng.randrange(60)))
        database = None
        try:
            database = Database(files, to_disk=False)
            _work(database, rng, Counter(), 25)
        except PowerLoss:
            files.faults = Faults()
        history = [Contents()] if database is None else database.history
        found = Database(files.crash(rng)).acknowledged
        assert found in history, f"seed {seed}: {found} never was"
        lost += found != history[-1]
        kept += found == history[-1]
    assert min(lost, kept) > SEEDS // 100
