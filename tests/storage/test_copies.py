"""Copies of directories: interrupted, refused by the disk, and taken while the original changes."""

from __future__ import annotations

import errno
import random
from contextlib import nullcontext

import pytest

from eddyline.errors import DatabaseError
from eddyline.storage.backup import copy_database
from eddyline.testing.torn_files import Faults, PowerLoss, TornFiles
from tests.storage.log_model import Contents, Database


def changed(files: TornFiles, seed: int) -> Database:
    """With log files and rows files, still open."""
    rng = random.Random(seed)
    database = Database(files)
    for _ in range(40):
        database.settle([database.queue(*database.random_commit(rng))])
        database.compaction.step()
    assert any(name.endswith(".rows") for name in files.names())
    return database


def test_a_copy_has_what_was_acknowledged_and_stays_after_a_loss_of_power() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        database = changed(TornFiles(rng), seed)
        target = TornFiles(rng)
        size = copy_database(database.files, target)
        assert size > 0
        assert Database(target.crash(rng)).acknowledged == database.acknowledged


def test_a_copy_that_the_disk_refuses_leaves_nothing_and_can_be_made_again() -> None:
    refused = 0
    for n in range(60):
        database = changed(TornFiles(random.Random(n)), n % 5)
        target = TornFiles(random.Random(n))
        target.faults = Faults(fail=lambda operation, number, n=n: errno.ENOSPC if number == n else None)  # type: ignore[misc]  # n is bound here
        try:
            copy_database(database.files, target)
        except DatabaseError as error:
            assert error.sqlstate == "53100"
            assert target.names() == []
            refused += 1
            target.faults = Faults()
            copy_database(database.files, target)
        target.faults = Faults()
        assert Database(target).acknowledged == database.acknowledged
    assert refused > 5


def test_a_copy_in_whose_midst_power_is_lost_is_no_database_or_the_whole_one() -> None:
    whole = 0
    for n in range(40):
        rng = random.Random(n)
        database = changed(TornFiles(rng), n % 5)
        target = TornFiles(rng, Faults(lose_power_at=n))
        try:
            copy_database(database.files, target)
        except PowerLoss:
            target.faults = Faults()
        left = target.crash(rng)
        try:
            found = Database(left).acknowledged
        except DatabaseError as error:
            assert error.sqlstate in {"42809", "XX001"}
        else:
            assert found in (database.acknowledged, Contents())
            whole += found == database.acknowledged
    assert whole > 5


@pytest.mark.parametrize("within", [True, False], ids=["its own process", "another process"])
@pytest.mark.parametrize("seed", range(10))
def test_a_copy_of_what_changes_meanwhile_is_a_state_that_there_was(seed: int, within: bool) -> None:
    """Commits and compaction go on between any two operations of the copy; from another process it may have to begin
    again, for which it needs some luck."""
    rng = random.Random(seed)
    database = changed(TornFiles(rng), seed)
    before = len(database.history) - 1

    def meanwhile(operation: str, number: int) -> None:
        if rng.random() < (0.5 if within else 0.1):
            database.settle([database.queue(*database.random_commit(rng))])
        if within or rng.random() < 0.1:
            database.compaction.step()

    target = TornFiles(rng, Faults(fail=meanwhile))
    with database.group.keeping_files() if within else nullcontext():
        copy_database(database.files, target)
    target.faults = Faults()
    assert Database(target).acknowledged in database.history[before:]
