"""Sequences in an embedded database: where calls may stand, who takes how many values, and what is shown of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.sequences import Sequences
from eddyline.errors import DatabaseError
from eddyline.repr.types import BIGINT
from eddyline.sql.catalog_view import SequenceDef


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=False) as connection:
        connection.executescript(
            "CREATE SEQUENCE s; CREATE TABLE t (id serial PRIMARY KEY, v text); INSERT INTO t (v) VALUES ('a'), ('b')"
        )
        yield connection


def rows(db: eddyline.Connection, query: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    return list(db.execute(query, parameters).fetchall())


def refused(db: eddyline.Connection, text: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        db.execute(text)
    return caught.value


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values each call for some was for."""
    counts: list[int] = []
    take = Sequences.take

    def counted(self: Sequences, of: Any, name: str, count: int, *, kept: bool) -> Any:
        counts.append(count)
        return take(self, of, name, count, kept=kept)

    monkeypatch.setattr(Sequences, "take", counted)
    return counts


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("CREATE VIEW x AS SELECT nextval('s') AS n", "a view"),
        ("CREATE MATERIALIZED VIEW x AS SELECT id, nextval('s') AS n FROM t", "a materialized view"),
        ("CREATE TABLE x AS SELECT nextval('s') AS n", "CREATE TABLE … AS"),
        ("CREATE INDEX ON t (nextval('s'))", "index expressions"),
        ("SUBSCRIBE (SELECT nextval('s'))", "a subscription"),
        ("COPY (SELECT nextval('s')) TO STDOUT", "COPY … TO"),
        ("SELECT nextval('s') AS OF 5", "a SELECT … AS OF"),
        ("SELECT id FROM t WHERE id = nextval('s')", "this place"),
        ("SELECT DISTINCT nextval('s') FROM t", "this place"),
        ("SELECT max(nextval('s')) FROM t", "this place"),
        ("SELECT nextval('s') UNION ALL SELECT id FROM t WHERE id > 1", ""),
        ("SELECT id FROM t LIMIT nextval('s')", "LIMIT"),
        ("SELECT * FROM generate_series(1, nextval('s'))", "this place"),
        ("DELETE FROM t WHERE id = nextval('s')", "this place"),
        ("UPDATE t SET v = 'x' WHERE id = nextval('s')", "this place"),
        ("UPDATE t SET id = nextval('s') FROM t b WHERE b.id = t.id", "this place"),
        ("EXECUTE p(nextval('s'))", "EXECUTE parameters"),
    ],
)
def test_a_call_that_a_plan_would_have_to_make_is_refused_by_its_name(
    db: eddyline.Connection, text: str, place: str
) -> None:
    db.execute("PREPARE p AS SELECT $1::bigint")
    if place:
        error = refused(db, text)
        assert (error.sqlstate, error.message) == ("0A000", f"nextval in {place} is not supported")
        assert error.hint is not None and "RETURNING" in error.hint
        assert rows(db, "SELECT is_called FROM s") == [(False,)]
    else:
        assert sorted(rows(db, text)) == [(1,), (2,)]


def test_what_is_maintained_may_not_show_where_a_sequence_stands_and_a_view_may(db: eddyline.Connection) -> None:
    db.execute("CREATE VIEW shown AS SELECT last_value, is_called FROM s")
    assert rows(db, "SELECT * FROM shown") == [(1, False)]
    db.execute("SELECT nextval('s')")
    assert rows(db, "SELECT * FROM shown") == [(1, True)]
    assert rows(db, "SELECT t.id, s.log_cnt FROM t, s ORDER BY id") == [(1, 32), (2, 32)]
    for text in ("CREATE MATERIALIZED VIEW m AS SELECT last_value FROM s", "CREATE INDEX ON shown (last_value)"):
        assert refused(db, text).message == "a sequence in a view that is maintained is not supported"
    assert refused(db, "SUBSCRIBE shown").message == "a sequence in a subscription is not supported"
    assert refused(db, "DROP SEQUENCE s").sqlstate == "2BP01"
    assert refused(db, "EXPLAIN ANALYZE SELECT nextval('s')").sqlstate == "0A000"


