"""Every test of an invariant or a protocol rule fails when its mechanism is broken, by an assertion of its own."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from tests.two_runtimes.cases import numbered_tests, run
from tests.two_runtimes.invariant_mutants import Mutant
from tests.two_runtimes.mutants import MUTANTS

TESTS = numbered_tests()
#: what the driver asserts of an answer in a test's stead
_ASSERTED_OF_ANSWERS = {"answer", "rows", "error", "texts"}
ALL = [(name, mutant) for name, mutants in MUTANTS.items() for mutant in mutants]


def test_every_test_has_a_mutant_of_its_own() -> None:
    assert TESTS.keys() == MUTANTS.keys()
    assert sorted(TESTS) == [f"i{n:02}" for n in range(1, 23)] + [f"p{n:02}" for n in range(1, 25)]
    mutants = [mutant for _, mutant in ALL]
    assert len(set(mutants)) == len(mutants), "none stands for two"


@pytest.mark.parametrize(("name", "mutant"), ALL, ids=[f"{name} {m.__name__}" for name, m in ALL])
def test_fails_under_its_mutant(name: str, mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    killed = False
    for call in run(TESTS[name], tripped=lambda text: None):
        try:
            call()
        except pytest.fail.Exception:  # what ``pytest.raises`` raises
            killed = True
        except AssertionError as failure:
            frame = traceback.extract_tb(failure.__traceback__)[-1]
            file = Path(frame.filename)
            own = file.name.startswith("test_") or frame.name in _ASSERTED_OF_ANSWERS
            assert file.parent.name == "two_runtimes" and own, f"{frame.name} of {file} asserts, and not the test"
            killed = True
    assert killed
