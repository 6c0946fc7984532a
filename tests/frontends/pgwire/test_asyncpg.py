"""asyncpg: binary in both directions, prepared statements, cursors by portals with row limits."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, TypeVar

import asyncpg
import pytest
from asyncpg import introspection

from eddyline.repr.type_facts import TYPE_FACTS
from eddyline.repr.types import Kind
from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase

T = TypeVar("T")


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


def both(served: ServedDatabase, postgres: PostgresServer, schema: str, body: Callable[[Any], Awaitable[T]]) -> list[T]:
    """What ``body`` gives with the served database and with PostgreSQL, each in a schema of its own."""

    async def run(host: str, port: int, user: str) -> T:
        connection = await asyncpg.connect(
            host=host, port=port, user=user, database="postgres", server_settings={"search_path": schema}
        )
        try:
            return await body(connection)
        finally:
            await connection.close()

    with postgres.connect() as maker:
        maker.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
        try:
            theirs = asyncio.run(run("127.0.0.1", postgres.port, "postgres"))
        finally:
            maker.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    return [asyncio.run(run(served.host, served.port, "me")), theirs]


#: a type and values of it, as asyncpg has them
_VALUES: dict[str, list[Any]] = {
    "boolean": [True, False], "smallint": [-5, 32767], "int": [7, -(2**31)], "bigint": [2**40, -(2**63)],
    "numeric": [Decimal("10.5"), Decimal("-0.001")], "real": [1.5, -2.0], "float8": [-2.25, 1e300],
    "text": ["žluť", ""], "varchar": ["a,b", '"'], "bpchar": ["x", "yz"], "bytea": [b"\x00\xff", b""],
    "date": [dt.date(2024, 2, 29), dt.date(1, 1, 1)], "time": [dt.time(1, 2, 3, 4), dt.time(0)],
    "timestamp": [dt.datetime(1999, 12, 31), dt.datetime(2024, 1, 1, 10, 11, 12, 131415)],
    "timestamptz": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)],
    "uuid": [uuid.UUID(int=7), uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
}  # fmt: skip


def _attributes(statement: Any) -> list[tuple[Any, ...]]:
    named = [(a.name, a.type.name, a.type.kind, a.type.schema) for a in statement.get_attributes()]
    return named + [(p.name, p.kind, p.schema) for p in statement.get_parameters()]


def test_arrays_of_every_type_go_in_and_come_out(served: ServedDatabase, postgres: PostgresServer, schema: str) -> None:
    async def body(connection: Any) -> list[Any]:
        found: list[Any] = [await connection.fetchval("SELECT ARRAY[1, 2]")]
        for name, values in _VALUES.items():
            array = [*values, None]
            statement = await connection.prepare(f"SELECT $1::{name} AS one, $2::{name}[] AS many")
            found += [_attributes(statement), tuple(await statement.fetchrow(values[0], array))]
            found.append(tuple(await statement.fetchrow(None, [])))
            found.append(await connection.fetchval(f"SELECT $1::{name}[]", [values, values]))
            assert found[-3] == (values[0], array)
        return found

    ours, theirs = both(served, postgres, schema, body)
    assert ours == theirs


def test_tables_of_arrays_are_written_copied_and_read(
    served: ServedDatabase, postgres: PostgresServer, schema: str
) -> None:
    names = list(_VALUES)
    records = [(n, *([*values, None] if n % 2 else values[:n] for values in _VALUES.values())) for n in range(3)]

    async def body(connection: Any) -> list[Any]:
        columns = ", ".join(f"{name}_ {name}[]" for name in names)
        await connection.execute(f"CREATE TABLE t (n int PRIMARY KEY, {columns})")
        found: list[Any] = [await connection.copy_records_to_table("t", records=records)]
        holes = ", ".join(f"${i + 1}" for i in range(len(names) + 1))
        await connection.executemany(f"INSERT INTO t VALUES ({holes})", [(10, *records[1][1:])])
        found.append([tuple(r) for r in await connection.fetch("SELECT * FROM t ORDER BY n")])
        assert found[-1][:3] == records
        chunks: list[bytes] = []

        async def keep(data: bytes) -> None:
            chunks.append(data)

        query = "SELECT n, int_, text_ FROM t WHERE n > $1 ORDER BY n"
        found.append(await connection.copy_from_query(query, 1, output=keep, format="csv", header=True))
        found.append(b"".join(chunks))
        async with connection.transaction():
            # The types are asked for in the middle of a transaction, which goes on.
            cursor = connection.cursor("SELECT n, uuid_, date_ FROM t ORDER BY n", prefetch=2)
            found.append([tuple(r) async for r in cursor])
            await connection.execute("DELETE FROM t WHERE 7 = ANY (int_)")
        found.append(await connection.fetchval("SELECT count(*) FROM t WHERE int_ = $1", [7, -(2**31), None]))
        return found

    ours, theirs = both(served, postgres, schema, body)
    assert ours == theirs


def test_types_are_asked_for_within_a_transaction(
    served: ServedDatabase, postgres: PostgresServer, schema: str
) -> None:
    async def body(connection: Any) -> list[Any]:
        async with connection.transaction():
            await connection.execute("CREATE TABLE t (a int)")
            found = [await connection.fetchval("SELECT $1::int[] || 5", [3, 4])]
            await connection.execute("INSERT INTO t VALUES (1)")
        return [*found, await connection.fetchval("SELECT count(*) FROM t")]

    ours, theirs = both(served, postgres, schema, body)
    assert ours == theirs == [[3, 4, 5], 1]


def test_codecs_of_the_program_are_used(served: ServedDatabase, postgres: PostgresServer, schema: str) -> None:
    async def body(connection: Any) -> list[Any]:
        await connection.set_type_codec(
            "numeric", schema="pg_catalog", encoder=lambda v: f"{v:.2f}", decoder=float, format="text"
        )
        await connection.set_type_codec(
            "int4",
            schema="pg_catalog",
            encoder=lambda v: (v + 1).to_bytes(4, "big", signed=True),
            decoder=lambda data: int.from_bytes(data, "big", signed=True) * 10,
            format="binary",
        )
        rows = await connection.fetch("SELECT $1::numeric AS a, $2::int AS b, ARRAY[1.5, 2] AS c", 1.005, 4)
        found = [tuple(r) for r in rows]
        await connection.reset_type_codec("int4", schema="pg_catalog")
        return [*found, await connection.fetchval("SELECT $1::int", 4)]

    ours, theirs = both(served, postgres, schema, body)
    assert ours == theirs


def test_what_it_asks_of_the_catalog_is_answered_as_postgresql_does(
    served: ServedDatabase, postgres: PostgresServer, schema: str
) -> None:
    known = sorted(facts.oid for kind, facts in TYPE_FACTS.items() if kind not in (Kind.OIDVECTOR, Kind.JSON))

    async def body(connection: Any) -> list[Any]:
        records = await connection.fetch(introspection.INTRO_LOOKUP_TYPES, known)
        rows = sorted(tuple(v.decode() if isinstance(v, bytes) else v for v in r) for r in records)
        names = await connection.fetch(  # but of arrays that are not there: of intervals and vectors
            "SELECT oid::bigint, typname::text, format_type(oid, NULL), typtype::text, typlen, typdelim::text, "
            "typbasetype::bigint, typelem::bigint, typnotnull, typtypmod, typcategory::text, "
            "CASE WHEN typname NOT IN ('interval', 'int2vector') THEN typarray::bigint END "
            "FROM pg_type WHERE oid = ANY ($1::oid[]) ORDER BY oid",
            known,
        )
        return [rows, [tuple(r) for r in names]]

    ours, theirs = both(served, postgres, schema, body)
    assert ours == theirs
