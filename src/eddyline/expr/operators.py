"""The overloads of operators, numeric functions, and predicates, with PostgreSQL's result types.

Result rules for numeric follow the display scale: known from the arguments' scales where it does not depend on the
values, None where it does (division, roots, logarithms, ``round(x, n)``).
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.expr.registry import Overload, ResultRule, declare
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, NUMERIC, REAL, SMALLINT, Kind, SqlType, numeric

__all__ = ["COMPARABLE", "same_type"]

K = Kind
#: a product of a larger scale has a scale per value, so that it can be rounded where it has more than 38 digits
MAX_STATIC_SCALE = 20
INTEGERS = {K.SMALLINT: SMALLINT, K.INTEGER: INTEGER, K.BIGINT: BIGINT}
FLOATS = {K.REAL: REAL, K.DOUBLE: DOUBLE}
COMPARABLE = tuple(k for k in Kind if k not in (K.UNKNOWN, K.JSON))
COMPARISONS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_CROSS: tuple[tuple[Kind, Kind, Kind], ...] = (
    (K.SMALLINT, K.INTEGER, K.INTEGER),
    (K.SMALLINT, K.BIGINT, K.BIGINT),
    (K.INTEGER, K.BIGINT, K.BIGINT),
    (K.REAL, K.DOUBLE, K.DOUBLE),
)
_CROSS_TIMES: tuple[tuple[Kind, Kind, Kind], ...] = (
    (K.DATE, K.TIMESTAMP, K.TIMESTAMP),
    (K.DATE, K.TIMESTAMPTZ, K.TIMESTAMPTZ),
    (K.TIMESTAMP, K.TIMESTAMPTZ, K.TIMESTAMPTZ),
)


def same_type(types: Sequence[SqlType]) -> SqlType:
    """The arguments' common type, without modifiers that not all of them share."""
    first = types[0]
    if all(t == first for t in types):
        return first
    if first.kind is K.NUMERIC:
        scales = {t.scale for t in types}
        return numeric(scales.pop() if len(scales) == 1 else None)
    return SqlType(first.kind)


def _max_scale(types: Sequence[SqlType]) -> SqlType:
    scales = [t.scale for t in types]
    known = [s for s in scales if s is not None]
    return numeric(max(known)) if len(known) == len(scales) else NUMERIC


def _sum_scale(types: Sequence[SqlType]) -> SqlType:
    known = [t.scale for t in types if t.scale is not None]
    total = sum(known)
    return numeric(total) if len(known) == len(types) and total <= MAX_STATIC_SCALE else NUMERIC


def _own_scale(types: Sequence[SqlType]) -> SqlType:
    return numeric(types[0].scale)


def _declare_comparisons() -> None:
    for operator, impl in COMPARISONS.items():
        declare(*(Overload(operator, (k, k), BOOLEAN, impl) for k in COMPARABLE))
        for left, right, common in (*_CROSS, *_CROSS_TIMES):
            for args in ((left, right), (right, left)):
                declare(Overload(operator, args, BOOLEAN, impl, evaluated=(common, common)))


def _binary(operator: str, impl: str, *, floats: bool, numeric_rule: ResultRule, mixed: bool = True) -> None:
    """``operator`` over every pair of one arithmetic kind and, if ``mixed``, over the pairs that PostgreSQL mixes."""
    for kind, result in INTEGERS.items():
        declare(Overload(operator, (kind, kind), result, f"int_{impl}"))
    if floats:
        for kind, result in FLOATS.items():
            declare(Overload(operator, (kind, kind), result, f"float_{impl}"))
    declare(Overload(operator, (K.NUMERIC, K.NUMERIC), numeric_rule, f"numeric_{impl}"))
    for left, right, common in _CROSS if mixed else ():
        if common is K.DOUBLE and not floats:
            continue
        result = DOUBLE if common is K.DOUBLE else INTEGERS[common]
        prefix = "float" if common is K.DOUBLE else "int"
        for args in ((left, right), (right, left)):
            declare(Overload(operator, args, result, f"{prefix}_{impl}", evaluated=(common, common)))


def _unary(names: Sequence[str], impl: str) -> None:
    for name in names:
        declare(*(Overload(name, (kind,), result, f"int_{impl}") for kind, result in INTEGERS.items()))
        declare(*(Overload(name, (kind,), result, f"float_{impl}") for kind, result in FLOATS.items()))
        declare(Overload(name, (K.NUMERIC,), _own_scale, f"numeric_{impl}"))


def _declare_arithmetic() -> None:
    _binary("+", "add", floats=True, numeric_rule=_max_scale)
    _binary("-", "sub", floats=True, numeric_rule=_max_scale)
    _binary("*", "mul", floats=True, numeric_rule=_sum_scale)
    _binary("/", "div", floats=True, numeric_rule=NUMERIC)
    for name in ("%", "mod"):
        _binary(name, "mod", floats=False, numeric_rule=_max_scale, mixed=False)
    _unary(("u-",), "neg")
    _unary(("u+",), "plus")
    _unary(("abs", "@"), "abs")
    for name, impl in {"&": "and", "|": "or", "#": "xor"}.items():
        declare(*(Overload(name, (kind, kind), result, f"bit_{impl}") for kind, result in INTEGERS.items()))
    declare(*(Overload("~", (kind,), result, "bit_not") for kind, result in INTEGERS.items()))
    for name, impl in {"<<": "shift_left", ">>": "shift_right"}.items():
        declare(*(Overload(name, (kind, K.INTEGER), result, f"bit_{impl}") for kind, result in INTEGERS.items()))


def _declare_numeric_functions() -> None:
    double = (K.DOUBLE,)
    number = (K.NUMERIC,)
    for name in ("ceil", "ceiling", "floor", "round", "trunc", "sign"):
        impl = "ceil" if name == "ceiling" else name
        declare(Overload(name, double, DOUBLE, f"float_{impl}"), Overload(name, number, numeric(0), f"numeric_{impl}"))
    for name in ("round", "trunc"):
        declare(Overload(name, (K.NUMERIC, K.INTEGER), NUMERIC, f"numeric_{name}_to"))
    for name, impl in {"sqrt": "sqrt", "exp": "exp", "ln": "ln", "log": "log10", "log10": "log10"}.items():
        declare(Overload(name, double, DOUBLE, f"float_{impl}"), Overload(name, number, NUMERIC, f"numeric_{impl}"))
    declare(Overload("|/", double, DOUBLE, "float_sqrt"), Overload("cbrt", double, DOUBLE, "float_cbrt"))
    declare(Overload("||/", double, DOUBLE, "float_cbrt"))
    declare(Overload("log", (K.NUMERIC, K.NUMERIC), NUMERIC, "numeric_log"))
    declare(Overload("div", (K.NUMERIC, K.NUMERIC), numeric(0), "numeric_quotient"))
    for name in ("^", "power", "pow"):
        declare(Overload(name, (K.DOUBLE, K.DOUBLE), DOUBLE, "float_power"))
        declare(Overload(name, (K.NUMERIC, K.NUMERIC), NUMERIC, "numeric_power"))


def _declare_polymorphic() -> None:
    """What works on every type alike.  ``greatest``, ``least`` and ``nullif`` are syntax in PostgreSQL, whose binder
    rules give all arguments one type first."""
    for kind in COMPARABLE:
        declare(
            Overload("greatest", (), same_type, "greatest", variadic=kind),
            Overload("least", (), same_type, "least", variadic=kind),
            Overload("nullif", (kind, kind), lambda types: types[0], "nullif"),
        )


_declare_comparisons()
_declare_arithmetic()
_declare_numeric_functions()
_declare_polymorphic()
