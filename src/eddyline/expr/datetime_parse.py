"""Date, time and timestamp input: text to the value's parts, as PostgreSQL decodes it (DateStyle ISO, MDY).

One value at a time; columns of the common ISO form take the vectorised path of ``datetime_text``.
Words that mean the current time (now, today …) are refused with 0A000: a stored view has no such moment.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from eddyline.errors import make_error
from eddyline.expr.calendar import DAY_US, UNIX_EPOCH_JULIAN, days_from_civil
from eddyline.expr.datetime_fields import (
    MONTHS,
    RELATIVE_WORDS,
    UNIT_WORDS,
    WEEKDAYS,
    FieldKind,
    Parts,
    Token,
    bad_format,
    field_overflow,
    fraction_micros,
    parse_clock,
    parse_offset,
    round_half_even,
    tokenize,
)
from eddyline.expr.timezone import abbreviation, named_zone
from eddyline.expr.timezone_abbreviations import FIXED

__all__ = ["civil_day", "decode", "decode_time"]

_INT32: Final = 2**31


def decode(text: str) -> Parts:
    """The parts of ``text``, checked against the calendar but not against a type's range.  Raises FieldError.

    Either ``special`` is epoch or an infinity, or the parts have a date.
    """
    return Decoder(tokenize(text)).run()


def decode_time(text: str) -> Parts:
    """The parts of a text that must have a time of day, and may have a date and a zone."""
    return _TimeDecoder(tokenize(text)).run()


def civil_day(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of one date that exists."""
    return int(days_from_civil(*(np.array([n], np.int64) for n in (year, month, day)))[0])


