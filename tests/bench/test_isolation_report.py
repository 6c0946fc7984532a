"""What the isolation benchmark makes of its samples, which are made up here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from bench.isolation.anatomy import PARTS, WITHIN_PHASES
from bench.isolation.arms import SOLO, TWO, UNSLICED
from bench.isolation.cores import CoreFigures
from bench.isolation.hydration import HydrationFigures
from bench.isolation.lag import LagFigures
from bench.isolation.load import Window
from bench.isolation.reads import HERE_STRICT, INTROSPECTION, RANGES, SENT_SERIALIZABLE, SENT_STRICT
from bench.isolation.reasons import HEADINGS, in_columns, of_passes, of_quantile, of_work
from bench.isolation.report import IsolationReport
from bench.isolation.samples import Samples
from bench.isolation.scans import ScanFigures
from bench.isolation.sharing import SharingFigures
from bench.isolation.targets import Targets
from bench.isolation.throughput import Pair, Pass, ThroughputFigures
from eddyline.protocol.read_costs import PHASES
from eddyline.testing.counting import Counted

STREAMS = (SENT_STRICT, SENT_SERIALIZABLE, HERE_STRICT, RANGES, INTROSPECTION)
LOOKUPS = (SENT_STRICT, HERE_STRICT)


def samples(count: int, ms: float, *, slow: int = 0, slow_ms: float = 0.0, part: str = "core") -> Samples:
    """``count`` reads of ``ms``, all of it computed, but ``slow`` of ``slow_ms``, which was ``part``."""
    found = Samples()
    for n in range(count):
        late = n < slow
        found.add(0.0, slow_ms if late else ms, {part: slow_ms} if late else {"cpu": ms})
    return found


def hydration(idle_ms: float, ms: float, count: int = 1_000) -> HydrationFigures:
    idle, busy = ({s: samples(count, each) for s in STREAMS} for each in (idle_ms, ms))
    return HydrationFigures(idle, busy, dict.fromkeys(STREAMS, 1000.0), 0.2, [1.0, 2.0])


def scans(cost_ms: float, worst_ms: float) -> ScanFigures:
    found = {s: samples(1_000, 1.0, slow=1, slow_ms=worst_ms, part="queue") for s in LOOKUPS}
    return ScanFigures(cost_ms, found, 7, dict.fromkeys(LOOKUPS, 40.0))


def cores(ms: float) -> CoreFigures:
    idle, busy = ({s: samples(1_000, each) for s in LOOKUPS} for each in (1.0, ms))
    return CoreFigures(8, idle, busy, dict.fromkeys(LOOKUPS, 40.0))


def throughput(solo_s: float, idle_s: float, reading_s: float) -> ThroughputFigures:
    def pair(two_s: float) -> Pair:
        return Pair(Pass(solo_s, 0.3, 0.1, 0.5), Pass(two_s, 0.4, 0.2, 0.9))

    work = Counted(Counter({"merge": 100}), 1_000)
    return ThroughputFigures(60_000, [pair(idle_s)] * 9, [pair(reading_s)] * 9, 300.0, work, work, work)


def whole(report: IsolationReport, *, good: bool) -> list[str]:
    """The page's lines, of figures that meet every target or none."""
    two = hydration(1.0, 1.2 if good else 60.0)
    report.hydration({TWO: two, UNSLICED: hydration(1.0, 300.0), SOLO: hydration(1.0, 20.0)})
    report.scans({TWO: [scans(0.0, 2.0), scans(23.0, 9.0 if good else 60.0), scans(2170.0, 8.0)]})
    lag = LagFigures(samples(1_000, 5.0), samples(1_000, 10.0 if good else 400.0), 12.0)
    report.lag({TWO: lag})
    report.cores({1: cores(2.0), 4: cores(5.0 if good else 50.0)}, cores(20.0))
    report.throughput(throughput(1.0, 1.0, 1.0) if good else throughput(1.0, 2.0, 2.0))
    report.sharing(SharingFigures(10**8, 10**5 if good else 10**7, 0 if good else 4096, 0))
    return report.text().splitlines()


