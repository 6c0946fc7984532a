"""Databases of several replicas and several clusters, all in this process; by the engine's own calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eddyline
from eddyline.adapter.clusters import FIRST_CLUSTER, FIRST_REPLICA, Cluster, ClusterSpec, ReplicaSettings
from eddyline.adapter.engine import Engine
from eddyline.adapter.replica import Client, Replica
from eddyline.adapter.waiter import Waiter
from eddyline.compute.solo import Solo
from eddyline.controller.controller import Controller
from eddyline.errors import Error, InternalError
from eddyline.expr.ir import Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ImportIndex,
    ImportSource,
    Operator,
)
from eddyline.protocol.logs import EXPORTS
from eddyline.repr.time import EMPTY
from eddyline.repr.types import INTEGER
from tests.waiting import WAIT_S, wait_until

PAIR = (INTEGER, INTEGER)
SECOND = "u900"
OTHER = "u901"


@pytest.fixture(params=[True, False], ids=["two runtimes", "solo"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        connection.executescript(
            """
            CREATE TABLE t (k int, v int);
            CREATE INDEX t_k ON t (k);
            CREATE MATERIALIZED VIEW m AS SELECT v % 3 AS g, count(*) AS n FROM t GROUP BY v % 3;
            INSERT INTO t VALUES (0, 0);
            """
        )
        connection.execute(f"SET statement_timeout = '{WAIT_S}s'")
        yield connection


def id_of(db: eddyline.Connection, name: str) -> str:
    item = db._engine.catalog.snapshot().view().resolve(None, name)
    assert item is not None
    return item.id


def until(engine: Engine, ready: Callable[[Controller], bool], what: str) -> None:
    assert engine.default.wait_for(ready, WAIT_S), what


def add_second(db: eddyline.Connection) -> Replica:
    """A second replica of the default cluster, like the first one, once it has built everything."""
    engine = db._engine
    like = engine.first_replica.settings
    engine.create_replica(FIRST_CLUSTER, ReplicaSettings(SECOND, "r2", interactive=like.interactive))
    for name in ("t_k", "m"):
        built(engine, id_of(db, name), SECOND)
    return engine.default.replica(SECOND)


def built(engine: Engine, id: str, replica: str) -> None:
    until(engine, lambda c: c.hydrated_on(id, replica), f"{replica} builds {id}")


def fail(replica: Replica) -> Client:
    """Whatever its workers do next ends it; gives what failed."""
    failed = replica.present
    assert isinstance(failed, Solo) or hasattr(failed, "maintenance")
    runtime: Any = failed if isinstance(failed, Solo) else failed.maintenance

    def explode() -> bool:
        raise RuntimeError("injected")

    for _, driven in runtime._driven:
        driven.step = explode
    return failed


class Away:
    """A replica that does not come back before it may."""

    def __init__(self, replica: Replica, patch: pytest.MonkeyPatch) -> None:
        self._may = threading.Event()
        self.tried = threading.Event()
        make = replica._made

        def made() -> Client:
            self.tried.set()
            assert self._may.wait(WAIT_S)
            return make()

        patch.setattr(replica, "_made", made)

    def may_come(self) -> None:
        self._may.set()


def rows(db: eddyline.Connection, query: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = db.execute(query).fetchall()
    return found


def test_reads_and_subscriptions_go_on_while_one_of_two_replicas_is_gone(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = db._engine
    add_second(db)
    first = engine.first_replica
    away = Away(first, monkeypatch)
    subscription = db.subscribe("SELECT k FROM t")
    failed = fail(first)
    for key in range(1, 30):
        db.execute(f"INSERT INTO t VALUES ({key}, {key})")
        assert rows(db, f"SELECT v FROM t WHERE k = {key}") == [(key,)]
        assert rows(db, "SELECT count(*) FROM t x, t y") == [((key + 1) ** 2,)]
        assert rows(db, "SELECT sum(n) FROM m") == [(key + 1,)]
    assert away.tried.wait(WAIT_S), "it failed, and is rebuilt"
    seen: Counter[int] = Counter()
    while len(seen) < 30:
        change = subscription.next(WAIT_S)
        assert change is not None
        seen.update(change.updates.column("k").to_pylist())
    assert seen == Counter(range(30)), "each change once"
    away.may_come()
    until(engine, lambda _: first.client is not failed, "it comes back")
    for name in ("t_k", "m"):
        built(engine, id_of(db, name), FIRST_REPLICA)
    engine.drop_replica(FIRST_CLUSTER, SECOND)
    db.execute("INSERT INTO t VALUES (30, 30)")
    assert rows(db, "SELECT v FROM t WHERE k = 30") == [(30,)]
    change = subscription.next(WAIT_S)
    while change is not None and not change.updates.num_rows:
        change = subscription.next(WAIT_S)
    assert change is not None and change.updates.column("k").to_pylist() == [30]
    subscription.close()


def test_what_two_replicas_write_of_a_materialized_view_is_there_once(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = db._engine
    second = add_second(db)
    subscription = db.subscribe("SELECT g, n FROM m")
    away = Away(second, monkeypatch)
    for key in range(1, 40):
        db.execute(f"INSERT INTO t VALUES ({key}, {key})")
        if key == 13:
            fail(second)
        if key == 26:
            assert away.tried.wait(WAIT_S)
            away.may_come()
    expected = [(0, 14), (1, 13), (2, 13)]
    assert rows(db, "SELECT g, n FROM m ORDER BY g") == expected
    view = id_of(db, "m")
    built(engine, view, SECOND)
    newest = engine.timeline.newest
    until(engine, lambda c: min(c._collections[view].uppers.values()) > newest, "both have written all of it")
    assert rows(db, "SELECT g, n FROM m ORDER BY g") == expected
    net: Counter[tuple[int, int]] = Counter()
    while net != Counter(dict.fromkeys(expected, 1)):
        change = subscription.next(WAIT_S)
        assert change is not None, f"what was subscribed adds up to {net}"
        for g, n, diff in zip(*(change.updates.column(c).to_pylist() for c in ("g", "n", "mz_diff")), strict=True):
            net[g, n] += diff
        assert max(net.values(), default=0) <= 1 and min(net.values(), default=0) >= 0, net
        net += Counter()
    subscription.close()


def test_with_the_last_replica_go_its_answers_and_a_new_one_gives_them_again(db: eddyline.Connection) -> None:
    engine = db._engine
    add_second(db)
    engine.drop_replica(FIRST_CLUSTER, FIRST_REPLICA)
    db.execute("INSERT INTO t VALUES (1, 1)")
    assert rows(db, "SELECT v FROM t WHERE k = 1") == [(1,)]
    subscription = db.subscribe("SELECT k FROM t")
    engine.drop_replica(FIRST_CLUSTER, SECOND)
    with pytest.raises(eddyline.OperationalError, match="dropped") as ended:
        while True:
            subscription.next(WAIT_S)
    assert ended.value.sqlstate == "58000"
    for statement in (
        lambda: db.execute("SELECT v FROM t WHERE k = 1"),
        lambda: db.execute("SELECT count(*) FROM t x, t y"),
        lambda: db.wait_hydrated("t_k"),
        lambda: db.subscribe("t"),
    ):
        with pytest.raises(eddyline.OperationalError, match='cluster "default" has no replicas') as refused:
            statement()
        assert refused.value.sqlstate == "58000"
        assert "CREATE CLUSTER REPLICA default.r1" in str(refused.value.hint)
    with engine.control() as controller:
        assert not len(controller._peeks), "nobody will be asked what was refused"
    db.execute("INSERT INTO t VALUES (2, 2)")  # needs no replica
    engine.create_replica(FIRST_CLUSTER, ReplicaSettings("u902", "r1"))
    assert rows(db, "SELECT v FROM t WHERE k = 2") == [(2,)]
    assert rows(db, "SELECT sum(n) FROM m") == [(3,)]


def test_whoever_waits_for_the_last_replica_hears_that_it_was_dropped(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is not there at that moment."""
    engine = db._engine
    away = Away(engine.first_replica, monkeypatch)
    fail(engine.first_replica)
    db.execute("INSERT INTO t VALUES (1, 1)")
    assert away.tried.wait(WAIT_S)
    waiter = Waiter()
    ask(engine, engine.default, id_of(db, "t_k"), waiter)
    assert not waiter.wait(0), "it comes back"
    engine.drop_replica(FIRST_CLUSTER, FIRST_REPLICA)
    assert waiter.wait(WAIT_S)
    assert waiter.answer is not None and waiter.answer.error is not None
    assert waiter.answer.error[0] == "58000"
    away.may_come()


