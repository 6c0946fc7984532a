"""Statements about clusters and replicas: what they say, and where they are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.errors import Error
from eddyline.sql.bind_roles import CURRENT_USER
from eddyline.sql.bind_statement import bind_statement
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, CatalogCluster
from eddyline.sql.cluster_statements import (
    AS_OPENED,
    AlterCluster,
    AlterReplica,
    ClusterOwner,
    CreateCluster,
    CreateReplica,
    DropCluster,
    DropReplica,
    NewReplica,
    RenameCluster,
    RenameReplica,
    ReplicaChanges,
    ReplicaName,
    ShowReplica,
)
from eddyline.sql.parse import parse
from eddyline.sql.words import Named
from eddyline.testing.catalog_script import CatalogScript


def bound(text: str) -> Any:
    return CatalogScript().bind(text)


def refusal(text: str) -> tuple[str | None, str, int | None]:
    with pytest.raises(Error) as caught:
        bound(text)
    return caught.value.sqlstate, caught.value.message, caught.value.position


def at(text: str, name: str) -> Named:
    """The name where it first stands in the text."""
    return Named(name, text.index(name) + 1)


def replica(text: str, cluster: str, name: str) -> ReplicaName:
    return ReplicaName(at(text, cluster), Named(name, text.index(f".{name}") + 2))


def test_a_cluster_has_one_replica_unless_it_says_otherwise() -> None:
    plain = bound("CREATE CLUSTER fast")
    assert plain == CreateCluster(Named("fast", 16), (NewReplica(Named("r1", 16), ReplicaChanges()),))
    several = bound(
        "create cluster fast (workers = 2, PROCESSES TO 3, replication factor = 2, workload_class = 'x, y')"
    )
    said = ReplicaChanges(2, 3, {"workload_class": ("x, y",)})
    assert [(r.name.name, r.said) for r in several.replicas] == [("r1", said), ("r2", said)]
    assert bound("CREATE CLUSTER c (REPLICATION FACTOR = 0)").replicas == ()
    assert not bound("CREATE CLUSTER c").if_not_exists
    assert bound("CREATE CLUSTER IF NOT EXISTS c").if_not_exists is True


def test_replicas_are_listed_by_their_names() -> None:
    text = 'SELECT 1; CREATE CLUSTER c REPLICAS (one (WORKERS = 4, gc_policy = off), "Two", three)'
    statements = parse(text)
    found = bind_statement(statements[1], CatalogScript().view)
    assert isinstance(found, CreateCluster)
    assert found.name == Named("c", text.index(" c ") + 2)
    assert [(r.name, r.said) for r in found.replicas] == [
        (at(text, "one"), ReplicaChanges(4, None, {"gc_policy": ("off",)})),
        (Named("Two", text.index('"Two"') + 1), ReplicaChanges()),
        (at(text, "three"), ReplicaChanges()),
    ]
    assert bound("CREATE CLUSTER c REPLICAS ()").replicas == ()


def test_statements_about_replicas() -> None:
    text = "CREATE CLUSTER REPLICA big.two (WORKERS = 3)"
    assert bound(text) == CreateReplica(replica(text, "big", "two"), ReplicaChanges(3))
    assert bound("CREATE CLUSTER REPLICA IF NOT EXISTS c.r").if_not_exists
    text = "DROP CLUSTER REPLICA IF EXISTS big.two, big.six"
    names = (replica(text, "big", "two"), ReplicaName(Named("big", 41), Named("six", 45)))
    assert bound(text) == DropReplica(names, if_exists=True)
    text = "ALTER CLUSTER REPLICA big.two RENAME TO other"
    assert bound(text) == RenameReplica(replica(text, "big", "two"), at(text, "other"))
    text = "SHOW CLUSTER REPLICA big.two"
    assert bound(text) == ShowReplica(replica(text, "big", "two"))
    text = "ALTER CLUSTER REPLICA \"default\".r1 SET (a = 1, B TO 'x, y', s.c = DEFAULT, d = off, e = 1.5, a = 2);"
    found = bound(text)
    assert isinstance(found, AlterReplica)
    assert found.said == ReplicaChanges(
        settings={"a": ("2",), "b": ("x, y",), "s.c": None, "d": ("off",), "e": ("1.5",)}
    )
    assert bound('alter cluster replica c.r1 reset (a, "B")').said == ReplicaChanges(settings={"a": None, "B": None})
    assert bound("ALTER CLUSTER REPLICA c.r1 RESET (WORKERS, PROCESSES)").said == ReplicaChanges(1, AS_OPENED)
    assert bound("ALTER CLUSTER REPLICA c.r1 RESET ALL").said == ReplicaChanges(reset=True)


def test_statements_about_clusters() -> None:
    text = "DROP CLUSTER IF EXISTS small, big CASCADE"
    assert bound(text) == DropCluster((at(text, "small"), at(text, "big")), if_exists=True, cascade=True)
    assert bound("DROP CLUSTER a RESTRICT") == DropCluster((Named("a", 14),))
    text = "ALTER CLUSTER small RENAME TO tiny"
    assert bound(text) == RenameCluster(at(text, "small"), at(text, "tiny"))
    text = "ALTER CLUSTER small SET (REPLICATION FACTOR = 3, WORKERS = 2, gc_policy = off)"
    assert bound(text) == AlterCluster(at(text, "small"), 3, ReplicaChanges(2, None, {"gc_policy": ("off",)}))
    text = "ALTER CLUSTER small RESET (replication factor, workers, gc_policy)"
    assert bound(text) == AlterCluster(at(text, "small"), 1, ReplicaChanges(1, None, {"gc_policy": None}))
    assert bound("ALTER CLUSTER c RESET ALL").said == ReplicaChanges(reset=True)
    assert bound("ALTER CLUSTER c OWNER TO somebody") == ClusterOwner(Named("c", 15), "somebody")
    assert bound("ALTER CLUSTER c OWNER TO CURRENT_USER").owner == CURRENT_USER


def test_names_are_as_long_as_postgresqls() -> None:
    assert bound(f"CREATE CLUSTER {'c' * 80}").name.name == "c" * 63
    assert bound(f'CREATE CLUSTER "{"ü" * 40}"').name.name == "ü" * 31


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE CLUSTER", ("42601", "syntax error at end of input", 15)),
        ("CREATE CLUSTER 5", ("42601", 'syntax error at or near "5"', 16)),
        ("CREATE CLUSTER c WORKERS = 2", ("42601", 'syntax error at or near "WORKERS"', 18)),
        ("CREATE CLUSTER c ()", ("42601", 'syntax error at or near ")"', 19)),
        ("CREATE CLUSTER c (WORKERS 2)", ("42601", 'syntax error at or near "2"', 27)),
        ("CREATE CLUSTER c (WORKERS = 2", ("42601", "syntax error at end of input", 30)),
        ("CREATE CLUSTER c (WORKERS = 2) x", ("42601", 'syntax error at or near "x"', 32)),
        ("CREATE CLUSTER c REPLICAS", ("42601", "syntax error at end of input", 26)),
        ("CREATE CLUSTER c REPLICAS (r1 r2)", ("42601", 'syntax error at or near "r2"', 31)),
        ("CREATE CLUSTER c REPLICAS (r1,)", ("42601", 'syntax error at or near ")"', 31)),
        ("CREATE CLUSTER c REPLICAS (r1 (WORKERS = 1) x)", ("42601", 'syntax error at or near "x"', 45)),
        ("CREATE CLUSTER c REPLICAS (r, r)", ("42710", 'cluster replica "r" is specified more than once', 31)),
        ("CREATE CLUSTER c (WORKERS = 0)", ("22023", 'invalid value for option WORKERS: "0"', 19)),
        ("CREATE CLUSTER c (WORKERS = -1)", ("22023", 'invalid value for option WORKERS: "-1"', 19)),
        ("CREATE CLUSTER c (WORKERS = 1.5)", ("22023", 'invalid value for option WORKERS: "1.5"', 19)),
        ("CREATE CLUSTER c (WORKERS = many)", ("22023", 'invalid value for option WORKERS: "many"', 19)),
        ("CREATE CLUSTER c (PROCESSES = 257)", ("22023", 'invalid value for option PROCESSES: "257"', 19)),
        (
            "CREATE CLUSTER c (WORKERS = 1, REPLICATION FACTOR = 33)",
            ("22023", 'invalid value for option REPLICATION FACTOR: "33"', 32),
        ),
        (
            "SELECT 1; CREATE CLUSTER c REPLICAS (r (REPLICATION FACTOR = 2))",
            ("22023", "REPLICATION FACTOR is no option of a replica", 41),
        ),
        ("CREATE CLUSTER REPLICA c", ("42601", "syntax error at end of input", 25)),
        ("CREATE CLUSTER REPLICA c.r.s", ("42601", 'syntax error at or near "."', 27)),
        ("DROP CLUSTER", ("42601", "syntax error at end of input", 13)),
        ("DROP CLUSTER a,", ("42601", "syntax error at end of input", 16)),
        ("DROP CLUSTER a b", ("42601", 'syntax error at or near "b"', 16)),
        ("DROP CLUSTER a CASCADE b", ("42601", 'syntax error at or near "b"', 24)),
        ("DROP CLUSTER REPLICA r1", ("42601", "syntax error at end of input", 24)),
        ("DROP CLUSTER REPLICA c.r1 CASCADE", ("42601", 'syntax error at or near "CASCADE"', 27)),
        ("ALTER CLUSTER c", ("42601", "syntax error at end of input", 16)),
        ("ALTER CLUSTER c RENAME d", ("42601", 'syntax error at or near "RENAME"', 17)),
        ("ALTER CLUSTER c RENAME TO d e", ("42601", 'syntax error at or near "e"', 29)),
        ("ALTER CLUSTER c OWNER TO", ("42601", "syntax error at end of input", 25)),
        ("ALTER CLUSTER c OWNER TO PUBLIC", ("42704", 'role "public" does not exist', None)),
        ("ALTER CLUSTER REPLICA", ("42601", "syntax error at end of input", 22)),
        ("ALTER CLUSTER REPLICA r1 SET (a = 1)", ("42601", 'syntax error at or near "SET"', 26)),
        ("ALTER CLUSTER REPLICA default.r1", ("42601", "syntax error at end of input", 33)),
        ("ALTER CLUSTER REPLICA default.r1 SET a = 1", ("42601", 'syntax error at or near "a"', 38)),
        ("ALTER CLUSTER REPLICA default.r1 SET ()", ("42601", 'syntax error at or near ")"', 39)),
        ("ALTER CLUSTER REPLICA default.r1 SET (a = 1,)", ("42601", 'syntax error at or near ")"', 45)),
        ("ALTER CLUSTER REPLICA default.r1 SET (a = 1) x", ("42601", 'syntax error at or near "x"', 46)),
        ("ALTER CLUSTER REPLICA default.r1 SET (a = )", ("42601", 'syntax error at or near ")"', 43)),
        ("ALTER CLUSTER REPLICA default.r1 SET (a)", ("42601", 'syntax error at or near ")"', 40)),
        ("ALTER CLUSTER REPLICA default.r1 SET (a = 1 2)", ("42601", 'syntax error at or near "2"', 45)),
        ("ALTER CLUSTER REPLICA default.r1 SET (LOCAL a = 1)", ("42601", 'syntax error at or near "a"', 45)),
        (
            "ALTER CLUSTER REPLICA default.r1 SET (TRANSACTION READ ONLY)",
            ("42601", 'syntax error at or near "READ"', 51),
        ),
        ("ALTER CLUSTER REPLICA default.r1 RESET (a b)", ("42601", 'syntax error at or near "b"', 43)),
        ("ALTER CLUSTER REPLICA default.r1 RESET (1)", ("42601", 'syntax error at or near "1"', 41)),
        ("ALTER CLUSTER REPLICA default.r1 RESET ALL x", ("42601", 'syntax error at or near "x"', 44)),
        ("SHOW CLUSTER REPLICA default.r1 x", ("42601", 'syntax error at or near "x"', 33)),
        ("CREATE INDEX i IN CLUSTER fast ON t (a)", ("42704", 'unknown cluster "fast"', 27)),
        ("SELECT 1; CREATE DEFAULT INDEX IN CLUSTER fast ON t", ("42704", 'unknown cluster "fast"', 43)),
        ("SELECT 1; CREATE VIEW v IN CLUSTER fast AS SELECT 1", ("42704", 'unknown cluster "fast"', 36)),
    ],
)
def test_what_is_malformed_is_refused_where_it_is(text: str, expected: tuple[str, str, int | None]) -> None:
    script = CatalogScript("CREATE TABLE t (a int)")
    with pytest.raises(Error) as caught:
        bind_statement(parse(text)[-1], script.view)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == expected


def test_an_object_is_kept_where_it_says_or_where_the_session_is() -> None:
    script = CatalogScript("CREATE TABLE t (a int)")
    base = script.catalog.snapshot()
    script.catalog.publish(base, base.with_cluster(CatalogCluster("u90", "fast")))
    texts = ("CREATE INDEX {} ON t (a)", "CREATE DEFAULT INDEX {} ON t", "CREATE MATERIALIZED VIEW m {} AS TABLE t")
    for text in texts:
        statement = parse(text.format(""))[0]
        inside: Any = bind_statement(statement, script.catalog.snapshot().view(cluster="fast"))
        outside: Any = bind_statement(statement, script.view)
        told: Any = script.bind(text.format("IN CLUSTER fast"))
        assert (inside.cluster, outside.cluster, told.cluster) == ("u90", DEFAULT_CLUSTER_ID, "u90")
        with pytest.raises(Error, match='unknown cluster "gone"') as caught:
            bind_statement(statement, script.catalog.snapshot().view(cluster="gone"))
        assert (caught.value.sqlstate, caught.value.hint) == ("42704", "Known: default, fast.")


def test_what_is_kept_elsewhere_is_shown_with_its_cluster() -> None:
    script = CatalogScript("CREATE TABLE t (a int)")
    base = script.catalog.snapshot()
    script.catalog.publish(base, base.with_cluster(CatalogCluster("u90", "Fast")))
    script.run('CREATE INDEX i IN CLUSTER "Fast" ON t (a)')
    script.run('CREATE MATERIALIZED VIEW m IN CLUSTER "Fast" AS SELECT a FROM t')
    index: Any = script.bind("SHOW CREATE INDEX i")
    view: Any = script.bind("SHOW CREATE MATERIALIZED VIEW m")
    assert index.rows == (("public.i", 'CREATE INDEX i IN CLUSTER "Fast" ON public.t (a)'),)
    assert view.rows == (("public.m", 'CREATE MATERIALIZED VIEW public.m (a) IN CLUSTER "Fast" AS SELECT a FROM t'),)
    script.run("DROP INDEX i; DROP MATERIALIZED VIEW m")
    for found in (index, view):
        script.run(found.rows[0][1])
    assert {script.item(name).cluster for name in ("i", "m")} == {"u90"}
