"""Who may log in, by which password, how often, and what they are then told of themselves."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from eddyline.frontends.pgwire.passwords import Passwords
from eddyline.frontends.pgwire.server import WireConfig
from eddyline.sql.password_verifier import Verifier
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection
from tests.frontends.pgwire.test_limits import raw, read_all
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def asking() -> Iterator[ServedDatabase]:
    """A server that asks for passwords and was given that of ``postgres``."""
    given = {"postgres": Verifier.of_password("given")}
    with ServedDatabase(WireConfig(passwords=Passwords(given.get, b"secret"))) as served:
        yield served


def login(served: ServedDatabase, user: str, password: str) -> Connection:
    return psycopg.connect(
        host=served.host, port=served.port, dbname="postgres", user=user, password=password, autocommit=True
    )


def refused(served: ServedDatabase, user: str, password: str) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        login(served, user, password)
    return str(caught.value)


def test_roles_log_in_by_their_own_passwords(asking: ServedDatabase) -> None:
    wrong = "password authentication failed"
    with login(asking, "postgres", "given") as root:
        root.execute("CREATE ROLE ann LOGIN PASSWORD 'first'")
        root.execute("CREATE ROLE bob PASSWORD 'b'")
        login(asking, "ann", "first").close()
        root.execute("ALTER ROLE ann PASSWORD 'second'")
        assert wrong in refused(asking, "ann", "first") and wrong in refused(asking, "carol", "first")
        login(asking, "ann", "second").close()
        assert "not permitted to log in" in refused(asking, "bob", "b")
        assert wrong in refused(asking, "bob", "c"), "who does not know the password is told no more"
        root.execute("ALTER ROLE ann VALID UNTIL '2001-01-01'")
        assert wrong in refused(asking, "ann", "second")
        root.execute("ALTER ROLE ann VALID UNTIL 'infinity'")
        login(asking, "ann", "second").close()
        root.execute("ALTER ROLE ann PASSWORD NULL")
        assert wrong in refused(asking, "ann", "second")
        root.execute("ALTER ROLE postgres PASSWORD 'own'")
        assert wrong in refused(asking, "postgres", "given")
        login(asking, "postgres", "own").close()
        root.execute("ALTER ROLE postgres PASSWORD NULL")
        login(asking, "postgres", "given").close()
        assert root.execute("SELECT rolname FROM pg_roles WHERE rolname = 'carol'").fetchall() == []


def sqlstate_of_login(served: ServedDatabase, user: str) -> bytes:
    with raw(served, start=False) as connection:
        body = b"\0\3\0\0user\0" + user.encode() + b"\0\0"
        connection.sendall((len(body) + 4).to_bytes(4) + body)
        answer = read_all(connection)
    assert answer[:1] == b"E" and b"SFATAL\0" in answer
    return next(part[1:] for part in answer[5:].split(b"\0") if part.startswith(b"C"))


def test_logins_are_refused_with_postgresqls_codes_and_take_no_place() -> None:
    with ServedDatabase(WireConfig(max_connections=3)) as served, psycopg.connect(served.url, autocommit=True) as root:
        root.execute("CREATE ROLE grp")
        root.execute("CREATE ROLE out LOGIN")
        root.execute("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
        root.execute("CREATE ROLE two LOGIN CONNECTION LIMIT 1")
        root.execute("GRANT CONNECT ON DATABASE postgres TO two")
        for user, code in (("grp", b"28000"), ("out", b"42501"), ("public", b"28000"), ("pg_x", b"28000")) * 2:
            assert sqlstate_of_login(served, user) == code
        where = f"host={served.host} port={served.port} dbname=postgres user=two"
        with psycopg.connect(where) as first:
            assert sqlstate_of_login(served, "two") == b"53300"
            wait_until(lambda: served.server.connections == 2, "both are there")
            with psycopg.connect(served.url):
                assert sqlstate_of_login(served, "postgres") == b"53300", "of all connections"
            wait_until(lambda: served.server.connections == 2, "both are there")
            assert first.execute("SELECT session_user").fetchall() == [("two",)]
            root.execute("ALTER ROLE two RENAME TO three")
            assert sqlstate_of_login(served, "three") == b"53300", "the connection is the role's, whatever its name"
            root.execute("ALTER ROLE three RENAME TO two")
        wait_until(lambda: served.server.connections == 1, "one is there")
        psycopg.connect(where).close()


def test_clients_are_told_who_they_are(served: ServedDatabase) -> None:
    def told(connection: Connection) -> tuple[str | None, str | None]:
        status = connection.info.parameter_status
        return status("session_authorization"), status("is_superuser")

    with psycopg.connect(served.url, autocommit=True) as root:
        root.execute("CREATE ROLE told LOGIN")
        try:
            assert told(root) == ("postgres", "on")
            with psycopg.connect(
                f"host={served.host} port={served.port} dbname=postgres user=told", autocommit=True
            ) as own:
                assert told(own) == ("told", "off")
                assert own.execute("SHOW is_superuser").fetchall() == [("off",)]
            root.execute("SET ROLE told")
            assert told(root) == ("postgres", "off")
            root.execute("RESET ROLE")
            assert told(root) == ("postgres", "on")
            root.execute("SET SESSION AUTHORIZATION told")
            assert told(root) == ("told", "off")
            root.execute("RESET SESSION AUTHORIZATION")
            root.execute("BEGIN")
            root.execute("SET LOCAL ROLE told")
            assert told(root) == ("postgres", "off")
            root.execute("ROLLBACK")
            assert told(root) == ("postgres", "on")
        finally:
            root.execute("RESET SESSION AUTHORIZATION")
            root.execute("DROP ROLE told")