# -- clusters


class Stepped(Solo):
    """A replica that does nothing by itself."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings, threads=False)


@pytest.fixture
def other(db: eddyline.Connection) -> Cluster:
    """A cluster beside the default one."""
    return db._engine.create_cluster(ClusterSpec(OTHER, "other", (ReplicaSettings("u903", "r1"),)))


def create(engine: Engine, cluster: Cluster | None, *operators: Operator) -> None:
    with engine.control() as controller:
        id = FIRST_CLUSTER if cluster is None else cluster.id
        controller.create_dataflow(DataflowDescription("d", operators, 0, EMPTY), cluster=id)


def create_index(engine: Engine, cluster: Cluster | None, id: str, on: str) -> None:
    create(engine, cluster, ImportSource(on, PAIR), Arrange(0, (0,), PAIR), ExportIndex(id, on, 1, (0,), PAIR))


def ask(engine: Engine, cluster: Cluster, index: str, waiter: Waiter) -> int:
    with engine.control() as controller:
        at = engine.timeline.newest
        uuid = controller.peek(index, at, Mfp((), (0, 1), PAIR))
        cluster.expect(uuid, waiter)
    return at


def answer(engine: Engine, cluster: Cluster, index: str) -> list[tuple[Any, ...]]:
    """All rows of an index, as of the newest commit."""
    waiter = Waiter()
    ask(engine, cluster, index, waiter)
    assert waiter.wait(WAIT_S)
    if waiter.failure is not None:
        raise waiter.failure
    found = waiter.answer
    assert found is not None and found.rows is not None, found
    batch = found.rows.batch()
    return sorted(zip(*(c.to_pylist() for c in batch.columns), strict=True))


def test_a_cluster_that_does_nothing_delays_no_other_one(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, table = db._engine, id_of(db, "t")
    monkeypatch.setattr("eddyline.adapter.replica.Solo", Stepped)
    slow = engine.create_cluster(ClusterSpec(OTHER, "slow", (ReplicaSettings("u903", "r1"),)))
    replica = slow.replica("u903").present
    assert isinstance(replica, Stepped)
    create_index(engine, slow, "x1", table)
    waiters = []
    for key in range(1, 20):
        db.execute(f"INSERT INTO t VALUES ({key}, {key})")
        waiters.append(Waiter())
        at = ask(engine, slow, "x1", waiters[-1])
        assert rows(db, f"SELECT v FROM t WHERE k = {key}") == [(key,)]
        assert rows(db, "SELECT sum(n) FROM m") == [(key + 1,)]
        for name in ("t_k", "m"):
            id = id_of(db, name)
            until(engine, lambda c, id=id, at=at: c.upper(id) > at, f"{name} is sealed")  # type: ignore[misc]  # mypy cannot infer it
    with engine.control() as controller:
        assert controller.upper("x1") <= at
    assert not any(waiter.wait(0) for waiter in waiters)
    replica.settle()
    assert all(waiter.wait(WAIT_S) for waiter in waiters)
    assert [len(w.answer.rows.batch()) for w in waiters if w.answer and w.answer.rows] == list(range(2, 21))


def test_a_materialized_view_of_one_cluster_is_read_by_another_one(db: eddyline.Connection, other: Cluster) -> None:
    engine, table = db._engine, id_of(db, "t")
    create(engine, other, ImportSource(table, PAIR), ExportMaterializedView("x1", 0, PAIR))
    create_index(engine, None, "x2", "x1")
    create_index(engine, other, "x3", "x1")
    for key in range(1, 5):
        db.execute(f"INSERT INTO t VALUES ({key}, {key})")
        expected = [(k, k) for k in range(key + 1)]
        assert answer(engine, engine.default, "x2") == answer(engine, other, "x3") == expected


def test_a_quiet_view_of_one_cluster_delays_no_change_of_another_one(db: eddyline.Connection) -> None:
    """Nothing is written to the view's table, so that the view is sealed only because somebody in the other cluster
    waits for it.
    """
    db.execute("CREATE CLUSTER other")
    db.execute("CREATE TABLE quiet (k int, name text)")
    db.execute("INSERT INTO quiet SELECT g, 'n' || g FROM generate_series(0, 9) g")
    db.execute("CREATE MATERIALIZED VIEW names IN CLUSTER other AS SELECT k, name FROM quiet")
    db.execute("CREATE VIEW named AS SELECT t.v, n.name FROM t JOIN names n ON t.k = n.k")
    db.execute("CREATE INDEX named_v ON named (v)")
    subscription = db.subscribe("SELECT name FROM named", snapshot=False)
    for key in range(1, 10):
        db.execute(f"INSERT INTO t VALUES ({key}, {key})")
        if key % 2:
            assert rows(db, f"SELECT name FROM named WHERE v = {key}") == [(f"n{key}",)]
            assert rows(db, "SELECT count(*) FROM t JOIN names n ON t.k = n.k") == [(key + 1,)]
        change = subscription.next(WAIT_S)
        assert change is not None and change.updates.column("name").to_pylist() == [f"n{key}"]
    subscription.close()


def test_indexes_of_one_cluster_are_nothing_to_another_one(db: eddyline.Connection, other: Cluster) -> None:
    engine, table = db._engine, id_of(db, "t")
    create_index(engine, other, "x1", table)
    exported = (ImportIndex("x1", PAIR, (0,)), ExportIndex("x2", table, 0, (0,), PAIR))
    with pytest.raises(InternalError, match="index x1 is not one of cluster"):
        create(engine, None, *exported)
    create(engine, other, *exported)
    assert answer(engine, other, "x2") == [(0, 0)]


def test_a_cluster_is_dropped_with_all_that_is_in_it_but_what_others_read(
    db: eddyline.Connection, other: Cluster
) -> None:
    engine, table = db._engine, id_of(db, "t")
    create(engine, other, ImportSource(table, PAIR), ExportMaterializedView("x1", 0, PAIR))
    create_index(engine, other, "x2", table)
    create_index(engine, None, "x3", "x1")
    until(engine, lambda c: c.hydrated("x3"), "the index is built")
    client = other.replica("u903").present
    engine.drop_cluster(OTHER)
    wait_until(lambda: not threads_of(client), "its threads end")
    with engine.control() as controller:
        assert not controller.exists("x1") and not controller.exists("x2")
    assert "x1" in engine.store, "the index of another cluster holds it"
    with pytest.raises(Error, match="dropped") as refused:
        engine.cluster(OTHER)
    assert refused.value.sqlstate == "58000"
    with engine.control() as controller:
        controller.drop("x3")
    until(engine, lambda _: "x1" not in engine.store, "it goes with its last reader")
    assert rows(db, "SELECT v FROM t WHERE k = 0") == [(0,)]
    engine.create_cluster(ClusterSpec("u905", "other"))


def threads_of(client: Client) -> list[threading.Thread]:
    assert isinstance(client, Solo)
    return [thread for thread in client._threads if thread.is_alive()]


def test_each_cluster_has_logs_of_its_own(db: eddyline.Connection, other: Cluster) -> None:
    """Of several replicas the first one tells."""
    engine = db._engine
    add_second(db)
    create_index(engine, other, "x1", id_of(db, "t"))

    def exported(cluster: Cluster) -> list[object]:
        waiter = Waiter()
        with engine.control() as controller:
            mfp = Mfp((), (0,), EXPORTS.types[:1])
            uuid = controller.peek(EXPORTS.id, engine.timeline.newest, mfp, cluster=cluster.id)
            cluster.expect(uuid, waiter)
        assert waiter.wait(WAIT_S)
        assert waiter.answer is not None and waiter.answer.rows is not None
        found: list[object] = waiter.answer.rows.batch().columns[0].to_pylist()
        return found

    wait_until(lambda: "x1" in exported(other), "it is told")
    assert id_of(db, "t_k") not in exported(other)
    assert "x1" not in exported(engine.default)
    query = "SELECT count(*) FROM mz_introspection.mz_compute_exports WHERE export_id = $1"
    wait_until(lambda: db.execute(query, [id_of(db, "t_k")]).fetchall() == [(1,)], "once, though both replicas have it")
