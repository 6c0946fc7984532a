"""A sales dashboard: two views that stay fresh while orders come in.

python examples/dashboard.py
"""

from __future__ import annotations

import random

import eddyline

REGIONS = ("north", "south", "east", "west")


def open_shop() -> eddyline.Connection:
    db = eddyline.connect()
    db.executescript("""
        CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text NOT NULL);
        CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount numeric(10,2) NOT NULL);

        CREATE VIEW revenue AS
            SELECT region, sum(amount) AS total, count(*) AS orders
            FROM orders JOIN customers ON customer = customers.id
            GROUP BY region;
        CREATE DEFAULT INDEX ON revenue;

        CREATE VIEW best_customers AS
            SELECT name, sum(amount) AS total
            FROM orders JOIN customers ON customer = customers.id
            GROUP BY name
            ORDER BY total DESC, name LIMIT 3;
        CREATE DEFAULT INDEX ON best_customers;
    """)
    db.append("customers", [{"id": n, "name": f"customer {n}", "region": REGIONS[n % 4]} for n in range(100)])
    return db


def show(db: eddyline.Connection) -> None:
    for region, total, orders in db.execute("SELECT region, total, orders FROM revenue ORDER BY region"):
        print(f"  {region:<6} {total:>12,} from {orders:>5} orders")
    best = ", ".join(
        f"{name} ({total:,})" for name, total in db.execute("SELECT * FROM best_customers ORDER BY 2 DESC")
    )
    print(f"  best: {best}")


def main() -> None:
    rng = random.Random(7)
    with open_shop() as db:
        for batch in range(3):
            first = batch * 1000
            db.append(
                "orders",
                {
                    "id": range(first, first + 1000),
                    "customer": [int(100 * rng.random() ** 2) for _ in range(1000)],
                    "amount": [rng.randrange(100, 50_000) / 100 for _ in range(1000)],
                },
            )
            print(f"after {first + 1000} orders")
            show(db)
        db.execute("DELETE FROM orders WHERE customer = 0")
        print("without customer 0")
        show(db)


if __name__ == "__main__":
    main()
