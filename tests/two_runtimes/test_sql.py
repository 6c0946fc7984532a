"""Two runtimes through SQL: configuration, reads while a view hydrates, shared fate."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.system_settings import INTERACTIVE_DATAFLOWS, INTERACTIVE_RUNTIME
from eddyline.compute.operators.arrange import ArrangeOperator
from eddyline.compute.operators.collect import CollectOperator

Rows = list[tuple[object, ...]]


@pytest.fixture(params=[True, False], ids=["two runtimes", "solo"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        yield connection


def test_threads_are_named_after_their_runtime() -> None:
    others = set(threading.enumerate())  # databases that other tests share
    with eddyline.connect(interactive=True, workers=2):
        names = {t.name for t in set(threading.enumerate()) - others}
        assert {"maint:0", "maint:1", "inter:0", "inter:1", "inter:0:heavy", "inter:1:heavy"} <= names
        assert not any(n.startswith("solo") for n in names)


def test_alter_system(db: eddyline.Connection) -> None:
    def show(name: str) -> Rows:
        return db.execute(f"SHOW {name}").fetchall()

    assert show(INTERACTIVE_DATAFLOWS) == [("on",)]
    assert show(INTERACTIVE_RUNTIME) == [("off",)]
    db.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = off")
    db.execute(f"ALTER SYSTEM SET {INTERACTIVE_RUNTIME} TO 'true'")
    assert (INTERACTIVE_DATAFLOWS, "off") in db.execute("SHOW ALL").fetchall()
    assert show(INTERACTIVE_RUNTIME) == [("on",)]
    db.execute(f"ALTER SYSTEM RESET {INTERACTIVE_DATAFLOWS}")
    assert show(INTERACTIVE_DATAFLOWS) == [("on",)]
    db.execute("ALTER SYSTEM RESET ALL")
    assert show(INTERACTIVE_RUNTIME) == [("off",)]
    for statement, sqlstate in (
        ("ALTER SYSTEM SET no_such_thing = on", "42704"),
        (f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = 7", "22023"),
        (f"SET {INTERACTIVE_DATAFLOWS} = off", "42704"),
    ):
        with pytest.raises(eddyline.DatabaseError) as refused:
            db.execute(statement)
        assert refused.value.sqlstate == sqlstate
    db.execute("BEGIN")
    with pytest.raises(eddyline.DatabaseError) as refused:
        db.execute("ALTER SYSTEM RESET ALL")
    assert refused.value.sqlstate == "25001"


def test_answers_do_not_depend_on_where_reads_are_rendered(db: eddyline.Connection) -> None:
    choose = random.Random(5)
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    db.execute("CREATE TABLE u (a int, c int)")
    names: list[str] = []
    for n in range(40):
        db.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = {choose.choice(('on', 'off'))}")
        db.execute(f"INSERT INTO t VALUES ({n}, {n % 5})")
        db.execute(f"INSERT INTO u VALUES ({n}, {n % 3}), ({n}, 7)")
        if choose.random() < 0.2:
            names.append(f"v{n}")
            db.execute(f"CREATE MATERIALIZED VIEW v{n} AS SELECT b, count(*) n FROM t GROUP BY b")
            db.execute(f"CREATE INDEX vi{n} ON v{n} (b)")
        elif names and choose.random() < 0.2:
            db.execute(f"DROP MATERIALIZED VIEW {names.pop()}")
        assert db.execute("SELECT count(*) FROM t JOIN u ON t.a = u.a").fetchall() == [(2 * (n + 1),)]
        for name in names:
            assert db.execute(f"SELECT sum(n) FROM {name}").fetchall() == [(n + 1,)]


def test_a_table_without_index_is_read_while_a_view_hydrates() -> None:
    with eddyline.connect(interactive=True) as db:
        db.execute("CREATE TABLE big (k int, g int)")
        db.append("big", pa.table({"k": list(range(200_000)), "g": [n % 100 for n in range(200_000)]}))
        db.execute("CREATE TABLE small (k int)")
        db.execute("INSERT INTO small VALUES (1), (2)")
        stop = threading.Event()
        held = ArrangeOperator.step

        def step(self: ArrangeOperator) -> bool:
            return held(self) if stop.is_set() or not threading.current_thread().name.startswith("maint") else False

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ArrangeOperator, "step", step)
            db.execute("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) n FROM big GROUP BY g")
            db.execute("CREATE INDEX vi ON v (g)")
            assert db.execute("SELECT sum(k) FROM small").fetchall() == [(3,)]
            stop.set()
        db.execute("INSERT INTO small VALUES (3)")
        assert db.execute("SELECT count(*), sum(n) FROM v").fetchall() == [(100, 200_000)]


@pytest.mark.parametrize("thread", ["maint:0", "inter:0:heavy"])
def test_i21_a_failure_ends_both_runtimes_and_the_replica_is_rebuilt(thread: str) -> None:
    others = set(threading.enumerate())  # databases that other tests share

    def workers() -> set[threading.Thread]:
        return {t for t in set(threading.enumerate()) - others if t.name in ("maint:0", "inter:0")}

    with eddyline.connect(interactive=True) as db:
        db.execute("CREATE TABLE t (a int, b int)")
        db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) n FROM t GROUP BY b")
        db.execute("CREATE INDEX vi ON v (b)")
        assert db.execute("SELECT sum(n) FROM v").fetchall() == [(2,)]
        before = workers()
        operator = ArrangeOperator if thread == "maint:0" else CollectOperator
        original, fired, asked = operator.step, threading.Event(), threading.Event()

        def explode(self: Any) -> bool:
            if threading.current_thread().name == thread and not fired.is_set():
                fired.set()
                assert asked.wait(60)
                raise RuntimeError("boom")
            return bool(original(self))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operator, "step", explode)
            db.execute("INSERT INTO t VALUES (3, 3)")
            # The one waits for maintenance to seal the insert, the other for its own dataflow.
            waits = "SELECT sum(n) FROM v" if thread == "maint:0" else "SELECT count(*) FROM t WHERE b > 1"
            peeks = db._engine._control.controller._peeks

            def ask_first() -> None:
                deadline = time.monotonic() + 30
                while not (fired.is_set() and len(peeks)) and time.monotonic() < deadline:
                    time.sleep(0.002)
                asked.set()

            failing = threading.Thread(target=ask_first)
            failing.start()
            with pytest.raises(eddyline.OperationalError) as lost:
                db.execute(waits)
            failing.join()
            assert lost.value.sqlstate == "58000"
            assert fired.is_set()
        for _ in range(2):
            assert db.execute("SELECT sum(n) FROM v").fetchall() == [(3,)]
            db.execute("SELECT count(*) FROM t WHERE b > 1")
        after = workers()
        assert (len(before), len(after)) == (2, 2)
        assert before.isdisjoint(after), "both threads are new"
