"""Roles over the wire: who is let in, and what prepared statements and lookups are refused after a REVOKE."""

from __future__ import annotations

import psycopg
import pytest

from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import told


def test_roles_hold_for_clients() -> None:
    with ServedDatabase() as served:
        where = f"host={served.host} port={served.port} dbname=postgres"
        with psycopg.connect(where, user="postgres", autocommit=True) as root:
            root.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
            root.execute("INSERT INTO t VALUES (1, 10)")
            root.execute("CREATE ROLE ann LOGIN")
            root.execute("CREATE ROLE grp")
            root.execute("GRANT SELECT ON t TO ann")
            with psycopg.connect(where, user="ann", autocommit=True) as ann:
                assert ann.execute("SELECT current_user, session_user").fetchall() == [("ann", "ann")]
                for _ in range(6):
                    assert ann.execute("SELECT b FROM t WHERE a = %s", [1], prepare=True).fetchall() == [(10,)]
                with (
                    pytest.raises(psycopg.errors.InsufficientPrivilege),
                    ann.cursor().copy("COPY t FROM STDIN") as copy,
                ):
                    copy.write_row((2, 20))
                root.execute("REVOKE SELECT ON t FROM ann")
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table t"):
                    ann.execute("SELECT b FROM t WHERE a = %s", [1], prepare=True)
                with pytest.raises(psycopg.errors.InsufficientPrivilege), ann.cursor().copy("COPY t TO STDOUT") as copy:
                    copy.read()
        with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
            psycopg.connect(where, user="grp")
        with pytest.raises(psycopg.OperationalError, match="permission denied to set session authorization"):
            psycopg.connect(where, user="ann", options="-c session_authorization=postgres")
        with psycopg.connect(where, user="newcomer") as newcomer:
            assert newcomer.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchall() == [
                (True,)
            ]


def test_settings_of_a_role_come_with_its_connections_and_give_way_to_those_of_the_client() -> None:
    with ServedDatabase() as served:
        where = f"host={served.host} port={served.port} dbname=postgres"
        with psycopg.connect(where, user="postgres", autocommit=True) as root:
            root.execute("CREATE ROLE ann LOGIN")
            root.execute("ALTER ROLE ann SET TimeZone = 'Asia/Tokyo'")
            root.execute("ALTER DATABASE postgres SET max_result_size = '1kB'")
        with psycopg.connect(where, user="ann", autocommit=True) as ann:
            assert ann.info.parameter_status("TimeZone") == "Asia/Tokyo"
            with pytest.raises(psycopg.errors.ProgramLimitExceeded):
                ann.execute("SELECT repeat('x', 3000)")
        with psycopg.connect(where, user="postgres", autocommit=True) as root:
            root.execute("ALTER ROLE ann SET idle_session_timeout = '300ms'")
        with psycopg.connect(where, user="ann", autocommit=True) as ann:
            assert told(ann, 60)
            with pytest.raises(psycopg.OperationalError, match="idle-session timeout"):
                ann.execute("SELECT 1")
        options = "-c TimeZone=UTC -c idle_session_timeout=0 -c max_result_size=1MB"
        with psycopg.connect(where, user="ann", autocommit=True, options=options) as ann:
            assert ann.info.parameter_status("TimeZone") == "UTC"
            ann.execute("SELECT repeat('x', 3000)")
            assert ann.execute("SHOW idle_session_timeout").fetchone() == ("0",)
            for text in (
                "SET TimeZone = 'Europe/Rome'",
                "RESET TimeZone",
                "SET TimeZone = 'Europe/Rome'",
                "DISCARD ALL",
            ):
                ann.execute(text)
            assert ann.info.parameter_status("TimeZone") == "UTC"
        with psycopg.connect(where, user="ann", options='-c search_path=one,"Two\\ words"') as ann:
            assert ann.execute("SHOW search_path").fetchone() == ('one,"Two words"',)
