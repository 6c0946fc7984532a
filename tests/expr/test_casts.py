"""Cast contexts, session zones, and the documented limits of numeric."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.expr.casts import cast_array, cast_can_fail, cast_context, category, coerced_type, is_preferred
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Cast, Column
from eddyline.expr.text_io import format_value, parse_literal
from eddyline.expr.timezone import zone_of
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    BPCHAR,
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
    UNKNOWN,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    arrow_type,
    numeric,
)
from tests.expr.harness import cast

CONTEXTS = [
    (SMALLINT, BIGINT, "implicit"),
    (BIGINT, SMALLINT, "assignment"),
    (INTEGER, NUMERIC, "implicit"),
    (NUMERIC, INTEGER, "assignment"),
    (NUMERIC, DOUBLE, "implicit"),
    (DOUBLE, NUMERIC, "assignment"),
    (REAL, DOUBLE, "implicit"),
    (DOUBLE, REAL, "assignment"),
    (INTEGER, BOOLEAN, "explicit"),
    (BOOLEAN, INTEGER, "explicit"),
    (BIGINT, BOOLEAN, None),
    (BOOLEAN, NUMERIC, None),
    (TEXT, VARCHAR, "implicit"),
    (BPCHAR, TEXT, "implicit"),
    (INTEGER, TEXT, "assignment"),
    (TEXT, INTEGER, "explicit"),
    (TEXT, UUID, "explicit"),
    (DATE, TIMESTAMPTZ, "implicit"),
    (TIMESTAMPTZ, DATE, "assignment"),
    (TIME, INTERVAL, "implicit"),
    (INTERVAL, TIME, "assignment"),
    (TIME, TIMESTAMP, None),
    (DATE, INTEGER, None),
    (UNKNOWN, INTERVAL, "implicit"),
    (numeric(2), numeric(0, 5), "implicit"),
]


@pytest.mark.parametrize(("source", "target", "context"), CONTEXTS, ids=str)
def test_contexts_are_those_of_pg_cast(source: SqlType, target: SqlType, context: str | None) -> None:
    assert cast_context(source, target) == context


def test_every_cast_that_exists_is_evaluated() -> None:
    kinds = [SqlType(kind) for kind in Kind if kind is not Kind.UNKNOWN]
    for source in kinds:
        empty = evaluate(Cast(Column(0, source), source), [pa.nulls(2, _layout(source))], 2).array
        for target in kinds:
            if cast_context(source, target) is None:
                continue
            array, errors = evaluate(Cast(Column(0, source), target), [empty], 2)
            assert array.type == _layout(target) and array.null_count == 2 and errors is None, (source, target)


def _layout(sql_type: SqlType) -> pa.DataType:
    return arrow_type(sql_type)


def test_categories_and_preferred_types() -> None:
    assert [category(k) for k in (Kind.BPCHAR, Kind.NUMERIC, Kind.TIME, Kind.INTERVAL, Kind.UUID)] == list("SNDTU")
    preferred = {k for k in Kind if is_preferred(k)}
    assert preferred == {Kind.BOOLEAN, Kind.DOUBLE, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL}


def test_an_integer_is_coerced_to_numeric_without_fraction() -> None:
    assert coerced_type(BIGINT, Kind.NUMERIC) == numeric(0)
    assert coerced_type(DOUBLE, Kind.NUMERIC) == NUMERIC
    assert coerced_type(numeric(2, 5), Kind.NUMERIC) == numeric(2, 5)


def test_which_casts_can_fail() -> None:
    assert not cast_can_fail(INTEGER, BIGINT, explicit=True)
    assert cast_can_fail(BIGINT, INTEGER, explicit=True)
    assert not cast_can_fail(INTEGER, numeric(0), explicit=True)
    assert cast_can_fail(INTEGER, numeric(0, 5), explicit=True)
    assert not cast_can_fail(numeric(2), NUMERIC, explicit=True)
    assert not cast_can_fail(numeric(2, 5), numeric(2, 7), explicit=True)
    assert cast_can_fail(numeric(2), numeric(2, 7), explicit=True)
    short = SqlType(Kind.VARCHAR, length=3)
    assert cast_can_fail(TEXT, short, explicit=False)
    assert not cast_can_fail(TEXT, short, explicit=True)


def test_past_38_digits_is_22003() -> None:
    assert cast("text", "numeric", ["9" * 38, "9" * 39, "1e38", "0." + "0" * 37 + "1"]) == [
        "9" * 38,
        "!22003 value overflows numeric format",
        "!22003 value overflows numeric format",
        "0." + "0" * 37 + "1",
    ]


def test_not_a_number_is_refused_by_name() -> None:
    refused = "!0A000 numeric NaN and Infinity are not supported"
    assert cast("text", "numeric", ["NaN", "-infinity", "1"]) == [refused, refused, "1"]
    assert cast("float8", "numeric(5,2)", ["NaN", "1.005"]) == [refused, "1.01"]


def test_an_error_on_a_null_row_is_no_error() -> None:
    assert cast("text", "int4", [None, "7", None]) == [None, "7", None]
    assert cast("int8", "int2", [None, "70000"]) == [None, "!22003 smallint out of range"]


def test_a_session_zone_reads_and_prints_timestamps() -> None:
    berlin = zone_of("Europe/Berlin")
    micros = parse_literal("2024-07-01 12:00", TIMESTAMPTZ, berlin)
    assert format_value(micros, TIMESTAMPTZ) == "2024-07-01 10:00:00+00"
    assert format_value(micros, TIMESTAMPTZ, berlin) == "2024-07-01 12:00:00+02"
    to_text = Cast(Cast(Column(0, TEXT), TIMESTAMPTZ, zone="Europe/Berlin"), DATE, zone="Asia/Tokyo")
    array, _ = evaluate(to_text, [pa.array(["2024-07-01 23:00"], pa.large_string())], 1)
    assert str(array[0].as_py()) == "2024-07-02"


def test_slices_and_empty_columns_cast_like_whole_ones() -> None:
    texts = pa.array(["x", "1.50", None, "-2.25", "y"], pa.large_string()).slice(1, 3)
    for target in (NUMERIC, numeric(2), numeric(2, 6), DOUBLE, TEXT):
        values, errors = cast_array(texts, TEXT, target)
        assert errors is None and len(values) == 3
        for back in (values, pa.concat_arrays([values, values]).slice(3)):
            again = cast_array(back, target, TEXT).array
            expected = ["1.5", None, "-2.25"] if target == DOUBLE else ["1.50", None, "-2.25"]
            assert again.to_pylist() == expected
            assert cast_array(back, target, target).array is back
        empty = cast_array(values.slice(0, 0), target, TEXT).array
        assert len(empty) == 0 and empty.type == pa.large_string()
    numbers = cast_array(texts, TEXT, NUMERIC).array.slice(2)
    assert cast_array(numbers, NUMERIC, INTEGER).array.to_pylist() == [-2]
    assert cast_array(numbers, NUMERIC, DOUBLE).array.to_pylist() == [-2.25]
    assert str(cast_array(numbers, NUMERIC, numeric(1)).array[0]) == "-2.3"
