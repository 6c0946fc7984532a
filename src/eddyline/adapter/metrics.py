"""What a database counts of itself, and its text form for Prometheus.

Series of a Solo or a maintenance runtime have no ``role``; those of an interactive runtime have: turning it on adds
series and renames none.  Nor do another cluster or replica: what is of the first replica has no ``cluster`` and no
``replica``, what is of another one has both.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from eddyline.adapter.memory_use import anonymous_bytes, can_be_watched
from eddyline.compute.measures import BOUNDS_S, Durations
from eddyline.compute.placement import Role
from eddyline.errors import Error
from eddyline.protocol.measures_messages import ProcessMeasures, RuntimeMeasures
from eddyline.protocol.read_costs import PHASES, PeekPhases
from eddyline.protocol.soft_assertion import soft_assertions

if TYPE_CHECKING:
    from prometheus_client import Metric

    from eddyline.controller.lag import Lag

__all__ = ["DatabaseMetrics", "ReplicaMeasures", "exposition"]

_OUTCOMES: Final = ("succeeded", "failed", "canceled", "refused")
_LANES: Final = ("caller", "lookup", "heavy")
_ROLE: Final = {Role.INTERACTIVE.value: {"role": Role.INTERACTIVE.value}}


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "succeeded"
    sqlstate = error.sqlstate if isinstance(error, Error) else ""
    if sqlstate == "57014":
        return "canceled"
    return "refused" if sqlstate[:2] in ("53", "54") else "failed"


class DatabaseMetrics:
    """Any thread; the lock is held for O(1)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statements: Counter[str] = Counter()  # guarded by _lock
        self._reads: Counter[str] = Counter()  # guarded by _lock
        self._phases: dict[tuple[str, str], Durations] = {
            (runtime, phase): Durations() for runtime in ("", Role.INTERACTIVE.value) for phase in PHASES
        }
        #: waits for the interpreter's lock, where they are sampled
        self.gil = Durations()

    def statement(self, error: BaseException | None) -> None:
        """A statement has ended, with ``error`` if it failed."""
        with self._lock:
            self._statements[_outcome(error)] += 1

    def read(self, phases: PeekPhases) -> None:
        """A read has been answered; those that needed no runtime have no phases."""
        with self._lock:
            self._reads[phases.lane] += 1
        if phases.runtime == "none":
            return
        runtime = phases.runtime if phases.runtime in _ROLE else ""
        for phase in PHASES:
            spent = phases.of(phase)
            if spent or phase == "walk":
                self._phases[runtime, phase].record(spent)

    def looked_up(self, runtime: str | None, nanoseconds: int, waited_ns: int = 0) -> None:
        """A statement was a quick lookup, which took so long and is its walk, after a wait for its index to seal.

        ``runtime``: None without one.
        """
        with self._lock:
            self._statements["succeeded"] += 1
            self._reads["caller"] += 1
        if runtime is not None:
            self._phases[runtime, "walk"].record(nanoseconds)
            if waited_ns:
                self._phases[runtime, "wait_seal"].record(waited_ns)

    def statements(self) -> dict[str, int]:
        """By outcome."""
        with self._lock:
            return {outcome: self._statements[outcome] for outcome in _OUTCOMES}

    def reads(self) -> dict[str, int]:
        """By lane."""
        with self._lock:
            return {lane: self._reads[lane] for lane in _LANES}

    def phases(self, runtime: str, phase: str) -> Durations:
        return self._phases[runtime, phase]


@dataclass(frozen=True, slots=True)
class ReplicaMeasures:
    """``info``: what is told of the replica, by label.  ``labels``: those of its series.

    ``runtimes``: what its runtimes count, one for each role; none if it is not there to be asked.
    ``hold_gap_us``: None where there is only one runtime.  ``processes``: what each of its own counts.
    """

    info: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    runtimes: Sequence[RuntimeMeasures] = ()
    hold_gap_us: int | None = None
    processes: Sequence[ProcessMeasures] = ()


def exposition(
    metrics: DatabaseMetrics,
    replicas: Sequence[ReplicaMeasures],
    *,
    interactive: bool,
    stored_bytes: int,
    lag: Lag,
    memory_limit_bytes: int | None,
) -> str:
    """The metrics in Prometheus' text format 0.0.4.

    ``interactive``: whether a runtime, here or elsewhere, only answers reads.
    """
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - 0.1 s that only readers pay

    registry = CollectorRegistry(auto_describe=False)
    of_runtimes = _of_runtimes(metrics, replicas, interactive=interactive)
    of_database = _of_database(metrics, stored_bytes, replicas)
    registry.register(_Collected([*of_database, *_of_lag(lag), *_of_process(memory_limit_bytes), *of_runtimes]))
    text: bytes = generate_latest(registry)
    return text.decode()


