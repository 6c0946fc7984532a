"""Bounds and metrics of reads whose replica runs in processes of its own."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

import eddyline


@pytest.mark.parametrize(("processes", "workers"), [(1, 1), (2, 1)])
def test_a_read_past_its_memory_ends_in_every_process(processes: int, workers: int) -> None:
    with eddyline.connect(processes=processes, workers=workers) as db:
        for name in ("a", "b"):
            db.execute(f"CREATE TABLE {name} (x{name} bigint)")
            db.append(name, pa.table({f"x{name}": range(10_000)}))
        db.execute("CREATE INDEX ai ON a (xa)")
        db.execute("SET query_max_memory = '8MB'")
        start = time.monotonic()
        with pytest.raises(eddyline.OperationalError) as error:
            db.execute("SELECT DISTINCT xa, xb FROM a, b")
        assert error.value.sqlstate == "53200"
        assert error.value.hint
        assert time.monotonic() - start < 60
        assert db.execute("SELECT count(*) FROM a, b WHERE xa = xb").fetchall() == [(10_000,)]
        found = db.execute("EXPLAIN ANALYZE SELECT sum(xa) FROM a, b WHERE xa = xb").fetchall()
        assert ("Runtime: interactive, lane: heavy",) in found
        assert 'eddyline_peek_phase_seconds_count{phase="dataflow",role="interactive"}' in db.metrics()
