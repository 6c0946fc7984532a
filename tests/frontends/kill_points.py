"""Points of a program's next write at which it is killed, by itself and at once, as by ``kill -9``."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, NoReturn
from unittest.mock import patch

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.controller.remote import ReplicaConnection, _Process
from eddyline.protocol.storage_messages import StorageUpdate, TimesClosed, Updates
from eddyline.repr.batch import Batch
from eddyline.storage.log import Changes, DurableLog, _Group
from eddyline.storage.records import PART, RECORD
from eddyline.storage.store import PreparedCommit

__all__ = ["KILL_POINTS", "kill_at"]

WAIT_SECONDS = 60.0


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it is dead")


def _replace(owner: object, name: str, by: Callable[..., object]) -> None:
    patch.object(owner, name, by).start()


def _before_the_log(engine: Engine) -> None:
    with _log(engine) as log:
        write = log.write_commits

    def dies(commits: Iterable[tuple[int | None, Mapping[str, Batch], Changes]]) -> None:
        found = list(commits)
        if any(writes for _, writes, _ in found):
            _die()
        write(found)

    _replace(log, "write_commits", dies)


def _half_written(engine: Engine) -> None:
    """The rows, of both tables, are in the file, and what makes them a commit is not."""
    add = _Group.add
    parts: set[_Group] = set()

    def dies(group: _Group, kind: int, parts_: Sequence[bytes | memoryview], synced: int) -> int:
        if kind == PART:
            parts.add(group)
        if kind == RECORD and group in parts:
            group.flush()
            _die()
        return add(group, kind, parts_, synced)

    _replace(_Group, "add", dies)


def _written_not_synced(engine: Engine) -> None:
    with _log(engine) as log:
        sync = log.sync

    def dies(*, to_disk: bool = True) -> None:
        if log._unsafe_spans:
            _die()
        sync(to_disk=to_disk)

    _replace(log, "sync", dies)


def _safe_not_shown(engine: Engine) -> None:
    publish = engine.store.publish

    def dies(prepared: PreparedCommit) -> None:
        if prepared.parts:
            _die()
        publish(prepared)

    _replace(engine.store, "publish", dies)


def _shown_not_told(engine: Engine) -> None:
    def dies(_process: _Process, update: StorageUpdate) -> bool:
        if _has_rows(update):
            _die()
        return True

    _at_each_process(engine, dies)


def _one_table_told(engine: Engine) -> None:
    """Of the two of a transaction, to one process or both."""
    told: dict[_Process, set[str]] = {}

    def dies(process: _Process, update: StorageUpdate) -> bool:
        if _has_rows(update):
            assert isinstance(update, Updates)
            table = process._feed._followed[update.mirror].reader._collection.id
            those = told.setdefault(process, set())
            if those and table not in those:
                process.storage.flush(WAIT_SECONDS)
                _die()
            those.add(table)
        return True

    _at_each_process(engine, dies)


def _one_process_told(engine: Engine) -> None:
    """All of it, and the others, of the same replica or another one, nothing."""
    processes = _processes(engine)
    first, told = processes[0], False

    def dies(process: _Process, update: StorageUpdate) -> bool:
        nonlocal told
        if process is not first:
            if _has_rows(update):
                threading.Event().wait()
            return True
        told |= _has_rows(update)
        if told and isinstance(update, TimesClosed):
            process.storage.send(update)
            process.storage.flush(WAIT_SECONDS)
            _die()
        return True

    _at_each_process(engine, dies)


def _log(engine: Engine) -> AbstractContextManager[DurableLog]:
    assert engine.durability is not None
    return engine.durability.group.exclusive()


def _has_rows(update: StorageUpdate) -> bool:
    return isinstance(update, Updates) and update.rows is not None


def _processes(engine: Engine) -> list[_Process]:
    clients = [r.client for cluster in engine.clusters.values() for r in cluster.replicas.values()]
    return [process for client in clients if isinstance(client, ReplicaConnection) for process in client._processes]


def _at_each_process(engine: Engine, look: Callable[[_Process, StorageUpdate], bool]) -> None:
    """Has ``look`` called with what is told a process, before it is; it says whether that is to be sent."""

    def send_by(process: _Process) -> Callable[[StorageUpdate], None]:
        def send(update: StorageUpdate) -> None:
            if look(process, update):
                process.storage.send(update)

        return send

    for process in _processes(engine):
        _replace(process._feed, "_send", send_by(process))


#: by name; and whether the write is there afterwards
KILL_POINTS: Final[dict[str, tuple[Callable[[Engine], None], bool]]] = {
    "before_the_log": (_before_the_log, False),
    "half_written": (_half_written, False),
    "written_not_synced": (_written_not_synced, True),
    "safe_not_shown": (_safe_not_shown, True),
    "shown_not_told": (_shown_not_told, True),
    "one_table_told": (_one_table_told, True),
    "one_process_told": (_one_process_told, True),
}


def kill_at(connection: eddyline.Connection, point: str) -> None:
    """Has the next write of two tables kill the program at ``point``."""
    KILL_POINTS[point][0](connection._engine)
