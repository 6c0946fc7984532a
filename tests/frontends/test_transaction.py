"""``with db.transaction()``: one commit, or nothing."""

from __future__ import annotations

import asyncio

import pytest

import eddyline


@pytest.fixture(autouse=True)
def table(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY)")


def rows(db: eddyline.Connection) -> list[tuple[int]]:
    return db.execute("SELECT a FROM t ORDER BY a").fetchall()


def test_a_block_is_seen_by_others_at_its_end(db: eddyline.Connection) -> None:
    with db.session() as other:
        with db.transaction() as same:
            assert same is db
            db.execute("INSERT INTO t VALUES (1)")
            db.append("t", [{"a": 2}])
            assert (rows(db), rows(other)) == ([(1,), (2,)], [])
        assert rows(other) == [(1,), (2,)]
    assert not db.in_transaction


def test_an_exception_rolls_back_and_goes_on(db: eddyline.Connection) -> None:
    with pytest.raises(ZeroDivisionError), db.transaction():
        db.execute("INSERT INTO t VALUES (1)")
        raise ZeroDivisionError
    with pytest.raises(eddyline.IntegrityError), db.transaction():
        db.execute("INSERT INTO t VALUES (1)")
        db.execute("INSERT INTO t VALUES (1)")
    assert (rows(db), db.in_transaction) == ([], False)


def test_a_failure_that_was_caught_inside_is_not_lost(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.Error) as caught, db.transaction():
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(eddyline.DataError):
            db.execute("SELECT 1 / 0")
    assert caught.value.sqlstate == "25P02"
    assert (rows(db), db.in_transaction) == ([], False)


def test_blocks_do_not_nest(db: eddyline.Connection) -> None:
    with db.transaction():
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(eddyline.Error) as caught, db.transaction():
            raise AssertionError
        assert caught.value.sqlstate == "25001"
    assert rows(db) == [(1,)]


def test_a_block_may_end_its_transaction_itself(db: eddyline.Connection) -> None:
    with db.transaction():
        db.execute("INSERT INTO t VALUES (1)")
        db.rollback()
    with db.transaction():
        db.execute("INSERT INTO t VALUES (2)")
        db.commit()
    assert rows(db) == [(2,)]


def test_coroutines_have_it_too() -> None:
    async def body() -> None:
        async with await eddyline.aconnect() as db:
            await db.execute("CREATE TABLE t (a int PRIMARY KEY)")
            async with db.transaction():
                await db.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(ZeroDivisionError):
                async with db.transaction():
                    await db.execute("INSERT INTO t VALUES (2)")
                    raise ZeroDivisionError
            started = asyncio.Event()

            async def endless() -> None:
                async with db.transaction():
                    await db.execute("INSERT INTO t VALUES (3)")
                    started.set()
                    await asyncio.sleep(3600)

            task = asyncio.create_task(endless())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await db.execute("SELECT a FROM t")).fetchall() == [(1,)]

    asyncio.run(body())
