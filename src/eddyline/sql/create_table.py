"""CREATE TABLE and CREATE TABLE AS: columns, the primary key, defaults, identities; the rest is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from eddyline.errors import NotSupportedError, make_error, unsupported
from eddyline.repr.types import BIGINT, INTEGER, NUMERIC, SMALLINT, Kind, SqlType
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of, name_list, unwrap
from eddyline.sql.catalog_view import ColumnDef
from eddyline.sql.named_objects import new_name
from eddyline.sql.sequence_options import SequenceOptions, first_definition, sequence_options
from eddyline.sql.shown_defaults import with_sequence_marks
from eddyline.sql.statement_binding import StatementBinding, deparse_expression
from eddyline.sql.statements import CreateTable, CreateTableAs, Statement
from eddyline.sql.type_names import type_of_name

__all__ = ["MAX_COLUMNS", "bind_create_table", "bind_create_table_as", "named_columns"]

MAX_COLUMNS: Final = 1600
_SYSTEM_COLUMNS: Final = frozenset(["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"])
_SERIAL: Final = {
    "serial": INTEGER,
    "serial4": INTEGER,
    "bigserial": BIGINT,
    "serial8": BIGINT,
    "smallserial": SMALLINT,
    "serial2": SMALLINT,
}
_REFUSED: Final = {
    "CONSTR_CHECK": "a CHECK constraint",
    "CONSTR_UNIQUE": "a UNIQUE constraint",
    "CONSTR_FOREIGN": "a FOREIGN KEY constraint",
    "CONSTR_EXCLUSION": "an EXCLUDE constraint",
    "CONSTR_GENERATED": "GENERATED … STORED",
    "CONSTR_ATTR_DEFERRABLE": "a DEFERRABLE constraint",
    "CONSTR_ATTR_DEFERRED": "an INITIALLY DEFERRED constraint",
}
_TABLE_CLAUSES: Final = {
    "partbound": "PARTITION OF",  # which has a parent, too
    "inh_relations": "INHERITS",
    "partspec": "PARTITION BY",
    "of_typename": "CREATE TABLE OF",
    "options": "WITH (…) of a table",
    "tablespacename": "TABLESPACE",
    "access_method": "USING access method",
}


@dataclass(slots=True)
class _Column:
    """A column while its constraints are read."""

    name: str
    type: SqlType
    null: bool | None = None  # True: NULL was written, False: NOT NULL
    default: AstNode | None = None
    position: int | None = None
    sequence: SequenceOptions | None = None  # which its values come from


@dataclass(slots=True)
class _Table:
    name: str
    columns: list[_Column]
    key: tuple[str, ...] | None = None
    key_position: int | None = None

    def set_key(self, key: tuple[str, ...], position: int | None) -> None:
        if self.key is not None:
            raise make_error(
                "42P16", f'multiple primary keys for table "{self.name}" are not allowed', position=position
            )
        self.key, self.key_position = key, position


def bind_create_table(binding: StatementBinding) -> Statement:
    """Zero columns are legal; more than 1,600 are 54011."""
    node = binding.parsed.node
    binding.refuse_parameters()
    for field, name in _TABLE_CLAUSES.items():
        if any(f.name == field for f, _ in node.ListFields()):
            raise unsupported(name)
    expect_fields(node, ("relation", "table_elts", "oncommit", "if_not_exists"))
    schema, name = new_name(node.relation, binding.catalog, binding.locate)
    table = _Table(name, [])
    for element in node.table_elts:
        match kind_of(element):
            case "column_def":
                _column(element.column_def, table, binding)
            case "constraint":
                _table_constraint(element.constraint, table, binding)
            case other:
                raise unsupported("LIKE in CREATE TABLE" if other == "table_like_clause" else other)
    if len(table.columns) > MAX_COLUMNS:
        raise make_error("54011", f"tables can have at most {MAX_COLUMNS} columns")
    key = _key_positions(table)
    columns = tuple(_defined(c, index in key, binding) for index, c in enumerate(table.columns))
    sequences = tuple((index, c.sequence) for index, c in enumerate(table.columns) if c.sequence is not None)
    return CreateTable(schema, name, columns, key, node.if_not_exists, sequences)


def _column(node: AstNode, table: _Table, binding: StatementBinding) -> None:
    position = binding.locate(node.location)
    expect_fields(node, ("colname", "type_name", "is_local", "constraints", "location", "coll_clause"), position)
    name = str(node.colname)
    if any(c.name == name for c in table.columns):
        raise make_error("42701", f'column "{name}" specified more than once')
    if name in _SYSTEM_COLUMNS:
        raise make_error("42701", f'column name "{name}" conflicts with a system column name')
    if node.HasField("coll_clause") and name_list(node.coll_clause.collname)[-1] not in ("C", "POSIX", "default"):
        raise unsupported("a collation other than C", position=binding.locate(node.coll_clause.location))
    column = _typed(name, node.type_name, position, binding)
    table.columns.append(column)
    for constraint in map(unwrap, node.constraints):
        _column_constraint(constraint, column, table, binding)


def _typed(name: str, type_name: AstNode, position: int | None, binding: StatementBinding) -> _Column:
    """The column; ``serial`` and its kin are integers that are not null, with a sequence."""
    names = name_list(type_name.names)
    serial = _SERIAL.get(names[0]) if len(names) == 1 else None
    if serial is None:
        return _Column(name, type_of_name(type_name, binding.locate), position=position)
    place = binding.locate(type_name.location)
    if type_name.array_bounds:
        raise make_error("0A000", "array of serial is not implemented", position=place)
    return _Column(name, serial, null=False, position=position, sequence=SequenceOptions(serial))


def _column_constraint(node: AstNode, column: _Column, table: _Table, binding: StatementBinding) -> None:
    position = binding.locate(node.location)
    match kind := enum_name(node, "contype"):
        case "CONSTR_NULL" | "CONSTR_NOTNULL":
            null = kind == "CONSTR_NULL"
            if column.null is not None and column.null is not null:
                raise _conflicting_null(column, table, position)
            column.null = null
        case "CONSTR_PRIMARY":
            _plain_key(node, position)
            table.set_key((column.name,), position)
        case "CONSTR_DEFAULT":
            if column.default is not None or (column.sequence is not None and not column.sequence.identity):
                raise _twice("multiple default values specified", column, table, position)
            column.default = node.raw_expr
            _check_one_source(column, table, position)
        case "CONSTR_IDENTITY":
            _identity(node, column, table, binding)
        case _:
            raise _refused(kind, position)


def _identity(node: AstNode, column: _Column, table: _Table, binding: StatementBinding) -> None:
    position = binding.locate(node.location)
    if column.sequence is not None and column.sequence.identity:
        raise _twice("multiple identity specifications", column, table, position)
    if column.null:
        raise _conflicting_null(column, table, position)
    options = sequence_options(node.options, binding.locate, node.generated_when)
    own = column.sequence
    column.sequence = replace(options, type=column.type if options.type is None else options.type)
    if own is not None:
        raise _both(column, table, position)
    first_definition(column.sequence, "")  # for its errors
    column.null = False
    _check_one_source(column, table, position)


def _check_one_source(column: _Column, table: _Table, position: int | None) -> None:
    if column.sequence is not None and column.default is not None:
        raise _both(column, table, position)


def _both(column: _Column, table: _Table, position: int | None) -> Exception:
    return _twice("both default and identity specified", column, table, position)


def _twice(what: str, column: _Column, table: _Table, position: int | None) -> Exception:
    where = f'for column "{column.name}" of table "{table.name}"'
    return make_error("42601", f"{what} {where}", position=position)


def _refused(kind: str, position: int | None) -> NotSupportedError:
    return unsupported(_REFUSED.get(kind, "this kind of constraint"), position=position)


def _table_constraint(node: AstNode, table: _Table, binding: StatementBinding) -> None:
    position = binding.locate(node.location)
    kind = enum_name(node, "contype")
    if kind != "CONSTR_PRIMARY":
        raise _refused(kind, position)
    _plain_key(node, position)
    table.set_key(name_list(node.keys), position)


def _plain_key(node: AstNode, position: int | None) -> None:
    if node.deferrable or node.initdeferred:
        raise unsupported("a DEFERRABLE constraint", position=position)
    expect_fields(node, ("contype", "conname", "keys", "location", "is_enforced", "initially_valid"), position)


def _conflicting_null(column: _Column, table: _Table, position: int | None) -> Exception:
    return make_error(
        "42601",
        f'conflicting NULL/NOT NULL declarations for column "{column.name}" of table "{table.name}"',
        position=position,
    )


def _key_positions(table: _Table) -> tuple[int, ...]:
    by_name = {column.name: index for index, column in enumerate(table.columns)}
    positions: list[int] = []
    for name in table.key or ():
        if name not in by_name:
            raise make_error("42703", f'column "{name}" named in key does not exist', position=table.key_position)
        if by_name[name] in positions:
            raise make_error(
                "42701", f'column "{name}" appears twice in primary key constraint', position=table.key_position
            )
        positions.append(by_name[name])
    return tuple(positions)


def _defined(column: _Column, in_key: bool, binding: StatementBinding) -> ColumnDef:
    not_null = in_key or column.null is False
    if column.default is None:
        return ColumnDef(column.name, column.type, not_null)
    default = binding.default(column.default, column.type, column.name)
    text = deparse_expression(with_sequence_marks(column.default, binding.catalog))
    return ColumnDef(column.name, column.type, not_null, default, text)


def bind_create_table_as(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    if node.is_select_into:
        raise unsupported("SELECT INTO")
    into = node.into
    expect_fields(into, ("rel", "col_names", "on_commit", "skip_data"))
    schema, name = new_name(into.rel, binding.catalog, binding.locate)
    binding.refuse_parameters()
    query = binding.query(node.query, place="CREATE TABLE … AS")
    given = name_list(into.col_names)
    if len(given) > len(query.names):
        raise make_error("42601", "too many column names were specified")
    columns = named_columns(query.names, tuple(map(_stored_type, query.types)), given)
    if len(columns) > MAX_COLUMNS:
        raise make_error("54011", f"tables can have at most {MAX_COLUMNS} columns")
    relation = binding.cast_columns(query.as_relation(), tuple(c.type for c in columns))
    kept = not into.skip_data
    return CreateTableAs(schema, name, columns, relation, node.if_not_exists, with_data=kept, reads=query.reads)


def _stored_type(sql_type: SqlType) -> SqlType:
    """A column's type must allow what is inserted later: a numeric without precision keeps a scale per value, an
    OID is any bigint."""
    if sql_type.of_oids:
        return SqlType(sql_type.kind)
    return NUMERIC if sql_type.kind is Kind.NUMERIC and sql_type.precision is None else sql_type


def named_columns(
    names: tuple[str, ...], types: tuple[SqlType, ...], given: tuple[str, ...] = ()
) -> tuple[ColumnDef, ...]:
    """Columns of a query's result, the first ones renamed to ``given``; 42701 for two of one name."""
    columns = [ColumnDef(n, t) for n, t in zip(names, types, strict=True)]
    columns[: len(given)] = [replace(c, name=n) for c, n in zip(columns, given, strict=False)]
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise make_error("42701", f'column "{column.name}" specified more than once')
        seen.add(column.name)
    return tuple(columns)
