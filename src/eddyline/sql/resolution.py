"""Which overload of an operator or function a call means: PostgreSQL's rules (its manual, 10.2 and 10.3).

Errors: 42883 nothing fits, 42725 several fit equally well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from eddyline.errors import DatabaseError, make_error, unsupported
from eddyline.expr.casts import category, is_preferred
from eddyline.expr.functions import AggregateOverload, Overload, aggregate_overloads, overloads
from eddyline.expr.ir import Call, Cast, Expr, Literal
from eddyline.repr.types import ELEMENT_KINDS, NUMERIC, Kind, SqlType, array_type, element_type, is_vector, numeric
from eddyline.sql.conversion import (
    INTEGER_RANGES,
    Parameters,
    bare_name,
    can_coerce,
    coerce,
    exactly,
    is_unknown,
    same_layout,
)

__all__ = [
    "NEGATED",
    "bind_aggregate",
    "bind_call",
    "bind_operator",
    "choose_overload",
    "target_type",
    "without_vector",
]

COMPARISONS: Final = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
#: the comparison that holds exactly where the other fails
NEGATED: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_COMPARED: Final = ("=", "<>", "<", "<=", ">", ">=")
_HINT: Final = "You might need to add explicit type casts."
#: (implementation, number of arguments) of what takes or gives a timestamptz and means the same in every TimeZone
_ZONELESS: Final = frozenset(
    {
        ("timestamp_sub_timestamp", 2), ("date_bin", 3), ("isfinite", 1), ("make_timestamptz", 7), ("to_timestamp", 1),
        ("timezone_timestamp", 2), ("timezone_timestamptz", 2), ("timezone_interval_timestamp", 2),
        ("timezone_interval_timestamptz", 2), ("date_trunc_zone", 3),
    }
)  # fmt: skip
#: the one function of arrays that shows elements
_SHOWS: Final = "array_to_string"
#: scales at which every bigint fits 38 digits
_EXACT_SCALES: Final = range(20)
_OverloadT = TypeVar("_OverloadT", Overload, AggregateOverload)


def without_vector(expr: Expr) -> Expr:
    """int2vector and oidvector as the arrays that they are to every function; others as they are."""
    if not is_vector(expr.type):
        return expr
    array = array_type(element_type(expr.type))
    assert array is not None, "there are arrays of integers"
    return Cast(expr, array, False)


def bind_operator(
    name: str,
    args: Sequence[Expr],
    parameters: Parameters,
    position: int | None,
    positions: Sequence[int | None] = (),
) -> Expr:
    """The call of operator ``name`` (one argument: prefix)."""
    key = f"u{name}" if len(args) == 1 and name in ("+", "-") else name
    args = _narrow_literals(name, args) if name in _COMPARED else [without_vector(a) for a in args]
    unlike = name != "||" and len(args) == 2 and _unlike_arrays(args)
    chosen = None if unlike else _choose(_beside(args, overloads(key)), args, _kinds_of, assume_same=len(args) == 2)
    if chosen is None or isinstance(chosen, list):
        raise _operator_error(name, args, ambiguous=chosen is not None, position=position)
    return _apply(chosen, args, parameters, positions, position)


def _unlike_arrays(args: Sequence[Expr]) -> bool:
    """Arrays of different elements, which only concatenation brings together."""
    kinds = {a.type.kind for a in args if a.type.kind in ELEMENT_KINDS}
    return len(kinds) > 1


def _beside(args: Sequence[Expr], known: Sequence[Overload]) -> Sequence[Overload]:
    """Operators of arrays only where an operand is one: a quoted constant is none by itself."""
    if any(a.type.kind in ELEMENT_KINDS for a in args):
        return known
    return [o for o in known if not any(k in ELEMENT_KINDS for k in o.args)]


def bind_call(
    name: str,
    args: Sequence[Expr],
    parameters: Parameters,
    position: int | None,
    positions: Sequence[int | None] = (),
) -> Expr:
    """The call of function ``name``."""
    if not name.startswith("concat"):  # which shows them as they are
        args = [without_vector(a) for a in args]
    chosen = _choose(overloads(name), args, _kinds_of)
    if chosen is None or isinstance(chosen, list):
        raise function_error(name, [a.type for a in args], ambiguous=chosen is not None, position=position)
    return _apply(chosen, args, parameters, positions, position)


def choose_overload(
    name: str, candidates: Sequence[Overload], args: Sequence[Expr], parameters: Parameters, position: int | None
) -> Expr:
    """The call of one of ``candidates``, for functions that only FROM knows."""
    chosen = _choose(candidates, args, _kinds_of)
    if chosen is None or isinstance(chosen, list):
        raise function_error(name, [a.type for a in args], ambiguous=chosen is not None, position=position)
    kinds = _kinds_of(chosen, len(args)) or ()
    cast = tuple(coerce(a, target_type(k, a), parameters) for a, k in zip(args, kinds, strict=True))
    call = Call(chosen.impl, cast, chosen.result_type([a.type for a in cast]))
    _check_zone(name, call, parameters, position)
    return call


def bind_aggregate(
    name: str,
    args: Sequence[Expr],
    parameters: Parameters,
    position: int | None,
    positions: Sequence[int | None] = (),
) -> tuple[AggregateOverload, tuple[Expr, ...], SqlType]:
    """The aggregate that ``name(args)`` means, its arguments as it takes them, and its type."""
    chosen = _choose(aggregate_overloads(name), args, _aggregate_kinds)
    if chosen is None or isinstance(chosen, list):
        raise function_error(name, [a.type for a in args], ambiguous=chosen is not None, position=position)
    kinds = _aggregate_kinds(chosen, len(args)) or ()
    where = _pad(positions, len(args))
    cast = tuple(
        coerce(a, target_type(k, a), parameters, position=p) if k is not Kind.UNKNOWN else _known(a, parameters)
        for a, k, p in zip(args, kinds, where, strict=True)
    )
    if chosen.func in ("min", "max"):
        cast = tuple(_unpadded(a) for a in cast)
    return chosen, cast, chosen.result_type([a.type for a in cast])


def _unpadded(argument: Expr) -> Expr:
    """char(n) as char with no length, of which the result is: another value may be longer."""
    fixed = argument.type.kind is Kind.BPCHAR and argument.type.length is not None
    return Cast(argument, SqlType(Kind.BPCHAR), False) if fixed else argument


def _known(expr: Expr, parameters: Parameters) -> Expr:
    return coerce(expr, SqlType(Kind.TEXT), parameters) if is_unknown(expr) else expr


def _kinds_of(overload: Overload, count: int) -> tuple[Kind, ...] | None:
    fixed = len(overload.args)
    if overload.variadic is None:
        return overload.args if fixed == count else None
    return (*overload.args, *([overload.variadic] * (count - fixed))) if count > fixed else None


def _aggregate_kinds(overload: AggregateOverload, count: int) -> tuple[Kind, ...] | None:
    if overload.args is None:
        return (Kind.UNKNOWN,) if count == 1 else None
    return overload.args if len(overload.args) == count else None


def _pad(positions: Sequence[int | None], count: int) -> list[int | None]:
    return [*positions, *([None] * (count - len(positions)))]


def target_type(kind: Kind, expr: Expr) -> SqlType:
    """The type of ``kind`` to which an argument goes: its own if it is of that kind; integers keep scale 0."""
    if expr.type.kind is kind:
        return expr.type
    if kind is Kind.NUMERIC and expr.type.kind in INTEGER_RANGES:
        return numeric(0)
    return SqlType(kind)


def _check_zone(name: str, call: Call, parameters: Parameters, position: int | None) -> None:
    """0A000 for what depends on the session's TimeZone and is only there for UTC."""
    if parameters.zone is None:
        return
    kinds = [ELEMENT_KINDS.get(a.type.kind, a.type.kind) for a in call.args]
    if Kind.TIMESTAMPTZ not in (call.type.kind, *kinds) or (call.func.startswith("array_") and call.func != _SHOWS):
        return
    alike = call.func in COMPARISONS and kinds == [Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ]
    if not alike and (call.func, len(kinds)) not in _ZONELESS:
        raise unsupported(
            f"{name} of timestamp with time zone in a session whose TimeZone is not UTC",
            position=position,
            hint="Use AT TIME ZONE to say which zone is meant.",
        )


