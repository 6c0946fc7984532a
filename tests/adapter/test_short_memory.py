"""A database whose process runs out of memory: what is refused, what is stopped, and that no answer is another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.adapter.memory_guard import MemoryGuard
from eddyline.adapter.memory_use import anonymous_bytes, can_be_watched
from eddyline.errors import make_error
from tests.waiting import wait_until

MB = 1 << 20
WHY = make_error("53200", "the build was stopped")


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, grp int)")
        connection.execute("INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 1000) AS i")
        yield connection


def engine_of(db: eddyline.Connection) -> Engine:
    engine = db._engine
    assert isinstance(engine, Engine)
    return engine


def short_of_memory(db: eddyline.Connection) -> Callable[[int], None]:
    """What sets how many of 1000 MB are in use, and looks."""
    in_use = [0]
    engine = engine_of(db)
    engine.memory.close()
    engine.memory = MemoryGuard(engine.relief, used=lambda: in_use[0] * MB, trim=lambda: None, threads=False)
    engine.memory.watch(1000 * MB)

    def look(used_mb: int) -> None:
        in_use[0] = used_mb
        engine.memory.look()

    return look


def sqlstate(db: eddyline.Connection, text: str) -> str | None:
    try:
        db.execute(text)
    except eddyline.Error as error:
        return error.sqlstate
    return None


def test_what_needs_memory_is_refused_and_what_frees_it_is_not(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE u (a int)")
    db.execute("INSERT INTO u SELECT generate_series(1, 10)")
    db.execute("CREATE VIEW v AS SELECT grp, count(*) AS n FROM t GROUP BY grp")
    db.execute("CREATE INDEX i ON v (grp)")
    db.wait_hydrated("v", timeout=60)
    short_of_memory(db)(950)
    for text in (
        "INSERT INTO t VALUES (-1, 0)",
        "UPDATE t SET grp = 1",
        "CREATE TABLE c AS SELECT * FROM t",
        "CREATE INDEX ON t (grp)",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
        "SUBSCRIBE t",
        "SELECT grp, sum(id) FROM t GROUP BY grp",
    ):
        assert sqlstate(db, text) == "53200", text
    for call in (
        lambda: db.append("t", [{"id": -1, "grp": 0}]),
        lambda: db.upsert("t", [{"id": -1, "grp": 0}]),
        lambda: db.executemany("INSERT INTO t VALUES (?, 0)", [(-1,), (-2,)]),
        lambda: db.subscribe("t"),
    ):
        with pytest.raises(eddyline.OperationalError, match="short of memory"):
            call()
    assert db.execute("SELECT grp FROM t WHERE id = 7").fetchall() == [(7,)]
    assert db.execute("SELECT n FROM v WHERE grp = 3").fetchall() == [(100,)]
    assert db.execute("SELECT count(*) FROM pg_class WHERE relname = 'v'").fetchall() == [(1,)]
    db.execute("DELETE FROM t WHERE grp = 3 AND id % 2 = 1")
    db.delete("t", [{"id": 1, "grp": 1}, {"id": 2, "grp": 2}])
    db.execute("TRUNCATE u")
    db.execute("CREATE VIEW w AS SELECT * FROM t")
    db.execute("DROP VIEW w")
    db.execute("DROP INDEX i")
    db.execute("SET statement_timeout = '1min'")


def test_a_transaction_that_is_refused_something_is_rolled_back_or_goes_back_to_a_savepoint(
    db: eddyline.Connection,
) -> None:
    look = short_of_memory(db)
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (2001, 1)")
    db.execute("SAVEPOINT s")
    look(950)
    assert sqlstate(db, "INSERT INTO t VALUES (2002, 1)") == "53200"
    assert sqlstate(db, "SELECT 1") == "25P02"
    db.execute("ROLLBACK TO s")
    db.execute("COMMIT")
    look(0)
    assert db.execute("SELECT id FROM t WHERE id > 2000").fetchall() == [(2001,)]


def test_a_statement_is_stopped_where_it_waits_and_its_transaction_can_be_rolled_back(db: eddyline.Connection) -> None:
    look = short_of_memory(db)
    other = db.session()
    db.execute("BEGIN")
    db.execute("UPDATE t SET grp = 0 WHERE id = 1")
    other.execute("SET lock_timeout = '1min'")
    guard = engine_of(db).memory
    stopper = _later(lambda: bool(guard._statements), lambda: look(1100))
    assert sqlstate(other, "UPDATE t SET grp = 5 WHERE id = 1") == "53200"
    stopper()
    db.execute("COMMIT")
    look(0)
    assert db.execute("SELECT grp FROM t WHERE id = 1").fetchall() == [(0,)]
    other.execute("UPDATE t SET grp = 5 WHERE id = 1")


def _later(ready: Callable[[], bool], then: Callable[[], None]) -> Callable[[], None]:
    """Does ``then`` again and again while it is ``ready``, on a thread; gives what waits for the end of that."""

    def run() -> None:
        wait_until(ready, "it begins")

        def over() -> bool:
            if not ready():
                return True
            then()
            return False

        wait_until(over, "it ends")

    thread = threading.Thread(target=run)
    thread.start()
    return thread.join


# -- builds -----------------------------------------------------------------------------------------------------------

_VIEWS = """
    CREATE VIEW v AS SELECT grp, count(*) AS n, sum(id) AS total FROM t GROUP BY grp;
    CREATE INDEX v_i ON v (grp);
    CREATE MATERIALIZED VIEW m AS SELECT n, count(*) AS groups FROM v GROUP BY n;
    CREATE INDEX m_i ON m (n);
    CREATE VIEW w AS SELECT count(*) AS all_of_it FROM m;
