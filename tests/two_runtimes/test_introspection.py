"""Introspection in SQL: what the relations say, in both layouts, and that they say it whatever maintenance does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.system_settings import INTERACTIVE_DATAFLOWS
from eddyline.compute.operators.arrange import ArrangeOperator
from tests.waiting import wait_until

Rows = list[tuple[object, ...]]
_RUNTIMES = {True: ("maintenance", "interactive"), False: ("solo", "solo")}


@pytest.fixture(params=[True, False], ids=["two runtimes", "solo"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        connection.append("t", pa.table({"a": list(range(1000)), "b": [n % 7 for n in range(1000)]}))
        connection.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
        connection.execute("CREATE INDEX vi ON v (b)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT max(a) AS a FROM t")
        connection.wait_hydrated("v")
        connection.wait_hydrated("m")
        yield connection


def rows(db: eddyline.Connection, text: str) -> Rows:
    return db.execute(text).fetchall()


def settled(db: eddyline.Connection, text: str, wanted: Callable[[Rows], bool]) -> Rows:
    """The answer once it is as wanted: maintenance writes down what it did within about a second."""
    found: Rows = []

    def as_wanted() -> bool:
        nonlocal found
        found = rows(db, text)
        return wanted(found)

    wait_until(as_wanted, lambda: found)
    return found


def of_role(db: eddyline.Connection) -> tuple[str, str]:
    """The runtimes that maintain and that read."""
    kinds = {r for (r,) in rows(db, "SELECT DISTINCT runtime FROM mz_introspection.mz_dataflows")}
    return _RUNTIMES["solo" not in kinds]


def test_objects_join_with_what_computes_them(db: eddyline.Connection) -> None:
    maintaining, _ = of_role(db)
    found = settled(
        db,
        """SELECT o.name, o.type, d.name, h.hydrated, h.hydration_time > interval '0', r.records > 0, h.runtime
           FROM mz_objects o
           JOIN mz_introspection.mz_compute_exports e ON e.export_id = o.id
           JOIN mz_introspection.mz_dataflows d ON d.id = e.dataflow_id
           JOIN mz_internal.mz_compute_hydration_statuses h ON h.object_id = o.id
           JOIN mz_introspection.mz_records_per_dataflow r ON r.id = d.id
           ORDER BY o.name""",
        lambda found: [row[3] for row in found] == [True, True],
    )
    assert found == [
        ("m", "materialized-view", "m", True, True, True, maintaining),
        ("vi", "index", "v", True, True, True, maintaining),
    ]


def test_sizes_are_those_of_the_rows(db: eddyline.Connection) -> None:
    sizes = """SELECT s.records, s.batches > 0, s.size > 0, s.size <= s.capacity
               FROM mz_introspection.mz_arrangement_sizes s
               JOIN mz_introspection.mz_dataflow_operator_dataflows o ON o.id = s.operator_id
               WHERE o.dataflow_name = 'v' AND o.name LIKE '%Arrange'"""
    settled(db, sizes, lambda found: found == [(7, True, True, True)])
    db.execute("DELETE FROM t WHERE b = 3")
    rows(db, "SELECT n FROM v")
    groups = """SELECT s.records FROM mz_introspection.mz_records_per_dataflow_operator s
                JOIN mz_introspection.mz_dataflows d ON d.id = s.dataflow_id
                WHERE d.name = 'v' AND s.name LIKE '%Reduce'"""
    assert settled(db, groups, lambda found: found == [(6,)]) == [(6,)]


def test_frontiers_follow_commits(db: eddyline.Connection) -> None:
    written = db.execute("INSERT INTO t VALUES (2000, 1)").time
    assert written is not None
    rows(db, "SELECT n FROM v")
    exported = """SELECT f.time FROM mz_introspection.mz_compute_frontiers f
                  JOIN mz_indexes i ON i.id = f.export_id WHERE i.name = 'vi'"""
    settled(db, exported, lambda found: found == [(written + 1,)])
    imported = """SELECT t.name, f.time FROM mz_introspection.mz_compute_import_frontiers f
                  JOIN mz_indexes i ON i.id = f.export_id JOIN mz_tables t ON t.id = f.import_id WHERE i.name = 'vi'"""
    settled(db, imported, lambda found: found == [("t", written + 1)])


def test_a_reader_sees_its_own_dataflow_and_those_of_others(db: eddyline.Connection) -> None:
    _, reading = of_role(db)
    own = rows(db, "SELECT name, runtime FROM mz_introspection.mz_dataflows WHERE name LIKE 't%'")
    assert len(own) == 1 and own[0][1] == reading
    again = rows(db, "SELECT name, runtime FROM mz_introspection.mz_dataflows WHERE name LIKE 't%'")
    assert len(again) == 1 and again != own, "the first one is gone"


def test_dropping_takes_everything_along(db: eddyline.Connection) -> None:
    db.execute("DROP VIEW v CASCADE")
    for relation in ("mz_introspection.mz_dataflows", "mz_introspection.mz_dataflow_operator_dataflows"):
        name = "name" if relation.endswith("mz_dataflows") else "dataflow_name"
        settled(db, f"SELECT {name} FROM {relation} WHERE {name} = 'v'", lambda found: not found)
    left = """SELECT count(*) FROM mz_introspection.mz_scheduling_elapsed e
              WHERE e.id NOT IN (SELECT id FROM mz_introspection.mz_dataflow_operators)"""
    assert rows(db, left) == [(0,)]


def test_lookups_on_the_callers_thread_are_counted(db: eddyline.Connection) -> None:
    counted = "SELECT coalesce(sum(count), 0) FROM mz_introspection.mz_peek_durations_histogram"
    rows(db, "SELECT n FROM v WHERE b = 1")
    [(before,)] = rows(db, counted)
    for n in range(25):
        rows(db, f"SELECT n FROM v WHERE b = {n % 7}")
    [(after,)] = rows(db, counted)
    assert 25 <= int(str(after)) - int(str(before)) <= 27, "and the look at them"
    powers = rows(db, "SELECT DISTINCT duration_ns FROM mz_introspection.mz_peek_durations_histogram")
    assert all(n > 0 and n & (n - 1) == 0 for n in (int(str(ns)) for (ns,) in powers))


def test_times_of_operators_add_up_and_grow(db: eddyline.Connection) -> None:
    text = """SELECT sum(e.elapsed_ns) FROM mz_introspection.mz_scheduling_elapsed e
              JOIN mz_introspection.mz_dataflow_operator_dataflows o ON o.id = e.id WHERE o.dataflow_name = 'v'"""
    steps = """SELECT sum(h.count) FROM mz_introspection.mz_compute_operator_durations_histogram h
               JOIN mz_introspection.mz_dataflow_operator_dataflows o ON o.id = h.id WHERE o.dataflow_name = 'v'"""
    [(before,)] = settled(db, text, lambda found: found[0][0] is not None)
    [(steps_before,)] = rows(db, steps)
    for n in range(20):
        db.execute(f"INSERT INTO t VALUES ({3000 + n}, 1)")
    rows(db, "SELECT n FROM v")
    settled(db, text, lambda found: int(str(found[0][0])) > int(str(before)))
    settled(db, steps, lambda found: int(str(found[0][0])) > int(str(steps_before)))


def test_error_counts(db: eddyline.Connection) -> None:
    db.execute("CREATE VIEW bad AS SELECT 1 / (b - 3) AS x FROM t WHERE a < 14")
    db.execute("CREATE INDEX badi ON bad (x)")
    text = """SELECT i.name, e.count FROM mz_introspection.mz_compute_error_counts e
              JOIN mz_indexes i ON i.id = e.export_id"""
    settled(db, text, lambda found: found == [("badi", 2)])
    db.execute("DELETE FROM t WHERE a = 3")
    settled(db, text, lambda found: found == [("badi", 1)])
    db.execute("DELETE FROM t WHERE a = 10")
    settled(db, text, lambda found: not found)


def test_names_are_found_qualified_implicitly_and_by_the_search_path(db: eddyline.Connection) -> None:
    assert rows(db, "SELECT name FROM mz_tables") == rows(db, "SELECT name FROM mz_catalog.mz_tables") == [("t",)]
    with pytest.raises(eddyline.DatabaseError) as unknown:
        rows(db, "SELECT name FROM mz_dataflows")
    assert unknown.value.sqlstate == "42P01" and "mz_introspection" in str(unknown.value.hint)
    db.execute("SET search_path = mz_introspection, public")
    assert ("v",) in rows(db, "SELECT name FROM mz_dataflows")
    db.execute("CREATE TABLE here (x int)")
    assert rows(db, "SELECT schema_id FROM mz_tables WHERE name = 'here'") == [("public",)]
    assert ("mz_compute_frontiers", "mz_introspection", "view") in rows(db, "SHOW VIEWS FROM mz_introspection")
    assert ("object_id", "text", True, None) in rows(db, "SHOW COLUMNS FROM mz_internal.mz_hydration_statuses")


def test_the_catalog_in_rows(db: eddyline.Connection) -> None:
    depends = """SELECT o.name, r.name FROM mz_internal.mz_object_dependencies d
                 JOIN mz_objects o ON o.id = d.object_id JOIN mz_objects r ON r.id = d.referenced_object_id
                 ORDER BY 1, 2"""
    assert rows(db, depends) == [("m", "t"), ("v", "t"), ("vi", "v")]
    assert rows(db, "SELECT name, definition FROM mz_views") == [("v", "SELECT b, count(*) AS n FROM t GROUP BY b")]
    assert rows(db, "SELECT name FROM mz_materialized_views") == [("m",)]
    clusters = """SELECT o.name, c.name, r.name
                  FROM (SELECT name, cluster_id FROM mz_indexes
                        UNION ALL SELECT name, cluster_id FROM mz_materialized_views) AS o
                  JOIN mz_clusters c ON c.id = o.cluster_id
                  JOIN mz_cluster_replicas r ON r.cluster_id = c.id ORDER BY 1"""
    assert rows(db, clusters) == [("m", "default", "r1"), ("vi", "default", "r1")]
    columns = "SELECT c.name, position, nullable, c.type FROM mz_columns c JOIN mz_tables t ON t.id = c.id ORDER BY 2"
    assert rows(db, columns) == [("a", 1, False, "integer"), ("b", 2, True, "integer")]
    keys = """SELECT c.name FROM mz_index_columns k JOIN mz_indexes i ON i.id = k.index_id
              JOIN mz_columns c ON c.id = i.on_id AND c.position = k.on_position"""
    assert rows(db, keys) == [("b",)]
    db.execute("ALTER TABLE t RENAME TO renamed")
    assert rows(db, "SELECT name FROM mz_tables") == [("renamed",)]
    assert {name for _, name in rows(db, "SELECT id, name FROM mz_schemas")} >= {"public", "mz_introspection"}


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("CREATE MATERIALIZED VIEW x AS SELECT name FROM mz_introspection.mz_dataflows", "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT name FROM mz_tables", "0A000"),
        ("CREATE INDEX ON mz_introspection.mz_dataflows (id)", "42501"),
        ("CREATE INDEX ON over (name)", "0A000"),
        ("SUBSCRIBE (SELECT name FROM over)", "0A000"),
        ("SELECT name FROM over AS OF 5", "0A000"),
        ("CREATE TABLE mz_internal.x (a int)", "42501"),
        ("CREATE SCHEMA mz_internal", "42939"),
        ("DROP SCHEMA mz_internal CASCADE", "42501"),
        ("DROP VIEW mz_introspection.mz_dataflows", "42501"),
        ("DROP VIEW mz_tables", "42501"),
        ("ALTER VIEW mz_tables RENAME TO x", "42501"),
        ("INSERT INTO mz_tables VALUES ('u1', 'public', 'x')", "55000"),
        ("DELETE FROM mz_introspection.mz_dataflows_per_worker", "55000"),
        ("SHOW CREATE VIEW mz_introspection.mz_dataflows_per_worker", "42809"),
    ],
)
def test_what_the_system_keeps_is_only_read(db: eddyline.Connection, statement: str, sqlstate: str) -> None:
    db.execute("CREATE VIEW over AS SELECT name FROM mz_introspection.mz_dataflows")
    with pytest.raises(eddyline.DatabaseError) as refused:
        db.execute(statement).fetchall()
    assert refused.value.sqlstate == sqlstate
    assert refused.value.hint or sqlstate not in ("0A000", "42501")
    assert ("v",) in rows(db, "SELECT name FROM over"), "a view over them may be read"
    db.execute("DROP VIEW over")


def test_they_are_read_like_any_relation(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE seen (name text, n bigint)")
    db.execute("INSERT INTO seen SELECT name, count(*) FROM mz_introspection.mz_dataflow_operators GROUP BY name")
    assert len(rows(db, "SELECT * FROM seen WHERE n > 0")) > 3
    db.execute("CREATE TABLE taken AS SELECT id, name FROM mz_introspection.mz_dataflows WHERE name = 'v'")
    assert rows(db, "SELECT name FROM taken") == [("v",)]
    joined = """SELECT t.b FROM t JOIN mz_introspection.mz_dataflows d ON d.name = 'v' AND t.a = 15"""
    assert rows(db, joined) == [(1,)]
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (5000, 5)")
    assert rows(db, "SELECT count(*) FROM t JOIN mz_introspection.mz_dataflows d ON d.name = 'v'") == [(1001,)]
    db.execute("COMMIT")
    assert "mz_dataflows_per_worker" in str(rows(db, "EXPLAIN SELECT * FROM mz_introspection.mz_dataflows"))
    found = db.execute("SELECT $1 || name FROM mz_introspection.mz_dataflows WHERE name = $2", ["a ", "v"]).fetchall()
    assert found == [("a v",)]


def test_strict_reads_of_tables_beside_logs_are_strict(db: eddyline.Connection) -> None:
    for n in range(30):
        db.execute(f"INSERT INTO t VALUES ({7000 + n}, 1)")
        counted = rows(db, "SELECT count(*) FROM t CROSS JOIN (SELECT 1 FROM mz_introspection.mz_dataflows LIMIT 1) x")
        assert counted == [(1001 + n,)]


@pytest.mark.parametrize("interactive", [True, False])
def test_workers_apart_and_together(interactive: bool) -> None:
    with eddyline.connect(interactive=interactive, workers=3) as db:
        db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        db.append("t", pa.table({"a": list(range(3000)), "b": [n % 7 for n in range(3000)]}))
        db.execute("CREATE INDEX ti ON t (a)")
        db.wait_hydrated("ti")
        where = (
            "JOIN mz_introspection.mz_dataflow_operator_dataflows o ON o.id = s.operator_id AND o.dataflow_name = 't'"
        )
        apart = (
            f"SELECT worker_id, s.records FROM mz_introspection.mz_arrangement_sizes_per_worker s {where} ORDER BY 1"
        )
        found = settled(db, apart, lambda f: len(f) == 3 and sum(int(str(n)) for _, n in f) == 3000)
        assert [worker for worker, _ in found] == [0, 1, 2]
        assert all(800 < int(str(n)) < 1200 for _, n in found)
        together = f"SELECT s.records FROM mz_introspection.mz_arrangement_sizes s {where}"
        assert rows(db, together) == [(3000,)]
        hydrated = "SELECT hydrated FROM mz_internal.mz_hydration_statuses"
        assert settled(db, hydrated, lambda f: f == [(True,)]) == [(True,)]


@contextmanager
def maintenance_held(view: str) -> Iterator[threading.Event]:
    """While this lasts, the maintenance thread is stuck in the middle of a step once it arranges rows of ``view``.

    The event says that it is.
    """
    stuck, go_on = threading.Event(), threading.Event()
    original = ArrangeOperator.step

    def step(self: ArrangeOperator) -> bool:
        if threading.current_thread().name.startswith("maint") and self.name.startswith(f"{view}/"):
            stuck.set()
            assert go_on.wait(60)
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArrangeOperator, "step", step)
        try:
            yield stuck
        finally:
            go_on.set()


def test_introspection_answers_while_a_large_view_hydrates() -> None:
    with eddyline.connect(interactive=True) as db:
        db.execute("CREATE TABLE big (k int, g int)")
        db.append("big", pa.table({"k": list(range(200_000)), "g": [n % 100 for n in range(200_000)]}))
        db.execute("CREATE VIEW old AS SELECT g, count(*) n FROM big GROUP BY g")
        db.execute("CREATE INDEX oldi ON old (g)")
        db.wait_hydrated("oldi")
        statuses = """SELECT o.name, h.hydrated, h.runtime FROM mz_internal.mz_hydration_statuses h
                      JOIN mz_objects o ON o.id = h.object_id ORDER BY 1"""
        settled(db, statuses, lambda found: found == [("oldi", True, "maintenance")])
        with maintenance_held("v") as stuck:
            db.execute("CREATE VIEW v AS SELECT k, max(g) m FROM big GROUP BY k")
            db.execute("CREATE INDEX vi ON v (k)")
            assert stuck.wait(60)
            held = [("oldi", True, "maintenance"), ("vi", False, "maintenance")]
            for _ in range(3):
                assert rows(db, statuses) == held
                reading = rows(db, "SELECT runtime FROM mz_introspection.mz_dataflows WHERE name LIKE 't%'")
                assert reading == [("interactive",)]
            operators = """SELECT count(*) > 2 FROM mz_introspection.mz_dataflow_operator_dataflows
                           WHERE dataflow_name = 'v'"""
            assert rows(db, operators) == [(True,)]
            db.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = off")
            assert rows(db, statuses) == held, "reads of logs stay where both runtimes are seen"
            other = db.session()
            waiting = threading.Thread(target=lambda: other.execute("SELECT m FROM v WHERE k = 7").fetchall())
            waiting.start()
            peeks = """SELECT o.name, p.runtime FROM mz_introspection.mz_active_peeks p
                       JOIN mz_objects o ON o.id = p.object_id"""
            settled(db, peeks, lambda found: found == [("vi", "interactive")])
        waiting.join(60)
        assert not waiting.is_alive()
        other.close()
        settled(db, statuses, lambda found: [h for _, h, _ in found] == [True, True])
        assert rows(db, "SELECT count(*) FROM mz_introspection.mz_active_peeks WHERE object_id LIKE 'u%'") == [(0,)]


def test_a_replica_that_is_rebuilt_begins_to_log_anew() -> None:
    with eddyline.connect(interactive=True) as db:
        db.execute("CREATE TABLE t (a int)")
        db.execute("CREATE INDEX ti ON t (a)")
        names = "SELECT name FROM mz_introspection.mz_dataflows WHERE runtime = 'maintenance'"
        settled(db, names, lambda found: found == [("t",)])
        failed = db._engine.first_replica.client
        exploded = threading.Event()
        original = ArrangeOperator.step

        def step(self: ArrangeOperator) -> bool:
            if threading.current_thread().name.startswith("maint") and not exploded.is_set():
                exploded.set()
                raise RuntimeError("an injected failure")
            return original(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ArrangeOperator, "step", step)
            db.execute("INSERT INTO t VALUES (1)")
            assert exploded.wait(20)

        def back() -> bool:
            try:
                return db._engine.first_replica.client is not failed and rows(db, names) == [("t",)]
            except eddyline.DatabaseError as error:
                assert error.sqlstate == "58000"
                return False

        wait_until(back, "the replica comes back")
        assert rows(db, "SELECT count(*) FROM t") == [(1,)]
