"""Intervals as Python values."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["Interval"]

_SECOND: Final = 1_000_000


class Interval(msgspec.Struct, frozen=True):
    """Months, days and microseconds, each with its own sign: a month has no fixed length, nor has a day across a change
    of clocks.  ``==`` compares the three parts; SQL's ``=`` counts a month as 30 days.  ``str()`` is PostgreSQL's text.
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __str__(self) -> str:
        parts: list[str] = []
        years, months = divmod(abs(self.months), 12)
        sign = -1 if self.months < 0 else 1
        after_minus = False
        for count, unit in ((sign * years, "year"), (sign * months, "mon"), (self.days, "day")):
            if count:
                plus = "+" if after_minus and count > 0 else ""
                parts.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
                after_minus = count < 0
        if self.microseconds or not parts:
            parts.append(self._clock(after_minus))
        return " ".join(parts)

    def _clock(self, after_minus: bool) -> str:
        seconds, micros = divmod(abs(self.microseconds), _SECOND)
        sign = "-" if self.microseconds < 0 else "+" if after_minus else ""
        fraction = f".{micros:06}".rstrip("0") if micros else ""
        return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
