"""The input files of the stream measurements, made from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

__all__ = ["make_orders", "make_words"]

_LETTERS = "etaoinshrdlcumwfgypbvkjxqz"


def make_words(path: Path, rows: int, *, vocabulary: int = 50_000) -> None:
    """One column ``word``: as of a long text in a natural language, one word a row.

    The k-th most frequent word comes with a frequency of about 1 / (k + 2.7) (Zipf's law as Mandelbrot corrected it);
    frequent words are short, letters as frequent as in English.
    """
    random = np.random.default_rng(1)
    weights = 1.0 / (np.arange(vocabulary) + 2.7) ** 1.02
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(rows))
    pa.csv.write_csv(pa.table({"word": _vocabulary(vocabulary, random).take(pa.array(ranks))}), path)


def _vocabulary(words: int, random: np.random.Generator) -> pa.Array:
    """Distinct words by rank."""
    letters = np.array(list(_LETTERS))
    shares = np.cumsum(1.0 / (np.arange(26) + 3.0))
    found: dict[str, None] = {}
    while len(found) < words:
        lengths = np.maximum(random.normal(2.0 + np.log2(len(found) + 2) * 0.45, 1.5, 500).astype(np.int64), 1)
        drawn = letters[np.searchsorted(shares, random.random((len(lengths), lengths.max())) * shares[-1])]
        found.update(dict.fromkeys("".join(row[:length]) for row, length in zip(drawn, lengths, strict=True)))
    return pa.array(list(found)[:words])


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
