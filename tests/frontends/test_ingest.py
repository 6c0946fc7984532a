"""append, upsert and delete: every kind of data, and every kind of bad data."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, name text DEFAULT 'none', at date)")
        connection.execute("CREATE TABLE bag (a int, b text)")
        yield connection


def rows(db: eddyline.Connection, table: str = "t") -> list[tuple[Any, ...]]:
    return sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


DAY = dt.date(2020, 2, 29)
TABLE = pa.table({"id": [1, 2], "name": ["x", None], "at": [DAY, None]})


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
        TABLE.select(["at", "id", "name"]),
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        TABLE.to_pylist(),
        iter(TABLE.to_pylist()),
        TABLE.to_pydict(),
        {"id": np.array([1, 2]), "name": pa.array(["x", None]), "at": [DAY, None]},
        [{"id": 1, "name": "x", "at": DAY}, {"id": 2, "name": None}],
        ({"id": "1", "name": "x", "at": "2020-02-29"}, {"id": "2", "name": None, "at": None}),
    ],
    ids=[
        "table", "batch", "reader", "chunks", "other order", "pandas", "Polars", "dicts", "iterator", "dict",
        "mixed dict", "ragged dicts", "text",
    ],
)  # fmt: skip
def test_every_kind_of_data(db: eddyline.Connection, data: object) -> None:
    db.append("t", data)
    assert rows(db) == [(1, "x", DAY), (2, None, None)]


def test_files(db: eddyline.Connection, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name,at\n1,"x, y",2020-02-29\n2,,\n3,"",\n')
    pq.write_table(pa.table({"id": [4], "name": ["p"]}), tmp_path / "b.parquet")
    (tmp_path / "c.jsonl").write_text('{"id": 5, "name": "j", "at": "2020-02-29"}\n{"id": 6}\n')
    for name in ("a.csv", "b.parquet", "c.jsonl"):
        db.append("t", tmp_path / name)
    assert rows(db) == [
        (1, "x, y", DAY),
        (2, None, None),
        (3, "", None),
        (4, "p", None),
        (5, "j", DAY),
        (6, "none", None),
    ]


def test_missing_columns_take_their_default(db: eddyline.Connection) -> None:
    db.append("t", [{"id": 1}, {"id": 2}])
    assert rows(db) == [(1, "none", None), (2, "none", None)]


def test_append_returns_its_time_and_is_read_by_the_next_statement(db: eddyline.Connection) -> None:
    first = db.append("t", [{"id": 1}])
    second = db.append("t", [{"id": 2}])
    assert first < second
    assert db.execute(f"SELECT count(*) FROM t AS OF {first}").fetchall() == [(1,)]
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize("data", [[], {}, {"id": []}, TABLE.slice(0, 0), pd.DataFrame({"id": []}), ()])
def test_no_rows_at_all(db: eddyline.Connection, data: object) -> None:
    db.append("t", data)
    assert rows(db) == []


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        ([{"id": 1, "nme": "x"}], "42703"),
        (pa.table([pa.array([1]), pa.array([2])], names=["id", "id"]), "42701"),
        ({"id": [1, 2], "name": ["x"]}, "22000"),
        ([{"id": "one"}], "22P02"),
        ([{"id": 2**40}], "22003"),
        ([{"id": 2**80}], "22003"),
        ([{"id": True}], "42804"),
        ([{"id": [1]}], "42804"),
        ([{"id": {"a": 1}}], "42804"),
        ([{"id": dt.date(2020, 1, 1)}], "42804"),
        ([{"id": b"1"}], "42804"),
        ([{"id": 1, "at": "2020-02-30"}], "22008"),
        ([{"id": 1, "at": 7}], "42804"),
        ([{"id": 1, "name": "a\x00b"}], "22021"),
        ([{"id": 1, "name": "\ud800"}], "22021"),
        (pa.table({"id": pa.array([1]), "name": pa.array([b"\xff"]).view(pa.string())}), "22021"),
        ([{"id": None}], "23502"),
        ([{"name": "x"}], "23502"),
        ([{"id": 1}, {"id": 1}], "23505"),
        ([{"id": float("nan")}], "22003"),
    ],
)
def test_bad_data_is_refused_whole(db: eddyline.Connection, data: object, sqlstate: str) -> None:
    with pytest.raises(eddyline.Error) as caught:
        db.append("t", data)
    assert caught.value.sqlstate == sqlstate
    assert rows(db) == []
    db.append("t", [{"id": 1}])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("values", [["é", "x\u2028", "日本"], ["a", "", "b c"], ["", "", ""], ["a", None, "ü"]])
def test_a_slice_of_texts_is_what_its_rows_are(
    db: eddyline.Connection, kind: pa.DataType, values: list[str | None]
) -> None:
    """Whatever stands around it in the same memory, and wherever it begins."""
    around: list[str | None] = ["before\x00", None, "naïve", "plain"]
    for first in range(len(around) + 1):
        column = pa.array([*around[:first], *values, "after\x00", None], kind)
        db.append("bag", pa.table({"a": [first] * 3, "b": column.slice(first, 3)}))
        found = db.execute("SELECT b FROM bag WHERE a = $1", (first,)).fetchall()
        assert sorted(map(repr, found)) == sorted(repr((v,)) for v in values)


@pytest.mark.parametrize("bad", ["\x00", "a\x00", "ü\x00", b"\xff", b"a\xc3"])
@pytest.mark.parametrize("place", range(3))
def test_a_bad_text_in_a_slice_is_refused(db: eddyline.Connection, bad: str | bytes, place: int) -> None:
    values = [b"before", b"one", b"two", b"three", b"\xa9 after"]
    values[1 + place] = bad if isinstance(bad, bytes) else bad.encode()
    column = pa.array(values, pa.binary()).view(pa.string()).slice(1, 3)
    with pytest.raises(eddyline.Error) as caught:
        db.append("bag", pa.table({"b": column}))
    assert caught.value.sqlstate == "22021"
    assert rows(db, "bag") == []


@pytest.mark.parametrize(
    "data", [3, None, object(), [1], [[1, 2]], "nothing.xyz", {1: [2]}, {"id": 3}, {"id": "abc"}, b"id"]
)
def test_what_is_no_data_is_an_interface_error(
    db: eddyline.Connection, data: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing.xyz").touch()
    with pytest.raises(eddyline.InterfaceError) as caught:
        db.append("t", data)
    # 08003 would say that there is no connection.
    assert caught.value.sqlstate in ("42804", "42602", "22023")


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        ([(1, "x")], "executemany"),
        ({"id": 3}, "single row"),
        (pl.LazyFrame({"id": [1]}), "collect"),
        (pl.Series("id", [1]), "frame"),
    ],
)
def test_what_is_nearly_data_is_told_how(db: eddyline.Connection, data: object, hint: str) -> None:
    with pytest.raises(eddyline.InterfaceError) as caught:
        db.append("t", data)
    assert caught.value.hint is not None
    assert hint in caught.value.hint


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["x", "y"]), pl.String], ids=str)
def test_texts_of_polars_in_each_form(db: eddyline.Connection, kind: pl.DataType) -> None:
    db.append("t", pl.DataFrame({"id": [1, 2, 3], "name": pl.Series(["y", None, "x"], dtype=kind)}))
    assert rows(db) == [(1, "y", None), (2, None, None), (3, "x", None)]


@pytest.mark.parametrize(
    ("name", "content", "sqlstate"),
    [
        ("none.csv", None, "58P01"),
        ("ragged.csv", b"id,name\n1,x\n2\n", "22P02"),
        ("latin.csv", b"id,name\n1,\xe9\n", "22P02"),
        ("words.csv", b"id,name\none,x\n", "22P02"),
        ("not.parquet", b"hello", "22P02"),
        ("bad.jsonl", b'{"id": ', "22P02"),
        ("other.csv", b"id,nme\n1,x\n", "42703"),
    ],
)
def test_malformed_files(
    db: eddyline.Connection, tmp_path: Path, name: str, content: bytes | None, sqlstate: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(eddyline.Error) as caught:
        db.append("t", tmp_path / name)
    assert caught.value.sqlstate == sqlstate
    assert rows(db) == []


def test_unknown_tables_and_views(db: eddyline.Connection) -> None:
    db.execute("CREATE VIEW v AS SELECT * FROM bag")
    for name, sqlstate in (("nowhere", "42P01"), ("v", "42809"), ("other.t", "42P01")):
        with pytest.raises(eddyline.ProgrammingError) as caught:
            db.append(name, [{"a": 1}])
        assert caught.value.sqlstate == sqlstate
    db.append("public.bag", [{"a": 1}])


@pytest.mark.parametrize("rows", [1, 2, 5000])
@pytest.mark.parametrize("call", ["append", "upsert", "delete"])
def test_arrays_changed_before_a_commit_do_not_matter(db: eddyline.Connection, call: str, rows: int) -> None:
    db.execute("CREATE TABLE keyed (n bigint PRIMARY KEY)")
    original = list(range(rows))
    if call == "delete":
        db.append("keyed", {"n": original})
    values = np.arange(rows)
    db.execute("BEGIN")
    getattr(db, call)("keyed", pa.table({"n": pa.array(values)}))
    values[:] = 7_000
    db.execute("COMMIT")
    found = sorted(n for (n,) in db.execute("SELECT n FROM keyed").fetchall())
    assert found == ([] if call == "delete" else original)


def test_arrays_changed_after_append_do_not_matter(db: eddyline.Connection) -> None:
    array = np.arange(5, dtype=np.int32)
    frame = pd.DataFrame({"a": np.arange(5, 10, dtype=np.int32)})
    db.append("bag", {"a": array})
    db.append("bag", frame)
    db.append("bag", pa.table({"a": pa.array(array)}))
    array[:] = -1
    frame.loc[:, "a"] = -1
    assert sorted(a for a, _ in db.execute("SELECT * FROM bag")) == sorted([*range(5), *range(5, 10), *range(5)])


def test_nan_is_null_to_pandas_only(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE f (x double precision)")
    db.append("f", pd.DataFrame({"x": [1.0, float("nan")]}))
    db.append("f", pl.DataFrame({"x": [float("nan")]}))
    assert list(map(repr, (x for (x,) in db.execute("SELECT x FROM f ORDER BY x")))) == ["1.0", "nan", "None"]


def test_upsert_replaces_by_key(db: eddyline.Connection) -> None:
    db.append("t", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    db.upsert("t", [{"id": 2, "name": "c"}, {"id": 3, "name": "d"}])
    assert rows(db) == [(1, "a", None), (2, "c", None), (3, "d", None)]


@pytest.mark.parametrize(
    ("table", "data", "sqlstate"), [("bag", [{"a": 1}], "42P10"), ("t", [{"id": 1}, {"id": 1}], "21000")]
)
def test_upserts_that_make_no_sense(db: eddyline.Connection, table: str, data: object, sqlstate: str) -> None:
    with pytest.raises(eddyline.Error) as caught:
        db.upsert(table, data)
    assert caught.value.sqlstate == sqlstate
    assert rows(db, table) == []


def test_delete_by_key_ignores_other_columns(db: eddyline.Connection) -> None:
    db.append("t", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    db.delete("t", [{"id": 1, "name": "whatever"}])
    assert rows(db) == [(2, "b", None)]


def test_delete_without_a_key_takes_whole_rows_once_each(db: eddyline.Connection) -> None:
    db.append("bag", [{"a": 1, "b": "x"}, {"a": 1, "b": "x"}, {"a": 2, "b": None}])
    db.delete("bag", [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    assert rows(db, "bag") == [(1, "x")]


@pytest.mark.parametrize(
    ("table", "data", "sqlstate"),
    [
        ("t", [{"id": 1}, {"id": 9}], "22023"),
        ("t", [{"id": 1}, {"id": 1}], "22023"),
        ("t", [{"name": "a"}], "42703"),
        ("bag", [{"a": 1, "b": "y"}], "22023"),
        ("bag", [{"a": 1, "b": "x"}, {"a": 1, "b": "x"}], "22023"),
        ("bag", [{"a": 1}], "42703"),
    ],
)
def test_deleting_what_is_not_there_removes_nothing(
    db: eddyline.Connection, table: str, data: object, sqlstate: str
) -> None:
    db.append("t", [{"id": 1, "name": "a"}])
    db.append("bag", [{"a": 1, "b": "x"}])
    with pytest.raises(eddyline.Error) as caught:
        db.delete(table, data)
    assert caught.value.sqlstate == sqlstate
    assert rows(db, table) == [(1, "a", None)] if table == "t" else [(1, "x")]


def test_wide_and_large_values(db: eddyline.Connection) -> None:
    width = 1600
    db.execute(f"CREATE TABLE wide ({', '.join(f'c{i} int' for i in range(width))})")
    db.append("wide", {f"c{i}": [i, None] for i in range(width)})
    assert db.execute("SELECT c0, c1599 FROM wide WHERE c7 IS NOT NULL").fetchall() == [(0, 1599)]
    big = "x" * 10_000_000
    db.append("bag", [{"a": 1, "b": big}])
    assert db.execute("SELECT b FROM bag").fetchone() == (big,)
    with pytest.raises(eddyline.Error):
        db.execute(f"CREATE TABLE wider ({', '.join(f'c{i} int' for i in range(width + 1))})")


def test_many_threads_append_to_one_database(db: eddyline.Connection) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with db.session() as session:
                session.append("bag", [{"a": number, "b": str(k)} for k in range(20)])
                assert (session.execute("SELECT count(*) FROM bag WHERE a = $1", [number]).fetchone()) == (20,)
                session.execute("DELETE FROM bag WHERE a = $1 AND b = '0'", [number])
        except BaseException as failure:  # noqa: BLE001 - reported by the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert db.execute("SELECT count(*), count(DISTINCT a) FROM bag").fetchall() == [(64 * 19, 64)]


def test_rows_without_columns_are_rows_of_defaults(db: eddyline.Connection) -> None:
    db.executescript("CREATE TABLE d (a int DEFAULT 5); CREATE TABLE k (id int PRIMARY KEY); CREATE TABLE z ()")
    db.append("d", [{}])
    db.append("d", [{}, {}])
    assert db.execute("SELECT * FROM d").fetchall() == [(5,)] * 3
    with pytest.raises(eddyline.IntegrityError) as caught:
        db.append("k", [{}])
    assert caught.value.sqlstate == "23502"
    db.append("z", [{}, {}])
    assert db.execute("SELECT count(*) FROM z").fetchall() == [(2,)]
    db.append("d", [])
    assert db.execute("SELECT count(*) FROM d").fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        (lambda db: db.append("t", [{1: 2}]), "42602"),
        (lambda db: db.append(None, []), "42602"),
        (lambda db: db.wait_hydrated(None), "42602"),
        (lambda db: db.subscribe(None), "42602"),
        (lambda db: db.append("t", [{"id": 1}], timeout="x"), "22023"),
        (lambda db: db.append("t", [{"id": 1}], timeout=-1), "22023"),
        (lambda db: db.wait_hydrated("t", timeout=float("nan")), "22023"),
        (lambda db: db.subscribe("t", as_of="x"), "22023"),
        (lambda db: db.subscribe("t", up_to=1.5), "22023"),
        (lambda db: db.execute("SELECT $1::int", ["\ud800"]), "22021"),
        (lambda db: eddyline.connect(workers=10**6), "22023"),
        (lambda db: eddyline.connect(processes=-1), "22023"),
        (lambda db: eddyline.connect(memory_limit="many"), "22023"),
    ],
)
def test_arguments_that_make_no_sense_are_typed_errors(
    db: eddyline.Connection, call: Callable[[eddyline.Connection], object], sqlstate: str
) -> None:
    with pytest.raises(eddyline.Error) as caught:
        call(db)
    assert caught.value.sqlstate == sqlstate


@pytest.fixture
def wide() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute(
            "CREATE TABLE w (i int, n numeric(10,2), m numeric, s text, d date, ts timestamp, iv interval, ar int[], "
            "f float8)"
        )
        yield connection


@pytest.mark.parametrize("many", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize(
    ("column", "value", "sqlstate"),
    [
        ("n", Decimal("Infinity"), "0A000"),
        ("m", Decimal("-Infinity"), "0A000"),
        ("n", Decimal("sNaN"), "22P02"),
        ("m", True, "42804"),
        ("f", 1j, "42804"),
        ("s", object(), "42804"),
        ("s", {1, 2}, "42804"),
        ("ar", pd.Series([1, 2]), "42804"),
        ("iv", np.timedelta64(2**62, "s"), "22008"),
        ("i", pd.Series([1]), "42804"),
    ],
)
def test_values_that_are_no_data_are_refused_by_name(
    wide: eddyline.Connection, column: str, value: Any, sqlstate: str, many: bool
) -> None:
    data = [{column: value}, {column: None}] if many else [{column: value}]
    if isinstance(value, set | np.timedelta64 | bool) and many:
        data = [{column: value}, {column: value}]
    with pytest.raises(eddyline.Error) as caught:
        wide.append("w", data)
    assert caught.value.sqlstate == sqlstate
    assert wide.execute("SELECT count(*) FROM w").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("column", "missing"),
    [
        *((column, pd.NaT) for column in ("d", "ts", "iv", "s")),
        *((column, np.datetime64("NaT", "us")) for column in ("d", "ts", "s")),
        ("iv", np.timedelta64("NaT", "us")),
    ],
)
def test_not_a_time_is_null(wide: eddyline.Connection, column: str, missing: Any) -> None:
    wide.append("w", [{column: missing}, {column: None}])
    assert wide.execute(f"SELECT {column} FROM w").fetchall() == [(None,), (None,)]


def test_numpys_times_are_read(wide: eddyline.Connection) -> None:
    wide.append("w", [{"d": np.datetime64("2024-02-29"), "ts": np.datetime64("2024-02-29T01:02:03.5")}])
    found = wide.execute("SELECT d, ts FROM w").fetchall()
    assert found == [(dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 500_000))]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (pd.DataFrame({"i": [5, 6, 7]}).query("i > 5"), [(6, None), (7, None)]),
        (pd.DataFrame({"i": [5, 6]}, index=["x", "y"]), [(5, None), (6, None)]),
        (pd.DataFrame({"i": [5, 6], "s": ["x", "y"]}).set_index("s"), [(5, "x"), (6, "y")]),
        (pd.DataFrame({"s": ["x", "y"]}, index=pd.RangeIndex(5, 7, name="i")), [(5, "x"), (6, "y")]),
        (pd.DataFrame({"f": [0.5]}, index=pd.MultiIndex.from_tuples([(5, "x")], names=["i", "s"])), [(5, "x")]),
        (pd.DataFrame({"i": [5, 6], "s": ["x", 7]}), [(5, "x"), (6, "7")]),
        (pd.DataFrame({"i": [5, 6], "s": pd.Series(["x", np.nan], dtype=object)}), [(5, "x"), (6, None)]),
        (pd.DataFrame({"i": [5, 6], "s": pd.Series([7, pd.NA, "x"][1:], dtype=object)}), [(5, None), (6, "x")]),
        (pd.DataFrame({"i": [1.0, np.nan]}), [(1, None), (None, None)]),
    ],
    ids=[
        "filtered", "labels", "named index", "named range", "levels", "mixed", "nan in objects", "NA in objects", "nan"
    ],
)  # fmt: skip
def test_frames_of_pandas_as_they_come(
    wide: eddyline.Connection, frame: pd.DataFrame, expected: list[tuple[Any, ...]]
) -> None:
    wide.append("w", frame)
    assert sorted(wide.execute("SELECT i, s FROM w").fetchall(), key=repr) == expected


@pytest.mark.parametrize(
    ("frame", "sqlstate"),
    [
        (pd.DataFrame([[1, 2]], columns=["i", "i"]), "42701"),
        (pd.DataFrame({"i": [1], "j": [2]}).set_index("i", drop=False).drop(columns="j"), "42701"),
        (pd.DataFrame({"f": [1j]}), "42804"),
        (pd.DataFrame({"n": [Decimal("Infinity")]}), "0A000"),
        (pl.DataFrame({"s": [object()]}, schema={"s": pl.Object}), "42804"),
        (pl.DataFrame({"i": [1]}, schema={"i": pl.Int128}), "42804"),
    ],
)
def test_frames_that_cannot_be_read_are_refused(wide: eddyline.Connection, frame: object, sqlstate: str) -> None:
    with pytest.raises(eddyline.Error) as caught:
        wide.append("w", frame)
    assert caught.value.sqlstate == sqlstate
    assert wide.execute("SELECT count(*) FROM w").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("column", "array"),
    [
        ("i", pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([3, None]))),
        ("s", pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["x", None]))),
        ("ar", pa.array([[1, 2], None], pa.list_view(pa.int64()))),
        ("ar", pa.array([[1, 2], None], pa.large_list_view(pa.int16()))),
    ],
)
def test_layouts_of_arrow_that_few_use(wide: eddyline.Connection, column: str, array: pa.Array) -> None:
    wide.append("w", pa.table({column: array}))
    expected: list[Any] = array.to_pylist()
    found = [v for (v,) in wide.execute(f"SELECT {column} FROM w").fetchall()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
