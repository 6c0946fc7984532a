"""Keys that the database gives out, as programs use them by default: SQLAlchemy, psycopg, asyncpg, pandas, psql."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection

Both = tuple[sa.Engine, sa.Engine]


@pytest.fixture
def databases(served: ServedDatabase, schema: str, postgres: PostgresServer) -> Iterator[Both]:
    """Ours and PostgreSQL's, with an empty schema of the same name."""
    with postgres.connect() as theirs:
        theirs.execute(f"CREATE SCHEMA {schema}")
        found = []
        for port in (served.port, postgres.port):
            url = f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
            found.append(sa.create_engine(url, connect_args={"options": f"-c search_path={schema}"}))
        yield found[0], found[1]
        for engine in found:
            engine.dispose()
        theirs.execute(f"DROP SCHEMA {schema} CASCADE")


def both(databases: Both, ask: Callable[[sa.Engine], Any]) -> Any:
    """The answer, which is PostgreSQL's too."""
    ours, theirs = (ask(engine) for engine in databases)
    assert ours == theirs
    return ours


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    books: Mapped[list[Book]] = relationship(
        back_populates="author", primaryjoin="Author.id == foreign(Book.author_id)", order_by="Book.id"
    )


class Book(Base):
    __tablename__ = "books"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(start=100, increment=10), primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int]
    author: Mapped[Author] = relationship(back_populates="books", primaryjoin="Author.id == foreign(Book.author_id)")


class Ticket(Base):
    __tablename__ = "tickets"
    id: Mapped[int] = mapped_column(sa.Sequence("ticket_numbers", start=1000), primary_key=True)
    what: Mapped[str]


def test_the_orm_works_with_its_defaults(databases: Both) -> None:
    def work(engine: sa.Engine) -> Any:
        Base.metadata.create_all(engine)
        Base.metadata.create_all(engine)  # finds that all is there
        with Session(engine) as session:
            session.add_all([Author(name=f"a{n}", books=[Book(title=f"t{n}{m}") for m in range(n)]) for n in range(4)])
            session.add_all([Ticket(what=what) for what in ("seat", "coat")])
            session.flush()
            first = Author(name="alone")
            session.add(first)
            session.flush()
            keys = [first.id]
            session.commit()
            session.execute(sa.insert(Author), [{"name": f"bulk{n}"} for n in range(2500)])
            found = session.scalars(
                sa.insert(Author).returning(Author, sort_by_parameter_order=True),
                [{"name": f"r{n}"} for n in range(30)],
            ).all()
            keys += [author.id for author in found]
            assert [author.name for author in found] == [f"r{n}" for n in range(30)]
            session.rollback()
            again = Author(name="after")
            session.add(again)
            session.commit()
            keys.append(again.id)
            books = [(b.id, b.title, b.author.name) for b in session.scalars(sa.select(Book).order_by(Book.id))]
            people = [(a.id, a.name, len(a.books)) for a in session.scalars(sa.select(Author).order_by(Author.id))]
            tickets = [(t.id, t.what) for t in session.scalars(sa.select(Ticket).order_by(Ticket.id))]
        names = sorted(sa.inspect(engine).get_sequence_names())
        Base.metadata.drop_all(engine)
        left = sorted(sa.inspect(engine).get_sequence_names())
        return keys, books, people, tickets, names, left

    *_, names, left = both(databases, work)
    assert names == ["authors_id_seq", "books_id_seq", "ticket_numbers"] and left == []


def test_core_inserts_and_tells_keys(databases: Both) -> None:
    meta = sa.MetaData()
    items = sa.Table(
        "items", meta,
        sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(20)),
        sa.Column("place", sa.SmallInteger, sa.Identity(always=True, minvalue=0, start=0, cycle=True, maxvalue=3)),
    )  # fmt: skip

    def work(engine: sa.Engine) -> Any:
        meta.create_all(engine)
        with engine.begin() as connection:
            one = connection.execute(items.insert().values(name="one")).inserted_primary_key
            many = [{"name": f"n{n}"} for n in range(6)]
            told = connection.execute(
                items.insert().returning(items.c.id, items.c.place, sort_by_parameter_order=True), many
            ).all()
            source = sa.select(items.c.name + "!").order_by(items.c.id.desc())
            connection.execute(items.insert().from_select(["name"], source))
        with engine.connect() as connection:
            rows = connection.execute(sa.select(items).order_by(items.c.id)).all()
        meta.drop_all(engine)
        return tuple(one or ()), [tuple(row) for row in told], [tuple(row) for row in rows]

    assert both(databases, work)[0] == (1,)


