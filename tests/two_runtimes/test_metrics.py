"""Metrics: what is counted, and that an interactive runtime adds series and renames none."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

import eddyline
from eddyline.compute.gil_sampler import GilSampler
from eddyline.compute.measures import BOUNDS_S, Durations
from eddyline.compute.sharing import Slot
from eddyline.protocol.soft_assertion import soft_assert
from eddyline.repr.time import EMPTY, Frontier
from tests.waiting import wait_until

Series = tuple[str, tuple[tuple[str, str], ...]]


def series(db: eddyline.Connection) -> dict[Series, float]:
    """Every sample, by its name and labels; the text is read by the parser of another project."""
    families = text_string_to_metric_families(db.metrics())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families for s in f.samples}


def value(db: eddyline.Connection, name: str, **labels: str) -> float:
    return series(db)[f"eddyline_{name}", tuple(sorted(labels.items()))]


in_both_layouts = pytest.mark.parametrize("interactive", [True, False], ids=["two runtimes", "solo"])


def used(interactive: bool) -> eddyline.Connection:
    db = eddyline.connect(interactive=interactive)
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    db.execute("CREATE INDEX tb ON t (b)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    db.wait_hydrated("tb")
    assert db.execute("SELECT count(*) FROM t WHERE b = 1").fetchall() == [(2,)]
    return db


def test_an_interactive_runtime_adds_series_and_renames_none() -> None:
    with used(interactive=False) as solo, used(interactive=True) as pair:
        one, two = set(series(solo)), set(series(pair))
    assert one <= two
    assert not any(("role", "interactive") in labels for _, labels in one)
    added = two - one
    assert added
    assert all(("role", "interactive") in labels for _, labels in added)
    assert {name for name, labels in one if dict(labels).get("role")} == set()


@in_both_layouts
def test_what_happens_is_counted(interactive: bool) -> None:
    role = {"role": "interactive"} if interactive else {}
    with used(interactive) as db:
        statements, heavy = value(db, "statements_total", outcome="succeeded"), value(db, "reads_total", lane="heavy")
        activations = value(db, "activation_duration_seconds_count", **role)
        walks = value(db, "peek_phase_seconds_count", phase="walk", **role)
        dataflows = value(db, "peek_phase_seconds_count", phase="dataflow", **role)
        db.execute("SELECT count(*) FROM t x, t y WHERE x.a < y.a")
        assert value(db, "statements_total", outcome="succeeded") == statements + 1
        assert value(db, "reads_total", lane="heavy") == heavy + 1
        assert value(db, "activation_duration_seconds_count", **role) > activations
        assert value(db, "peek_phase_seconds_count", phase="walk", **role) == walks + 1
        assert value(db, "peek_phase_seconds_count", phase="dataflow", **role) == dataflows + 1
        caller = value(db, "reads_total", lane="caller")
        db.execute("SELECT * FROM t WHERE b = 2")
        assert value(db, "reads_total", lane="caller") == caller + 1
        assert value(db, "arrangement_bytes") > 0
        assert value(db, "stored_bytes") > 0


@in_both_layouts
def test_statements_are_counted_by_their_outcome(interactive: bool) -> None:
    with eddyline.connect(interactive=interactive) as db:
        db.execute("CREATE TABLE t (a int)")
        db.append("t", {"a": list(range(1000))})

        def fails(statement: str) -> None:
            with pytest.raises(eddyline.Error):
                db.execute(statement)

        cases: dict[str, Callable[[], object]] = {
            "succeeded": lambda: db.execute("SELECT 1"),
            "failed": lambda: fails("SELECT 1 / 0"),
            "refused": lambda: fails("SELECT * FROM t"),
            "canceled": lambda: fails(f"SELECT * FROM t AS OF {2**60}"),
        }
        db.execute("SET max_result_size = '1kB'")
        for outcome, run in cases.items():
            if outcome == "canceled":
                db.execute("SET statement_timeout = '50ms'")
            before = {each: value(db, "statements_total", outcome=each) for each in cases}
            run()
            after = {each: value(db, "statements_total", outcome=each) for each in cases}
            assert after == {**before, outcome: before[outcome] + 1}


@in_both_layouts
def test_soft_assertions_are_counted(interactive: bool, tripped: list[str]) -> None:
    with eddyline.connect(interactive=interactive) as db:
        before = value(db, "soft_assertions_total")
        soft_assert(False, "for the test")
        assert value(db, "soft_assertions_total") == before + 1
    assert tripped == ["for the test"]


def test_a_hold_gap_is_what_the_reader_keeps_from_compacting(monkeypatch: pytest.MonkeyPatch) -> None:
    with used(interactive=True) as db:
        assert value(db, "hold_gap_seconds", role="interactive") >= 0
        (registry,) = db._engine.first_replica.client.registries  # type: ignore[union-attr]  # of two runtimes
        slot: Slot = next(s for s in registry._slots.values() if s._peer_hold is not None and s.publisher_since > 0)
        held = slot._peer_hold
        assert held is not None
        monkeypatch.setattr(slot, "publisher_since", Frontier(held.since + 3_000_000))
        assert slot.hold_gap_us() == 3_000_000
        assert value(db, "hold_gap_seconds", role="interactive") >= 3
        monkeypatch.setattr(slot, "publisher_since", Frontier(EMPTY))
        assert slot.hold_gap_us() == 0


def test_durations_fall_into_their_buckets() -> None:
    durations = Durations()
    for nanoseconds in (1, 10_000, 10_001, 2 * 10**9, 60 * 10**9):
        durations.record(nanoseconds)
    counts, total = durations.seen()
    assert (counts[0], counts[1], counts[BOUNDS_S.index(2.5)], counts[-1]) == (2, 1, 1, 1)
    assert total == pytest.approx(62.000020002)


@in_both_layouts
def test_holds_of_the_interpreter_are_sampled_while_that_is_on(interactive: bool) -> None:
    with eddyline.connect(interactive=interactive) as db:
        assert value(db, "gil_hold_seconds_count") == 0
        db.execute("ALTER SYSTEM SET enable_gil_sampling = on")
        wait_until(lambda: value(db, "gil_hold_seconds_count") >= 3, "they are sampled")
        db.execute("ALTER SYSTEM RESET enable_gil_sampling")
        wait_until(lambda: all(t.name != "eddyline-gil" for t in threading.enumerate()), "the sampling ends")


def test_sampling_that_gets_no_thread_is_left_out_and_tried_again_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    found = Durations()
    sampler = GilSampler(found)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        sampler.run(on=True)
    assert "can't start new thread" in caplog.text
    sampler.run(on=True)
    wait_until(lambda: sum(found.seen()[0]), "there is one")
    sampler.run(on=False)


def test_a_long_hold_is_found() -> None:
    found = Durations()
    sampler = GilSampler(found)
    sampler.run(on=True)
    sampler.run(on=True)
    text = "x" * 30_000_000
    long = BOUNDS_S.index(0.01) + 1

    def met() -> bool:
        assert text.count("yx") == 0  # one call, tens of milliseconds, the lock held
        return sum(found.seen()[0][long:]) > 0

    wait_until(met, "it is found")
    sampler.run(on=False)
