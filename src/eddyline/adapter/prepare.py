"""From statement text to something ready to run, cached by text and what the session calls things.

A plan stays for as long as its premises hold, whatever else changes in the catalog.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from eddyline.adapter.engine import Engine
from eddyline.adapter.premises import AskedCatalog, Premises
from eddyline.adapter.read_plan import ReadPlan, plan_read
from eddyline.errors import Error, ProgrammingError, make_error, unsupported
from eddyline.expr.arithmetic import INTEGER_LIMITS
from eddyline.expr.ir import Literal, LiteralValue
from eddyline.expr.text_io import literal_from_python, parse_literal
from eddyline.expr.timezone import UTC, Zone, zone_of
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    array_type,
)
from eddyline.sql.bind_statement import bind_statement
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.habits import placeholder_hint
from eddyline.sql.parse import ParsedStatement, parse
from eddyline.sql.qmark import qmark_to_dollar
from eddyline.sql.role_statements import says_a_password
from eddyline.sql.statements import Delete, Insert, Select, Statement, Update

__all__ = ["MAX_CACHED_CHARS", "Prepared", "bind_parsed", "is_prepared", "literals_of", "prepare_text"]

#: longer texts are parsed each time
MAX_CACHED_CHARS = 20_000
_MOST_DIGITS = 19  # of a bigint
#: what rounds to more than this is no finite float32
_MAX_REAL = (2.0 - 2.0**-24) * 2.0**127
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)


@dataclass(frozen=True, slots=True)
class Prepared:
    """``param_types[i - 1]`` is the type of ``$i``.  ``plan``: of what a SELECT, INSERT, UPDATE or DELETE
    reads.

    ``guessed``: a type came from the Python values given, so that other values need another look.
    ``premises``: of the catalog, where it is right.
    """

    statement: Statement
    param_types: tuple[SqlType, ...]
    plan: ReadPlan | None
    premises: Premises
    guessed: bool = False


class _Cached(NamedTuple):
    """``version``: of the catalog that the premises were last found to hold in."""

    version: int
    prepared: Prepared


def prepare_text(engine: Engine, text: str, catalog: CatalogView, parameters: Sequence[Any] | None) -> Prepared | None:
    """The one statement of ``text``; None if there is none.  42601 if there are several."""
    if not isinstance(text, str):
        raise ProgrammingError(f"a statement is a str, not a {type(text).__name__}")
    _check_sequence(parameters)
    key = _key(text, catalog, plain=parameters is None)
    known = _known(engine, key, catalog)
    if known is not None:
        return known
    source = qmark_to_dollar(text)[0] if parameters is not None else text
    statements = parse(source)
    if not statements:
        return None
    if len(statements) > 1:
        raise make_error(
            "42601", "cannot execute several statements at once", hint="Use executescript for a script of statements."
        )
    try:
        prepared = bind_parsed(statements[0], catalog, parameters)
    except Error as error:
        if parameters is not None and error.hint is None:
            error.hint = placeholder_hint(text)  # what other drivers' parameters look like reads as an operator
        raise
    if len(text) <= MAX_CACHED_CHARS and not prepared.guessed and not says_a_password(prepared.statement):
        engine.cache_plan(key, _Cached(catalog.version, prepared))
    return prepared


def is_prepared(engine: Engine, text: str, catalog: CatalogView) -> bool:
    """Whether ``prepare_text`` knows ``text``, without parameters."""
    return _known(engine, _key(text, catalog, plain=True), catalog) is not None


def _key(text: str, catalog: CatalogView, *, plain: bool) -> object:
    return text, catalog.search_path, catalog.zone, catalog.users, catalog.cluster, plain


def _known(engine: Engine, key: object, catalog: CatalogView) -> Prepared | None:
    cached = engine.cached_plan(key)
    if not isinstance(cached, _Cached):
        return None
    if cached.version != catalog.version or cached.prepared.premises.of_session:
        if not cached.prepared.premises.hold(catalog):
            return None
        engine.cache_plan(key, cached._replace(version=catalog.version))
    return cached.prepared


def bind_parsed(
    parsed: ParsedStatement,
    catalog: CatalogView,
    parameters: Sequence[Any] | None = None,
    declared: dict[int, SqlType] | None = None,
) -> Prepared:
    """Types that neither the statement nor ``declared`` decides come from the Python values given, if any."""
    types = dict(declared or {})
    guessed = False
    catalog = AskedCatalog(catalog)
    try:
        statement = bind_statement(parsed, catalog, types)
    except Error as undecided:
        if undecided.sqlstate not in ("42P18", "42725", "42883") or not parameters:
            raise
        types = {i: t for i, value in enumerate(parameters, 1) if (t := _python_type(value)) is not None}
        types.update(declared or {})
        guessed = True
        statement = bind_statement(parsed, catalog, types)
    plan: ReadPlan | None = None
    if isinstance(statement, Select):
        plan = plan_read(statement.query.relation, catalog)
    elif isinstance(statement, (Insert, Update, Delete)):
        plan = plan_read(statement.relation, catalog)
    count = max(types, default=0)
    param_types = tuple(types.get(i, TEXT) for i in range(1, count + 1))
    return Prepared(statement, param_types, plan, catalog.premises(), guessed)


def _python_type(value: Any) -> SqlType | None:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return BIGINT if -(2**63) <= value < 2**63 else NUMERIC
        case float():
            return DOUBLE
        case Decimal():
            return NUMERIC
        case str():
            return TEXT
        case bytes() | bytearray() | memoryview():
            return BYTEA
        case dt.datetime():
            return TIMESTAMP if value.tzinfo is None else TIMESTAMPTZ
        case dt.date():
            return DATE
        case dt.time():
            return TIME
        case dt.timedelta():
            return INTERVAL
        case uuid.UUID():
            return UUID
        case list():
            known = [t for v in _leaves(value) if (t := _python_type(v)) is not None]
            return array_type(known[0] if known and all(t == known[0] for t in known) else TEXT)
        case _:
            return None


def _leaves(values: Any) -> list[Any]:
    """What stands in lists, however deep."""
    return [leaf for v in values for leaf in _leaves(v)] if isinstance(values, list) else [values]


def _check_sequence(parameters: object) -> None:
    if parameters is not None and (isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence)):
        if isinstance(parameters, Mapping):
            hint = "Parameters have no names: write $1, $2 … or ?, and pass a list."
        else:
            hint = "Pass a list or tuple, of one value too: [value]."
        raise ProgrammingError(
            f"parameters must be a sequence of values, not a {type(parameters).__name__}", sqlstate="42601", hint=hint
        )


def literals_of(
    types: Sequence[SqlType], parameters: Sequence[Any] | None, zone: str | None = None
) -> tuple[Literal, ...]:
    """The Python values as literals of the parameters' types; times without a zone are in ``zone``.

    08P01 for a wrong number of them, 42804 and the types' input errors for wrong values.
    """
    _check_sequence(parameters)
    given = () if parameters is None else parameters
    if len(given) != len(types):
        # A mistake in the program, unlike the other errors of class 08.
        raise ProgrammingError(
            f"the statement takes {len(types)} parameter{'' if len(types) == 1 else 's'}, "
            f"{len(given)} {'was' if len(given) == 1 else 'were'} given",
            sqlstate="08P01",
        )
    if zone is not None:
        given = [_in_zone(value, sql_type) for value, sql_type in zip(given, types, strict=True)]
    known = UTC if zone is None else zone_of(zone)
    return tuple(
        _literal(value, sql_type, i, known) for i, (value, sql_type) in enumerate(zip(given, types, strict=True), 1)
    )


def _in_zone(value: Any, sql_type: SqlType) -> Any:
    """A date, or a datetime without a zone, as text, which is read in the session's; 0A000 for such in a list."""
    if sql_type.kind is Kind.TIMESTAMPTZ_ARRAY and isinstance(value, list):
        if any(isinstance(v, str) or _is_local(v) for v in _leaves(value)):
            raise unsupported(
                "a list of times without a zone in a session whose TimeZone is not UTC",
                hint="Give them a zone, or pass the whole array as text.",
            )
        return value
    return str(value) if sql_type.kind is Kind.TIMESTAMPTZ and _is_local(value) else value


