"""wait_hydrated and its progress."""

from __future__ import annotations

import pytest

import eddyline
from eddyline.frontends.progress import HydrationProgress


def test_waits_for_views_indexes_and_materialized_views(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int)")
    db.append("t", {"a": list(range(10_000))})
    db.execute("CREATE VIEW v AS SELECT a % 7 AS k, count(*) AS n FROM t GROUP BY 1")
    db.wait_hydrated("v", timeout=10)  # nothing maintains it: nothing to wait for
    db.execute("CREATE INDEX i ON v (k)")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT max(a) AS top FROM t")
    for name in ("v", "i", "m", "t", "public.v"):
        db.wait_hydrated(name, timeout=30)
    assert db.execute("SELECT top FROM m").fetchall() == [(9_999,)]


def test_unknown_names(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.ProgrammingError) as caught:
        db.wait_hydrated("nowhere")
    assert caught.value.sqlstate == "42P01"


def test_progress_goes_to_standard_error_only_when_asked(
    db: eddyline.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    db.execute("CREATE TABLE t (a int)")
    db.execute("CREATE DEFAULT INDEX ON t")
    db.wait_hydrated("t", timeout=30)
    assert capsys.readouterr() == ("", "")
    db.wait_hydrated("t", timeout=30, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hydrated t in ")


def test_updates_are_shown_a_few_times_a_second_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    with HydrationProgress("v", enabled=True) as report:
        for rows in range(1000):
            report.update(rows)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("hydrating v: 0 rows")
    assert lines[-1].startswith("hydrated v in ")
    assert len(lines) < 10


def test_a_failed_wait_reports_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), HydrationProgress("v", enabled=True):
        raise RuntimeError
    assert "hydrated" not in capsys.readouterr().err
