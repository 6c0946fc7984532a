"""The tests of invariants and protocol rules as functions to call: all combinations of their parameters, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest

from eddyline.protocol.soft_assertion import handled_by
from tests.two_runtimes import test_invariants, test_processes, test_protocol, test_shape, test_starting

Test = Callable[..., None]

_NUMBERED = ("test_i", "test_p")


def numbered_tests() -> dict[str, list[Test]]:
    """By number, as in ``i01`` and ``p01``: those that drive the replica by hand."""
    found: dict[str, list[Test]] = {}
    for module in (test_invariants, test_protocol, test_shape, test_processes, test_starting):
        for name, test in vars(module).items():
            if name.startswith(_NUMBERED) and name[6:8].isdigit():
                found.setdefault(name[5:8], []).append(test)
    return found


def run(tests: list[Test], tripped: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """One call for each combination of each test's parameters; soft assertions go to ``tripped``, or to the test if it
    asks for them."""
    for test, case in [(each, case) for each in tests for case in _cases(each)]:

        def call(test: Test = test, case: dict[str, Any] = case) -> None:
            wanted, texts = signature(test).parameters, list[str]()
            arguments = {**case, **({"tripped": texts} if "tripped" in wanted else {})}
            with pytest.MonkeyPatch.context() as patch, handled_by(texts.append if "tripped" in wanted else tripped):
                test(**arguments, **({"monkeypatch": patch} if "monkeypatch" in wanted else {}))

        yield call


def _cases(test: Test) -> Iterator[dict[str, Any]]:
    cases: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", ()):
        cases = [{**case, mark.args[0]: value} for case in cases for value in mark.args[1]]
    yield from cases
