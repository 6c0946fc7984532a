"""Rows that lack a key take the DEFAULT there; files are read as literals are, and errors say where."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.executescript("""
            CREATE TABLE t (id int PRIMARY KEY, name text DEFAULT 'none', n numeric DEFAULT 1.50, a int[] DEFAULT '{7}',
                            at timestamptz DEFAULT now(), u uuid DEFAULT '00000000-0000-0000-0000-000000000001');
            CREATE TABLE d (id int, at date, ts timestamp, x double precision, name text);
        """)
        yield connection


def rows(db: eddyline.Connection, columns: str = "id, name, n, a, at IS NOT NULL, u IS NOT NULL") -> object:
    return db.execute(f"SELECT {columns} FROM t ORDER BY id").fetchall()


FULL = (1, "x", Decimal("2.25"), [1, 2], True, True)


def test_rows_that_lack_a_key_take_its_default_and_null_stays_null(db: eddyline.Connection) -> None:
    now, u = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "00000000-0000-0000-0000-000000000002"
    db.append(
        "t",
        [
            {"id": 1, "name": "x", "n": Decimal("2.25"), "a": [1, 2], "at": now, "u": u},
            {"id": 2},
            {"id": 3, "name": None, "n": None, "a": None, "at": None, "u": None},
            {"id": 4, "name": "y"},
        ],
    )
    default = (Decimal("1.50"), [7], True, True)
    assert rows(db) == [FULL, (2, "none", *default), (3, None, None, None, False, False), (4, "y", *default)]


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1, "name": "x"}\n{"id": 2}\n{"id": 3, "name": null}\n',
        '{"id": 1, "name": "x"}\n\n{"id": 2}{"id": 3, "name" : null}',
        '\ufeff{"id": 1, "na\\u006de": "x"}\n{"id": 2, "a": null}\r\n{"id": 3, "n\\u0061me": null}\n',
        '{"id": 1, "name": "x"}\n{"id": 2, "n": 5}\n{"id": 3, "name": null, "n": "6"}\n',
        '{"id": 3, "name":null}\n{"id": 2}\n{"id": 1, "name": "x"}\n',
    ],
    ids=["plain", "several a line", "escapes", "mixed types", "other order"],
)
def test_lines_that_lack_a_key_take_its_default_too(db: eddyline.Connection, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    db.append("t", tmp_path / "a.jsonl")
    assert rows(db, "id, name") == [(1, "x"), (2, "none"), (3, None)]


def test_a_key_that_is_only_a_value_or_inside_of_one_is_not_given(db: eddyline.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE k (id int, v text, name text DEFAULT 'none')")
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "v": "name"}\n{"id": 2, "v": "\\"name\\": 1"}\n{"id": 3, "name": null}\n'
    )
    db.append("k", tmp_path / "a.jsonl")
    found = db.execute("SELECT * FROM k ORDER BY id").fetchall()
    assert found == [(1, "name", "none"), (2, '"name": 1', "none"), (3, None, None)]


def test_keys_may_have_any_letters(db: eddyline.Connection, tmp_path: Path) -> None:
    db.execute("""CREATE TABLE k (id int, "größe (cm)" text DEFAULT 'none')""")
    text = (
        '{"id": 1, "größe (cm)": null}\n{"id": 2}\n{"id": 3, "gr\\u00f6ße (cm)": null}\n{"id": 4, "größe (cm)": "x"}\n'
    )
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    db.append("k", tmp_path / "a.jsonl")
    assert db.execute("SELECT * FROM k ORDER BY id").fetchall() == [(1, None), (2, "none"), (3, None), (4, "x")]


def test_what_is_not_utf_8_is_told_beside_defaults_too(db: eddyline.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE k (a text DEFAULT 'none', b text)")
    (tmp_path / "a.jsonl").write_bytes(b'{"b": "x"}\n{"b": "{\xe9"}\n{"a": "y", "b": "z"}\n')
    with pytest.raises(eddyline.DataError) as caught:
        db.append("k", tmp_path / "a.jsonl")
    assert caught.value.sqlstate == "22021" and 'column "b", line 2 of' in str(caught.value.detail)


def test_the_place_of_a_row_is_told_as_well_as_can_be(db: eddyline.Connection, tmp_path: Path) -> None:
    wide = "x" * 200_000  # more than Python's reader takes
    (tmp_path / "a.csv").write_text(f"id,name,at\n1,{wide},2026-01-05\n2,x,soon\n")
    with pytest.raises(eddyline.DataError) as caught:
        db.append("d", tmp_path / "a.csv")
    assert 'column "at", row 2 of' in str(caught.value.detail)


def test_upserted_rows_that_lack_a_key_take_its_default(db: eddyline.Connection) -> None:
    db.append("t", [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}])
    db.upsert("t", [{"id": 1}, {"id": 2, "name": None}])
    assert rows(db, "id, name") == [(1, "none"), (2, None)]


DATES = ["2026-01-05", "2026-1-5", "01/05/2026", "1/5/2026", "20260105", "January 5, 2026", "5 Jan 2026", "2026.005"]


@pytest.mark.parametrize("text", DATES)
def test_csv_takes_the_dates_that_literals_take(db: eddyline.Connection, tmp_path: Path, text: str) -> None:
    (literal,) = db.execute(f"SELECT date '{text}', timestamp '{text} 4:05'").fetchall()
    (tmp_path / "a.csv").write_text(f'id,at,ts,x,name\n1,"{text}","{text} 4:05", 1.5 ,"{text}"\n')
    db.append("d", tmp_path / "a.csv")
    assert db.execute("SELECT at, ts, x, name FROM d").fetchall() == [(*literal, 1.5, text)]
    (tmp_path / "a.jsonl").write_text(f'{{"id": 2, "at": "{text}", "ts": "{text} 4:05", "name": "{text}"}}\n')
    db.append("d", tmp_path / "a.jsonl")
    assert db.execute("SELECT at, ts, name FROM d WHERE id = 2").fetchall() == [(*literal, text)]


@pytest.mark.parametrize(
    ("name", "content", "sqlstate", "said"),
    [
        ("a.csv", 'id,at\n1,2026-01-05\n\n2,"\n"\n3,soon\n', "22007", 'column "at", line 5 of'),
        ("a.csv", "id,at\n1,2026-01-05\n2,2026-02-30\n", "22008", 'column "at", line 3 of'),
        ("a.csv", "id,at\n1,2026-01-05\none,2026-01-05\n", "22P02", 'column "id", line 3 of'),
        ("a.csv", "id,at\n3000000000,2026-01-05\n", "22003", 'column "id", line 2 of'),
        ("a.csv", b"id,name\n1,x\n2,\xe9\n", "22P02", "line 3 is not UTF-8"),
        ("a.jsonl", '{"id": 1}\n\n{"id": 2, "at": "soon"}\n', "22007", 'column "at", line 3 of'),
        ("a.jsonl", '{"id": 1}\n{"id": "x"}\n', "22P02", 'column "id", line 2 of'),
        ("a.jsonl", '{"id": 1}\n{"id": }\n', "22P02", "line 2: "),
        ("a.jsonl", '{"id": 1}\n[2]\n', "42804", "row 2 is a list"),
        ("a.jsonl", b'{"id": 1}\n{"name": "\xe9"}\n', "22021", 'column "name", line 2 of'),
    ],
)
def test_errors_say_where_they_are(
    db: eddyline.Connection, tmp_path: Path, name: str, content: str | bytes, sqlstate: str, said: str
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(eddyline.Error) as caught:
        db.append("d", tmp_path / name)
    assert caught.value.sqlstate == sqlstate
    assert said in f"{caught.value.message} {caught.value.detail}"
    if sqlstate != "42804":
        assert name in f"{caught.value.message} {caught.value.detail}"


def test_rows_are_counted_from_one(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.DataError) as caught:
        db.append("d", [{"id": 1, "at": "2026-01-05"}, {"id": 2, "at": "soon"}])
    assert caught.value.detail == 'column "at", row 2'