def _apply(
    chosen: Overload,
    args: Sequence[Expr],
    parameters: Parameters,
    positions: Sequence[int | None],
    position: int | None,
) -> Expr:
    kinds = chosen.evaluated or _kinds_of(chosen, len(args)) or ()
    where = _pad(positions, len(args))
    cast = [
        coerce(a, target_type(k, a), parameters, position=p) if k is not Kind.UNKNOWN else _known(a, parameters)
        for a, k, p in zip(args, kinds, where, strict=True)
    ]
    if chosen.impl in COMPARISONS:
        cast = comparable(cast, parameters)
    call = Call(chosen.impl, tuple(cast), chosen.result_type([a.type for a in cast]))
    _check_zone(chosen.name, call, parameters, position)
    return call


def comparable(args: Sequence[Expr], parameters: Parameters) -> list[Expr]:
    """Arguments of one kind brought to one layout: numerics of unlike display scales meet in one of them."""
    first, second = args
    if first.type.kind is not Kind.NUMERIC or same_layout(first.type, second.type):
        return [first, second]
    for literal, other in ((first, second), (second, first)):
        if isinstance(literal, Literal) and other.type.scale is not None:
            target = numeric(other.type.scale)
            folded = coerce(literal, target, parameters)
            if isinstance(folded, Literal):
                return [folded, other] if literal is first else [other, folded]
    for integer, other in ((first, second), (second, first)):
        scale = other.type.scale
        if not isinstance(integer, Cast) or integer.type.precision is not None:  # a precision may be exceeded
            continue
        if integer.input.type.kind in INTEGER_RANGES and scale in _EXACT_SCALES:
            cast = Cast(integer.input, numeric(scale), False)
            return [cast, other] if integer is first else [other, cast]
    return [exactly(coerce(a, NUMERIC, parameters), NUMERIC) for a in args]


