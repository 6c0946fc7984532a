"""Writers wait for views that are too far behind, and nobody else does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

import eddyline
from eddyline.compute.placement import Role
from eddyline.compute.worker import Worker
from eddyline.controller import lag
from eddyline.errors import DatabaseError
from eddyline.repr.time import Time


class Maintenance:
    """Maintenance does nothing while it is ``held``."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def wait(self) -> None:
        assert self._free.wait(60)


@pytest.fixture
def maintenance(monkeypatch: pytest.MonkeyPatch) -> Iterator[Maintenance]:
    held, activate = Maintenance(), Worker._activate

    def gated(worker: Worker) -> bool:
        if worker.role is not Role.INTERACTIVE:
            held.wait()
        return activate(worker)

    monkeypatch.setattr(Worker, "_activate", gated)
    # However long this machine takes, it is not silence.
    monkeypatch.setattr(lag, "_SILENT_NS", 1 << 60)
    yield held
    held.release()


@pytest.fixture
def db(maintenance: Maintenance) -> Iterator[eddyline.Connection]:
    """A view of ``t`` behind an index of a view of it, and ``u``, of which nobody computes anything."""
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
        connection.execute("CREATE TABLE u (k bigint)")
        connection.execute("CREATE INDEX t_k ON t (k)")
        connection.execute("CREATE VIEW g AS SELECT v, count(*) AS n FROM t GROUP BY v")
        connection.execute("CREATE INDEX g_v ON g (v)")
        connection.execute("CREATE VIEW j AS SELECT t.k, g.n FROM t JOIN g ON t.v = g.v")
        connection.execute("CREATE INDEX j_k ON j (k)")
        connection.execute("INSERT INTO t VALUES (0, 0)")
        connection.wait_hydrated("j_k")
        assert connection.execute("SELECT n FROM j WHERE k = 0").fetchall() == [(1,)]
        while connection._engine.lag.behind(_id(connection, "t")):  # an index is told of after it is read, and last t_k
            time.sleep(0.001)
        connection.execute("ALTER SYSTEM SET max_view_lag = '1ms'")
        yield connection
        maintenance.release()


def _fall_behind(db: eddyline.Connection) -> None:
    """By two commits, which is one more than may be, and by more than the bound."""
    tracker = db._engine.lag
    first = tracker.behind(_id(db, "t"))
    assert first == 0
    db.execute("INSERT INTO t VALUES (1, 1)")
    db.execute("INSERT INTO t VALUES (2, 1)")
    assert tracker.behind(_id(db, "t")) == 2
    while tracker.seconds() <= 0.001:
        time.sleep(0.001)


def _id(db: eddyline.Connection, name: str) -> str:
    (found,) = (i.id for i in db._engine.catalog.snapshot().by_id.values() if i.name == name)
    return found


_ROW = pa.table({"k": [7], "v": [7]})


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (9, 9)",
        "INSERT INTO t SELECT k + 9, v FROM t",
        "UPDATE t SET v = 5",
        "DELETE FROM t",
        "TRUNCATE t",
        "BEGIN; INSERT INTO t VALUES (9, 9)",
    ],
)
def test_a_statement_waits_and_can_be_cancelled(
    db: eddyline.Connection, maintenance: Maintenance, statement: str
) -> None:
    maintenance.hold()
    _fall_behind(db)
    db.execute("SET statement_timeout = '20ms'")
    with pytest.raises(DatabaseError) as caught:
        for part in statement.split("; "):
            db.execute(part)
    assert caught.value.sqlstate == "57014"
    assert not db._engine.locks._owners, "it waits before it locks anything"
    if statement.startswith("BEGIN"):
        db.execute("ROLLBACK")
    db.execute("SET statement_timeout = 0")
    maintenance.release()
    for part in statement.split("; "):
        db.execute(part)


@pytest.mark.parametrize("call", ["append", "upsert", "delete"])
def test_a_bulk_call_waits_as_long_as_it_may(db: eddyline.Connection, maintenance: Maintenance, call: str) -> None:
    maintenance.hold()
    _fall_behind(db)
    data = pa.table({"k": [2]}) if call == "delete" else _ROW
    with pytest.raises(DatabaseError) as caught:
        getattr(db, call)("t", data, timeout=0)
    assert caught.value.sqlstate == "53300"
    maintenance.release()
    getattr(db, call)("t", data)


