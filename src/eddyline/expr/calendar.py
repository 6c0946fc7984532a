"""Calendar arithmetic over NumPy arrays: days and microseconds since 1970-01-01, proleptic Gregorian.

Years are astronomical (1 BC is 0).  Everything is int64 and vectorised; nothing checks ranges but ``*_in_range``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "DATE_INFINITY",
    "DATE_MAX",
    "DATE_MIN",
    "DATE_MINUS_INFINITY",
    "DAY_US",
    "HOUR_US",
    "MINUTE_US",
    "SECOND_US",
    "TIMESTAMP_INFINITY",
    "TIMESTAMP_MAX",
    "TIMESTAMP_MIN",
    "TIMESTAMP_MINUS_INFINITY",
    "UNIX_EPOCH_JULIAN",
    "Bools",
    "Civil",
    "Int64s",
    "civil",
    "days_from_civil",
    "days_in_month",
    "iso_week",
    "iso_week_start",
    "split_day",
    "timestamp_in_range",
]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

#: Julian day number of 1970-01-01
UNIX_EPOCH_JULIAN: Final = 2_440_588

#: 4714-11-24 BC (Julian day 0) and 5874897-12-31, PostgreSQL's bounds
DATE_MIN: Final = -UNIX_EPOCH_JULIAN
DATE_MAX: Final = 2_147_483_493 - UNIX_EPOCH_JULIAN
DATE_INFINITY: Final = 2**31 - 1
DATE_MINUS_INFINITY: Final = -(2**31)

#: The lower bound is PostgreSQL's; the upper one is the last µs that int64 holds (294247-01-10).
TIMESTAMP_MIN: Final = -UNIX_EPOCH_JULIAN * DAY_US
TIMESTAMP_MAX: Final = 2**63 - 2
TIMESTAMP_INFINITY: Final = 2**63 - 1
TIMESTAMP_MINUS_INFINITY: Final = -(2**63)


class Civil(NamedTuple):
    year: Int64s
    month: Int64s  # 1..12
    day: Int64s  # 1..31


def civil(days: Int64s) -> Civil:
    """Year, month and day of days since 1970-01-01."""
    shifted = days + 719_468  # 0000-03-01: years that start in March put the leap day last
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * march_month + 2) // 5 + 1
    month = np.where(march_month < 10, march_month + 3, march_month - 9)
    year = year_of_era + era * 400 + (month <= 2)
    return Civil(year, month, day)


def days_from_civil(year: Int64s, month: Int64s, day: Int64s) -> Int64s:
    """Days since 1970-01-01; ``month`` must be 1..12, ``day`` may be any number (it is added)."""
    march_year = year - (month <= 2)
    era = march_year // 400
    year_of_era = march_year - era * 400
    day_of_year = (153 * np.where(month > 2, month - 3, month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    result: Int64s = era * 146_097 + day_of_era - 719_468
    return result


_MONTH_DAYS: Final = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def days_in_month(year: Int64s, month: Int64s) -> Int64s:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    result: Int64s = _MONTH_DAYS[month - 1] + (leap & (month == 2))
    return result


def split_day(micros: Int64s) -> tuple[Int64s, Int64s]:
    """(days, µs of the day), the second never negative."""
    days = micros // DAY_US
    return days, micros - days * DAY_US


def iso_week_start(iso_year: Int64s) -> Int64s:
    """The Monday of ISO week 1, in days."""
    january_4 = days_from_civil(iso_year, np.full_like(iso_year, 1), np.full_like(iso_year, 4))
    result: Int64s = january_4 - (january_4 + 3) % 7
    return result


def iso_week(days: Int64s) -> tuple[Int64s, Int64s]:
    """(ISO year, ISO week)."""
    thursday = days - (days + 3) % 7 + 3
    year = civil(thursday).year
    return year, (days - iso_week_start(year)) // 7 + 1


def timestamp_in_range(micros: Int64s) -> Bools:
    result: Bools = (micros >= TIMESTAMP_MIN) & (micros <= TIMESTAMP_MAX)
    return result
