"""Every test of an invariant or a protocol rule passes a hundred times in a row: none depends on chance."""

from __future__ import annotations

import pytest

from tests.two_runtimes.cases import numbered_tests, run

TIMES = 100
TESTS = numbered_tests()


def _fail(text: str) -> None:
    raise AssertionError(text)


@pytest.mark.long
@pytest.mark.parametrize("name", TESTS)
def test_passes_a_hundred_times_in_a_row(name: str) -> None:
    for _ in range(TIMES):
        for call in run(TESTS[name], tripped=_fail):
            call()
