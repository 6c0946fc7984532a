"""What each client of a soak does: random steps on rows of its own, of which it knows what they must be."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from typing import TypeAlias

import psycopg

__all__ = ["SETUP", "Client", "Faults"]

Connection: TypeAlias = psycopg.AsyncConnection[tuple[object, ...]]
#: what was found and nobody asked for, by what it is
Faults: TypeAlias = Counter[str]

SETUP = """
    CREATE TABLE accounts (id int PRIMARY KEY, owner int, balance bigint);
    CREATE INDEX accounts_owner ON accounts (owner);
    CREATE MATERIALIZED VIEW totals AS
        SELECT owner, count(*) AS accounts, sum(balance) AS total FROM accounts GROUP BY owner;
    CREATE INDEX totals_owner ON totals (owner)
"""
_MOST_ROWS = 20
_LONG = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a < b"


class Client:
    """One of them; ``pause_s``: on average, between its steps."""

    def __init__(self, number: int, port: int, seed: int, pause_s: float, faults: Faults) -> None:
        self._number = number
        self._port = port
        self._draw = random.Random(seed * 100_003 + number)
        self._pause_s = pause_s
        self._faults = faults
        self._rows: dict[int, int] = {}  # balances by id, as committed
        self._next_id = number * 1_000_000
        self._connection: Connection | None = None
        self.steps: Counter[str] = Counter()

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``; then its connection is closed."""
        kinds = [self._look_up, self._check, self._insert, self._transfer, self._roll_back, self._delete, self._copy,
                 self._define, self._cancel, self._fail, self._vanish, self._follow]  # fmt: skip
        weights = [30, 20, 12, 8, 4, 6, 3, 1, 2, 4, 2, 2]
        await asyncio.sleep(self._draw.uniform(0, self._pause_s))
        while not stop.is_set():
            step = self._draw.choices(kinds, weights)[0]
            try:
                await step(await self._connected())
            except psycopg.Error as problem:
                self._fault(f"{step.__name__}: {problem.sqlstate} {problem}")
                await self._drop()
            except AssertionError as wrong:
                self._fault(f"{step.__name__}: wrong answer: {wrong}")
            self.steps[step.__name__.strip("_")] += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._draw.expovariate(1 / self._pause_s))
        await self._drop()

    def _fault(self, text: str) -> None:
        self._faults[text] += 1

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                host="127.0.0.1", port=self._port, user=f"client{self._number}", dbname="soak", autocommit=True
            )
        return self._connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # -- reads --------------------------------------------------------------------------------------------------------

    async def _look_up(self, c: Connection) -> None:
        id = self._draw.choice([*self._rows, -1])
        cursor = await c.execute("SELECT balance FROM accounts WHERE id = %s", (id,), prepare=True)
        found = await cursor.fetchall()
        assert found == ([(self._rows[id],)] if id in self._rows else []), found

    async def _check(self, c: Connection) -> None:
        """The view, and the rows themselves."""
        cursor = await c.execute("SELECT accounts, total FROM totals WHERE owner = %s", (self._number,), prepare=True)
        found = await cursor.fetchall()
        assert found == ([(len(self._rows), sum(self._rows.values()))] if self._rows else []), found
        rows = await (await c.execute("SELECT id, balance FROM accounts WHERE owner = %s", (self._number,))).fetchall()
        assert sorted(rows) == sorted(self._rows.items()), rows

    async def _follow(self, c: Connection) -> None:
        """A subscription, left after its first changes."""
        async with c.transaction():
            await c.execute(f"DECLARE s CURSOR FOR SUBSCRIBE (SELECT id FROM accounts WHERE owner = {self._number})")
            rows = await (await c.execute("FETCH 1000 s WITH (timeout = '0s')")).fetchall()
            assert len(rows) in {0, len(self._rows)}, rows

    # -- writes -------------------------------------------------------------------------------------------------------

    async def _insert(self, c: Connection) -> None:
        if len(self._rows) >= _MOST_ROWS:
            return
        id, balance = self._fresh(), self._draw.randrange(1000)
        await c.execute("INSERT INTO accounts VALUES (%s, %s, %s)", (id, self._number, balance), prepare=True)
        self._rows[id] = balance

    def _fresh(self) -> int:
        self._next_id += 1
        return self._next_id

    async def _copy(self, c: Connection) -> None:
        rows = {self._fresh(): self._draw.randrange(1000) for _ in range(max(0, _MOST_ROWS - len(self._rows)) // 2)}
        async with c.cursor() as cursor, cursor.copy("COPY accounts FROM STDIN") as copy:
            for id, balance in rows.items():
                await copy.write_row((id, self._number, balance))
        self._rows |= rows

    async def _transfer(self, c: Connection) -> None:
        if len(self._rows) < 2:
            return
        source, target = self._draw.sample(sorted(self._rows), 2)
        try:
            async with c.transaction():
                await c.execute("UPDATE accounts SET balance = balance - 5 WHERE id = %s", (source,))
                await c.execute("UPDATE accounts SET balance = balance + 5 WHERE id = %s", (target,))
        except psycopg.errors.SerializationFailure:  # others write the same table: it is asked again another time
            self.steps["serialization failures"] += 1
            return
        self._rows[source] -= 5
        self._rows[target] += 5

    async def _roll_back(self, c: Connection) -> None:
        await c.execute("BEGIN")
        await c.execute("INSERT INTO accounts VALUES (%s, %s, 1)", (self._fresh(), self._number))
        await c.execute("ROLLBACK")

    async def _delete(self, c: Connection) -> None:
        if self._rows:
            id = self._draw.choice(sorted(self._rows))
            await c.execute("DELETE FROM accounts WHERE id = %s", (id,), prepare=True)
            del self._rows[id]

    async def _define(self, c: Connection) -> None:
        name = f"own_{self._number}"
        await c.execute(f"CREATE TABLE {name} (a int)")
        await c.execute(f"CREATE MATERIALIZED VIEW {name}_v AS SELECT count(*) AS n FROM {name}")
        await c.execute(f"INSERT INTO {name} VALUES (1), (2)")
        found = await (await c.execute(f"SELECT n FROM {name}_v")).fetchall()
        await c.execute(f"DROP TABLE {name} CASCADE")
        assert found == [(2,)], found

    # -- what clients do wrong ----------------------------------------------------------------------------------------

    async def _cancel(self, c: Connection) -> None:
        running = asyncio.ensure_future(c.execute(_LONG))
        while not running.done():  # the first may come before there is anything to cancel
            await c.cancel_safe(timeout=30)
            await asyncio.wait([running], timeout=0.2)
        assert isinstance(running.exception(), psycopg.errors.QueryCanceled), running.exception()

    async def _fail(self, c: Connection) -> None:
        try:
            await c.execute("SELECT 1 / %s", (0,))
        except psycopg.errors.DivisionByZero:
            return
        raise AssertionError("no error")

    async def _vanish(self, c: Connection) -> None:
        """In the middle of a transaction, of a result or of COPY: nothing of that stays."""
        match self._draw.randrange(3):
            case 0:
                await c.execute("BEGIN")
                await c.execute("INSERT INTO accounts VALUES (%s, %s, 1)", (self._fresh(), self._number))
            case 1:
                c.pgconn.send_query(b"SELECT repeat('x', 100) FROM generate_series(1, 20000)")
            case _:
                c.pgconn.send_query(b"COPY accounts FROM STDIN")
        c.pgconn.finish()
