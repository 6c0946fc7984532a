"""Alerts: a subscription tells when a machine overheats, and when it is well again.

python examples/alerts.py
"""

from __future__ import annotations

import threading
import time

import eddyline

READINGS = [
    [("press", 60), ("oven", 180)],
    [("press", 91), ("oven", 185)],
    [("press", 97), ("oven", 260)],
    [("press", 70), ("oven", 270)],
    [("oven", 190)],
]


def open_plant() -> eddyline.Connection:
    db = eddyline.connect()
    db.executescript("""
        CREATE TABLE limits (machine text PRIMARY KEY, celsius int NOT NULL);
        CREATE TABLE readings (machine text PRIMARY KEY, celsius int NOT NULL);
        INSERT INTO limits VALUES ('press', 90), ('oven', 250);

        CREATE VIEW overheated AS
            SELECT machine FROM readings JOIN limits USING (machine)
            WHERE readings.celsius > limits.celsius;
    """)
    return db


def feed(session: eddyline.Connection) -> None:
    """What the machines send: each batch replaces the last reading of its machines."""
    for batch in READINGS:
        session.upsert("readings", [{"machine": machine, "celsius": celsius} for machine, celsius in batch])
        time.sleep(0.05)
    session.close()


def main() -> None:
    with open_plant() as db:
        alerts = db.subscribe("overheated", snapshot=False, timeout=2)
        plant = threading.Thread(target=feed, args=(db.session(),))
        plant.start()
        told = 0
        for change in alerts:
            for update in change.updates.to_pylist():
                print(f"{update['machine']} {'is too hot' if update['mz_diff'] > 0 else 'is well again'}")
                told += 1
            if told == 4:
                break
        plant.join()


if __name__ == "__main__":
    main()
