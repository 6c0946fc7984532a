"""Roles over the wire: who is let in, and what prepared statements and lookups are refused after a REVOKE."""

from __future__ import annotations

import psycopg
import pytest

from eddyline.testing.served import ServedDatabase


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
