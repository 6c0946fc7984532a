"""The layouts that are compared, and the database that each gets."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa

import eddyline
from eddyline.adapter import replica as replica_module
from eddyline.adapter.clusters import Cluster
from eddyline.compute.solo import Solo
from eddyline.protocol.messages import Peek, PeekResponse

__all__ = [
    "BIG_ROWS",
    "HOT_ROWS",
    "SENT",
    "SOLO",
    "TWO",
    "UNSLICED",
    "arm",
    "connected",
    "sent_by_name",
    "solo_is",
    "unsliced",
]

UNSLICED: Final = "Solo unsliced"
SOLO: Final = "Solo sliced"
TWO: Final = "two runtimes"
HOT_ROWS: Final = 100_000
BIG_ROWS: Final = 1_000_000
#: threads whose names begin so have their lookups answered by the replica, as those of another process would be
SENT: Final = "sent"


def solo_is(kind: Any) -> None:
    """What makes a replica of one runtime from here on."""
    assert "Solo" in vars(replica_module), "a bench of another layout than it says would be worth nothing"
    vars(replica_module)["Solo"] = kind


def unsliced(*args: Any, **kwargs: Any) -> Solo:
    """One runtime whose activations take all their input."""
    return Solo(*args, activation_ns=1 << 60, budget_rows=1 << 30, **kwargs)


@contextmanager
def connected(name: str, *, workers: int = 1) -> Iterator[eddyline.Connection]:
    """An empty database in the layout ``name``; meanwhile full collections leave out what the program has loaded."""
    solo_is(unsliced if name == UNSLICED else Solo)
    try:
        with eddyline.connect(interactive=name == TWO, workers=workers) as db:
            gc.freeze()
            yield db
    finally:
        gc.unfreeze()
        solo_is(Solo)


@contextmanager
def arm(name: str, *, workers: int = 1) -> Iterator[eddyline.Connection]:
    """``connected``, with an indexed table ``hot``, which has no primary key since storage itself finds rows by that
    one, and an indexed table ``big``."""
    with connected(name, workers=workers) as db:
        db.execute("CREATE TABLE hot (k bigint, v bigint)")
        db.append("hot", pa.table({"k": np.arange(HOT_ROWS), "v": np.arange(HOT_ROWS)}))
        db.execute("CREATE INDEX hot_k ON hot (k)")
        db.execute("CREATE TABLE big (k bigint, g bigint, v bigint)")
        random = np.random.default_rng(3)
        groups, values = (random.integers(0, 1000, BIG_ROWS) for _ in range(2))
        db.append("big", pa.table({"k": np.arange(BIG_ROWS), "g": groups, "v": values}))
        db.execute("CREATE INDEX big_k ON big (k)")
        db.wait_hydrated("hot_k")
        db.wait_hydrated("big_k")
        yield db


@contextmanager
def sent_by_name() -> Iterator[None]:
    """Lookups of threads named ``SENT…`` are sent to the replica, which the embedded database does only if it must."""
    original = Cluster.answer_now

    def answer_now(self: Cluster, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None:
        return None if threading.current_thread().name.startswith(SENT) else original(self, peek, cancelled)

    Cluster.answer_now = answer_now  # type: ignore[method-assign]  # for as long as is measured
    try:
        yield
    finally:
        Cluster.answer_now = original  # type: ignore[method-assign]  # as it was
