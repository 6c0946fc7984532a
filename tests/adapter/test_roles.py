"""Roles: who may do what, on every path."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from eddyline.adapter.engine import Engine
from eddyline.adapter.ingest_rows import Incoming
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(interactive=False)
    yield engine
    engine.close()


@pytest.fixture
def root(engine: Engine) -> Iterator[Session]:
    """The superuser, with a role ``ann`` that owns and holds nothing, in a schema of the test's own."""
    session = Session(engine)
    session.execute_script("CREATE SCHEMA s; SET search_path = s; CREATE TABLE t (a int PRIMARY KEY, b int)")
    session.execute_script(
        "INSERT INTO t VALUES (1, 10), (2, 20); CREATE ROLE ann LOGIN; GRANT USAGE ON SCHEMA s TO ann"
    )
    yield session
    if session.status != "I":
        session.rollback()
    session.execute_script("RESET ROLE; DROP SCHEMA s CASCADE")
    session.execute_script("REVOKE ALL ON SCHEMA public FROM ann; REVOKE ALL ON DATABASE postgres FROM ann")
    session.execute_script("DROP ROLE ann; DROP ROLE IF EXISTS bob, grp")
    session.close()


@pytest.fixture
def ann(engine: Engine, root: Session) -> Iterator[Session]:
    session = Session(engine, "ann")
    session.execute("SET search_path = s")
    yield session
    session.close()


def rows(session: Session, text: str, *parameters: object) -> list[tuple[object, ...]]:
    result = session.execute(text, parameters or None).result
    assert result is not None
    return list(zip(*(c.to_pylist() for c in result.columns), strict=True))


def refused(act: Callable[[], object], words: str, sqlstate: str = "42501") -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        act()
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, words)
    return caught.value


