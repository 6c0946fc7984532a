"""Subscriptions: by ``subscribe`` and by SUBSCRIBE on a cursor."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.read_plan import ReadPlan, plan_read
from tests.cancelling import cancelling
from tests.waiting import wait_until


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (a int, b text)")
        connection.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
        yield connection


def drain(
    subscription: eddyline.Subscription, *, seconds: float = 60.0
) -> Iterator[tuple[int, list[dict[str, object]]]]:
    while (change := subscription.next(seconds)) is not None:
        yield change.time, change.updates.to_pylist()


def test_changes_come_consolidated_one_batch_per_time(db: eddyline.Connection) -> None:
    first = db.append("t", [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 3, "b": "y"}])
    with db.subscribe("v") as subscription:
        assert subscription.names == ("mz_timestamp", "mz_progressed", "mz_diff", "b", "n")
        changes = drain(subscription)
        at, rows = next(changes)
        assert at >= first
        assert sorted((r["b"], r["n"], r["mz_diff"], r["mz_progressed"]) for r in rows) == [
            ("x", 2, 1, False),
            ("y", 1, 1, False),
        ]
        second = db.append("t", [{"a": 4, "b": "x"}])
        at, rows = next(changes)
        assert at == second
        assert {r["mz_timestamp"] for r in rows} == {second}
        assert sorted((r["b"], r["n"], r["mz_diff"]) for r in rows) == [("x", 2, -1), ("x", 3, 1)]


def test_without_snapshot_only_what_happens_later(db: eddyline.Connection) -> None:
    db.append("t", [{"a": 1, "b": "x"}])
    with db.subscribe("SELECT a FROM t", snapshot=False) as subscription:
        db.append("t", [{"a": 2, "b": "x"}])
        assert [[r["a"] for r in rows] for _, rows in [next(drain(subscription))]] == [[2]]


def test_progress_messages(db: eddyline.Connection) -> None:
    with db.subscribe("SELECT a FROM t", progress=True) as subscription:
        at = db.append("t", [{"a": 1, "b": "x"}])
        seen = []
        for time_, rows in drain(subscription):
            seen.append((time_, rows[0]["mz_progressed"], rows[0]["a"]))
            if time_ > at and rows[0]["mz_progressed"]:
                break
        times = [t for t, _, _ in seen]
        assert times == sorted(times)
        assert (at, False, 1) in seen
        assert all(a is None for _, progressed, a in seen if progressed)


def test_a_range_of_times_that_is_over(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    start = db.execute("SELECT count(*) FROM t").time
    times = []
    with db.session() as writer:
        times = [writer.append("t", [{"a": n, "b": "x"}]) for n in range(5)]
        assert start is not None
        # the open transaction keeps the past readable
        changes = list(db.subscribe("SELECT a FROM t", as_of=start, up_to=times[3]))
    assert [c.time for c in changes] == times[:3]
    assert [c.updates["a"].to_pylist() for c in changes] == [[0], [1], [2]]


def test_up_to_ends_while_nothing_is_written(db: eddyline.Connection) -> None:
    started = time.monotonic()
    end = time.time_ns() // 1000 + 300_000
    assert list(db.subscribe("t", up_to=end)) == []
    assert 0.1 < time.monotonic() - started < 60


def test_timeout_is_the_patience_between_changes(db: eddyline.Connection) -> None:
    db.append("t", [{"a": 1, "b": "x"}])
    subscription = db.subscribe("t", timeout=0.2)
    assert subscription.next(60) is not None
    started = time.monotonic()
    assert list(subscription) == []
    assert 0.1 < time.monotonic() - started < 60


def test_parameters(db: eddyline.Connection) -> None:
    db.append("t", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
    with db.subscribe("SELECT a FROM t WHERE b = $1", parameters=["y"]) as subscription:
        at, rows = next(drain(subscription))
        assert [row["a"] for row in rows] == [2]
        db.append("t", [{"a": 3, "b": "x"}])
        last = db.append("t", [{"a": 4, "b": "y"}])
        assert [(t, row["a"]) for t, rows in [next(drain(subscription))] for row in rows] == [(last, 4)]
        assert at < last


@pytest.mark.parametrize(
    ("query", "options", "sqlstate"),
    [
        ("nowhere", {}, "42P01"),
        ("public.nowhere", {}, "42P01"),
        ("nothing to see", {}, "42601"),
        ("SELECT nothing FROM t", {}, "42703"),
        ("t", {"as_of": 10**6}, "22023"),
        ("t", {"up_to": 10}, "22023"),
        ("t", {"as_of": -1}, "22023"),
        ("SELECT now()", {}, "0A000"),
    ],
)
def test_what_cannot_be_subscribed_to(
    db: eddyline.Connection, query: str, options: dict[str, Any], sqlstate: str
) -> None:
    db.append("t", [{"a": 1, "b": "x"}])
    with pytest.raises(eddyline.Error) as caught:
        db.subscribe(query, **options)
    assert caught.value.sqlstate == sqlstate


def test_row_errors_end_it(db: eddyline.Connection) -> None:
    with db.subscribe("SELECT 1 / a AS x FROM t") as subscription:
        db.append("t", [{"a": 0, "b": "x"}])
        with pytest.raises(eddyline.DataError) as caught:
            next(drain(subscription))
        assert caught.value.sqlstate == "22012"
        with pytest.raises(eddyline.DataError, match="division by zero"):
            subscription.next(1)
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


def test_leaving_the_loop_ends_it_and_one_that_came_to_its_end_is_empty(db: eddyline.Connection) -> None:
    at = db.append("t", [{"a": 1, "b": "x"}])
    subscription = db.subscribe("v")
    for _ in subscription:
        break
    with pytest.raises(eddyline.InterfaceError, match="closed"):
        next(iter(subscription))
    complete = db.subscribe("v", as_of=at, up_to=at + 1)
    assert [len(list(complete)), len(list(complete))] == [1, 0]
    assert ("closed" in repr(subscription), "b, n" in repr(subscription)) == (True, True)


@pytest.mark.parametrize("dropped", ["TABLE t CASCADE", "VIEW v CASCADE"])
def test_dropping_what_it_reads_ends_it_with_an_error_after_what_came_before(
    db: eddyline.Connection, dropped: str
) -> None:
    db.execute("CREATE VIEW w AS SELECT * FROM v")
    db.append("t", [{"a": 1, "b": "x"}])
    subscription, other = db.subscribe("w"), db.subscribe("SELECT 1 AS one")
    got: list[object] = []

    def read() -> None:
        try:
            got.extend(change.updates.num_rows for change in subscription)
        except eddyline.Error as error:
            got.append((error.sqlstate, str(error)))

    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: got, "it reads")
    db.executescript(f"BEGIN; DROP {dropped}; ROLLBACK")
    assert thread.is_alive(), "a drop that is taken back ends nothing"
    db.execute(f"DROP {dropped}")
    thread.join(30)
    assert not thread.is_alive()
    assert got[0] == 1
    assert isinstance(got[1], tuple)
    assert got[1][0] == "42P01"
    assert "was dropped" in got[1][1]
    change = other.next(30)
    assert change is not None, "others go on"
    other.close()


def test_closing_from_another_thread_ends_the_wait(db: eddyline.Connection) -> None:
    subscription = db.subscribe("t")
    timer = threading.Timer(0.2, subscription.close)
    timer.start()
    assert list(subscription) == []
    timer.join()


def test_cancel_ends_the_wait_and_not_the_subscription(db: eddyline.Connection) -> None:
    subscription = db.subscribe("t")
    with cancelling(db), pytest.raises(eddyline.OperationalError) as caught:
        subscription.next(60)
    assert caught.value.sqlstate == "57014"
    db.append("t", [{"a": 1, "b": "x"}])
    assert subscription.next(60) is not None


def test_closing_the_database_ends_the_wait() -> None:
    db = eddyline.connect()
    db.execute("CREATE TABLE t (a int)")
    subscription = db.subscribe("t")
    timer = threading.Timer(0.2, db.close)
    timer.start()
    with pytest.raises(eddyline.Error):
        subscription.next(60)
    timer.join()


def test_what_arrives_adds_up_to_the_view_under_concurrent_writes(db: eddyline.Connection) -> None:
    db.execute("CREATE DEFAULT INDEX ON v")
    subscription = db.subscribe("v")

    def write(number: int) -> None:
        with db.session() as session:
            for k in range(10):
                session.append("t", [{"a": number * 100 + k, "b": str(k % 3)}])
                if k % 4 == 3:
                    session.execute("DELETE FROM t WHERE a = $1", [number * 100 + k])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    last = db.append("t", [{"a": -1, "b": "end"}])
    state: Counter[tuple[object, object]] = Counter()
    for at, rows in drain(subscription):
        for row in rows:
            state[row["b"], row["n"]] += row["mz_diff"]  # type: ignore[operator]  # an int
        assert set(state.values()) <= {0, 1}
        if at >= last:
            break
    subscription.close()
    assert sorted(+state) == sorted(db.execute("SELECT b, n FROM v").fetchall())


def test_cursors_give_the_rows_live(db: eddyline.Connection) -> None:
    cursor = db.execute("SUBSCRIBE TO t")
    assert cursor.description is not None
    assert [d[0] for d in cursor.description] == ["mz_timestamp", "mz_progressed", "mz_diff", "a", "b"]
    assert (cursor.rowcount, cursor.statusmessage) == (-1, "SUBSCRIBE")
    with db.session() as writer:
        timer = threading.Timer(0.2, writer.append, ("t", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]))
        timer.start()
        row = cursor.fetchone()
        timer.join()
    assert row is not None
    assert row[1:3] == (False, 1)
    rest = cursor.fetchmany(10)
    assert sorted(r[3:] for r in [row, *rest]) == [(1, "x"), (2, "y")]
    at = db.execute("DELETE FROM t WHERE a = 1").time
    assert next(iter(cursor)) == (at, False, -1, 1, "x")
    with pytest.raises(eddyline.InterfaceError):
        cursor.arrow()
    cursor.close()
    with pytest.raises(eddyline.InterfaceError):
        cursor.fetchone()


def test_a_cursors_subscription_ends_with_the_next_statement_and_at_up_to(db: eddyline.Connection) -> None:
    cursor = db.cursor()
    cursor.execute("SUBSCRIBE TO t")
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    db.append("t", [{"a": 1, "b": "x"}])
    end = time.time_ns() // 1000 + 200_000
    rows = cursor.execute(f"SUBSCRIBE (SELECT b FROM t) UP TO {end} WITH (PROGRESS)").fetchall()
    assert [r[2:] for r in rows if not r[1]] == [(1, "x")]
    assert cursor.fetchone() is None


def test_subscribing_after_writes_in_a_transaction_is_refused(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (1, 'x')")
    with pytest.raises(eddyline.NotSupportedError):
        db.execute("SUBSCRIBE TO t")
    db.rollback()


@pytest.mark.parametrize("interactive", [True, False], ids=["two runtimes", "solo"])
def test_a_subscription_that_is_not_read_ends_itself_and_no_other(interactive: bool) -> None:
    with eddyline.connect(interactive=interactive) as db:
        db.execute("CREATE TABLE t (a int)")
        db.execute("SET max_subscription_backlog = '100kB'")
        idle = db.subscribe("t")
        patient = db.session().subscribe("t")  # by the database's bound, which is larger
        controller, store = db._engine._control.controller, db._engine.store
        (table,) = store.ids()
        written = 0

        def ended() -> bool:
            nonlocal written
            if written < 100_000:
                db.append("t", {"a": list(range(1000))})
                written += 1000
            return len(controller._dataflows) != 2

        wait_until(ended, "it ends")
        assert written * 20 > 80_000, "what waited was nearly the bound"
        assert not [id for id in db._engine._control.feeds if id not in controller._collections]
        with pytest.raises(eddyline.OperationalError) as error:
            idle.next(timeout=60)
        assert error.value.sqlstate == "53400"
        assert "max_subscription_backlog" in error.value.message
        assert error.value.hint
        with pytest.raises(eddyline.OperationalError, match="max_subscription_backlog"):
            idle.next(timeout=0)
        seen = 0
        while seen < written:
            change = patient.next(timeout=60)
            assert change is not None
            seen += change.updates.num_rows
        patient.close()
        now = db._engine.timeline.newest

        def forgotten() -> bool:
            db.execute("INSERT INTO t VALUES (0)")
            return store.since(table) > now

        wait_until(forgotten, "nobody holds the table any more")


def test_a_snapshot_larger_than_the_backlog_is_delivered(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE large (a int)")
    db.append("large", {"a": list(range(10_000))})
    db.execute("SET max_subscription_backlog = '1kB'")
    with db.subscribe("large") as changes:
        snapshot = changes.next(timeout=60)
        assert snapshot is not None
        assert snapshot.updates.num_rows == 10_000
        db.execute("INSERT INTO large VALUES (-1)")
        after = changes.next(timeout=60)
        assert after is not None
        assert after.updates.num_rows == 1


def test_patience_begins_once_the_snapshot_is_there(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE numbers (x bigint)")
    db.append("numbers", pa.table({"x": np.arange(300_000)}))
    snapshot = next(
        iter(db.subscribe("SELECT x % 1000 AS g, count(DISTINCT x) AS n FROM numbers GROUP BY 1", timeout=0))
    )
    assert len(snapshot.updates) == 1000
    db.execute("CREATE TABLE nothing (x bigint)")
    assert list(db.subscribe("SELECT * FROM nothing", timeout=0.01)) == []


def test_what_ended_a_subscription_is_said_again(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE gone (x bigint)")
    subscription = db.subscribe("gone")
    db.execute("DROP TABLE gone")
    for _ in range(3):
        with pytest.raises(eddyline.ProgrammingError, match="which it reads, was dropped") as caught:
            while subscription.next(60) is not None:
                pass
        assert caught.value.sqlstate == "42P01"


def next_rows(subscription: eddyline.Subscription) -> list[dict[str, object]]:
    change = subscription.next(60.0)
    assert change is not None
    rows: list[dict[str, object]] = change.updates.select(["k", "n"]).to_pylist()
    return rows


def test_an_index_that_is_dropped_as_a_subscription_begins_does_not_matter(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("CREATE TABLE kept (k int)")
    db.execute("CREATE VIEW counted AS SELECT k, count(*) AS n FROM kept GROUP BY k")
    db.execute("CREATE INDEX fleeting ON counted (k)")
    db.execute("INSERT INTO kept VALUES (1), (1)")
    used = []

    def planned_then_dropped(*arguments: Any, **options: Any) -> ReadPlan:
        plan = plan_read(*arguments, **options)
        used.append(len(plan.facts.indexes))
        if len(used) == 1:
            with db.session() as other:
                other.execute("DROP INDEX fleeting")
        return plan

    monkeypatch.setattr("eddyline.adapter.subscribe.plan_read", planned_then_dropped)
    subscription = db.subscribe("SELECT * FROM counted", timeout=30)
    assert next_rows(subscription) == [{"k": 1, "n": 2}]
    db.execute("INSERT INTO kept VALUES (2)")
    assert next_rows(subscription) == [{"k": 2, "n": 1}]
    subscription.close()
    assert used == [1, 0]