class _Collected:
    """A collector of families that are there already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def _family(name: str, text: str, kind: str) -> Metric:
    from prometheus_client import Metric  # noqa: PLC0415 - as above

    return Metric(f"eddyline_{name}", text, kind)


def _add_histogram(family: Metric, labels: dict[str, str], counts: Sequence[int], total: float) -> None:
    below = 0
    for bound, count in zip((*map(repr, BOUNDS_S), "+Inf"), counts, strict=True):
        below += count
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, below)
    family.add_sample(f"{family.name}_count", labels, below)
    family.add_sample(f"{family.name}_sum", labels, total)


def _of_database(metrics: DatabaseMetrics, stored_bytes: int, replicas: Sequence[ReplicaMeasures]) -> Iterator[Metric]:
    info = _family("replica_info", "What the replica is, in labels; always 1.", "gauge")
    for replica in replicas:
        info.add_sample(info.name, {**replica.labels, **replica.info}, 1)
    yield info
    statements = _family("statements", "Statements that have ended, by outcome.", "counter")
    for outcome, count in metrics.statements().items():
        statements.add_sample(f"{statements.name}_total", {"outcome": outcome}, count)
    yield statements
    reads = _family("reads", "Reads that have been answered, by who did.", "counter")
    for lane, count in metrics.reads().items():
        reads.add_sample(f"{reads.name}_total", {"lane": lane}, count)
    yield reads
    tripped = _family("soft_assertions", "Soft assertions that failed, here and in the replica's processes.", "counter")
    tripped.add_sample(f"{tripped.name}_total", {}, soft_assertions())
    processes = [
        ({**replica.labels, "process": str(ordinal)}, measures)
        for replica in replicas
        for ordinal, measures in enumerate(replica.processes)
    ]
    for labels, measures in processes:
        tripped.add_sample(f"{tripped.name}_total", labels, measures.soft_assertions)
    yield tripped
    stored = _family("stored_bytes", "Bytes in the runs of tables and materialized views.", "gauge")
    stored.add_sample(stored.name, {}, stored_bytes)
    yield stored
    gil = _family(
        "gil_hold_seconds",
        "How late a thread ran that wanted to, while enable_gil_sampling is on: holds of the interpreter's lock, and "
        "the operating system's own delays.",
        "histogram",
    )
    _add_histogram(gil, {}, *metrics.gil.seen())
    for labels, measures in processes:
        _add_histogram(gil, labels, measures.gil_holds, measures.gil_seconds)
    yield gil


def _of_lag(lag: Lag) -> Iterator[Metric]:
    behind = _family(
        "view_lag_seconds", "Age of the oldest commit that a view or an index has yet to take in.", "gauge"
    )
    behind.add_sample(behind.name, {}, lag.seconds())
    yield behind
    waits = _family("write_wait_seconds", "How long writes waited for views, those that did.", "histogram")
    _add_histogram(waits, {}, *lag.waits.seen())
    yield waits


def _of_process(memory_limit_bytes: int | None) -> Iterator[Metric]:
    if can_be_watched():
        used = _family("memory_in_use_bytes", "Resident bytes of this process that no file backs.", "gauge")
        used.add_sample(used.name, {}, anonymous_bytes())
        yield used
    if memory_limit_bytes is not None:
        limit = _family("memory_limit_bytes", "The setting server_memory_limit.", "gauge")
        limit.add_sample(limit.name, {}, memory_limit_bytes)
        yield limit


def _of_runtimes(
    metrics: DatabaseMetrics, replicas: Sequence[ReplicaMeasures], *, interactive: bool
) -> Iterator[Metric]:
    activations = _family("activation_duration_seconds", "How long activations of dataflows took.", "histogram")
    in_runs = _family("arrangement_bytes", "Bytes in the runs of arrangements; shared ones count once.", "gauge")
    built = _family("dataflows_built", "Maintained dataflows that the replica has built and hydrated.", "counter")
    kept = _family("dataflows_retained", "Maintained dataflows that went on under another connection.", "counter")
    phases = _family("peek_phase_seconds", "Where the time of answered peeks went; see EXPLAIN ANALYZE.", "histogram")
    for of_replica, runtime in ((replica.labels, runtime) for replica in replicas for runtime in replica.runtimes):
        labels = {**of_replica, **_ROLE.get(runtime.role, {})}
        _add_histogram(activations, labels, runtime.activations, runtime.activation_seconds)
        in_runs.add_sample(in_runs.name, labels, runtime.arrangement_bytes)
        built.add_sample(f"{built.name}_total", labels, runtime.built)
        kept.add_sample(f"{kept.name}_total", labels, runtime.retained)
    for role in ("", *(_ROLE if interactive else ())):
        labels = _ROLE.get(role, {})
        for phase in PHASES:
            _add_histogram(phases, {**labels, "phase": phase}, *metrics.phases(role, phase).seen())
    yield from (activations, in_runs, built, kept, phases)
    gaps = [(replica.labels, replica.hold_gap_us) for replica in replicas if replica.hold_gap_us is not None]
    if gaps:
        gap = _family(
            "hold_gap_seconds",
            "How far the interactive runtime holds back what maintenance compacts.",
            "gauge",
        )
        for of_replica, microseconds in gaps:
            gap.add_sample(gap.name, {**of_replica, **_ROLE[Role.INTERACTIVE.value]}, microseconds / 1e6)
        yield gap
