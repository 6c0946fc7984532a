"""Every test of an invariant or a protocol rule fails when its mechanism is broken, by an assertion of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest

from eddyline.protocol.soft_assertion import handled_by
from tests.two_runtimes import test_invariants, test_protocol
from tests.two_runtimes.mutants import MUTANTS


def _tests() -> Iterator[Any]:
    for module in (test_invariants, test_protocol):
        for name, test in vars(module).items():
            if name.startswith(("test_i", "test_p")) and name[5:8] in MUTANTS:
                yield pytest.param(test, name[5:8], id=name[5:8])


def _cases(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """Every combination of the test's parameters."""
    cases: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", ()):
        cases = [{**case, mark.args[0]: value} for case in cases for value in mark.args[1]]
    yield from cases


def test_every_mutant_has_a_test() -> None:
    assert {p.values[1] for p in _tests()} == MUTANTS.keys()


@pytest.mark.parametrize(("test", "name"), list(_tests()))
def test_fails_under_its_mutant(test: Callable[..., None], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    killed = False
    for case in _cases(test):
        texts: list[str] = []
        arguments = {**case, **({"tripped": texts} if "tripped" in signature(test).parameters else {})}
        with handled_by(texts.append):
            try:
                test(**arguments)
            except pytest.fail.Exception:  # what ``pytest.raises`` raises
                killed = True
            except AssertionError as failure:
                frame = traceback.extract_tb(failure.__traceback__)[-1]
                assert "/tests/two_runtimes/" in frame.filename, "the mutant raises by itself"
                killed = True
    assert killed
