"""Texts that differ by literals alone share a statement with parameters in their place, and so its plan.

When a shape of texts (``sql.text_shape``) is met for the second time, the text is bound twice: as it is, and with
parameters for its literals.  The shape is shared only if both come to the same: the second, with the literals put in,
must be the first, name by name and node by node, as they are run.  So whatever a literal means where it stands (a
position of ORDER BY, a length, half of an interval, an argument that decides which function is meant) is found out,
not known.

From then on a text of that shape costs one pass of a regular expression.  A literal that is not plainly a value of its
parameter's type leaves its text to the usual way, which has the error and its position.

What is shared are lookups by key, rows of VALUES, and changes of rows that are looked up by key: elsewhere a plan made
for the very literals may be the better one, and making it is the smaller part.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from eddyline.adapter.catalog import SearchPathView
from eddyline.adapter.constant_rows import rows_of_constants
from eddyline.adapter.engine import Engine
from eddyline.adapter.named_statements import NamedStatement, meaning_of
from eddyline.adapter.prepare import Prepared, bind_parsed
from eddyline.adapter.read_plan import ReadPlan
from eddyline.errors import Error
from eddyline.expr.arithmetic import INTEGER_LIMITS
from eddyline.expr.fold import fold
from eddyline.expr.ir import Cast, Expr, Literal, LiteralValue, MapStep, Parameter, rewrite
from eddyline.expr.text_io import parse_literal
from eddyline.expr.timezone import UTC, Zone, zone_of
from eddyline.plan.fast_path import ConstantPlan, PeekPlan
from eddyline.plan.parameters import map_expressions, substitute_parameters
from eddyline.repr.types import BIGINT, INTEGER, Kind, SqlType, numeric
from eddyline.sql.parse import ParsedStatement, parse
from eddyline.sql.statements import Delete, Insert, Select, Statement, Update
from eddyline.sql.text_shape import INT4, INT8, UNKNOWN_TEXT, TextShape, text_shape

__all__ = ["shared_statement"]

#: of a parameter: the value that a literal's text is of its type; None: the usual way shall see
_Read: TypeAlias = Callable[[str], LiteralValue]

_KINDS: Final = ("select_stmt", "insert_stmt", "update_stmt", "delete_stmt")
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,12})?")
_PLAIN: Final = {
    Kind.DATE: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    Kind.TIMESTAMP: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"),
    Kind.TIMESTAMPTZ: re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:[+-][0-9]{2}(?::[0-9]{2})?|Z)?"
    ),
    Kind.UUID: re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    Kind.BOOLEAN: re.compile(r"true|false|t|f"),
}


class _Shared(NamedTuple):
    statement: NamedStatement
    readers: tuple[_Read, ...]


class _Met(enum.Enum):
    """What is known of a shape whose texts are not shared, at one version of the catalog."""

    ONCE = "once"
    REFUSED = "refused"


def shared_statement(
    engine: Engine, text: str, catalog: SearchPathView, *, learn: bool = True
) -> tuple[NamedStatement, tuple[Literal, ...]] | None:
    """The statement with parameters that ``text`` is, and their values; None: it is to be bound by itself.

    Costs some µs, but for the second text of a shape, which is bound twice.  ``learn`` False: unless it is known.
    """
    shape = text_shape(text)
    if shape is None:
        return None
    shared = _known(engine, shape, catalog)
    if shared is None and learn:
        shared = _met(engine, text, shape, catalog)
    if shared is None:
        return None
    literals = _literals(shared.statement, shared.readers, shape.values)
    return None if literals is None else (shared.statement, literals)


def _known(engine: Engine, shape: TextShape, catalog: SearchPathView) -> _Shared | None:
    """What texts of the shape share, if it still means the same."""
    key = (shape.key, meaning_of(catalog)[1:])
    known = engine.cached_plan(key)
    if not isinstance(known, _Shared):
        return None
    statement = known.statement.still(catalog)
    if statement is None:
        return None
    if statement is not known.statement:
        known = known._replace(statement=statement)
        engine.cache_plan(key, known)
    return known


def _met(engine: Engine, text: str, shape: TextShape, catalog: SearchPathView) -> _Shared | None:
    """What texts of the shape share from now on, if it was met before and they can."""
    meaning = meaning_of(catalog)
    met = engine.cached_plan((shape.key, meaning))
    if met is _Met.REFUSED:
        return None
    learnt = _learnt(text, shape, catalog) if met is _Met.ONCE else None
    if learnt is not None:
        engine.cache_plan((shape.key, meaning[1:]), learnt)
    else:
        engine.cache_plan((shape.key, meaning), _Met.ONCE if met is None else _Met.REFUSED)
    return learnt


def _literals(statement: NamedStatement, readers: Sequence[_Read], values: Sequence[str]) -> tuple[Literal, ...] | None:
    literals = []
    for read, value, sql_type in zip(readers, values, statement.prepared.param_types, strict=True):
        literal = read(value)
        if literal is None:
            return None
        literals.append(Literal(literal, sql_type))
    return tuple(literals)


# -- learning ---------------------------------------------------------------------------------------------------------


def _learnt(text: str, shape: TextShape, catalog: SearchPathView) -> _Shared | None:
    """The shape's statement, if its texts can share one."""
    try:
        itself = _only_statement(text)
        template = _only_statement(shape.template())
        if itself is None or template is None:
            return None
        original = bind_parsed(itself, catalog)
    except (Error, RecursionError):  # the usual way says what is wrong
        return None
    if original.param_types or not _is_quick(original):
        return None
    for declared in ({}, _types_by_themselves(shape.marks)):
        try:
            statement = NamedStatement.bound(template, declared, catalog)
            readers = _readers(shape.marks, statement.prepared.param_types, catalog.zone)
            literals = None if readers is None else _literals(statement, readers, shape.values)
            if readers is not None and literals is not None and _same(statement.prepared, literals, original):
                return _Shared(statement, readers)
        except (Error, RecursionError):  # what a parameter is for was not to be told; or it is nested deeply
            continue
    return None


