"""Kernels are compiled by several processes, once; a stamp beside the cache says so."""

from __future__ import annotations

import sys
from pathlib import Path

import numba
import pytest

from eddyline.kernels import warm as module
from eddyline.kernels.registry import KERNELS
from eddyline.kernels.warm import warm

ALL = len(KERNELS)


@pytest.fixture
def stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "stamp"
    monkeypatch.setattr(module, "_stamp", lambda: path)
    return path


def reported() -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    warm(lambda done, total: seen.append((done, total)))
    return seen


def test_progress_is_told_kernel_by_kernel_and_only_once_for_a_machine(stamp: Path) -> None:
    assert reported() == [(done, ALL) for done in range(ALL + 1)]
    assert stamp.exists()
    assert reported() == []
    assert [path.name for path in stamp.parent.iterdir()] == ["stamp"]


def test_another_version_of_anything_compiles_anew(stamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported()
    monkeypatch.setattr(numba, "__version__", "0.0.0")
    assert reported()[-1] == (ALL, ALL)
    assert reported() == []


@pytest.mark.parametrize("script", ["exit 3", "read line; exit 0", None])
def test_processes_that_fail_leave_the_work_to_the_caller(
    stamp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    python = tmp_path / "python-broken"
    if script is not None:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert reported() == [(0, ALL), (ALL, ALL)]
    assert reported() == []


def test_a_cache_that_cannot_be_stamped_is_looked_at_each_time(stamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_stamp", lambda: stamp / "no" / "folder")
    assert reported()[-1] == reported()[-1] == (ALL, ALL)


def test_no_kernel_compiles_for_other_arguments_once_warm() -> None:
    warm()
    for kernel in KERNELS:
        assert len(kernel.dispatcher.signatures) == len(kernel.signatures), kernel.name
        with pytest.raises(TypeError):
            kernel.dispatcher(object())
