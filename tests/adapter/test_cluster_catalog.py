"""Clusters in SQL: what is kept where, how it is planned and read there, and what a directory has of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

import eddyline
from eddyline.adapter.catalog_documents import catalog_of
from eddyline.adapter.durability import Durability
from eddyline.adapter.engine import Engine
from eddyline.adapter.restoring import restored_engine
from eddyline.adapter.session import Session
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.errors import DatabaseError
from eddyline.frontends.connection import Connection
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, DEFAULT_REPLICA_ID, CatalogReplica
from eddyline.testing.torn_files import TornFiles

ALONE = (
    "CREATE CLUSTER x",
    "CREATE CLUSTER REPLICA default.x",
    "ALTER CLUSTER default SET (REPLICATION FACTOR = 2)",
    "ALTER CLUSTER default RENAME TO x",
    "ALTER CLUSTER default OWNER TO postgres",
    "ALTER CLUSTER REPLICA default.r1 RENAME TO x",
    "DROP CLUSTER x",
    "DROP CLUSTER REPLICA default.x",
)


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    """With a cluster ``fast`` beside the default one."""
    with eddyline.connect(interactive=False) as connection:
        connection.executescript(
            """
            CREATE TABLE t (k int, v int);
            INSERT INTO t VALUES (1, 10), (2, 20), (2, 21);
            CREATE CLUSTER fast
            """
        )
        connection.execute("SET statement_timeout = '60s'")
        yield connection


def rows(db: eddyline.Connection, text: str, *parameters: object) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = db.execute(text, parameters or None).fetchall()
    return found


def refused(db: eddyline.Connection, text: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        db.execute(text)
    return caught.value


def plan(db: eddyline.Connection, text: str) -> list[str]:
    return [line for (line,) in rows(db, f"EXPLAIN {text}")]


def clusters(db: eddyline.Connection) -> dict[str, str]:
    return dict(rows(db, "SHOW CLUSTERS"))


def replicas(db: eddyline.Connection, cluster: str) -> list[CatalogReplica]:
    """As the catalog has them, which the engine has too."""
    found = db._engine.catalog.snapshot().cluster_named(cluster)
    assert found is not None
    there = db._engine.cluster(found.id)
    assert there.name == cluster
    assert {r.id: r.settings.name for r in there.replicas.values()} == {r.id: r.name for r in found.replicas}
    return list(found.replicas)


def test_the_first_ones_are_those_that_every_database_has() -> None:
    assert (DEFAULT_CLUSTER_ID, DEFAULT_REPLICA_ID) == (FIRST_CLUSTER, FIRST_REPLICA)


# -- statements ---------------------------------------------------------


def test_clusters_and_replicas_come_and_go(db: eddyline.Connection) -> None:
    assert db.execute("CREATE CLUSTER big (WORKERS = 2, REPLICATION FACTOR = 2)").statusmessage == "CREATE CLUSTER"
    db.execute("CREATE CLUSTER listed REPLICAS (one (WORKERS = 3), two)")
    db.execute("CREATE CLUSTER none (REPLICATION FACTOR = 0)")
    assert clusters(db) == {"big": "r1, r2", "default": "r1", "fast": "r1", "listed": "one, two", "none": ""}
    assert rows(db, "SHOW CLUSTER REPLICAS") == [
        ("big", "r1", 2, 0),
        ("big", "r2", 2, 0),
        ("default", "r1", 1, 0),
        ("fast", "r1", 1, 0),
        ("listed", "one", 3, 0),
        ("listed", "two", 1, 0),
    ]
    assert db.execute("CREATE CLUSTER REPLICA none.a (WORKERS = 2)").statusmessage == "CREATE CLUSTER REPLICA"
    assert db.execute("DROP CLUSTER REPLICA listed.one, big.r2").statusmessage == "DROP CLUSTER REPLICA"
    assert db.execute("ALTER CLUSTER REPLICA listed.two RENAME TO only").statusmessage == "ALTER CLUSTER REPLICA"
    assert db.execute("ALTER CLUSTER listed RENAME TO renamed").statusmessage == "ALTER CLUSTER"
    assert [(r.name, r.workers) for r in replicas(db, "none")] == [("a", 2)]
    assert [r.name for r in replicas(db, "renamed")] == ["only"]
    assert [r.name for r in replicas(db, "big")] == ["r1"]
    assert db.execute("DROP CLUSTER none, big").statusmessage == "DROP CLUSTER"
    assert clusters(db) == {"default": "r1", "fast": "r1", "renamed": "only"}
    assert len(db._engine.clusters) == 3


def test_a_cluster_is_made_larger_and_smaller(db: eddyline.Connection) -> None:
    db.execute("CREATE CLUSTER c (WORKERS = 2)")
    (first,) = replicas(db, "c")
    db.execute("ALTER CLUSTER c SET (REPLICATION FACTOR = 3)")
    assert [(r.name, r.workers) for r in replicas(db, "c")] == [("r1", 2), ("r2", 2), ("r3", 2)]
    assert replicas(db, "c")[0] == first
    db.execute("ALTER CLUSTER c SET (WORKERS = 1)")
    assert [(r.name, r.workers) for r in replicas(db, "c")] == [("r1", 1), ("r2", 1), ("r3", 1)]
    assert first.id not in {r.id for r in replicas(db, "c")}, "of another size it is another one"
    kept = replicas(db, "c")[0]
    db.execute("ALTER CLUSTER c SET (WORKERS = 1)")
    db.execute("ALTER CLUSTER c RESET (REPLICATION FACTOR)")
    assert replicas(db, "c") == [kept], "what stays as it is stays"
    db.execute("ALTER CLUSTER REPLICA c.r1 SET (WORKERS = 2)")
    assert [(r.name, r.workers) for r in replicas(db, "c")] == [("r1", 2)]
    db.execute("ALTER CLUSTER c SET (REPLICATION FACTOR = 0)")
    assert replicas(db, "c") == []
    db.execute("ALTER CLUSTER c SET (REPLICATION FACTOR = 1, WORKERS = 3)")
    assert [(r.name, r.workers) for r in replicas(db, "c")] == [("r1", 3)]


def test_notices_in_place_of_errors(db: eddyline.Connection) -> None:
    for text, notice in (
        ("CREATE CLUSTER IF NOT EXISTS fast", 'cluster "fast" already exists, skipping'),
        ("CREATE CLUSTER REPLICA IF NOT EXISTS fast.r1", 'cluster replica "fast.r1" already exists, skipping'),
        ("DROP CLUSTER IF EXISTS slow", 'cluster "slow" does not exist, skipping'),
        ("DROP CLUSTER REPLICA IF EXISTS slow.r1", 'cluster replica "slow.r1" does not exist, skipping'),
        ("DROP CLUSTER REPLICA IF EXISTS fast.r2", 'cluster replica "fast.r2" does not exist, skipping'),
    ):
        assert db.execute(text).notices == (notice,)
    assert clusters(db) == {"default": "r1", "fast": "r1"}


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "position"),
    [
        ("CREATE CLUSTER fast", "42710", 'cluster "fast" already exists', 16),
        ("CREATE CLUSTER mz_c", "42939", 'unacceptable cluster name "mz_c"', 16),
        ("CREATE CLUSTER REPLICA fast.r1", "42710", 'cluster replica "fast.r1" already exists', 29),
        ("CREATE CLUSTER REPLICA slow.r1", "42704", 'unknown cluster "slow"', 24),
        ("ALTER CLUSTER fast RENAME TO default", "42710", 'cluster "default" already exists', 30),
        ("ALTER CLUSTER slow SET (WORKERS = 2)", "42704", 'unknown cluster "slow"', 15),
        ("ALTER CLUSTER fast OWNER TO nobody", "42704", 'role "nobody" does not exist', None),
        ("ALTER CLUSTER fast SET (no_such = 2)", "0A000", "the replica is in the program's own process", None),
        ("ALTER CLUSTER REPLICA fast.r2 SET (WORKERS = 2)", "42704", 'unknown cluster replica "fast.r2"', 23),
        ("ALTER CLUSTER REPLICA fast.r1 RENAME TO r1", "42710", 'cluster replica "fast.r1" already exists', 41),
        ("SHOW CLUSTER REPLICA slow.r1", "42704", 'unknown cluster "slow"', 22),
        ("DROP CLUSTER slow", "42704", 'unknown cluster "slow"', 14),
        ("DROP CLUSTER fast, slow", "42704", 'unknown cluster "slow"', 20),
        ("DROP CLUSTER REPLICA fast.r2", "42704", 'unknown cluster replica "fast.r2"', 22),
        (
            "DROP CLUSTER default CASCADE",
            "2BP01",
            "cannot drop cluster default because it is required by the database system",
            14,
        ),
        (
            "DROP CLUSTER REPLICA default.r1",
            "2BP01",
            "cannot drop cluster replica default.r1 because it is required by the database system",
            22,
        ),
        (
            "ALTER CLUSTER default SET (REPLICATION FACTOR = 0)",
            "2BP01",
            "cannot drop cluster replica default.r1 because it is required by the database system",
            15,
        ),
        ("ALTER CLUSTER default RENAME TO d", "0A000", 'renaming the cluster "default" is not supported', None),
        ("ALTER CLUSTER default SET (WORKERS = 2)", "0A000", "another size of default.r1 is not supported", None),
        ("SET cluster = slow", "42704", 'unknown cluster "slow"', None),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    db: eddyline.Connection, text: str, sqlstate: str, message: str, position: int | None
) -> None:
    version = db._engine.catalog.snapshot().version
    error = refused(db, text)
    assert (error.sqlstate, error.message, error.position) == (sqlstate, message, position)
    if message.startswith("unknown cluster"):
        assert error.hint in ("Known: default, fast.", 'Known in "fast": r1.')
    assert db._engine.catalog.snapshot().version == version
    assert len(db._engine.clusters) == 2
    assert [r.name for r in replicas(db, "fast")] == ["r1"]


@pytest.mark.parametrize("text", ALONE)
def test_a_transaction_block_has_none_of_them(db: eddyline.Connection, text: str) -> None:
    db.execute("BEGIN")
    assert refused(db, text).sqlstate == "25001"
    db.rollback()
    db.execute("SET default_transaction_read_only = on")
    assert refused(db, text).sqlstate == "25006"


def test_clusters_are_made_by_superusers_and_altered_by_their_owners(db: eddyline.Connection) -> None:
    db.executescript("CREATE ROLE ann; CREATE ROLE boss SUPERUSER; CREATE SCHEMA a; ALTER SCHEMA a OWNER TO ann")
    ann = Session(db._engine, "ann")
    for text in ALONE:
        with pytest.raises(DatabaseError) as caught:
            ann.execute(text.replace("CLUSTER x", "CLUSTER fast") if text.startswith("DROP") else text)
        assert (caught.value.sqlstate, caught.value.message) == (
            "42501",
            "permission denied to create cluster"
            if text == "CREATE CLUSTER x"
            else "must be owner of cluster fast"
            if text == "DROP CLUSTER x"
            else "must be owner of cluster default",
        )
    db.execute("ALTER CLUSTER fast OWNER TO ann")
    assert rows(db, "SELECT owner FROM mz_clusters ORDER BY name") == [("postgres",), ("ann",)]
    ann.execute("ALTER CLUSTER fast SET (REPLICATION FACTOR = 2)")
    ann.execute("ALTER CLUSTER fast RENAME TO anns")
    with pytest.raises(DatabaseError, match='must be member of role "boss"'):
        ann.execute("ALTER CLUSTER anns OWNER TO boss")
    error = refused(db, "DROP ROLE ann")
    assert (error.sqlstate, error.detail) == ("2BP01", "owner of cluster anns\nowner of schema a")
    boss = Session(db._engine, "boss")
    boss.execute("CREATE CLUSTER his")
    assert rows(db, "SELECT owner FROM mz_clusters WHERE name = 'his'") == [("boss",)]
    ann.execute("ALTER CLUSTER anns OWNER TO CURRENT_USER")
    ann.execute("CREATE TABLE a.t (k int)")
    ann.execute("CREATE INDEX IN CLUSTER his ON a.t (k)")  # anybody may use a cluster
    ann.execute("DROP CLUSTER anns")
    assert clusters(db) == {"default": "r1", "his": "r1"}


def test_clusters_go_with_their_owners_objects_and_begin_with_their_roles_settings(db: eddyline.Connection) -> None:
    db.executescript(
        "CREATE ROLE ann; CREATE ROLE bob; ALTER CLUSTER fast OWNER TO ann; ALTER ROLE ann SET cluster = fast"
    )
    assert Session(db._engine, "ann").setting("cluster") == "fast"
    assert Session(db._engine, "bob").setting("cluster") == "default"
    error = refused(db, "ALTER ROLE bob SET cluster = slow")
    assert (error.sqlstate, error.message, error.hint) == ("42704", 'unknown cluster "slow"', "Known: default, fast.")
    db.execute("DROP OWNED BY ann CASCADE")
    assert clusters(db) == {"default": "r1", "fast": "r1"}, "it is of the database, not in it"
    assert refused(db, "DROP ROLE ann").detail == "owner of cluster fast"
    db.execute("REASSIGN OWNED BY ann TO bob")
    assert rows(db, "SELECT owner FROM mz_clusters WHERE name = 'fast'") == [("bob",)]
    db.execute("DROP CLUSTER fast")
    assert Session(db._engine, "ann").setting("cluster") == "default", "what is gone keeps nobody out"
    db.execute("DROP ROLE ann, bob")


# -- what is in them ---------------------------------------------------------


def test_indexes_and_views_are_kept_where_they_are_told_or_where_the_session_is(db: eddyline.Connection) -> None:
    db.executescript(
        """
        CREATE INDEX told IN CLUSTER fast ON t (k);
        CREATE MATERIALIZED VIEW here AS SELECT v FROM t;
        SET cluster = fast;
        CREATE INDEX there ON t (k);
        CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM t GROUP BY k;
        CREATE DEFAULT INDEX back IN CLUSTER default ON m
        """
    )
    kept = """
        SELECT o.name, c.name FROM (SELECT name, cluster_id FROM mz_indexes
                                    UNION ALL SELECT name, cluster_id FROM mz_materialized_views) AS o
        JOIN mz_clusters c ON c.id = o.cluster_id ORDER BY 1"""
    expected = [("back", "default"), ("here", "default"), ("m", "fast"), ("there", "fast"), ("told", "fast")]
    assert rows(db, kept) == expected
    for cluster in ("fast", "default"):
        db.execute(f"SET cluster = {cluster}")
        assert rows(db, "SELECT * FROM m ORDER BY k") == [(1, 1), (2, 2)]
        assert rows(db, "SELECT v FROM here ORDER BY v") == [(10,), (20,), (21,)]
    db.wait_hydrated("t", timeout=60)
    db.wait_hydrated("m", timeout=60)
    db.execute("INSERT INTO t VALUES (1, 11)")
    assert rows(db, "SELECT * FROM m ORDER BY k") == [(1, 2), (2, 2)]


def test_a_read_has_the_indexes_of_its_cluster_alone(db: eddyline.Connection) -> None:
    lookup, walk = "SELECT v FROM t WHERE k = 2", "SELECT count(*) FROM t"
    db.execute("CREATE INDEX i IN CLUSTER fast ON t (k)")
    assert plan(db, lookup)[0] == "One-shot dataflow"
    assert plan(db, lookup)[-1] == "In cluster fast, indexes used: i"
    assert plan(db, walk)[-1] == "In cluster fast, indexes used: i"
    db.execute("SET cluster = fast")
    assert plan(db, lookup)[0].startswith("Fast path: lookup in index i on t")
    assert not any("cluster" in line for line in plan(db, lookup)), "an index elsewhere would be no better"
    db.execute("CREATE INDEX j IN CLUSTER default ON t (k)")
    assert not any("cluster" in line for line in plan(db, lookup))
    db.execute("SET cluster = DEFAULT")
    assert plan(db, lookup)[0].startswith("Fast path: lookup in index j on t")
    assert plan(db, "SUBSCRIBE t") == ["Subscribe", "  Fast path: walk of index j on t"]


def test_a_view_is_computed_from_the_indexes_of_its_own_cluster(db: eddyline.Connection) -> None:
    db.execute("CREATE INDEX i IN CLUSTER fast ON t (k)")
    query = "SELECT x.v, y.v AS w FROM t x JOIN t y ON x.k = y.k"
    db.execute(f"CREATE MATERIALIZED VIEW here AS {query}")
    db.execute(f"CREATE MATERIALIZED VIEW there IN CLUSTER fast AS {query}")
    db.execute(f"CREATE VIEW v AS {query}")
    db.execute("CREATE INDEX of_view IN CLUSTER fast ON v (v)")
    expected = [(10, 10), (20, 20), (20, 21), (21, 20), (21, 21)]
    for cluster in ("default", "fast"):
        db.execute(f"SET cluster = {cluster}")
        for name in ("here", "there", "v"):
            assert rows(db, f"SELECT * FROM {name} ORDER BY 1, 2") == expected
    with db._engine.control() as controller:
        imports = {d.description.name: {i.id for i in d.description.imports} for d in controller._dataflows}
    table, index = (db._engine.catalog.snapshot().find("public", name) for name in ("t", "i"))
    assert table is not None and index is not None
    assert (imports["here"], imports["there"]) == ({table.id}, {index.id})


def test_every_way_to_ask_goes_to_the_sessions_cluster(db: eddyline.Connection) -> None:
    """Also when it was asked in another one just before, with the same text, and is answered without a thread."""
    db.executescript("CREATE INDEX i ON t (k); CREATE INDEX j IN CLUSTER fast ON t (k)")
    engine = db._engine
    with db.session() as other:
        other.execute("SET cluster = fast")
        sessions = {"default": db, "fast": other}
        for name in ("t", "t"):
            db.wait_hydrated(name, timeout=60)
        for n in range(6):
            for session in sessions.values():
                assert sorted(rows(session, "SELECT v FROM t WHERE k = $1", 2)) == [(20,), (21,)]
                assert rows(session, f"SELECT v + {n} FROM t WHERE k = 1") == [(10 + n,)]
                assert rows(session, "SELECT count(*) FROM t") == [(3,)]
        for cluster, session in sessions.items():
            found = engine.catalog.snapshot().cluster_named(cluster)
            assert found is not None
            known = session._session._asked._asked["SELECT v FROM t WHERE k = $1", False]
            assert known.lookup is not None, "it is a quick one by now"
            assert known.lookup._cluster is engine.cluster(found.id)
        other.execute("PREPARE p AS SELECT v FROM t WHERE k = $1")
        for cluster in ("default", "fast", "default"):
            other.execute(f"SET cluster = {cluster}")
            assert rows(other, "EXECUTE p (1)") == [(10,)]
            prepared = other._session.statements.get("p").prepared
            assert prepared.plan is not None
            used = [facts.id for facts in prepared.plan.facts.indexes]
            names = [item.name for item in map(engine.catalog.snapshot().item, used) if item is not None]
            assert names == [{"default": "i", "fast": "j"}[cluster]]


def test_subscriptions_and_copies_are_rendered_in_the_sessions_cluster(db: eddyline.Connection) -> None:
    db.execute("CREATE INDEX j IN CLUSTER fast ON t (k)")
    db.execute("SET cluster = fast")
    subscription = db.subscribe("SELECT k, v FROM t")
    found = db._engine.catalog.snapshot().cluster_named("fast")
    assert found is not None
    with db._engine.control() as controller:
        (running,) = [d for d in controller._dataflows if d.description.name == "subscription"]
        assert running.instance is controller._instance(found.id)
    change = subscription.next(60)
    assert change is not None and sorted(change.updates.column("v").to_pylist()) == [10, 20, 21]
    db.execute("INSERT INTO t VALUES (3, 30)")
    change = subscription.next(60)
    assert change is not None and change.updates.column("v").to_pylist() == [30]
    subscription.close()


# -- dropping ---------------------------------------------------------


def test_a_cluster_goes_with_what_is_in_it_only_if_that_is_said(db: eddyline.Connection) -> None:
    db.executescript(
        """
        CREATE INDEX i IN CLUSTER fast ON t (k);
        CREATE MATERIALIZED VIEW m IN CLUSTER fast AS SELECT k, count(*) AS n FROM t GROUP BY k;
        CREATE VIEW of_m AS SELECT n FROM m;
        CREATE INDEX of_m_n ON of_m (n);
        CREATE INDEX stays ON t (k)
        """
    )
    error = refused(db, "DROP CLUSTER fast")
    assert (error.sqlstate, error.message) == (
        "2BP01",
        "cannot drop cluster fast because other objects depend on it",
    )
    assert error.detail == (
        "index i depends on cluster fast\nmaterialized view m depends on cluster fast\n"
        "view of_m depends on materialized view m"
    )
    assert "CASCADE" in str(error.hint)
    subscription = db.subscribe("SELECT n FROM of_m")
    dropped = db.execute("DROP CLUSTER fast CASCADE")
    assert dropped.notices == (
        "drop cascades to 3 other objects\nDETAIL: drop cascades to index i\n"
        "drop cascades to materialized view m\ndrop cascades to view of_m",
    )
    with pytest.raises(DatabaseError, match="was dropped"):
        while subscription.next(60) is not None:
            pass
    assert clusters(db) == {"default": "r1"}
    assert rows(db, "SELECT name FROM mz_objects WHERE id LIKE 'u%' ORDER BY name") == [("stays",), ("t",)]
    assert rows(db, "SELECT v FROM t WHERE k = 1") == [(10,)]
    with db._engine.control() as controller:
        assert sorted(c for c in controller._collections if c.startswith("u")) == sorted(
            item.id for item in db._engine.catalog.snapshot().by_id.values()
        )


def test_a_session_whose_cluster_is_gone_is_told_and_chooses_another_one(db: eddyline.Connection) -> None:
    db.execute("CREATE INDEX i IN CLUSTER fast ON t (k)")
    with db.session() as other:
        other.execute("SET cluster = fast")
        assert rows(other, "SELECT v FROM t WHERE k = 1") == [(10,)]
        other.execute("PREPARE p AS SELECT v FROM t WHERE k = 1")
        db.execute("DROP CLUSTER fast CASCADE")
        for text in ("SELECT v FROM t WHERE k = 1", "EXECUTE p", "CREATE INDEX ON t (k)", "SUBSCRIBE t"):
            error = refused(other, text)
            assert (error.sqlstate, error.message) == ("42704", 'unknown cluster "fast"')
            assert error.hint == "Known: default."
        assert rows(other, "SELECT 1") == [(1,)]
        assert rows(other, "SHOW cluster") == [("fast",)]
        assert rows(other, "SELECT name FROM mz_clusters") == [("default",)]
        other.execute("INSERT INTO t VALUES (5, 50)")
        other.execute("SET cluster = DEFAULT")
        assert rows(other, "EXECUTE p") == [(10,)]
        assert rows(other, "SELECT v FROM t WHERE k = 5") == [(50,)]


def test_a_transaction_that_would_keep_something_in_a_dropped_cluster_fails(db: eddyline.Connection) -> None:
    with db.session() as other:
        other.execute("BEGIN")
        other.execute("CREATE INDEX late IN CLUSTER fast ON t (k)")
        db.execute("DROP CLUSTER fast")
        with pytest.raises(DatabaseError) as caught:
            other.commit()
        assert caught.value.sqlstate == "40001"
        assert "cluster" in str(caught.value.detail)
    assert rows(db, "SHOW INDEXES ON t") == []


def test_without_replicas_nobody_answers_and_a_replica_is_all_it_takes(db: eddyline.Connection) -> None:
    db.execute("CREATE INDEX i IN CLUSTER fast ON t (k)")
    db.execute("SET cluster = fast")
    assert rows(db, "SELECT v FROM t WHERE k = 1") == [(10,)]
    db.execute("DROP CLUSTER REPLICA fast.r1")
    error = refused(db, "SELECT v FROM t WHERE k = 1")
    assert (error.sqlstate, error.message) == ("58000", 'cluster "fast" has no replicas')
    with pytest.raises(DatabaseError, match="has no replicas"):
        db.wait_hydrated("i", timeout=60)
    db.execute("CREATE CLUSTER REPLICA fast.again")
    assert rows(db, "SELECT v FROM t WHERE k = 1") == [(10,)]


# -- directories ---------------------------------------------------------


def test_clusters_and_what_is_in_them_outlive_a_crash() -> None:
    rng = random.Random(1)
    files = TornFiles(rng)
    first: Engine = restored_engine(Durability(files), interactive=False)
    Session(first).execute_script(
        """
        CREATE TABLE t (k int, v int);
        CREATE CLUSTER gone;
        CREATE CLUSTER fast REPLICAS (one (WORKERS = 2), two);
        CREATE CLUSTER REPLICA default.second;
        CREATE ROLE ann;
        ALTER CLUSTER fast OWNER TO ann;
        ALTER CLUSTER fast RENAME TO quick;
        ALTER CLUSTER REPLICA quick.two RENAME TO last;
        CREATE MATERIALIZED VIEW base IN CLUSTER quick AS SELECT k, v FROM t WHERE k > 1;
        CREATE MATERIALIZED VIEW over AS SELECT k, count(*) AS n FROM base GROUP BY k;
        CREATE INDEX i IN CLUSTER quick ON over (k);
        INSERT INTO t VALUES (1, 10), (2, 20), (2, 21);
        DROP CLUSTER gone
        """
    )
    before = first.catalog.snapshot()
    left = files.crash(rng)
    first.close()
    again = Connection(restored_engine(Durability(left), workers=2, interactive=False), owner=True)
    with again:
        after = again._engine.catalog.snapshot()
        assert after.by_id == before.by_id
        assert after.access == before.access
        opened = before.clusters[DEFAULT_CLUSTER_ID].replicas[0]
        of_default = (replace(opened, workers=2), *before.clusters[DEFAULT_CLUSTER_ID].replicas[1:])
        default = replace(before.clusters[DEFAULT_CLUSTER_ID], replicas=of_default)
        assert after.clusters == {**before.clusters, DEFAULT_CLUSTER_ID: default}
        assert rows(again, "SHOW CLUSTER REPLICAS") == [
            ("default", "r1", 2, 0),
            ("default", "second", 1, 0),
            ("quick", "one", 2, 0),
            ("quick", "last", 1, 0),
        ]
        again.execute("SET statement_timeout = '60s'")
        for cluster in ("default", "quick"):
            replicas(again, cluster)
            again.execute(f"SET cluster = {cluster}")
            assert rows(again, "SELECT k, n FROM over") == [(2, 2)]
        assert plan(again, "SELECT n FROM over WHERE k = 2")[0].startswith("Fast path: lookup in index i")
        again.execute("CREATE CLUSTER next")
        found = again._engine.catalog.snapshot().cluster_named("next")
        ids = {*before.by_id, *before.clusters, *(r.id for c in before.clusters.values() for r in c.replicas)}
        assert found is not None and found.id not in ids


def test_a_directory_from_before_there_were_clusters_is_all_in_the_default_one() -> None:
    files = TornFiles(random.Random(2))
    engine = restored_engine(Durability(files), interactive=False)
    Session(engine).execute_script("CREATE TABLE t (k int); CREATE INDEX i ON t (k)")
    engine.close()
    durability = Durability(files.kill())
    documents = dict(durability.documents)
    durability.close()
    decoded = {name: msgspec.msgpack.decode(data) for name, data in documents.items() if name.startswith("item/")}
    for item in decoded.values():
        del item["cluster"]
    old = {
        **documents,
        **{name: msgspec.msgpack.encode(item) for name, item in decoded.items()},
        "replica/workload_class": b"kept",
    }
    found = catalog_of(old)
    index = found.find("public", "i")
    assert index is not None and index.cluster == DEFAULT_CLUSTER_ID
    (replica,) = found.clusters[DEFAULT_CLUSTER_ID].replicas
    assert (replica.name, replica.settings) == ("r1", {"workload_class": "kept"})
    with pytest.raises(DatabaseError, match="cluster u7 is not understood") as caught:
        catalog_of({**documents, "cluster/u7": b"\xc1"})
    assert caught.value.sqlstate == "XX001"


def test_what_cannot_be_stored_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    files = TornFiles(random.Random(3))
    engine = restored_engine(Durability(files), interactive=False)
    session = Session(engine)
    session.execute("CREATE CLUSTER kept")

    def full(*_: object, **__: object) -> None:
        raise DatabaseError("no space left on device", sqlstate="53100")

    monkeypatch.setattr(engine, "begin_commit", full)
    for text in (
        "CREATE CLUSTER c",
        "CREATE CLUSTER REPLICA kept.r2",
        "DROP CLUSTER kept",
        "DROP CLUSTER REPLICA kept.r1",
    ):
        with pytest.raises(DatabaseError) as caught:
            session.execute(text)
        assert caught.value.sqlstate == "53100"
        kept = engine.catalog.snapshot().cluster_named("kept")
        assert kept is not None and [r.name for r in kept.replicas] == ["r1"]
        assert set(engine.clusters) == {DEFAULT_CLUSTER_ID, kept.id}
        assert list(engine.cluster(kept.id).replicas) == [r.id for r in kept.replicas]
    engine.close()
