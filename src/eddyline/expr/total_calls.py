"""Calls of fallible implementations that no row can make fail, because their constants are sound.

``x LIKE 'a%'`` may then be evaluated anywhere, while ``x LIKE y`` must stay behind its guard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eddyline.errors import DatabaseError
from eddyline.expr.datetime_parts import has_field
from eddyline.expr.ir import Call, Literal
from eddyline.expr.pattern import is_complete_pattern
from eddyline.expr.regex_match import compile_regex
from eddyline.expr.regex_syntax import Flags
from eddyline.repr.types import Kind

__all__ = ["is_total"]


def is_total(call: Call) -> bool:
    """Whether the call itself never fails; False if that is not known.  Its arguments are not looked into."""
    rule = _RULES.get(call.func)
    return rule is not None and rule(call)


def _text(call: Call, index: int) -> str | None:
    argument = call.args[index]
    return argument.value if isinstance(argument, Literal) and isinstance(argument.value, str) else None


def _number(call: Call, index: int) -> int | None:
    argument = call.args[index]
    return argument.value if isinstance(argument, Literal) and isinstance(argument.value, int) else None


def _like(call: Call) -> bool:
    pattern = _text(call, 1)
    return pattern is not None and is_complete_pattern(pattern)


def _matches(call: Call) -> bool:
    return _compiles(_text(call, 1), Flags(ignore_case="imatch" in call.func))


def _compiles(pattern: str | None, flags: Flags) -> bool:
    if pattern is None:
        return False
    try:
        compile_regex(pattern, flags)
    except DatabaseError:  # it is reported where a row meets it
        return False
    return True


def _regex_substring(call: Call) -> bool:
    pattern = _text(call, 1)
    return pattern is not None and _compiles(pattern, Flags()) and compile_regex(pattern, Flags()).direct


def _substring(call: Call) -> bool:
    if len(call.args) == 2:
        return True
    length = _number(call, 2)
    return length is not None and length >= 0


def _split_part(call: Call) -> bool:
    number = _number(call, 2)
    return number is not None and number != 0


def _date_part(call: Call) -> bool:
    field = _text(call, 0)
    return field is not None and len(call.args) == 2 and has_field(field, call.args[1].type.kind)


def _extract(call: Call) -> bool:
    """Infinity has fields that numeric does not hold; times and intervals are finite."""
    return call.args[1].type.kind in (Kind.TIME, Kind.INTERVAL) and _date_part(call)


_RULES: Final[dict[str, Callable[[Call], bool]]] = {
    **dict.fromkeys(("like", "not_like", "ilike", "not_ilike"), _like),
    **dict.fromkeys(("regex_match", "regex_imatch", "regex_not_match", "regex_not_imatch"), _matches),
    "regex_substring": _regex_substring,
    "substring": _substring,
    "bytea_substring": _substring,
    "split_part": _split_part,
    "date_part": _date_part,
    "extract": _extract,
}
