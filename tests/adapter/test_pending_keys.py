"""Pending changes by key: against going through all of them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from eddyline.adapter.pending_keys import PendingKeys
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import INTEGER


def test_candidates_are_the_changes_with_a_wanted_hash_also_after_truncation() -> None:
    rng = random.Random(5)
    for _ in range(50):
        keys = PendingKeys()
        pending: list[Batch] = []
        for _ in range(30):
            if pending and rng.random() < 0.1:
                kept = rng.randrange(len(pending))
                del pending[kept:]
                keys.truncate(kept)
            values = [rng.randrange(40) for _ in range(rng.randrange(6))]
            pending.append(Batch.at((INTEGER,), (pa.array(values, pa.int32()),), len(values), Time(0)))
            keys.add(np.array(values, np.uint64))
            assert keys.batches == len(pending)
            wanted = [rng.randrange(40) for _ in range(rng.randrange(4))]
            hashes = np.array(wanted, np.uint64)
            found = keys.candidates(hashes, pending, 30)
            assert found is not None
            assert not found or keys.candidates(hashes, pending, len(found) - 1) is None
            got = [v for batch in found for v in batch.columns[0].to_pylist()]
            assert got == [v for batch in pending for v in batch.columns[0].to_pylist() if v in wanted]