class Decoder:
    """Reads the fields of one date or timestamp, first to last.  One value's state; single use."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.parts = Parts()
        self.text_month = False
        self.prefix = ""  # a unit word ("j", "t" or another) that waits for its number

    def run(self) -> Parts:
        for index, token in enumerate(self.tokens):
            match token.kind:
                case FieldKind.DATE:
                    self._date_token(index, token.text)
                case FieldKind.TIME:
                    self.prefix = "" if self.prefix == "t" else self.prefix
                    if self.prefix:
                        raise bad_format()
                    self._clock(token.text)
                case FieldKind.ZONE:
                    self._offset(token.text)
                case FieldKind.NUMBER:
                    self._number_token(index, token.text)
                case FieldKind.WORD | FieldKind.SPECIAL:
                    self._word(index, token.text)
        return self._finish()

    def _date_token(self, index: int, text: str) -> None:
        if self.prefix == "j":
            self._julian_with_zone(text)
        elif self.prefix or {"month", "day"} <= self.parts.seen:
            if text[0].isdigit() or self.prefix:
                self._time_with_zone(text)
            else:
                self._zone_name(text)
        else:
            self._date(text)

    def _time_with_zone(self, text: str) -> None:
        """A run-together time and an offset: "040506-08"."""
        cut = text.find("-")
        if "time" in self.parts.seen or cut < 0 or self.prefix not in ("", "t"):
            raise bad_format()
        self.prefix = ""
        self._run_together(text[:cut])
        self._offset(text[cut:])

    def _julian_with_zone(self, text: str) -> None:
        match = re.fullmatch(r"([0-9]+)([-+].*)", text)
        if match is None:
            raise bad_format()
        self.prefix = ""
        self._julian(match[1], "")
        self._offset(match[2])

    def _clock(self, text: str) -> None:
        self.parts.add("time")
        hours, minutes, seconds, micros = parse_clock(text)
        self._set_time(hours, minutes, seconds, micros)

    def _set_time(self, hours: int, minutes: int, seconds: int, micros: int) -> None:
        total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros
        if hours > 24 or minutes > 59 or seconds > 60 or total > DAY_US:
            raise field_overflow()
        self.parts.micros = total

    def _offset(self, text: str) -> None:
        self.parts.add("zone")
        self.parts.offset = parse_offset(text)

    def _zone_name(self, text: str) -> None:
        if named_zone(text) is None:
            raise make_error("22023", f'time zone "{text}" not recognized')
        self.parts.add("zone")
        self.parts.zone = text

    def _number_token(self, index: int, text: str) -> None:
        whole, point, _ = text.partition(".")
        if self._prefixed(text):
            return
        if point and not self._any_date():
            self._date(text)
        elif (point and len(whole) > 2) or (len(text) >= 6 and not (self._any_date() and "time" in self.parts.seen)):
            self._run_together(text)
        else:
            self._number(text)

    def _prefixed(self, text: str) -> bool:
        """Takes a number that follows a unit word; whether there was one."""
        prefix, self.prefix = self.prefix, ""
        if prefix == "j":
            whole, _, decimals = text.partition(".")
            self._julian(whole, decimals)
        elif prefix == "t":
            self._run_together(text)
        elif prefix:
            raise bad_format()
        return bool(prefix)

    def _any_date(self) -> bool:
        return not self.parts.seen.isdisjoint(("year", "month", "day"))

    def _julian(self, whole: str, decimals: str) -> None:
        number = int(whole)
        if number >= _INT32:
            raise field_overflow()
        parts = self.parts
        parts.add("year", "month", "day")
        parts.special = "julian"
        parts.day = number - UNIX_EPOCH_JULIAN
        if decimals:
            parts.add("time")
            parts.micros = int(round_half_even(float("0." + decimals) * DAY_US))

    def _date(self, text: str) -> None:
        """A date with separators: its words first, then its numbers in order."""
        pieces = re.findall(r"[0-9]+|[A-Za-z]+|[^A-Za-z0-9]+", text)
        pieces = [p for p in pieces if p[0].isalnum()]
        if not pieces or (text[-1] in "-/." and len(pieces) < 3):
            raise bad_format()
        numbers: list[str] = []
        text_month = False
        for piece in pieces:
            if piece.isdigit():
                numbers.append(piece)
                continue
            month = MONTHS.get(piece)
            if month is None:
                raise bad_format()
            self.parts.add("month")
            self.parts.month = month
            text_month = True
        for number in numbers:
            self._number(number, text_month=text_month, in_date=True)
        if self.parts.seen - {"zone"} != {"year", "month", "day"}:
            raise bad_format()

    def _number(self, text: str, *, text_month: bool | None = None, in_date: bool = False) -> None:
        """One number, its role decided by what is known already."""
        parts = self.parts
        text_month = self.text_month if text_month is None else text_month
        whole, _, decimals = text.partition(".")
        if "." in text and len(whole) > 2:
            self._run_together(text)
            return
        value = int(whole) if whole else 0
        if value >= _INT32:
            raise field_overflow()
        known = {"year", "month", "day"} & parts.seen
        width = len(whole) if not decimals else len(text)
        if width == 3 and known == {"year"} and 1 <= value <= 366:
            parts.add("month", "day")
            parts.day_of_year = value
            return
        role = self._role(known, width, text_month)
        if role == "swap":  # DD-MON-YYYY read as YY first
            parts.seen.add("day")
            parts.day, parts.year, parts.two_digits = parts.year, value, False
            return
        if role == "time":
            if in_date:
                raise bad_format()
            self._run_together(text)
            return
        parts.add(role)
        setattr(parts, role, value)
        if role == "year":
            parts.two_digits = width <= 2

    def _role(self, known: set[str], width: int, text_month: bool) -> str:
        if not known:
            return "year" if width >= 3 else "month"
        if known == {"year"}:
            return "month"
        if known == {"month"}:
            return "year" if text_month and width >= 3 else "day"
        if known == {"year", "month"}:
            return "swap" if text_month and width >= 3 and self.parts.two_digits else "day"
        if known == {"day"}:
            return "month"
        if known == {"month", "day"}:
            return "year"
        if len(known) == 3:
            return "time"
        raise bad_format()

    def _run_together(self, text: str) -> None:
        """YYYYMMDD, YYMMDD, HHMMSS[.f] or HHMM."""
        digits, point, _ = text.partition(".")
        if point or self.parts.has_date() or len(digits) < 6:
            self._run_together_time(text)
            return
        parts = self.parts
        parts.add("year", "month", "day")
        parts.day, parts.month, parts.year = int(digits[-2:]), int(digits[-4:-2]), int(digits[:-4])
        if parts.year >= _INT32:
            raise field_overflow()
        parts.two_digits = len(digits) == 6

    def _run_together_time(self, text: str) -> None:
        digits, _, decimals = text.partition(".")
        if "time" in self.parts.seen or len(digits) not in (4, 6):
            raise bad_format()
        self.parts.add("time")
        self._set_time(int(digits[:2]), int(digits[2:4]), int(digits[4:] or 0), fraction_micros(decimals))

    def _word(self, index: int, word: str) -> None:
        parts = self.parts
        if word in RELATIVE_WORDS:
            raise make_error("0A000", f'date/time value "{word}" is not supported', hint="Use now() or current_date.")
        if word in ("infinity", "-infinity", "epoch"):
            parts.add("reserved")
            parts.special = word
        elif word in MONTHS:
            self._month_word(MONTHS[word])
        elif word in WEEKDAYS:
            parts.add("weekday")
        elif word not in ("at", "on"):
            self._time_word(index, word)

    def _time_word(self, index: int, word: str) -> None:
        """A word that may also stand with a time alone."""
        parts = self.parts
        if word == "allballs":
            parts.add("time", "zone")
        elif word in ("am", "pm"):
            parts.add("meridiem")
            parts.meridiem = word
        elif word in ("ad", "bc"):
            parts.add("era")
            parts.bc = word == "bc"
        elif word == "dst":
            if "zone" not in parts.seen or "dst" in parts.seen or parts.zone is not None:
                raise bad_format()
            parts.seen.add("dst")
            parts.offset += 3600
        elif word == "t":
            self._iso_time_word(index)
        elif word in UNIT_WORDS:
            self.prefix = "j" if word.startswith("j") else word
        else:
            self._zone_word(word)

    def _month_word(self, month: int) -> None:
        parts = self.parts
        if "month" in parts.seen and "day" not in parts.seen and not self.text_month and 1 <= parts.month <= 31:
            parts.day = parts.month
            parts.seen.add("day")
        else:
            parts.add("month")
        self.text_month = True
        parts.month = month

    def _iso_time_word(self, index: int) -> None:
        after = self.tokens[index + 1].kind if index + 1 < len(self.tokens) else None
        allowed = (FieldKind.NUMBER, FieldKind.TIME, FieldKind.DATE)
        if after not in allowed or not self._may_start_time():
            raise bad_format()
        self.prefix = "t"

    def _may_start_time(self) -> bool:
        return self.parts.has_date()

    def _zone_word(self, word: str) -> None:
        zone = abbreviation(word)
        if zone is None and named_zone(word) is None:
            raise bad_format()
        self.parts.add("zone")
        if word in FIXED:
            self.parts.offset = FIXED[word]
        else:
            self.parts.zone = word

    def _finish(self) -> Parts:
        parts = self.parts
        if not parts.seen.isdisjoint(("year", "month", "day", "era")):
            self._settle_date()
        self._settle_meridiem()
        self._check_complete()
        return parts

    def _check_complete(self) -> None:
        if self.parts.special in ("", "julian") and not self.parts.has_date():
            raise bad_format()

    def _settle_date(self) -> None:
        parts = self.parts
        if parts.special == "julian":
            return
        if "year" in parts.seen:
            self._settle_year()
        if parts.day_of_year:
            parts.special = parts.special or "julian"
            parts.day = civil_day(parts.year, 1, 1) + parts.day_of_year - 1
            return
        if "month" in parts.seen and not 1 <= parts.month <= 12:
            raise field_overflow()
        if "day" in parts.seen and not 1 <= parts.day <= 31:
            raise field_overflow()
        if parts.has_date():
            following = (parts.year, parts.month + 1) if parts.month < 12 else (parts.year + 1, 1)
            if civil_day(parts.year, parts.month, parts.day) >= civil_day(*following, 1):
                raise field_overflow()

    def _settle_year(self) -> None:
        parts = self.parts
        if parts.bc:
            if parts.year <= 0:
                raise field_overflow()
            parts.year = 1 - parts.year
        elif parts.two_digits:
            parts.year += 2000 if parts.year < 70 else 1900
        elif parts.year <= 0:
            raise field_overflow()

    def _settle_meridiem(self) -> None:
        parts = self.parts
        if not parts.meridiem:
            return
        hours = parts.micros // 3_600_000_000
        if hours > 12:
            raise field_overflow()
        if parts.meridiem == "am" and hours == 12:
            parts.micros -= 12 * 3_600_000_000
        elif parts.meridiem == "pm" and hours != 12:
            parts.micros += 12 * 3_600_000_000


class _TimeDecoder(Decoder):
    """The fields of a time of day: numbers are times unless a date stands first."""

    def _date_token(self, index: int, text: str) -> None:
        if self.prefix == "j":
            self._julian_with_zone(text)
        elif self._date_stands_first(index, FieldKind.TIME):
            self._date(text)
        elif text[0].isdigit():
            self._time_with_zone(text)
        else:
            self._zone_name(text)

    def _date_stands_first(self, index: int, *second: FieldKind) -> bool:
        tokens = self.tokens
        return index == 0 and len(tokens) >= 2 and (tokens[-1].kind is FieldKind.DATE or tokens[1].kind in second)

    def _number_token(self, index: int, text: str) -> None:
        whole, point, _ = text.partition(".")
        if self._prefixed(text):
            return
        if point and self._date_stands_first(index):
            self._date(text)
        elif point and len(whole) <= 2:
            raise bad_format()
        else:
            self._run_together_time(text)

    def _run_together(self, text: str) -> None:
        self._run_together_time(text)

    def _word(self, index: int, word: str) -> None:
        if word in RELATIVE_WORDS:
            super()._word(index, word)
        elif word in ("infinity", "-infinity", "epoch") or word in MONTHS or word in WEEKDAYS:
            raise bad_format()
        elif word not in ("at", "on"):
            self._time_word(index, word)

    def _may_start_time(self) -> bool:
        return True

    def _check_complete(self) -> None:
        parts = self.parts
        if "time" not in parts.seen or (parts.zone is not None and not parts.has_date()):
            raise bad_format()
