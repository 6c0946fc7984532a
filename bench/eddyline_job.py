"""``python -m bench.eddyline_job [--batch ROWS] [--workers N] words|orders FILE [FILE]``: see ``bench.job_result``.

Every batch is appended in a commit of its own, and the view is read after it, so that the result was exact and seen
after each: words: one word's count; orders: all regions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

_started = time.perf_counter()

import pyarrow as pa  # noqa: E402 - the import is part of what process_seconds measures
import pyarrow.csv  # noqa: E402 - as above

import eddyline  # noqa: E402 - as above
from bench.job_result import JobClock  # noqa: E402 - as above
from eddyline.kernels.warm import warm  # noqa: E402 - as above

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


def batches(path: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file, at most ``rows`` at a time."""
    with pa.csv.open_csv(path, pa.csv.ReadOptions(block_size=_BLOCK_BYTES)) as reader:
        for block in reader:
            for start in range(0, block.num_rows, rows):
                yield block.slice(start, rows)


def words(db: eddyline.Connection, rows: int, path: str) -> dict[str, tuple[int, ...]]:
    for batch in batches(path, rows):
        db.append("words", batch)
        db.execute("SELECT n FROM counts WHERE word = $1", ("e",)).fetchall()
    return {word: (n,) for word, n in db.execute("SELECT word, n FROM counts").fetchall()}


def orders(db: eddyline.Connection, rows: int, orders_path: str, customers_path: str) -> dict[str, tuple[int, ...]]:
    for batch in batches(customers_path, rows):
        db.append("customers", batch)
    found: dict[str, tuple[int, ...]] = {}
    for batch in batches(orders_path, rows):
        db.append("orders", batch)
        read = db.execute("SELECT region, total, n FROM totals").fetchall()
        found = {region: (int(total), n) for region, total, n in read}
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("job", choices=("words", "orders"))
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    with eddyline.connect(workers=arguments.workers) as db:
        warm()  # what is loaded in the background is part of the start
        if arguments.job == "words":
            db.executescript(_WORDS)
            db.wait_hydrated("counts_word_idx")
            clock = JobClock(_started)
            found = words(db, arguments.batch, *arguments.files)
        else:
            db.executescript(_ORDERS)
            db.wait_hydrated("totals_region_idx")
            clock = JobClock(_started)
            found = orders(db, arguments.batch, *arguments.files)
        clock.report(found)


if __name__ == "__main__":
    main()
