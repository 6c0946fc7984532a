"""Every test of an invariant or a protocol rule fails when its mechanism is broken, by an assertion of its own."""

from __future__ import annotations

import traceback

import pytest

from tests.two_runtimes.cases import numbered_tests, run
from tests.two_runtimes.mutants import MUTANTS

TESTS = numbered_tests()


def test_every_test_has_a_mutant() -> None:
    assert TESTS.keys() == MUTANTS.keys()
    assert sorted(TESTS) == [f"i{n:02}" for n in range(1, 23)] + [f"p{n:02}" for n in range(1, 23)]


@pytest.mark.parametrize("name", TESTS)
def test_fails_under_its_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    killed = False
    for call in run(TESTS[name], tripped=lambda text: None):
        try:
            call()
        except pytest.fail.Exception:  # what ``pytest.raises`` raises
            killed = True
        except AssertionError as failure:
            frame = traceback.extract_tb(failure.__traceback__)[-1]
            assert "/tests/two_runtimes/" in frame.filename, "the mutant raises by itself"
            killed = True
    assert killed
