"""Time zones: the session's zone as a trailing argument, local times that are skipped or repeated, far years."""

from __future__ import annotations

import datetime
import random
import zoneinfo

import numpy as np
import pytest

from eddyline.errors import DatabaseError
from eddyline.expr.datetime_text import format_timestamptz, parse_timestamptz
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Call, Literal
from eddyline.expr.text_io import format_value, literal_array, parse_literal
from eddyline.expr.timezone import named_zone, zone_of
from eddyline.repr.types import INTERVAL, NUMERIC, TEXT, TIMESTAMPTZ, SqlType

NEW_YORK = "America/New_York"

ANSWERS = [
    ("timestamptz_add_interval", ["2024-03-09 12:00", "1 day"], TIMESTAMPTZ, "2024-03-10 12:00:00-04"),
    ("timestamptz_add_interval", ["2024-03-09 12:00", "24 hours"], TIMESTAMPTZ, "2024-03-10 13:00:00-04"),
    ("timestamptz_sub_interval", ["2024-11-02 12:00", "-1 mon"], TIMESTAMPTZ, "2024-12-02 12:00:00-05"),
    ("date_trunc_timestamptz", ["day", "2024-03-10 15:00"], TIMESTAMPTZ, "2024-03-10 00:00:00-05"),
    ("date_trunc_timestamptz", ["month", "2024-11-20 15:00"], TIMESTAMPTZ, "2024-11-01 00:00:00-04"),
    ("date_trunc_timestamptz", ["hour", "2024-11-03 05:30+00"], TIMESTAMPTZ, "2024-11-03 01:00:00-04"),
    ("date_trunc_timestamptz", ["hour", "2024-11-03 06:30+00"], TIMESTAMPTZ, "2024-11-03 01:00:00-05"),
    ("age_timestamptz", ["2024-03-11", "2024-03-09"], INTERVAL, "2 days"),
    ("extract", ["timezone", "2024-07-01"], NUMERIC, "-14400"),
    ("extract", ["hour", "2024-07-01 00:00+00"], NUMERIC, "20"),
]


def _argument(text: str) -> Literal:
    zone = zone_of(NEW_YORK)
    kind: SqlType = TEXT if text.isalpha() else INTERVAL if text[-1].isalpha() else TIMESTAMPTZ
    return Literal(parse_literal(text, kind, zone), kind)


@pytest.mark.parametrize(("func", "texts", "result", "expected"), ANSWERS)
def test_calendar_steps_follow_the_session_zone(func: str, texts: list[str], result: SqlType, expected: str) -> None:
    args = (*(_argument(t) for t in texts), Literal(NEW_YORK, TEXT))
    array, errors = evaluate(Call(func, args, result), [], 1)
    assert errors is None
    if result is TIMESTAMPTZ:
        assert format_timestamptz(array.view("int64")[0].as_py(), zone_of(NEW_YORK)) == expected
    else:
        wanted = literal_array(parse_literal(expected, result), result, 1)
        assert array.to_pylist() == wanted.to_pylist(), format_value(expected, TEXT)


@pytest.mark.parametrize("name", ["Europe/Berlin", NEW_YORK, "Australia/Lord_Howe", "Asia/Kolkata", "Europe/Dublin"])
def test_offsets_equal_those_of_zoneinfo(name: str) -> None:
    rng = random.Random(name)
    seconds = [rng.randrange(-(10**9), 4 * 10**9) for _ in range(300)]
    reference = zoneinfo.ZoneInfo(name)
    offsets = zone_of(name).offset_at(np.array(seconds) * 1_000_000)
    for second, offset in zip(seconds, offsets.tolist(), strict=True):
        moment = datetime.datetime.fromtimestamp(second, reference).utcoffset()
        assert moment is not None
        assert offset == moment.total_seconds()


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2024-03-31 02:30", "2024-03-31 01:30:00+00"),  # skipped: the offset before the change
        ("2024-10-27 02:30", "2024-10-27 01:30:00+00"),  # twice: the offset after the change
        ("2524-07-01 12:00", "2524-07-01 10:00:00+00"),
        ("1890-01-01 00:00", "1889-12-31 23:06:32+00"),
    ],
)
def test_local_times_around_changes(local: str, expected: str) -> None:
    assert format_timestamptz(parse_timestamptz(local, zone_of("Europe/Berlin"))) == expected


def test_an_abbreviation_keeps_its_meaning_while_its_zone_changes() -> None:
    assert format_timestamptz(parse_timestamptz("2004-06-10 12:00 MSK")) == "2004-06-10 09:00:00+00"
    assert format_timestamptz(parse_timestamptz("2012-06-10 12:00 MSK")) == "2012-06-10 08:00:00+00"


@pytest.mark.parametrize("name", ["", "foo", "Europe", "../etc/passwd", "EST5EDT,M3.2.0", "tzdata", "a" * 300])
def test_unknown_zones_are_refused(name: str) -> None:
    assert named_zone(name) is None
    with pytest.raises(DatabaseError) as caught:
        zone_of(name)
    assert (caught.value.sqlstate, caught.value.message) == ("22023", f'time zone "{name}" not recognized')
