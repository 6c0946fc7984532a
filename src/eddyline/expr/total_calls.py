"""Calls of fallible implementations that no row can make fail, because their constants are sound.

``x LIKE 'a%'`` may then be evaluated anywhere, while ``x LIKE y`` must stay behind its guard.  So may ``x / 10``, and
sums and products of numerics whose declared precisions leave room for the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eddyline.errors import DatabaseError
from eddyline.expr.datetime_parts import has_field
from eddyline.expr.ir import Call, Cast, Expr, Literal
from eddyline.expr.pattern import is_complete_pattern
from eddyline.expr.regex_match import compile_regex
from eddyline.expr.regex_syntax import Flags
from eddyline.kernels.numeric import MAX_DIGITS
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


def _divides(call: Call) -> bool:
    """Only division by -1 leaves the range, and only division by 0 has no result."""
    divisor = _number(call, 1)
    return divisor is not None and divisor not in (0, -1)


def _whole_digits(expr: Expr) -> int | None:
    """The most digits before the point that a numeric has; None if only its type's 38 are known."""
    if isinstance(expr, Cast) and expr.input.type.kind in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[expr.input.type.kind]
    if isinstance(expr, Literal) and isinstance(expr.value, str):
        return len(expr.value.lstrip("-").partition(".")[0])
    sql_type = expr.type
    return None if sql_type.precision is None else max(sql_type.precision - (sql_type.scale or 0), 0)


def _fits_sum(call: Call) -> bool:
    whole = [_whole_digits(a) for a in call.args]
    known = [w for w in whole if w is not None]
    return len(known) == len(whole) and call.type.scale is not None and max(known) + 1 + call.type.scale <= MAX_DIGITS


def _fits_product(call: Call) -> bool:
    whole = [_whole_digits(a) for a in call.args]
    known = [w for w in whole if w is not None]
    return len(known) == len(whole) and call.type.scale is not None and sum(known) + call.type.scale <= MAX_DIGITS


_INTEGER_DIGITS: Final = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}
_RULES: Final[dict[str, Callable[[Call], bool]]] = {
    **dict.fromkeys(("like", "not_like", "ilike", "not_ilike"), _like),
    **dict.fromkeys(("regex_match", "regex_imatch", "regex_not_match", "regex_not_imatch"), _matches),
    **dict.fromkeys(("int_div", "int_mod"), _divides),
    **dict.fromkeys(("numeric_add", "numeric_sub"), _fits_sum),
    "numeric_mul": _fits_product,
    "regex_substring": _regex_substring,
    "substring": _substring,
    "bytea_substring": _substring,
    "split_part": _split_part,
    "date_part": _date_part,
    "extract": _extract,
}
