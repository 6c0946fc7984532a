"""Roles are of the directory: they are what they were when it is opened again."""

from __future__ import annotations

import random

import pytest

from eddyline.adapter.durability import Durability
from eddyline.adapter.engine import Engine
from eddyline.adapter.restoring import restored_engine
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError
from eddyline.testing.torn_files import TornFiles


def test_roles_rights_and_owners_outlive_a_crash() -> None:
    rng = random.Random(1)
    files = TornFiles(rng)
    first: Engine = restored_engine(Durability(files))
    Session(first).execute_script(
        "CREATE TABLE t (a int); CREATE TABLE kept (a int); CREATE ROLE grp NOINHERIT; "
        " CREATE ROLE ann LOGIN IN ROLE grp;"
        "GRANT SELECT ON t TO ann; GRANT INSERT ON kept TO grp; ALTER TABLE t OWNER TO grp;"
        "CREATE TABLE wide (a int, b int); GRANT SELECT (a) ON wide TO ann;"
        "CREATE VIEW narrow AS SELECT a FROM wide; ALTER VIEW narrow OWNER TO ann;"
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO ann;"
        "ALTER ROLE ann SET lock_timeout = '7s'; ALTER ROLE ALL IN DATABASE postgres SET lock_timeout = 1"
    )
    before = first.catalog.snapshot().access
    left = files.crash(rng)
    first.close()
    again = restored_engine(Durability(left))
    try:
        assert again.catalog.snapshot().access == before
        session = Session(again, "ann")
        assert session.setting("lock_timeout") == "7s"
        Session(again).execute("CREATE TABLE later (a int)")
        session.execute("SELECT a FROM later")
        session.execute("SELECT a FROM t")
        with pytest.raises(DatabaseError, match="permission denied for table kept"):
            session.execute("SELECT a FROM kept")
        session.execute("SELECT a FROM wide")
        session.execute("SELECT a FROM narrow")  # reads what its owner may
        with pytest.raises(DatabaseError, match="permission denied for table wide"):
            session.execute("SELECT b FROM wide")
        session.execute("DROP TABLE t")  # grp's, whose rights ann inherits
        Session(again).execute("CREATE ROLE next")
        ids = [role.id for role in again.catalog.snapshot().access.roles.values()]
        assert len(set(ids)) == len(ids)
    finally:
        again.close()
