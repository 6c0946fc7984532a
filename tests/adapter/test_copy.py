"""COPY: sources and targets, transactions, parquet, failures."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
        yield connection


def rows(db: eddyline.Connection, query: str = "SELECT * FROM t ORDER BY a") -> list[tuple[object, ...]]:
    return db.execute(query).fetchall()


@pytest.mark.parametrize(
    "source",
    [
        io.StringIO("1\tx\n2\ty\n"),
        io.BytesIO(b"1\tx\n2\ty\n"),
        b"1\tx\n2\ty\n",
        ["1\tx\n2", "\ty\n"],
        (piece for piece in (b"1\t", b"x\n2\ty\n")),
    ],
    ids=["text file", "binary file", "bytes", "list of str", "generator of bytes"],
)
def test_stdin_may_be_a_file_bytes_or_pieces(db: eddyline.Connection, source: object) -> None:
    cursor = db.copy("COPY t FROM STDIN", source)
    assert (cursor.rowcount, cursor.statusmessage) == (2, "COPY 2")
    assert rows(db) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("source", [None, "1\tx\n", 3, [4]])
def test_what_cannot_be_read_is_refused(db: eddyline.Connection, source: object) -> None:
    with pytest.raises(eddyline.InterfaceError):
        db.copy("COPY t FROM STDIN", source)


def test_files_are_read_and_written_by_path(db: eddyline.Connection, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1,x\n2,\n")
    db.execute(f"COPY t FROM '{tmp_path}/in.csv' (FORMAT csv, HEADER)")
    assert db.execute(f"COPY (SELECT * FROM t ORDER BY a) TO '{tmp_path}/out.csv' CSV HEADER").rowcount == 2
    assert (tmp_path / "out.csv").read_text() == "a,b\n1,x\n2,\n"


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("COPY t FROM '{}/none'", "58P01"),
        ("COPY t FROM '{}'", "42809"),
        ("COPY t TO '{}/none/out'", "58P01"),
        ("COPY t TO '{}'", "42809"),
        ("COPY t TO STDOUT", "22023"),
    ],
)
def test_files_that_cannot_be_opened(db: eddyline.Connection, tmp_path: Path, statement: str, sqlstate: str) -> None:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(statement.format(tmp_path))
    assert caught.value.sqlstate == sqlstate


def test_a_failing_query_leaves_the_file_as_it_was(db: eddyline.Connection, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")
    db.execute("INSERT INTO t VALUES (0, 'x')")
    with pytest.raises(eddyline.DataError):
        db.execute(f"COPY (SELECT 1 / a FROM t) TO '{tmp_path}/out'")
    assert (tmp_path / "out").read_text() == "before"


def test_stdout_may_be_a_text_file(db: eddyline.Connection) -> None:
    db.execute("INSERT INTO t VALUES (1, 'é')")
    out = io.StringIO()
    db.copy("COPY t TO STDOUT", out)
    assert out.getvalue() == "1\té\n"


def test_all_rows_come_in_one_commit_or_none(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.DataError) as caught:
        db.copy("COPY t FROM STDIN", [f"{i}\tx\n" for i in range(100_000)] + ["oops\ty\n"])
    assert (caught.value.sqlstate, caught.value.context) == ("22P02", 'COPY t, line 100001, column a: "oops"')
    assert rows(db) == []
    with pytest.raises(eddyline.IntegrityError):
        db.copy("COPY t FROM STDIN", b"1\tx\n1\ty\n")
    assert rows(db) == []
    at = db.copy("COPY t FROM STDIN", b"1\tx\n2\ty\n").time
    assert rows(db, f"SELECT count(*) FROM t AS OF {at}") == [(2,)]


def test_copy_belongs_to_the_open_transaction(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.copy("COPY t FROM STDIN", b"1\tx\n")
    out = io.BytesIO()
    db.copy("COPY t TO STDOUT", out)
    assert out.getvalue() == b"1\tx\n"
    with db.session() as other:
        assert rows(other) == []
    db.rollback()
    assert rows(db) == []


def test_records_longer_than_a_block(db: eddyline.Connection) -> None:
    long = "x" * 5_000_000
    db.copy("COPY t FROM STDIN CSV", [f'1,"{long[:2_500_000]}', f'{long[2_500_000:]}"\n', "2,y\n"])
    assert rows(db, "SELECT a, char_length(b) FROM t ORDER BY a") == [(1, 5_000_000), (2, 1)]


def test_a_failing_source_adds_nothing(db: eddyline.Connection) -> None:
    def pieces() -> Iterator[str]:
        yield "1\tx\n"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        db.copy("COPY t FROM STDIN", pieces())
    assert rows(db) == []


def test_copied_rows_reach_maintained_views(db: eddyline.Connection) -> None:
    db.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    db.execute("CREATE DEFAULT INDEX ON v")
    db.copy("COPY t FROM STDIN", (f"{i}\t{i % 3}\n" for i in range(30_000)))
    assert rows(db, "SELECT * FROM v ORDER BY b") == [("0", 10_000), ("1", 10_000), ("2", 10_000)]


def test_parquet_there_and_back(db: eddyline.Connection) -> None:
    columns = "i int, n numeric(10,2), d date, ts timestamp, tz timestamptz, u uuid, y bytea, v interval, f real"
    columns += ", t time"
    db.execute(f"CREATE TABLE p ({columns})")
    db.execute(f"CREATE TABLE q ({columns})")
    db.execute(
        "INSERT INTO p VALUES (1, 2.50, '2020-02-29', '2020-01-01 01:02:03.000004', '2020-01-01 00:00:00+00',"
        " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff', '1 mon 2 days 03:04:05', 0.5, '23:59:59.999999')"
    )
    db.execute("INSERT INTO p (i) VALUES (NULL)")
    data = io.BytesIO()
    assert db.copy("COPY p TO STDOUT (FORMAT parquet)", data).rowcount == 2
    data.seek(0)
    assert db.copy("COPY q FROM STDIN (FORMAT parquet)", data).rowcount == 2
    [back, empty] = rows(db, "SELECT * FROM q ORDER BY i")
    assert back == rows(db, "SELECT * FROM p ORDER BY i")[0]
    assert back[:3] == (1, Decimal("2.50"), dt.date(2020, 2, 29))
    assert back[5] == uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    assert set(empty) == {None}


def test_parquet_columns_go_by_name(db: eddyline.Connection, tmp_path: Path) -> None:
    pq.write_table(pa.table({"b": ["x"], "a": [1], "c": [2.5]}), tmp_path / "abc.parquet")
    with pytest.raises(eddyline.ProgrammingError) as caught:
        db.execute(f"COPY t FROM '{tmp_path}/abc.parquet' (FORMAT parquet)")
    assert caught.value.sqlstate == "42703"
    db.execute(f"COPY t (a) FROM '{tmp_path}/abc.parquet' (FORMAT parquet)")
    assert rows(db) == [(1, None)]


def test_what_is_not_parquet(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.DataError) as caught:
        db.copy("COPY t FROM STDIN (FORMAT parquet)", b"hello")
    assert caught.value.sqlstate == "22P04"


def test_a_file_in_another_encoding_is_copied_as_python_reads_it(db: eddyline.Connection, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("1,café\n".encode("latin-1"))
    with pytest.raises(eddyline.NotSupportedError) as caught:
        db.execute(f"COPY t FROM '{path}' (FORMAT csv, ENCODING 'latin1')")
    assert caught.value.hint is not None and "opened with its encoding" in caught.value.hint
    with path.open(encoding="latin-1") as file:
        db.copy("COPY t FROM STDIN (FORMAT csv)", file)
    assert rows(db) == [(1, "café")]
