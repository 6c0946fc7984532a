"""Relations that tools ask for, of what is not counted or cannot exist here: numbers are NULL, or there are no rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline.adapter.pg_objects import DATABASE_OID, INFORMATION_SCHEMA, PG_CATALOG
from eddyline.adapter.system_relations import Contents, Row, Viewer, seen_table, sorted_items, system_table
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.keywords import keywords
from eddyline.sql.system_functions import DATABASE, oid_of

__all__ = ["TOOL_TABLES"]

_TABLE_COUNTS: Final = (
    "relid:o schemaname relname seq_scan:o seq_tup_read:o idx_scan:o idx_tup_fetch:o n_tup_ins:o n_tup_upd:o "
    "n_tup_del:o n_tup_hot_upd:o n_live_tup:o n_dead_tup:o n_mod_since_analyze:o n_ins_since_vacuum:o last_vacuum:z "
    "last_autovacuum:z last_analyze:z last_autoanalyze:z vacuum_count:o autovacuum_count:o analyze_count:o "
    "autoanalyze_count:o"
)
_COUNTS: Final = len(_TABLE_COUNTS.split()) - 3
_INDEX_COUNTS: Final = "relid:o indexrelid:o schemaname relname indexrelname idx_scan:o idx_tup_read:o idx_tup_fetch:o"
_SSL: Final = "pid:i ssl:b version cipher bits:i client_dn client_serial issuer_dn"
_GSSAPI: Final = "pid:i gss_authenticated:b principal encrypted:b"
_DATABASE_COUNTS: Final = (
    "datid:o datname numbackends:i xact_commit:o xact_rollback:o blks_read:o blks_hit:o tup_returned:o tup_fetched:o "
    "tup_inserted:o tup_updated:o tup_deleted:o conflicts:o temp_files:o temp_bytes:o deadlocks:o stats_reset:z"
)


def _tables(contents: Contents) -> list[CatalogItem]:
    return sorted_items(contents, ItemKind.TABLE, ItemKind.MATERIALIZED_VIEW)


def _stat_tables(contents: Contents) -> Iterator[Row]:
    for item in _tables(contents):
        yield oid_of(item.id), item.schema, item.name, *[None] * _COUNTS


def _stat_indexes(contents: Contents) -> Iterator[Row]:
    for index in sorted_items(contents, ItemKind.INDEX):
        on = contents.by_id.get(index.on or "")
        if on is not None:
            yield oid_of(on.id), oid_of(index.id), on.schema, on.name, index.name, None, None, None


def _stat_database(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    yield DATABASE_OID, DATABASE, len(viewer.activity), *[None] * 14


def _stat_ssl(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    for seen in viewer.activity:
        yield seen.process, seen.encrypted, *[None] * 6


def _stat_gssapi(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    yield from ((seen.process, False, None, False) for seen in viewer.activity)


def _keywords(contents: Contents) -> Iterator[Row]:
    yield from ((k.word, k.category, None, k.description, None) for k in keywords())


def _constraint_columns(contents: Contents) -> Iterator[Row]:
    for table in sorted_items(contents, ItemKind.TABLE):
        for position in table.primary_key:
            where = (DATABASE, table.schema)
            yield *where, table.name, table.columns[position].name, *where, f"{table.name}_pkey"


TOOL_TABLES: Final = (
    system_table(PG_CATALOG, "pg_stat_user_tables", _TABLE_COUNTS, _stat_tables),
    system_table(PG_CATALOG, "pg_stat_all_tables", _TABLE_COUNTS, _stat_tables),
    system_table(PG_CATALOG, "pg_stat_user_indexes", _INDEX_COUNTS, _stat_indexes),
    system_table(PG_CATALOG, "pg_stat_all_indexes", _INDEX_COUNTS, _stat_indexes),
    seen_table(PG_CATALOG, "pg_stat_database", _DATABASE_COUNTS, _stat_database, "activity"),
    seen_table(PG_CATALOG, "pg_stat_ssl", _SSL, _stat_ssl, "activity"),
    seen_table(PG_CATALOG, "pg_stat_gssapi", _GSSAPI, _stat_gssapi, "activity"),
    system_table(PG_CATALOG, "pg_get_keywords", "word catcode barelabel:b catdesc baredesc", _keywords),
    system_table(
        PG_CATALOG,
        "pg_locks",
        "locktype database:o relation:o page:i tuple:s virtualxid transactionid:o classid:o objid:o objsubid:s "
        "virtualtransaction pid:i mode granted:b fastpath:b waitstart:z",
    ),
    system_table(PG_CATALOG, "pg_available_extensions", "name default_version installed_version comment"),
    system_table(PG_CATALOG, "pg_prepared_xacts", "transaction:o gid prepared:z owner database"),
    system_table(
        PG_CATALOG,
        "pg_stat_replication",
        "pid:i usesysid:o usename application_name client_addr client_hostname client_port:i backend_start:z state "
        "sent_lsn write_lsn flush_lsn replay_lsn sync_priority:i sync_state reply_time:z",
    ),
    system_table(PG_CATALOG, "pg_replication_slots", "slot_name plugin slot_type datoid:o temporary:b active:b"),
    system_table(
        PG_CATALOG,
        "pg_aggregate",
        "aggfnoid:o aggkind aggnumdirectargs:s aggtransfn aggfinalfn aggtranstype:o agginitval",
    ),
    system_table(PG_CATALOG, "pg_amop", "oid:o amopfamily:o amoplefttype:o amoprighttype:o amopstrategy:s amopopr:o"),
    system_table(PG_CATALOG, "pg_amproc", "oid:o amprocfamily:o amproclefttype:o amprocrighttype:o amprocnum:s amproc"),
    system_table(
        PG_CATALOG, "pg_seclabels", "objoid:o classoid:o objsubid:i objtype objnamespace:o objname provider label"
    ),
    system_table(PG_CATALOG, "pg_user_mappings", "umid:o srvid:o srvname umuser:o usename umoptions:T"),
    system_table(PG_CATALOG, "pg_rules", "schemaname tablename rulename definition"),
    system_table(PG_CATALOG, "pg_policies", "schemaname tablename policyname permissive roles:T cmd qual with_check"),
    system_table(
        INFORMATION_SCHEMA,
        "constraint_column_usage",
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name",
        _constraint_columns,
    ),
    system_table(
        INFORMATION_SCHEMA, "check_constraints", "constraint_catalog constraint_schema constraint_name check_clause"
    ),
    system_table(
        INFORMATION_SCHEMA,
        "triggers",
        "trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog event_object_schema "
        "event_object_table action_order:i action_condition action_statement action_orientation action_timing",
    ),
    system_table(
        INFORMATION_SCHEMA,
        "parameters",
        "specific_catalog specific_schema specific_name ordinal_position:i parameter_mode parameter_name data_type",
    ),
)