def _only_statement(text: str) -> ParsedStatement | None:
    statements = parse(text)
    return statements[0] if len(statements) == 1 and statements[0].kind in _KINDS else None


def _is_quick(prepared: Prepared) -> bool:
    """Whether what it reads is looked up by key, or constant."""
    plan = prepared.plan
    if plan is None or plan.clocked or plan.recursions:
        return False
    match prepared.statement:
        case Select(as_of=None, signals=()):
            return plan.join is not None or (isinstance(plan.fast, PeekPlan) and plan.fast.keys is not None)
        case Insert():
            return isinstance(plan.fast, ConstantPlan)
        case Update() | Delete():
            return isinstance(plan.fast, PeekPlan) and plan.fast.keys is not None
        case _:
            return False


def _same(prepared: Prepared, literals: Sequence[Literal], original: Prepared) -> bool:
    """Whether the statement with these values is the ``original``, which has none, and is run as that one.

    The plans are compared as they are run, the shared one without another look at its constants but for their casts:
    so errors of rows name the same expressions, too.
    """
    statement, wanted = prepared.statement, original.statement
    if prepared.guessed or prepared.plan is None or original.plan is None or type(statement) is not type(wanted):
        return False
    if _with_relation_of(statement, wanted) != wanted:
        return False
    ran = map_expressions(substitute_parameters(prepared.plan.relation, literals), _casts_done)
    return ran == original.plan.relation or _same_row(prepared.plan, literals, original.plan)


def _casts_done(expr: Expr) -> Expr:
    """The casts of literals that succeed are literals themselves, as planning makes them."""
    return rewrite(expr, lambda e: fold(e) if isinstance(e, Cast) and isinstance(e.input, Literal) else e)


