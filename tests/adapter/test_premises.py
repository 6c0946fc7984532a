"""A plan that is kept is the plan that would be made: it goes with what it was decided from, and with nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import eddyline
from eddyline.adapter.premises import AskedCatalog
from eddyline.adapter.prepare import Prepared, bind_parsed
from eddyline.errors import Error
from eddyline.sql.catalog_view import CatalogCluster, CatalogItem, CatalogView, ItemKind, ShownSetting
from eddyline.sql.parse import parse
from eddyline.testing.catalog_script import CatalogScript

_READ = "SELECT v FROM t WHERE k = $1"


def _bound(script: CatalogScript, text: str = _READ, path: tuple[str, ...] = ("public",)) -> Prepared:
    return bind_parsed(parse(text)[0], script.catalog.snapshot().view(path))


@pytest.fixture
def script() -> CatalogScript:
    script = CatalogScript()
    script.run("CREATE TABLE t (k int, v int); CREATE TABLE u (k int); CREATE VIEW w AS SELECT k, v FROM t WHERE v > 1")
    return script


@pytest.mark.parametrize(
    "elsewhere",
    [
        "CREATE TABLE x (k int)",
        "CREATE VIEW x AS SELECT k FROM t",
        "CREATE INDEX ON u (k)",
        "CREATE INDEX ON w (k)",
        "DROP TABLE u",
        "DROP VIEW w",
        "ALTER VIEW w RENAME TO x",
        "CREATE SCHEMA s",
    ],
)
def test_a_plan_outlives_what_it_was_not_decided_from(script: CatalogScript, elsewhere: str) -> None:
    prepared = _bound(script)
    script.run(elsewhere)
    assert prepared.premises.hold(script.catalog.snapshot().view())


@pytest.mark.parametrize(
    "here",
    [
        "CREATE INDEX ON t (k)",
        "ALTER TABLE t RENAME TO x",
        "DROP VIEW w; DROP TABLE t",
        "DROP VIEW w; DROP TABLE t; CREATE TABLE t (k int, v int)",
    ],
)
def test_a_plan_goes_with_what_it_was_decided_from(script: CatalogScript, here: str) -> None:
    prepared = _bound(script)
    script.run(here)
    assert not prepared.premises.hold(script.catalog.snapshot().view())


def test_a_name_that_another_schema_has_now_is_another(script: CatalogScript) -> None:
    script.run("CREATE SCHEMA s")
    prepared = _bound(script, path=("s", "public"))
    script.run("CREATE TABLE s.t (k int, v text)")
    assert not prepared.premises.hold(script.catalog.snapshot().view(("s", "public")))
    assert prepared.premises.hold(script.catalog.snapshot().view(("public",)))


def test_what_shows_the_catalog_is_read_anew(script: CatalogScript) -> None:
    prepared = _bound(script, "SELECT relname FROM pg_class")
    script.run("CREATE TABLE x (k int)")
    assert not prepared.premises.hold(script.catalog.snapshot().view())


@dataclass(frozen=True)
class _Told:
    """A catalog whose every member answers as it was told."""

    version: int = 1
    search_path: tuple[str, ...] = ("public",)
    zone: str | None = None
    users: tuple[str, str] = ("a", "a")
    settings: tuple[ShownSetting, ...] = ()
    process: int = 1
    cluster: str = "default"
    cluster_id: str | None = "s1"
    creation_schema: str | None = "public"
    called: str = ""  # the method that answers otherwise

    def clusters(self) -> tuple[CatalogCluster, ...]:
        return (CatalogCluster("s1", "default"),) if self.called == "clusters" else ()

    def has_schema(self, schema: str) -> bool:
        return self.called == "has_schema"

    def schema_names(self) -> tuple[str, ...]:
        return (self.called,) if self.called == "schema_names" else ()

    def resolve(self, schema: str | None, name: str) -> CatalogItem | None:
        return CatalogItem("u1", "public", name, ItemKind.TABLE) if self.called == "resolve" else None

    def item(self, item_id: str) -> CatalogItem | None:
        return CatalogItem(item_id, "public", "t", ItemKind.TABLE) if self.called == "item" else None

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        return (CatalogItem("u1", "public", "t", ItemKind.TABLE),) if self.called == "items" else ()

    def indexes_on(self, item_id: str) -> tuple[CatalogItem, ...]:
        return (CatalogItem("u1", "public", "t", ItemKind.INDEX),) if self.called == "indexes_on" else ()

    def built(self, item_id: str) -> bool:
        return self.called != "built"

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        return (CatalogItem("u1", "public", "t", ItemKind.VIEW),) if self.called == "dependents" else ()


_ARGUMENTS: dict[str, tuple[str | None, ...]] = {
    "clusters": (),
    "has_schema": ("s",),
    "schema_names": (),
    "resolve": (None, "t"),
    "item": ("u1",),
    "items": (None,),
    "indexes_on": ("u1",),
    "built": ("u1",),
    "dependents": ("u1",),
}
_OTHERWISE: dict[str, Any] = {
    "version": 2,
    "search_path": ("s",),
    "zone": "Asia/Tokyo",
    "users": ("b", "a"),
    "settings": (ShownSetting("lock_timeout", "1s", "ms", "0", "0", "user", "session"),),
    "process": 2,
    "cluster": "other",
    "cluster_id": None,
    "creation_schema": None,
}


def test_every_member_of_a_catalog_is_known_here() -> None:
    members = {name for name in vars(CatalogView) if not name.startswith("_")}
    assert members == _ARGUMENTS.keys() | _OTHERWISE.keys()


@pytest.mark.parametrize("member", sorted(_ARGUMENTS.keys() | _OTHERWISE.keys()))
def test_each_question_is_a_premise_of_its_own(member: str) -> None:
    asked = AskedCatalog(_Told())
    answer = getattr(asked, member)
    if member in _ARGUMENTS:
        answer = answer(*_ARGUMENTS[member])
        told = _Told(called=member)
    else:
        told = _Told(**{member: _OTHERWISE[member]})
    assert asked.premises().hold(_Told())
    assert not asked.premises().hold(told), answer


_TEXTS = (
    _READ,
    "SELECT * FROM a",
    "SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "SELECT k FROM a WHERE k IN (SELECT k FROM b)",
    "SELECT * FROM s.a",
    "INSERT INTO a VALUES ($1, 2)",
    "DELETE FROM b WHERE k = $1",
    "UPDATE a SET v = v + 1 WHERE k = 3",
    "SELECT count(*) FROM pg_class WHERE relname = 'a'",
    "SELECT 'a'::regclass::text",
)
_CHANGES = (
    "CREATE TABLE {n} (k int PRIMARY KEY, v int)",
    "CREATE TABLE {n} (k int, v text)",
    "CREATE VIEW {n} AS SELECT k, v FROM {m} WHERE k > 1",
    "CREATE OR REPLACE VIEW {n} AS SELECT k, v FROM {m} WHERE k > 2",
    "CREATE MATERIALIZED VIEW {n} AS SELECT k, v FROM {m}",
    "CREATE INDEX ON {n} (k)",
    "CREATE INDEX IN CLUSTER c ON {n} (k)",
    "DROP TABLE {n} CASCADE",
    "DROP VIEW {n} CASCADE",
    "DROP MATERIALIZED VIEW {n} CASCADE",
    "ALTER TABLE {n} RENAME TO {m}",
    "ALTER VIEW {n} RENAME TO {m}",
    "CREATE SCHEMA s",
    "DROP SCHEMA s CASCADE",
)
_NAMES = ("a", "b", "t", "s.a", "public.a", "public.t")


def _made(text: str, catalog: CatalogView) -> Prepared | str:
    try:
        return bind_parsed(parse(text)[0], catalog)
    except Error as error:
        return f"{error.sqlstate} {error}"


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_whose_premises_hold_is_the_one_that_would_be_made(seed: int) -> None:
    rng, script = random.Random(seed), CatalogScript()
    first = script.catalog.snapshot()
    script.catalog.publish(first, first.with_cluster(CatalogCluster("u900", "c")))
    path, cluster = ("s", "public"), ("default", "c")[seed % 2]
    kept: dict[str, Prepared] = {}
    compared = 0
    for _ in range(160):
        change = rng.choice(_CHANGES).format(n=rng.choice(_NAMES), m=rng.choice(_NAMES))
        try:
            script.run(change)
        except Error:
            continue
        catalog = script.catalog.snapshot().view(path, cluster=cluster)
        for text in _TEXTS:
            made, known = _made(text, catalog), kept.get(text)
            if known is not None and known.premises.hold(catalog):
                assert known == made, (change, text)
                compared += 1
            elif isinstance(made, Prepared):
                kept[text] = made
    assert compared > 50


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (k int, v int)")
        db.execute("CREATE INDEX t_k ON t (k)")
        db.execute("INSERT INTO t VALUES (1, 10)")
        yield db


def test_reads_follow_what_happens_to_what_they_read(db: eddyline.Connection) -> None:
    def answers() -> list[Any]:
        return [db.execute(_READ, [1]).fetchall() for _ in range(4)]

    assert answers() == [[(10,)]] * 4
    db.execute("CREATE TABLE other (k int)")
    assert answers() == [[(10,)]] * 4
    db.execute("DROP INDEX t_k")
    assert answers() == [[(10,)]] * 4
    db.execute("DROP TABLE t")
    with pytest.raises(Error, match='relation "t" does not exist'):
        db.execute(_READ, [1])
    db.execute("CREATE TABLE t (k int, v text)")
    db.execute("INSERT INTO t VALUES (1, 'x')")
    assert answers() == [[("x",)]] * 4


def test_a_right_that_is_taken_back_is_missed_at_once(db: eddyline.Connection) -> None:
    db.execute("CREATE ROLE reader LOGIN")
    db.execute("GRANT SELECT ON t TO reader")
    db.execute("SET ROLE reader")
    assert [db.execute(_READ, [1]).fetchall() for _ in range(4)] == [[(10,)]] * 4
    db.execute("RESET ROLE")
    db.execute("REVOKE SELECT ON t FROM reader")
    db.execute("SET ROLE reader")
    with pytest.raises(Error) as refused:
        db.execute(_READ, [1])
    assert refused.value.sqlstate == "42501"


def test_texts_that_differ_by_literals_alone_are_refused_to_whom_they_are_refused(db: eddyline.Connection) -> None:
    assert [db.execute(f"SELECT v FROM t WHERE k = {k}").fetchall() for k in (2, 3, 1)] == [[], [], [(10,)]]
    db.execute("INSERT INTO t VALUES (11, 1)")
    db.execute("INSERT INTO t VALUES (12, 1)")
    db.execute("CREATE ROLE stranger")
    db.execute("SET ROLE stranger")
    for text in (
        *(f"SELECT v FROM t WHERE k = {k}" for k in (4, 5, 1)),
        *(f"INSERT INTO t VALUES ({k}, 1)" for k in (13, 14, 15)),
    ):
        with pytest.raises(Error) as refused:
            db.execute(text)
        assert refused.value.sqlstate == "42501"
    db.execute("RESET ROLE")
    db.execute("GRANT SELECT ON t TO stranger")
    db.execute("SET ROLE stranger")
    assert [db.execute(f"SELECT v FROM t WHERE k = {k}").fetchall() for k in (6, 7, 1)] == [[], [], [(10,)]]
    db.execute("RESET ROLE")
    db.execute("REVOKE SELECT ON t FROM stranger")
    db.execute("SET ROLE stranger")
    for k in (8, 9, 1):
        with pytest.raises(Error) as refused:
            db.execute(f"SELECT v FROM t WHERE k = {k}")
        assert refused.value.sqlstate == "42501"
