"""Words and fields of date/time input: a tokenizer and the meaning of single tokens (DateStyle ISO, MDY).

The grammar is PostgreSQL's: text is cut into fields by their first character, each field adds parts (year, month,
…, time zone) and it is an error to give a part twice.  Failures raise ``FieldError``; who knows the type and the
whole text turns it into the SQL error.
"""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eddyline.errors import DatabaseError, make_error

__all__ = [
    "MONTHS",
    "RELATIVE_WORDS",
    "UNIT_WORDS",
    "WEEKDAYS",
    "FieldError",
    "FieldKind",
    "Parts",
    "Token",
    "bad_format",
    "field_overflow",
    "fraction_micros",
    "parse_clock",
    "parse_offset",
    "round_half_even",
    "tokenize",
]


class FieldError(Exception):
    """A part of the input is wrong; ``sqlstate`` and a message template in which {text} and {type} are filled."""

    def __init__(self, sqlstate: str, template: str) -> None:
        super().__init__(template)
        self.sqlstate = sqlstate
        self.template = template

    def sql_error(self, text: str, type_name: str) -> DatabaseError:
        return make_error(self.sqlstate, self.template.replace("{type}", type_name).replace("{text}", text))


def bad_format() -> FieldError:
    return FieldError("22007", 'invalid input syntax for type {type}: "{text}"')


def field_overflow() -> FieldError:
    return FieldError("22008", 'date/time field value out of range: "{text}"')


def zone_overflow() -> FieldError:
    return FieldError("22009", 'time zone displacement out of range: "{text}"')


class FieldKind(enum.Enum):
    NUMBER = enum.auto()
    WORD = enum.auto()
    DATE = enum.auto()
    TIME = enum.auto()
    ZONE = enum.auto()
    SPECIAL = enum.auto()  # a signed word


class Token(NamedTuple):
    kind: FieldKind
    text: str


MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"), 1,
    )
    for name in names.split()
}  # fmt: skip
WEEKDAYS: Final = frozenset(
    [
        "sun",
        "sunday",
        "mon",
        "monday",
        "tue",
        "tues",
        "tuesday",
        "wed",
        "weds",
        "wednesday",
        "thu",
        "thur",
        "thurs",
        "thursday",
        "fri",
        "friday",
        "sat",
        "saturday",
    ]
)
#: words whose value depends on when they are read; refused
RELATIVE_WORDS: Final = frozenset(("now", "today", "tomorrow", "yesterday"))
#: words that only say what the next number is; none but j and t can be followed by one
UNIT_WORDS: Final = frozenset(
    ["d", "dow", "doy", "h", "hh", "isodow", "isoyear", "j", "jd", "julian", "m", "mm", "s", "t", "y", "yd"]
)
_OTHER_WORDS: Final = UNIT_WORDS | frozenset(["am", "pm", "ad", "bc", "at", "on", "dst", "epoch", "infinity"])


@dataclass(slots=True)
class Parts:
    """What the fields have given so far; ``seen`` holds the names of the parts given."""

    seen: set[str] = field(default_factory=set)
    year: int = 0
    month: int = 0
    day: int = 0
    day_of_year: int = 0
    two_digits: bool = False
    bc: bool = False
    micros: int = 0  # of the day, up to 24 hours
    meridiem: str = ""
    zone: str | None = None  # a zone name that needs the date to be resolved
    offset: int = 0  # seconds east, if "zone" is seen and ``zone`` is None
    special: str = ""  # epoch, infinity, -infinity; julian: ``day`` counts from 1970-01-01

    def add(self, *names: str) -> None:
        """Marks parts as given; 22007 if one already is."""
        if not self.seen.isdisjoint(names):
            raise bad_format()
        self.seen.update(names)

    def has_date(self) -> bool:
        return {"year", "month", "day"} <= self.seen


