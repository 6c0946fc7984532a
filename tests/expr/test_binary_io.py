"""Binary forms of all types against PostgreSQL's own send and receive functions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.errors import Error
from eddyline.expr.binary_io import binary_cells, parse_binary, text_cells
from eddyline.expr.text_io import literal_array, parse_literal
from eddyline.repr.batch import concat_arrays
from eddyline.repr.types import Kind, SqlType
from eddyline.testing.postgres import PostgresServer

SAMPLES: list[tuple[SqlType, str, list[str]]] = [
    (SqlType(Kind.BOOLEAN), "boolean", ["t", "f"]),
    (SqlType(Kind.SMALLINT), "smallint", ["0", "-1", "32767", "-32768"]),
    (SqlType(Kind.INTEGER), "int", ["0", "-1", "2147483647", "-2147483648"]),
    (SqlType(Kind.BIGINT), "bigint", ["0", "-1", "9223372036854775807", "-9223372036854775808"]),
    (
        SqlType(Kind.NUMERIC),
        "numeric",
        [
            "0",
            "0.000",
            "1",
            "-1.5",
            "10000",
            "99990000.00010000",
            "-0.00001",
            "123456789012345678901234567890.12345678",
        ],
    ),
    (SqlType(Kind.NUMERIC, 12, 2), "numeric(12,2)", ["0", "1.50", "-9999999999.99", "10000.00"]),
    (SqlType(Kind.REAL), "real", ["0", "-0", "1.5", "3.4e38", "-1e-40", "NaN", "Infinity", "-Infinity"]),
    (SqlType(Kind.DOUBLE), "double precision", ["0", "-0", "1.5", "1e308", "5e-324", "NaN", "Infinity", "-Infinity"]),
    (SqlType(Kind.TEXT), "text", ["", "x", "žluťoučký", "a\tb\nc", "x" * 3000]),
    (SqlType(Kind.VARCHAR, length=5), "varchar(5)", ["", "abc"]),
    (SqlType(Kind.BPCHAR, length=5), "char(5)", ["", "abc", "čč"]),
    (SqlType(Kind.BYTEA), "bytea", ["\\x", "\\x00ff41"]),
    (
        SqlType(Kind.DATE),
        "date",
        ["2000-01-01", "1970-01-01", "4713-01-01 BC", "5874897-12-31", "infinity", "-infinity"],
    ),
    (SqlType(Kind.TIME), "time", ["00:00:00", "23:59:59.999999", "24:00:00"]),
    (SqlType(Kind.TIMESTAMP), "timestamp", ["2000-01-01", "1999-12-31 23:59:59.999999", "infinity", "-infinity"]),
    (SqlType(Kind.TIMESTAMPTZ), "timestamptz", ["2000-01-01 00:00:00+00", "2024-02-29 12:00:00+02", "infinity"]),
    (SqlType(Kind.INTERVAL), "interval", ["0", "1 mon -2 days 03:04:05.000006", "-178000000 years", "1 year 1 day"]),
    (SqlType(Kind.UUID), "uuid", ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
]
IDS = [str(t) for t, _, _ in SAMPLES]


def column(sql_type: SqlType, texts: list[str | None]) -> pa.Array:
    return concat_arrays([literal_array(None if t is None else parse_literal(t, sql_type), sql_type, 1) for t in texts])


@pytest.mark.parametrize(("sql_type", "name", "texts"), SAMPLES, ids=IDS)
def test_columns_have_the_bytes_that_postgres_sends(
    postgres: PostgresServer, sql_type: SqlType, name: str, texts: list[str]
) -> None:
    given: list[str | None] = [*texts, None]
    for binary in (True, False):
        with postgres.connect() as connection, connection.cursor(binary=binary) as cursor:
            expected = []
            for text in given:
                cursor.execute(f"SELECT CAST(%s::text AS {name})", [text], prepare=False)
                assert cursor.pgresult is not None
                expected.append(cursor.pgresult.get_value(0, 0))
        array = column(sql_type, given)
        cells = binary_cells(array, sql_type) if binary else text_cells(array, sql_type)
        found = [
            cells.data[cells.offsets[i] : cells.offsets[i + 1]].tobytes()
            if not len(cells.valid) or cells.valid[i]
            else None
            for i in range(len(given))
        ]
        assert found == expected
        part = binary_cells(array.slice(1, 1), sql_type) if binary else text_cells(array.slice(1, 1), sql_type)
        assert part.data[part.offsets[0] : part.offsets[1]].tobytes() == expected[1]


@pytest.mark.parametrize(("sql_type", "name", "texts"), SAMPLES, ids=IDS)
def test_a_binary_value_reads_back_as_the_literal(sql_type: SqlType, name: str, texts: list[str]) -> None:
    for text in texts:
        literal = parse_literal(text, sql_type)
        cells = binary_cells(literal_array(literal, sql_type, 1), sql_type)
        found = parse_binary(cells.data[cells.offsets[0] : cells.offsets[1]].tobytes(), sql_type)
        assert str(found).rstrip() == str(literal)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x7f\xff\0\0\0\0\0\0" + b"\0\1" * 32767, "1"),  # more digits than Python makes an int of
        (b"\x7f\xff\0\0\x40\0\0\5" + b"\0\1" * 32767, "-1.00010"),
        (b"\0\2\x80\0\x40\0\0\2" + b"\0\1" * 2, "0.00"),
        (b"\0\1\0\0\x40\0\0\1\0\x13", "-19.0"),
        (b"\0\2\0\0\0\0\0\1\0\x13\x27\x0f", "19.9"),  # cut, not rounded
    ],
)
def test_a_numeric_has_the_digits_of_its_scale(postgres: PostgresServer, data: bytes, text: str) -> None:
    assert parse_binary(data, SqlType(Kind.NUMERIC)) == text
    with postgres.connect() as connection:
        answer = connection.pgconn.exec_params(b"SELECT $1::numeric", [data], [1700], [1])
        assert answer.get_value(0, 0) == text.encode()


@pytest.mark.parametrize(
    ("sql_type", "data", "sqlstate"),
    [
        (SqlType(Kind.INTEGER), b"\0\0", "22P03"),
        (SqlType(Kind.UUID), b"", "22P03"),
        (SqlType(Kind.NUMERIC), b"\0\1", "22P03"),
        (SqlType(Kind.NUMERIC), b"\0\1\0\0\0\0\0\0", "22P03"),
        (SqlType(Kind.NUMERIC), b"\0\1\0\0\0\0\0\0\x27\x10", "22P03"),
        (SqlType(Kind.NUMERIC), b"\0\0\0\0\xc0\0\0\0", "0A000"),
        (SqlType(Kind.NUMERIC), b"\0\1\x7f\xff\0\0\0\0\0\1", "22003"),
        (SqlType(Kind.NUMERIC), b"\0\2\x80\0\0\0\0\x7f" + b"\0\1" * 2, "22003"),
        (SqlType(Kind.NUMERIC), b"\x7f\xff\x7f\xff\0\0\0\0" + b"\0\1" * 32767, "22003"),
        (SqlType(Kind.TEXT), b"\xff", "22021"),
        (SqlType(Kind.TEXT), b"a\0", "22021"),
        (SqlType(Kind.TIME), b"\xff" * 8, "22008"),
        (SqlType(Kind.TIMESTAMP), b"\x7f" + b"\xff" * 6 + b"\xfe", "22008"),
    ],
)
def test_bytes_that_are_no_value_are_refused(sql_type: SqlType, data: bytes, sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        parse_binary(data, sql_type)
    assert caught.value.sqlstate == sqlstate
