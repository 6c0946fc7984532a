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
================  ============================  =====================================================

A numeric's ``scale`` is a fact about representation (all values show that many digits), not a constraint; a
declared ``numeric(p, s)`` has both.  ``precision`` is set only on declared types.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec
import pyarrow as pa

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "BPCHAR",
    "BYTEA",
    "DATE",
    "DOUBLE",
    "INTEGER",
    "INTERVAL",
    "NUMERIC",
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
    "arrow_type",
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
    UNKNOWN = "unknown"  # an untyped literal; binder only, never in a plan


class SqlType(msgspec.Struct, frozen=True):
    """A SQL type with its modifiers; equal types have equal physical layouts."""

    kind: Kind
    precision: int | None = None  # declared: of a numeric, or digits of a second (0 to 5; 6 is None)
    scale: int | None = None  # numeric only: the display scale of every value, None = per value
    length: int | None = None  # varchar(n), char(n)

    def __str__(self) -> str:
        if self.precision is not None and self.kind is Kind.NUMERIC:
            return f"numeric({self.precision},{self.scale or 0})"
        if self.precision is not None:
            name, _, zone = self.kind.value.partition(" ")
            return f"{name}({self.precision}) {zone}"
        if self.length is not None:
            return f"{self.kind.value}({self.length})"
        return self.kind.value


BOOLEAN: Final = SqlType(Kind.BOOLEAN)
SMALLINT: Final = SqlType(Kind.SMALLINT)
INTEGER: Final = SqlType(Kind.INTEGER)
BIGINT: Final = SqlType(Kind.BIGINT)
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
UNKNOWN: Final = SqlType(Kind.UNKNOWN)


def shows_blanks(sql_type: SqlType) -> bool:
    """Whether values are stored with trailing blanks that no comparison sees (bpchar without a length)."""
    return sql_type.kind is Kind.BPCHAR and sql_type.length is None


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
}

NUMERIC_BYTES: Final = 24


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The physical layout of a column of ``sql_type``; it is an error to ask for UNKNOWN's."""
    if sql_type.kind is Kind.NUMERIC:
        if sql_type.scale is None:
            return pa.binary(NUMERIC_BYTES)
        return pa.decimal128(38, sql_type.scale)
    return _ARROW[sql_type.kind]
