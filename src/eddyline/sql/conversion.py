"""Types meeting types while binding: literals take a type, expressions are coerced, sets of types find a common one.

These are PostgreSQL's rules (its manual, chapter 10).  A literal without a type, and a parameter not yet known, have
the type UNKNOWN until their context decides.

Numeric columns whose display scales differ have different layouts, so a common type of such is ``numeric`` with a
scale per value, reached by a Cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from eddyline.errors import Error, make_error
from eddyline.expr.casts import cast_context, category, is_preferred
from eddyline.expr.ir import Case, Cast, Coalesce, Expr, Literal, Parameter
from eddyline.expr.text_io import parse_literal
from eddyline.expr.timezone import UTC, zone_of
from eddyline.repr.types import (
    BIGINT,
    INTEGER,
    NUMERIC,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
    arrow_type,
    is_array,
    numeric,
    shows_blanks,
)

__all__ = [
    "Parameters",
    "can_coerce",
    "coerce",
    "common_type",
    "integer_literal",
    "is_unknown",
    "number_literal",
    "same_layout",
    "unify",
]

INTEGER_RANGES: Final = {
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
_MAX_DIGITS: Final = 38
_FLOATS: Final = (Kind.REAL, Kind.DOUBLE)
_ZONED: Final = (Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ_ARRAY)
_TEXT_KINDS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)


class Parameters:
    """The types of ``$n``, given or found; filled in as contexts decide.  What a session gives to its statements."""

    def __init__(self, types: dict[int, SqlType], zone: str | None = None) -> None:
        self.types = types
        self.zone = zone  # the session's TimeZone, for what is read and cast; None is UTC
        self.seen: dict[int, int | None] = {}  # number -> position of the first use

    def reference(self, number: int, position: int | None) -> Parameter:
        if number < 1 or number > 65535:
            raise make_error("42P02", f"there is no parameter ${number}", position=position)
        self.seen.setdefault(number, position)
        return Parameter(number, self.types.get(number, UNKNOWN))

    def decide(self, parameter: Parameter, target: SqlType) -> Expr:
        """``parameter`` as ``target``: the first context fixes its type (without modifiers), others must agree."""
        bare = SqlType(target.kind, of_oids=target.of_oids)
        known = self.types.setdefault(parameter.index, bare)
        if known.kind is not bare.kind:
            raise make_error(
                "42P08",
                f"inconsistent types deduced for parameter ${parameter.index}",
                position=self.seen.get(parameter.index),
                detail=f"{known} versus {bare}",
            )
        return _cast(Parameter(parameter.index, known), target, explicit=False)

    def check_all_decided(self) -> None:
        """42P18 if some parameter up to the last that is used never found a type."""
        for number in range(1, max(self.seen, default=0) + 1):
            if number not in self.types:
                raise make_error(
                    "42P18",
                    f"could not determine data type of parameter ${number}",
                    position=self.seen.get(number),
                    hint=None if number in self.seen else f"The statement has no ${number}.",
                )


def is_unknown(expr: Expr) -> bool:
    return expr.type.kind is Kind.UNKNOWN


def integer_literal(value: int) -> Literal:
    """An integer constant: int, bigint, or numeric by size."""
    for sql_type in (INTEGER, BIGINT):
        low, high = INTEGER_RANGES[sql_type.kind]
        if low <= value <= high:
            return Literal(value, sql_type)
    return Literal(str(value), numeric(0))


def number_literal(text: str) -> Expr:
    """A constant with a point, an exponent, or too many digits for int, as PostgreSQL's lexer gives it.

    One with more digits than a numeric holds is a cast that fails (22003), unless a float is made of it."""
    digits = text.replace("_", "")
    if digits.lstrip("+-")[:2].lower() in ("0x", "0o", "0b"):
        digits = str(int(digits, 0))
    if digits.lstrip("+-").isdigit() and len(digits.lstrip("+-0")) <= _MAX_DIGITS:
        return integer_literal(int(digits))
    value = Decimal(digits)
    exponent = value.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    if max(scale, 0) + max(value.adjusted() + 1, 0) > _MAX_DIGITS:
        return Cast(Literal(digits, TEXT), NUMERIC, True)
    return Literal(f"{value:f}", numeric(scale))


def same_layout(a: SqlType, b: SqlType) -> bool:
    """Whether columns of the two types look alike and mean the same, so that no Cast is due."""
    return a.kind is b.kind and arrow_type(a) == arrow_type(b) and shows_blanks(a) is shows_blanks(b)


def coerce(
    expr: Expr, target: SqlType, parameters: Parameters, *, explicit: bool = False, position: int | None = None
) -> Expr:
    """``expr`` as ``target``.  The caller has checked that the cast exists.

    A literal of unknown type is read by the type's input function: 22P02, 22007, 22003 … at bind time.
    """
    if isinstance(expr, Literal) and is_unknown(expr):
        return _read_literal(expr, target, parameters.zone, explicit=explicit, position=position)
    if isinstance(expr, Parameter) and is_unknown(expr):
        return parameters.decide(expr, target)
    return _cast(expr, target, explicit=explicit, zone=parameters.zone)


def _read_literal(literal: Literal, target: SqlType, zone: str | None, *, explicit: bool, position: int | None) -> Expr:
    if literal.value is None:
        return Literal(None, target)
    text = str(literal.value)
    if target.kind in _TEXT_KINDS:
        bare = SqlType(target.kind)
        value = text.rstrip(" ") if target.kind is Kind.BPCHAR and target.length is not None else text
        if target.length is None or len(value) <= target.length:
            return Literal(value, target)
        return Cast(Literal(text, bare if target.kind is not Kind.BPCHAR else TEXT), target, explicit)
    if is_array(target) and target.length is not None:  # an assignment refuses what is too long
        bare = SqlType(target.kind)
        read = _read_literal(literal, bare, zone, explicit=explicit, position=position)
        return Cast(read, target, explicit)
    try:
        if target.kind is Kind.NUMERIC and target.scale is None:
            return _numeric_literal(str(parse_literal(text, NUMERIC)))
        if target.precision is not None:
            parse_literal(text, SqlType(target.kind))  # what its modifier refuses has no position
            position = None
        return Literal(parse_literal(text, target, UTC if zone is None else zone_of(zone)), target)
    except Error as error:
        if error.position is None:
            error.position = position
        raise


def _numeric_literal(text: str) -> Literal:
    """A numeric constant keeps its own display scale."""
    if text.lstrip("+-")[:1].isdigit():
        return Literal(text, numeric(len(text.partition(".")[2])))
    return Literal(text, NUMERIC)


def _cast(expr: Expr, target: SqlType, *, explicit: bool, zone: str | None = None) -> Expr:
    source = expr.type
    if source == target:
        return expr
    if target.kind in _FLOATS and source.kind is Kind.NUMERIC and isinstance(expr, Cast):
        digits = expr.input
        if isinstance(digits, Literal) and digits.type == TEXT and expr.type == NUMERIC:
            return Cast(digits, target, True)  # past a numeric that may hold fewer digits than the float
    if isinstance(expr, Literal):
        if expr.value is None:
            return Literal(None, target)
        folded = _fold_widening(expr, target)
        if folded is not None:
            return folded
    if (
        source.kind is target.kind
        and target.precision is None
        and target.length is None
        and same_layout(source, target)
    ):
        return expr
    zoned = (source.kind in _ZONED) != (target.kind in _ZONED)
    return Cast(expr, target, explicit, zone if zoned else None)


def _fold_widening(literal: Literal, target: SqlType) -> Literal | None:
    """Constants in the other type when that loses nothing: keeps comparisons with keys free of casts."""
    value = literal.value
    if target.kind in INTEGER_RANGES and literal.type.kind in INTEGER_RANGES and isinstance(value, int):
        low, high = INTEGER_RANGES[target.kind]
        return Literal(value, target) if low <= value <= high else None
    if target.kind is Kind.DOUBLE and literal.type.kind in INTEGER_RANGES and isinstance(value, int):
        return Literal(float(value), target) if abs(value) < 2**53 else None
    if target.kind is Kind.NUMERIC and literal.type.kind in (*INTEGER_RANGES, Kind.NUMERIC):
        return _fold_numeric(str(value), target)
    return None


def _fold_numeric(text: str, target: SqlType) -> Literal | None:
    if not text.lstrip("+-")[:1].isdigit():
        return None
    whole, _, fraction = text.partition(".")
    if target.scale is None:
        return Literal(text, target)
    if len(fraction) > target.scale or len(whole.lstrip("+-0")) + target.scale > (target.precision or 38):
        return None
    fraction = fraction.ljust(target.scale, "0")
    return Literal(f"{whole}.{fraction}" if fraction else whole, target)


def can_coerce(source: SqlType, target: SqlType, *, assignment: bool = False) -> bool:
    """Whether an implicit (or assignment) cast leads from ``source`` to ``target``; UNKNOWN goes anywhere."""
    if source.kind is Kind.UNKNOWN or source.kind is target.kind:
        return True
    context = cast_context(source, target)
    return context == "implicit" or (assignment and context == "assignment")


def common_type(exprs: Sequence[Expr], construct: str, positions: Sequence[int | None] = ()) -> SqlType:
    """The type to which all of ``exprs`` go (UNION, CASE, VALUES …); 42804 if there is none.

    All unknown: text.
    """
    chosen: SqlType | None = None
    for index, expr in enumerate(exprs):
        source = expr.type
        if source.kind is Kind.UNKNOWN:
            continue
        if chosen is None or source.kind is chosen.kind:
            chosen = chosen or source
            continue
        if category(source.kind) != category(chosen.kind):
            raise make_error(
                "42804",
                f"{construct} types {bare_name(chosen)} and {bare_name(source)} cannot be matched",
                position=positions[index] if index < len(positions) else None,
            )
        if not is_preferred(chosen.kind) and can_coerce(chosen, source) and not can_coerce(source, chosen):
            chosen = source
    if chosen is None:
        return TEXT
    return _merge_modifiers([e.type for e in exprs if not is_unknown(e)], exprs, chosen.kind)


def _merge_modifiers(types: Sequence[SqlType], exprs: Sequence[Expr], kind: Kind) -> SqlType:
    if kind is Kind.NUMERIC:
        scales = {numeric_scale(t) for t in types}
        if any(is_unknown(e) and _is_null(e) is False for e in exprs):
            scales.add(None)  # a quoted or parameter value brings a scale of its own
        precisions = {t.precision for t in types}
        if len(scales) == 1:
            return numeric(scales.pop(), precisions.pop() if len(precisions) == 1 else None)
        return NUMERIC
    first = types[0]
    free = any(is_unknown(e) and not _is_null(e) for e in exprs)  # a quoted or parameter value has any length
    return first if not free and all(t == first for t in types) else SqlType(kind)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def numeric_scale(sql_type: SqlType) -> int | None:
    """The display scale that values of ``sql_type`` have once they are numeric."""
    if sql_type.kind is Kind.NUMERIC:
        return sql_type.scale
    return 0 if sql_type.kind in INTEGER_RANGES else None


def unify(
    exprs: Sequence[Expr], construct: str, parameters: Parameters, positions: Sequence[int | None] = ()
) -> tuple[list[Expr], SqlType]:
    """All of ``exprs`` coerced to their common type."""
    target = common_type(exprs, construct, positions)
    where = [*positions, *([None] * (len(exprs) - len(positions)))]
    coerced = [coerce(e, target, parameters, position=p) for e, p in zip(exprs, where, strict=True)]
    return [exactly(e, target) for e in coerced], target


def exactly(expr: Expr, target: SqlType) -> Expr:
    """``expr`` with exactly the type ``target``; for columns that must agree (UNION, CASE branches)."""
    if expr.type == target:
        return expr
    if isinstance(expr, Literal) and same_layout(expr.type, target):
        return Literal(expr.value, target)
    if isinstance(expr, Coalesce) and same_layout(expr.type, target):
        return Coalesce(expr.args, target)
    if isinstance(expr, Case) and same_layout(expr.type, target):
        return Case(expr.whens, expr.otherwise, target)
    return Cast(expr, target, False)


def bare_name(sql_type: SqlType) -> str:
    """The type's name without modifiers, as messages show it."""
    return sql_type.kind.value