def _is_local(value: Any) -> bool:
    if isinstance(value, dt.datetime):
        return value.tzinfo is None and value == value  # noqa: PLR0124 - not NaT
    return isinstance(value, dt.date)


def _literal(value: Any, sql_type: SqlType, number: int, zone: Zone) -> Literal:
    try:
        if isinstance(value, np.generic):
            value = _python_scalar(value)
        if isinstance(value, dt.datetime) and value != value:  # noqa: PLR0124 - pandas' NaT, which is a datetime
            value = None
        if isinstance(value, str):
            _check_text(value)
            if sql_type.kind not in _TEXTS:
                return Literal(parse_literal(value, sql_type, zone), sql_type)
        elif isinstance(value, float | Decimal) and sql_type.kind in INTEGER_LIMITS and _is_whole(value):
            value = int(value)
        elif sql_type.kind in _TEXTS and isinstance(value, (int, float, Decimal, dt.date, uuid.UUID)):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        literal = literal_from_python(value, sql_type)
        _check_range(literal, sql_type.kind)
        return Literal(literal, sql_type)
    except (OverflowError, ValueError) as problem:  # Python's own: an int of thousands of digits, a NaN that signals
        raise make_error(
            "22003", f"value is out of range for type {sql_type.kind.value}", detail=f"parameter ${number}"
        ) from problem
    except Error as error:
        if error.detail is None:
            error.detail = f"parameter ${number}"
        raise


def _is_whole(value: float | Decimal) -> bool:
    if isinstance(value, Decimal):  # 1e999999 is too large for any type, and for memory
        return value.is_finite() and value.adjusted() < _MOST_DIGITS and value == value.to_integral_value()
    return value.is_integer()


def _python_scalar(value: np.generic) -> Any:
    """NumPy's scalar as Python's; its times to the microsecond."""
    match value:
        case np.datetime64():
            return value.astype("datetime64[us]").item()
        case np.timedelta64():
            return value.astype("timedelta64[us]").item()
        case _:
            return value.item()


def _check_range(literal: LiteralValue, kind: Kind) -> None:
    limits = INTEGER_LIMITS.get(kind)
    if limits is not None:
        fits = literal is None or limits[0] <= int(literal) <= limits[1]
    else:
        fits = kind is not Kind.REAL or literal is None or not _MAX_REAL < abs(float(literal)) < float("inf")
    if not fits:
        raise make_error("22003", f'value "{literal}" is out of range for type {kind.value}')


def _check_text(value: str) -> None:
    if "\x00" in value:
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": a lone surrogate') from problem
