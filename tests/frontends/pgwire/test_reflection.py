"""SQLAlchemy's reflection of columns, keys, indexes and views, beside PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import Session

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase

OBJECTS = '''
    CREATE TABLE people (id int PRIMARY KEY, name varchar(20) NOT NULL, born date, tags text[], scores numeric(6,2)[]);
    CREATE TABLE pairs (a smallint, b bigint DEFAULT 7, c char(3), at timestamptz, u uuid, PRIMARY KEY (b, a));
    CREATE TABLE "Odd name" ("select" boolean, "Has ""quotes""" double precision);
    CREATE INDEX by_name ON people (name, born);
    CREATE INDEX by_tags ON people (tags);
    CREATE VIEW grown AS SELECT id, name, tags FROM people WHERE born < '2000-01-01';
    CREATE MATERIALIZED VIEW counted AS SELECT name, count(*) AS many FROM people GROUP BY name;
    CREATE INDEX by_many ON counted (many)
'''


@pytest.fixture
def engines(served: ServedDatabase, schema: str, postgres: PostgresServer) -> Iterator[tuple[sa.Engine, sa.Engine]]:
    """Ours and PostgreSQL's, with the same objects in the search path's first schema, whose name is the same."""
    with psycopg.connect(served.url, autocommit=True) as ours, postgres.connect() as theirs:
        theirs.execute(f"CREATE SCHEMA {schema}")
        for connection in (ours, theirs):
            for statement in (f"SET search_path = {schema}", *OBJECTS.split(";")):
                connection.execute(statement)
        found = []
        for port in (served.port, postgres.port):
            url = f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
            found.append(sa.create_engine(url, connect_args={"options": f"-c search_path={schema}"}))
        yield found[0], found[1]
        for engine in found:
            engine.dispose()
        theirs.execute(f"DROP SCHEMA {schema} CASCADE")


def described(engine: sa.Engine, schema: str | None) -> dict[str, Any]:
    """All that an inspector says, by what was asked."""
    found = sa.inspect(engine)
    scopes: dict[str, Any] = {"schema": schema, "kind": sa.engine.reflection.ObjectKind.ANY}
    asked: dict[str, Any] = {
        "columns": found.get_multi_columns(**scopes),
        "keys": found.get_multi_pk_constraint(**scopes),
        "foreign keys": found.get_multi_foreign_keys(**scopes),
        "indexes": found.get_multi_indexes(**scopes),
        "unique": found.get_multi_unique_constraints(**scopes),
        "checks": found.get_multi_check_constraints(**scopes),
        "comments": found.get_multi_table_comment(**scopes),
        "options": found.get_multi_table_options(**scopes),
    }
    named = {what: {key[1]: value for key, value in tables.items()} for what, tables in asked.items()}
    for columns in named["columns"].values():
        for column in columns:
            column["type"] = str(column["type"])
    for indexes in named["indexes"].values():
        indexes.sort(key=lambda index: index["name"])
    named["names"] = {
        "tables": sorted(found.get_table_names(schema)),
        "views": sorted(found.get_view_names(schema)),
        "materialized": sorted(found.get_materialized_view_names(schema)),
    }
    return named


def test_an_inspector_finds_what_it_finds_in_postgres(engines: tuple[sa.Engine, sa.Engine], schema: str) -> None:
    for where in (None, schema):
        ours, theirs = (described(engine, where) for engine in engines)
        for what in theirs:
            assert ours[what] == theirs[what], what


def test_one_table_is_reflected_like_all_of_them(engines: tuple[sa.Engine, sa.Engine], schema: str) -> None:
    for name in ("people", "Odd name", "grown"):
        ours, theirs = (sa.inspect(engine) for engine in engines)
        for ask in ("get_columns", "get_pk_constraint", "get_indexes", "get_foreign_keys", "get_table_comment"):
            assert str(getattr(ours, ask)(name, schema)) == str(getattr(theirs, ask)(name, schema))
    assert "FROM people" in sa.inspect(engines[0]).get_view_definition("grown")


def test_reflected_tables_are_used(engines: tuple[sa.Engine, sa.Engine]) -> None:
    answers = []
    for engine in engines:
        meta = sa.MetaData()
        meta.reflect(engine, views=True)
        people = meta.tables["people"]
        rows = [
            {"id": 1, "name": "Ada", "tags": ["x", None, 'a "b"'], "scores": [Decimal("1.50"), Decimal(2)]},
            {"id": 2, "name": "Bob", "tags": [], "scores": None},
        ]
        with engine.begin() as connection:
            connection.execute(people.insert(), rows)
            picked = sa.select(people.c.id, people.c.tags, people.c.scores).order_by(people.c.id)
            tagged = sa.select(people.c.id).where(sa.literal("x") == sa.any_(people.c.tags))
            chosen = sa.select(people.c.id).where(people.c.id == sa.any_(sa.cast([2, 3], sa.ARRAY(sa.Integer))))
            answers.append([[tuple(r) for r in connection.execute(q)] for q in (picked, tagged, chosen)])
    assert answers[0] == answers[1]


def test_classes_are_made_of_tables(engines: tuple[sa.Engine, sa.Engine]) -> None:
    base = automap_base()
    base.prepare(autoload_with=engines[0])
    person = base.classes.people
    with Session(engines[0]) as session:
        session.add(person(id=7, name="Eve", tags=["new"]))
        session.commit()
        found = session.get(person, 7)
        assert found is not None and found.tags == ["new"]
