"""``information_schema``: what exists, as the SQL standard has it told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline.adapter.access_rules import schema_key
from eddyline.adapter.pg_objects import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    columns_of_relations,
    key_name,
    keyed,
    owner_name,
    schemas,
)
from eddyline.adapter.pg_sequences import catalog_default, identity_options, schema_sequence_rows
from eddyline.adapter.system_relations import Contents, Row, SystemTable, sorted_items, system_table
from eddyline.repr.type_facts import TYPE_FACTS
from eddyline.repr.types import Kind, is_array
from eddyline.sql.catalog_view import ItemKind
from eddyline.sql.system_functions import DATABASE

__all__ = ["INFORMATION_TABLES"]

_INTEGER_BITS: Final = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_FLOAT_BITS: Final = {Kind.REAL: 24, Kind.DOUBLE: 53}
_TIMES: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)


def _schemata(contents: Contents) -> Iterator[Row]:
    yield from ((DATABASE, name, owner_name(contents, schema_key(name))) for name in schemas(contents))


def _tables(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.TABLE, ItemKind.VIEW):
        table = item.kind is ItemKind.TABLE
        yield DATABASE, item.schema, item.name, "BASE TABLE" if table else "VIEW", "YES" if table else "NO"


def _views(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.VIEW):
        yield DATABASE, item.schema, item.name, item.definition, "NONE", "NO", "NO"


def _columns(contents: Contents) -> Iterator[Row]:
    for item, number, column in columns_of_relations(contents):
        if item.kind in (ItemKind.MATERIALIZED_VIEW, ItemKind.SEQUENCE):
            continue
        kind, array = column.type.kind, is_array(column.type)
        bits = {**_INTEGER_BITS, **_FLOAT_BITS}.get(kind)
        numeric = kind is Kind.NUMERIC and column.type.precision is not None
        digits = 6 if column.type.precision is None else column.type.precision
        yield (
            DATABASE, item.schema, item.name, column.name, number, catalog_default(contents, column),
            "NO" if column.not_null else "YES", "ARRAY" if array else kind.value,
            None if array else column.type.length,
            column.type.precision if numeric else bits,
            10 if kind is Kind.NUMERIC else 2 if bits else None,
            (column.type.scale or 0) if numeric else 0 if kind in _INTEGER_BITS else None,
            digits if kind in _TIMES else 0 if kind is Kind.DATE else None,
            DATABASE, PG_CATALOG, TYPE_FACTS[kind].name, *identity_options(contents, column), "NEVER",
            "YES" if item.kind is ItemKind.TABLE else "NO", None, None, None, None, None, None, None, None, "NO",
            str(number), None,
        )  # fmt: skip


def _table_constraints(contents: Contents) -> Iterator[Row]:
    for table in keyed(contents):
        yield (
            DATABASE, table.schema, key_name(table), DATABASE, table.schema, table.name, "PRIMARY KEY", "NO", "NO",
            "YES",
        )  # fmt: skip


def _key_column_usage(contents: Contents) -> Iterator[Row]:
    for table in keyed(contents):
        for number, position in enumerate(table.primary_key, 1):
            names = (DATABASE, table.schema, key_name(table), DATABASE, table.schema, table.name)
            yield *names, table.columns[position].name, number, None


INFORMATION_TABLES: Final[tuple[SystemTable, ...]] = (
    system_table(INFORMATION_SCHEMA, "schemata", "catalog_name schema_name schema_owner", _schemata),
    system_table(
        INFORMATION_SCHEMA, "tables", "table_catalog table_schema table_name table_type is_insertable_into", _tables
    ),
    system_table(
        INFORMATION_SCHEMA,
        "views",
        "table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into",
        _views,
    ),
    system_table(
        INFORMATION_SCHEMA,
        "columns",
        "table_catalog table_schema table_name column_name ordinal_position:i column_default is_nullable "
        "data_type character_maximum_length:i numeric_precision:i numeric_precision_radix:i numeric_scale:i "
        "datetime_precision:i udt_catalog udt_schema udt_name is_identity "
        "identity_generation identity_start identity_increment identity_maximum identity_minimum identity_cycle "
        "is_generated is_updatable collation_catalog collation_schema collation_name domain_catalog domain_schema "
        "domain_name character_set_name interval_type is_self_referencing dtd_identifier generation_expression",
        _columns,
    ),
    system_table(
        INFORMATION_SCHEMA,
        "sequences",
        "sequence_catalog sequence_schema sequence_name data_type numeric_precision:i numeric_precision_radix:i "
        "numeric_scale:i start_value minimum_value maximum_value increment cycle_option",
        schema_sequence_rows,
    ),
    system_table(
        INFORMATION_SCHEMA,
        "table_constraints",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
        "constraint_type is_deferrable initially_deferred enforced",
        _table_constraints,
    ),
    system_table(
        INFORMATION_SCHEMA,
        "key_column_usage",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
        "column_name ordinal_position:i position_in_unique_constraint:i",
        _key_column_usage,
    ),
    system_table(
        INFORMATION_SCHEMA,
        "referential_constraints",
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog "
        "unique_constraint_schema unique_constraint_name match_option update_rule delete_rule",
    ),
    system_table(
        INFORMATION_SCHEMA, "routines", "specific_catalog specific_schema specific_name routine_name routine_type"
    ),
)
