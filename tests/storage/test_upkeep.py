"""The background thread of a directory: what it does, and that it ends."""

from __future__ import annotations

import errno
import logging
import random
import threading

import pytest

from eddyline.storage import upkeep as upkeep_module
from eddyline.storage.log import Changes
from eddyline.storage.upkeep import Upkeep
from eddyline.testing.torn_files import Faults, TornFiles
from tests.storage.log_model import TYPES, Database


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr(upkeep_module, "DELAY_S", 0.001)
    monkeypatch.setattr(upkeep_module, "_AFTER_FAILURE_S", 0.001)
    database = Database(TornFiles(random.Random(0)))
    database.settle([database.queue({}, Changes(created={"t": TYPES}))])
    return database


class Clearing(threading.Event):
    """Does something in the moment before it is cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.before = threading.Event()
        self.go_on = threading.Event()

    def clear(self) -> None:
        self.before.set()
        assert self.go_on.wait(60)
        super().clear()


def test_it_ends_also_when_that_is_said_in_the_moment_in_which_it_forgets_what_it_was_woken_for(
    database: Database,
) -> None:
    upkeep = Upkeep(database.group, database.compaction)
    wanted = Clearing()
    upkeep._wanted = wanted
    upkeep.start()
    assert wanted.before.wait(60)
    closing = threading.Thread(target=upkeep.close)
    closing.start()
    assert upkeep._ending.wait(60)
    while not wanted.is_set():  # set at the start already, and again by ``close``
        continue
    wanted.go_on.set()
    closing.join(60)
    assert not closing.is_alive()


def test_it_writes_what_nobody_waits_for_again_after_a_failure(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = Upkeep(database.group, database.compaction)
    upkeep.start()
    failures = threading.Semaphore(0)

    def full(operation: str, number: int) -> int | None:
        if operation != "write":
            return None
        failures.release()
        return errno.ENOSPC

    database.files.faults = Faults(fail=full)  # type: ignore[attr-defined]  # they are TornFiles
    with caplog.at_level(logging.WARNING, "eddyline.storage"):
        assert database.queue({"t": {(1, "a"): 1}}, Changes(), wait=False).early
        upkeep.wake()
        for _ in range(3):
            assert failures.acquire(timeout=60)
    assert sum("could not be tidied up" in record.message for record in caplog.records) == 1, "said once, not each time"
    database.files.faults = Faults()  # type: ignore[attr-defined]  # likewise
    while database.group.behind:
        continue
    upkeep.close()
    assert Database(database.files.crash(random.Random(1))).acknowledged == database.visible  # type: ignore[attr-defined]  # likewise


def test_a_fault_of_ours_does_not_end_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    step = database.compaction.step
    faults = ["once"]

    def broken() -> bool:
        if faults:
            raise RuntimeError(faults.pop())
        return step()

    monkeypatch.setattr(database.compaction, "step", broken)
    upkeep = Upkeep(database.group, database.compaction)
    with caplog.at_level(logging.WARNING, "eddyline.storage"):
        upkeep.start()
        while faults:
            continue
        assert database.queue({"t": {(1, "a"): 1}}, Changes(), wait=False).early
        upkeep.wake()
        while database.group.behind:
            continue
        upkeep.close()
    assert any(record.exc_info for record in caplog.records), "it says where it was"
