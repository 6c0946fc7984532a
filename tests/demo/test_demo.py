"""The demo on its first days: verdicts, exit codes, and that a wrong row is found."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from contextlib import redirect_stdout

import pyarrow as pa
import pytest

import demo.__main__ as program
import eddyline
from demo import changes
from demo.events import Day, days
from demo.layouts import table
from demo.oracle import differences
from demo.records import Records, load
from demo.views import VIEWS

_ROWS = 3_000  # four days, enough for every view to have rows and for events that arrive late


@pytest.fixture(scope="module")
def records() -> Records:
    everything = load()
    return dataclasses.replace(everything, flights=everything.flights.slice(0, _ROWS))


def run(records: Records, apply: Callable[[eddyline.Connection, Day], None] = changes.apply) -> tuple[int, str]:
    """(exit code, what was written)."""
    written = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(written):
        patch.setattr(program, "load", lambda: records)
        patch.setattr(changes, "apply", apply)
        return program.main(), written.getvalue()


@pytest.fixture(scope="module")
def done(records: Records) -> tuple[int, str]:
    """The demo as it is."""
    return run(records)


def test_every_view_equals_the_recomputation(done: tuple[int, str]) -> None:
    code, output = done
    verdicts = output.splitlines()[-len(VIEWS) :]
    assert [line.split()[:2] for line in verdicts] == [["equal", view.name] for view in VIEWS]
    assert code == 0


def test_lookups_of_both_isolation_levels_are_reported(done: tuple[int, str]) -> None:
    _, output = done
    told = [line.split(": ")[0].split(maxsplit=1)[1] for line in output.splitlines() if "lookups meanwhile" in line]
    assert told == ["strict serializable lookups meanwhile", "serializable lookups meanwhile"]


def test_reads_in_both_layouts_are_reported_side_by_side(done: tuple[int, str]) -> None:
    lines = done[1].splitlines()
    head = next(n for n, line in enumerate(lines) if "one runtime:" in line and "two runtimes:" in line)
    kinds = ("lookups, strict serializable", "lookups, serializable", "ad-hoc aggregates, serializable")
    for line, kind in zip(lines[head + 1 : head + 4], kinds, strict=True):
        assert line.startswith(kind)
        reads, *figures = line.removeprefix(kind).split()
        assert int(reads) > 0
        assert len(figures) == 6


def test_a_quantile_is_told_of_enough_reads_only() -> None:
    one = {"lookups": [n / 1000 for n in range(1, 1001)], "others": [0.002] * 99}
    two = {"lookups": [0.0005] * 1000, "others": [0.003] * 100}
    head, lookups, others = table("reads", one, two)
    assert " ".join(head.split()) == "reads reads one runtime: p50 p90 p99 two runtimes: p50 p90 p99"
    assert " ".join(lookups.split()) == "lookups 1000 501.0 901.0 991.0 0.5 0.5 0.5"
    assert " ".join(others.split()) == "others 99 2.0 - - 3.0 3.0 -"


def test_a_wrong_row_is_a_difference_and_a_failure(records: Records) -> None:
    original = changes.apply

    def apply(db: eddyline.Connection, day: Day) -> None:
        original(db, day)
        db.execute("UPDATE planes SET manufacturer = 'BOEINGG' WHERE manufacturer = 'BOEING'")

    code, output = run(records, apply)
    wrong = [line.split()[1] for line in output.splitlines() if line.startswith("DIFFERS")]
    assert wrong == ["wind_by_maker", "fleet_use"]
    assert "BOEINGG" in output
    assert code == 1


def test_an_empty_view_is_a_failure(records: Records) -> None:
    known = pa.table({"faa": pa.array(["BQN", "SJU", "STT", "PSE"]), "name": ["?"] * 4, "tzone": ["?"] * 4})
    complete = dataclasses.replace(
        records, airports=pa.concat_tables([records.airports.select(known.column_names), known])
    )
    code, output = run(complete)
    assert "DIFFERS  unknown_destinations" in output
    assert "the view is empty" in output
    assert code == 1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([("AA", 1, 2, 2, 5, 1.5, 9)], [("AA", 1, 2, 2, 5, 1.5000001, 9)]),
        ([("AA", 1, 2, 2, 5, 1.5, 9)], [("AA", 1, 2, 2, None, 1.5, 9)]),
        ([("AA", 1, 2, 2, 5, 1.5, 9)], []),
        ([("AA", 1, 2, 2, 5, 1.5, 9)], [("AA", 2, 2, 2, 5, 1.5, 9)]),
        ([("AA", 1, 2, 2, 5, 1.5, 9)] * 2, [("AA", 1, 2, 2, 5, 1.5, 9)]),
    ],
    ids=["value", "null", "missing", "key", "twice"],
)
def test_differences_are_found(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> None:
    assert differences(VIEWS[0], ours, theirs)
    assert differences(VIEWS[0], theirs, ours)


def test_equal_rows_in_any_order_agree() -> None:
    rows: list[tuple[object, ...]] = [("AA", 1, 2, 2, 5, 1.5, 9), ("UA", 1, 2, 0, None, None, None)]
    assert differences(VIEWS[0], rows, rows[::-1]) == []


def test_the_event_log_corrects_and_deletes_only_what_is_there(records: Records) -> None:
    present: set[int] = set()
    late = 0
    for day in days(records.flights):
        changed = set(day.corrected["id"].to_pylist()) | set(day.deleted["id"].to_pylist())
        assert changed <= present
        late += len(changed)
        present |= set(day.added["id"].to_pylist())
        present -= set(day.deleted["id"].to_pylist())
    assert late > 0
