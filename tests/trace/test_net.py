"""Updates of one time with what cancels taken out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from eddyline.repr.batch import Batch
from eddyline.repr.types import BIGINT
from eddyline.trace.hasher import Hasher
from eddyline.trace.net import net_updates


def _batch(values: np.ndarray, diffs: np.ndarray) -> Batch:
    return Batch((BIGINT,), (pa.array(values, pa.int64()),), np.zeros(len(values), np.int64), diffs.astype(np.int64))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.5, 1.0], ids=lambda s: f"{s:.0%} retractions")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_adds_up_and_no_row_cancels_another(share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    batches = [
        _batch(random.integers(0, 60, n), np.where(random.random(n) < share, -1, 1)) for n in random.integers(0, 200, 5)
    ]
    wanted: Counter[int] = Counter()
    for batch in batches:
        for value, diff in zip(batch.columns[0].to_pylist(), batch.diffs.tolist(), strict=True):
            wanted[value] += diff
    found: dict[int, list[int]] = {}
    for batch in net_updates((BIGINT,), batches, Hasher(seed)):
        for value, diff in zip(batch.columns[0].to_pylist(), batch.diffs.tolist(), strict=True):
            found.setdefault(value, []).append(diff)
    assert {v: sum(d) for v, d in found.items()} == {v: n for v, n in wanted.items() if n}
    assert all(min(d) > 0 or len(d) == 1 for d in found.values())


def test_rows_beside_few_retractions_are_passed_on_as_they_are() -> None:
    plain = _batch(np.arange(100, 200), np.ones(100))
    mixed = _batch(np.array([1, 2, 1]), np.array([1, 1, -1]))
    out = list(net_updates((BIGINT,), [plain, mixed], Hasher(1, bits=64)))
    assert out[0] is plain
    assert [b.columns[0].to_pylist() for b in out[1:]] == [[2]]
