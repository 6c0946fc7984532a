"""What psql's backslash commands and metadata queries find, beside PostgreSQL."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase

OBJECTS = """
    CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL, n numeric(10,2), w varchar(7), c char(3), at timestamptz);
    CREATE TABLE pairs (a int, b bigint, x double precision, PRIMARY KEY (b, a));
    CREATE TABLE "Odd name" ("select" int, u uuid);
    CREATE VIEW shown AS SELECT id, n FROM t;
    CREATE MATERIALIZED VIEW kept AS SELECT v, count(*) AS many FROM t GROUP BY v;
    CREATE INDEX by_v ON t (v, n);
    CREATE INDEX by_many ON kept (many)
"""


@pytest.fixture
def twins(served: ServedDatabase, schema: str, postgres: PostgresServer) -> Iterator[tuple[str, int, int]]:
    """A schema that has the same objects in both; its name, and the two ports."""
    with psycopg.connect(served.url, autocommit=True) as ours, postgres.connect() as theirs:
        theirs.execute(f"CREATE SCHEMA {schema}")
        for statement in (f"SET search_path = {schema}", *OBJECTS.split(";")):
            ours.execute(statement)
            theirs.execute(statement)
        yield schema, served.port, postgres.port
        theirs.execute(f"DROP SCHEMA {schema} CASCADE")


def said(schema: str, port: int, command: str) -> str:
    psql = shutil.which("psql")
    assert psql is not None, "psql is needed: apt-get install postgresql-client"
    done = subprocess.run(
        [psql, "-X", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres", "-c", command],
        capture_output=True, text=True, timeout=60, check=False, env={"PGOPTIONS": f"-c search_path={schema}"},
    )  # fmt: skip
    assert done.stderr == "", command
    return done.stdout


@pytest.mark.parametrize(
    "command",
    [
        "d", "dt", "dv", "dm", "di", "d t", "d pairs", 'd "Odd name"', "d shown", "d kept", "d by_v", "d t_pkey", "df",
        "dt *.pairs", "d+ t", "d+ pairs", 'd+ "Odd name"', "d+ by_v", "d+ t_pkey", "df+", "dT", "dT+", "db", "dD",
        "dp t", "des", "dew", "dy", "dRp", "do", "da", "dP", "ddp",
    ],
)  # fmt: skip
def test_psql_shows_what_it_shows_of_postgres(twins: tuple[str, int, int], command: str) -> None:
    schema, ours, theirs = twins
    assert said(schema, ours, f"\\{command}") == said(schema, theirs, f"\\{command}")


@pytest.mark.parametrize("command", ["d+ shown", "d+ kept"])
def test_psql_shows_views_with_details(twins: tuple[str, int, int], command: str) -> None:
    """All but the definition, which PostgreSQL writes anew."""
    schema, *ports = twins
    ours, theirs = (said(schema, port, f"\\{command}").partition("View definition:\n") for port in ports)
    assert ours[:2] == theirs[:2]
    assert ours[2].splitlines()[0].startswith(" SELECT ") and ";" in ours[2]


@pytest.mark.parametrize("command", ["dt+", "di+", "dv+", "dm+"])
def test_psql_lists_with_details_have_no_sizes(twins: tuple[str, int, int], command: str) -> None:
    schema, *ports = twins
    ours, theirs = (
        [line.split("|") for line in said(schema, port, f"\\{command}").splitlines() if "|" in line] for port in ports
    )
    size = [cell.strip() for cell in theirs[0]].index("Size")
    assert {row[size].strip() for row in ours[1:]} == {""}
    for rows in (ours, theirs):
        for row in rows:
            del row[size]
    assert [[c.strip() for c in row] for row in ours] == [[c.strip() for c in row] for row in theirs]


def test_psql_shows_how_to_make_a_view_again(twins: tuple[str, int, int]) -> None:
    schema, ours, _ = twins
    assert said(schema, ours, r"\sv shown") == f"CREATE OR REPLACE VIEW {schema}.shown AS\n SELECT id, n FROM t\n"


def test_psql_lists_databases_and_roles(served: ServedDatabase) -> None:
    assert " postgres | postgres | UTF8 " in said("public", served.port, r"\l")
    assert re.search(r"^ postgres \| postgres \| UTF8 .*\| pg_default \| *$", said("public", served.port, r"\l+"), re.M)
    assert re.search(r"^ public +\| postgres \| +\| *$", said("public", served.port, r"\dn+"), re.M)
    assert re.search(r"^ postgres  \| Superuser, Create role, Create DB", said("public", served.port, r"\du"), re.M)


QUERIES = [
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '{0}' ORDER BY 1",
    """SELECT table_name, column_name, ordinal_position, is_nullable, data_type, character_maximum_length,
              numeric_precision, numeric_scale, datetime_precision, udt_name
       FROM information_schema.columns WHERE table_schema = '{0}' ORDER BY table_name, ordinal_position""",
    """SELECT table_name, constraint_name, column_name, ordinal_position FROM information_schema.key_column_usage
       WHERE constraint_schema = '{0}' ORDER BY 1, 4""",
    """SELECT constraint_name, constraint_type FROM information_schema.table_constraints
       WHERE constraint_schema = '{0}' AND constraint_type <> 'CHECK' ORDER BY 1""",
    """SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum, t.typname, t.typlen
       FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
       WHERE a.attrelid = '{0}.t'::regclass AND a.attnum > 0 ORDER BY a.attnum""",
    """SELECT c.relname, i.indisunique, i.indisprimary, i.indkey::text, pg_get_indexdef(i.indexrelid)
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = '{0}' ORDER BY 1""",
    """SELECT conname, contype, pg_get_constraintdef(c.oid), conrelid::regclass::text FROM pg_constraint c
       JOIN pg_namespace n ON n.oid = connamespace WHERE n.nspname = '{0}' ORDER BY 1""",
    "SELECT schemaname, tablename, indexname FROM pg_indexes WHERE schemaname = '{0}' ORDER BY 3",
    "SELECT relname FROM pg_class WHERE oid = 't'::regclass AND pg_table_is_visible(oid)",
    "SELECT current_user, session_user, current_database(), current_schema(), pg_get_userbyid(10)",
    "SELECT current_schemas(true)::text[], current_schemas(false)::text[], current_schemas(NULL)::text[]",
    "SELECT nspname FROM pg_namespace WHERE nspname = ANY (current_schemas(true)) ORDER BY 1",
    """SELECT pg_size_pretty(x::bigint) FROM (VALUES (0), (10239), (10240), (-10240), (20969983), (20969984),
         (-20969984), (21472739327), (21472739328), (1536), (21988084071424), (22517998136852480),
         (9223372036854775807)) v (x)""",
    """SELECT c.relname, a.attname, array_to_string(i.indkey, ','), array_upper(i.indkey, 1),
              array_to_string(array(SELECT x FROM unnest(i.indkey) x), '-')
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
       WHERE n.nspname = '{0}' ORDER BY 1, 2""",
    "SELECT array_to_string(reloptions || relacl::text[], ',') FROM pg_class WHERE oid = 't'::regclass",
    "SELECT pg_size_pretty(NULL::bigint), pg_my_temp_schema(), pg_has_role('pg_read_all_stats', 'USAGE')",
    "SELECT getdatabaseencoding(), pg_char_to_encoding('utf8'), pg_char_to_encoding('nothing')",
    """SELECT array_remove(conkey, 2::smallint)::text, array_to_string(array_remove(conkey, 1::smallint), '-'),
              array_to_string(conkey || array(SELECT x FROM pg_catalog.unnest(conkey) x), '-'),
              array_to_string(array(SELECT x FROM unnest(confkey) x), '-'), array_upper(conkey, 1),
              array_to_string(array(SELECT 'no. ' || k FROM unnest(conkey) AS u (k) WHERE k::text > '1'), '-')
       FROM pg_constraint c JOIN pg_namespace n ON n.oid = connamespace WHERE n.nspname = '{0}' ORDER BY conname""",
    """SELECT attname, attstorage, attcompression, typstorage FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
       WHERE attrelid = '{0}.t'::regclass AND attnum > 0 ORDER BY attnum""",
    "SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace ORDER BY 1",
    "SELECT relname, relreplident FROM pg_class WHERE oid IN ('t'::regclass, 'kept'::regclass, 'shown'::regclass) "
    "ORDER BY 1",
    # JDBC's columns, primary keys and indexes
    """SELECT * FROM (SELECT n.nspname, c.relname, a.attname, a.atttypid, a.attnotnull, a.atttypmod, t.typname,
              row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum,
              nullif(a.attidentity, '') AS identity,
              pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc, dsc.description, t.typbasetype, t.typtype
       FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)
       JOIN pg_catalog.pg_attribute a ON (a.attrelid = c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
       LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid = def.adrelid AND a.attnum = def.adnum)
       LEFT JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
       LEFT JOIN pg_catalog.pg_class dc ON (dc.oid = dsc.classoid AND dc.relname = 'pg_class')
       WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm') AND a.attnum > 0 AND NOT a.attisdropped
         AND n.nspname LIKE '{0}') c WHERE true ORDER BY nspname, c.relname, attnum""",
    """SELECT r.name, r.attname, r.seq, r.pk FROM (
         SELECT ct.relname AS name, a.attname, ci.relname AS pk,
                (information_schema._pg_expandarray(i.indkey)).n AS seq, a.attnum AS number,
                information_schema._pg_expandarray(i.indkey) AS keys
         FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
         JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
         JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
         WHERE n.nspname = '{0}' AND i.indisprimary) r WHERE r.number = (r.keys).x ORDER BY 1, 4, 3""",
    """SELECT ct.relname, NOT i.indisunique, ci.relname, (i.keys).n, trim(both '"' from
              pg_catalog.pg_get_indexdef(i.indexrelid, (i.keys).n::int, false)) AS col
       FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
       JOIN (SELECT i.indexrelid, i.indrelid, i.indoption, i.indisunique,
                    information_schema._pg_expandarray(i.indkey) AS keys FROM pg_catalog.pg_index i) i
         ON (ct.oid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
       WHERE n.nspname = '{0}' ORDER BY 1, 3, 4""",
    # Metabase's and DBeaver's keys
    """SELECT c.relname, a.attname, k.ord FROM pg_constraint p JOIN pg_class c ON c.oid = p.conrelid
       JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL unnest(p.conkey) WITH ORDINALITY AS k (num, ord)
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.num
       WHERE p.contype = 'p' AND n.nspname = ANY (ARRAY['{0}']) ORDER BY 1, 3""",
    """SELECT i.indkey, i.indoption, c.relname, i.indkey::int[], i.indclass IS NULL FROM pg_catalog.pg_index i
       JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = '{0}' ORDER BY c.relname""",
    # DBeaver's and others' questions about settings
    """SELECT name, setting, unit, vartype, context, source, boot_val, reset_val, enumvals, sourceline, pending_restart
       FROM pg_catalog.pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout',
         'standard_conforming_strings', 'default_transaction_read_only') ORDER BY 1""",
    """SELECT name, setting, vartype, context FROM pg_settings
       WHERE name IN ('server_encoding', 'integer_datetimes', 'max_identifier_length', 'is_superuser') ORDER BY 1""",
    "SELECT current_setting('Standard_Conforming_Strings'), current_setting('statement_timeout', false), "
    "current_setting('max_index_keys'), current_setting('no.such', true)",
    "SELECT to_regtype('int4') = 23, to_regtype('hstore') IS NULL, to_regtype('integer')::regtype::text",
]


def test_settings_are_those_of_the_session(twins: tuple[str, int, int]) -> None:
    query = "SELECT setting, unit, source, current_setting(name) FROM pg_settings WHERE name = 'statement_timeout'"
    found = []
    for port in twins[1:]:
        where = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute("SET statement_timeout = '2min'")
            said = [connection.execute(query).fetchone()]
            with connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 1500")
                said += [connection.execute(query, prepare=True).fetchone() for _ in range(3)]
            connection.execute("RESET statement_timeout")
            said += [connection.execute(query, prepare=True).fetchone() for _ in range(3)]
            for unknown in ("SELECT current_setting('nosuch')", "SELECT current_setting('nosuch', false)"):
                with pytest.raises(psycopg.errors.UndefinedObject) as caught:
                    connection.execute(unknown)
                said.append((caught.value.diag.message_primary,))
        found.append(said)
    assert found[0] == found[1]
    assert found[0][0] == ("120000", "ms", "session", "2min")


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_the_catalog_give_what_postgres_gives(twins: tuple[str, int, int], query: str) -> None:
    schema, ours, theirs = twins
    found = []
    for port in (ours, theirs):
        where = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with psycopg.connect(where, options=f"-c search_path={schema}") as connection:
            found.append(connection.execute(query.format(schema).encode()).fetchall())
    assert found[0] == found[1]


def test_codes_of_the_catalog_are_compared_with_a_parameter(twins: tuple[str, int, int]) -> None:
    schema, *ports = twins
    query = """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %s AND c.relkind = ANY (%s) ORDER BY 1"""
    for kinds, count in (("{r}", 3), ('{"v", "m"}', 2), ("{}", 0)):
        found = []
        for port in ports:
            with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres") as connection:
                found.append(connection.execute(query, [schema, kinds]).fetchall())
        assert found[0] == found[1] and len(found[0]) == count
