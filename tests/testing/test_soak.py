"""Two minutes of many clients: right answers, flat memory, and nothing that stays when they have left.

They take half as many steps a second as in `make soak`, which is ten minutes: beside other tests.
"""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from eddyline.testing.soak.run import STEPS_PER_S, SoakFigures, soak
from eddyline.testing.soak.served_process import Usage

_SECONDS = 120.0
_CLIENTS = 200
_STEPS_PER_S = STEPS_PER_S / 2


@pytest.mark.skipif(sys.platform != "linux", reason="what a process uses is read from /proc")
def test_many_clients_leave_nothing_behind() -> None:
    found = soak(_SECONDS, _CLIENTS, seed=11, steps_per_s=_STEPS_PER_S)
    assert found.faults() == [], str(found)
    kinds = {"look_up", "check", "insert", "transfer", "copy", "define", "cancel", "vanish", "follow"}
    assert all(found.steps[kind] > 0 for kind in kinds), str(found)


def figures(**changed: object) -> SoakFigures:
    usage = Usage(300 << 20, 12, 20)
    given: dict[str, object] = {
        "steps": Counter(), "wrong": Counter(), "before": usage, "settled": usage,
        "warm_bytes": 300 << 20, "end_bytes": 305 << 20, "status": 0,
    }  # fmt: skip
    return SoakFigures(**(given | changed))  # type: ignore[arg-type]  # of the fields' types


def test_what_is_wrong_is_told() -> None:
    assert figures().faults() == []
    assert "memory grew" in figures(end_bytes=350 << 20).faults()[0]
    assert figures(wrong=Counter({"look_up: wrong answer": 2})).faults() == ["2 × look_up: wrong answer"]
    assert figures(left=["3 connections are open"]).faults() == ["3 connections are open"]
    assert "exit status" in figures(status=-9).faults()[0]
