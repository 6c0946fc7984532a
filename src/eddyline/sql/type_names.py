"""Type names in SQL text: PostgreSQL's spellings and typmods to ``SqlType``.

Errors: 42704 for a type that does not exist, 22023 for typmods out of range, 0A000 for types we do not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.expr.datetime_precision import DATETIME_PRECISION
from eddyline.repr.types import OID, Kind, SqlType, array_type, numeric
from eddyline.sql.ast import AstNode, expect_fields, name_list

__all__ = ["TYPE_KINDS", "type_of_name"]

TYPE_KINDS: Final[dict[str, Kind]] = {
    "bool": Kind.BOOLEAN,
    "int2": Kind.SMALLINT,
    "int4": Kind.INTEGER,
    "int8": Kind.BIGINT,
    "numeric": Kind.NUMERIC,
    "float4": Kind.REAL,
    "float8": Kind.DOUBLE,
    "text": Kind.TEXT,
    "varchar": Kind.VARCHAR,
    "bpchar": Kind.BPCHAR,
    "bytea": Kind.BYTEA,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ,
    "interval": Kind.INTERVAL,
    "uuid": Kind.UUID,
}
#: types of the catalog's columns, which are other ones here
_CATALOG_KINDS: Final = {
    "oid": Kind.BIGINT,
    "name": Kind.TEXT,
    "char": Kind.TEXT,
    "aclitem": Kind.TEXT,
    "int2vector": Kind.INT2VECTOR,
    "oidvector": Kind.OIDVECTOR,
}
_UNSUPPORTED: Final = frozenset(
    [
        "json",
        "jsonb",
        "jsonpath",
        "xml",
        "money",
        "bit",
        "varbit",
        "point",
        "line",
        "lseg",
        "box",
        "path",
        "polygon",
        "circle",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "name",
        "char",
        "oid",
        "regclass",
        "regtype",
        "regproc",
        "regnamespace",
        "regrole",
        "tsvector",
        "tsquery",
        "timetz",
        "int4range",
        "int8range",
        "numrange",
        "daterange",
        "tsrange",
        "tstzrange",
        "int4multirange",
        "hstore",
        "record",
        "void",
        "pg_lsn",
        "xid",
        "cid",
        "tid",
        "int2vector",
        "oidvector",
    ]
)
MAX_PRECISION: Final = 38
MAX_LENGTH: Final = 10_485_760
_ALL_INTERVAL_FIELDS: Final = 0x7FFF
_TIMES: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def type_of_name(node: AstNode, locate: Callable[[int], int | None], *, catalog_types: bool = False) -> SqlType:
    """The type that a TypeName node names.  ``catalog_types``: those of the catalog's columns too, as what they are
    here."""
    position = locate(node.location)
    expect_fields(node, ("names", "typmods", "typemod", "array_bounds", "location"), position)
    names = name_list(node.names)
    name = names[-1]
    known = {**TYPE_KINDS, **_CATALOG_KINDS} if catalog_types else TYPE_KINDS
    kind = known.get(name) if len(names) == 1 or names[-2] == "pg_catalog" else None
    if name == "char" and len(names) == 1 and not node.array_bounds:
        kind = None  # which would have to cut off all but the first byte
    if kind is None:
        if name in _UNSUPPORTED and name not in ("record", "void"):
            raise unsupported(f"type {name}", position=position)
        raise make_error("42704", f'type "{".".join(names)}" does not exist', position=position)
    typmods = [_typmod(m, name, position) for m in node.typmods]
    found = OID if name == "oid" else _apply_typmods(kind, name, typmods, position)
    if not node.array_bounds:  # what is declared of dimensions means nothing
        return found
    array = array_type(found)
    if array is None:
        raise unsupported(f"an array of {kind.value}", position=position)
    return array


def _typmod(node: AstNode, name: str, position: int | None) -> int:
    const = node.a_const
    if node.WhichOneof("node") != "a_const" or const.WhichOneof("val") != "ival":
        raise make_error("42601", "type modifiers must be simple constants or identifiers", position=position)
    return int(const.ival.ival)


def _apply_typmods(kind: Kind, name: str, typmods: list[int], position: int | None) -> SqlType:
    if kind is Kind.NUMERIC and typmods:
        return _numeric(typmods, position)
    if kind in (Kind.VARCHAR, Kind.BPCHAR):
        return _string(kind, name, typmods, position)
    if kind is Kind.INTERVAL and typmods and (typmods[0] != _ALL_INTERVAL_FIELDS or typmods[1:] not in ([], [6])):
        raise unsupported("interval with fields or precision", position=position)
    if kind in _TIMES and typmods:
        # more digits than there are mean all of them
        return SqlType(kind, precision=typmods[0] if typmods[0] < DATETIME_PRECISION else None)
    if typmods and kind is not Kind.INTERVAL:
        raise make_error("42601", f'type modifier is not allowed for type "{name}"', position=position)
    return SqlType(kind)


def _numeric(typmods: list[int], position: int | None) -> SqlType:
    precision, scale = (*typmods, 0)[:2]
    if len(typmods) > 2:
        raise make_error("22023", "invalid NUMERIC type modifier", position=position)
    if not 1 <= precision <= 1000:
        raise make_error("22023", f"NUMERIC precision {precision} must be between 1 and 1000", position=position)
    if not -1000 <= scale <= 1000:
        raise make_error("22023", f"NUMERIC scale {scale} must be between -1000 and 1000", position=position)
    if precision > MAX_PRECISION or not 0 <= scale <= MAX_PRECISION:
        raise unsupported(
            f"numeric({precision},{scale})",
            position=position,
            hint=f"Precision is at most {MAX_PRECISION}, and scale lies between 0 and {MAX_PRECISION}.",
        )
    return numeric(scale, precision)


def _string(kind: Kind, name: str, typmods: list[int], position: int | None) -> SqlType:
    shown = "char" if kind is Kind.BPCHAR else "varchar"
    if not typmods:
        return SqlType(kind)
    if len(typmods) != 1:
        raise make_error("22023", "invalid type modifier", position=position)
    if typmods[0] < 1:
        raise make_error("22023", f"length for type {shown} must be at least 1", position=position)
    if typmods[0] > MAX_LENGTH:
        raise make_error("22023", f"length for type {shown} cannot exceed {MAX_LENGTH}", position=position)
    return SqlType(kind, length=typmods[0])
