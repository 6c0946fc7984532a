"""Workers that render take turns where there are more of them than cores."""

from __future__ import annotations

import threading

import pytest

import eddyline
from eddyline.compute import runtime as runtime_module
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.worker import Worker


@pytest.mark.parametrize(("cores", "most"), [(1, 1), (2, 2), (64, 4)])
@pytest.mark.parametrize("interactive", [True, False])
def test_no_more_workers_render_at_once_than_there_are_cores(
    cores: int, most: int, interactive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_module, "_cores", lambda: cores)
    lock, inside, seen = threading.Lock(), list[str](), list[int]()
    original, others = Worker.step, set(threading.enumerate())  # of databases that other tests share

    def step(self: Worker) -> bool:
        name = threading.current_thread().name
        renders = name.startswith(("maint", "solo")) and threading.current_thread() not in others
        with lock:
            inside.extend([name] * renders)
            seen.append(len(inside))
        try:
            return original(self)
        finally:
            with lock:
                if renders:
                    inside.remove(name)

    monkeypatch.setattr(Worker, "step", step)
    with eddyline.connect(workers=4, interactive=interactive) as db:
        db.execute("CREATE TABLE t (k int, v int)")
        db.execute("CREATE VIEW s AS SELECT k % 7 AS g, sum(v) AS n FROM t GROUP BY k % 7")
        db.execute("CREATE INDEX s_g ON s (g)")
        for n in range(20):
            db.execute("INSERT INTO t SELECT $1, x FROM generate_series(1, 50) AS y (x)", (n,))
            assert db.execute("SELECT sum(n) FROM s").fetchall() == [(1275 * (n + 1),)]
    assert max(seen) <= most


def test_who_answers_lookups_takes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that keeps its only turn for ever keeps no lookup waiting."""
    monkeypatch.setattr(runtime_module, "_cores", lambda: 1)
    with eddyline.connect(workers=2, interactive=True) as db:
        db.execute("CREATE TABLE t (k int, v int)")
        db.execute("INSERT INTO t VALUES (1, 10)")
        db.execute("CREATE INDEX t_k ON t (k)")
        db.wait_hydrated("t_k", timeout=60)
        stepped, stuck, on = threading.Event(), threading.Event(), threading.Event()
        render, answer = Worker.step, InteractiveWorker.step

        def stay(self: Worker) -> bool:
            if threading.current_thread().name.startswith("maint"):
                stuck.set()
                on.wait(60)
            return render(self)

        def step(self: InteractiveWorker) -> bool:
            stepped.set()
            return answer(self)

        monkeypatch.setattr(Worker, "step", stay)
        monkeypatch.setattr(InteractiveWorker, "step", step)
        monkeypatch.setattr("eddyline.adapter.clusters.Cluster.answer_now", lambda self, peek, cancelled: None)
        with db.session() as other:
            writer = threading.Thread(target=other.execute, args=("INSERT INTO t VALUES (2, 20)",))
            writer.start()
            assert stuck.wait(60)
            db.execute("SET transaction_isolation = 'serializable'")
            assert db.execute("SELECT v FROM t WHERE k = 1").fetchall() == [(10,)]
            assert stepped.is_set()
            on.set()
            writer.join()
