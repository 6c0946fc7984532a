"""Adding up picked rows: the kernel against its twin, on columns of every type."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.kernels.picked import UNDECIDED, net_picked, net_picked_twin
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType
from eddyline.testing.columns import ALL_TYPES
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, build_run
from tests.kernels.run_samples import SampleRuns

Pick = tuple[int, int, int]


def netted(runs: SampleRuns, picks: list[Pick], wanted: list[bool], entries: int) -> list[Pick] | None:
    """What the kernel leaves of the picks; None: undecided."""
    columns = [np.array(column, np.int64) for column in zip(*picks, strict=True)]
    table = np.full(entries, 5, np.int64)
    left = net_picked(runs.heads, runs.descs, np.array(wanted, np.uint8), *columns, table)
    if left == UNDECIDED:
        return None
    return list(zip(*(column[:left].tolist() for column in columns), strict=True))


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_picked_rows_are_added_up_as_by_the_twin(kind: SqlType) -> None:
    rng = Random(f"picked {kind}")
    decided = 0
    for _ in range(30):
        runs = SampleRuns((kind, BOOLEAN), [12, 3, 1], rng)
        rows = [(run, row) for run, head in enumerate(runs.heads.tolist()) for row in range(head[1])]
        chosen = [rng.choice(rows) for _ in range(rng.randrange(1, 13))]
        picks = [(*rng.choice(chosen), rng.choice([-1, 1, 1, 2])) for _ in chosen]
        wanted = [rng.random() < 0.8 for _ in picks]
        expected = net_picked_twin(runs.descs, [pick for pick, want in zip(picks, wanted, strict=True) if want])
        assert netted(runs, picks, wanted, 16) == expected
        decided += expected is not None
    assert 5 <= decided <= 29


def test_totals_that_no_lookup_shows_are_not_decided() -> None:
    runs = SampleRuns((BIGINT,), [1], Random(1))
    assert netted(runs, [(0, 0, 1), (0, 0, -1)], [True, True], 4) == []
    assert netted(runs, [(0, 0, 1), (0, 0, -2)], [True, True], 4) is None
    assert netted(runs, [(0, 0, 2**63 - 1), (0, 0, 1), (0, 0, -1)], [True] * 3, 4) is None


def test_many_rows_that_second_words_do_not_tell_apart_are_not_decided() -> None:
    column = pa.array(range(100))
    runs = build_run(
        Batch((BIGINT,), (column,), np.zeros(100, np.int64), np.ones(100, np.int64)),
        Layout((BIGINT,), (0,)),
        Hasher(1),
        lower=Frontier(0),
        upper=Frontier(1),
        since=Frontier(0),
    )
    assert not runs.value_hashes.any()
    head, descs = runs.head[None], runs.descriptors[None]
    for rows, left in ((20, 20), (100, UNDECIDED)):
        picks = [np.zeros(rows, np.int64), np.arange(rows), np.ones(rows, np.int64)]
        assert net_picked(head, descs, np.ones(rows, np.uint8), *picks, np.empty(128, np.int64)) == left
