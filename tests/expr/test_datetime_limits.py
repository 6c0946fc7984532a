"""Where date/time values end here, what is refused on purpose, and laws that hold in between."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DatabaseError
from eddyline.expr.calendar import DAY_US, civil, days_from_civil, iso_week
from eddyline.expr.datetime_arithmetic import add_interval, age_between
from eddyline.expr.datetime_text import (
    format_timestamp,
    intervals_from_text,
    intervals_to_text,
    parse_date,
    parse_timestamp,
    timestamps_from_text,
    timestamps_to_text,
)
from eddyline.expr.interval import Intervals, compare_spans, intervals_of
from eddyline.expr.interval_text import format_interval, format_intervals
from tests.expr.harness import call, cast


def test_timestamps_end_where_int64_microseconds_end() -> None:
    assert format_timestamp(parse_timestamp("294247-01-10 04:00:54.775806")) == "294247-01-10 04:00:54.775806"
    for text in ("294247-01-10 04:00:54.775807", "294276-12-31"):
        with pytest.raises(DatabaseError, match="timestamp out of range"):
            parse_timestamp(text)


def test_infinity_has_no_numeric_field() -> None:
    assert call("extract", ["text", "date"], [("year", "infinity")]) == ["!0A000 numeric infinity is not supported"]
    assert call("date_part", ["text", "timestamp"], [("year", "infinity")]) == ["Infinity"]


@pytest.mark.parametrize("word", ["now", "today", "Tomorrow", "yesterday"])
def test_words_for_the_current_time_are_refused(word: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        parse_date(word)
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize("text", ["1" * 5000, "1 day " * 100, "2024-01-01" + "0" * 5000, "a" * 5000, "-" * 5000])
def test_absurdly_long_input_is_an_error(text: str) -> None:
    for kind in ("date", "time", "timestamptz", "interval"):
        result = cast("text", kind, [text])[0]
        assert result is not None and result.startswith("!22")


@pytest.mark.parametrize("seed", range(5))
def test_dates_equal_those_of_the_standard_library(seed: int) -> None:
    rng = random.Random(seed)
    days = np.array([rng.randrange(-719_162, 2_932_896) for _ in range(500)])
    date, week = civil(days), iso_week(days)
    assert days_from_civil(*date).tolist() == days.tolist()
    for i, day in enumerate(days.tolist()):
        expected = datetime.date(1970, 1, 1) + datetime.timedelta(day)
        assert (date.year[i], date.month[i], date.day[i]) == (expected.year, expected.month, expected.day)
        assert (week[0][i], week[1][i]) == expected.isocalendar()[:2]


@pytest.mark.parametrize("seed", range(5))
def test_an_age_added_to_its_start_gives_its_end(seed: int) -> None:
    rng = random.Random(seed)
    end = np.array([rng.randrange(0, 2 * 10**15) for _ in range(300)])
    start = np.array([rng.randrange(0, e + 1) for e in end.tolist()])
    age = age_between(end, start)
    assert all((part >= 0).all() for part in age)
    moved, bad = add_interval(start, age)
    assert not bad.any()
    # Days borrowed from the start's month can overshoot by the months' difference in length.
    assert (np.abs(moved - end) <= 3 * DAY_US).all()


@pytest.mark.parametrize("seed", range(5))
def test_text_goes_both_ways(seed: int) -> None:
    rng = random.Random(seed)
    micros = pa.array(
        [rng.choice([0, rng.randrange(-(10**17), 10**17), 2**63 - 1, -(2**63), None]) for _ in range(200)]
    )
    stamps = micros.view(pa.timestamp("us"))
    back = timestamps_from_text(timestamps_to_text(stamps))
    assert back.errors is None and back.array.equals(stamps)
    texts = [
        f"{rng.randrange(-99, 99)} mons {rng.randrange(-99, 99)} days {rng.randrange(-(10**12), 10**12)} us"
        for _ in range(100)
    ]
    intervals = intervals_from_text(pa.array(texts, pa.large_string())).array
    assert intervals_from_text(intervals_to_text(intervals)).array.equals(intervals)


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_intervals_print_as_single_intervals_do(seed: int) -> None:
    rng = random.Random(seed)
    parts = Intervals(
        np.array([rng.choice([0, 1, -1, 12, rng.randrange(-99, 99)]) for _ in range(200)]),
        np.array([rng.choice([0, 1, -1, rng.randrange(-99, 99)]) for _ in range(200)]),
        np.array([rng.choice([0, 1, -(2**63), 10**13, rng.randrange(-(10**12), 10**12)]) for _ in range(200)]),
    )
    expected = [format_interval(*(int(p[i]) for p in parts)) for i in range(200)]
    assert format_intervals(parts).to_pylist() == expected


def test_both_ways_of_reading_iso_text_agree() -> None:
    plain = ["2024-01-31 10:00:00", "1999-12-31 23:59:59.5", None, "0001-01-01 00:00:00"]
    fast = timestamps_from_text(pa.array(plain, pa.large_string())).array
    slow = timestamps_from_text(pa.array([*plain, "Jan 1 2000"], pa.large_string())).array
    assert fast.equals(slow.slice(0, 4))
    wrong = timestamps_from_text(pa.array([*plain, "2023-02-29 00:00:00"], pa.large_string()))
    assert wrong.errors is not None and wrong.errors.rows.tolist() == [4]


def test_intervals_compare_by_thirty_day_months() -> None:
    texts = ["1 mon", "30 days", "720 hours", "1 mon -1 us", "2147483647 mons", "-2147483648 mons"]
    parts = intervals_of(intervals_from_text(pa.array(texts, pa.large_string())).array)
    one = Intervals(*(np.repeat(part[:1], len(texts)) for part in parts))
    assert compare_spans(parts, one).tolist() == [0, 0, 0, -1, 1, -1]
