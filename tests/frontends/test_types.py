"""The type table of docs/model.md: what is put in comes out, by every way in and out."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import eddyline
from eddyline import Interval

UTC = dt.UTC
#: SQL type: Python values, Arrow type, pandas dtype (with a NULL), Polars dtype
TYPES: dict[str, tuple[list[Any], str, str, str]] = {
    "boolean": ([True, False], "bool", "boolean", "Boolean"),
    "smallint": ([-(2**15), 2**15 - 1, 0], "int16", "Int16", "Int16"),
    "integer": ([-(2**31), 2**31 - 1], "int32", "Int32", "Int32"),
    "bigint": ([-(2**63), 2**63 - 1], "int64", "Int64", "Int64"),
    "numeric(12,2)": (
        [Decimal("1.50"), Decimal("-9999999999.99"), Decimal("0.00")],
        "decimal128(12, 2)",
        "object",
        "Decimal(precision=12, scale=2)",
    ),
    "numeric(38,0)": ([Decimal(10**38 - 1), Decimal(1 - 10**38)], "decimal128(38, 0)", "object", ""),
    "real": ([1.5, float("inf"), float("-inf"), 3.4028234663852886e38], "float", "float32", "Float32"),
    "double precision": ([0.1, 1e308, 5e-324, float("-inf")], "double", "float64", "Float64"),
    "text": (["", "é", "a\nb", "日本", "x" * 100_000], "large_string", "str", "String"),
    "varchar(3)": (["abc", ""], "large_string", "str", "String"),
    "char(4)": (["ab  ", "abcd"], "large_string", "str", "String"),
    "bytea": ([b"", b"\x00\xff" * 10], "large_binary", "object", "Binary"),
    "date": ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], "date32[day]", "object", "Date"),
    "time": ([dt.time(0, 0), dt.time(23, 59, 59, 999_999)], "time64[us]", "object", "Time"),
    "timestamp": (
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)],
        "timestamp[us]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone=None)",
    ),
    "timestamptz": (
        [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
        "timestamp[us, tz=UTC]",
        "datetime64[us, UTC]",
        "Datetime(time_unit='us', time_zone='UTC')",
    ),
    "interval": ([Interval(1, 2, 3), Interval(-13, 0, -1)], "month_day_nano_interval", "object", "String"),
    "uuid": ([uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)], "fixed_size_binary[16]", "object", "Binary"),
}


def stored(db: eddyline.Connection, sql_type: str, values: list[Any]) -> eddyline.Cursor:
    db.execute(f"CREATE TABLE t (i int, v {sql_type})")
    db.executemany("INSERT INTO t VALUES ($1, $2)", list(enumerate(values)))
    return db.execute("SELECT v FROM t ORDER BY i")


@pytest.mark.parametrize("sql_type", TYPES)
def test_values_come_out_as_they_went_in(db: eddyline.Connection, sql_type: str) -> None:
    values = [*TYPES[sql_type][0], None]
    cursor = stored(db, sql_type, values)
    assert list(map(repr, (v for (v,) in cursor.fetchall()))) == list(map(repr, values))


@pytest.mark.parametrize("sql_type", TYPES)
def test_whole_results_have_the_types_of_the_table(db: eddyline.Connection, sql_type: str) -> None:
    values, arrow, pandas, polars = TYPES[sql_type]
    cursor = stored(db, sql_type, [*values, None])
    assert str(cursor.arrow().schema.field(0).type) == arrow
    assert str(cursor.df().dtypes["v"]) in (pandas, "object" if pandas == "str" else pandas)
    if polars:
        assert str(cursor.pl().dtypes[0]) == polars


WAYS: dict[str, Callable[[eddyline.Cursor, list[Any]], object]] = {
    "Arrow": lambda cursor, _: cursor.arrow(),
    "pandas": lambda cursor, _: cursor.df(),
    "Polars": lambda cursor, _: cursor.pl(),
    "list of dicts": lambda _, values: [{"v": v} for v in values],
    "dict of columns": lambda _, values: {"v": values},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sql_type", TYPES)
def test_what_comes_out_can_be_appended(db: eddyline.Connection, sql_type: str, way: str) -> None:
    values = [*TYPES[sql_type][0], None]
    cursor = stored(db, sql_type, values)
    db.execute(f"CREATE TABLE u (v {sql_type})")
    db.append("u", WAYS[way](cursor, values))
    got = [v for (v,) in db.execute("SELECT v FROM u").fetchall()]
    assert sorted(map(repr, got)) == sorted(map(repr, values))


def test_numerics_without_a_scale_keep_their_own(db: eddyline.Connection) -> None:
    values = [Decimal("1.5"), Decimal("1.50"), Decimal("-1E-10"), Decimal(10**17), None]
    cursor = stored(db, "numeric", values)
    assert list(map(repr, (v for (v,) in cursor.fetchall()))) == list(map(repr, values))
    assert cursor.arrow().schema.field(0).type == pa.decimal128(38, 10)
    db.execute("CREATE TABLE u (v numeric)")
    db.append("u", [{"v": v} for v in values])
    assert sorted(map(repr, (v for (v,) in db.execute("TABLE u")))) == sorted(map(repr, values))


def test_numerics_past_the_common_scale_are_an_error_of_arrow_only(db: eddyline.Connection) -> None:
    cursor = stored(db, "numeric", [Decimal(10**37), Decimal("1e-10")])
    with pytest.raises(eddyline.DataError) as caught:
        cursor.arrow()
    assert caught.value.sqlstate == "22003"
    assert cursor.fetchall() == [(Decimal(10**37),), (Decimal("1e-10"),)]


def test_what_python_has_no_value_for_comes_as_text(db: eddyline.Connection) -> None:
    row = db.execute(
        "SELECT 'infinity'::date, '-infinity'::timestamp, '24:00:00'::time, '0044-03-15 BC'::date"
    ).fetchone()
    assert row == ("infinity", "-infinity", "24:00:00", "0044-03-15 BC")


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::date",
        "'-infinity'::timestamptz",
        "'0044-03-15 BC'::timestamp",
        "ARRAY['infinity'::date]",
        "'24:00'::time",
        "ARRAY[NULL, '24:00'::time]",
    ],
)
def test_frames_refuse_times_that_they_cannot_show(db: eddyline.Connection, value: str) -> None:
    cursor = db.execute(f"SELECT {value} AS v")
    for frame in (cursor.df, cursor.pl):
        with pytest.raises(eddyline.DataError) as caught:
            frame()
        assert caught.value.sqlstate == "22008"
    assert cursor.arrow().num_rows == 1


def test_missing_values_of_pandas_are_null(db: eddyline.Connection) -> None:
    assert stored(db, "timestamptz", [pd.NaT]).fetchall() == [(None,)]


def test_floats_keep_their_sign_of_zero_and_nan(db: eddyline.Connection) -> None:
    cursor = stored(db, "double precision", [-0.0, float("nan")])
    assert list(map(repr, (v for (v,) in cursor))) == ["-0.0", "nan"]


def test_a_date_is_midnight_in_the_sessions_zone(db: eddyline.Connection) -> None:
    db.execute("SET TimeZone = 'Asia/Tokyo'")
    [(got,)] = stored(db, "timestamptz", [dt.date(2020, 3, 1)]).fetchall()
    assert got == dt.datetime(2020, 2, 29, 15, tzinfo=UTC)


def test_columns_of_one_name_are_no_polars_frame(db: eddyline.Connection) -> None:
    cursor = db.execute("SELECT 1 AS a, 2 AS a")
    with pytest.raises(eddyline.ProgrammingError) as caught:
        cursor.pl()
    assert caught.value.sqlstate == "42701"
    assert list(cursor.df().columns) == ["a", "a"]
    assert cursor.arrow().column_names == ["a", "a"]


@pytest.mark.parametrize(
    ("sql_type", "value", "back"),
    [
        ("int", "42", 42),
        ("numeric(6,2)", "1.005", Decimal("1.01")),
        ("numeric(6,2)", 1.5, Decimal("1.50")),
        ("date", "2020-02-29", dt.date(2020, 2, 29)),
        ("timestamptz", dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), None),
        ("interval", dt.timedelta(days=3, microseconds=1), Interval(0, 3, 1)),
        ("interval", "1 mon 2 days 03:04:05", Interval(1, 2, 11_045_000_000)),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("text", 7, "7"),
        ("bytea", bytearray(b"\x01"), b"\x01"),
        ("boolean", "yes", True),
        ("numeric(6,2)", np.float64(1.5), Decimal("1.50")),
        ("numeric", np.int32(15), Decimal(15)),
        ("bigint", np.int64(2**40), 2**40),
        ("boolean", np.bool_(True), True),
        ("timestamp", np.datetime64("2020-01-02T03:04:05.678901234"), dt.datetime(2020, 1, 2, 3, 4, 5, 678901)),
        ("interval", np.timedelta64(90, "s"), Interval(0, 0, 90_000_000)),
        ("timestamptz", dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, tzinfo=UTC)),
        ("int", Decimal("2.00"), 2),
        ("bigint", Decimal(2**63 - 1), 2**63 - 1),
    ],
)
def test_parameters_of_related_kinds_are_converted(
    db: eddyline.Connection, sql_type: str, value: object, back: object
) -> None:
    [(got,)] = stored(db, sql_type, [value]).fetchall()
    assert got == (back if back is not None else value)


@pytest.mark.parametrize(
    ("sql_type", "value", "sqlstate"),
    [
        ("int", 2**31, "22003"),
        ("float8", 10**400, "22003"),
        ("real", -(10**400), "22003"),
        pytest.param("text", 10**5000, "22003", id="more digits than Python writes"),
        ("float8", Decimal("sNaN"), "22003"),
        ("real", 1e300, "22003"),
        ("smallint", "99999", "22003"),
        ("bigint", 2**70, "22003"),
        ("int", "x", "22P02"),
        ("int", 1.5j, "42804"),
        ("int", True, "42804"),
        ("boolean", 1, "42804"),
        ("numeric(4,2)", Decimal("100"), "22003"),
        ("varchar(3)", "abcd", "22001"),
        ("date", "2020-02-30", "22008"),
        ("uuid", "zz", "22P02"),
        ("text", "a\x00b", "22021"),
        ("text", "\ud800", "22021"),
        ("numeric", Decimal("NaN"), "0A000"),
        ("int", [1], "42804"),
        ("int", object(), "42804"),
        ("int", Decimal("2.5"), "42804"),
        ("int", Decimal("Infinity"), "42804"),
        ("int", Decimal("NaN"), "42804"),
        ("bigint", Decimal("1e999999"), "42804"),
        ("bigint", Decimal(2**63), "22003"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    db: eddyline.Connection, sql_type: str, value: object, sqlstate: str
) -> None:
    with pytest.raises(eddyline.Error) as caught:
        stored(db, sql_type, [value])
    assert caught.value.sqlstate == sqlstate
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
