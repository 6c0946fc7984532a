"""Bulk writes look their keys up once, and are looked at again where somebody else has written meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import eddyline
from eddyline.storage.collection import Collection
from eddyline.testing.counting import counting
from eddyline.trace.hasher import Hasher

pytestmark = pytest.mark.skipif(not Hasher(0).exact, reason="counts of keys that do not collide")

_ROWS = 1_000


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=False) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
        connection.append("t", _rows(0, 2 * _ROWS))
        yield connection


def _rows(start: int, stop: int, value: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "v": [f"{value}{i}" for i in range(start, stop)]})


@contextmanager
def _looked_up(times: int) -> Iterator[None]:
    """Meanwhile keys are looked up so many times, and rows are hashed no oftener than for that and for their run."""
    found: list[int] = []
    lookup = Collection.lookup
    with pytest.MonkeyPatch.context() as patch, counting() as counted:

        def counted_lookup(self: Collection, keys: tuple[pa.Array, ...], *args: object) -> object:
            found.append(len(keys[0]))
            return lookup(self, keys, *args)  # type: ignore[arg-type]  # as it was called

        patch.setattr(Collection, "lookup", counted_lookup)
        yield
    assert found == [_ROWS] * times
    assert counted.calls["hash_rows"] <= 2 + 2 * times


def test_an_append_looks_its_keys_up_once(db: eddyline.Connection) -> None:
    with _looked_up(1):
        db.append("t", _rows(2 * _ROWS, 3 * _ROWS))
    with _looked_up(1), db.transaction():
        db.append("t", _rows(3 * _ROWS, 4 * _ROWS))
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(4 * _ROWS,)]


def test_a_delete_looks_its_keys_up_once(db: eddyline.Connection) -> None:
    with _looked_up(1):
        db.delete("t", _rows(0, _ROWS))
    with _looked_up(1), db.transaction():
        db.delete("t", _rows(_ROWS, 2 * _ROWS))
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_an_upsert_looks_its_keys_up_once(db: eddyline.Connection) -> None:
    with _looked_up(1):
        db.upsert("t", _rows(_ROWS // 2, _ROWS // 2 + _ROWS, "new"))
    assert db.execute("SELECT count(*), count(*) FILTER (WHERE v LIKE 'new%') FROM t").fetchall() == [
        (2 * _ROWS, _ROWS)
    ]


def test_what_a_transaction_has_checked_is_checked_again_after_another_ones_commit(db: eddyline.Connection) -> None:
    other = db.session()
    with pytest.raises(eddyline.IntegrityError) as caught, db.transaction():
        db.append("t", _rows(9_000, 9_010))
        other.append("t", _rows(9_005, 9_006, "other"))
    assert caught.value.sqlstate == "23505"
    assert db.execute("SELECT v FROM t WHERE id >= 9000").fetchall() == [("other9005",)]
    with _looked_up_rows([10, 10]), db.transaction():
        db.append("t", _rows(9_100, 9_110))
        other.append("t", _rows(9_200, 9_201))
    assert db.execute("SELECT count(*) FROM t WHERE id >= 9100").fetchall() == [(11,)]


@contextmanager
def _looked_up_rows(rows: list[int]) -> Iterator[None]:
    """As ``_looked_up``, so many keys each time, single ones apart."""
    found: list[int] = []
    lookup = Collection.lookup
    with pytest.MonkeyPatch.context() as patch:

        def counted_lookup(self: Collection, keys: tuple[pa.Array, ...], *args: object) -> object:
            found.append(len(keys[0]))
            return lookup(self, keys, *args)  # type: ignore[arg-type]  # as it was called

        patch.setattr(Collection, "lookup", counted_lookup)
        yield
    assert [n for n in found if n > 1] == rows


def test_a_transaction_that_changes_its_own_rows_again(db: eddyline.Connection) -> None:
    """Each step is checked over what the ones before have left; a step that is not is checked at commit."""
    with db.transaction():
        db.delete("t", _rows(0, 100))
        db.append("t", _rows(50, 60, "again"))
        db.upsert("t", _rows(55, 65, "third"))
        db.delete("t", _rows(50, 53))
    kept = db.execute("SELECT id, v FROM t WHERE id < 100 ORDER BY id").fetchall()
    assert kept == [*((i, f"again{i}") for i in (53, 54)), *((i, f"third{i}") for i in range(55, 65))]
    with db.transaction():
        db.execute("SAVEPOINT s")
        db.delete("t", _rows(53, 65))
        db.execute("ROLLBACK TO s")
        db.delete("t", _rows(53, 54))
        db.execute("INSERT INTO t VALUES (53, 'back')")
    assert db.execute("SELECT count(*), min(v) FROM t WHERE id < 100").fetchall() == [(12, "again54")]


def test_keys_that_are_given_twice_are_no_two_rows(db: eddyline.Connection) -> None:
    twice = pa.concat_tables([_rows(0, 100), _rows(7, 8)])
    with pytest.raises(eddyline.DataError) as caught:
        db.delete("t", twice)
    assert caught.value.sqlstate == "22023"
    with pytest.raises(eddyline.IntegrityError) as refused:
        db.append("t", pa.concat_tables([_rows(5_000, 5_100), _rows(5_007, 5_008)]))
    assert refused.value.sqlstate == "23505"
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(2 * _ROWS,)]
