"""Kernels are compiled by several processes, once; a stamp beside the cache says so."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numba
import pytest

from eddyline.kernels import warm as module
from eddyline.kernels.registry import KERNELS
from eddyline.kernels.warm import warm, warm_soon

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


class Waits:
    """A kernel that loads when it is allowed to, and then perhaps fails."""

    name = "waits"

    def __init__(self, *, fails: bool = False) -> None:
        self.allowed = threading.Event()
        self.loaded = False
        self._fails = fails

    def load(self) -> None:
        assert self.allowed.wait(60)
        self.loaded = not self._fails
        if self._fails:
            raise RuntimeError("no kernel")


@pytest.fixture
def loader(stamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has loaded nothing, on a machine where all was compiled."""
    module._write(stamp, module._fingerprint())
    monkeypatch.setattr(module, "_begun", threading.Event())


def test_what_is_compiled_is_loaded_behind_the_callers_back(loader: None, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [Waits(), Waits(fails=True), Waits()]
    monkeypatch.setattr(module, "KERNELS", kernels)
    warm_soon(lambda done, total: pytest.fail("nothing is compiled"))
    warm_soon()
    threads = [t for t in threading.enumerate() if t.name == "eddyline-kernels"]
    assert [k.loaded for k in kernels] == [False] * 3
    for kernel in kernels:
        kernel.allowed.set()
    for thread in threads:
        thread.join(60)
    assert (len(threads), [k.loaded for k in kernels]) == (1, [True, False, True])


def test_no_thread_begins_where_all_kernels_are_loaded(loader: None) -> None:
    for kernel in KERNELS:
        kernel.load()
    warm_soon()
    assert "eddyline-kernels" not in [t.name for t in threading.enumerate()]


def test_what_is_not_compiled_is_waited_for(stamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(module, "_compile", compiled.append)
    warm_soon()
    assert (len(compiled), stamp.exists()) == (1, True)
