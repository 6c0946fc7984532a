"""Literal VALUES read directly are what binding them as expressions gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from eddyline.errors import Error
from eddyline.plan.relation import Constant
from eddyline.repr.types import SqlType
from eddyline.sql.literal_rows import literal_rows
from eddyline.sql.parse import parse
from eddyline.sql.select import TargetColumn
from eddyline.sql.statement_binding import StatementBinding
from eddyline.testing.catalog_script import CatalogScript

TYPES = [
    "smallint",
    "int",
    "bigint",
    "numeric(6,2)",
    "numeric(2,2)",
    "numeric(4,0)",
    "numeric",
    "real",
    "float8",
    "text",
    "varchar(3)",
    "char(3)",
    "boolean",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "uuid",
    "bytea",
]
CELLS = [
    "0",
    "1",
    "-1",
    "7",
    "32768",
    "-32768",
    "2147483648",
    "-9223372036854775808",
    "9223372036854775808",
    "1.5",
    "-1.50",
    "0.25",
    ".5",
    "5.",
    "99.999",
    "1e3",
    "007",
    "0.0",
    "-0.5",
    "-0",
    "123456",
    "12345.67",
    "true",
    "false",
    "NULL",
    "''",
    "'a'",
    "'abcd'",
    "'12'",
    "'é'",
    "'\\x00ff'",
    "'2020-01-02'",
    "'10:11:12'",
    "'2020-01-02 03:04:05+02'",
    "'1.50'",
    "'true'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "'infinity'",
    "1+1",
    "$1",
    "DEFAULT",
    "'x'::text",
    "'1 day'",
    "-0.0",
    "16777217",
    "1e300",
    "'2024-02-30'",
    "'2024-02-29 10:00:00'",
    "'2024-02-29 24:00:00'",
    "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
]


@pytest.fixture(scope="module")
def column_types() -> list[SqlType]:
    columns = ", ".join(f"c{i} {t}" for i, t in enumerate(TYPES))
    return list(CatalogScript(f"CREATE TABLE t ({columns})").item("t").types)


def bound(text: str, types: list[SqlType]) -> Any:
    (parsed,) = parse(text)
    binding = StatementBinding(parsed, CatalogScript().view, {})
    targets = [TargetColumn(f"c{i}", t) for i, t in enumerate(types)]
    return binding.query(parsed.node, targets).as_relation()


@pytest.mark.parametrize("cell", CELLS)
def test_each_constant_in_each_type(cell: str, column_types: list[SqlType]) -> None:
    for sql_type in column_types:
        text = f"VALUES ({cell})"
        direct = literal_rows(parse(text)[0].node, [sql_type])
        if direct is None:
            continue
        assert bound(text, [sql_type]) == direct, (cell, sql_type)


def test_common_constants_are_read_directly(column_types: list[SqlType]) -> None:
    by_name = dict(zip(TYPES, column_types, strict=True))
    for cell, name, value in (
        ("-5", "int", -5),
        ("9223372036854775807", "bigint", 2**63 - 1),
        ("'a b'", "text", "a b"),
        ("1.5", "numeric(6,2)", "1.50"),
        ("NULL", "float8", None),
        ("'2020-01-02'", "date", 18263),
        ("true", "boolean", True),
    ):
        assert literal_rows(parse(f"VALUES ({cell})")[0].node, [by_name[name]]) == Constant(
            ((value,),), (by_name[name],)
        )


def test_rows_of_several_columns(column_types: list[SqlType]) -> None:
    """Only cells that are plain alone, so that whole statements are."""
    plain = [
        (cell, sql_type)
        for cell in CELLS
        for sql_type in column_types
        if literal_rows(parse(f"VALUES ({cell})")[0].node, [sql_type]) is not None
    ]
    rng = random.Random(5)
    for _ in range(100):
        types = rng.choices(column_types, k=3)
        rows = [[rng.choice([c for c, t in plain if t == wanted]) for wanted in types] for _ in range(3)]
        text = "VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
        direct = literal_rows(parse(text)[0].node, types)
        assert direct is not None
        assert bound(text, types) == direct


@pytest.mark.parametrize(
    "text", ["VALUES (1), (2) ORDER BY 1", "VALUES (1) LIMIT 1", "VALUES (1, 2)", "VALUES (1), (1, 2)", "SELECT 1"]
)
def test_other_statements_are_left_to_binding(text: str, column_types: list[SqlType]) -> None:
    assert literal_rows(parse(text)[0].node, [column_types[1]]) is None


def test_errors_come_from_binding_with_their_position() -> None:
    script = CatalogScript("CREATE TABLE t (a int, b text)")
    text = "INSERT INTO t VALUES (1, 'é'), ('x', 'y')"
    with pytest.raises(Error) as caught:
        script.bind(text)
    assert (caught.value.sqlstate, caught.value.position) == ("22P02", text.index("'x'") + 1)


@pytest.mark.parametrize(
    ("cell", "name"),
    [("1.5", "numeric"), ("-2.25", "float8"), ("7", "real"), ("'2024-02-29'", "date"), ("'1 day'", "interval")],
)
def test_every_kind_of_column_has_a_direct_reading(cell: str, name: str, column_types: list[SqlType]) -> None:
    assert literal_rows(parse(f"VALUES ({cell})")[0].node, [column_types[TYPES.index(name)]]) is not None
