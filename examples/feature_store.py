"""A feature store: features of users, fresh with each event, looked up by key.

python examples/feature_store.py
"""

from __future__ import annotations

import datetime as dt
import time

import eddyline

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def open_store() -> eddyline.Connection:
    db = eddyline.connect()
    db.executescript("""
        CREATE TABLE clicks (id bigint PRIMARY KEY, usr int NOT NULL, item int NOT NULL, at timestamptz NOT NULL);
        CREATE TABLE purchases (id bigint PRIMARY KEY, usr int NOT NULL, amount double precision NOT NULL);

        CREATE VIEW features AS
            SELECT usr, clicks, items, last_click, coalesce(spent, 0) AS spent
            FROM (SELECT usr, count(*) AS clicks, count(DISTINCT item) AS items, max(at) AS last_click
                  FROM clicks GROUP BY usr) AS c
            LEFT JOIN (SELECT usr, sum(amount) AS spent FROM purchases GROUP BY usr) AS p USING (usr);
        CREATE INDEX features_by_user ON features (usr);
    """)
    db.wait_hydrated("features", timeout=60)
    return db


def load(db: eddyline.Connection) -> None:
    events = range(20_000)
    db.append(
        "clicks",
        {
            "id": events,
            "usr": [n % 500 for n in events],
            "item": [n * 7 % 90 for n in events],
            "at": [START + dt.timedelta(seconds=n) for n in events],
        },
    )
    db.append("purchases", {"id": range(1000), "usr": [n % 400 for n in range(1000)], "amount": [2.5] * 1000})


def main() -> None:
    with open_store() as db:
        load(db)
        lookup = "SELECT clicks, items, last_click, spent FROM features WHERE usr = $1"
        print("user 42:", *db.execute(lookup, [42]).fetchone() or ())

        db.execute("INSERT INTO clicks VALUES (20000, 42, 1000, '2026-02-01 12:00:00+00')")
        db.execute("INSERT INTO purchases VALUES (1000, 42, 99.5)")
        print("user 42:", *db.execute(lookup, [42]).fetchone() or ())
        print("user 450 has bought for", db.execute("SELECT spent FROM features WHERE usr = 450").fetchone())

        training = db.execute("SELECT * FROM features ORDER BY usr").arrow()
        print("training set:", training.num_rows, "rows,", ", ".join(training.column_names))

        started = time.perf_counter()
        for user in range(500):
            db.execute(lookup, [user]).fetchone()
        print(f"500 lookups in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
