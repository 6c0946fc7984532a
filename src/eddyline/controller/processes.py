"""The processes of one replica: spawned, watched, ended, and spawned again after one of them died.

They are children of this process, or of an earlier one that had the same directory and was killed: those are taken
over if they are of this release, were started as these would be, and have seen nothing but what the directory has.
They are asked before tables are restored, so that these are as what they lack is told from, and taken over afterwards.
A connection to them may come and go; they keep what they have built.  When one dies all of them are replaced: a replica
lives and dies whole.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eddyline.controller.home import Home
from eddyline.controller.log_pipes import make_log_pipe, relay_log
from eddyline.controller.remote import ReplicaConnection
from eddyline.controller.spawning import Child, Spawn, spawn_process
from eddyline.controller.survivors import Note, Survivor, note_of, read_note, remove_notes, write_note
from eddyline.errors import Error, make_error
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose, Seen, greet
from eddyline.protocol.messages import Response
from eddyline.protocol.sockets import connect_to
from eddyline.repr.time import Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["ReplicaProcesses", "ReplicaSpec", "process_arguments"]

_log = logging.getLogger("eddyline.controller")
#: compiling all kernels for the first time takes a minute or two
_START_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 10.0
#: how soon it is seen that a process has ended while others start
_LOOK_SECONDS: Final = 0.25
#: of the names of folders with sockets
_PREFIX: Final = "eddyline-"


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """What a replica is made of: ``workers`` in each of ``processes``, with a runtime for reads or without."""

    workers: int = 1
    processes: int = 1
    interactive: bool = True
    orphan_seconds: float = 60.0


def process_arguments(spec: ReplicaSpec, process: int, directory: Path, *, hash_seed: int) -> list[str]:
    """The arguments of ``eddyline clusterd`` for one process; its sockets are in ``directory``."""

    def layout(runtime: str) -> str:
        addresses = [str(directory / f"{runtime}{p}") for p in range(spec.processes)] if spec.processes > 1 else []
        return json.dumps({"workers": spec.workers, "processes": spec.processes, "addresses": addresses})

    arguments = [
        f"--listen={directory / f'control{process}'}",
        f"--process={process}",
        f"--hash-seed={hash_seed}",
        f"--orphan-seconds={spec.orphan_seconds:g}",
        f"--compute-timely-config={layout('compute')}",
    ]
    if spec.interactive:
        arguments.append(f"--interactive-compute-timely-config={layout('interactive')}")
    return arguments


class ReplicaProcesses:
    """``spec`` is asked each time processes are spawned: what it says then holds for as long as they live.

    ``home``: the database's directory, where what survives this program is noted; without, nothing is left behind.
    Once the directory is somebody else's the processes are, too: they are neither ended nor replaced, and what nobody
    takes over ends by itself.

    One thread calls, but for ``close``, which ends a start that is under way.
    """

    def __init__(
        self,
        spec: Callable[[], ReplicaSpec],
        store: TableStore,
        hasher: Hasher,
        *,
        home: Home | None = None,
        spawn: Spawn = spawn_process,
    ) -> None:
        self._spec = spec
        self._spawn_one = spawn
        self._store = store
        self._hasher = hasher
        self._home = home
        self._found = None if home is None else read_note(home.folder, home.replica)
        self._own_directory = self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        #: of processes that were left: what they have seen, until they are taken over
        self._seen_upto: Time | None = None
        self._lock = threading.Lock()
        self._children: list[Child] = []  # guarded by _lock, like the rest
        self._addresses: list[str] = []
        #: connections to processes that were left, which wait as long as these are open
        self._asking: list[Frames] = []
        self._closed = False
        self.starts = 0
        #: how often processes of an earlier program were taken over
        self.takeovers = 0

    @property
    def pids(self) -> list[int]:
        """Of the present processes, dead or alive, by ordinal."""
        with self._lock:
            return [child.pid for child in self._children]

    def look(self) -> Time | None:
        """The time up to which processes that an earlier program has left have all that the tables had.

        Before these are restored: they go on if storage, once ``connect`` is called, has later commits at their own
        times.  None if there are none, or they cannot go on: then they are ended.  Waits for an answer of each, and
        notes that they are this program's by now.  57P01 once closed; 55006 once the directory is lost.
        """
        found, self._found = self._found, None
        if found is None:
            return self._seen_upto
        self._check_held()
        with self._lock:
            if self._closed:
                raise make_error("57P01", "the database was closed")
            self._children = [Survivor(pid, start) for pid, start in found.processes]
            self._directory = Path(found.sockets)
            self._addresses = [str(self._directory / f"control{p}") for p in range(len(found.processes))]
        spec = self._spec()
        if self._fits(found, spec):
            try:
                self._seen_upto = self._going_on([self._ask(address) for address in self._addresses])
            except Error as error:
                self._must_replace(error)
        if self._seen_upto is None:
            self._end_survivors()
        else:
            self._note(spec)  # at once: this program may be killed, too, before it has taken them over
        return self._seen_upto

    def connect(self, listener: Callable[[Response], None]) -> ReplicaConnection:
        """A connection to the processes as they are; if one is dead, or cannot be reached, to new ones.

        Waits until they are up.  58000 if they do not come up, twice; 57P01 once closed; 55006 once the directory is
        lost.
        """
        self._check_held()
        upto, self._seen_upto = self.look(), None
        if upto is not None:
            replica = self._taken_over(upto, listener)
            if replica is not None:
                return replica
        if self._alive():
            try:
                return self._reach(listener)
            except Error as error:
                self._must_replace(error)
        try:
            return self._begun(listener)
        except Error as error:
            with self._lock:
                given_up = self._closed
            if given_up or error.sqlstate != "58000" or self._lost():
                raise
            # Who ends processes may have met them while they began: that is no reason to give the database up.
            _log.warning("the replica's processes are started once more: %s", error.message)
        return self._begun(listener)

    def _begun(self, listener: Callable[[Response], None]) -> ReplicaConnection:
        self._end_children()
        self._start()
        return self._reach(listener)

    @property
    def _epoch(self) -> int:
        return 0 if self._home is None else self._home.epoch

    def _reach(self, listener: Callable[[Response], None]) -> ReplicaConnection:
        return ReplicaConnection(self._addresses, self._store, self._hasher, listener, epoch=self._epoch)

    def _must_replace(self, error: Error) -> None:
        """Says why; raises ``error`` where the processes are somebody else's by now."""
        if self._lost():
            raise error
        _log.warning("the replica's processes cannot be reached and are replaced: %s", error.message)

    # -- processes of an earlier program ----------------------------------------------------------------------------

    def _ask(self, address: str) -> Seen | None:
        """What the process has seen of the tables; from here on it hears of no earlier program any more."""
        frames = Frames(connect_to(address))
        with self._lock:
            self._asking.append(frames)
        return greet(frames, Purpose.STORAGE, epoch=self._epoch).seen

    def _hang_up(self) -> None:
        with self._lock:
            asking, self._asking = self._asking, []
        for each in asking:
            each.close()

    def _going_on(self, seen: Sequence[Seen | None]) -> Time | None:
        """See ``Home.seen_upto``; says why where there is none."""
        assert self._home is not None, "it was noted there"
        upto = self._home.seen_upto(seen)
        if upto is None:
            _log.info("the replica's processes have seen something else than the directory has, and are replaced")
        return upto

    def _taken_over(self, upto: Time, listener: Callable[[Response], None]) -> ReplicaConnection | None:
        """A connection to those that ``look`` has found.  None if they do not go on after all: then they are ended."""
        try:
            self._relay_logs()
            replica = self._reach(listener)
        except Error as error:
            self._must_replace(error)
        else:
            self._hang_up()
            still = self._going_on(replica.seen)
            if still is not None and still >= upto:  # what nobody read may have been given up meanwhile
                shutil.rmtree(self._own_directory, ignore_errors=True)
                self._own_directory = self._directory
                self.takeovers += 1
                _log.info("the replica's processes (%s) go on", ", ".join(map(str, self.pids)))
                return replica
            replica.close()
        self._end_survivors()
        return None

    def _end_survivors(self) -> None:
        self._hang_up()
        self._end_children()
        sockets, self._directory = self._directory, self._own_directory
        if sockets.name.startswith(_PREFIX):
            shutil.rmtree(sockets, ignore_errors=True)

    def _fits(self, found: Note, spec: ReplicaSpec) -> bool:
        """Whether they are as they would be started, and their program was the last to open the directory before this.

        Another one in between, without processes, left no note; these may still be fed by a program that has lost the
        directory, and lack what was committed since.
        """
        assert self._home is not None, "it was noted there"
        wanted = self._arguments(spec) == [list(each) for each in found.arguments]
        return wanted and found.usable() and found.epoch == self._home.epoch_before

    # -- starting ---------------------------------------------------------------------------------------------------

    def _arguments(self, spec: ReplicaSpec) -> list[list[str]]:
        seed = int(self._hasher.seed)
        return [process_arguments(spec, p, self._directory, hash_seed=seed) for p in range(spec.processes)]

    def _note(self, spec: ReplicaSpec) -> None:
        if self._home is not None:
            seed, arguments = int(self._hasher.seed), self._arguments(spec)
            note = note_of(self._home.folder, self._home.epoch, seed, self._directory, self.pids, arguments)
            try:
                write_note(self._home.folder, note, self._home.replica)
            except OSError as error:  # a full disk; the replica serves this program all the same
                _log.warning(
                    "the replica's processes are not noted, and the next program will not find them: %s", error
                )

    def _relay_logs(self) -> None:
        """What processes of an earlier program have logged, and log from here on."""
        for process in range(len(self._addresses)):
            try:
                relay_log(process, self._log_path(process))
            except (OSError, RuntimeError) as error:
                _log.warning("what process %d of the replica logs is not shown: %s", process, error)

    def _log_path(self, process: int) -> Path:
        return self._directory / f"log{process}"

    def _lost(self) -> bool:
        """Whether the directory is somebody else's, and the processes with it."""
        return self._home is not None and not self._home.held()

    def _check_held(self) -> None:
        if self._lost():
            raise make_error(
                "55006",
                "the database was opened by somebody else since",
                hint="Close this database and open its directory again.",
            )

    def close(self) -> None:
        """Ends the processes.  Twice is harmless."""
        with self._lock:
            self._closed = True
        self._hang_up()
        if self._lost():
            if self._own_directory != self._directory:
                shutil.rmtree(self._own_directory, ignore_errors=True)
            return
        self._end_children()
        if self._home is not None and self._found is None:  # by a note that was not looked at the next one ends them
            try:
                remove_notes(self._home.folder, before=self._home.epoch + 1, replica=self._home.replica)
            except OSError as error:
                _log.warning("the note of the replica's processes, which have ended, cannot be removed: %s", error)
        for each in {self._directory, self._own_directory}:
            shutil.rmtree(each, ignore_errors=True)

    def _alive(self) -> bool:
        with self._lock:
            return bool(self._children) and all(child.poll() is None for child in self._children)

    def _start(self) -> None:
        self._check_held()
        spec = self._spec()
        ready: list[int] = []
        try:
            with self._lock:
                if self._closed:
                    raise make_error("57P01", "the database was closed")
                self.starts += 1
                self._addresses = [str(self._directory / f"control{p}") for p in range(spec.processes)]
                for process, arguments in enumerate(self._arguments(spec)):
                    ready.append(self._spawn(process, arguments))
            self._note(spec)
            self._wait_ready(ready)
        except BaseException:
            self._end_children()
            raise
        finally:
            for descriptor in ready:
                os.close(descriptor)

    def _wait_ready(self, ready: Sequence[int]) -> None:
        """Until each process has said that it listens; 58000 once one of them has ended, or time is up.

        One that has said so may end while others still wait for it: they are looked at all the time.
        """
        deadline = time.monotonic() + _START_SECONDS
        waiting = dict(enumerate(ready))
        while waiting:
            readable, _, _ = select.select(list(waiting.values()), [], [], _LOOK_SECONDS)
            for process, descriptor in list(waiting.items()):
                if descriptor in readable:
                    if not os.read(descriptor, 1):
                        raise _not_up(process)
                    del waiting[process]
            with self._lock:
                ended = [p for p, child in enumerate(self._children) if child.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise _not_up(min(ended, default=min(waiting, default=0)))

    def _spawn(self, process: int, arguments: list[str]) -> int:
        """A descriptor that becomes readable when the process listens, or dies.  Needs ``_lock``.

        58000 if the system has no descriptor, process or thread left for it; nothing stays open then.
        """
        try:
            reading, writing = os.pipe()
        except OSError as error:
            raise _unstarted(process, error) from error
        try:
            log = make_log_pipe(self._log_path(process))
            try:
                self._children.append(self._spawn_one(arguments, writing, log))
                relay_log(process, self._log_path(process))
            finally:
                os.close(log)
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
            os.close(reading)
            raise _unstarted(process, error) from error
        finally:
            os.close(writing)
        return reading

    def _end_children(self) -> None:
        """Asks them to end, then sees to it, and reaps them."""
        if self._lost():
            return
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for child in children:
            try:
                child.wait(max(deadline - time.monotonic(), 0))
            except (subprocess.TimeoutExpired, TimeoutError):
                child.kill()
                child.wait()


def _not_up(process: int) -> Error:
    hint = "Its last lines in the log say why."
    return make_error("58000", f"process {process} of the replica does not come up", hint=hint)


def _unstarted(process: int, error: Exception) -> Error:
    hint = "It needs descriptors, a process and threads: raise the limit that was reached (ulimit -n, ulimit -u)."
    return make_error("58000", f"process {process} of the replica cannot be started: {error}", hint=hint)
