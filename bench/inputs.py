"""The input files of the stream measurements, made from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

__all__ = ["make_orders", "make_words"]


def make_words(path: Path, rows: int, *, words: int = 5_000) -> None:
    """One column ``word``; frequencies fall off as in text."""
    random = np.random.default_rng(1)
    numbers = np.minimum(random.zipf(1.3, rows), words)
    names = pa.array([f"w{i}" for i in range(words + 1)])
    pa.csv.write_csv(pa.table({"word": names.take(pa.array(numbers))}), path)


def make_orders(orders: Path, customers: Path, rows: int, customer_rows: int) -> None:
    """orders(id, cust, amount) and customers(cust, region)."""
    random = np.random.default_rng(2)
    pa.csv.write_csv(
        pa.table(
            {
                "id": np.arange(rows),
                "cust": random.integers(0, customer_rows, rows),
                "amount": random.integers(1, 10_000, rows),
            }
        ),
        orders,
    )
    regions = pa.array([f"region{i}" for i in range(50)])
    pa.csv.write_csv(
        pa.table(
            {"cust": np.arange(customer_rows), "region": regions.take(pa.array(random.integers(0, 50, customer_rows)))}
        ),
        customers,
    )
