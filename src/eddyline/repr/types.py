"""SQL types and their physical columns.

A ``SqlType`` is what the binder reasons with; ``arrow_type`` gives the one Arrow layout in which columns of the
type travel inside the engine.  Every layout is one of three kinds, which is all that kernels and runs must know:

* *bits*: ``pa.bool_()`` (boolean);
* *fixed*: a fixed number of bytes per value;
* *varlen*: 64-bit offsets and bytes (text, bytea).

================  ============================  =====================================================
SQL               Arrow inside the engine       notes
================  ============================  =====================================================
boolean           bool                          bits
smallint          int16
int               int32
bigint            int64
numeric, scale s  decimal128(38, s)             every value of the column has display scale s
numeric           fixed_size_binary(24)         little-endian int64 words: low, high of the 128-bit
                                                two's-complement coefficient, then the display scale
real              float32
double precision  float64
text, varchar     large_string
char(n)           large_string                  stored without its trailing blanks, padded on output
bpchar            large_string                  of no declared length: trailing blanks as given, not part of its value
bytea             large_binary
date              date32                        ±infinity are the int32 extremes
time              time64[us]
timestamp         timestamp[us]                 ±infinity are the int64 extremes
timestamptz       timestamp[us, UTC]            same
interval          fixed_size_binary(16)         little-endian int32 months, int32 days, int64 µs
uuid              fixed_size_binary(16)         big-endian, as printed
json              large_string                  as it is written; results only, not in tables
arrays            large_binary                  see ``expr.array_layout``; ordered and equal as their bytes are
================  ============================  =====================================================

A numeric's ``scale`` is a fact about representation (all values show that many digits), not a constraint; a
declared ``numeric(p, s)`` has both.  ``precision`` is set only on declared types.

Each type of element has a kind of array, whose modifiers are those of the elements.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec
import pyarrow as pa

__all__ = [
    "ARRAY_KINDS",
    "BIGINT",
    "BOOLEAN",
    "BPCHAR",
    "BYTEA",
    "DATE",
    "DOUBLE",
    "ELEMENT_KINDS",
    "INTEGER",
    "INTERVAL",
    "JSON",
    "NUMERIC",
    "OID",
    "REAL",
    "SMALLINT",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "UNKNOWN",
    "UUID",
    "VARCHAR",
    "Kind",
    "SqlType",
    "array_type",
    "arrow_type",
    "element_type",
    "is_array",
    "is_vector",
    "numeric",
    "shows_blanks",
]


class Kind(enum.Enum):
    """The type families of the dialect; values are PostgreSQL's ``format_type`` names."""

    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    NUMERIC = "numeric"
    REAL = "real"
    DOUBLE = "double precision"
    TEXT = "text"
    VARCHAR = "character varying"
    BPCHAR = "character"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time without time zone"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    UUID = "uuid"
    JSON = "json"
    BOOLEAN_ARRAY = "boolean[]"
    SMALLINT_ARRAY = "smallint[]"
    INTEGER_ARRAY = "integer[]"
    BIGINT_ARRAY = "bigint[]"
    NUMERIC_ARRAY = "numeric[]"
    REAL_ARRAY = "real[]"
    DOUBLE_ARRAY = "double precision[]"
    TEXT_ARRAY = "text[]"
    VARCHAR_ARRAY = "character varying[]"
    BPCHAR_ARRAY = "character[]"
    BYTEA_ARRAY = "bytea[]"
    DATE_ARRAY = "date[]"
    TIME_ARRAY = "time without time zone[]"
    TIMESTAMP_ARRAY = "timestamp without time zone[]"
    TIMESTAMPTZ_ARRAY = "timestamp with time zone[]"
    UUID_ARRAY = "uuid[]"
    INT2VECTOR = "int2vector"  # smallint, of one dimension that counts from 0
    OIDVECTOR = "oidvector"  # bigint, the same
    UNKNOWN = "unknown"  # an untyped literal; binder only, never in a plan


