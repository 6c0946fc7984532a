"""The asyncio face."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import eddyline

#: ends by being cancelled; at the latest by the time that it is given in ``run``
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000) AS a (x), generate_series(1, 100000) AS b (y) WHERE x < y"


def run(body: Callable[[eddyline.AsyncConnection], Awaitable[None]]) -> None:
    async def main() -> None:
        async with await eddyline.aconnect() as db:
            await db.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
            await db.execute("SET statement_timeout = '50s'")
            await body(db)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_statements_and_bulk_calls() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        await db.append("t", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        await db.upsert("t", [{"a": 2, "b": "z"}])
        await db.delete("t", [{"a": 1}])
        await db.executemany("INSERT INTO t VALUES (?, ?)", [(3, "p"), (4, "q")])
        await db.executescript("CREATE VIEW v AS SELECT count(*) AS n FROM t; CREATE DEFAULT INDEX ON v")
        await db.wait_hydrated("v", timeout=30)
        cursor = await db.execute("SELECT n FROM v")
        assert cursor.fetchall() == [(3,)]
        await db.copy("COPY t FROM STDIN", b"5\tr\n")
        assert (await db.execute("SELECT n FROM v")).fetchone() == (4,)

    run(body)


def test_transactions_and_sessions() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        await db.execute("BEGIN")
        await db.execute("INSERT INTO t VALUES (1, 'x')")
        async with db.session() as other:
            assert (await other.execute("SELECT count(*) FROM t")).fetchone() == (0,)
        await db.rollback()
        await db.execute("BEGIN")
        await db.execute("INSERT INTO t VALUES (1, 'x')")
        await db.commit()
        assert (await db.execute("SELECT count(*) FROM t")).fetchone() == (1,)

    run(body)


def test_errors_pass_through() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        with pytest.raises(eddyline.ProgrammingError):
            await db.execute("SELECT * FROM nowhere")

    run(body)


def test_cancelling_a_task_cancels_its_statement() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        task = asyncio.create_task(db.execute(ENDLESS))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await db.execute("SELECT 1")).fetchall() == [(1,)]

    run(body)


def test_a_cancellation_that_comes_before_the_statement_begins_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    cancels: list[None] = []
    called, cancelled = threading.Event(), threading.Event()

    async def body(db: eddyline.AsyncConnection) -> None:
        execute, cancel = db._connection.execute, db._connection.cancel

        def late(*arguments: Any) -> eddyline.Cursor:
            called.set()
            assert cancelled.wait(60)
            return execute(*arguments)

        def noted() -> None:
            cancels.append(cancel())
            cancelled.set()

        with monkeypatch.context() as patched:
            patched.setattr(db._connection, "execute", late)
            patched.setattr(db._connection, "cancel", noted)
            task = asyncio.create_task(db.execute(ENDLESS))
            while not called.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(cancels) > 1, "the first one came before there was anything to cancel"
        assert (await db.execute("SELECT 1")).fetchall() == [(1,)]

    run(body)


def test_a_timeout_cancels_too_and_the_loop_stays_free() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        task = asyncio.create_task(db.execute(ENDLESS))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not task.done(), "the loop went on meanwhile"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.01)
        assert (await db.execute("SELECT 1")).fetchall() == [(1,)]

    run(body)


def test_many_tasks_on_one_connection_take_turns() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        await asyncio.gather(*(db.execute("INSERT INTO t VALUES ($1, 'x')", [n]) for n in range(50)))
        assert (await db.execute("SELECT count(*) FROM t")).fetchone() == (50,)

    run(body)


def test_cancelling_a_task_that_waits_for_its_turn_leaves_the_running_one_alone() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        await db.execute("INSERT INTO t VALUES (1, 'x')")
        async with db.session() as holder:
            await holder.execute("BEGIN")
            await holder.execute("DELETE FROM t WHERE a = 2")
            first = asyncio.create_task(db.execute("UPDATE t SET b = 'y'"))  # waits for the lock
            second = asyncio.create_task(db.execute("INSERT INTO t VALUES (3, 'z')"))
            await asyncio.sleep(0.05)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            await holder.commit()
        assert (await first).rowcount == 1
        assert (await db.execute("SELECT * FROM t")).fetchall() == [(1, "y")]

    run(body)


def test_subscriptions() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        async def write() -> None:
            async with db.session() as writer:
                for n in range(3):
                    await writer.append("t", [{"a": n, "b": "x"}])

        writing = asyncio.create_task(write())
        seen: list[int] = []
        async for change in db.subscribe("SELECT a FROM t"):
            seen += change.updates["a"].to_pylist()
            if len(seen) == 3:
                break
        await writing
        assert sorted(seen) == [0, 1, 2]
        assert [c async for c in db.subscribe("t", snapshot=False, timeout=0.2)] == []

    run(body)


def test_subscriptions_that_wait_take_no_thread() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        # One thread for all of the program's own calls, subscriptions' among them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        seen: list[int] = []

        async def read(condition: str) -> None:
            async with db.session() as session:
                async for change in session.subscribe(f"SELECT a FROM t WHERE {condition}", snapshot=False):
                    seen.extend(change.updates["a"].to_pylist())
                    return

        readers = [asyncio.create_task(read(f"a % 8 = {n}")) for n in range(8)]
        while len(db._connection._engine._control.feeds) < 8:  # each has begun
            await asyncio.sleep(0.005)
        assert await asyncio.to_thread(lambda: 42) == 42, "the thread is free"
        await db.append("t", [{"a": n, "b": ""} for n in range(8, 16)])
        await asyncio.gather(*readers)
        assert sorted(seen) == list(range(8, 16))

    run(body)


def test_a_subscription_that_waits_hears_that_its_table_is_dropped_and_that_the_database_closes() -> None:
    async def body(db: eddyline.AsyncConnection) -> None:
        await db.execute("CREATE TABLE other (a int)")

        async def read(session: eddyline.AsyncConnection, table: str) -> str | None:
            try:
                async for _ in session.subscribe(table):
                    pass
            except eddyline.Error as error:
                return error.sqlstate
            return None

        one, two = db.session(), db.session()
        dropped, closed = (asyncio.create_task(read(s, t)) for s, t in ((one, "other"), (two, "t")))
        while len(db._connection._engine._control.feeds) < 2:
            await asyncio.sleep(0.005)
        await db.execute("DROP TABLE other")
        assert await dropped == "42P01"
        assert not closed.done()
        await asyncio.to_thread(db._connection._engine.close)
        assert await closed == "08003"

    run(body)


def test_use_after_close() -> None:
    async def main() -> None:
        db = await eddyline.aconnect()
        await db.close()
        await db.close()
        with pytest.raises(eddyline.InterfaceError):
            await db.execute("SELECT 1")

    asyncio.run(main())