_SPACE = " \t\n\v\f\r"
#: ASCII letters and all that is not ASCII, said as what it is not, which compiles in a tenth of the time
_LETTER: Final = r"[^\x00-@\[-`{-\x7f]"
_TOKEN: Final = re.compile(
    r"(?P<time>[0-9]+:[0-9:.]*)"
    r"|(?P<sameseparator>[0-9]+(?P<d1>[-/.])[0-9]+(?P=d1)(?:[0-9]|(?P=d1))*)"
    r"|(?P<decimal>[0-9]+\.[0-9]+)"
    r"|(?P<twopart>[0-9]+[-/][0-9]+)"
    r"|(?P<digitsword>[0-9]+(?P<d2>[-/.])(?:[A-Za-z0-9]|(?P=d2))*)"
    r"|(?P<number>[0-9]+|\.[0-9]*)"
    rf"|(?P<word>{_LETTER}+)"
    rf"|(?P<signed>[+-][ \t\n\v\f\r]*(?:[0-9.][0-9:.\-]*|{_LETTER}+))"
)
_DATE_TAIL: Final = re.compile(r"[-+/_.:A-Za-z0-9]*")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*,/:;<=>?@[\\]^_`{|}~")
_KINDS: Final = {
    "time": FieldKind.TIME,
    "sameseparator": FieldKind.DATE,
    "decimal": FieldKind.NUMBER,
    "twopart": FieldKind.DATE,
    "digitsword": FieldKind.DATE,
    "number": FieldKind.NUMBER,
}
_MAX_TOKENS: Final = 25
_MAX_CHARS: Final = 150  # of all fields together


def _knows(word: str) -> bool:
    return word in MONTHS or word in WEEKDAYS or word in RELATIVE_WORDS or word in _OTHER_WORDS


def tokenize(text: str) -> list[Token]:
    """The fields of a date, time or interval; words in lower case."""
    tokens: list[Token] = []
    position = chars = 0
    while position < len(text):
        char = text[position]
        if char in _SPACE:
            position += 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            if char in _PUNCTUATION:
                position += 1
                continue
            raise bad_format()
        token, position = _token(text, match)
        tokens.append(token)
        chars += len(token.text)
        if len(tokens) > _MAX_TOKENS or chars > _MAX_CHARS:
            raise bad_format()
    return tokens


def _token(text: str, match: re.Match[str]) -> tuple[Token, int]:
    name = next(n for n in (*_KINDS, "word", "signed") if match[n] is not None)
    end = match.end()
    content = match[0].lower()
    if name == "word":
        following = text[end : end + 1]
        if following and (following in "-/." or ((following == "+" or following.isdigit()) and not _knows(content))):
            tail = _DATE_TAIL.match(text, end)
            end = tail.end() if tail is not None else end
            return Token(FieldKind.DATE, content + text[match.end() : end].lower()), end
        return Token(FieldKind.WORD, content), end
    if name == "signed":
        content = content[0] + content[1:].lstrip(_SPACE)
        return Token(FieldKind.SPECIAL if content[1].isalpha() else FieldKind.ZONE, content), end
    return Token(_KINDS[name], content), end


def fraction_micros(digits: str) -> int:
    """µs of the decimals after the point, rounded half to even; "" is 0."""
    return int(round_half_even(float("0." + digits) * 1e6)) if digits else 0


def round_half_even(value: float) -> float:
    return float(round(value)) if math.isfinite(value) else value


_CLOCK: Final = re.compile(r"([0-9]+):([0-9]*)(?:(:)([0-9]*))?(?:\.([0-9]*))?")


def parse_clock(text: str) -> tuple[int, int, int, int]:
    """(hours, minutes, seconds, µs) of "hh:mm[:ss[.f]]"; "mm:ss.f" has no hours.  Hours are not bounded."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise bad_format()
    hours, minutes, seconds = int(match[1]), int(match[2] or 0), int(match[4] or 0)
    micros = 0
    if match[5] is not None:
        micros = fraction_micros(match[5])
        if match[3] is None:
            hours, minutes, seconds = 0, hours, minutes
    if minutes > 59 or seconds > 60:
        raise field_overflow()
    return hours, minutes, seconds, micros


_OFFSET: Final = re.compile(r"([+-])([0-9]+)(?::([0-9]*)(?::([0-9]*))?)?(.*)")


def parse_offset(text: str) -> int:
    """Seconds east of UTC of "+hh", "-hhmm", "+hh:mm[:ss]"; 22009 past 15:59:59."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise bad_format()
    hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    if match[3] is None and not match[5] and len(text) > 3:
        hours, minutes = divmod(hours, 100)
    if hours > 15 or minutes > 59 or seconds > 59:
        raise zone_overflow()
    if match[5]:
        raise bad_format()
    total = hours * 3600 + minutes * 60 + seconds
    return -total if match[1] == "-" else total