def _narrow_literals(name: str, args: Sequence[Expr]) -> Sequence[Expr]:
    """``smallint_column = 5`` compares smallints, ``numeric_column = 5`` numerics of the column's scale: the same
    answer, and an index on the column serves it."""
    if len(args) != 2:
        return args
    for position, (literal, other) in enumerate(((args[0], args[1]), (args[1], args[0]))):
        bounds = INTEGER_RANGES.get(other.type.kind)
        if not isinstance(literal, Literal) or literal.type.kind not in INTEGER_RANGES or bounds is None:
            continue
        value = literal.value
        if isinstance(value, int) and bounds[0] <= value <= bounds[1]:
            narrowed = Literal(value, SqlType(other.type.kind))
            return (narrowed, other) if position == 0 else (other, narrowed)
    return args


def _choose(
    overloads_: Sequence[_OverloadT],
    args: Sequence[Expr],
    kinds_of: Callable[[_OverloadT, int], tuple[Kind, ...] | None],
    *,
    assume_same: bool = False,
) -> _OverloadT | list[_OverloadT] | None:
    """The overload that fits best; None if none fits, a list if several fit equally well."""
    types = [a.type for a in args]
    count = len(types)
    shaped = [(o, k) for o in overloads_ if (k := kinds_of(o, count)) is not None]
    exact = tuple(t.kind for t in types)
    for overload, kinds in shaped:
        if kinds == exact:
            return overload
    if assume_same and (Kind.UNKNOWN in exact) and exact[0] is not exact[1]:
        known = exact[1] if exact[0] is Kind.UNKNOWN else exact[0]
        for overload, kinds in shaped:
            if kinds == (known, known):
                return overload
    fitting = [
        (o, k)
        for o, k in shaped
        if all(want is Kind.UNKNOWN or can_coerce(t, SqlType(want)) for t, want in zip(types, k, strict=True))
    ]
    if not fitting:
        return None
    # PostgreSQL has no operators of varchar of their own: mixed with another type, it stands for text.
    best = _select([c for c in fitting if Kind.VARCHAR not in c[1]] or fitting, exact)
    return best[0][0] if len(best) == 1 else [o for o, _ in best]


