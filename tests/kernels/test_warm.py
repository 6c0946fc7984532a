"""Kernels are compiled by several processes, once; a stamp beside the cache says so."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

import pytest

from eddyline.kernels import stamp as stamps
from eddyline.kernels import warm as module
from eddyline.kernels.registry import KERNELS
from eddyline.kernels.stamp import Stamp, fingerprint_of
from eddyline.kernels.warm import warm, warm_soon

ALL = len(KERNELS)


@pytest.fixture
def stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "stamp"
    monkeypatch.setattr(module, "_stamp", lambda: Stamp(ALL, path))
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


def test_another_processor_compiles_anew(stamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported()
    monkeypatch.setattr(stamps, "_processor", lambda: "another one")
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
    stamp.mkdir()
    monkeypatch.setattr(module, "_stamp", lambda: Stamp(ALL, stamp))
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
    KERNELS[0].load()
    Stamp(ALL, stamp).write(fingerprint_of(module._SOURCES), KERNELS[0].dispatcher.stats.cache_path)
    monkeypatch.setattr(module, "_loader", threading.Lock())


def test_what_is_compiled_is_loaded_behind_the_callers_back(loader: None, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [Waits(), Waits(fails=True), Waits()]
    monkeypatch.setattr(module, "KERNELS", kernels)
    before = set(threading.enumerate())  # what databases of earlier tests load, too
    warm_soon(lambda done, total: pytest.fail("nothing is compiled"))
    warm_soon()
    threads = [t for t in threading.enumerate() if t.name == "eddyline-kernels" and t not in before]
    assert [k.loaded for k in kernels] == [False] * 3
    for kernel in kernels:
        kernel.allowed.set()
    for thread in threads:
        thread.join(60)
    assert (len(threads), [k.loaded for k in kernels]) == (1, [True, False, True])


def test_no_thread_begins_where_all_kernels_are_loaded(loader: None) -> None:
    for kernel in KERNELS:
        kernel.load()
    before = set(threading.enumerate())
    warm_soon()
    assert "eddyline-kernels" not in [t.name for t in threading.enumerate() if t not in before]


def test_what_is_not_compiled_is_waited_for(stamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(module, "_compile", compiled.append)
    warm_soon()
    assert (len(compiled), stamp.exists()) == (1, True)


def test_a_stamp_is_of_its_version_place_and_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    stamp = Stamp(2, tmp_path / "made" / "stamp")
    stamp.write("print", str(cache))
    assert not stamp.says("print"), "its cache is empty"
    for name in ("a", "b"):
        (cache / f"m.{name}-1.py{sys.version_info.major}{sys.version_info.minor}.nbi").touch()
    assert stamp.says("print")
    assert not stamp.says("another")
    (cache / f"m.b-1.py{sys.version_info.major}{sys.version_info.minor}.nbi").rename(cache / "m.b-1.py20.nbi")
    assert not stamp.says("print")
    shutil.rmtree(cache)
    assert not stamp.says("print")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert Stamp(2).path.parent == tmp_path


def test_what_numba_is_told_by_the_environment_is_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_of([stamps])
    assert before == fingerprint_of([stamps]) != fingerprint_of([module])
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "none")
    assert fingerprint_of([stamps]) != before
