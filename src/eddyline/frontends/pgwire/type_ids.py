"""SQL types as clients know them: OIDs, lengths and modifiers, and back."""

from __future__ import annotations

from typing import Final, NamedTuple

from eddyline.errors import make_error
from eddyline.repr.types import Kind, SqlType

__all__ = ["ColumnShape", "declared_type", "shape_of"]

_UNDECIDED: Final = (0, 705)  # none, and `unknown`


class ColumnShape(NamedTuple):
    """What RowDescription says of a column's type.  ``length``: bytes, negative where it varies."""

    oid: int
    length: int
    modifier: int


_SHAPES: Final[dict[Kind, tuple[int, int]]] = {
    Kind.BOOLEAN: (16, 1),
    Kind.BYTEA: (17, -1),
    Kind.BIGINT: (20, 8),
    Kind.SMALLINT: (21, 2),
    Kind.INTEGER: (23, 4),
    Kind.TEXT: (25, -1),
    Kind.REAL: (700, 4),
    Kind.DOUBLE: (701, 8),
    Kind.BPCHAR: (1042, -1),
    Kind.VARCHAR: (1043, -1),
    Kind.DATE: (1082, 4),
    Kind.TIME: (1083, 8),
    Kind.TIMESTAMP: (1114, 8),
    Kind.TIMESTAMPTZ: (1184, 8),
    Kind.INTERVAL: (1186, 16),
    Kind.NUMERIC: (1700, -1),
    Kind.UUID: (2950, 16),
    Kind.UNKNOWN: (25, -1),
}
_KINDS: Final = {oid: kind for kind, (oid, _) in _SHAPES.items() if kind is not Kind.UNKNOWN}
_HEADER: Final = 4  # modifiers count the length word of a value too


def shape_of(sql_type: SqlType) -> ColumnShape:
    oid, length = _SHAPES[sql_type.kind]
    return ColumnShape(oid, length, _modifier(sql_type))


def _modifier(sql_type: SqlType) -> int:
    """-1 for none."""
    if sql_type.length is not None:
        return sql_type.length + _HEADER
    if sql_type.precision is None:
        return -1
    if sql_type.kind is Kind.NUMERIC:
        return ((sql_type.precision << 16) | ((sql_type.scale or 0) & 0x7FF)) + _HEADER
    return sql_type.precision


def declared_type(oid: int, number: int) -> SqlType | None:
    """The type that a client declares for parameter ``number``; None where it leaves it open; 42704 for others."""
    if oid in _UNDECIDED:
        return None
    kind = _KINDS.get(oid)
    if kind is None:
        raise make_error(
            "42704",
            f"type with OID {oid} does not exist",
            detail=f"It is the declared type of parameter ${number}.",
            hint="Leave the parameter's type open, or cast it in the statement.",
        )
    return SqlType(kind)