def _same_row(shared: ReadPlan, literals: Sequence[Literal], original: ReadPlan) -> bool:
    """Whether ``shared`` with these values is the original's row, which VALUES of constants alone is read as.

    Parameters are taken as they are, or stored in a column of another length or scale: nothing is computed of them.
    """
    ours, theirs = shared.fast, original.fast
    if not isinstance(ours, ConstantPlan) or not isinstance(theirs, ConstantPlan) or len(ours.rows) != 1:
        return False
    for step in ours.mfp.steps:
        expr = step.expr if isinstance(step, MapStep) else None
        if isinstance(expr, Cast):
            expr = expr.input
        if not isinstance(expr, (Parameter, Literal)):
            return False
    row, wanted = rows_of_constants(ours, literals), rows_of_constants(theirs, ())
    return row.types == wanted.types and all(a.equals(b) for a, b in zip(row.columns, wanted.columns, strict=True))


def _with_relation_of(statement: Statement, other: Statement) -> Statement | None:
    """``statement`` with the relation of another of its kind: what is different then lies outside of it."""
    match statement, other:
        case Select(), Select():
            return dataclasses.replace(
                statement, query=dataclasses.replace(statement.query, relation=other.query.relation)
            )
        case Insert(), Insert():
            return dataclasses.replace(statement, relation=other.relation)
        case Update(), Update():
            return dataclasses.replace(statement, relation=other.relation)
        case Delete(), Delete():
            return dataclasses.replace(statement, relation=other.relation)
        case _:
            return None


# -- values -----------------------------------------------------------------------------------------------------------


def _types_by_themselves(marks: Sequence[str]) -> dict[int, SqlType]:
    """The types of numbers, where their place does not give them one."""
    found: dict[int, SqlType] = {}
    for number, mark in enumerate(marks, 1):
        match mark.lstrip("-"):
            case "i":
                found[number] = INTEGER
            case "l":
                found[number] = BIGINT
            case decimals if decimals.isdigit():
                found[number] = numeric(int(decimals))
    return found


def _readers(marks: Sequence[str], types: Sequence[SqlType], zone: str | None) -> tuple[_Read, ...] | None:
    """What makes values of the literals; None if some cannot be read."""
    if len(types) != len(marks):
        return None  # what looked like a literal is none
    known = UTC if zone is None else zone_of(zone)
    readers = [_reader(mark.lstrip("-"), sql_type, known) for mark, sql_type in zip(marks, types, strict=True)]
    return None if None in readers else tuple(r for r in readers if r is not None)


def _reader(mark: str, sql_type: SqlType, zone: Zone) -> _Read | None:
    kind = sql_type.kind
    if sql_type.length is not None or sql_type.precision is not None:
        return None
    if kind in INTEGER_LIMITS:
        return _integer(*INTEGER_LIMITS[kind]) if mark in (INT4, INT8, UNKNOWN_TEXT) else None
    match kind:
        case Kind.NUMERIC:
            return _numeric(sql_type.scale)
        case Kind.DOUBLE:
            return _double
        case Kind.TEXT | Kind.VARCHAR if mark == UNKNOWN_TEXT:
            return _text
        case _ if kind in _PLAIN and mark == UNKNOWN_TEXT:
            return _parsed(_PLAIN[kind], sql_type, zone)
        case _:
            return None


def _integer(low: int, high: int) -> _Read:
    def read(text: str) -> LiteralValue:
        if _DIGITS.fullmatch(text) is None:
            return None
        value = int(text)
        return value if low <= value <= high else None

    return read


def _numeric(scale: int | None) -> _Read:
    def read(text: str) -> LiteralValue:
        if _DECIMAL.fullmatch(text) is None or (scale is not None and len(text.partition(".")[2]) != scale):
            return None
        return None if text[0] == "-" and not text.strip("-0.") else text

    return read


def _double(text: str) -> LiteralValue:
    """Of up to 15 digits, of which every double has one nearest, whatever lies between: an integer, or a numeric."""
    if _DECIMAL.fullmatch(text) is None or len(text) > 15:
        return None
    value = float(text)
    return value if value or text[0] != "-" else None


def _text(text: str) -> LiteralValue:
    return text if text.isascii() or _encodable(text) else None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parsed(plain: re.Pattern[str], sql_type: SqlType, zone: Zone) -> _Read:
    def read(text: str) -> LiteralValue:
        if plain.fullmatch(text) is None:
            return None
        try:
            return parse_literal(text, sql_type, zone)
        except Error:  # the usual way says what is wrong, and where
            return None

    return read
