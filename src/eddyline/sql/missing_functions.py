"""What PostgreSQL has and we do not: functions that are refused by their name instead of being unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eddyline.repr.types import ELEMENT_KINDS, Kind, SqlType

__all__ = ["POSTGRESQL_ONLY", "is_missing_overload"]

#: built-in functions by name; those of types, operators and access methods, which nobody calls, are left out
_NAMES: Final = """
    acos acosd acosh any_value array_fill array_to_json array_to_tsvector asin asind asinh atan atan2 atan2d
    atand atanh bit_count clock_timestamp col_description convert convert_from convert_to corr cos cosd cosh cot
    cotd covar_pop covar_samp cume_dist current_database current_query current_schema current_schemas
    current_setting datemultirange daterange decode degrees dense_rank encode enum_first enum_last
    enum_range erf factorial first_value format gcd gen_random_uuid get_bit get_byte get_current_ts_config
    has_any_column_privilege has_column_privilege has_database_privilege has_foreign_data_wrapper_privilege
    has_function_privilege has_language_privilege has_parameter_privilege has_schema_privilege
    has_sequence_privilege has_server_privilege has_table_privilege has_tablespace_privilege has_type_privilege
    host hostmask inet_client_addr inet_client_port inet_server_addr inet_server_port int4multirange int4range
    int8multirange int8range is_normalized isempty json_agg json_array_elements json_array_elements_text
    json_array_length json_build_array json_each json_each_text json_extract_path json_extract_path_text
    json_object json_object_agg json_object_keys json_populate_record json_populate_recordset json_strip_nulls
    json_to_record json_to_recordset json_to_tsvector json_typeof jsonb_agg jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
    jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_agg jsonb_object_keys
    jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
    jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz
    jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax
    jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof lag last_value
    lcm lead lo_close lo_creat lo_create lo_export lo_from_bytea lo_get lo_import lo_open lo_put lo_unlink
    lower_inc lower_inf masklen min_scale mode multirange netmask network normalize nth_value ntile
    num_nonnulls num_nulls nummultirange numnode numrange obj_description overlaps overlay parse_ident
    percent_rank percentile_cont percentile_disc pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock
    pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock pg_advisory_xact_lock_shared
    pg_available_extensions pg_backend_pid pg_backup_start pg_backup_stop pg_blocking_pids pg_cancel_backend
    pg_char_to_encoding pg_client_encoding pg_collation_for pg_collation_is_visible pg_column_compression
    pg_column_size pg_conf_load_time pg_current_logfile pg_current_snapshot pg_current_wal_flush_lsn
    pg_current_wal_insert_lsn pg_current_wal_lsn pg_current_xact_id pg_current_xact_id_if_assigned
    pg_database_size pg_describe_object pg_export_snapshot pg_filenode_relation pg_function_is_visible
    pg_get_viewdef pg_has_role pg_identify_object pg_indexes_size pg_is_in_recovery pg_is_other_temp_schema
    pg_jit_available pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp
    pg_listening_channels pg_ls_dir pg_my_temp_schema pg_notification_queue_usage pg_notify
    pg_opclass_is_visible pg_operator_is_visible pg_partition_ancestors pg_partition_root pg_partition_tree
    pg_postmaster_start_time pg_promote pg_read_binary_file pg_read_file pg_relation_filenode
    pg_relation_filepath pg_relation_size pg_reload_conf pg_rotate_logfile pg_size_bytes pg_size_pretty pg_sleep
    pg_sleep_for pg_sleep_until pg_stat_file pg_switch_wal pg_table_is_visible pg_table_size
    pg_tablespace_location pg_tablespace_size pg_terminate_backend pg_timezone_abbrevs pg_timezone_names
    pg_total_relation_size pg_trigger_depth pg_try_advisory_lock pg_try_advisory_lock_shared
    pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared pg_type_is_visible pg_typeof
    pg_visible_in_snapshot pg_wal_lsn_diff pg_walfile_name pg_xact_status phraseto_tsquery pi plainto_tsquery
    query_to_xml querytree quote_ident quote_nullable radians random range_agg range_merge rank
    regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_split_to_array
    regexp_split_to_table regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy row_security_active row_to_json scale set_bit set_byte set_config set_masklen
    setseed setweight sha224 sha256 sha384 sha512 shobj_description similar_to_escape sin sind sinh strip
    table_to_xml tan tand tanh timeofday to_ascii to_char to_date to_json to_jsonb to_number to_regclass
    to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole to_regtype
    to_tsquery to_tsvector trim_scale ts_delete ts_filter ts_headline ts_rank ts_rank_cd ts_rewrite tsmultirange
    tsquery_phrase tsrange tstzmultirange tstzrange tsvector_to_array txid_current txid_current_if_assigned
    txid_current_snapshot txid_status unistr upper_inc upper_inf version websearch_to_tsquery width_bucket
    xml_is_well_formed xmlagg xmlcomment xmlexists xpath xpath_exists
"""
POSTGRESQL_ONLY: Final = frozenset(_NAMES.split())

_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.UNKNOWN)
_INTEGERS: Final = (Kind.SMALLINT, Kind.INTEGER, Kind.UNKNOWN)
_REPLACE: Final = (_TEXTS, _TEXTS, _TEXTS)
#: further meanings of names that we have: the kinds that each argument may be of
_MISSING: Final[dict[str, tuple[tuple[Sequence[Kind], ...], ...]]] = {
    "age": (((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UNKNOWN),),),
    "array_agg": ((tuple(ELEMENT_KINDS),),),
    "btrim": (((Kind.BYTEA,), (Kind.BYTEA, Kind.UNKNOWN)),),
    "json_build_object": ((),),
    "length": (((Kind.BYTEA,), _TEXTS),),
    "ltrim": (((Kind.BYTEA,), (Kind.BYTEA, Kind.UNKNOWN)),),
    "regexp_replace": (
        (*_REPLACE, (Kind.SMALLINT, Kind.INTEGER)),
        (*_REPLACE, _INTEGERS, _INTEGERS),
        (*_REPLACE, _INTEGERS, _INTEGERS, _TEXTS),
    ),
    "rtrim": (((Kind.BYTEA,), (Kind.BYTEA, Kind.UNKNOWN)),),
    "substring": ((_TEXTS, _TEXTS, _TEXTS),),
    "to_timestamp": ((_TEXTS, _TEXTS),),
}


def is_missing_overload(name: str, types: Sequence[SqlType]) -> bool:
    """Whether PostgreSQL would take arguments of ``types`` for a meaning of ``name`` that we do not have."""
    return any(
        len(kinds) == len(types) and all(t.kind in accepted for t, accepted in zip(types, kinds, strict=True))
        for kinds in _MISSING.get(name, ())
    )
