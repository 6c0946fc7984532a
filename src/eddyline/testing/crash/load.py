"""What writers do to a database that is about to be killed, and what must be there afterwards.

Each writer numbers its transactions from 1.  A transaction adds to several tables and takes away from one, all or
nothing, and is acknowledged by a line ``writer number`` that leaves the process at once.  Each content follows from the
number of the writer's last transaction alone, so that it can be checked without having been there.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from typing import TypeVar

from eddyline.errors import OperationalError
from eddyline.frontends.connection import Connection

__all__ = ["WRITERS", "check", "newest", "prepare", "write_for_ever"]

_Found = TypeVar("_Found")
WRITERS = 3
#: transactions after which a writer's rows in ``recent`` go
_KEPT = 10
_OF_WRITER = """
CREATE TABLE IF NOT EXISTS recent_{0} (number int, value bigint, filler text);
CREATE TABLE IF NOT EXISTS newest_{0} (number int PRIMARY KEY);
"""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS done (writer int, number int, PRIMARY KEY (writer, number));
CREATE TABLE IF NOT EXISTS numbered (id bigserial PRIMARY KEY, writer int, number int);
CREATE MATERIALIZED VIEW IF NOT EXISTS sums AS
    SELECT writer, count(*) AS rows, sum(value) AS total FROM recent GROUP BY writer;
CREATE INDEX IF NOT EXISTS sums_by_writer ON sums (writer);
CREATE INDEX IF NOT EXISTS done_by_writer ON done (writer);
"""


def prepare(db: Connection) -> None:
    """Makes the tables and views, those that are not there."""
    tables = "".join(_OF_WRITER.format(writer) for writer in range(WRITERS))
    if db.execute("SELECT 1 FROM mz_catalog.mz_tables WHERE name = 'done'").fetchone() is None:
        recent = " UNION ALL ".join(f"SELECT {w} AS writer, number, value FROM recent_{w}" for w in range(WRITERS))
        db.executescript(f"{tables} CREATE OR REPLACE VIEW recent AS {recent};")
    db.executescript(_SCHEMA)


def _rows_of(writer: int, number: int) -> int:
    return 1 + (writer * 7 + number * 5) % 9