#: what is asked for, by the beginning of its row, with how many rows it has
TARGETS = {
    "sent, strict lookups, hydration: p50 over idle ≤ 1.5×": 1,
    "sent, strict lookups, hydration: p99 over idle ≤ 3×": 1,
    "sent, serializable lookups, hydration: p50 over idle ≤ 1.5×": 1,
    "sent, serializable lookups, hydration: p99 over idle ≤ 3×": 1,
    "on the caller's thread, strict lookups, hydration: p": 2,
    "sent, strict lookups, hydration: p99 of Solo unsliced over two runtimes' ≥ 100×": 1,
    "sent, serializable lookups, hydration: p99 of Solo unsliced over two runtimes' ≥ 100×": 1,
    "sent, strict lookups, hydration: p99 of Solo sliced over two runtimes' ≥ 5×": 1,
    "sent, serializable lookups, hydration: p99 of Solo sliced over two runtimes' ≥ 5×": 1,
    "introspection, hydration: p99 ≤ 50 ms": 1,
    "E1, sent, strict lookups, whatever the walks cost: worst ≤ 25 ms": 1,
    "E1, on the caller's thread, strict lookups, whatever the walks cost: worst ≤ 25 ms": 1,
    "lag of a steady view, hydration: p99 ≤ 100 ms": 1,
    "maintenance with 4× as many workers as cores, sent, strict lookups: p99 ≤ 10 ms": 1,
    "maintenance with 4× as many workers as cores, on the caller's thread, strict lookups: p99 ≤ 10 ms": 1,
    "beside two foreign processes, sent, strict lookups: p99": 1,
    "beside two foreign processes, on the caller's thread, strict lookups: p99": 1,
    "throughput beside an idle interactive runtime ≥ 0.97×": 1,
    "throughput beside readers at 30 % ≥ 0.85×": 1,
    "maintenance's kernel calls over Solo's: two, ": 2,
    "maintenance's copied bytes over Solo's: two, ": 2,
    "resident bytes added by publishing to 48 importers ≤ 1 %": 1,
    "bytes copied by it ≤ 0": 1,
}


def targets(lines: list[str]) -> dict[str, tuple[str, str]]:
    """Figure and verdict by target."""
    start = lines.index("| target, 2 cores | figure | |") + 2
    end = lines.index("", start)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end]]
    return {text: (figure, verdict) for text, figure, verdict in rows}


@pytest.mark.parametrize("good", [True, False])
def test_every_target_has_its_row_and_every_miss_its_reason(good: bool) -> None:
    lines = whole(IsolationReport(quick=False), good=good)
    found = targets(lines)
    rows = {begin: sum(text.startswith(begin) for text in found) for begin in TARGETS}
    assert rows == TARGETS
    assert sum(rows.values()) == len(found)
    missed = [text for text, (_, verdict) in found.items() if verdict == "**missed**"]
    for text in missed:
        name = text.split(" ≤ ")[0].split(" ≥ ")[0]
        assert any(line.startswith(f"* {name}") for line in lines), f"no reason for: {text}"
    if good:
        assert missed == []
    else:
        # The counted work is the same in both.
        counted = ("maintenance's kernel calls", "maintenance's copied bytes")
        met = {text for text, (_, verdict) in found.items() if verdict == "met"}
        assert all(text.startswith(counted) for text in met)
    assert all(figure for figure, _ in found.values())


def test_a_target_whose_quantile_has_too_few_samples_is_neither_met_nor_missed() -> None:
    report = IsolationReport(quick=True)
    report.hydration({TWO: hydration(1.0, 1.2, count=999)})
    found = targets(report.text().splitlines())
    assert found["sent, strict lookups, hydration: p99 over idle ≤ 3×"] == ("", "too few samples")
    assert found["sent, strict lookups, hydration: p50 over idle ≤ 1.5×"] == ("1.2×", "met")


