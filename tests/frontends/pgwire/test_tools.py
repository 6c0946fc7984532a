"""What database tools ask of the catalog when they connect and open a table, beside PostgreSQL's answers.

The queries are of the kind that DBeaver, Metabase, Grafana, pgAdmin and Superset send, cut to what is in one schema.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase

OBJECTS = """
    CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL DEFAULT 'x', n numeric(10,2), at timestamptz);
    CREATE TABLE "Odd name" ("select" int, u uuid);
    CREATE VIEW shown AS SELECT id, n FROM t;
    CREATE MATERIALIZED VIEW kept AS SELECT v, count(*) AS many FROM t GROUP BY v;
    CREATE INDEX by_v ON t (v, n)
"""


@pytest.fixture(scope="module")
def twins(served: ServedDatabase, postgres: PostgresServer) -> Iterator[tuple[str, str, str]]:
    """A schema that has the same objects in both; its name, and the two places."""
    schema, places = (
        "tools",
        [f"host=127.0.0.1 port={p} user=postgres dbname=postgres" for p in (served.port, postgres.port)],
    )
    for place in places:
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in (f"CREATE SCHEMA {schema}", f"SET search_path = {schema}", *OBJECTS.split(";")):
                connection.execute(statement.encode())
    yield schema, places[0], places[1]
    for place in places:
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


DBEAVER = {
    "databases": "SELECT db.datname, db.datallowconn, db.datistemplate, db.encoding FROM pg_catalog.pg_database db "
    "WHERE datallowconn AND NOT datistemplate OR db.datname = 'postgres' ORDER BY db.datname",
    "schemas": """SELECT n.nspname, d.description FROM pg_catalog.pg_namespace n
        LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
        WHERE nspname = '{0}' ORDER BY nspname""",
    "types": """SELECT t.typname, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name
        FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
        LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
        WHERE t.typname IN ('int4', 'text', '_int4', 'numeric', 'timestamptz')
          AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C')
        ORDER BY 1""",
    "tables": """SELECT c.relname, c.relkind, c.relpersistence, c.relnatts, d.description,
          pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
          pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
        FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
        WHERE c.relnamespace = '{0}'::regnamespace::oid AND c.relkind NOT IN ('i', 'I', 'c') ORDER BY 1""",
    "columns": """SELECT c.relname, a.attname, a.attnum, a.attnotnull, a.atthasdef,
          pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) IS NULL AS def_value, dsc.description, dep.objid
        FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
        LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
        LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
        LEFT OUTER JOIN pg_catalog.pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i'
          AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid
        WHERE NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'c') AND a.attnum > 0
          AND c.relnamespace = '{0}'::regnamespace::oid ORDER BY 1, a.attnum""",
    "constraints": """SELECT c.conname, c.contype, t.relname AS tabrelname, rt.relnamespace AS refnamespace,
          d.description, CASE WHEN c.contype = 'c' THEN "substring"(pg_get_constraintdef(c.oid), 7) ELSE NULL END
        FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
        LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
        LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass
        WHERE t.relnamespace = '{0}'::regnamespace::oid ORDER BY 1""",
    "indexes": """SELECT i.indisunique, i.indkey AS keys, c.relname, c.reltablespace, tc.relname AS tabrelname,
          dsc.description, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr,
          pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr,
          pg_catalog.pg_stat_get_numscans(i.indexrelid) < 0 IS TRUE AS scanned
        FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
        INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
        LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
        WHERE c.relnamespace = '{0}'::regnamespace::oid ORDER BY tabrelname, c.relname""",
    "keywords": "SELECT string_agg(word, ',' ORDER BY word) FROM pg_catalog.pg_get_keywords() "
    "WHERE word IN ('select', 'table', 'user', 'abort') AND catcode <> 'U'",
    "roles": "SELECT a.rolname, a.rolsuper, a.rolcanlogin FROM pg_catalog.pg_roles a WHERE rolname = 'postgres'",
    "triggers": """SELECT x.tgname, p.pronamespace AS func_schema_id, d.description FROM pg_catalog.pg_trigger x
        INNER JOIN pg_catalog.pg_class t ON t.oid = x.tgrelid
        LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid = x.tgfoid
        LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = x.oid AND d.objsubid = 0
          AND d.classoid = 'pg_trigger'::regclass
        WHERE t.relnamespace = '{0}'::regnamespace::oid AND NOT x.tgisinternal""",
    "sessions": """SELECT sa.datname, sa.state, sa.backend_type, pg_blocking_pids(sa.pid) AS blocked
        FROM pg_catalog.pg_stat_activity sa WHERE sa.pid = pg_backend_pid()""",
    "locks": "SELECT count(*) FROM pg_catalog.pg_locks l WHERE NOT l.granted AND l.locktype = 'relation' "
    "AND l.database IS NULL",
    "extensions": """SELECT e.extname, n.nspname, e.extversion FROM pg_catalog.pg_extension e
        JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname <> 'plpgsql' ORDER BY 1""",
    "available extensions": "SELECT count(*) FROM pg_catalog.pg_available_extensions WHERE name = 'no such thing'",
    "sequences": """SELECT c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
        WHERE c.relkind = 'S' AND c.relnamespace = '{0}'::regnamespace::oid""",
    "functions": """SELECT p.proname, p.proargnames, pg_catalog.pg_get_function_identity_arguments(p.oid)
        FROM pg_catalog.pg_proc p WHERE p.pronamespace = '{0}'::regnamespace::oid ORDER BY p.proname""",
    "rules": """SELECT r.rulename, pg_catalog.pg_get_ruledef(r.oid) FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = '{0}'::regnamespace::oid AND r.rulename <> '_RETURN'""",
    "statistics": "SELECT relname, n_live_tup < 0 IS TRUE FROM pg_catalog.pg_stat_user_tables WHERE schemaname = '{0}' "
    "AND relname = 't'",
    "foreign": "SELECT count(*) FROM pg_catalog.pg_foreign_server s "
    "JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw",
    "inherited": """SELECT i.inhseqno, c.relname FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c
        WHERE i.inhparent = '{0}.t'::regclass AND c.oid = i.inhrelid ORDER BY i.inhseqno""",
    "dependent": """SELECT DISTINCT dep.deptype, cl.relkind FROM pg_depend dep
        LEFT JOIN pg_class cl ON dep.objid = cl.oid WHERE dep.refobjid = 0 AND dep.classid = 'pg_class'::regclass""",
}

METABASE = {
    "tables": """SELECT n.nspname AS "schema", c.relname AS "name",
          CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
            WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type",
          d.description, stat.n_live_tup < 0 IS TRUE AS estimated
        FROM pg_catalog.pg_class c INNER JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid
        LEFT JOIN pg_catalog.pg_description d
          ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
        LEFT JOIN pg_stat_user_tables stat ON n.nspname = stat.schemaname AND c.relname = stat.relname
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.nspname = '{0}'
          AND c.relkind IN ('r', 'p', 'v', 'f', 'm') ORDER BY "type", "schema", "name" """,
    "privileges": """WITH table_privileges AS (
          SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,
            pg_catalog.has_any_column_privilege(current_user,
              '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',
              'update') AS update,
            pg_catalog.has_any_column_privilege(current_user,
              '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',
              'select') AS select,
            pg_catalog.has_table_privilege(current_user,
              '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',
              'delete') AS delete
          FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
                UNION SELECT schemaname, viewname AS objectname FROM pg_catalog.pg_views
                UNION SELECT schemaname, matviewname AS objectname FROM pg_catalog.pg_matviews) t
          WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema' AND t.schemaname = '{0}'
            AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
        SELECT t.* FROM table_privileges t ORDER BY 3""",
    "fields": """SELECT c.column_name AS name, CASE WHEN c.udt_schema IN ('public', 'pg_catalog')
            THEN format('%s', c.udt_name) ELSE format('"%s"."%s"', c.udt_schema, c.udt_name) END AS database_type,
          c.ordinal_position - 1 AS position, c.table_schema, c.table_name, pk.column_name IS NOT NULL AS pk,
          col_description(CAST(CAST(format('%I.%I', CAST(c.table_schema AS text), CAST(c.table_name AS text))
            AS regclass) AS oid), c.ordinal_position) AS remarks,
          (column_default IS NULL OR lower(column_default) = 'null') AND is_nullable = 'NO' AS required,
          column_default IS NOT NULL AND column_default LIKE '%nextval(%' OR is_identity <> 'NO' AS auto_increment
        FROM information_schema.columns c LEFT JOIN (
          SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints tc
          INNER JOIN information_schema.key_column_usage kc ON tc.constraint_name = kc.constraint_name
            AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name
          WHERE tc.constraint_type = 'PRIMARY KEY') pk
          ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
        WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema = '{0}'
          AND c.table_name = 't' ORDER BY 4, 5, 3""",
    "foreign keys": """SELECT fk_ns.nspname, fk_table.relname, fk_column.attname FROM pg_constraint c
        JOIN pg_class fk_table ON c.conrelid = fk_table.oid JOIN pg_namespace fk_ns ON c.connamespace = fk_ns.oid
        JOIN pg_attribute fk_column ON c.conrelid = fk_column.attrelid
        JOIN pg_class pk_table ON c.confrelid = pk_table.oid
        WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND c.contype = 'f'::char
          AND fk_column.attnum = ANY (c.conkey) ORDER BY 1, 2""",
    "enums": """SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
        WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)""",
    "time zone": "SELECT current_setting('TIMEZONE') <> ''",
}

GRAFANA = {
    "version": "SELECT current_setting('server_version_num')::int / 10000 AS version",
    "timescale": "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'",
    "tables": """SELECT CASE WHEN quote_ident(table_schema) IN (
            SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
            FROM generate_series(
              array_lower(string_to_array(current_setting('search_path'), ','), 1),
              array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
              string_to_array(current_setting('search_path'), ',') s)
          THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
        FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN
          ('information_schema', 'pg_catalog', '_timescaledb_cache') AND table_schema = '{0}' ORDER BY 1""",
    "columns": """SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
        WHERE CASE WHEN array_length(parse_ident('{0}.t'), 1) = 2
            THEN quote_ident(table_schema) = (parse_ident('{0}.t'))[1]
              AND quote_ident(table_name) = (parse_ident('{0}.t'))[2]
            ELSE quote_ident(table_name) = '{0}.t' END ORDER BY 1""",
    "quoted": """SELECT quote_ident(x), quote_literal(x) FROM (VALUES ('plain'), ('Upper'), ('a b'), ('select'),
          ('int'), ('a"b'), ('_x1'), ('1x'), ('it''s'), ('a$b'), ('é'), ('user'), ('name'), ('')) v (x) ORDER BY x""",
}

PGADMIN = {
    "database": """SELECT db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
          has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
        FROM pg_catalog.pg_database db WHERE db.datname = current_database()""",
    "encryption": "SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()",
    "tls": "SELECT ssl, version FROM pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid()",
    "schemas": """SELECT nsp.nspname AS name, has_schema_privilege(nsp.oid, 'CREATE') AS can_create,
          has_schema_privilege(nsp.oid, 'USAGE') AS has_usage
        FROM pg_catalog.pg_namespace nsp WHERE nspname NOT LIKE E'pg\\\\_%' AND nspname = '{0}'
          AND NOT ((nsp.nspname = 'pg_catalog' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class
            WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1))) ORDER BY nspname""",
    "tables": """SELECT rel.relname AS name,
          (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount,
          (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE
            AND tgenabled = 'O') AS has_enable_triggers,
          (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
          (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits
        FROM pg_catalog.pg_class rel WHERE rel.relkind IN ('r', 's', 't', 'p')
          AND rel.relnamespace = '{0}'::regnamespace::oid AND NOT rel.relispartition ORDER BY rel.relname""",
    "columns": """SELECT DISTINCT att.attname AS name, att.attnum AS oid, format_type(ty.oid, NULL) AS datatype,
          att.attnotnull AS not_null, CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL
            THEN True ELSE False END AS has_default_val, des.description, seq.seqtypid
        FROM pg_catalog.pg_attribute att JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
        JOIN pg_catalog.pg_namespace tn ON tn.oid = ty.typnamespace
        JOIN pg_catalog.pg_class cl ON cl.oid = att.attrelid
        JOIN pg_catalog.pg_namespace na ON na.oid = cl.relnamespace
        LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = ty.typelem
        LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
        LEFT OUTER JOIN (pg_catalog.pg_depend JOIN pg_catalog.pg_class cs
          ON classid = 'pg_class'::regclass AND objid = cs.oid AND cs.relkind = 'S')
          ON refobjid = att.attrelid AND refobjsubid = att.attnum
        LEFT OUTER JOIN pg_catalog.pg_description des
          ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
        LEFT OUTER JOIN pg_catalog.pg_sequence seq ON cs.oid = seq.seqrelid
        WHERE att.attrelid = '{0}.t'::regclass::oid AND att.attnum > 0 AND att.attisdropped IS FALSE
        ORDER BY att.attnum""",
    "settings": "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
    "replication": "SELECT CASE WHEN usesuper THEN pg_catalog.pg_is_in_recovery() ELSE FALSE END AS inrecovery, "
    "CASE WHEN usesuper THEN pg_catalog.pg_is_wal_replay_paused() ELSE FALSE END AS isreplaypaused "
    "FROM pg_catalog.pg_user WHERE usename = current_user AND NOT usesuper",
    "activity": """SELECT count(*) FILTER (WHERE state = 'active') >= 1, count(*) FILTER (WHERE state = 'idle') >= 0
        FROM pg_catalog.pg_stat_activity WHERE datname = (SELECT datname FROM pg_catalog.pg_database
          WHERE datname = current_database())""",
    "totals": "SELECT xact_commit < 0 IS TRUE, numbackends > 0, tup_inserted < 0 IS TRUE, blks_hit < 0 IS TRUE "
    "FROM pg_catalog.pg_stat_database WHERE datname = current_database()",
    "shared": "SELECT count(*) FROM pg_catalog.pg_shdescription WHERE objoid = 0",
    "prepared": "SELECT count(*) FROM pg_catalog.pg_prepared_xacts",
}

SUPERSET = {
    "databases": "SELECT datname FROM pg_database WHERE datistemplate = false",
    "schemas": "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname = '{0}' ORDER BY nspname",
    "views": """SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = '{0}' AND c.relkind = ANY (ARRAY['v', 'm']) ORDER BY 1""",
    "comment": "SELECT pgd.description FROM pg_catalog.pg_description pgd "
    "WHERE pgd.objsubid = 0 AND pgd.objoid = '{0}.t'::regclass",
    "path": "SELECT current_schema(), current_setting('search_path')",
    "schema privileges": "SELECT grantee, privilege_type FROM information_schema.role_table_grants "
    "WHERE table_schema = '{0}' AND table_name = 't' ORDER BY 2",
    "columns": "SELECT column_name, data_type, is_nullable, collation_name, is_updatable, domain_name, "
    "is_self_referencing, dtd_identifier IS NOT NULL FROM information_schema.columns "
    "WHERE table_schema = '{0}' AND table_name = 't' ORDER BY ordinal_position",
    "sequences": "SELECT sequence_name FROM information_schema.sequences WHERE sequence_schema = '{0}'",
    "constraint columns": "SELECT table_name, column_name, constraint_name FROM "
    "information_schema.constraint_column_usage WHERE constraint_schema = '{0}' ORDER BY 1, 2, 3",
    "checks": "SELECT constraint_name FROM information_schema.check_constraints "
    "WHERE constraint_schema = '{0}' AND check_clause NOT LIKE '%IS NOT NULL'",
    "triggers": "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = '{0}'",
    "parameters": "SELECT parameter_name FROM information_schema.parameters WHERE specific_schema = '{0}'",
}

TOOLS = {"dbeaver": DBEAVER, "metabase": METABASE, "grafana": GRAFANA, "pgadmin": PGADMIN, "superset": SUPERSET}
QUERIES = {f"{tool}: {what}": query for tool, asked in TOOLS.items() for what, query in asked.items()}


@pytest.mark.parametrize("name", QUERIES)
def test_a_tool_is_answered_as_by_postgresql(twins: tuple[str, str, str], name: str) -> None:
    schema, *places = twins
    query = QUERIES[name].replace("{0}", schema)
    found = []
    for place in reversed(places):
        with psycopg.connect(place, options=f"-c search_path={schema}") as connection:
            found.append(connection.execute(query.encode()).fetchall())
    assert found[1] == found[0]