def test_an_inspector_finds_what_columns_take_their_values_of(databases: Both, schema: str) -> None:
    made = (
        "CREATE TABLE a (id serial PRIMARY KEY, b bigserial, c smallserial, d int DEFAULT 7)",
        "CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY,"
        " e bigint GENERATED BY DEFAULT AS IDENTITY (START 5 INCREMENT 3))",
        "CREATE SEQUENCE alone",
        "CREATE TABLE u (id int DEFAULT nextval('alone'), \"Odd\" serial)",
    )

    def work(engine: sa.Engine) -> Any:
        with engine.begin() as connection:
            for statement in made:
                connection.exec_driver_sql(statement)
        inspector = sa.inspect(engine)
        columns: dict[str, Any] = {name: inspector.get_columns(name) for name in ("a", "i", "u")}
        for found in columns.values():
            for column in found:
                column["type"] = str(column["type"])
                if column["default"] is not None:
                    column["default"] = column["default"].replace(f"{schema}.", "")
        reflected = sa.Table("a", sa.MetaData(), autoload_with=engine)
        with engine.begin() as connection:
            key = connection.execute(reflected.insert().values(d=1)).inserted_primary_key
        return columns, sorted(inspector.get_sequence_names()), inspector.has_sequence("alone"), tuple(key or ())

    columns, names, has, key = both(databases, work)
    assert columns["a"][0]["autoincrement"] and columns["i"][0]["identity"]["always"] and has and key == (1,)
    assert names == ["a_b_seq", "a_c_seq", "a_id_seq", "alone", "i_e_seq", "i_id_seq", "u_Odd_seq", "u_id_seq"][:7]


def test_psycopg_takes_keys_by_executemany_and_copy(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (id serial PRIMARY KEY, name text)")
    with pg.cursor() as cursor:
        cursor.executemany("INSERT INTO t (name) VALUES (%s) RETURNING id", [("a",), ("b",), ("c",)], returning=True)
        told = [cursor.fetchone()]
        while cursor.nextset():
            told.append(cursor.fetchone())
        assert told == [(1,), (2,), (3,)]
        with cursor.copy("COPY t (name) FROM STDIN") as copy:
            for number in range(1000):
                copy.write_row((f"copied{number}",))
        with cursor.copy("COPY t FROM STDIN") as copy:
            copy.write_row((5000, "given"))
    assert pg.execute("SELECT min(id), max(id), count(*) FROM t WHERE name LIKE 'copied%'").fetchone() == (
        4,
        1003,
        1000,
    )
    assert pg.execute("SELECT nextval(%s)", ("t_id_seq",)).fetchone() == (1004,)
    assert pg.execute("SELECT setval(%s, %s)", ("t_id_seq", 5000)).fetchone() == (5000,)
    assert pg.execute("INSERT INTO t (name) VALUES (%s) RETURNING id", ("next",)).fetchone() == (5001,)
    with pytest.raises(psycopg.errors.UniqueViolation):
        pg.execute("INSERT INTO t VALUES (5001, 'x')")


def test_asyncpg_takes_keys(served: ServedDatabase, schema: str) -> None:
    async def work() -> list[Any]:
        connection = await asyncpg.connect(served.url, server_settings={"search_path": schema})
        try:
            await connection.execute("CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, v int)")
            first = await connection.fetchval("INSERT INTO t (v) VALUES ($1) RETURNING id", 7)
            await connection.executemany("INSERT INTO t (v) VALUES ($1)", [(n,) for n in range(50)])
            await connection.copy_records_to_table("t", records=[(n,) for n in range(9)], columns=["v"])
            with pytest.raises(asyncpg.GeneratedAlwaysError):
                await connection.execute("INSERT INTO t VALUES (1, 2)")
            last = await connection.fetchval("SELECT nextval('t_id_seq')")
            return [first, await connection.fetchval("SELECT max(id) FROM t"), last]
        finally:
            await connection.close()

    assert asyncio.run(work()) == [1, 60, 61]


def test_a_frame_is_appended_to_a_table_with_keys(databases: Both) -> None:
    frame = pd.DataFrame({"name": ["x", "y", "z"]})

    def work(engine: sa.Engine) -> Any:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE frames (id serial PRIMARY KEY, name text)")
            frame.to_sql("frames", connection, if_exists="append", index=False)
            frame.to_sql("frames", connection, if_exists="append", index=False, method="multi")
            return pd.read_sql("SELECT id, name FROM frames ORDER BY id", connection).values.tolist()

    assert both(databases, work)[-1] == [6, "z"]


@pytest.mark.parametrize("command", [r"\d t", r"\d i", r"\d t_id_seq", r"\d alone", r"\ds", r"\dp t_id_seq", r"\d+ t"])
def test_psql_describes_them_as_in_postgres(databases: Both, schema: str, command: str) -> None:
    def work(engine: sa.Engine) -> str:
        with engine.begin() as connection:
            for statement in (
                "CREATE TABLE t (id serial PRIMARY KEY, name text)",
                "CREATE TABLE i (a int GENERATED ALWAYS AS IDENTITY, b bigint GENERATED BY DEFAULT AS IDENTITY, c int)",
                "CREATE SEQUENCE alone AS smallint INCREMENT -5 MINVALUE -100 CYCLE",
            ):
                connection.exec_driver_sql(statement)
        port = str(engine.url.port)
        shown = subprocess.run(
            ["psql", "-X", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "-c", command],
            env={**os.environ, "PGOPTIONS": f"-c search_path={schema}"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert not shown.stderr
        return shown.stdout

    assert "t" in both(databases, work)