def test_a_figure_at_its_limit_meets_it() -> None:
    collected = Targets()
    collected.at_most("low", 25.0, 25.0, " ms", "")
    collected.at_least("high", 100.0, 100.0, "×", "")
    collected.at_most("above", 25.1, 25.0, " ms", "this is why")
    assert [line.split("|")[3].strip() for line in collected.lines()[4:7]] == ["met", "met", "**missed**"]
    assert collected.lines()[-1] == "* above ≤ 25 ms, 25.1 ms: this is why."


def test_the_reason_of_a_high_quantile_is_of_the_reads_past_it() -> None:
    found = samples(1_000, 1.0, slow=10, slow_ms=80.0, part="late_core")
    told = of_quantile(found, 0.99)
    assert told.startswith("the 10 reads slowest, 80.0 ms: late start: no core 80.0 ms")
    assert "computing" not in told
    middle = of_quantile(found, 0.5)
    assert middle.startswith("the 990 reads about the median, 1.0 ms: computing, on the asking thread 1.0 ms")


def test_the_reason_of_the_worst_is_of_that_read_alone() -> None:
    found = samples(100, 1.0, slow=3, slow_ms=50.0, part="walk")
    found.add(10.0, 90.0, {"busy": 10.0, "queue": 85.0, "cpu": 4.0, "lock": 1.0, WITHIN_PHASES: 60.0})
    assert of_quantile(found, 1.0) == (
        "the slowest read, 100.0 ms: queue of the runtime 85.0 ms; its client was at an earlier read 10.0 ms; "
        "of the runtime's part, up to 60.0 ms without a core"
    )


def test_reads_that_were_not_answered_are_told_of() -> None:
    found = samples(10, 1.0)
    found.unanswered_ms += [500.0, 600.0]
    assert "beside 2 that were not answered" in of_quantile(found, 0.99)
    nobody = Samples(unanswered_ms=[1.0])
    assert of_quantile(nobody, 0.99) == "no read was answered, 1 were not"
    assert nobody.worst_ms == 1.0


def test_quantiles_want_ten_samples_beyond_them() -> None:
    assert samples(999, 1.0).quantile_ms(0.99) is None
    assert samples(1_000, 1.0, slow=11, slow_ms=7.0).quantile_ms(0.99) == 7.0
    assert samples(19, 1.0).quantile_ms(0.5) is None


def test_every_part_has_its_column() -> None:
    placed = [part for parts in HEADINGS.values() for part in parts]
    assert sorted(placed) == sorted(PARTS)
    assert set(PHASES) <= set(placed)
    parts: Mapping[str, float] = {part: float(2**n) for n, part in enumerate(PARTS)}
    found = Samples()
    found.add(0.0, sum(parts.values()), {**parts, WITHIN_PHASES: 0.5})
    row = found.between(0.99, 1.0)
    assert row is not None
    cells = in_columns(row)
    assert sum(map(float, cells[:-1])) == row.mean_ms == sum(parts.values())
    assert cells[-1] == "0.50"


def test_passes_and_work_are_compared() -> None:
    told = of_passes({"Solo": [Pass(1.0, 0.3, 0.1, 0.5), Pass(3.0, 0.5, 0.3, 0.7)], "two runtimes": []})
    assert told == (
        "Solo: a pass took 2.00 s, in which maintenance's threads computed 0.40 s and waited 0.20 s for a core, "
        "all threads computed 0.60 s"
    )
    more, less = Counted(Counter(merge=5, probe=9), 64), Counted(Counter(merge=3, probe=9), 0)
    assert of_work(more, less) == "merge +2; +64 bytes"


def test_a_window_is_as_long_as_a_p99_wants_but_not_longer_than_anybody_waits() -> None:
    assert Window(22.0, stretch=True).of(100.0) == 22.0
    assert 1_000 <= Window(22.0, stretch=True).of(25.0) * 25.0 <= 1_100
    assert Window(22.0, stretch=True).of(0.01) == 100.0
    assert Window(3.0, stretch=False).of(1.0) == 3.0
