"""Random columns of every SQL type, with the values that break things: extremes, NaN, -0, equal but not identical."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pyarrow as pa

from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BPCHAR,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    arrow_type,
    numeric,
    shows_blanks,
)

__all__ = ["ALL_TYPES", "random_column"]

ALL_TYPES: Final = (
    BOOLEAN,
    SMALLINT,
    INTEGER,
    BIGINT,
    numeric(2),
    NUMERIC,
    REAL,
    DOUBLE,
    TEXT,
    VARCHAR,
    BPCHAR,
    BYTEA,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    INTERVAL,
    UUID,
)


def _numeric_image(coefficient: int, scale: int) -> bytes:
    return coefficient.to_bytes(16, "little", signed=True) + scale.to_bytes(8, "little")


_TEXTS: Final = [
    "",
    "a",
    "a\0",
    "a\0b",
    "ab",
    "abcdefgh",
    "abcdefghi",
    "zürich",
    "ÿ",
    "\U0001f300",
    "longer than eight bytes",
]
_PADDED: Final = [*_TEXTS, " ", "a ", "a   ", "ab ", "abcdefgh  ", "abcdefghi ", "longer than eight bytes  "]
_FLOATS: Final = [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf"), 5e-40, 3.0e38]
_NUMERICS: Final = [
    (0, 0), (0, 3), (1, 0), (10, 1), (100, 2), (-1, 0), (-10, 1), (15, 1), (150, 2), (10**38 - 1, 0), (1, 38),
    (-(10**38) + 1, 2), (10**30, 30), (123456789012345678901234567890, 5), (2**63, 0), (-(2**63) - 1, 0),
    (10**38 - 1, 30),
]  # fmt: skip
_INTERVALS: Final = [
    (0, 0, 0), (1, 0, 0), (0, 30, 0), (0, 29, 86_400_000_000), (-1, 0, 0), (0, -30, 0), (0, 1, -1),
    (0, 0, 86_399_999_999),
    (2**31 - 1, 2**31 - 1, 2**63 - 1), (-(2**31), -(2**31), -(2**63)),
]  # fmt: skip


def _integers(bits: int) -> list[int]:
    top = 2 ** (bits - 1)
    return [0, 1, -1, 2, 7, top - 1, -top, top // 2]


def _value(kind: SqlType, rng: Random) -> Any:
    """One physical value; from a small pool, so that equal ones are frequent."""
    pools: dict[Kind, Callable[[], Any]] = {
        Kind.BOOLEAN: lambda: rng.random() < 0.5,
        Kind.SMALLINT: lambda: rng.choice(_integers(16)),
        Kind.INTEGER: lambda: rng.choice(_integers(32)),
        Kind.BIGINT: lambda: rng.choice(_integers(64)),
        Kind.REAL: lambda: rng.choice(_FLOATS),
        Kind.DOUBLE: lambda: rng.choice([*_FLOATS, 1e300, 5e-324]),
        Kind.BYTEA: lambda: rng.choice(_TEXTS).encode(),
        Kind.DATE: lambda: rng.choice(_integers(32)),
        Kind.TIME: lambda: rng.choice([0, 1, 86_399_999_999]),
        Kind.TIMESTAMP: lambda: rng.choice(_integers(64)),
        Kind.TIMESTAMPTZ: lambda: rng.choice(_integers(64)),
        Kind.INTERVAL: lambda: struct.pack("<iiq", *rng.choice(_INTERVALS)),
        Kind.UUID: lambda: bytes([rng.choice([0, 255])]) * 15 + bytes([rng.randrange(3)]),
    }
    if kind.kind is Kind.NUMERIC:
        if kind.scale is None:
            return _numeric_image(*rng.choice(_NUMERICS))
        return rng.choice([0, 1, -1, 100, 10**38 - 1, 1 - 10**38, 2**64, -(2**64)])
    texts = _PADDED if shows_blanks(kind) else _TEXTS
    return pools.get(kind.kind, lambda: rng.choice(texts))()


def random_column(kind: SqlType, rows: int, rng: Random, *, nulls: float = 0.2, sliced: bool = True) -> pa.Array:
    """A column of ``rows`` values; ``sliced``: with an offset into larger buffers."""
    before, after = (rng.randrange(10), rng.randrange(3)) if sliced else (0, 0)
    values = [None if rng.random() < nulls else _value(kind, rng) for _ in range(before + rows + after)]
    layout = arrow_type(kind)
    if pa.types.is_decimal(layout):
        words = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in values)
        valid = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
        array = pa.Array.from_buffers(layout, len(values), [valid, pa.py_buffer(words)])
    elif pa.types.is_integer(layout) or pa.types.is_temporal(layout):
        bits = layout.bit_width
        array = pa.array(values, pa.int16() if bits == 16 else pa.int32() if bits == 32 else pa.int64()).view(layout)
    else:
        array = pa.array(values, layout)
    return array.slice(before, rows)
