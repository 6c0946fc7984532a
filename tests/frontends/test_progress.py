"""Progress lines: shown for what takes long, and for nothing else."""

from __future__ import annotations

import pytest

from eddyline.frontends import progress
from eddyline.frontends.progress import CompilationProgress


def test_compiling_is_announced_once_and_ends_with_the_total(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.0)
    report = CompilationProgress()
    for done in range(4):
        report.update(done, 3)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(", once")[2].rpartition(",")[0] for line in lines] == [
        " for this machine: 0 of 3",
        " for this machine: 3 of 3",
    ]


def test_quick_compilation_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report = CompilationProgress()
    for done in range(4):
        report.update(done, 3)
    assert capsys.readouterr().err == ""
