"""Literals, Python values and text, there and back."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DataError, ProgrammingError
from eddyline.expr.literals import literal_from_python, literal_scalar, literal_to_python, scalar_literal
from eddyline.expr.text_io import (
    format_column,
    format_value,
    from_python,
    literal_array,
    parse_literal,
    sample_rows,
    to_python,
)
from eddyline.expr.text_output import format_float
from eddyline.repr.interval import Interval
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    arrow_type,
    numeric,
)

VALUES = [
    (BOOLEAN, True, "t"),
    (INTEGER, -7, "-7"),
    (BIGINT, 2**63 - 1, "9223372036854775807"),
    (NUMERIC, Decimal("1.50"), "1.50"),
    (NUMERIC, Decimal("-0.00001"), "-0.00001"),
    (numeric(3), Decimal("2.500"), "2.500"),
    (numeric(0), Decimal("-12345678901234567890123456789012345678"), "-12345678901234567890123456789012345678"),
    (REAL, 0.5, "0.5"),
    (DOUBLE, 1e300, "1e+300"),
    (TEXT, "héé", "héé"),
    (SqlType(Kind.BPCHAR, length=4), "ab  ", "ab  "),
    (BYTEA, b"\x00\xff", "\\x00ff"),
    (UUID, uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (DATE, dt.date(2024, 2, 29), "2024-02-29"),
    (TIME, dt.time(1, 2, 3, 450000), "01:02:03.45"),
    (TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 1), "1969-12-31 23:59:59.000001"),
    (TIMESTAMPTZ, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "2024-01-01 00:00:00+00"),
    (INTERVAL, Interval(14, -3, 14_706_700_000), "1 year 2 mons -3 days +04:05:06.7"),
]


@pytest.mark.parametrize(("sql_type", "value", "text"), VALUES, ids=str)
def test_values_make_the_round_trip(sql_type: SqlType, value: object, text: str) -> None:
    literal = literal_from_python(value, sql_type)  # type: ignore[arg-type]  # of any type
    assert literal_to_python(literal, sql_type) == value
    assert format_value(literal, sql_type) == text
    assert parse_literal(text, sql_type) == literal
    scalar = literal_scalar(literal, sql_type)
    assert scalar.type == arrow_type(sql_type)
    assert scalar_literal(scalar, sql_type) == literal
    column = literal_array(literal, sql_type, 3)
    assert to_python(column, sql_type) == [value] * 3
    assert from_python([value, None], sql_type).equals(pa.array([scalar, None], scalar.type))  # type: ignore[list-item]  # of any type


@pytest.mark.parametrize("sql_type", [v[0] for v in VALUES], ids=str)
def test_null_is_none_everywhere(sql_type: SqlType) -> None:
    assert literal_to_python(None, sql_type) is None and literal_from_python(None, sql_type) is None
    assert format_value(None, sql_type) is None
    assert scalar_literal(literal_scalar(None, sql_type), sql_type) is None
    assert to_python(literal_array(None, sql_type, 2), sql_type) == [None, None]


def test_out_of_pythons_range_stays_text() -> None:
    for text, sql_type in [("infinity", DATE), ("0044-03-15 BC", DATE), ("-infinity", TIMESTAMP)]:
        assert literal_to_python(parse_literal(text, sql_type), sql_type) == text
    assert literal_to_python(parse_literal("24:00", TIME), TIME) == "24:00:00"


def test_a_value_of_another_kind_is_42804() -> None:
    for value, sql_type in [("x", INTEGER), (1.5, INTEGER), (True, BIGINT), (1, TEXT), (b"x", TEXT), (1, DATE)]:
        with pytest.raises(ProgrammingError) as caught:
            literal_from_python(value, sql_type)  # type: ignore[arg-type]  # of any type
        assert caught.value.sqlstate == "42804"


def test_text_is_parsed_where_a_column_is_not_text() -> None:
    assert to_python(from_python(["7", 8, None], INTEGER), INTEGER) == [7, 8, None]
    with pytest.raises(DataError):
        from_python(["seven"], INTEGER)


def test_a_plain_date_is_a_timestamp_at_midnight() -> None:
    assert literal_from_python(dt.date(1970, 1, 2), TIMESTAMP) == 86_400_000_000


def test_long_columns_convert_in_slices() -> None:
    values = list(range(5_001))
    assert to_python(from_python(values, BIGINT).slice(1), BIGINT) == values[1:]
    decimals = pa.concat_arrays([literal_array("1.5", NUMERIC, 2_500), literal_array(None, NUMERIC, 1)])
    assert to_python(decimals, NUMERIC) == [Decimal("1.5")] * 2_500 + [None]


def test_doubles_print_as_the_shortest_text_that_reads_back() -> None:
    rng = np.random.default_rng(3)
    for bits in rng.integers(0, 2**63, 2_000).tolist():
        (value,) = struct.unpack("<d", struct.pack("<q", bits))
        if np.isfinite(value):
            assert float(format_float(value)) == value
    for bits in rng.integers(0, 2**31 - 2**24, 2_000).tolist():
        (single,) = struct.unpack("<f", struct.pack("<i", bits))
        assert np.float32(format_float(single, single=True)) == np.float32(single)


def test_a_text_halfway_between_two_floats_is_not_printed() -> None:
    """It would read back as the even one; PostgreSQL prints a digit more."""
    assert format_float(5.20017979410412e17) == "5.2001797941041203e+17"
    assert format_float(8.5949063182883e16) == "8.594906318288301e+16"
    assert format_float(-65176673.93467399, single=True) == "-6.5176672e+07"
    assert format_float(2.0**60) == "1.152921504606847e+18"
    assert format_float(3.4028234663852886e38, single=True) == "3.4028235e+38"
    assert format_float(1.7976931348623157e308) == "1.7976931348623157e+308"


def test_negative_zero_and_zero_in_one_column_keep_their_signs() -> None:
    assert format_column(pa.array([0.0, -0.0, float("nan")]), DOUBLE).to_pylist() == ["0", "-0", "NaN"]


def test_sample_rows_quote_text_and_not_numbers() -> None:
    columns = [pa.array([1, None], pa.int32()), pa.array(["it's", None], pa.large_string())]
    assert sample_rows(columns, [INTEGER, TEXT]) == ["(1, 'it''s')", "(NULL, NULL)"]


def test_interval_text_marks_signs_after_a_negative_field() -> None:
    assert str(Interval(-1, 2, -1)) == "-1 mons +2 days -00:00:00.000001"
    assert str(Interval()) == "00:00:00"