"""
_READS = (
    "SELECT grp, n, total FROM v",
    "SELECT total FROM v WHERE grp = 4",
    "SELECT n, groups FROM m",
    "SELECT groups FROM m WHERE n = 100",
    "SELECT all_of_it FROM w",
    "SELECT v.grp, m.groups FROM v, m WHERE v.n = m.n",
)


def answers(db: eddyline.Connection) -> list[list[tuple[object, ...]]]:
    return [sorted(db.execute(text).fetchall()) for text in _READS]


def id_of(db: eddyline.Connection, name: str) -> str:
    return next(i.id for i in engine_of(db).catalog.snapshot().items("public") if i.name == name)


@pytest.mark.parametrize("stopped", ["v_i", "m", "m_i"])
def test_answers_are_the_same_without_what_was_not_built(db: eddyline.Connection, stopped: str) -> None:
    db.executescript(_VIEWS)
    with eddyline.connect() as unbothered:
        unbothered.execute("CREATE TABLE t (id int PRIMARY KEY, grp int)")
        unbothered.execute("INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 1000) AS i")
        unbothered.executescript(_VIEWS)
        assert answers(db) == answers(unbothered)
        engine_of(db).relief.stop_build(id_of(db, stopped), WHY)
        assert answers(db) == answers(unbothered)
        for text in (
            "INSERT INTO t VALUES (5000, 3)",
            "DELETE FROM t WHERE grp = 7",
            "UPDATE t SET grp = 4",
        ):
            db.execute(text)
            unbothered.execute(text)
            assert answers(db) == answers(unbothered)


def test_all_that_is_built_on_it_goes_and_what_it_is_built_on_stays(db: eddyline.Connection) -> None:
    db.executescript(_VIEWS)
    engine = engine_of(db)
    engine.relief.stop_build(id_of(db, "m"), WHY)
    unbuilt = engine.catalog.snapshot().unbuilt
    assert unbuilt == {id_of(db, "m"), id_of(db, "m_i")}
    with engine.control() as controller:
        assert not any(map(controller.exists, unbuilt)) and controller.exists(id_of(db, "v_i"))
    shown = db.execute(
        "SELECT relname, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid ORDER BY relname"
    ).fetchall()
    assert [row for row in shown if row[0] in ("m_i", "v_i")] == [("m_i", False), ("v_i", True)]
    for name in ("m", "m_i"):
        with pytest.raises(eddyline.OperationalError, match="was stopped for want of memory") as error:
            db.wait_hydrated(name, timeout=60)
        assert error.value.sqlstate == "53200"
    db.wait_hydrated("v", timeout=60)


def test_it_is_dropped_and_made_anew_as_if_nothing_had_been(db: eddyline.Connection) -> None:
    db.executescript(_VIEWS)
    before = answers(db)
    engine = engine_of(db)
    engine.relief.stop_build(id_of(db, "v_i"), WHY)
    db.execute("ALTER INDEX m_i RENAME TO m_j")
    db.execute("CREATE MATERIALIZED VIEW m2 AS SELECT count(*) AS c FROM m")  # computed from what there is
    assert db.execute("SELECT c FROM m2").fetchall() == [(1,)]
    db.executescript("DROP VIEW w; DROP MATERIALIZED VIEW m2; DROP MATERIALIZED VIEW m; DROP INDEX v_i")
    assert engine.catalog.snapshot().unbuilt == frozenset()
    db.executescript("".join(s + ";" for s in _VIEWS.split(";")[1:5]))
    for name in ("v", "m"):
        db.wait_hydrated(name, timeout=60)
    assert answers(db) == before


def test_subscriptions_of_it_end_with_the_reason(db: eddyline.Connection) -> None:
    db.executescript(_VIEWS)
    other = db.session()
    with db.subscribe("m") as of_it, other.subscribe("v") as of_its_source:
        assert of_it.next(60) is not None and of_its_source.next(60) is not None
        engine_of(db).relief.stop_build(id_of(db, "m"), WHY)
        with pytest.raises(eddyline.OperationalError, match="the build was stopped"):
            of_it.next(60)
        db.execute("DELETE FROM t WHERE grp = 2")
        change = of_its_source.next(60)
        assert change is not None and [(r["grp"], r["mz_diff"]) for r in change.updates.to_pylist()] == [(2, -1)]


def test_a_directory_builds_it_anew(tmp_path: Path) -> None:
    with eddyline.connect(str(tmp_path)) as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, grp int)")
        db.execute("INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 100) AS i")
        db.executescript(_VIEWS)
        before = answers(db)
        engine_of(db).relief.stop_build(id_of(db, "v_i"), WHY)
        assert answers(db) == before
    with eddyline.connect(str(tmp_path)) as db:
        assert engine_of(db).catalog.snapshot().unbuilt == frozenset()
        db.wait_hydrated("m", timeout=60)
        assert answers(db) == before


# -- with memory that there really is ---------------------------------------------------------------------------------


def some_more() -> int:
    """A limit at whose nine tenths the process is not yet, however much earlier tests have left."""
    return anonymous_bytes() * 5 // 4 + 100 * MB


@pytest.mark.skipif(not can_be_watched(), reason="only Linux says how much memory is in use")
def test_a_query_that_would_take_all_memory_is_stopped_and_the_next_one_answered(db: eddyline.Connection) -> None:
    db.execute(f"ALTER SYSTEM SET server_memory_limit = '{some_more()}B'")
    shown = dict(line.rsplit(" ", 1) for line in db.metrics().splitlines() if line.startswith("eddyline_memory"))
    assert 0 < float(shown["eddyline_memory_in_use_bytes"]) < float(shown["eddyline_memory_limit_bytes"])
    other = db.session()
    with pytest.raises(eddyline.OperationalError, match=r"was stopped: .* server_memory_limit") as error:
        db.execute("SELECT DISTINCT a.id + 1000 * b.id + 1000000 * c.id FROM t a, t b, t c")
    assert error.value.sqlstate == "53200"
    assert db.execute("SELECT grp FROM t WHERE id = 7").fetchall() == [(7,)]
    wait_until(lambda: sqlstate(other, "INSERT INTO t VALUES (-1, -1)") != "53200", "what it held came back")
    db.execute("ALTER SYSTEM RESET server_memory_limit")
    assert db.execute("SHOW server_memory_limit").fetchall() == [("0",)]


@pytest.mark.skipif(not can_be_watched(), reason="only Linux says how much memory is in use")
def test_a_build_that_would_take_all_memory_is_stopped_and_the_view_read_without(db: eddyline.Connection) -> None:
    db.execute("CREATE VIEW huge AS SELECT a.id AS x, b.id AS y, c.id AS z FROM t a, t b, t c")
    db.execute(f"ALTER SYSTEM SET server_memory_limit = '{some_more()}B'")
    db.execute("CREATE INDEX huge_i ON huge (x)")
    with pytest.raises(eddyline.OperationalError, match="was stopped for want of memory"):
        db.wait_hydrated("huge", timeout=120)
    text = "SELECT count(*) FROM huge WHERE x = 1 AND y = 1"
    wait_until(lambda: sqlstate(db, text) != "53200", "what it held came back")
    assert db.execute(text).fetchall() == [(1000,)]
    db.execute("DROP INDEX huge_i")


def test_the_setting_is_an_amount_of_memory_of_superusers() -> None:
    with eddyline.connect() as db:
        assert db.execute("SHOW server_memory_limit").fetchall() == [("0",)]
        assert sqlstate(db, "ALTER SYSTEM SET server_memory_limit = 'much'") == "22023"
        assert sqlstate(db, "SET server_memory_limit = '1GB'") is not None
        db.execute("CREATE ROLE ann")
        db.execute("SET ROLE ann")
        assert sqlstate(db, "ALTER SYSTEM SET server_memory_limit = '1GB'") == "42501"
