"""SQLAlchemy, ADBC and pgbench."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import adbc_driver_postgresql.dbapi
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection


def engine(served: ServedDatabase, schema: str) -> sa.Engine:
    url = served.url.replace("postgresql:", "postgresql+psycopg:")
    return sa.create_engine(url, connect_args={"options": f"-c search_path={schema}"})


def test_sqlalchemy_core(served: ServedDatabase, schema: str) -> None:
    meta = sa.MetaData()
    orders = sa.Table(
        "orders", meta,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("customer", sa.String(20)), sa.Column("amount", sa.Numeric(12, 2)),
    )  # fmt: skip
    database = engine(served, schema)
    meta.create_all(database)
    meta.create_all(database)  # finds that it is there
    with database.begin() as connection:
        connection.execute(orders.insert(), [{"id": i, "customer": f"c{i % 3}", "amount": i} for i in range(30)])
    with database.connect() as connection:
        total = sa.select(orders.c.customer, sa.func.sum(orders.c.amount)).group_by(orders.c.customer)
        assert sorted((c, int(a)) for c, a in connection.execute(total)) == [("c0", 135), ("c1", 145), ("c2", 155)]
        changed = connection.execute(orders.update().where(orders.c.id < 5).values(amount=0).returning(orders.c.id))
        assert sorted(changed.scalars()) == [0, 1, 2, 3, 4]
        connection.rollback()
        assert connection.execute(sa.select(sa.func.min(orders.c.amount)).where(orders.c.id == 4)).scalar() == 4
    found = sa.inspect(database)
    assert found.get_table_names(schema) == ["orders"] and found.has_table("orders", schema)
    assert found.get_view_names(schema) == [] and schema in found.get_schema_names()
    meta.drop_all(database)
    database.dispose()


def test_sqlalchemy_orm(served: ServedDatabase, schema: str) -> None:
    class Base(DeclarativeBase):
        pass

    class Person(Base):
        __tablename__ = "people"
        id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
        name: Mapped[str]
        boss_id: Mapped[int | None]

    database = engine(served, schema)
    Base.metadata.create_all(database)
    with Session(database) as session:
        session.add_all([Person(id=1, name="Ada", boss_id=None), Person(id=2, name="Bob", boss_id=1)])
        session.commit()
        (bob,) = session.scalars(sa.select(Person).where(Person.boss_id == 1))
        bob.name = "Robert"
        session.commit()
        boss = sa.orm.aliased(Person)
        pairs = session.execute(sa.select(Person.name, boss.name).join(boss, boss.id == Person.boss_id)).all()
        assert [tuple(p) for p in pairs] == [("Robert", "Ada")]
        session.delete(bob)
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Person)) == 1
    database.dispose()


def test_adbc_reads_arrow(served: ServedDatabase, schema: str, pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c double precision, d timestamp, e boolean, f bytea)")
    pg.execute(
        "INSERT INTO t SELECT x, repeat('é', x), x / 2.0, '2024-01-01', x > 1, '\\x00ff' FROM generate_series(1, 3) x"
    )
    pg.execute("INSERT INTO t VALUES (4)")
    pg.execute("CREATE TABLE lists (a int[], b text[])")
    pg.execute("INSERT INTO lists VALUES ('{1,NULL}', '{é,b}'), ('{}', NULL)")
    with adbc_driver_postgresql.dbapi.connect(served.url) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {schema}.t ORDER BY a")
        table = cursor.fetch_arrow_table()
        assert table.column("a").to_pylist() == [1, 2, 3, 4]
        assert table.column("b").to_pylist() == ["é", "éé", "ééé", None]
        assert table.column("c").to_pylist() == [0.5, 1.0, 1.5, None]
        assert table.column("e").to_pylist() == [False, True, True, None]
        assert table.column("f").to_pylist() == [b"\x00\xff"] * 3 + [None]
        cursor.execute(f"SELECT * FROM {schema}.lists ORDER BY a DESC")
        assert cursor.fetch_arrow_table().to_pydict() == {"a": [[1, None], []], "b": [["é", "b"], None]}
        cursor.execute(f"SELECT b FROM {schema}.t WHERE a = $1", (2,))
        assert cursor.fetchone() == ("éé",)


def test_adbc_writes_arrow(served: ServedDatabase, schema: str, pg: Connection) -> None:
    table = pa.table({"a": pa.array([1, 2, None], pa.int64()), "b": ["x", None, "é"], "c": [0.5, None, 2.0]})
    url = f"{served.url}?options=-csearch_path%3D{schema}"
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("loaded", table, mode="create") == 3
        assert cursor.adbc_ingest("loaded", table, mode="append") == 3
        connection.commit()
    rows = pg.execute("SELECT a, b, c FROM loaded ORDER BY a, c").fetchall()
    assert rows == [(1, "x", 0.5)] * 2 + [(2, None, None)] * 2 + [(None, "é", 2.0)] * 2


def test_adbc_lists_objects(served: ServedDatabase, schema: str, pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    pg.execute("CREATE VIEW v AS SELECT a FROM t")
    with adbc_driver_postgresql.dbapi.connect(served.url) as connection:
        (catalog,) = connection.adbc_get_objects(depth="catalogs").read_all().to_pylist()
        assert catalog == {"catalog_name": "postgres", "catalog_db_schemas": None}
        found = connection.adbc_get_objects(depth="db_schemas", db_schema_filter=schema).read_all().to_pylist()
        assert found[0]["catalog_db_schemas"] == [{"db_schema_name": schema, "db_schema_tables": None}]
        for kinds, names in ((None, {"t", "v"}), (["view"], {"v"})):
            objects = connection.adbc_get_objects(depth="tables", db_schema_filter=schema, table_types_filter=kinds)
            (listed,) = objects.read_all().to_pylist()[0]["catalog_db_schemas"]
            assert {t["table_name"] for t in listed["db_schema_tables"]} == names
        assert connection.adbc_get_table_schema("t", db_schema_filter=schema).names == ["a", "b"]
        whole = connection.adbc_get_objects(depth="all", db_schema_filter=schema).read_all().to_pylist()
        (listed,) = whole[0]["catalog_db_schemas"]
        found = {t["table_name"]: t for t in listed["db_schema_tables"]}
        named = {c["ordinal_position"]: (c["column_name"], c["xdbc_type_name"]) for c in found["t"]["table_columns"]}
        assert named == {1: ("a", "int4"), 2: ("b", "text")}
        (key,) = found["t"]["table_constraints"]
        assert (key["constraint_name"], key["constraint_type"]) == ("t_pkey", "PRIMARY KEY")
        assert key["constraint_column_names"] == ["a"] and found["v"]["table_constraints"] == []


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench_looks_up(served: ServedDatabase, schema: str, pg: Connection, tmp_path: Path, mode: str) -> None:
    pg.execute("CREATE TABLE accounts (aid int PRIMARY KEY, abalance int)")
    pg.execute("INSERT INTO accounts SELECT x, x FROM generate_series(1, 1000) x")
    script = tmp_path / "lookup.sql"
    script.write_text(f"\\set aid random(1, 1000)\nSELECT abalance FROM {schema}.accounts WHERE aid = :aid;\n")
    done = subprocess.run(
        ["/usr/lib/postgresql/15/bin/pgbench", "-n", "-M", mode, "-f", script, "-c", "8", "-j", "2", "-t", "25",
         "-h", served.host, "-p", str(served.port), "-U", "me", "db"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"transactions actually processed: 200/200\n", done.stdout)
    assert re.search(r"failed transactions: 0 ", done.stdout)
