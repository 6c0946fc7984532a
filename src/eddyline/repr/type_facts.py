"""What PostgreSQL says of the types: OIDs, names, lengths."""

from __future__ import annotations

from typing import Final, NamedTuple

from eddyline.repr.types import ARRAY_KINDS, Kind

__all__ = ["OID_ARRAY", "OID_ELEMENT", "TYPE_FACTS", "TypeFacts"]


#: of arrays of OIDs, and of what is in them
OID_ARRAY: Final = 1028
OID_ELEMENT: Final = 26


class TypeFacts(NamedTuple):
    """``pg_type``'s row of a type.  ``length``: bytes, -1 where it varies; ``array``, ``element``: OIDs, 0 for none."""

    oid: int
    name: str
    length: int
    category: str
    array: int
    preferred: bool = False
    element: int = 0


_ELEMENTS: Final[dict[Kind, TypeFacts]] = {
    Kind.BOOLEAN: TypeFacts(16, "bool", 1, "B", 1000, preferred=True),
    Kind.BYTEA: TypeFacts(17, "bytea", -1, "U", 1001),
    Kind.BIGINT: TypeFacts(20, "int8", 8, "N", 1016),
    Kind.SMALLINT: TypeFacts(21, "int2", 2, "N", 1005),
    Kind.INTEGER: TypeFacts(23, "int4", 4, "N", 1007),
    Kind.TEXT: TypeFacts(25, "text", -1, "S", 1009, preferred=True),
    Kind.REAL: TypeFacts(700, "float4", 4, "N", 1021),
    Kind.DOUBLE: TypeFacts(701, "float8", 8, "N", 1022, preferred=True),
    Kind.BPCHAR: TypeFacts(1042, "bpchar", -1, "S", 1014),
    Kind.VARCHAR: TypeFacts(1043, "varchar", -1, "S", 1015),
    Kind.DATE: TypeFacts(1082, "date", 4, "D", 1182),
    Kind.TIME: TypeFacts(1083, "time", 8, "D", 1183),
    Kind.TIMESTAMP: TypeFacts(1114, "timestamp", 8, "D", 1115),
    Kind.TIMESTAMPTZ: TypeFacts(1184, "timestamptz", 8, "D", 1185, preferred=True),
    Kind.INTERVAL: TypeFacts(1186, "interval", 16, "T", 0, preferred=True),
    Kind.NUMERIC: TypeFacts(1700, "numeric", -1, "N", 1231),
    Kind.UUID: TypeFacts(2950, "uuid", 16, "U", 2951),
    Kind.JSON: TypeFacts(114, "json", -1, "U", 0),
}
#: of the types that there are
TYPE_FACTS: Final[dict[Kind, TypeFacts]] = {
    **_ELEMENTS,
    **{
        array: TypeFacts(_ELEMENTS[kind].array, f"_{_ELEMENTS[kind].name}", -1, "A", 0, element=_ELEMENTS[kind].oid)
        for kind, array in ARRAY_KINDS.items()
    },
    Kind.INT2VECTOR: TypeFacts(22, "int2vector", -1, "A", 0, element=21),
    Kind.OIDVECTOR: TypeFacts(30, "oidvector", -1, "A", 0, element=20),
}
