"""PostgreSQL's functions about the catalog and the session, as expressions over the catalog's relations.

A call is replaced by the expression that it stands for, which is bound in its place.  What such a function says of an
object is in one relation, ``mz_internal.mz_catalog_texts``, whose columns have names that no argument has.
Objects are known by OIDs, which are bigint here.  Lists that the catalog keeps (``conkey``, ``relacl``) are texts, as
PostgreSQL shows arrays; what its tools do with them, and with lists of its relations' rows, is done with these texts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import postgast
from google.protobuf.message import Message
from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error
from eddyline.sql.ast import AstNode, kind_of, name_list
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.grammar import parse_nodes

__all__ = [
    "DATABASE",
    "ROLE",
    "SERVER_VERSION",
    "expand_any",
    "expand_array",
    "expand_call",
    "expand_cast",
    "expand_procedure",
    "expand_subscript",
    "expand_value",
    "oid_of",
]

#: there is one of each, whatever clients call them
ROLE: Final = "postgres"
DATABASE: Final = "postgres"
SERVER_VERSION: Final = "PostgreSQL 15.0 (Eddyline)"

_FIRST_OID: Final = 16_384  # of what users create; the system's own are below
_SYSTEM_OID: Final = 12_000

Template = Callable[[CatalogView], str]


def oid_of(item_id: str) -> int:
    """The OID of a catalog item: of users' items above 16,384, of the system's own below."""
    number = int("".join(filter(str.isdigit, item_id)) or "0")
    if item_id.startswith("u"):
        return _FIRST_OID + number
    return _SYSTEM_OID + number + (1000 if item_id.startswith("sv") else 2000 if item_id.startswith("st") else 0)


def _text(kind: str, condition: str = "") -> str:
    """What the catalog says of object ``$1`` under ``kind``."""
    return f"(SELECT fn_text FROM mz_internal.mz_catalog_texts WHERE fn_kind = '{kind}' AND fn_oid = $1{condition})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _visible(catalog: CatalogView) -> str:
    path = ", ".join(_quoted(s) for s in ("pg_catalog", "mz_catalog", *catalog.search_path))
    return f"({_text('schema')} IN ({path}))"


def _class_name(catalog: CatalogView) -> str:
    """The name of a relation, qualified unless the search path has its schema."""
    name, schema = _text("name"), _text("schema")
    return f"CASE WHEN {_visible(catalog)} THEN {name} ELSE {schema} || '.' || {name} END"


def _same(template: str) -> Template:
    return lambda catalog: template


def _schema(catalog: CatalogView) -> str:
    found = next((s for s in catalog.search_path if catalog.has_schema(s)), None)
    return "CAST(NULL AS text)" if found is None else f"CAST({_quoted(found)} AS text)"


_NOTHING: Final = _same("CAST(NULL AS text)")
_TRUE: Final = _same("true")
_FALSE: Final = _same("false")
_EXPRESSION: Final = _same("CAST($1 AS text)")  # kept as text

#: by name and number of arguments, which are ``$1`` …
_CALLS: Final[dict[tuple[str, int], Template]] = {
    ("current_database", 0): _same(_quoted(DATABASE)),
    ("current_schema", 0): _schema,
    ("version", 0): _same(_quoted(SERVER_VERSION)),
    ("pg_backend_pid", 0): _same("0"),
    ("pg_is_in_recovery", 0): _FALSE,
    ("pg_get_userbyid", 1): _same(f"CASE WHEN $1 IS NOT NULL THEN {_quoted(ROLE)} END"),
    ("pg_encoding_to_char", 1): _same("CASE $1 WHEN 6 THEN 'UTF8' ELSE '' END"),
    ("pg_table_is_visible", 1): _visible,
    ("pg_type_is_visible", 1): _TRUE,
    ("pg_function_is_visible", 1): _FALSE,
    ("pg_relation_is_publishable", 1): _FALSE,
    ("format_type", 2): _same(_text("type", " AND fn_modifier = coalesce($2, -1)")),
    ("pg_get_expr", 2): _EXPRESSION,
    ("pg_get_expr", 3): _EXPRESSION,
    ("pg_get_viewdef", 1): _same(_text("view")),
    ("pg_get_viewdef", 2): _same(_text("view")),
    ("pg_get_indexdef", 1): _same(_text("index")),
    ("pg_get_indexdef", 3): _same(
        f"CASE WHEN $2 = 0 THEN {_text('index')} ELSE {_text('index column', ' AND fn_modifier = $2')} END"
    ),
    ("pg_get_constraintdef", 1): _same(_text("constraint")),
    ("pg_get_constraintdef", 2): _same(_text("constraint")),
    ("obj_description", 1): _NOTHING,
    ("obj_description", 2): _NOTHING,
    ("shobj_description", 2): _NOTHING,
    ("col_description", 2): _NOTHING,
    ("pg_get_statisticsobjdef_columns", 1): _NOTHING,
    ("to_regtype", 1): _same(
        "(SELECT min(fn_oid) FROM mz_internal.mz_catalog_texts WHERE fn_kind IN ('type', 'type name') AND fn_text = $1)"
    ),
    ("pg_get_function_result", 1): _NOTHING,
    ("pg_get_function_arguments", 1): _NOTHING,
    ("pg_get_serial_sequence", 2): _NOTHING,
    ("pg_get_partkeydef", 1): _NOTHING,
    ("pg_tablespace_location", 1): _NOTHING,
    **{
        (f"has_{what}_privilege", count): _TRUE
        for what in ("table", "schema", "database", "column", "any_column")
        for count in (2, 3)
    },
}
_VALUES: Final[dict[str, Template]] = {
    "SVFOP_CURRENT_USER": _same(_quoted(ROLE)),
    "SVFOP_CURRENT_ROLE": _same(_quoted(ROLE)),
    "SVFOP_USER": _same(_quoted(ROLE)),
    "SVFOP_SESSION_USER": _same(_quoted(ROLE)),
    "SVFOP_CURRENT_CATALOG": _same(_quoted(DATABASE)),
    "SVFOP_CURRENT_SCHEMA": _schema,
}
#: of object identifiers: shown by name
_NAMED_BY: Final[dict[str, Template]] = {
    "regclass": _class_name,
    "regtype": _same(_text("type", " AND fn_modifier = -1")),
    "regnamespace": _same(_text("namespace")),
    "regrole": _same(_quoted(ROLE)),
}
#: columns of the catalog that are lists; a name that a user's column has too only matters where a list is asked for
_LISTS: Final = frozenset(
    ("datacl", "nspacl", "relacl", "attacl", "proacl", "spcacl", "reloptions", "attoptions", "spcoptions", "ftoptions",
     "rolconfig", "indkey", "indclass", "indoption", "indcollation", "conkey", "confkey", "conexclop", "polroles",
     "stxkind", "stxkeys", "prattrs", "proargtypes")
)  # fmt: skip
#: int2vector and its kin, which count from 0
_FROM_ZERO: Final = frozenset(["indkey", "indclass", "indoption", "indcollation", "stxkeys", "prattrs", "proargtypes"])
_PROCEDURES: Final = frozenset(["typinput", "typoutput", "typreceive", "typsend"])
#: types of the catalog's columns that are other ones here
_ALIASES: Final = {"oid": "bigint", "name": "text", "char": "text"}


def expand_call(name: str, arguments: Sequence[AstNode], catalog: CatalogView) -> AstNode | None:
    """The expression that a call stands for; None if it stands for itself."""
    template = _CALLS.get((name, len(arguments)))
    if template is not None:
        return _filled(template(catalog), arguments)
    if name == "array_to_string" and len(arguments) == 2 and _is_list(arguments[0]):
        return _filled("replace(btrim(CAST($1 AS text), '{}'), ',', $2)", arguments)
    if name == "array_upper" and len(arguments) == 2 and _is_list(arguments[0]):
        return _filled("length(CAST($1 AS text)) - length(replace(CAST($1 AS text), ',', '')) + 1", arguments)
    return None


def _is_list(node: AstNode) -> bool:
    """A column of the catalog that is a list, also under a cast, or ARRAY of rows of the catalog."""
    match kind_of(node):
        case "column_ref":
            last = node.column_ref.fields[-1]
            return kind_of(last) == "string" and last.string.sval in _LISTS
        case "type_cast":
            return bool(node.type_cast.type_name.array_bounds) and _is_list(node.type_cast.arg)
        case "sub_link":
            return node.sub_link.sub_link_type == pb.ARRAY_SUBLINK and _reads_catalog(node.sub_link.subselect)
        case _:
            return False


def _reads_catalog(select: AstNode) -> bool:
    """Whether a query names relations of pg_catalog only, and one at least."""
    found = list(postgast.find_nodes(select, pb.RangeVar))
    return bool(found) and all(r.schemaname == "pg_catalog" for r in found)


def expand_any(value: AstNode, array: AstNode, operator: str) -> AstNode | None:
    """``value = ANY (array)`` where the array is a list of the catalog; None for others."""
    if operator != "=" or not _is_list(array):
        return None
    text = "position(',' || CAST($1 AS text) || ',' IN ',' || btrim(CAST($2 AS text), '{}') || ',') > 0"
    return _filled(text, (value, array))


def expand_array(sublink: AstNode) -> AstNode | None:
    """ARRAY(query) over the catalog, as text; None for others."""
    if sublink.sub_link_type != pb.ARRAY_SUBLINK or not _reads_catalog(sublink.subselect):
        return None
    node = pb.Node()
    node.ParseFromString(_parsed("(SELECT '{' || coalesce(string_agg(CAST(fn_item AS text), ','), '') || '}' FROM t)"))
    source = node.sub_link.subselect.select_stmt.from_clause[0]
    subselect = pb.RangeSubselect(subquery=sublink.subselect)
    subselect.alias.aliasname = "fn_list"
    subselect.alias.colnames.append(pb.Node(string=pb.String(sval="fn_item")))
    source.CopyFrom(pb.Node(range_subselect=subselect))
    _fill(node, ())
    return node


def expand_subscript(node: AstNode) -> AstNode | None:
    """``list[n]`` of a list of the catalog, whose items are numbers; None for others."""
    if len(node.indirection) != 1 or kind_of(node.indirection[0]) != "a_indices" or not _is_list(node.arg):
        return None
    index = node.indirection[0].a_indices
    if index.is_slice:
        return None
    name = node.arg.column_ref.fields[-1].string.sval if kind_of(node.arg) == "column_ref" else ""
    first = 0 if name in _FROM_ZERO else 1
    part = f"split_part(replace(btrim($1, '{{}}'), ' ', ','), ',', CAST($2 AS integer) + {1 - first})"
    return _filled(f"CAST(nullif({part}, '') AS bigint)", (node.arg, index.uidx))


def expand_procedure(name: str, other: AstNode) -> AstNode | None:
    """What a column of the catalog that names a function is compared with: 0 means none, which is shown as ``-``."""
    if name not in _PROCEDURES or kind_of(other) != "a_const" or other.a_const.WhichOneof("val") != "ival":
        return None
    return _filled("'-'", ()) if other.a_const.ival.ival == 0 else None


def expand_value(operation: str, catalog: CatalogView) -> AstNode | None:
    """CURRENT_USER and its kin; None for others."""
    template = _VALUES.get(operation)
    return None if template is None else _filled(template(catalog), ())


def expand_cast(node: AstNode, catalog: CatalogView, position: int | None) -> AstNode | None:
    """A cast to a type that only the catalog has; None for others.

    42P01 for a quoted relation name that there is not.
    """
    names = name_list(node.type_name.names)
    if node.type_name.array_bounds and _is_list(node.arg):
        return _filled("CAST($1 AS text)", (node.arg,))
    if node.type_name.array_bounds or (len(names) > 1 and names[-2] != "pg_catalog"):
        return None
    name = names[-1]
    if name == "char" and len(names) == 1:
        return None  # without quotes the grammar makes another name of it
    if name in _ALIASES:
        return _filled(f"CAST($1 AS {_ALIASES[name]})", (node.arg,))
    if name not in _NAMED_BY:
        return None
    literal = node.arg.a_const if kind_of(node.arg) == "a_const" else None
    if name == "regclass" and literal is not None and literal.WhichOneof("val") == "sval":
        return _relation_oid(str(literal.sval.sval), catalog, position)
    if name == "regclass" and kind_of(node.arg) == "param_ref":
        return _filled(_oid_of_name(catalog), (node.arg,))
    return _filled(_NAMED_BY[name](catalog), (node.arg,))


def _oid_of_name(catalog: CatalogView) -> str:
    """Of the relation that text ``$1`` names, whole or in the search path; NULL if there is none.

    Quotes around names are taken off, and keep what is between them from being folded.
    """
    text = "CAST($1 AS text)"
    name = f"CASE WHEN {text} LIKE '%\"%' THEN replace(replace({text}, '\"', ''), ' . ', '.') ELSE lower({text}) END"
    asked = [name, *(f"{_quoted(schema + '.')} || {name}" for schema in catalog.search_path)]
    found = "SELECT fn_oid FROM mz_internal.mz_catalog_texts WHERE fn_kind = 'relation' AND fn_text ="
    return "coalesce(" + ", ".join(f"({found} {spelled})" for spelled in asked) + ")"


def _relation_oid(text: str, catalog: CatalogView, position: int | None) -> AstNode:
    if text.isdigit():
        return _filled(f"CAST({text} AS bigint)", ())
    parts = [p[1:-1].replace('""', '"') if p.startswith('"') else p.lower() for p in text.split(".")]
    item = catalog.resolve(parts[0] if len(parts) > 1 else None, parts[-1])
    if item is None:
        raise make_error("42P01", f'relation "{text}" does not exist', position=position)
    return _filled(f"CAST({oid_of(item.id)} AS bigint)", ())


@functools.lru_cache(maxsize=256)
def _parsed(template: str) -> bytes:
    node: Any = parse_nodes(f"SELECT {template}")[0][2]
    value: bytes = node.select_stmt.target_list[0].res_target.val.SerializeToString()
    return value


def _filled(template: str, arguments: Sequence[AstNode]) -> AstNode:
    """The template's expression with its parameters replaced; no place of it is one in the statement's text."""
    node = pb.Node()
    node.ParseFromString(_parsed(template))
    _fill(node, arguments)
    return node


def _fill(message: Message, arguments: Sequence[AstNode]) -> None:
    if isinstance(message, pb.Node) and message.WhichOneof("node") == "param_ref":
        message.CopyFrom(arguments[message.param_ref.number - 1])
        return
    for field, value in message.ListFields():
        if field.name == "location":
            message.location = -1
        elif field.message_type is None:
            continue
        elif isinstance(value, Message):
            _fill(value, arguments)
        else:
            for part in value:
                _fill(part, arguments)
