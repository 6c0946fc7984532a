"""Anomalies between transactions, and definitions in the middle of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import eddyline
from eddyline.controller.controller import Controller
from eddyline.repr.time import Time


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        connection.execute("CREATE TABLE u (x int)")
        connection.append("t", [{"a": 1, "b": 0}])
        yield connection


def outcome(session: eddyline.Connection) -> str | None:
    try:
        session.commit()
    except eddyline.Error as error:
        return error.sqlstate
    return "committed"


def test_of_two_transactions_that_write_what_the_other_has_read_one_is_refused(db: eddyline.Connection) -> None:
    one, two = db.session(), db.session()
    for session in (one, two):
        session.execute("BEGIN")
        assert session.execute("SELECT count(*) FROM u").fetchall() == [(0,)]
    one.execute("INSERT INTO u VALUES (1)")
    two.execute("INSERT INTO u VALUES (2)")
    assert [outcome(one), outcome(two)] == ["committed", "40001"]
    assert db.execute("SELECT x FROM u").fetchall() == [(1,)]


def test_a_read_through_a_view_counts_as_a_read_of_its_tables(db: eddyline.Connection) -> None:
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM u")
    writer = db.session()
    writer.execute("BEGIN")
    assert writer.execute("SELECT n FROM v").fetchall() == [(0,)]
    writer.execute("INSERT INTO t VALUES (2, 0)")
    db.execute("INSERT INTO u VALUES (1)")
    assert outcome(writer) == "40001"


def test_a_transaction_that_only_reads_is_never_refused(db: eddyline.Connection) -> None:
    reader = db.session()
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM u").fetchall() == [(0,)]
    db.execute("INSERT INTO u VALUES (1)")
    assert reader.execute("SELECT count(*) FROM u").fetchall() == [(0,)]
    assert outcome(reader) == "committed"


def test_a_transaction_that_only_writes_is_not_delayed_by_other_writers(db: eddyline.Connection) -> None:
    writer = db.session()
    writer.execute("BEGIN")
    writer.execute("INSERT INTO u VALUES (1)")
    db.execute("INSERT INTO u VALUES (2)")
    assert outcome(writer) == "committed"


def test_a_commit_into_a_table_that_was_dropped_is_refused(db: eddyline.Connection) -> None:
    writer = db.session()
    writer.execute("BEGIN")
    writer.execute("INSERT INTO u VALUES (1)")
    db.execute("DROP TABLE u")
    assert outcome(writer) == "40001"


def test_definitions_dropped_before_the_replica_has_seen_them_hurt_nobody(db: eddyline.Connection) -> None:
    for i in range(30):
        db.execute(f"CREATE MATERIALIZED VIEW m{i} AS SELECT b, count(*) AS n FROM t GROUP BY b")
        db.execute(f"CREATE MATERIALIZED VIEW n{i} AS SELECT sum(n) AS s FROM m{i}")
        db.execute(f"CREATE INDEX ON n{i} (s)")
        db.execute(f"DROP MATERIALIZED VIEW m{i} CASCADE")
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


def test_a_read_is_answered_though_storage_compacts_while_it_is_planned(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Controller.create_dataflow
    step = itertools.count(1)

    def compacting(self: Controller, *args: object, **options: object) -> object:
        store = self._store
        monkeypatch.setattr(store, "_retention_us", 0)
        for _ in range(2):
            store.append({}, Time(store.tables_upper + next(step)))
            store.work(1)
            store.work(1)
        return create(self, *args, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(Controller, "create_dataflow", compacting)
    for _ in range(5):
        assert db.execute("SELECT sum(a) FROM t WHERE b = 0").fetchall() == [(1,)]
    subscription = db.subscribe("SELECT a FROM t")
    change = subscription.next(5)
    assert change is not None and change.updates.num_rows == 1
    subscription.close()