class SqlType(msgspec.Struct, frozen=True):
    """A SQL type with its modifiers; equal types have equal physical layouts."""

    kind: Kind
    precision: int | None = None  # declared: of a numeric, or digits of a second (0 to 5; 6 is None)
    scale: int | None = None  # numeric only: the display scale of every value, None = per value
    length: int | None = None  # varchar(n), char(n)
    of_oids: bool = False  # bigint: an OID of the catalog; bigint[]: what clients are shown as oid[]

    def __str__(self) -> str:
        if self.kind in _VECTORS:
            return self.kind.value
        if self.kind in ELEMENT_KINDS:
            return f"{element_type(self)}[]"
        if self.precision is not None and self.kind is Kind.NUMERIC:
            return f"numeric({self.precision},{self.scale or 0})"
        if self.precision is not None:
            name, _, zone = self.kind.value.partition(" ")
            return f"{name}({self.precision}) {zone}"
        if self.length is not None:
            return f"{self.kind.value}({self.length})"
        return self.kind.value


#: of every kind of array the kind of its elements
ELEMENT_KINDS: Final = {
    **{kind: Kind(kind.value[:-2]) for kind in Kind if kind.value.endswith("[]")},
    Kind.INT2VECTOR: Kind.SMALLINT,
    Kind.OIDVECTOR: Kind.BIGINT,
}
_VECTORS: Final = frozenset({Kind.INT2VECTOR, Kind.OIDVECTOR})
#: the arrays that SQL has a name for: all but the vectors
ARRAY_KINDS: Final = {element: array for array, element in ELEMENT_KINDS.items() if array not in _VECTORS}

BOOLEAN: Final = SqlType(Kind.BOOLEAN)
SMALLINT: Final = SqlType(Kind.SMALLINT)
INTEGER: Final = SqlType(Kind.INTEGER)
BIGINT: Final = SqlType(Kind.BIGINT)
OID: Final = SqlType(Kind.BIGINT, of_oids=True)
NUMERIC: Final = SqlType(Kind.NUMERIC)
REAL: Final = SqlType(Kind.REAL)
DOUBLE: Final = SqlType(Kind.DOUBLE)
TEXT: Final = SqlType(Kind.TEXT)
VARCHAR: Final = SqlType(Kind.VARCHAR)
BPCHAR: Final = SqlType(Kind.BPCHAR)
BYTEA: Final = SqlType(Kind.BYTEA)
DATE: Final = SqlType(Kind.DATE)
TIME: Final = SqlType(Kind.TIME)
TIMESTAMP: Final = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ: Final = SqlType(Kind.TIMESTAMPTZ)
INTERVAL: Final = SqlType(Kind.INTERVAL)
UUID: Final = SqlType(Kind.UUID)
JSON: Final = SqlType(Kind.JSON)
UNKNOWN: Final = SqlType(Kind.UNKNOWN)


def shows_blanks(sql_type: SqlType) -> bool:
    """Whether values are stored with trailing blanks that no comparison sees (bpchar without a length)."""
    return sql_type.kind is Kind.BPCHAR and sql_type.length is None


def is_array(sql_type: SqlType) -> bool:
    return sql_type.kind in ELEMENT_KINDS


def is_vector(sql_type: SqlType) -> bool:
    """Whether it is int2vector or oidvector."""
    return sql_type.kind in _VECTORS


def element_type(array: SqlType) -> SqlType:
    """The type of an array's elements, modifiers included; KeyError for what is no array."""
    return SqlType(ELEMENT_KINDS[array.kind], array.precision, array.scale, array.length, array.of_oids)


def array_type(element: SqlType) -> SqlType | None:
    """The type of arrays of ``element``; None for intervals and for arrays, which have none."""
    kind = ARRAY_KINDS.get(element.kind)
    return None if kind is None else SqlType(kind, element.precision, element.scale, element.length, element.of_oids)


def numeric(scale: int | None, precision: int | None = None) -> SqlType:
    """numeric whose every value has display scale ``scale`` (None: per value)."""
    return SqlType(Kind.NUMERIC, precision=precision, scale=scale)


_ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.TEXT: pa.large_string(),
    Kind.VARCHAR: pa.large_string(),
    Kind.BPCHAR: pa.large_string(),
    Kind.BYTEA: pa.large_binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    Kind.INTERVAL: pa.binary(16),
    Kind.UUID: pa.binary(16),
    Kind.JSON: pa.large_string(),
}

_ARRAYS: Final = pa.large_binary()

NUMERIC_BYTES: Final = 24


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The physical layout of a column of ``sql_type``; it is an error to ask for UNKNOWN's."""
    if sql_type.kind in ELEMENT_KINDS:
        return _ARRAYS
    if sql_type.kind is Kind.NUMERIC:
        if sql_type.scale is None:
            return pa.binary(NUMERIC_BYTES)
        return pa.decimal128(38, sql_type.scale)
    return _ARROW[sql_type.kind]
