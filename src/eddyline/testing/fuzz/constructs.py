"""What random queries and changes are made of, by the names under which a tally counts them."""

from __future__ import annotations

from typing import Final

__all__ = ["CONSTRUCTS"]

#: a tally that lacks one of them has not tested it
CONSTRUCTS: Final = frozenset(
    {
        "abs", "add", "add_bigint", "age", "all", "and", "any", "any_list", "ascii", "at_time_zone",
        "avg_distinct", "avg_float", "avg_int", "avg_interval", "avg_numeric", "between", "between_symmetric",
        "bigint_overflow", "bits", "bool_and", "bool_or", "boolean_chain", "boolean_test", "bytea_concat",
        "bytea_substring", "case", "cast_bigint", "cast_char", "cast_date", "cast_float", "cast_numeric",
        "cast_real", "cast_text", "cast_time", "cast_timestamp", "cast_timestamptz", "cast_uuid",
        "cast_varchar", "ceil", "char_length", "chr_out_of_range", "coalesce", "common_table",
        "common_table_reused", "compare", "compare_numbers", "concat", "concat_any", "concat_operator",
        "concat_ws", "correlated", "count", "count_distinct", "count_distinct_ordered", "count_star",
        "cross_join", "cube", "date_bin", "date_minus_date", "date_out_of_range", "date_plus",
        "date_plus_interval", "date_plus_time", "date_trunc", "delete", "delete_in_subquery", "delete_using",
        "derived_table", "distinct", "distinct_on", "divide", "divide_by_zero", "drop_index", "every",
        "except", "except_all", "exists", "exponent", "extract", "extract_epoch", "extract_interval",
        "extract_time", "fallible_aggregate", "fallible_filtered_aggregate", "fallible_key", "fallible_rows",
        "fallible_select", "fallible_where", "fetch_first", "filter", "float_abs", "float_add",
        "float_by_zero", "float_floor", "float_multiply", "floor", "full_join", "global_aggregate",
        "greatest", "group_by_expression", "grouped", "grouping", "grouping_sets", "guarded_by_case",
        "guarded_divide", "having", "having_subquery", "in", "in_limited", "in_list", "insert",
        "insert_defaults", "insert_select", "insert_series", "int_overflow", "intersect", "intersect_all",
        "interval_add", "interval_divide", "interval_multiply", "is_distinct_from", "is_null", "join",
        "justify", "lateral", "lateral_expression", "least", "left", "left_join", "like", "ln_of_zero",
        "local_at_time_zone", "lower", "lpad", "make_date", "max", "md5", "min", "min_any", "mixed_grouping",
        "mod", "mode_index", "mode_materialized", "mode_plain", "modulo", "modulo_by_zero", "multiply",
        "multiply_bigint", "natural_join", "negate", "nested_exists", "nested_join", "not", "not_exists",
        "not_in", "nullif", "numeric_add", "numeric_by_zero", "numeric_divide", "numeric_multiply",
        "numeric_overflow", "numeric_subtract", "octet_length", "offset", "on_conflict_do_nothing",
        "on_conflict_do_update", "operator_chain", "or", "plain", "plus_interval", "position",
        "power_numeric", "predicate", "real_add", "real_multiply", "refused_write", "regex", "regexp_replace",
        "repeat", "replace", "residual_condition", "returning", "reverse", "right", "right_join", "rollup",
        "round", "round_to_int", "row_compare", "row_distinct", "row_in", "row_in_list", "row_is_null",
        "scalar_compare", "scalar_limit_one", "scalar_subquery", "series", "set_operation",
        "set_operation_limit", "shift", "sign", "simple_case", "smallint_overflow", "split_part", "sqrt",
        "sqrt_of_negative", "stddev", "stddev_float", "string_agg", "string_agg_bytea",
        "string_agg_descending", "string_agg_distinct", "strpos", "subquery_in_select", "substring",
        "substring_negative", "subtract", "sum_bigint", "sum_distinct", "sum_float", "sum_int",
        "sum_interval", "sum_numeric", "sum_real", "text_to_bool", "text_to_date", "text_to_int",
        "text_to_numeric", "text_to_uuid", "theta_join", "time_minus", "time_plus", "timestamp_minus",
        "timestamptz_plus", "timestamptz_trunc", "top", "transaction_commit", "transaction_none",
        "transaction_rollback", "transaction_savepoint", "translate", "trim", "trim_characters", "trunc",
        "trunc_in_zone", "truncate", "type_bigint", "type_bool", "type_bytea", "type_char", "type_date",
        "type_float", "type_free_numeric", "type_int", "type_interval", "type_numeric", "type_odd_float",
        "type_real", "type_smallint", "type_text", "type_time", "type_timestamp", "type_timestamptz",
        "type_uuid", "type_varchar", "union", "union_all", "update", "update_from", "upper", "upsert",
        "using_join", "values", "variance", "with_subquery",
    }
)  # fmt: skip
