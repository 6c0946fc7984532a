"""Texts that differ by literals alone say what each of them says when it is bound by itself.

Two databases get the same statements in the same order; one of them shares nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import eddyline
from eddyline.adapter import session as session_module
from eddyline.adapter import shared_texts

SEEDS = 2
_TABLES = """
CREATE TABLE t (
    k bigint PRIMARY KEY, s smallint, i int, n numeric(6,2), m numeric, d double precision, r real, x text,
    v varchar(3), c char(3), da date, ts timestamp, tz timestamptz, iv interval, u uuid, b boolean
);
CREATE TABLE a (aid int PRIMARY KEY, bal int NOT NULL DEFAULT 7, name text);
CREATE TABLE bag (i int, x text);
CREATE INDEX bag_i ON bag (i);
CREATE VIEW w AS SELECT bal, count(*) AS c FROM a GROUP BY bal;
CREATE INDEX w_bal ON w (bal);
"""
_NUMBERS = [
    "0", "1", "2", "3", "7", "-1", "-3", "- 2", "007", "32767", "32768", "2147483647", "2147483648", "-2147483648",
    "5000000000", "-5000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", "-1.5",
    "2.25", "1.005", "0.0", "-0.0", "1e3", "12345.678", ".5", "5.", "1_000",
    "0x10", "NULL",
]  # fmt: skip
_TEXTS = [
    "''", "'a'", "'abc'", "'abcd'", "'it''s'", "'ä€😀'", "' a '", "'1'", "'-3'", "' 7 '", "'1.5'", "'t'", "'true'",
    "'2024-02-29'", "'2023-02-29'", "'2024-02-29 01:02:03'", "'2024-02-29 01:02:03.5+02'", "'now'", "'infinity'",
    "'1 day'", "'00000000-0000-0000-0000-00000000000a'", "'\\x'", "E'a\\tb'", "U&'a'", "$$a$$", "'--'", "'/*'", "'$1'",
]  # fmt: skip
#: ``{}`` is a literal
_SHAPES = [
    "SELECT * FROM t WHERE k = {}",
    "SELECT x, {} AS y FROM t WHERE k = {}",
    "SELECT {} FROM t WHERE k = {}",
    "SELECT n * {}, m + {}, i / {} FROM t WHERE k = 1",
    "SELECT x || {}, upper({}) FROM t WHERE k = {}",
    "select x from t where k={} and (x={} or i>{})",
    "SELECT x FROM t WHERE k IN ({},{},{}) ORDER BY k",
    "SELECT k FROM t WHERE k = 1 ORDER BY {}",
    "SELECT k FROM t WHERE k = {} LIMIT {}",
    "SELECT k, CASE WHEN i = {} THEN {} ELSE x END FROM t WHERE k = 1",
    "SELECT k, coalesce(x, {}), {}::text, {}::int FROM t WHERE k = 2",
    "SELECT k, substr(x, {}, 2), date {} FROM t WHERE k = 1",
    "SELECT ts + interval {}, {}::date FROM t WHERE k = 1",
    "SELECT x::varchar({}) FROM t WHERE k = 1",
    'SELECT "k" AS "a {} b" FROM t WHERE k = {}',
    "SELECT c FROM w WHERE bal = {}",
    "SELECT x FROM bag WHERE i = {} ORDER BY x",
    "SELECT t.x, a.name FROM t JOIN a ON t.i = a.aid WHERE t.k = {} AND a.name <> {}",
    "SELECT x FROM t WHERE k = {} -- {}",
    "SELECT x FROM t WHERE k = {} /* {} */",
    "SELECT x FROM t WHERE da = {} AND k = {}",
    "SELECT nothing, {} FROM t WHERE k = {}",
    "INSERT INTO t (k, s, i, n, m, d) VALUES ({}, {}, {}, {}, {}, {})",
    "INSERT INTO t (k, r, x, v, c) VALUES ({}, {}, {}, {}, {})",
    "INSERT INTO t (k, da, ts, tz) VALUES ({}, {}, {}, {})",
    "INSERT INTO t (k, iv, u, b) VALUES ({}, {}, {}, {})",
    "INSERT INTO a VALUES ({}, {}, {})",
    "INSERT INTO a (aid, name) VALUES ({}, {}) RETURNING aid, bal, name",
    "INSERT INTO a VALUES ({}, {}, {}) ON CONFLICT (aid) DO UPDATE SET bal = excluded.bal",
    "INSERT INTO a VALUES ({}, {}, {}) ON CONFLICT (aid) DO UPDATE SET bal = a.bal + {}",
    "INSERT INTO a VALUES ({} + {}, {}, {})",
    "INSERT INTO bag VALUES ({}, {})",
    "UPDATE a SET bal = bal + {}, name = {} WHERE aid = {}",
    "UPDATE a SET bal = {} WHERE aid = {} RETURNING *",
    "UPDATE t SET n = {}, v = {}, da = {} WHERE k = {}",
    "UPDATE t SET i = i - {} WHERE k = {} AND x = {}",
    "DELETE FROM a WHERE aid = {}",
    "DELETE FROM t WHERE k = {} RETURNING k",
]
#: what literals of one place may be, so that texts of one shape follow one another
_CLASSES: list[list[str]] = [
    [str(n) for n in range(12)],
    ["-1", "-2", "-3", "-2147483647"],
    ["5000000000", "2147483649", "123456789012345678", "4294967296"],
    ["1.5", "2.5", "0.0", "12345678901234567890.1"],
    ["1.25", "2.50", "0.01", "9999.99"],
    ["-1.5", "-0.0", "-7.5"],
    ["'1'", "'2'", "'-3'", "'a'", "'99999999999'", "'1.5'"],
    ["'a'", "'ab'", "'abc'", "'abcd'", "'it''s'", "''", "'ä€😀'", "' 1'"],
    ["'2024-02-29'", "'2024-01-01'", "'2023-02-29'", "'today'", "'2024-02-29 01:02:03'"],
    ["'2024-02-29 01:02:03'", "'2024-02-29 01:02:03.5+02'", "'2024-02-29T01:02:03'", "'infinity'", "'12024-01-01'"],
    ["'t'", "'false'", "'maybe'"],
    ["'00000000-0000-0000-0000-00000000000a'", "'00000000-0000-0000-0000-00000000000B'", "'0'"],
    _NUMBERS,
    _TEXTS,
]


@pytest.fixture
def databases() -> Iterator[tuple[eddyline.Connection, eddyline.Connection]]:
    with eddyline.connect(interactive=False) as ours, eddyline.connect(interactive=False) as alone:
        for db in (ours, alone):
            db.executescript(_TABLES)
            for view in ("bag_i", "w_bal"):
                db.wait_hydrated(view, timeout=20)
        yield ours, alone


def _series(rng: random.Random) -> list[str]:
    """Some texts, mostly of one shape."""
    shape = rng.choice(_SHAPES)
    places = [_CLASSES[0] if rng.random() < 0.6 else rng.choice(_CLASSES) for _ in range(shape.count("{}"))]
    return [shape.format(*map(rng.choice, places)) for _ in range(5)]


def _said(db: eddyline.Connection, text: str) -> Any:
    """The columns, rows and tag, or the error."""
    try:
        cursor = db.execute(text)
        rows = cursor.fetchall() if cursor.description else None
        types = None if cursor.description is None else [(d[0], str(d[1])) for d in cursor.description]
        return types, None if rows is None else sorted(map(repr, rows)), cursor.rowcount
    except eddyline.Error as error:
        return error.sqlstate, error.message, error.detail, error.hint, error.position


def _in_both(ours: eddyline.Connection, alone: eddyline.Connection, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    said = _said(ours, text)
    with monkeypatch.context() as patch:
        patch.setattr(session_module, "shared_statement", lambda *_, **__: None)
        assert said == _said(alone, text), text
    return said


@pytest.mark.parametrize("seed", range(SEEDS))
def test_shared_texts_say_what_they_say_by_themselves(
    seed: int,
    databases: tuple[eddyline.Connection, eddyline.Connection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, alone = databases
    rng = random.Random(seed)
    shared: Counter[str] = Counter()
    shared_statement = shared_texts.shared_statement

    def counted(*arguments: Any, **options: Any) -> Any:
        found = shared_statement(*arguments, **options)
        if found is not None:
            shared[found[0].parsed.kind] += 1
        return found

    monkeypatch.setattr(session_module, "shared_statement", counted)
    for number in range(130):
        in_block = rng.random() < 0.1
        if number == 65:
            for db in databases:
                db.execute("SET TimeZone = 'Asia/Tokyo'")
        if in_block:
            for db in databases:
                db.execute("BEGIN")
        for text in _series(rng):
            _in_both(ours, alone, text, monkeypatch)
        if in_block:
            for db in databases:
                db.execute("COMMIT")
    for table in ("t", "a", "bag"):
        _in_both(ours, alone, f"SELECT * FROM {table}", monkeypatch)
    assert min(shared[kind] for kind in ("select_stmt", "insert_stmt", "update_stmt", "delete_stmt")) >= 8, shared
