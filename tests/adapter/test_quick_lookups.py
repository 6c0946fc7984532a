"""A lookup that is asked again says what it says the first time, whatever the types, the values and what happened.

``usual`` is a session that knows no quick lookup; a model in Python says what a sequence of writes comes to.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

import eddyline
from eddyline.adapter.quick_lookup import QuickLookup
from eddyline.testing.counting import counting

_UTC = dt.UTC
#: per type: keys, of the Python type that is plain for it, and further values that are no plain parameters
VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "boolean": ([True, False], ["t", 1]),
    "smallint": ([0, -1, 2**15 - 1, -(2**15)], ["7", 2**15, 1.0, True]),
    "integer": ([0, -1, 7, 2**31 - 1, -(2**31)], ["7", 2**31, Decimal(7)]),
    "bigint": ([0, -1, 7, 2**63 - 1, -(2**63)], ["7", 2**63, Decimal(7), 7.5]),
    "real": ([0.0, 1.5, float("inf")], [1, "1.5", 1e300]),
    "double precision": ([0.0, -0.0, 1.5, float("inf"), float("nan"), 5e-324], [1, "1.5", Decimal("1.5")]),
    "numeric": ([Decimal("0"), Decimal("1.50"), Decimal("-1e20")], [1, "1.5", 1.5]),
    "numeric(10,2)": ([Decimal("0.00"), Decimal("1.50")], [1, "1.555", 1.5, Decimal("1.505")]),
    "text": (["", "a", "ä€😀", "x" * 256, "ä" * 200, "'"], [7, "\x00", "\ud800", dt.date(2020, 1, 1)]),
    "varchar(5)": (["", "a", "abcde", "a "], ["abcdef", 7]),
    "char(5)": (["", "a", "abcde"], ["a  ", 7]),
    "bytea": ([b"", b"a", b"\x00\xff", b"x" * 256, b"x" * 300], ["\\x61", bytearray(b"a"), 7]),
    "date": ([dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1)], ["2024-02-29", "infinity", 7]),
    "time": ([dt.time(0), dt.time(23, 59, 59, 999999)], ["24:00", dt.time(1, tzinfo=_UTC)]),
    "timestamp": (
        [dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4)],
        ["2024-02-29", "-infinity", dt.datetime(2024, 2, 29, tzinfo=_UTC), dt.date(2024, 2, 29)],
    ),
    "timestamptz": (
        [dt.datetime(1970, 1, 1, tzinfo=_UTC), dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=5)))],
        [dt.datetime(2024, 2, 29), "2024-02-29 05:00+05", "infinity"],
    ),
    "interval": ([dt.timedelta(0), dt.timedelta(days=1, seconds=7)], ["1 day 7 seconds", "1 mon"]),
    "uuid": ([uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)], [str(uuid.UUID(int=0)), 7]),
}
#: kinds of keys that are laid out for quick lookups
QUICK = set(VALUES) - {"real", "numeric", "numeric(10,2)", "char(5)", "interval"}


class Answers:
    """What two sessions say to the same statement, which has to be the same; ``quick`` counts quick answers."""

    def __init__(self, db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        self.db, self.usual = db, db.session()
        monkeypatch.setattr(self.usual._session._asked, "answer", lambda *_: None)
        self.quick = 0
        original = QuickLookup.answer

        def answer(lookup: QuickLookup, *arguments: Any) -> Any:
            found = original(lookup, *arguments)
            self.quick += found is not None
            return found

        monkeypatch.setattr(QuickLookup, "answer", answer)

    def ask(self, text: str, parameters: Sequence[Any] | None = None) -> list[Any]:
        """Thrice, so that the last time is quick if it ever is."""
        expected = self._of(self.usual, text, parameters)
        for _ in range(3):
            assert self._of(self.db, text, parameters) == expected
        return expected

    @staticmethod
    def _of(db: eddyline.Connection, text: str, parameters: Sequence[Any] | None) -> list[Any]:
        try:
            cursor = db.execute(text, parameters)
        except eddyline.Error as error:
            return [error.sqlstate, error.message, error.detail, error.hint]
        shown: list[Any] = [cursor.description, cursor.rowcount, cursor.statusmessage, cursor.time]
        table = cursor.arrow()
        shown += [table.schema, sorted(map(repr, table.to_pylist()))]
        rows = cursor.fetchall()
        assert cursor.fetchone() is None
        return [*shown, sorted(map(repr, rows))]


@pytest.fixture(params=[(True, 1), (False, 1), (True, 2)], ids=["two runtimes", "solo", "two workers"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    interactive, workers = request.param
    with eddyline.connect(interactive=interactive, workers=workers) as connection:
        yield connection


@pytest.fixture
def answers(db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(db, monkeypatch)


@pytest.mark.parametrize("by", ["index", "primary key"])
def test_every_type_as_key_and_as_value(answers: Answers, by: str) -> None:
    """Also keys that are not there, parameters of other Python types, NULL, and wrong ones."""
    db = answers.db
    columns = ", ".join(f"v{i} {t}" for i, t in enumerate(VALUES))
    nulls = [None] * len(VALUES)
    for number, (sql_type, (keys, others)) in enumerate(VALUES.items()):
        table = f"t{number}"
        db.execute(f"CREATE TABLE {table} (k {sql_type}{' PRIMARY KEY' if by != 'index' else ''}, {columns})")
        places = ", ".join(f"${i + 1}" for i in range(len(VALUES) + 1))
        stored = keys[:-1] if len(keys) > 1 else keys
        seen: list[Any] = []
        for n, key in enumerate(stored):
            if by != "index" and key in seen:  # -0.0 is 0.0
                continue
            seen.append(key)
            values = [vs[n % len(vs)] for vs, _ in VALUES.values()] if n % 3 else nulls
            db.execute(f"INSERT INTO {table} VALUES ({places})", [key, *values])
        if by == "index":
            db.execute(f"CREATE INDEX {table}_k ON {table} (k)")
            db.wait_hydrated(f"{table}_k", timeout=20)
        text = f"SELECT * FROM {table} WHERE k = $1"
        before = answers.quick
        for value in [*keys, *others, None, *keys]:
            answers.ask(text, [value])
        answers.ask(text, [])
        answers.ask(text, [keys[0], 1])
        assert (answers.quick > before) is (sql_type in QUICK), sql_type


@pytest.fixture
def people(answers: Answers) -> Answers:
    db = answers.db
    db.executescript(
        """
        CREATE TABLE city (id int, name text, region bigint);
        CREATE TABLE person (id int PRIMARY KEY, name varchar(9), city int, age smallint);
        CREATE INDEX city_id ON city (id);
        CREATE INDEX person_city ON person (city);
        INSERT INTO city VALUES (1, 'Ghent', 10), (2, 'Bern', NULL), (2, 'Berne', 20), (NULL, 'Nowhere', 0);
        INSERT INTO person VALUES (1, 'Ann', 1, 30), (2, 'Bob', 2, 40), (3, 'Cy', NULL, 50), (4, 'Di', 9, 60),
            (5, 'Eve', 1, NULL);
        CREATE VIEW ages AS SELECT age, count(*) AS n, 100 / (age - 50) AS share FROM person GROUP BY age;
        CREATE INDEX ages_age ON ages (age);
        """
    )
    for name in ("city_id", "person_city", "ages_age"):
        db.wait_hydrated(name, timeout=20)
    return answers


QUICK_TEXTS = [
    "SELECT name FROM person WHERE id = $1",
    "SELECT name, age, name, id FROM person WHERE city = $1",
    "SELECT age FROM person WHERE id = $1 ORDER BY name",
    "SELECT name FROM city WHERE id = $1 LIMIT 5",
    "SELECT p.name, c.name FROM person p JOIN city c ON c.id = p.city WHERE p.id = $1",
    "SELECT p.name, c.name, c.region FROM person p LEFT JOIN city c ON c.id = p.city WHERE p.id = $1",
    "SELECT c.name, p.* FROM city c JOIN person p ON p.city = c.id WHERE c.id = $1",
]
OTHER_TEXTS = [
    "SELECT name || '!' FROM person WHERE id = $1",
    "SELECT name FROM person WHERE id = $1 AND age > 35",
    "SELECT name FROM person WHERE city = $1 ORDER BY name DESC",
    "SELECT name FROM person WHERE city = $1 LIMIT 1",
    "SELECT name FROM person WHERE city = $1 OFFSET 1",
    "SELECT name FROM person WHERE city = $1 LIMIT $1",
    "SELECT count(*) FROM person WHERE city = $1",
    "SELECT DISTINCT city FROM person WHERE city = $1",
    "SELECT name FROM person WHERE city IN ($1, 2)",
    "SELECT share FROM ages WHERE age = $1",
    "SELECT p.name FROM person p JOIN city c ON c.id = p.city AND c.name < p.name WHERE p.id = $1",
    "SELECT p.name FROM person p LEFT JOIN city c ON c.id = p.city AND c.region = 20 WHERE p.id = $1",
    "SELECT p.name, c.region + 1 FROM person p JOIN city c ON c.id = p.city WHERE p.id = $1",
    "SELECT p.name, a.share FROM person p JOIN ages a ON a.age = p.age WHERE p.id = $1",
    "SELECT a.name, b.name FROM person a JOIN person b ON b.city = a.city WHERE a.id = $1",
    "SELECT a.name, b.name FROM person a JOIN person b ON b.id = a.id WHERE a.id = $1",
    "SELECT c.name, d.name FROM city c JOIN city d ON d.id = c.id AND d.name = c.name WHERE c.id = $1",
    "SELECT c.name, d.name FROM person p JOIN city c ON c.id = p.city JOIN city d ON d.id = c.id WHERE p.id = $1",
]


@pytest.mark.parametrize("text", QUICK_TEXTS)
def test_these_statements_are_answered_quickly(people: Answers, text: str) -> None:
    for key in (1, 2, 3, 4, 5, 77, 2**31, 2**40, "1", None, True):
        people.ask(text, [key])
    assert people.quick > 0
    literal = people.quick
    assert people.ask(text.replace("$1", "1")) == people.ask(text, [1])
    assert people.quick > literal


@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_statements_of_all_kinds_say_the_same_when_they_are_asked_again(people: Answers, text: str) -> None:
    for key in (1, 2, 3, 4, 5, 30, 50, 77, None):
        people.ask(text, [key])


def test_errors_of_rows_are_raised_until_they_are_gone(people: Answers) -> None:
    """A view over no failing row answers quickly, over one it fails, whatever key is asked for."""
    db, text = people.db, "SELECT n FROM ages WHERE age = $1"
    joined = "SELECT p.name, a.n FROM person p JOIN ages a ON a.age = p.age WHERE p.id = $1"
    assert people.ask(text, [30])[0] == "22012"
    for key in (1, 4, 5, 77):
        assert people.ask(joined, [key])[0] == "22012", key
    db.execute("DELETE FROM person WHERE age = 50")
    people.ask(text, [30])
    people.ask(joined, [1])
    db.execute("INSERT INTO person VALUES (7, 'Flo', 1, 50)")
    for key in (1, 4, 5, 77):
        assert people.ask(joined, [key])[0] == "22012", key
    assert people.ask(text, [30])[0] == "22012"


def test_no_answer_is_of_an_earlier_definition(people: Answers) -> None:
    db, text = people.db, "SELECT name FROM city WHERE id = $1"
    people.ask(text, [1])
    db.execute("DROP INDEX city_id")
    people.ask(text, [1])
    db.execute("CREATE INDEX city_id ON city (id)")
    people.ask(text, [1])
    db.executescript("CREATE SCHEMA s; CREATE TABLE s.city (id int, name int); INSERT INTO s.city VALUES (1, 42);")
    people.ask(text, [1])
    for connection in (db, people.usual):
        connection.execute("SET search_path = s, public")
    assert "42" in people.ask(text, [1])[-1][0]
    for connection in (db, people.usual):
        connection.execute("RESET search_path")
    assert "Ghent" in people.ask(text, [1])[-1][0]
    db.execute("DROP TABLE city")
    assert people.ask(text, [1])[0] == "42P01"
    db.execute("CREATE TABLE city (id text PRIMARY KEY, name bytea)")
    people.ask(text, [1])
    db.execute("INSERT INTO city VALUES ('1', 'x')")
    people.ask(text, ["1"])


def test_settings_are_obeyed_at_once(people: Answers) -> None:
    text = "SELECT name FROM person WHERE id = $1"
    for setting in (
        "max_result_size = '1B'", "query_max_memory = '1B'", "transaction_isolation = 'serializable'",
        "statement_timeout = '1h'", "timezone = 'Asia/Tokyo'",
    ):  # fmt: skip
        people.ask(text, [1])
        for connection in (people.db, people.usual):
            connection.execute(f"SET {setting}")
        people.ask(text, [1])
        for connection in (people.db, people.usual):
            connection.execute(f"RESET {setting.split()[0]}")
    zoned = "SELECT * FROM z WHERE at = $1"
    people.db.executescript("CREATE TABLE z (at timestamptz PRIMARY KEY); INSERT INTO z VALUES ('2024-01-01 00:00+00')")
    for zone in ("UTC", "Asia/Tokyo"):
        for connection in (people.db, people.usual):
            connection.execute(f"SET timezone = '{zone}'")
        for value in (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 9), dt.datetime(2024, 1, 1, tzinfo=_UTC)):
            people.ask(zoned, [value])


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_of_writes_and_transactions(answers: Answers, seed: int) -> None:
    """By index, by primary key and through a join, each read against a model."""
    db, rng = answers.db, random.Random(seed)
    db.executescript("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE INDEX t_v ON t (v);")
    db.wait_hydrated("t_v", timeout=20)
    committed: dict[int, str] = {}
    pending: dict[int, str] | None = None
    for _ in range(150):
        rows = committed if pending is None else pending
        key, value = rng.randrange(6), rng.choice("abc")
        match rng.randrange(9):
            case 0 | 1:
                if key in rows:
                    db.execute("UPDATE t SET v = $2 WHERE id = $1", (key, value))
                else:
                    db.execute("INSERT INTO t VALUES ($1, $2)", (key, value))
                rows[key] = value
            case 2:
                db.execute("DELETE FROM t WHERE id = $1", (key,))
                rows.pop(key, None)
            case 3 if pending is None:
                db.execute("BEGIN")
                pending = dict(committed)
            case 4 if pending is not None:
                committed, pending = pending, None
                db.execute("COMMIT")
            case 5 if pending is not None:
                db.execute("ROLLBACK")
                pending = None
        rows = committed if pending is None else pending
        one = db.execute("SELECT v FROM t WHERE id = $1", (key,)).fetchall()
        assert one == ([(rows[key],)] if key in rows else [])
        several = db.execute("SELECT id FROM t WHERE v = $1", (value,)).fetchall()
        assert sorted(several) == sorted((k,) for k, v in rows.items() if v == value)
        pairs = db.execute("SELECT b.id FROM t a JOIN t b ON b.v = a.v WHERE a.id = $1", (key,)).fetchall()
        assert sorted(pairs) == sorted((k,) for k, v in rows.items() if key in rows and v == rows[key])
        other = answers.usual.execute("SELECT v FROM t WHERE id = $1", (key,)).fetchall()
        assert other == ([(committed[key],)] if key in committed else [])
    assert answers.quick > 0


def test_the_statements_of_a_block_are_one_transaction(people: Answers) -> None:
    text, session = "SELECT name FROM person WHERE id = $1", people.db._session
    people.ask(text, [1])
    session.begin_block()
    assert people.db.execute(text, [1]).fetchall() == [("Ann",)]
    people.usual.execute("UPDATE person SET name = 'Anna' WHERE id = 1")
    assert people.db.execute(text, [1]).fetchall() == [("Ann",)], "as the block's first statement saw it"
    session.end_block()
    assert people.db.execute(text, [1]).fetchall() == [("Anna",)]


def test_what_a_transaction_defines_is_seen_by_itself_alone(people: Answers) -> None:
    text = "SELECT name FROM city WHERE id = $1"
    people.ask(text, [1])
    people.db.execute("BEGIN")
    people.db.execute("DROP INDEX city_id")
    assert people.db.execute(text, [1]).fetchall() == [("Ghent",)]
    assert people.usual.execute(text, [1]).fetchall() == [("Ghent",)]
    people.db.execute("ROLLBACK")
    people.ask(text, [1])


def test_many_rows_and_long_texts_take_the_usual_way(answers: Answers) -> None:
    db = answers.db
    db.executescript("CREATE TABLE t (k int, v text); CREATE INDEX t_k ON t (k);")
    db.execute("INSERT INTO t SELECT 1, 'x' FROM generate_series(1, 63)")
    db.execute("INSERT INTO t SELECT 2, i::text FROM generate_series(1, 65) AS i")
    db.execute("INSERT INTO t VALUES (3, repeat('x', 70000)), (4, 'a'), (4, 'a'), (4, 'b')")
    db.wait_hydrated("t_k", timeout=20)
    for key in (1, 2, 3, 4):
        answers.ask("SELECT * FROM t WHERE k = $1", [key])
        answers.ask("SELECT v FROM t WHERE k = $1 ORDER BY v", [key])
    assert answers.quick > 0


def test_what_a_lookup_gives_is_what_every_way_to_fetch_gives(people: Answers) -> None:
    text = "SELECT id, name, age FROM person WHERE city = $1"
    for _ in range(3):
        cursor = people.db.execute(text, [1])
    assert people.quick
    assert sorted(cursor.fetchmany(1) + cursor.fetchmany(5)) == [(1, "Ann", 30), (5, "Eve", None)]
    assert cursor.fetchall() == []
    rows = people.db.execute(text, [1]).fetchall()
    rows.clear()
    again = people.db.execute(text, [1])
    assert len(again.fetchall()) == 2 and again.arrow().num_rows == 2
    assert [len(row) for row in people.db.execute(text, [1])] == [3, 3]
    assert sorted(people.db.execute(text, [1]).df()["name"]) == ["Ann", "Eve"]
    assert (people.db.execute(text, [1])._repr_html_() or "").count("<tr>") == 3


def test_quick_lookups_count_in_the_metrics(people: Answers) -> None:
    metrics, text = people.db._engine.metrics, "SELECT name FROM city WHERE id = $1"
    people.ask(text, [1])
    statements, reads, quick = metrics.statements()["succeeded"], metrics.reads()["caller"], people.quick
    walks = sum(metrics.phases(people.db._engine.default.reader, "walk").seen()[0])
    for _ in range(5):
        people.db.execute(text, [1])
    assert people.quick == quick + 5
    assert metrics.statements()["succeeded"] == statements + 5
    assert metrics.reads()["caller"] == reads + 5
    assert sum(metrics.phases(people.db._engine.default.reader, "walk").seen()[0]) == walks + 5


@pytest.mark.parametrize(("text", "kernels"), [(QUICK_TEXTS[0], 3), (QUICK_TEXTS[3], 3), (QUICK_TEXTS[4], 6)])
def test_a_quick_lookup_does_little(text: str, kernels: int) -> None:
    """Counted, so that what is added to its way is seen: calls of functions, and of kernels."""
    with eddyline.connect() as db:
        db.executescript(
            """
            CREATE TABLE city (id int, name text); CREATE INDEX city_id ON city (id);
            CREATE TABLE person (id int PRIMARY KEY, name text, city int);
            INSERT INTO city VALUES (1, 'Ghent'); INSERT INTO person VALUES (1, 'Ann', 1);
            """
        )
        db.wait_hydrated("city_id", timeout=20)
        for _ in range(4):
            assert len(db.execute(text, (1,)).fetchall()) == 1
        calls = [0]

        def count(_frame: object, event: str, _argument: object) -> None:
            calls[0] += event in ("call", "c_call")

        here = threading.current_thread().name
        with counting(lambda thread: thread == here) as counted:
            db.execute(text, (1,)).fetchall()
        assert (counted.kernel_calls, counted.bytes) == (kernels, 0)
        sys.setprofile(count)
        try:
            db.execute(text, (1,)).fetchall()
        finally:
            sys.setprofile(None)
        assert 0 < calls[0] < 90 * (1 + kernels // 3), calls


def test_a_row_that_has_just_changed_is_looked_up_quickly(answers: Answers) -> None:
    """Its earlier states are in the history of the index, and are added up on the way."""
    answers.db.executescript(
        "CREATE TABLE t (k int, v int); CREATE VIEW s AS SELECT k, sum(v) AS s FROM t GROUP BY k; CREATE INDEX ON s (k)"
    )
    answers.db.wait_hydrated("s_k_idx", timeout=20)
    text, total = "SELECT s FROM s WHERE k = $1", 0
    for change in range(40):
        answers.db.execute("INSERT INTO t VALUES (1, $1)", [change])
        total += change
        for _ in range(3 if change == 0 else 1):  # it is sealed then, so that nothing but the history is in the way
            assert answers.db.execute(text, [1]).fetchall() == [(total,)]
        before = answers.quick
        assert answers.db.execute(text, [1]).fetchall() == [(total,)]
        assert answers.quick == before + 1, change


def test_a_closed_session_and_a_closed_database_say_so(people: Answers) -> None:
    text = "SELECT name FROM city WHERE id = $1"
    other = people.db.session()
    for _ in range(3):
        other.execute(text, [1])
    other.close()
    with pytest.raises(eddyline.InterfaceError):
        other.execute(text, [1])
    people.ask(text, [1])
    people.db.close()
    with pytest.raises(eddyline.InterfaceError):
        people.db.execute(text, [1])


@pytest.mark.parametrize("statement", [7, b"SELECT 1", ["SELECT 1"], None])
def test_statements_that_are_no_text_are_refused_as_ever(people: Answers, statement: Any) -> None:
    with pytest.raises(eddyline.ProgrammingError):
        people.db.execute(statement, [1])


@pytest.mark.parametrize("parameters", ["1", b"1", {"a": 1}, {1}, 7])
def test_parameters_that_are_no_sequence_are_refused_as_ever(people: Answers, parameters: Any) -> None:
    text = "SELECT name FROM city WHERE id = $1"
    people.ask(text, [1])
    with pytest.raises(eddyline.ProgrammingError):
        people.db.execute(text, parameters)
