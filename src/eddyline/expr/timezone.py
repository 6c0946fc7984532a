"""Time zones as sorted transitions, so that whole columns convert by one binary search.

Rules come from the ``tzdata`` package alone (never from the machine), so that replicas agree.  A zone is read from
its TZif file: explicit transitions, then the rule of its footer, spelled out for 400 years; the Gregorian calendar
repeats after that, so later times are folded back by whole cycles.

Names are looked up as PostgreSQL does: fixed abbreviations first, then zone names (case does not matter), then
POSIX specifications ("EST5EDT,M3.2.0,M11.1.0", "UTC+3": a positive number is *west* of Greenwich).
"""

from __future__ import annotations

import functools
import importlib.resources
import re
import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.calendar import SECOND_US, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY, Int64s, days_from_civil
from eddyline.expr.timezone_abbreviations import DYNAMIC, FIXED

__all__ = ["UTC", "Zone", "abbreviation", "fixed_zone", "named_zone", "unknown_zone", "zone_of"]

_DAY: Final = 86_400
_CYCLE: Final = 146_097 * _DAY  # 400 Gregorian years, in seconds
_LAST_YEAR: Final = 2_437


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """``transitions``: int64[k] seconds UTC, sorted; ``offsets``: int64[k + 1] seconds east before, between, after.

    ``repeats``: whether the last 400 years stand for all later ones.
    """

    name: str
    transitions: Int64s
    offsets: Int64s
    repeats: bool
    names: tuple[str, ...] = ()  # the abbreviation per offset, if known

    def offset_at(self, micros: Int64s) -> Int64s:
        """Seconds east of UTC at UTC times (µs); O(n log k)."""
        if len(self.transitions) == 0:
            return np.full(len(micros), self.offsets[0], np.int64)
        seconds = self._folded(micros // SECOND_US)
        result: Int64s = self.offsets[np.searchsorted(self.transitions, seconds, side="right")]
        return result

    def offset_of_local(self, micros: Int64s) -> Int64s:
        """Seconds east of UTC that local times (µs) have.

        A time that a forward change skips is read with the offset before it, one that a backward change repeats
        with the offset after it.
        """
        if len(self.transitions) == 0:
            return np.full(len(micros), self.offsets[0], np.int64)
        local = self._folded(micros // SECOND_US)
        index = np.searchsorted(self.transitions, local - _DAY, side="right")
        last = len(self.transitions)
        boundary = np.append(self.transitions, np.iinfo(np.int64).max)[index]
        before = self.offsets[index]
        after = self.offsets[np.minimum(index + 1, last)]
        is_before = local - before < boundary
        is_after = local - after >= boundary
        settled = is_before != is_after
        use_before = np.where(settled, is_before, before < after)
        result: Int64s = np.where(use_before, before, after)
        return result

    def to_local(self, micros: Int64s) -> Int64s:
        """Local µs of UTC µs; ±infinity stay.  Wraps past int64: the caller checks."""
        return _keep_infinities(micros, micros + self.offset_at(micros) * SECOND_US)

    def to_utc(self, micros: Int64s) -> Int64s:
        """UTC µs of local µs; ±infinity stay.  Wraps past int64: the caller checks."""
        return _keep_infinities(micros, micros - self.offset_of_local(micros) * SECOND_US)

    def _folded(self, seconds: Int64s) -> Int64s:
        if not self.repeats:
            return seconds
        beyond = seconds - self.transitions[-1] + 400 * _DAY
        cycles = np.where(beyond > 0, -(-beyond // _CYCLE), 0)
        result: Int64s = seconds - cycles * _CYCLE
        return result


def _keep_infinities(original: Int64s, moved: Int64s) -> Int64s:
    infinite = (original == TIMESTAMP_INFINITY) | (original == TIMESTAMP_MINUS_INFINITY)
    return np.where(infinite, original, moved)


@dataclass(frozen=True, slots=True, eq=False)
class _Abbreviation(Zone):
    """A zone's abbreviation, which keeps the meaning that it had last, whatever the zone does meanwhile.

    ``offsets`` are those of the abbreviation in each of the zone's periods; ``zone`` says in which one a time is.
    """

    zone: Zone | None = None

    def offset_of_local(self, micros: Int64s) -> Int64s:
        if self.zone is None:
            raise ValueError("an abbreviation belongs to a zone")
        return self.offset_at(micros - self.zone.offset_of_local(micros) * SECOND_US)


def _abbreviation_of(zone: Zone, name: str) -> Zone:
    """What ``name`` means in ``zone`` over time; the zone itself if it never used that name."""
    used = np.array([n.lower() == name for n in zone.names], np.bool_)
    if not used.any():
        return zone
    periods = np.arange(len(used))
    latest = np.maximum.accumulate(np.where(used, periods, -1))
    meaning = np.where(latest < 0, np.argmax(used), latest)
    return _Abbreviation(name, zone.transitions, zone.offsets[meaning], zone.repeats, zone=zone)


def fixed_zone(seconds_east: int, name: str = "") -> Zone:
    return Zone(name, np.empty(0, np.int64), np.array([seconds_east], np.int64), repeats=False)


UTC: Final = fixed_zone(0, "UTC")


def abbreviation(name: str) -> Zone | None:
    """The zone that an abbreviation such as "pst" (lower case) stands for."""
    seconds = FIXED.get(name)
    if seconds is not None:
        return fixed_zone(seconds, name)
    return _dynamic_abbreviation(name) if name in DYNAMIC else None


@functools.lru_cache(maxsize=128)
def _dynamic_abbreviation(name: str) -> Zone | None:
    zone = named_zone(DYNAMIC[name])
    return None if zone is None else _abbreviation_of(zone, name)


def zone_of(name: str) -> Zone:
    """The zone of a name or abbreviation as AT TIME ZONE takes it; 22023 if there is none."""
    zone = abbreviation(name.lower()) or named_zone(name)
    if zone is None:
        raise unknown_zone(name)
    return zone


def unknown_zone(name: str) -> DatabaseError:
    return make_error("22023", f'time zone "{name}" not recognized')


@functools.lru_cache(maxsize=1024)
def named_zone(name: str) -> Zone | None:
    """The zone of a zone name or a POSIX specification; None if it is neither."""
    canonical = _zone_names().get(name.lower())
    if canonical is not None:
        return _read_zone(canonical)
    rule = _parse_posix(name)
    if rule is None:
        return None
    return _from_rule(name, rule)


@functools.cache
def _zone_names() -> dict[str, str]:
    listing = importlib.resources.files("tzdata").joinpath("zones").read_text("utf-8")
    return {line.lower(): line for line in listing.split()}


def _read_zone(name: str) -> Zone:
    data = importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    start = 44 + _block_bytes(data, 0, 4)
    counts = struct.unpack_from(">6l", data, start + 20)
    _, _, _, times, types, _ = counts
    position = start + 44
    transitions = np.frombuffer(data, ">i8", times, position).astype(np.int64)
    kinds = np.frombuffer(data, np.uint8, times, position + times * 8)
    position += times * 9
    east = np.array([struct.unpack_from(">l", data, position + 6 * i)[0] for i in range(types)], np.int64)
    offsets = np.concatenate([east[:1], east[kinds]])
    places = [data[position + 6 * i + 5] for i in range(types)]
    letters = data[position + 6 * types : position + 6 * types + counts[5]]
    names = [letters[p : letters.index(b"\0", p)].decode("ascii") for p in places]
    spoken = (*names[:1], *(names[k] for k in kinds.tolist()))
    footer = data[start + 44 + _block_bytes(data, start, 8) :].strip(b"\n").decode("ascii")
    rule = _parse_posix(footer) if footer else None
    if rule is None or rule.starts is None or rule.ends is None:
        return Zone(name, transitions, offsets, repeats=False, names=spoken)
    later, later_offsets = _spell_out(rule, rule.starts, rule.ends)
    new = later > (transitions[-1] if times else np.iinfo(np.int64).min)
    later_names = (rule.summer_name if o == rule.summer else rule.standard_name for o in later_offsets[new].tolist())
    return Zone(
        name,
        np.concatenate([transitions, later[new]]),
        np.concatenate([offsets, later_offsets[new]]),
        repeats=True,
        names=(*spoken, *later_names),
    )


def _block_bytes(data: bytes, start: int, time_bytes: int) -> int:
    """Length of a TZif data block, its header not counted (RFC 8536, section 3)."""
    utc, std, leaps, times, types, chars = struct.unpack_from(">6l", data, start + 20)
    return int(times * (time_bytes + 1) + types * 6 + chars + leaps * (time_bytes + 4) + std + utc)


class _When(NamedTuple):
    """A yearly moment: kind "M" (month, week, weekday), "J" (day 1..365, no leap day) or "0" (day 0..365)."""

    kind: str
    numbers: tuple[int, ...]
    seconds: int  # local


class _Rule(NamedTuple):
    standard: int  # seconds east
    summer: int
    starts: _When | None
    ends: _When | None
    standard_name: str = ""
    summer_name: str = ""


_NAME = r"(?:<[A-Za-z0-9+-]+>|[A-Za-z]*)"
_OFFSET = r"[+-]?\d{1,3}(?::\d{1,2}(?::\d{1,2})?)?"
_POSIX: Final = re.compile(rf"({_NAME})({_OFFSET})(?:({_NAME})({_OFFSET})?(?:,([^,]+),([^,]+))?)?")
_WHEN: Final = re.compile(rf"(?:M(\d+)\.(\d)\.(\d)|J(\d+)|(\d+))(?:/({_OFFSET}))?")


def _parse_posix(text: str) -> _Rule | None:
    match = _POSIX.fullmatch(text)
    if match is None:
        return None
    standard_name, west, summer_name, summer_west, starts, ends = match.groups()
    standard = -_offset_seconds(west)
    if abs(standard) > 168 * 3600:
        return None
    if not summer_name:
        return None if starts else _Rule(standard, standard, None, None)
    summer = -_offset_seconds(summer_west) if summer_west else standard + 3600
    begin, end = _parse_when(starts or "M3.2.0"), _parse_when(ends or "M11.1.0")
    return (
        None
        if begin is None or end is None
        else _Rule(standard, summer, begin, end, standard_name.strip("<>"), summer_name.strip("<>"))
    )


def _offset_seconds(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    parts = [int(p) for p in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def _parse_when(text: str) -> _When | None:
    match = _WHEN.fullmatch(text)
    if match is None:
        return None
    month, week, weekday, no_leap, plain, at = match.groups()
    seconds = _offset_seconds(at) if at else 7200
    if month is not None:
        numbers = (int(month), int(week), int(weekday))
        return _When("M", numbers, seconds) if 1 <= numbers[0] <= 12 and 1 <= numbers[1] <= 5 else None
    return _When("J", (int(no_leap),), seconds) if no_leap is not None else _When("0", (int(plain),), seconds)


def _from_rule(name: str, rule: _Rule) -> Zone:
    if rule.starts is None or rule.ends is None:
        return fixed_zone(rule.standard, name)
    transitions, offsets = _spell_out(rule, rule.starts, rule.ends)
    return Zone(name, transitions, np.concatenate([np.array([rule.standard], np.int64), offsets]), repeats=True)


def _spell_out(rule: _Rule, starts: _When, ends: _When) -> tuple[Int64s, Int64s]:
    """Transitions from 1970 to ``_LAST_YEAR`` and the offset after each."""
    years = np.arange(1970, _LAST_YEAR + 1, dtype=np.int64)
    begin = _moments(starts, years) - rule.standard
    end = _moments(ends, years) - rule.summer
    transitions = np.concatenate([begin, end])
    offsets = np.concatenate([np.full(len(years), rule.summer), np.full(len(years), rule.standard)]).astype(np.int64)
    order = np.argsort(transitions, kind="stable")
    return transitions[order], offsets[order]


def _moments(when: _When, years: Int64s) -> Int64s:
    """Local seconds since 1970 of a yearly moment."""
    one = np.ones_like(years)
    if when.kind == "M":
        month, week, weekday = when.numbers
        first = days_from_civil(years, one * month, one)
        day = first + (weekday - (first + 4) % 7) % 7 + 7 * (week - 1)
        after = days_from_civil(years + (month == 12), one * (month % 12 + 1), one)
        day = np.where(day >= after, day - 7, day)
    elif when.kind == "J":
        leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
        day = days_from_civil(years, one, one) + when.numbers[0] - 1 + (leap & (when.numbers[0] > 59))
    else:
        day = days_from_civil(years, one, one) + when.numbers[0]
    result: Int64s = day * _DAY + when.seconds
    return result