def _select(
    candidates: list[tuple[_OverloadT, tuple[Kind, ...]]], exact: tuple[Kind, ...]
) -> list[tuple[_OverloadT, tuple[Kind, ...]]]:
    """Rules 4.c to 4.f of the manual's 10.3, each narrowing unless it would leave nothing."""
    if len(candidates) == 1:
        return candidates
    positions = range(len(exact))
    candidates = _most(candidates, lambda k: sum(k[i] is exact[i] for i in positions))
    if len(candidates) > 1:
        candidates = _most(
            candidates,
            lambda k: sum(
                exact[i] is not Kind.UNKNOWN
                and (k[i] is exact[i] or (is_preferred(k[i]) and category(k[i]) == category(exact[i])))
                for i in positions
            ),
        )
    if len(candidates) == 1 or Kind.UNKNOWN not in exact:
        return candidates
    candidates = _by_category(candidates, exact)
    if len(candidates) == 1:
        return candidates
    known = {k for k in exact if k is not Kind.UNKNOWN}
    if len(known) == 1:
        (only,) = known
        assumed = [c for c in candidates if all(can_coerce(SqlType(only), SqlType(k)) for k in c[1])]
        if len(assumed) == 1:
            return assumed
    return candidates


def _by_category(
    candidates: list[tuple[_OverloadT, tuple[Kind, ...]]], exact: tuple[Kind, ...]
) -> list[tuple[_OverloadT, tuple[Kind, ...]]]:
    """Rule 4.e: at unknown arguments prefer the string category, else the one all agree on, else give up."""
    text = category(Kind.TEXT)
    chosen: dict[int, object] = {}
    for i, kind in enumerate(exact):
        if kind is not Kind.UNKNOWN:
            continue
        found = {category(k[i]) for _, k in candidates}
        if text in found:
            chosen[i] = text
        elif len(found) == 1:
            chosen[i] = found.pop()
        else:
            return candidates
    kept = [c for c in candidates if all(category(c[1][i]) == want for i, want in chosen.items())]
    if not kept:
        return candidates
    for i in chosen:
        preferred = [c for c in kept if is_preferred(c[1][i])]
        if preferred:
            kept = preferred
    return kept


def _most(
    candidates: list[tuple[_OverloadT, tuple[Kind, ...]]], score: Callable[[tuple[Kind, ...]], int]
) -> list[tuple[_OverloadT, tuple[Kind, ...]]]:
    scores = [score(k) for _, k in candidates]
    best = max(scores)
    return [c for c, s in zip(candidates, scores, strict=True) if s == best]


def _operator_error(name: str, args: Sequence[Expr], *, ambiguous: bool, position: int | None) -> DatabaseError:
    shown = [bare_name(a.type) for a in args]
    text = f"{name} {shown[0]}" if len(shown) == 1 else f"{shown[0]} {name} {shown[1]}"
    if ambiguous:
        return make_error(
            "42725",
            f"operator is not unique: {text}",
            position=position,
            hint=f"Could not choose a best candidate operator. {_HINT}",
        )
    types = "argument type" if len(shown) == 1 else "argument types"
    return make_error(
        "42883",
        f"operator does not exist: {text}",
        position=position,
        hint=f"No operator matches the given name and {types}. {_HINT}",
    )


def function_error(name: str, types: Sequence[SqlType], *, ambiguous: bool, position: int | None) -> DatabaseError:
    call = f"{name}({', '.join(bare_name(t) for t in types)})"
    if ambiguous:
        return make_error(
            "42725",
            f"function {call} is not unique",
            position=position,
            hint=f"Could not choose a best candidate function. {_HINT}",
        )
    return make_error(
        "42883",
        f"function {call} does not exist",
        position=position,
        hint=f"No function matches the given name and argument types. {_HINT}",
    )
