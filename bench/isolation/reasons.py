"""Why a target is missed, as far as it was measured: where the time went of the reads that decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.isolation.anatomy import PARTS, WITHIN_PHASES
from bench.isolation.samples import Breakdown, Samples
from bench.isolation.throughput import Pass
from eddyline.protocol.read_costs import PHASES
from eddyline.testing.counting import Counted

__all__ = ["HEADINGS", "in_columns", "of_passes", "of_quantile", "of_work"]

#: a part that is less than this of the whole goes without being named
_SHARE = 0.05
#: columns of the table of the slowest reads, and the parts that each adds up
HEADINGS: Mapping[str, Sequence[str]] = {
    "client busy": ("busy",),
    "no core": ("late_core", "core"),
    "computing": ("cpu",),
    "locks": ("late_lock", "lock", "write"),
    "queue": ("queue",),
    "publication, seal": ("wait_publication", "wait_seal"),
    "dataflow": ("dataflow",),
    "walk": ("walk",),
    "finish": ("finish",),
}


def of_quantile(samples: Samples, q: float) -> str:
    """Of the reads that decide the quantile: those about the median, those from ``q`` up, the slowest one for 1."""
    low, high, which = (0.4, 0.6, "about the median") if q == 0.5 else (q, 1.0, "slowest")
    found = samples.between(low, high)
    if found is None:
        return f"no read was answered, {len(samples.unanswered_ms)} were not"
    head = f"the {found.reads} reads {which}" if q < 1 else "the slowest read"
    unanswered = f", beside {len(samples.unanswered_ms)} that were not answered" if samples.unanswered_ms else ""
    return f"{head}{unanswered}, {_ms(found.mean_ms)}: {_told(found)}"


def _told(found: Breakdown) -> str:
    parts = sorted(((ms, part) for part, ms in found.parts_ms.items() if part in PARTS), reverse=True)
    told = [f"{PARTS[part]} {_ms(ms)}" for ms, part in parts if ms >= _SHARE * found.mean_ms]
    within = found.parts_ms.get(WITHIN_PHASES, 0.0)
    if any(part in PHASES for _, part in parts):
        told.append(f"of the runtime's part, up to {_ms(within)} without a core")
    return "; ".join(told) or "nothing was measured of it"


def in_columns(found: Breakdown) -> list[str]:
    """Milliseconds for each of ``HEADINGS``, and how much of the runtime's part had no core."""
    sums = [sum(found.parts_ms.get(part, 0.0) for part in parts) for parts in HEADINGS.values()]
    return [f"{ms:.2f}" for ms in (*sums, found.parts_ms.get(WITHIN_PHASES, 0.0))]


def of_passes(passes: Mapping[str, Sequence[Pass]]) -> str:
    """Of passes of maintenance: its threads' time with a core and without, and everybody's, by layout."""
    told = []
    for name, each in passes.items():
        if not each:
            continue
        wall, ran, waited, all_threads = (sum(times) / len(each) for times in zip(*each, strict=True))
        told.append(
            f"{name}: a pass took {wall:.2f} s, in which maintenance's threads computed {ran:.2f} s and waited "
            f"{waited:.2f} s for a core, all threads computed {all_threads:.2f} s"
        )
    return "; ".join(told) or "no pass was measured"


def of_work(more: Counted, less: Counted) -> str:
    """Which kernels were called more often, and how many bytes more were made."""
    calls = (more.calls - less.calls).most_common(5)
    kernels = ", ".join(f"{name} {count:+d}" for name, count in calls) or "no kernel is called more often"
    return f"{kernels}; {more.bytes - less.bytes:+,d} bytes"


def _ms(value: float) -> str:
    return f"{value:.1f} ms"