def test_a_bulk_insert_takes_its_values_at_once(db: eddyline.Connection, taken: list[int], tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"one\n" * 700)
    db.append("t", pa.table({"v": [str(n) for n in range(5000)]}))
    db.execute("INSERT INTO t (v) SELECT 'x' FROM generate_series(1, 3000)")
    db.executemany("INSERT INTO t (v) VALUES (?)", [[str(n)] for n in range(1000)])
    db.execute(f"COPY t (v) FROM '{tmp_path / 'rows'}'")
    assert taken == [5000, 3000, 1000, 700]
    assert rows(db, "SELECT min(id), max(id), count(*) FROM t") == [(1, 9702, 9702)]
    db.execute("INSERT INTO t SELECT nextval('t_id_seq') + 100000, 'y' || nextval('s') FROM generate_series(1, 400)")
    assert taken[4:] == [400, 400]
    assert rows(db, "SELECT nextval('s'), nextval('s') FROM generate_series(1, 3) ORDER BY 1")[0] == (401, 402)
    assert taken[6:] == [6]


def test_rows_that_are_given_keep_their_values_and_the_others_take_some(db: eddyline.Connection) -> None:
    db.append("t", [{"id": 10, "v": "given"}, {"v": "taken"}, {"v": "too"}])
    assert rows(db, "SELECT id, v FROM t WHERE id > 2 ORDER BY id") == [(3, "taken"), (4, "too"), (10, "given")]
    db.execute("CREATE TABLE always (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int)")
    db.append("always", [{"id": 7, "v": 1}])
    db.upsert("always", [{"id": 7, "v": 2}, {"v": 3}])
    assert rows(db, "SELECT id, v FROM always ORDER BY id") == [(1, 3), (7, 2)]


def test_statements_that_differ_by_literals_alone_take_values_each(db: eddyline.Connection) -> None:
    for n in range(6):
        assert rows(db, f"INSERT INTO t (v) VALUES ('n{n}') RETURNING id") == [(n + 3,)]
        assert rows(db, f"SELECT nextval('s'), v FROM t WHERE id = {n + 3}") == [(n + 1, f"n{n}")]
        db.execute(f"SELECT setval('s', {n + 1})")


def test_a_session_knows_its_own_last_values_alone(db: eddyline.Connection) -> None:
    with db.session() as other:
        db.execute("SELECT nextval('s')")
        assert refused(other, "SELECT currval('s')").sqlstate == "55000"
        assert refused(other, "SELECT lastval()").message == "lastval is not yet defined in this session"
        assert rows(other, "SELECT nextval('s'), currval('s'), lastval()") == [(2, 2, 2)]
        assert rows(db, "SELECT currval('s'), lastval()") == [(1, 1)]
        other.execute("DISCARD ALL")
        assert refused(other, "SELECT currval('s')").sqlstate == "55000"
        other.execute("SELECT nextval('s')")
        db.execute("DROP SEQUENCE s")
        assert refused(other, "SELECT lastval()").sqlstate == "55000"


def test_an_open_transaction_goes_on_with_a_sequence_as_it_is_now(db: eddyline.Connection) -> None:
    with db.session() as other:
        db.execute("BEGIN")
        assert rows(db, "SELECT nextval('s')") == [(1,)]
        other.execute("ALTER SEQUENCE s RESTART WITH 50 INCREMENT BY 5")
        assert rows(db, "SELECT nextval('s')") == [(50,)]
        other.execute("DROP SEQUENCE s")
        assert refused(db, "SELECT nextval('s')").sqlstate == "40001"
        db.execute("ROLLBACK")