def test_reads_other_tables_and_definitions_wait_for_nothing(db: eddyline.Connection, maintenance: Maintenance) -> None:
    maintenance.hold()
    _fall_behind(db)
    db.append("u", pa.table({"k": [1]}), timeout=0)
    db.execute("INSERT INTO u VALUES (2)")
    db.execute("CREATE TABLE w (k bigint)")
    db.execute("DROP TABLE w")
    db.execute("SET transaction_isolation = 'serializable'")
    assert db.execute("SELECT n FROM j WHERE k = 0").fetchall() == [(1,)]
    if not db._engine.default.reader:
        maintenance.release()  # the one runtime answers this, too
    assert db.execute("SELECT k FROM u ORDER BY k").fetchall() == [(1,), (2,)]


def test_a_transaction_that_has_written_goes_on(db: eddyline.Connection, maintenance: Maintenance) -> None:
    maintenance.hold()
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (3, 1)")
    tracker = db._engine.lag
    table, newest = _id(db, "t"), db._engine.timeline.newest
    # As others would have committed meanwhile, but for the rows.
    for later in (1, 2):
        tracker.wrote([table], Time(newest + later))
    while tracker.wait([table], 0):
        time.sleep(0.001)
    db.execute("SET statement_timeout = '30s'")
    db.execute("INSERT INTO t VALUES (4, 1)")
    db.execute("UPDATE t SET v = 2 WHERE k = 0")
    db.execute("COMMIT")
    maintenance.release()


def test_no_bound_no_wait(db: eddyline.Connection, maintenance: Maintenance) -> None:
    maintenance.hold()
    _fall_behind(db)
    db.execute("ALTER SYSTEM SET max_view_lag = 0")
    for k in range(10, 20):
        db.append("t", pa.table({"k": [k], "v": [k]}), timeout=0)
    assert db._engine.lag.behind(_id(db, "t")) == 12
    db.execute("ALTER SYSTEM RESET max_view_lag")
    assert db.execute("SHOW max_view_lag").fetchall() == [("1s",)]


def test_dropping_what_is_behind_lets_writers_go_on(db: eddyline.Connection, maintenance: Maintenance) -> None:
    maintenance.hold()
    _fall_behind(db)
    with pytest.raises(DatabaseError):
        db.append("t", _ROW, timeout=0)
    for index in ("j_k", "g_v", "t_k"):
        db.execute(f"DROP INDEX {index}")
    db.append("t", _ROW, timeout=0)


def test_closing_ends_the_wait(db: eddyline.Connection, maintenance: Maintenance) -> None:
    maintenance.hold()
    _fall_behind(db)
    caught: list[str | None] = []

    def write() -> None:
        try:
            db.append("t", _ROW)
        except eddyline.Error as error:
            caught.append(error.sqlstate)

    writer = threading.Thread(target=write)
    writer.start()
    while not db._engine.lag._waiting:
        time.sleep(0.001)
    db._engine.lag.close()
    writer.join(30)
    maintenance.release()
    assert caught == ["53300"]


def test_a_view_that_is_built_delays_nobody(db: eddyline.Connection, maintenance: Maintenance) -> None:
    for index in ("j_k", "g_v", "t_k"):
        db.execute(f"DROP INDEX {index}")
    maintenance.hold()
    db.execute("CREATE INDEX late ON t (v)")
    for k in range(10, 30):
        db.append("t", pa.table({"k": [k], "v": [k]}), timeout=0)
    maintenance.release()
    db.wait_hydrated("late")
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(21,)]
    db.append("t", _ROW)


def test_what_views_have_to_catch_up_with_is_a_metric(db: eddyline.Connection, maintenance: Maintenance) -> None:
    maintenance.hold()
    _fall_behind(db)
    with pytest.raises(DatabaseError):
        db.append("t", _ROW, timeout=0)
    shown = dict(line.rsplit(" ", 1) for line in db.metrics().splitlines() if not line.startswith("#"))
    assert float(shown["eddyline_view_lag_seconds"]) > 0.001
    assert shown["eddyline_write_wait_seconds_count"] == "1.0"
    maintenance.release()
    assert db.execute("SELECT count(*) FROM j").fetchall() == [(3,)]
    db.append("t", _ROW)
