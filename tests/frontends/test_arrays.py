"""Arrays from and to Python, Arrow and files, kept fresh in views, and found again after reopening."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eddyline


def test_lists_are_parameters_and_results() -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, a int[], b text[], n numeric(6,2)[])")
        db.executemany(
            "INSERT INTO t VALUES ($1, $2, $3, $4)",
            [(1, [1, None], ["x", 'q"', None], [Decimal("1.5")]), (2, [], None, []), (3, [[1, 2], [3, 4]], [""], None)],
        )
        assert db.execute("SELECT a, b, n FROM t WHERE id = 1").fetchall() == [
            ([1, None], ["x", 'q"', None], [Decimal("1.50")])
        ]
        assert db.execute("SELECT id FROM t WHERE id = ANY ($1) ORDER BY 1", [[1, 3]]).fetchall() == [(1,), (3,)]
        assert db.execute("SELECT id FROM t WHERE a = $1", [[[1, 2], [3, 4]]]).fetchall() == [(3,)]
        for bad, state in (([2**40], "22003"), (["x"], "42804"), ([[1], [2, 3]], "2202E"), ("{1,x}", "22P02")):
            with pytest.raises(eddyline.Error) as caught:
                db.execute("SELECT id FROM t WHERE a = $1", [bad])
            assert caught.value.sqlstate == state, bad
        db.execute("SET TimeZone = 'Europe/Berlin'")
        naive = [[datetime.datetime(2024, 1, 1)]]
        with pytest.raises(eddyline.Error, match="without a zone"):
            db.execute("SELECT $1::timestamptz[]", naive)
        texts = db.execute("SELECT ('{2024-01-01}'::timestamptz[])::text, '{2024-01-01}'::timestamptz[]").fetchall()
        assert texts == [('{"2024-01-01 00:00:00+01"}', [datetime.datetime(2023, 12, 31, 23, tzinfo=datetime.UTC)])]
        with pytest.raises(eddyline.Error, match="0x00"):
            db.execute("SELECT id FROM t WHERE b = $1", [["a\x00"]])


def test_arrow_lists_go_in_and_out(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "a": pa.array([[1, None, 3], [], None], pa.list_(pa.int64())),
            "b": pa.array([["x", "é"], [None], []], pa.large_list(pa.string())),
        }
    )
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (id int, a int[], b text[])")
        db.append("t", table.slice(0, 2))
        db.append("t", table.slice(2))
        out = db.execute("SELECT * FROM t ORDER BY id").arrow()
        assert out.to_pydict() == table.to_pydict() and out.schema.field("a").type == pa.large_list(pa.int32())
        assert db.execute("SELECT a FROM t ORDER BY id").df()["a"].iloc[0].tolist()[0] == 1
        assert db.execute("SELECT b FROM t ORDER BY id").pl()["b"].to_list() == [["x", "é"], [None], []]
        path = tmp_path / "t.parquet"
        db.execute(f"COPY (SELECT * FROM t) TO '{path}' (FORMAT parquet)")
        db.append("t", path)
        assert db.execute("SELECT count(*), count(a) FROM t").fetchall() == [(6, 4)]
        for data, state in (
            ({"b": [["a\x00"]]}, "22021"),
            ({"a": [[2**40]]}, "22003"),
            ({"a": [[[1]]]}, "0A000"),
            ({"a": [1]}, "42804"),
        ):
            with pytest.raises(eddyline.Error) as caught:
                db.append("t", data)
            assert caught.value.sqlstate == state, data
        with pytest.raises(eddyline.Error, match="several dimensions"):
            db.execute("SELECT '{{1},{2}}'::int[]").arrow()


def test_views_of_arrays_stay_fresh() -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (g int, x int, tags text[])")
        db.execute("CREATE MATERIALIZED VIEW lists AS SELECT g, array_agg(x ORDER BY x DESC) AS xs FROM t GROUP BY g")
        db.execute("CREATE MATERIALIZED VIEW kinds AS SELECT array_agg(DISTINCT x) FILTER (WHERE x > 1) AS xs FROM t")
        db.execute(
            "CREATE MATERIALIZED VIEW tagged AS SELECT tag, count(*) AS n FROM t, unnest(tags) AS tag GROUP BY tag"
        )
        db.execute("CREATE MATERIALIZED VIEW sets AS SELECT tags, count(*) AS n FROM t GROUP BY tags")
        db.execute("CREATE INDEX by_tags ON sets (tags)")

        def all_of(view: str) -> list[Any]:
            return db.execute(f"SELECT * FROM {view} ORDER BY 1").fetchall()

        db.execute("INSERT INTO t VALUES (1, 1, '{a,b}'), (1, 3, '{b}'), (2, NULL, NULL), (2, 2, '{a,b}')")
        assert all_of("lists") == [(1, [3, 1]), (2, [None, 2])] and all_of("kinds") == [([2, 3],)]
        assert all_of("tagged") == [("a", 2), ("b", 3)]
        assert all_of("sets") == [(["a", "b"], 2), (["b"], 1), (None, 1)]
        db.execute("DELETE FROM t WHERE x = 3")
        db.execute("UPDATE t SET tags = array_append(tags, 'c') WHERE g = 2")
        assert all_of("lists") == [(1, [1]), (2, [None, 2])] and all_of("kinds") == [([2],)]
        assert all_of("tagged") == [("a", 2), ("b", 2), ("c", 2)]
        assert db.execute("SELECT n FROM sets WHERE tags = '{c}'").fetchall() == [(1,)]
        db.execute("DELETE FROM t")
        assert all_of("lists") == [] and all_of("kinds") == [(None,)] and all_of("tagged") == []


def test_arrays_are_found_again(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with eddyline.connect(path) as db:
        db.execute("CREATE TABLE t (k text[] PRIMARY KEY, n numeric(8,2)[] DEFAULT '{1.5}', v varchar(3)[])")
        db.execute("CREATE VIEW w AS SELECT k[1] AS first, cardinality(n) AS many FROM t WHERE k && '{a,z}'")
        db.execute("CREATE INDEX by_n ON t (n)")
        db.execute("INSERT INTO t (k, v) VALUES ('{a,NULL}', '{abc}'), ('{}', NULL), ('{{b,c},{d,e}}', '{}')")
    with eddyline.connect(path) as db:
        rows = [([], [Decimal("1.50")], None), (["a", None], [Decimal("1.50")], ["abc"])]
        rows.append(([["b", "c"], ["d", "e"]], [Decimal("1.50")], []))  # type: ignore[list-item]  # two dimensions
        assert db.execute("SELECT * FROM t ORDER BY k").fetchall() == rows
        assert db.execute("SELECT * FROM w").fetchall() == [("a", 1)]
        with pytest.raises(eddyline.Error) as caught:
            db.execute("INSERT INTO t (k) VALUES (ARRAY['a', NULL])")
        assert caught.value.sqlstate == "23505"
        with pytest.raises(eddyline.Error) as caught:
            db.execute("INSERT INTO t (k, v) VALUES ('{n}', '{long,er}')")
        assert caught.value.sqlstate == "22001"
        assert "numeric(8,2)[]" in str(db.execute("SHOW CREATE TABLE t").fetchall())