def test_a_transaction_with_definitions_has_its_own_changes_and_otherwise_what_is_there_now(
    db: eddyline.Connection,
) -> None:
    with db.session() as other:
        other.execute("SELECT setval('s', 20)")
        db.execute("BEGIN")
        db.execute("CREATE TABLE unrelated (a serial)")
        assert rows(db, "SELECT nextval('s')") == [(21,)]
        db.execute("ALTER SEQUENCE s INCREMENT BY 7")
        assert rows(db, "SELECT nextval('s')") == [(28,)]
        assert rows(other, "SELECT nextval('s')") == [(29,)]
        other.execute("ALTER SEQUENCE s RESTART WITH 500")
        assert rows(db, "SELECT nextval('s')") == [(500,)]
        db.execute("ALTER SEQUENCE s RESTART WITH 9")
        assert rows(db, "SELECT nextval('s'), nextval('s')") == [(9, 16)]
        assert rows(other, "SELECT nextval('s')") == [(501,)]
        db.execute("COMMIT")
        assert rows(other, "SELECT nextval('s')") == [(23,)]


def test_a_position_that_is_no_more_is_never_made_again() -> None:
    sequences = Sequences(None)
    of = SequenceDef(BIGINT, 1, 1, 1, 1000, 1, cycle=False, position="u1", first=1)
    assert sequences.take(of, "s", 1, kept=True) is None
    sequences.begin([of])
    first = sequences.take(of, "s", 2, kept=True)
    assert first is not None and first.tolist() == [1, 2]
    sequences.forget(["u1"])
    assert sequences.look("u1", 1) == (1, False, None)
    assert sequences.take(of, "s", 1, kept=True) is None
    assert not sequences.set(of, "s", 5, called=True, kept=True)


def test_another_increment_does_not_stretch_the_block(db: eddyline.Connection) -> None:
    db.execute("SELECT nextval('s')")
    assert rows(db, "SELECT log_cnt FROM s") == [(32,)]
    db.execute("ALTER SEQUENCE s INCREMENT BY 10")
    assert rows(db, "SELECT log_cnt FROM s") == [(3,)]
    assert [rows(db, "SELECT nextval('s')")[0][0] for _ in range(4)] == [11, 21, 31, 41]
    assert rows(db, "SELECT log_cnt FROM s") == [(32,)]


@pytest.mark.parametrize(
    "columns",
    [
        "id serial, a smallserial, b bigserial, PRIMARY KEY (id)",
        "id bigint GENERATED ALWAYS AS IDENTITY (START 7 INCREMENT 3), v text",
        "id smallint GENERATED BY DEFAULT AS IDENTITY (MINVALUE 0 MAXVALUE 9 CYCLE), v text",
    ],
)
def test_what_is_shown_of_a_table_makes_it_again(db: eddyline.Connection, columns: str) -> None:
    db.execute(f"CREATE TABLE made ({columns})")
    shown = rows(db, "SHOW CREATE TABLE made")
    first = rows(db, "INSERT INTO made DEFAULT VALUES RETURNING *")
    described = "SELECT column_name, column_default, is_nullable, is_identity, identity_generation, identity_start,"
    described += (
        " identity_increment, identity_cycle FROM information_schema.columns WHERE table_name = 'made' ORDER BY 1"
    )
    before = rows(db, described)
    db.execute("DROP TABLE made")
    db.execute(shown[0][1])
    assert rows(db, "SHOW CREATE TABLE made") == shown
    assert rows(db, described) == before
    assert rows(db, "INSERT INTO made DEFAULT VALUES RETURNING *") == first


def test_long_names_are_cut_and_taken_ones_are_numbered(db: eddyline.Connection) -> None:
    long, column = "t" * 60, "ü" * 20
    db.execute(f'CREATE TABLE {long} ("{column}" serial)')
    db.execute("CREATE TABLE a_b (c serial)")
    db.execute("CREATE TABLE a (b_c serial)")
    names = [name for (name,) in rows(db, "SELECT relname FROM pg_class WHERE relkind = 'S' ORDER BY oid")]
    assert names[2:] == ["t" * 29 + "_" + "ü" * 14 + "_seq", "a_b_c_seq", "a_b_c_seq1"]
