"""Runs a seed: every step is one action of a client, one step of one worker or lane, or one delivery of responses.

Each seed draws its own layout, its own speeds of the workers, which change now and then, and its own habits of the
clients, so that one seed crawls where another one races.  A failure carries the seed and what had happened; the same
seed does the same again, in any process.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from eddyline.controller.events import Event, PeekAnswered, ReplicaFailed
from eddyline.controller.instance import FIRST_REPLICA
from eddyline.protocol.messages import Response
from eddyline.protocol.soft_assertion import handled_by
from eddyline.testing.simulation.actions import (
    ACTIONS,
    COMPANION_ACTIONS,
    NEIGHBOUR_ACTIONS,
    PROCESS_ACTIONS,
    Action,
    close_time,
    commit,
    companion_comes,
    create_table,
    drop,
    neighbour_comes,
    restart,
    tell_processes,
    wait_idle,
)
from eddyline.testing.simulation.companion import COMPANION
from eddyline.testing.simulation.coverage import Coverage
from eddyline.testing.simulation.invariants import Invariants
from eddyline.testing.simulation.linearizability import check_linearizable
from eddyline.testing.simulation.reads import read_all_now, take_answer
from eddyline.testing.simulation.world import SimulationError, World

__all__ = [
    "SEEDS_PER_TWO_CLUSTERS",
    "SEEDS_PER_TWO_PROCESSES",
    "SEEDS_PER_TWO_REPLICAS",
    "STEPS",
    "SeedFailedError",
    "run_seed",
]

#: enough for what is asked to be answered, and for what is built to be dropped
STEPS = 220

#: one of so many seeds has a replica of two processes
SEEDS_PER_TWO_PROCESSES = 5
#: one of so many has a second replica
SEEDS_PER_TWO_REPLICAS = 6
#: one of so many has a second cluster
SEEDS_PER_TWO_CLUSTERS = 6

_SETTLING_ROUNDS = 60
_TOLD = 60


class SeedFailedError(AssertionError):
    """A seed found something; the text says which seed, what, and what happened before."""


def run_seed(
    seed: int,
    steps: int,
    coverage: Coverage,
    *,
    interactive: bool = True,
    workers: int | None = None,
    processes: int | None = None,
) -> tuple[str, ...]:
    """What happened, line by line.  Raises ``SeedFailedError``.

    ``workers``: of all processes; None: the seed chooses 1, 2 or 4.  ``processes`` None: the seed chooses 1 or 2.
    """
    rng = random.Random(seed)
    chosen = rng.choice((1, 1, 2, 4))
    if processes is None:
        processes = 2 if seed % SEEDS_PER_TWO_PROCESSES == SEEDS_PER_TWO_PROCESSES - 1 else 1
    each = max(1, (chosen if workers is None else workers) // processes)
    accompanied = seed % SEEDS_PER_TWO_REPLICAS == SEEDS_PER_TWO_REPLICAS - 1
    neighboured = seed % SEEDS_PER_TWO_CLUSTERS == SEEDS_PER_TWO_CLUSTERS - 2
    world = World(rng, each, interactive, Counter(), processes, accompanied, neighboured)
    world.coverage["processes: two"] += processes == 2
    stepper = _Stepper(world)
    try:
        with handled_by(_misuse):
            stepper.run(steps)
    except Exception as error:
        told = "\n".join(world.log[-_TOLD:])
        runtimes = "two runtimes" if interactive else "one runtime"
        beside = ("two replicas, " if accompanied else "") + ("two clusters, " if neighboured else "")
        layout = f"{beside}{processes} processes with {world.workers} workers, {runtimes}, {steps} steps"
        raise SeedFailedError(
            f"seed {seed} ({layout}), step {world.step}: {type(error).__name__}: {error}\n{told}"
        ) from error
    coverage.update(world.coverage)
    return tuple(world.log)


def _misuse(text: str) -> None:
    raise SimulationError(f"soft assertion: {text}")


@dataclass(slots=True)
class _Habits:
    """How often what happens, in this seed."""

    actions: list[Action]
    frequencies: list[float]
    #: shares of client actions and deliveries among the steps
    act: float
    deliver: float

    @staticmethod
    def of(world: World) -> _Habits:
        rng = world.rng
        actions = ACTIONS if world.processes == 1 else ACTIONS | PROCESS_ACTIONS
        if world.accompanied:
            actions = actions | COMPANION_ACTIONS
        if world.neighboured:
            actions = actions | NEIGHBOUR_ACTIONS
        frequencies = [weight * rng.choice((0.2, 1, 1, 3)) for weight in actions.values()]
        return _Habits(list(actions), frequencies, rng.choice((0.15, 0.3, 0.45)), rng.choice((0.05, 0.15, 0.3)))


class _Stepper:
    def __init__(self, world: World) -> None:
        self._world = world
        self._invariants = Invariants(world)
        self._habits = _Habits.of(world)
        self._speeds: list[float] = []
        self._driven = list(range(len(world.units) + len(world.movers)))

    def run(self, steps: int) -> None:
        world, rng = self._world, self._world.rng
        close_time(world)
        create_table(world)
        for world.step in range(1, steps + 1):
            if not self._speeds or rng.random() < 0.03:
                self._speeds = [rng.choice((0.02, 1, 1, 5)) for _ in self._driven]
            self._step(rng.random())
        self._finish()

    def _step(self, chance: float) -> None:
        habits, rng = self._habits, self._world.rng
        if chance < habits.act:
            (action,) = rng.choices(habits.actions, habits.frequencies)
            action(self._world)
            self._invariants.of_controller()
        elif chance < habits.act + habits.deliver:
            self._deliver(rng.choice((1, 3, 100)))
        else:
            # Between processes it takes a few deliveries to get as far as one step does in a process.
            for _ in range(1 if self._world.processes == 1 else 3):
                self._work()
            if rng.random() < 0.06:
                self._invariants.of_publication()

    def _work(self) -> None:
        """One step of a worker or lane that has something to do, or one delivery, if one of three has."""
        world = self._world
        for replica in world.beside:
            if world.rng.random() < 0.5:
                replica.work(world.rng.choice((0, 1, 1, 4)))
        for driven in world.rng.choices(self._driven, self._speeds, k=3):
            moved = world.drive(driven)
            self._fails_by_injection_only()
            self._invariants.after_step(driven)
            if moved:
                return

    def _fails_by_injection_only(self) -> None:
        world = self._world
        if world.replica.failed and world.replica is not world.failed_on_purpose:
            raise SimulationError(f"the replica failed: {world.last_words()}")

    def _deliver(self, most: int) -> None:
        world = self._world
        if world.companion is not None:
            for response in world.companion.responses(most):
                self._process(response, COMPANION)
        if world.neighbour is not None:
            for response in world.neighbour.responses(most):
                world.neighbour.process(response)
        for response in world.responses(most) if world.attached else ():
            events = self._process(response, FIRST_REPLICA)
            if any(isinstance(e, ReplicaFailed) for e in events):
                goes_on = world.answered_for and bool(world.reads)
                world.coverage["replicas: the first lost, and the second goes on with reads"] += goes_on
        self._invariants.of_controller()

    def _process(self, response: Response, replica: str) -> list[Event]:
        world = self._world
        events = world.controller.process_response(response, replica)
        world.attached &= not any(isinstance(e, ReplicaFailed) for e in events)
        for event in events:
            if isinstance(event, PeekAnswered):
                world.coverage["replicas: answered by the second"] += replica == COMPANION
                take_answer(world, event.response)
        return events

    # -- the end

    def _finish(self) -> None:
        """Everything is answered; then everything goes, and nothing is left behind."""
        world = self._world
        self._settle()
        commit(world, {id: ([(0, 0)], [1]) for id in list(world.tables)[-1:]})
        read_all_now(world)
        self._settle()
        late = [r.name for r in world.reads.values() if r.time <= world.now]
        if late:
            raise SimulationError(f"not answered though nothing is left to do: {late}")
        while world.reads and world.now < max(r.time for r in world.reads.values()):
            commit(world, {})
        self._settle()
        if world.reads:
            raise SimulationError(f"never answered: {[r.name for r in world.reads.values()]}")
        check_linearizable(world.writes, world.strict_reads)
        for holds in world.held:
            holds.close()
        self._settle()
        self._invariants.of_holds()
        self._invariants.of_compaction()
        self._invariants.of_logs()
        for id in (*world.indexes, *world.views, *world.tables):
            drop(world, id)
        self._settle()
        wait_idle(world)
        self._settle()
        if not world.replica.at_rest() or not all(replica.at_rest() for replica in world.beside):
            raise SimulationError("something is left behind on the replica")
        if world.store.ids():
            raise SimulationError(f"left behind in storage: {world.store.ids()}")
        tell_processes(world)
        world.replica.close()
        for replica in world.beside:
            replica.go()

    def _settle(self) -> None:
        world = self._world
        for _ in range(_SETTLING_ROUNDS):
            restart(world)
            companion_comes(world)
            neighbour_comes(world)
            quiet = not world.told.let_go()
            quiet &= not self._everyone()
            self._fails_by_injection_only()
            before = len(world.log), world.attached
            self._deliver(10_000)
            if quiet and world.attached and before == (len(world.log), world.attached):
                return
        raise SimulationError("the database does not come to rest")

    def _everyone(self) -> bool:
        """Steps all until they rest; True if any did anything."""
        world, ever = self._world, False
        moved = True
        while moved:
            moved = False
            for driven in self._driven:
                moved |= world.drive(driven)
                self._invariants.after_step(driven)
            for replica in world.beside:
                moved |= replica.work(1)
            ever |= moved
        return ever
