"""SET, SHOW and RESET, and prepared statements."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (a int, b text)")
        connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        yield connection


def show(db: eddyline.Connection, name: str) -> object:
    row = db.execute(f"SHOW {name}").fetchone()
    assert row is not None
    return row[0]


def refused(db: eddyline.Connection, statement: str) -> str:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(statement)
    return caught.value.sqlstate


def test_a_session_is_in_a_cluster_that_there_is(db: eddyline.Connection) -> None:
    assert show(db, "cluster") == "default"
    for named in ("'default'", '"default"', "DEFAULT"):
        db.execute(f"SET cluster = {named}")
        assert show(db, "cluster") == "default"
    with pytest.raises(eddyline.Error, match='unknown cluster "other"') as caught:
        db.execute("SET cluster = other")
    assert (caught.value.sqlstate, show(db, "cluster")) == ("42704", "default")


def test_set_show_reset(db: eddyline.Connection) -> None:
    for text, shown in (("'1500ms'", "1500ms"), ("2000", "2s"), ("'1min'", "1min"), ("0", "0")):
        db.execute(f"SET statement_timeout = {text}")
        assert show(db, "statement_timeout") == shown
    db.execute("SET application_name TO 'me'")
    assert show(db, "application_name") == "me"
    with db.session() as other:
        assert show(other, "application_name") == ""
    db.execute("RESET application_name")
    assert show(db, "application_name") == ""
    db.execute("SET application_name = 'again'")
    db.execute("RESET ALL")
    assert show(db, "application_name") == ""
    assert show(db, "server_version") == "15.0"
    assert ("timezone", "UTC") in {(r[0].lower(), r[1]) for r in db.execute("SHOW ALL").fetchall()}
    names = [name.lower() for name, _ in db.execute("SHOW ALL").fetchall()]
    assert names == sorted(set(names)), "each once"


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("SET nothing = 1", "42704"),
        ("SHOW nothing", "42704"),
        ("RESET nothing", "42704"),
        ("SET server_version = '16'", "55P02"),
        ("SET statement_timeout = 'soon'", "22023"),
        ("SET datestyle = 'German'", "22023"),
        ("SET timezone = 'Europe/Nowhere'", "22023"),
        ("SET extra_float_digits = 0", "0A000"),
        ("SET extra_float_digits = 4", "22023"),
        ("SET extra_float_digits = 'few'", "22023"),
    ],
)
def test_settings_that_are_refused(db: eddyline.Connection, statement: str, sqlstate: str) -> None:
    assert refused(db, statement) == sqlstate


def test_set_local_ends_with_its_transaction(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("SET LOCAL application_name = 'inner'")
    assert show(db, "application_name") == "inner"
    db.execute("COMMIT")
    assert show(db, "application_name") == ""


def test_set_local_outside_a_transaction_does_nothing(db: eddyline.Connection) -> None:
    db.execute("SET LOCAL application_name = 'x'")
    assert show(db, "application_name") == ""
    assert refused(db, "SET LOCAL statement_timeout = 'soon'") == "22023"


def test_a_rollback_takes_settings_back(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("SET application_name = 'lost'")
    db.execute("ROLLBACK")
    assert show(db, "application_name") == ""
    db.execute("BEGIN")
    db.execute("SET application_name = 'kept'")
    db.execute("SAVEPOINT a")
    db.execute("SET application_name = 'lost'")
    db.execute("SET LOCAL application_name = 'lost too'")
    db.execute("ROLLBACK TO a")
    assert show(db, "application_name") == "kept"
    db.execute("COMMIT")
    assert show(db, "application_name") == "kept"
    db.execute("BEGIN")
    db.execute("SET LOCAL application_name = 'inner'")
    db.execute("SET application_name = 'outer'")
    assert show(db, "application_name") == "outer"
    db.execute("COMMIT")
    assert show(db, "application_name") == "outer"


def test_a_failed_transaction_takes_its_settings_back_at_commit(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("SET application_name = 'lost'")
    assert refused(db, "SELECT nothing") == "42703"
    assert db.execute("COMMIT").statusmessage == "ROLLBACK"
    assert show(db, "application_name") == ""


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ('"My S", b', '"My S", b'),
        ("'a, b'", '"a, b"'),
        ("''", '""'),
        ('"$user", public', '"$user", public'),
        ('"a""b"', '"a""b"'),
    ],
)
def test_the_search_path_is_shown_as_it_reads(db: eddyline.Connection, values: str, shown: str) -> None:
    db.execute(f"SET search_path = {values}")
    assert show(db, "search_path") == shown


def test_a_schema_of_any_name_is_found_again_after_set_local(db: eddyline.Connection) -> None:
    db.execute('CREATE SCHEMA "a, b"')
    db.execute('CREATE TABLE "a, b".only_there (x int)')
    db.execute('SET search_path = "a, b", "$user"')
    db.execute("BEGIN")
    db.execute("SET LOCAL search_path = public")
    db.execute("COMMIT")
    assert db.execute("SELECT * FROM only_there").fetchall() == []


def test_both_names_of_the_isolation_level_are_one_setting(db: eddyline.Connection) -> None:
    db.execute("SET default_transaction_isolation = 'serializable'")
    assert show(db, "transaction_isolation") == "serializable"
    db.execute("BEGIN")
    db.execute("SET transaction_isolation = 'strict serializable'")
    assert show(db, "transaction_isolation") == "strict serializable"
    assert show(db, "default_transaction_isolation") == "serializable"
    db.execute("SELECT 1")
    assert refused(db, "SET transaction_isolation = 'serializable'") == "25001"
    db.execute("ROLLBACK")
    assert show(db, "transaction_isolation") == "serializable"


def test_a_transaction_can_be_made_read_only(db: eddyline.Connection) -> None:
    db.execute("SET transaction_read_only = on")
    assert show(db, "transaction_read_only") == "off", "there is no transaction"
    db.execute("BEGIN")
    db.execute("SELECT 1")
    db.execute("SET transaction_read_only = on")
    assert show(db, "transaction_read_only") == "on"
    db.execute("COMMIT AND CHAIN")
    assert show(db, "transaction_read_only") == "on"
    assert refused(db, "INSERT INTO t VALUES (3, 'z')") == "25006"
    db.execute("ROLLBACK AND CHAIN")
    assert refused(db, "INSERT INTO t VALUES (3, 'z')") == "25006"
    db.execute("ROLLBACK")
    assert show(db, "transaction_read_only") == "off"
    db.execute("SET default_transaction_read_only = on")
    assert show(db, "transaction_read_only") == "on"
    assert refused(db, "INSERT INTO t VALUES (3, 'z')") == "25006"


def test_the_search_path_decides_names(db: eddyline.Connection) -> None:
    db.execute("CREATE SCHEMA s")
    db.execute("CREATE TABLE s.t (c int)")
    db.execute("INSERT INTO s.t VALUES (7)")
    assert sorted(db.execute("SELECT a FROM t")) == [(1,), (2,)]
    db.execute("SET search_path = s, public")
    assert db.execute("SELECT * FROM t").fetchall() == [(7,)]
    assert db.execute("SELECT count(*) FROM public.t").fetchall() == [(2,)]
    db.append("t", [{"c": 8}])
    db.execute("CREATE TABLE new (x int)")
    assert db.execute("SELECT * FROM s.new").fetchall() == []
    db.execute("RESET search_path")
    assert db.execute("SELECT count(*) FROM s.t").fetchall() == [(2,)]


def test_prepared_statements(db: eddyline.Connection) -> None:
    db.execute("PREPARE q (int) AS SELECT b FROM t WHERE a = $1")
    assert db.execute("EXECUTE q (1)").fetchall() == [("x",)]
    assert db.execute("EXECUTE q (1 + 1)").fetchall() == [("y",)]
    assert refused(db, "PREPARE q AS SELECT 1") == "42P05"
    assert refused(db, "EXECUTE q") == "42601"
    assert refused(db, "EXECUTE q (1, 2)") == "42601"
    assert refused(db, "EXECUTE nothing") == "26000"
    with db.session() as other:
        assert refused(other, "EXECUTE q (1)") == "26000"
    db.execute("PREPARE w AS INSERT INTO t VALUES ($1, $2)")
    assert db.execute("EXECUTE w (3, 'z')").rowcount == 1
    assert db.execute("EXECUTE q (3)").fetchall() == [("z",)]
    db.execute("DEALLOCATE q")
    assert refused(db, "DEALLOCATE q") == "26000"
    db.execute("DEALLOCATE ALL")
    assert refused(db, "EXECUTE w (3, 'z')") == "26000"


def test_prepared_statements_follow_the_catalog(db: eddyline.Connection) -> None:
    db.execute("PREPARE q AS SELECT count(*) FROM t WHERE a > $1")
    assert db.execute("EXECUTE q (1)").fetchall() == [(1,)]
    db.execute("CREATE INDEX ON t (a)")
    assert db.execute("EXECUTE q (0)").fetchall() == [(2,)]
    db.execute("DROP TABLE t")
    assert refused(db, "EXECUTE q (0)") == "42P01"
    db.execute("CREATE TABLE t (a int)")
    assert db.execute("EXECUTE q (0)").fetchall() == [(0,)]


def test_prepared_statements_follow_the_search_path(db: eddyline.Connection) -> None:
    db.execute("CREATE SCHEMA s")
    db.execute("CREATE TABLE s.t (c int)")
    db.execute("PREPARE q AS SELECT count(*) FROM t")
    assert db.execute("EXECUTE q").fetchall() == [(2,)]
    db.execute("SET search_path = s")
    assert db.execute("EXECUTE q").fetchall() == [(0,)]


def test_discard_all(db: eddyline.Connection) -> None:
    db.execute("PREPARE q AS SELECT 1")
    db.execute("SET application_name = 'x'")
    db.execute("DISCARD ALL")
    assert refused(db, "EXECUTE q") == "26000"
    assert show(db, "application_name") == ""


def test_a_repeated_statement_sees_new_rows_and_new_definitions(db: eddyline.Connection) -> None:
    query = "SELECT b FROM t WHERE a = $1"
    assert db.execute(query, [1]).fetchall() == [("x",)]
    db.execute("UPDATE t SET b = 'changed' WHERE a = 1")
    assert db.execute(query, [1]).fetchall() == [("changed",)]
    db.execute("CREATE INDEX ON t (a)")
    assert db.execute(query, [1]).fetchall() == [("changed",)]
    db.execute("DROP TABLE t")
    with pytest.raises(eddyline.ProgrammingError):
        db.execute(query, [1])