STATEMENTS = {
    "SELECT a FROM t": ("SELECT",),
    "INSERT INTO t VALUES (9, 9)": ("INSERT",),
    "INSERT INTO t VALUES (1, 9) ON CONFLICT (a) DO UPDATE SET b = 9": ("INSERT", "UPDATE", "SELECT"),
    "UPDATE t SET b = 1": ("UPDATE",),
    "UPDATE t SET b = 1 WHERE a = 1": ("UPDATE", "SELECT"),
    "DELETE FROM t": ("DELETE",),
    "DELETE FROM t WHERE a = 1": ("DELETE", "SELECT"),
    "TRUNCATE t": ("TRUNCATE",),
    "EXPLAIN SELECT a FROM t": ("SELECT",),
    "DECLARE c CURSOR FOR SELECT a FROM t": ("SELECT",),
    "SUBSCRIBE t": ("SELECT",),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_takes_each_of_its_rights_and_no_other(root: Session, ann: Session, text: str) -> None:
    needed = STATEMENTS[text]
    for missing in needed:
        others = [r for r in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE") if r != missing]
        root.execute("REVOKE ALL ON t FROM ann")
        root.execute(f"GRANT {', '.join(others)} ON t TO ann")
        ann.execute("BEGIN")
        refused(lambda: ann.execute(text), "permission denied for table t")
        ann.execute("ROLLBACK")
    root.execute("REVOKE ALL ON t FROM ann")
    root.execute(f"GRANT {', '.join(needed)} ON t TO ann")
    ann.execute("BEGIN")
    outcome = ann.execute(text)
    if outcome.feed is not None:
        outcome.feed.close()
    ann.execute("ROLLBACK")


def test_a_lookup_that_was_asked_before_is_refused_after_revoke(root: Session, ann: Session) -> None:
    root.execute("GRANT SELECT ON t TO ann")
    for _ in range(4):
        assert ann.execute("SELECT b FROM t WHERE a = $1", [1]).affected != 0
    root.execute("REVOKE SELECT ON t FROM ann")
    refused(lambda: ann.execute("SELECT b FROM t WHERE a = $1", [1]), "permission denied for table t")


def test_a_prepared_statement_is_checked_when_it_runs(root: Session, ann: Session) -> None:
    ann.execute("PREPARE p AS SELECT a FROM t")
    refused(lambda: ann.execute("EXECUTE p"), "permission denied for table t")
    root.execute("GRANT SELECT ON t TO PUBLIC")
    ann.execute("EXECUTE p")


def test_a_revoke_is_seen_by_a_transaction_that_has_begun(root: Session, ann: Session) -> None:
    root.execute("GRANT SELECT ON t TO ann")
    ann.execute("BEGIN")
    ann.execute("SELECT a FROM t")
    root.execute("REVOKE SELECT ON t FROM ann")
    refused(lambda: ann.execute("SELECT a FROM t"), "permission denied for table t")
    ann.execute("ROLLBACK")


def test_bulk_calls_are_checked(root: Session, ann: Session) -> None:
    data = pa.table({"a": pa.array([7], pa.int32()), "b": pa.array([7], pa.int32())})
    key = data.select(["a"])
    for act in (
        lambda: ann.bulk.append("t", Incoming(data), timeout=None),
        lambda: ann.bulk.upsert("t", Incoming(data), timeout=None),
        lambda: ann.bulk.delete("t", Incoming(key), timeout=None),
        lambda: ann.executemany("INSERT INTO t VALUES ($1, $2)", [(7, 7), (8, 8)]),
    ):
        refused(act, "permission denied for table t")
    root.execute("GRANT INSERT ON t TO ann")
    ann.bulk.append("t", Incoming(data), timeout=None)


def test_files_and_the_system_are_the_superusers(ann: Session) -> None:
    ann_copies = refused(lambda: ann.execute("COPY t FROM '/nowhere'"), "must be superuser to COPY from a file")
    assert ann_copies.hint is not None
    refused(lambda: ann.execute("COPY t TO '/nowhere'"), "must be superuser to COPY to a file")
    refused(
        lambda: ann.execute("ALTER SYSTEM SET max_result_size = '1MB'"),
        'permission denied to set parameter "max_result_size"',
    )


def test_definitions_are_the_owners(root: Session, ann: Session) -> None:
    root.execute("CREATE VIEW v AS SELECT a FROM t")
    for text, words in {
        "DROP TABLE t CASCADE": "must be owner of table t",
        "ALTER TABLE t RENAME TO u": "must be owner of table t",
        "CREATE INDEX i ON t (b)": "must be owner of table t",
        "ALTER TABLE t OWNER TO ann": "must be owner of table t",
        "CREATE OR REPLACE VIEW v AS SELECT b AS a FROM t": "permission denied for schema s",
        "DROP SCHEMA s CASCADE": "must be owner of schema s",
        "CREATE TABLE x (a int)": "permission denied for schema s",
        "CREATE SCHEMA mine": "permission denied for database postgres",
        "CREATE ROLE bob": "permission denied to create role",
        "GRANT SELECT ON t TO PUBLIC": "permission denied for table t",
    }.items():
        refused(lambda text=text: ann.execute(text), words)  # type: ignore[misc]  # lambdas of defaults are untyped
    root.execute("GRANT CREATE ON SCHEMA s TO ann")
    ann.execute_script("CREATE TABLE x (a int); INSERT INTO x VALUES (1); CREATE INDEX i ON x (a); DROP TABLE x")


def test_a_view_is_read_as_its_owner(root: Session, ann: Session) -> None:
    root.execute_script("CREATE VIEW v AS SELECT a FROM t; GRANT SELECT ON v TO ann; GRANT CREATE ON SCHEMA s TO ann")
    ann.execute("SELECT * FROM v")
    ann.execute("CREATE VIEW own AS SELECT b FROM t")
    refused(lambda: ann.execute("SELECT * FROM own"), "permission denied for table t")
    root.execute("GRANT SELECT ON t TO ann")
    ann.execute("SELECT * FROM own")


def test_rights_come_through_memberships_that_are_inherited(root: Session, ann: Session) -> None:
    root.execute_script("CREATE ROLE grp; GRANT SELECT ON t TO grp; GRANT USAGE ON SCHEMA s TO grp; GRANT grp TO ann")
    ann.execute("SELECT a FROM t")
    root.execute("ALTER ROLE ann NOINHERIT")
    refused(lambda: ann.execute("SELECT a FROM t"), "permission denied for table t")
    ann.execute("SET ROLE grp")
    ann.execute("SELECT a FROM t")
    ann.execute("RESET ROLE")
    refused(lambda: ann.execute("SET ROLE postgres"), 'permission denied to set role "postgres"')
    words = 'permission denied to set session authorization "postgres"'
    refused(lambda: ann.execute("SET SESSION AUTHORIZATION postgres"), words)
    refused(lambda: ann.begin_with("session_authorization", "postgres"), words)
    refused(lambda: root.execute("GRANT ann TO grp"), 'role "ann" is a member of role "grp"', "0LP01")
    root.execute_script("REVOKE SELECT ON t FROM grp; REVOKE USAGE ON SCHEMA s FROM grp")


def test_grant_options_are_passed_on_and_revoked_with_what_hangs_on_them(root: Session, ann: Session) -> None:
    root.execute_script("CREATE ROLE bob; GRANT SELECT ON t TO ann WITH GRANT OPTION")
    ann.execute("GRANT SELECT ON t TO bob")
    refused(lambda: root.execute("REVOKE SELECT ON t FROM ann"), "dependent privileges exist", "2BP01")
    root.execute("REVOKE SELECT ON t FROM ann CASCADE")
    root.execute("DROP ROLE bob")


def test_a_role_that_holds_something_is_not_dropped(root: Session) -> None:
    root.execute_script("CREATE ROLE bob; ALTER TABLE t OWNER TO bob; GRANT USAGE ON SCHEMA s TO bob")
    error = refused(
        lambda: root.execute("DROP ROLE bob"),
        'role "bob" cannot be dropped because some objects depend on it',
        "2BP01",
    )
    assert error.detail == "owner of table t\nprivileges for schema s"
    root.execute_script("ALTER TABLE t OWNER TO postgres; REVOKE ALL ON SCHEMA s FROM bob; DROP ROLE bob")


def test_definitions_about_roles_are_the_transactions(root: Session, ann: Session) -> None:
    root.execute_script("BEGIN; GRANT SELECT ON t TO ann")
    refused(lambda: ann.execute("SELECT a FROM t"), "permission denied for table t")
    root.execute("ROLLBACK")
    refused(lambda: ann.execute("SELECT a FROM t"), "permission denied for table t")
    root.execute_script("BEGIN; GRANT SELECT ON t TO ann; COMMIT")
    ann.execute("SELECT a FROM t")


def test_the_session_knows_who_it_is(root: Session, ann: Session) -> None:
    def who(session: Session) -> object:
        return rows(session, "SELECT current_user, session_user, current_role")[0]

    assert who(root) == ("postgres", "postgres", "postgres")
    assert who(ann) == ("ann", "ann", "ann")
    root.execute_script("BEGIN; SET LOCAL ROLE ann")
    assert who(root) == ("ann", "postgres", "ann")
    refused(lambda: root.execute("SELECT a FROM t"), "permission denied for table t")
    root.execute("ROLLBACK")
    assert who(root) == ("postgres", "postgres", "postgres")
    assert root.execute("SET LOCAL ROLE ann").notices
    assert who(root) == ("postgres", "postgres", "postgres")
    root.execute("SET SESSION AUTHORIZATION ann")
    assert who(root) == ("ann", "ann", "ann")
    root.execute("RESET SESSION AUTHORIZATION")
    refused(lambda: root.execute("SET ROLE nobody"), 'role "nobody" does not exist', "22023")


def test_the_catalog_shows_roles_and_rights(root: Session) -> None:
    root.execute_script("GRANT SELECT, INSERT ON t TO ann WITH GRANT OPTION; GRANT UPDATE ON t TO PUBLIC")
    assert rows(root, "SELECT relacl::text FROM pg_class WHERE relname = 't'") == [
        ("{postgres=arwdDxt/postgres,ann=a*r*/postgres,=w/postgres}",)
    ]
    assert rows(root, "SELECT rolname, rolsuper, rolcanlogin FROM pg_roles WHERE rolname = 'ann'") == [
        ("ann", False, True)
    ]
    root.execute("ALTER TABLE t OWNER TO ann")
    assert rows(root, "SELECT tableowner FROM pg_tables WHERE tablename = 't'") == [("ann",)]
    assert rows(root, "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 't'") == [("ann",)]


def test_privileges_are_told_by_functions(root: Session, ann: Session) -> None:
    root.execute("GRANT SELECT ON t TO ann")
    asked = (
        "SELECT has_table_privilege('t', 'select'), has_table_privilege('s.t', 'INSERT'), "
        "has_schema_privilege('s', 'USAGE'), has_schema_privilege('s', 'CREATE'), "
        "has_table_privilege('postgres', 't', 'DELETE'), has_database_privilege('ann', 'postgres', 'CONNECT')"
    )
    assert rows(ann, asked) == [(True, False, True, False, True, True)]
