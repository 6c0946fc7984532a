"""Clients create, drop, write and read while the place where reads are rendered changes at random under them.

Each client checks every answer: its own table has no other writer, so that its content is known exactly; what all
clients write together adds up to zero at every time.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import eddyline
from eddyline.adapter.system_settings import INTERACTIVE_DATAFLOWS

CLIENTS = 3
ACTIONS = 200
ACCOUNTS = 8


@dataclass
class Client:
    """One session, its table ``t<n>``, and what that holds: v by k."""

    number: int
    session: eddyline.Connection
    rows: dict[int, int] = field(default_factory=dict)
    views: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.number)
        self.table = f"t{self.number}"
        self.session.execute(f"CREATE TABLE {self.table} (k int PRIMARY KEY, v int)")

    def run(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self.insert: 4, self.change: 2, self.remove: 2, self.create: 1, self.drop: 1, self.transfer: 3,
            self.look_up: 3, self.read_views: 4, self.join: 3, self.read_accounts: 3,
        }  # fmt: skip
        for _ in range(ACTIONS):
            (action,) = self.rng.choices(list(actions), list(actions.values()))
            action()
            self.done[action.__name__] += 1
        self.read_views()
        self.join()

    # -- writes

    def insert(self) -> None:
        k, v = len(self.rows) + self.rng.randrange(1000), self.rng.randrange(5)
        if k not in self.rows:
            self.session.execute(f"INSERT INTO {self.table} VALUES ($1, $2)", (k, v))
            self.rows[k] = v

    def change(self) -> None:
        if self.rows:
            k, v = self.rng.choice(list(self.rows)), self.rng.randrange(5)
            self.session.execute(f"UPDATE {self.table} SET v = $2 WHERE k = $1", (k, v))
            self.rows[k] = v

    def remove(self) -> None:
        v = self.rng.randrange(5)
        self.session.execute(f"DELETE FROM {self.table} WHERE v = $1 AND k % 2 = 0", (v,))
        self.rows = {k: w for k, w in self.rows.items() if w != v or k % 2}

    def transfer(self) -> None:
        a, b, n = self.rng.randrange(ACCOUNTS), self.rng.randrange(ACCOUNTS), self.rng.randrange(10)
        self.session.execute("INSERT INTO entries VALUES ($1, $2), ($3, $4)", (a, n, b, -n))

    # -- definitions

    def create(self) -> None:
        name = f"g{self.number}_{self.done['create']}"
        kind = self.rng.choice(("VIEW", "MATERIALIZED VIEW"))
        self.session.execute(f"CREATE {kind} {name} AS SELECT v, count(*) AS n FROM {self.table} GROUP BY v")
        if self.rng.random() < 0.7:
            self.session.execute(f"CREATE INDEX {name}_v ON {name} (v)")
        self.views.append(f"{kind} {name}")

    def drop(self) -> None:
        if self.views:
            self.session.execute(f"DROP {self.views.pop(self.rng.randrange(len(self.views)))} CASCADE")

    # -- reads

    def look_up(self) -> None:
        k = self.rng.randrange(1100)
        found = self.session.execute(f"SELECT v FROM {self.table} WHERE k = $1", (k,)).fetchall()
        assert found == ([(self.rows[k],)] if k in self.rows else [])

    def read_views(self) -> None:
        expected = Counter(self.rows.values())
        for view in self.views:
            name = view.rpartition(" ")[2]
            assert dict(self.session.execute(f"SELECT v, n FROM {name}").fetchall()) == expected, view
            assert self.session.execute(f"SELECT n FROM {name} WHERE v = 3").fetchall() == (
                [(expected[3],)] if expected[3] else []
            )

    def join(self) -> None:
        pairs = sum(n * n for n in Counter(self.rows.values()).values())
        t = self.table
        assert self.session.execute(f"SELECT count(*) FROM {t} a JOIN {t} b ON a.v = b.v").fetchall() == [(pairs,)]

    def read_accounts(self) -> None:
        query = self.rng.choice(
            ("SELECT coalesce(sum(n), 0) FROM entries", "SELECT coalesce(sum(total), 0) FROM totals")
        )
        assert self.session.execute(query).fetchall() == [(0,)], "half a transfer"


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_exact_while_the_flag_flips(seed: int) -> None:
    stop, failures = threading.Event(), list[BaseException]()
    flips: Counter[str] = Counter()

    def guarded(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as failure:  # noqa: BLE001 - raised by the test's thread
            failures.append(failure)

    with eddyline.connect(interactive=True) as db:
        db.execute("CREATE TABLE entries (account int, n int)")
        db.execute("CREATE VIEW totals AS SELECT account, sum(n) AS total FROM entries GROUP BY account")
        db.execute("CREATE INDEX totals_account ON totals (account)")

        def flip() -> None:
            choose = random.Random(seed)
            with db.session() as session:
                while not stop.wait(choose.random() * 0.02):
                    value = choose.choice(("on", "off"))
                    session.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = {value}")
                    flips[value] += 1

        clients = [Client(10 * seed + n, db.session()) for n in range(CLIENTS)]
        threads = [threading.Thread(target=guarded, args=(c.run,)) for c in clients]
        flipper = threading.Thread(target=guarded, args=(flip,))
        for thread in (*threads, flipper):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        flipper.join()
        for client in clients:
            client.session.close()
        if failures:
            raise failures[0]
        done = sum((c.done for c in clients), Counter[str]())
        assert flips["on"] > 3
        assert flips["off"] > 3
        assert min(done[name] for name in ("create", "drop", "insert", "remove", "transfer", "look_up", "join")) > 0
