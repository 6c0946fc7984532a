"""Whether processes that an earlier program has left have seen what the directory has, nothing else, and how far."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.controller.home import Home
from eddyline.protocol.handshake import Seen
from eddyline.repr.time import Time

NEWEST, RESERVED = 100, 150


def seen_upto(*seen: Seen | None, told_apart_from: int = -1) -> Time | None:
    home = Home(
        Path("/nowhere"), 7, Time(NEWEST), Time(RESERVED), lambda: True, told_apart_from=told_apart_from, after=5
    )
    assert home.epoch_before == 5
    return home.seen_upto(seen)


@pytest.mark.parametrize(
    ("seen", "upto"),
    [
        pytest.param([Seen(100, 101)], 100, id="all of it"),
        pytest.param([Seen(100, 140)], 139, id="and that nothing followed"),
        pytest.param([Seen(100, 151)], 150, id="for as long as was reserved"),
        pytest.param([Seen(100, 152)], None, id="but no longer"),
        pytest.param([Seen(90, 95)], 94, id="without the last commits"),
        pytest.param([Seen(101, 102)], None, id="with one that was lost"),
        pytest.param([Seen(100, 101), Seen(80, 81)], 80, id="one process less than the other"),
        pytest.param([Seen(80, 90), Seen(101, 102)], None, id="one of them with one that was lost"),
        pytest.param([None, Seen(80, 90)], 89, id="one of them reads nothing"),
        pytest.param([None, None], RESERVED, id="nobody reads anything"),
    ],
)
def test_processes_go_on_from_the_least_that_one_has_seen(seen: list[Seen | None], upto: int | None) -> None:
    assert seen_upto(*seen) == upto


def test_not_from_a_time_whose_commits_the_directory_has_made_one_with_later_ones() -> None:
    assert seen_upto(Seen(80, 91), told_apart_from=90) == 90
    assert seen_upto(Seen(80, 91), Seen(80, 90), told_apart_from=90) is None
    assert seen_upto(None, told_apart_from=90) == RESERVED
