"""Sessions that write, read, define, cancel and close at once; every answer is checked against what must hold.

Money moves between accounts and is never made or lost, so every sum, at any time, by any route, is the same.  A counter
only rises, and whoever reads it strictly sees what was acknowledged before.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

import eddyline

ACCOUNTS = 20
TOTAL = 100 * ACCOUNTS
REFUSED = {"40001", "40P01", "57014"}
SUMS = (
    "SELECT s FROM total",
    "SELECT sum(balance) FROM account",
    "SELECT sum(s) FROM by_group",
    "SELECT sum(s) FROM stored",
    "SELECT s FROM layered",
    "SELECT sum(a.balance) FROM account a JOIN account b ON a.id = b.id",
    "SELECT (SELECT sum(s) FROM stored) + (SELECT s FROM total) - (SELECT sum(balance) FROM account)",
)
COUNTERS = (
    "SELECT v FROM counter",
    "SELECT v FROM counted",
    "SELECT v FROM shown",
    "SELECT v FROM counter WHERE id = 1",
)

#: each is done at least once
REQUIRED = ("transfer", "read", "define")

#: as long as a statement never takes where there is a core for it
SLOW_S = 0.3

Session = eddyline.Connection


class World:
    def __init__(self, workers: int) -> None:
        self.db = db = eddyline.connect(workers=workers)
        self.wrong: list[object] = []
        self.done: Counter[str] = Counter()
        self.acknowledged = 0
        self.names = itertools.count()
        self.over = threading.Event()
        db.execute("CREATE TABLE account (id int PRIMARY KEY, grp int NOT NULL, balance bigint NOT NULL)")
        db.append("account", [{"id": i, "grp": i % 3, "balance": 100} for i in range(ACCOUNTS)])
        db.execute("CREATE VIEW total AS SELECT sum(balance) AS s FROM account")
        db.execute("CREATE INDEX ON total (s)")
        db.execute("CREATE VIEW by_group AS SELECT grp, sum(balance) AS s FROM account GROUP BY grp")
        db.execute("CREATE MATERIALIZED VIEW stored AS SELECT grp, sum(s) AS s FROM by_group GROUP BY grp")
        db.execute("CREATE VIEW layered AS SELECT sum(s) AS s FROM stored")
        db.execute("CREATE INDEX ON layered (s)")
        db.execute("CREATE INDEX ON account (grp)")
        db.execute("CREATE TABLE counter (id int PRIMARY KEY, v bigint)")
        db.execute("INSERT INTO counter VALUES (1, 0)")
        db.execute("CREATE MATERIALIZED VIEW counted AS SELECT id, max(v) AS v FROM counter GROUP BY id")
        db.execute("CREATE VIEW shown AS SELECT max(v) AS v FROM counted")
        db.execute("CREATE INDEX ON shown (v)")

    def expect_total(self, session: Session, query: str) -> None:
        rows = session.execute(query).fetchall()
        if rows != [(TOTAL,)]:
            self.wrong.append((query, rows))

    # -- what sessions do

    def transfer(self, session: Session, rng: random.Random) -> None:
        a, b = rng.sample(range(ACCOUNTS), 2)
        amount = rng.randint(1, 10)
        session.execute("BEGIN")
        session.execute("UPDATE account SET balance = balance - $1 WHERE id = $2", [amount, a])
        if rng.random() < 0.3:
            session.execute("SAVEPOINT s")
            session.execute("UPDATE account SET balance = 0")
            session.execute("ROLLBACK TO s")
        session.execute("UPDATE account SET balance = balance + $1 WHERE id = $2", [amount, b])
        self.expect_total(session, "SELECT sum(balance) FROM account")
        if rng.random() < 0.9:
            session.commit()
        else:
            session.rollback()

    def replace(self, session: Session, rng: random.Random) -> None:
        a, b = rng.sample(range(ACCOUNTS), 2)
        session.execute("BEGIN")
        rows = session.execute("SELECT id, grp, balance FROM account WHERE id IN ($1, $2)", [a, b]).fetchall()
        (i, g, x), (j, h, y) = rows
        session.upsert("account", [{"id": i, "grp": g, "balance": x - 1}, {"id": j, "grp": h, "balance": y + 1}])
        session.delete("account", [{"id": i}])
        session.execute("INSERT INTO account VALUES ($1, $2, $3)", [i, g, x - 1])
        session.commit()

    def read(self, session: Session, rng: random.Random) -> None:
        level = rng.choice(("strict serializable", "serializable"))
        session.execute(f"SET transaction_isolation = '{level}'")
        self.expect_total(session, rng.choice(SUMS))

    def read_the_past(self, session: Session, rng: random.Random) -> None:
        begun = time.monotonic()
        at = session.execute("SELECT sum(balance) FROM account").time
        assert at is not None
        try:
            self.expect_total(session, f"{rng.choice(SUMS[:5])} AS OF {at + rng.choice((0, 1, 20_000))}")
        except eddyline.DatabaseError as error:
            # History reaches a second back from the last write: a machine that is this slow may have left it behind.
            if error.sqlstate != "22023" or time.monotonic() - begun < SLOW_S:
                raise

    def read_twice(self, session: Session, rng: random.Random) -> None:
        session.execute("BEGIN")
        first = session.execute("SELECT id, balance FROM account ORDER BY id").fetchall()
        time.sleep(rng.random() * 0.03)
        for query in SUMS:
            self.expect_total(session, query)
        if session.execute("SELECT id, balance FROM account ORDER BY id").fetchall() != first:
            self.wrong.append("a transaction's reads differ")
        session.commit()

    def count(self, session: Session, rng: random.Random) -> None:
        session.execute("UPDATE counter SET v = v + 1")
        self.acknowledged += 1  # the only one who counts

    def watch(self, session: Session, rng: random.Random) -> None:
        least = self.acknowledged
        query = rng.choice(COUNTERS)
        seen = session.execute(query).fetchall()[0][0]
        if seen < least:
            self.wrong.append((query, seen, least))

    def define(self, session: Session, rng: random.Random) -> None:
        name = f"v{next(self.names)}"
        session.execute(f"CREATE VIEW {name} AS SELECT grp, sum(balance) AS s FROM account GROUP BY grp")
        session.execute(f"CREATE INDEX ON {name} (grp)")
        session.execute(f"CREATE MATERIALIZED VIEW {name}_m AS SELECT sum(s) AS s FROM {name}")
        session.execute(f"CREATE VIEW {name}_v AS SELECT s FROM {name}_m")
        session.execute(f"CREATE INDEX ON {name}_v (s)")
        for _ in range(rng.randrange(3)):
            self.expect_total(session, f"SELECT s FROM {name}_v")
        session.execute(f"DROP VIEW {name} CASCADE")

    def subscribe(self, session: Session, rng: random.Random) -> None:
        content: Counter[tuple[object, ...]] = Counter()
        with session.subscribe(rng.choice(("total", "by_group", "stored", "SELECT id, balance FROM account"))) as feed:
            for _ in range(8):
                change = feed.next(0.2)
                if change is None:
                    continue
                for _, _, diff, *row in zip(*change.updates.to_pydict().values(), strict=True):
                    content[tuple(row)] += diff
                present = Counter({row: n for row, n in content.items() if n})
                if any(n != 1 for n in present.values()) or sum(row[-1] for row in present) != TOTAL:  # type: ignore[misc]  # an int
                    self.wrong.append(("subscription", change.time, present))

    def interrupt(self, session: Session, rng: random.Random) -> None:
        session.execute(f"SET statement_timeout = '{rng.randint(1, 20)}ms'")
        timer = threading.Timer(rng.random() * 0.02, session.cancel)
        timer.start()
        try:
            session.execute(
                "SELECT count(*) FROM account a, account b, account c WHERE a.balance + b.balance > c.balance"
            )
            session.execute("UPDATE account SET balance = balance")
        finally:
            timer.join()

    def leave(self, session: Session, rng: random.Random) -> None:
        other = self.db.session()
        timer = threading.Timer(rng.random() * 0.02, other.close)
        timer.start()
        try:
            other.execute("BEGIN")
            other.execute("UPDATE account SET balance = balance - 1 WHERE id = 1")
            other.execute("SELECT count(*) FROM account a, account b WHERE a.balance > b.balance")
            other.execute("UPDATE account SET balance = balance + 1 WHERE id = 2")
            other.commit()
        except eddyline.InterfaceError:
            self.done["left"] += 1
        finally:
            timer.join()

    # -- running

    def run(self, acts: list[Callable[[Session, random.Random], None]], seconds: float) -> None:
        threads = [threading.Thread(target=self._repeat, args=(act, i), daemon=True) for i, act in enumerate(acts)]
        for thread in threads:
            thread.start()
        self.over.wait(seconds)
        deadline = time.monotonic() + 60  # where the machine has little time for it
        while not all(self.done[name] for name in REQUIRED) and time.monotonic() < deadline:
            if self.over.wait(0.05):
                break
        self.over.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a session hangs"

    def _repeat(self, act: Callable[[Session, random.Random], None], seed: int) -> None:
        session, rng = self.db.session(), random.Random(seed)
        while not self.over.is_set():
            try:
                act(session, rng)
                self.done[act.__name__] += 1
            except eddyline.Error as error:
                if error.sqlstate not in REFUSED:
                    self.wrong.append((act.__name__, error.sqlstate, str(error)))
                if session.in_transaction:
                    session.rollback()
            except Exception as error:  # noqa: BLE001 - whatever it is, the test reports it
                self.wrong.append((act.__name__, repr(error)))
            if self.wrong:
                self.over.set()
        session.close()


def chaos(workers: int, seconds: float) -> None:
    world = World(workers)
    try:
        world.run(
            [
                world.transfer, world.transfer, world.replace, world.read, world.read, world.read_the_past,
                world.read_twice, world.count, world.watch, world.watch, world.define, world.define, world.subscribe,
                world.interrupt, world.leave,
            ],
            seconds,
        )  # fmt: skip
        assert world.wrong == []
        for query in SUMS:
            world.expect_total(world.db, query)
        assert world.wrong == []
        assert all(world.done[name] for name in REQUIRED)
    finally:
        world.db.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_no_session_sees_money_made_or_lost(workers: int) -> None:
    chaos(workers, 4.0)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_no_session_sees_money_made_or_lost_for_long(workers: int) -> None:
    chaos(workers, 60.0)
