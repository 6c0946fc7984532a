"""``python -m bench.eddyline_job words|orders FILE [FILE]``: the job of ``pathway_job`` in Eddyline; same output.

Every batch of at most 20,000 rows is appended in a commit of its own, and the view is read after it, so that the
result was exact and seen after each.  ``seconds`` is from opening the file to the last answer; ``process_seconds``
includes the import, opening the database and the first state of the (empty) view.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

_started = time.perf_counter()

import pyarrow as pa  # noqa: E402 - the import is part of what process_seconds measures
import pyarrow.csv  # noqa: E402 - as above

import eddyline  # noqa: E402 - as above

BATCH_ROWS = 20_000
_BLOCK_BYTES = 1 << 20

_WORDS = """
CREATE TABLE words (word text);
CREATE VIEW counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
CREATE INDEX ON counts (word);
"""
_ORDERS = """
CREATE TABLE orders (id bigint, cust bigint, amount bigint);
CREATE TABLE customers (cust bigint, region text);
CREATE VIEW totals AS
    SELECT region, sum(amount) AS total, count(*) AS n
    FROM orders JOIN customers ON orders.cust = customers.cust GROUP BY region;
CREATE INDEX ON totals (region);
"""


def batches(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file, at most ``BATCH_ROWS`` at a time."""
    with pa.csv.open_csv(path, pa.csv.ReadOptions(block_size=_BLOCK_BYTES)) as reader:
        for block in reader:
            for start in range(0, block.num_rows, BATCH_ROWS):
                yield block.slice(start, BATCH_ROWS)


def words(db: eddyline.Connection, path: str) -> tuple[float, int]:
    """(when it began, rows counted); reads one word's count after each commit, all of them at the end."""
    db.executescript(_WORDS)
    db.wait_hydrated("counts_word_idx")
    begun = time.perf_counter()
    for batch in batches(path):
        db.append("words", batch)
        db.execute("SELECT n FROM counts WHERE word = $1", ("w1",)).fetchall()
    return begun, sum(n for _, n in db.execute("SELECT word, n FROM counts").fetchall())


def orders(db: eddyline.Connection, orders_path: str, customers_path: str) -> tuple[float, int]:
    """(when it began, rows summed); reads the whole view after each commit."""
    db.executescript(_ORDERS)
    db.wait_hydrated("totals_region_idx")
    begun = time.perf_counter()
    for batch in batches(customers_path):
        db.append("customers", batch)
    rows = 0
    for batch in batches(orders_path):
        db.append("orders", batch)
        rows = sum(r[2] for r in db.execute("SELECT region, total, n FROM totals").fetchall())
    return begun, rows


def main() -> None:
    job, *files = sys.argv[1:]
    with eddyline.connect() as db:
        begun, rows = words(db, *files) if job == "words" else orders(db, *files)
        ended = time.perf_counter()
    sys.stdout.write(json.dumps({"rows": rows, "seconds": ended - begun, "process_seconds": ended - _started}) + "\n")


if __name__ == "__main__":
    main()
