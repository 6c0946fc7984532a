"""SQL types as clients know them: OIDs, lengths and modifiers, and back."""

from __future__ import annotations

from typing import Final, NamedTuple

from eddyline.adapter.pg_objects import TYPE_IDS, type_modifier
from eddyline.errors import make_error
from eddyline.repr.type_facts import OID_ARRAY
from eddyline.repr.types import Kind, SqlType, is_array

__all__ = ["ColumnShape", "declared_type", "shape_of"]

_UNDECIDED: Final = (0, 705)  # none, and `unknown`


class ColumnShape(NamedTuple):
    """What RowDescription says of a column's type.  ``length``: bytes, negative where it varies."""

    oid: int
    length: int
    modifier: int


_SHAPES: Final = {**TYPE_IDS, Kind.UNKNOWN: TYPE_IDS[Kind.TEXT]}
_KINDS: Final = {oid: kind for kind, (oid, _) in _SHAPES.items() if kind not in (Kind.UNKNOWN, Kind.JSON)}


def shape_of(sql_type: SqlType) -> ColumnShape:
    oid, length = _SHAPES[sql_type.kind]
    if sql_type.of_oids and is_array(sql_type):
        oid = OID_ARRAY
    return ColumnShape(oid, length, type_modifier(sql_type))


def declared_type(oid: int, number: int) -> SqlType | None:
    """The type that a client declares for parameter ``number``; None where it leaves it open; 42704 for others."""
    if oid in _UNDECIDED:
        return None
    if oid == OID_ARRAY:
        return SqlType(Kind.BIGINT_ARRAY, of_oids=True)
    kind = _KINDS.get(oid)
    if kind is None:
        raise make_error(
            "42704",
            f"type with OID {oid} does not exist",
            detail=f"It is the declared type of parameter ${number}.",
            hint="Leave the parameter's type open, or cast it in the statement.",
        )
    return SqlType(kind)