def write_for_ever(db: Connection, seed: int, acknowledge: int, *, synchronous: bool) -> None:
    """Runs the writers until the process ends; ``acknowledge``: where the lines go."""
    threads = [
        threading.Thread(target=_write, args=(db.session(), writer, seed, acknowledge, synchronous), daemon=True)
        for writer in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write(db: Connection, writer: int, seed: int, acknowledge: int, synchronous: bool) -> None:
    rng = random.Random(seed * WRITERS + writer)
    if not synchronous:
        db.execute("SET synchronous_commit = off")
    number = _again(lambda: _newest(db, writer))
    while True:
        number += 1
        filler = rng.choice((1, 40))
        _again(lambda: _transaction(db, writer, number, filler))  # noqa: B023 - it is called here and now
        os.write(acknowledge, f"{writer} {number}\n".encode("ascii"))
        if number % 4 == 0:
            _again(lambda: _define(db, writer, number))  # noqa: B023 - likewise
            os.write(acknowledge, f"{writer} {number} defined\n".encode("ascii"))


def _again(what: Callable[[], _Found]) -> _Found:
    """Until no replica is lost meanwhile: the transaction then failed before it was committed."""
    while True:
        try:
            return what()
        except OperationalError as error:
            if error.sqlstate != "58000":
                raise


def _transaction(db: Connection, writer: int, number: int, filler: int) -> None:
    with db.transaction():
        _statements(db, writer, number, filler)


def _statements(db: Connection, writer: int, number: int, filler: int) -> None:
    db.execute("INSERT INTO done VALUES (?, ?)", (writer, number))
    db.execute("INSERT INTO numbered (writer, number) VALUES (?, ?), (?, ?)", (writer, number, writer, number))
    db.execute(
        f"INSERT INTO recent_{writer} SELECT ?::int, ?::bigint * i, ? FROM generate_series(1, ?::int) AS g (i)",
        (number, number, "x" * filler, _rows_of(writer, number)),
    )
    if number > _KEPT:
        db.execute(f"DELETE FROM recent_{writer} WHERE number = ?", (number - _KEPT,))
    db.execute(f"DELETE FROM newest_{writer}")
    db.execute(f"INSERT INTO newest_{writer} VALUES (?)", (number,))


def _define(db: Connection, writer: int, number: int) -> None:
    """A table of the writer's own, with its view, in place of the one before."""
    with db.transaction():
        db.execute(f"DROP TABLE IF EXISTS own_{writer} CASCADE")
        db.execute(f"CREATE TABLE own_{writer} AS SELECT {number} AS number")
        db.execute(f"CREATE VIEW seen_{writer} AS SELECT number FROM own_{writer}")


def _newest(db: Connection, writer: int) -> int:
    found = db.execute(f"SELECT number FROM newest_{writer}").fetchone()
    return 0 if found is None else int(found[0])


def newest(db: Connection) -> dict[int, int]:
    """By writer, its last transaction that is there."""
    return {writer: _newest(db, writer) for writer in range(WRITERS)}


def check(db: Connection, acknowledged: dict[int, int], defined: dict[int, int], *, synchronous: bool) -> list[str]:
    """What is wrong with the database, in words; nothing if it is as it should be.

    ``acknowledged``: by writer, the last transaction that it was told of; ``defined``: the last table of its own.
    """
    wrong: list[str] = []

    def expect(what: str, found: object, expected: object) -> None:
        if found != expected:
            wrong.append(f"{what}: found {found}, not {expected}")

    for writer in range(WRITERS):
        number, told = _newest(db, writer), acknowledged.get(writer, 0)
        if synchronous and not told <= number <= told + 1:
            wrong.append(f"writer {writer}: {told} was acknowledged, {number} is there")
        _check_writer(db, writer, number, expect)
        own = db.execute("SELECT count(*) FROM mz_catalog.mz_tables WHERE name = ?", (f"own_{writer}",)).fetchone()
        if own == (1,):
            seen = db.execute(f"SELECT number FROM seen_{writer}").fetchall()
            possible = [[(n,)] for n in range(max(1, defined.get(writer, 0) if synchronous else 1), number + 1)]
            if seen not in possible:
                wrong.append(f"writer {writer}: its own table has {seen}; {defined.get(writer)} was acknowledged")
        elif synchronous and writer in defined:
            wrong.append(f"writer {writer}: table {defined[writer]} was acknowledged and is not there")
    last = db.execute("SELECT coalesce(max(id), 0) FROM numbered").fetchall()[0][0]
    following = db.execute("SELECT nextval('numbered_id_seq')").fetchall()[0][0]
    if following <= last:
        wrong.append(f"the sequence gives {following} again: {last} is there")
    kept = "SELECT writer, count(*), sum(value) FROM recent GROUP BY writer ORDER BY writer"
    direct = db.execute(kept).fetchall()
    expect("sums", db.execute("SELECT writer, rows, total FROM sums ORDER BY writer").fetchall(), direct)
    for row in direct:
        expect("a sum by its index", db.execute("SELECT * FROM sums WHERE writer = ?", (row[0],)).fetchall(), [row])
    return wrong


def _check_writer(db: Connection, writer: int, number: int, expect: Callable[[str, object, object], None]) -> None:
    """That the first ``number`` transactions are there whole, and nothing else."""
    query = "SELECT count(*), coalesce(max(number), 0) FROM done WHERE writer = ?"
    expect(f"writer {writer}, done", db.execute(query, (writer,)).fetchone(), (number, number))
    query = "SELECT count(*), count(DISTINCT number) FROM numbered WHERE writer = ?"
    expect(f"writer {writer}, numbered", db.execute(query, (writer,)).fetchone(), (2 * number, number))
    query = "SELECT number, count(*), sum(value) FROM recent WHERE writer = ? GROUP BY number ORDER BY number"
    found = [(int(n), int(rows), int(total)) for n, rows, total in db.execute(query, (writer,)).fetchall()]
    expected = []
    for n in range(max(1, number - _KEPT + 1), number + 1):
        rows = _rows_of(writer, n)
        expected.append((n, rows, n * rows * (rows + 1) // 2))
    expect(f"writer {writer}, recent", found, expected)
