"""asyncpg: binary in both directions, prepared statements, cursors by portals with row limits."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from eddyline.testing.served import ServedDatabase


def talk(served: ServedDatabase, schema: str, body: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(
            host=served.host, port=served.port, user="me", database="db", server_settings={"search_path": schema}
        )
        try:
            await body(connection)
        finally:
            await connection.close()

    asyncio.run(run())


def test_values_of_all_types_go_in_and_come_out(served: ServedDatabase, schema: str) -> None:
    values = [
        True, -5, 7, 2**40, Decimal("10.50"), 1.5, -2.25, "žluť", b"\x00\xff", dt.date(2024, 2, 29),
        dt.time(1, 2, 3, 4), dt.datetime(1999, 12, 31), dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.timedelta(days=3, seconds=7), uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ]  # fmt: skip
    types = "boolean smallint int bigint numeric real float8 text bytea date time timestamp timestamptz interval uuid"

    async def body(connection: Any) -> None:
        columns = ", ".join(f"c{i} {name}" for i, name in enumerate(types.split()))
        await connection.execute(f"CREATE TABLE t ({columns})")
        holes = ", ".join(f"${i + 1}" for i in range(len(values)))
        assert await connection.execute(f"INSERT INTO t VALUES ({holes})", *values) == "INSERT 0 1"
        (row,) = await connection.fetch("SELECT * FROM t")
        assert list(row.values()) == values

    talk(served, schema, body)


def test_a_cursor_fetches_by_portions(served: ServedDatabase, schema: str) -> None:
    async def body(connection: Any) -> None:
        async with connection.transaction():
            numbers = [
                r[0] async for r in connection.cursor("SELECT x FROM generate_series(1, 230) x ORDER BY x", prefetch=50)
            ]
            assert numbers == list(range(1, 231))
            cursor = await connection.cursor("SELECT x FROM generate_series(1, 10) x ORDER BY x")
            assert [r[0] for r in await cursor.fetch(3)] == [1, 2, 3]
            assert [r[0] for r in await cursor.fetch(100)] == [4, 5, 6, 7, 8, 9, 10]

    talk(served, schema, body)


def test_errors_leave_the_session_usable(served: ServedDatabase, schema: str) -> None:
    async def body(connection: Any) -> None:
        for _ in range(3):
            with pytest.raises(asyncpg.DivisionByZeroError):
                await connection.fetch("SELECT 1/$1::int", 0)
        statement = await connection.prepare("SELECT $1::int + 1 AS more")
        assert [p.name for p in statement.get_parameters()] == ["int4"]
        assert await statement.fetchval(41) == 42

    talk(served, schema, body)


def test_executemany_and_transactions(served: ServedDatabase, schema: str) -> None:
    async def body(connection: Any) -> None:
        await connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
        await connection.executemany("INSERT INTO t VALUES ($1)", [(i,) for i in range(100)])
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.executemany("INSERT INTO t VALUES ($1)", [(200,), (5,)])
        assert await connection.fetchval("SELECT count(*) FROM t") == 100
        with pytest.raises(RuntimeError):
            async with connection.transaction():
                await connection.execute("DELETE FROM t")
                raise RuntimeError("undone")
        assert await connection.fetchval("SELECT count(*) FROM t") == 100

    talk(served, schema, body)


def test_records_are_copied_in_binary(served: ServedDatabase, schema: str) -> None:
    async def body(connection: Any) -> None:
        await connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric, d timestamptz)")
        now = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        records = [(i, None if i % 3 else "é" * i, Decimal(i) / 8, now) for i in range(3000)]
        assert await connection.copy_records_to_table("t", records=records, schema_name=schema) == "COPY 3000"
        assert [tuple(r) for r in await connection.fetch("SELECT * FROM t ORDER BY a")] == records

    talk(served, schema, body)


def test_a_pool_lends_its_connections_again(served: ServedDatabase) -> None:
    async def run() -> None:
        async with asyncpg.create_pool(
            host=served.host, port=served.port, user="me", database="db", min_size=1, max_size=1
        ) as pool:
            for number in range(3):
                async with pool.acquire() as connection:
                    await connection.execute(f"SET application_name = 'borrower {number}'")
                    assert await connection.fetchval("SELECT 1 + 1") == 2
            assert await pool.fetchval("SHOW application_name") == ""

    asyncio.run(run())
