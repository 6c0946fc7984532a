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


def _pretty_size() -> str:
    """A number of bytes in the unit in which it has up to five digits, rounded half away from zero."""
    size = "CAST($1 AS bigint)"
    arms = [f"WHEN abs({size}) < 10240 THEN {size} || ' bytes'"]
    for number, unit in enumerate(("kB", "MB", "GB", "TB", "PB")):
        halves = f"({size} / {512 << (10 * number)})"
        limit = "true" if unit == "PB" else f"abs({halves}) < 20479"
        arms.append(f"WHEN {limit} THEN ({halves} + CASE WHEN {halves} < 0 THEN -1 ELSE 1 END) / 2 || ' {unit}'")
    return f"CASE WHEN {size} IS NOT NULL THEN CASE {' '.join(arms)} END END"


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
#: nothing is counted per object yet
_UNKNOWN_SIZE: Final = _same("CASE WHEN $1 IS NULL THEN CAST(NULL AS bigint) END")
_SIZED: Final = ("table", "relation", "indexes", "total_relation", "database", "tablespace")
_EXPRESSION: Final = _same("CAST($1 AS text)")  # kept as text

#: by name and number of arguments, which are ``$1`` …
_CALLS: Final[dict[tuple[str, int], Template]] = {
    ("pg_my_temp_schema", 0): _same("CAST(0 AS bigint)"),  # no temporary objects, and so no schema of theirs
    ("pg_size_pretty", 1): _same(_pretty_size()),
    **{(f"pg_{what}_size", 1): _UNKNOWN_SIZE for what in _SIZED},
    ("pg_has_role", 2): _TRUE,
    ("pg_has_role", 3): _TRUE,
    ("current_database", 0): _same(_quoted(DATABASE)),
    ("current_schema", 0): _schema,
    ("version", 0): _same(_quoted(SERVER_VERSION)),
    ("pg_backend_pid", 0): _same("0"),
    ("pg_is_in_recovery", 0): _FALSE,
    ("pg_get_userbyid", 1): _same(f"CASE WHEN $1 IS NOT NULL THEN {_quoted(ROLE)} END"),
    ("pg_encoding_to_char", 1): _same("CASE $1 WHEN 6 THEN 'UTF8' ELSE '' END"),
    ("pg_table_is_visible", 1): _visible,
    ("pg_type_is_visible", 1): _TRUE,
    ("pg_collation_is_visible", 1): _TRUE,
    ("pg_operator_is_visible", 1): _TRUE,
    ("pg_conversion_is_visible", 1): _TRUE,
    ("pg_opclass_is_visible", 1): _TRUE,
    ("pg_opfamily_is_visible", 1): _TRUE,
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
    ("pg_get_function_sqlbody", 1): _NOTHING,
    ("getdatabaseencoding", 0): _same("'UTF8'"),
    ("pg_char_to_encoding", 1): _same("CASE WHEN upper($1) IN ('UTF8', 'UTF-8') THEN 6 ELSE -1 END"),
    ("pg_get_serial_sequence", 2): _NOTHING,
    ("pg_get_partkeydef", 1): _NOTHING,
    ("pg_tablespace_location", 1): _same("CASE WHEN $1 IS NOT NULL THEN '' END"),
    **{
        (f"has_{what}_privilege", count): _TRUE
        for what in ("table", "schema", "database", "column", "any_column", "tablespace", "type")
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
    "regproc": _same("CASE WHEN CAST($1 AS text) = '0' THEN '-' ELSE CAST($1 AS text) END"),
    "regrole": _same(_quoted(ROLE)),
}
#: columns of the catalog that are lists; a name that a user's column has too only matters where a list is asked for
_LISTS: Final = frozenset(
    ("datacl", "nspacl", "relacl", "attacl", "proacl", "spcacl", "reloptions", "attoptions", "spcoptions", "ftoptions",
     "rolconfig", "indkey", "indclass", "indoption", "indcollation", "conkey", "confkey", "conexclop", "polroles",
     "stxkind", "stxkeys", "prattrs", "proargtypes", "typacl", "defaclacl", "lanacl", "fdwacl", "fdwoptions", "srvacl",
     "srvoptions", "evttags")
)  # fmt: skip
#: int2vector and its kin, which count from 0
_FROM_ZERO: Final = frozenset(["indkey", "indclass", "indoption", "indcollation", "stxkeys", "prattrs", "proargtypes"])
#: what a query that takes a list apart may consist of
_UNNESTING: Final = frozenset(["target_list", "from_clause", "where_clause", "limit_option", "op"])
_CODES: Final = frozenset(["relkind", "contype", "typtype", "prokind"])
_PROCEDURES: Final = frozenset(["typinput", "typoutput", "typreceive", "typsend"])
#: types of the catalog's columns that are other ones here
_ALIASES: Final = {"oid": "bigint", "name": "text", "char": "text"}


def expand_call(name: str, arguments: Sequence[AstNode], catalog: CatalogView) -> AstNode | None:
    """The expression that a call stands for; None if it stands for itself."""
    template = _CALLS.get((name, len(arguments)))
    if template is not None:
        return _filled(template(catalog), arguments)
    if len(arguments) != 2:
        return None
    listed, other = arguments
    if name == "array_to_string" and _is_joined(listed):
        left, right = listed.a_expr.lexpr, listed.a_expr.rexpr
        items = f"concat_ws(',', nullif({_items(left, '$1')}, ''), nullif({_items(right, '$2')}, ''))"
        text = f"CASE WHEN $1 IS NOT NULL OR $2 IS NOT NULL THEN replace({items}, ',', $3) END"
        return _filled(text, (left, right, other))
    if not _is_list(listed):
        return None
    items = _items(listed, "$1")
    match name:
        case "array_remove":
            doubled = f"',' || replace({items}, ',', ',,') || ','"
            kept = f"replace(replace({doubled}, ',' || $2 || ',', ''), ',,', ',')"
            return _filled(f"'{{' || btrim({kept}, ',') || '}}'", arguments)
        case "array_to_string":
            return _filled(f"replace({items}, ',', $2)", arguments)
        case "array_upper":
            last = f"length({items}) - length(replace({items}, ',', ''))"
            return _filled(last if _is_vector(listed) else f"{last} + 1", arguments)
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
        case "func_call":
            call = node.func_call
            return name_list(call.funcname)[-1] == "array_remove" and bool(call.args) and _is_list(call.args[0])
        case _:
            return False


def _items(node: AstNode, parameter: str) -> str:
    """The items of a list, with commas between them, as a template: vectors are shown with blanks and no braces."""
    if kind_of(node) == "type_cast":
        return _items(node.type_cast.arg, parameter)
    text = f"CAST({parameter} AS text)"
    return f"replace({text}, ' ', ',')" if _is_vector(node) else f"btrim({text}, '{{}}')"


def _is_vector(node: AstNode) -> bool:
    return kind_of(node) == "column_ref" and node.column_ref.fields[-1].string.sval in _FROM_ZERO


def _is_code(node: AstNode) -> bool:
    """A column of the catalog whose values are single letters, by its qualified name."""
    return (
        kind_of(node) == "column_ref"
        and len(node.column_ref.fields) == 2
        and kind_of(node.column_ref.fields[1]) == "string"
        and node.column_ref.fields[1].string.sval in _CODES
    )


def _is_joined(node: AstNode) -> bool:
    """``list || list``, both of the catalog."""
    if kind_of(node) != "a_expr" or name_list(node.a_expr.name) != ("||",):
        return False
    return _is_list(node.a_expr.lexpr) and _is_list(node.a_expr.rexpr)


def _reads_catalog(query: AstNode) -> bool:
    """Whether a query names relations of pg_catalog only, and one at least, or takes a list of it apart."""
    found = list(postgast.find_nodes(query, pb.RangeVar))
    return _is_unnesting(query) or (bool(found) and all(r.schemaname == "pg_catalog" for r in found))


def _unnested(function: AstNode) -> AstNode | None:
    """The list of the catalog that ``unnest(list)`` in FROM takes apart; None for other functions."""
    calls = [c for c in postgast.find_nodes(function, pb.FuncCall) if name_list(c.funcname)[-1] == "unnest"]
    if len(function.functions) != 1 or len(calls) != 1 or len(calls[0].args) != 1 or function.ordinality:
        return None
    return calls[0].args[0] if _is_list(calls[0].args[0]) else None


def _is_unnesting(query: AstNode) -> bool:
    """SELECT item FROM unnest(list), maybe with WHERE."""
    select = query.select_stmt
    return (
        {field.name for field, _ in select.ListFields()} <= _UNNESTING
        and len(select.target_list) == 1
        and len(select.from_clause) == 1
        and kind_of(select.from_clause[0]) == "range_function"
        and _unnested(select.from_clause[0].range_function) is not None
    )


def _with_items(query: AstNode) -> AstNode:
    """``SELECT … FROM unnest(list) x`` as a query for the list's items, and their numbers as a second column."""
    changed = pb.Node()
    changed.CopyFrom(query)
    item = changed.select_stmt.from_clause[0]
    function = item.range_function
    listed = _unnested(function)
    assert listed is not None
    text = _items(listed, "$1")
    count = f"length({text}) - length(replace({text}, ',', '')) + 1"
    items = (
        f"(SELECT split_part({text}, ',', CAST(fn_number AS integer)) AS fn_item, fn_number FROM "
        f"generate_series(1, CASE WHEN {text} = '' THEN 0 ELSE {count} END) AS s (fn_number))"
    )
    subselect = pb.RangeSubselect(subquery=_filled(items, (listed,)).sub_link.subselect, lateral=True)
    subselect.alias.CopyFrom(function.alias)
    if not subselect.alias.aliasname:
        subselect.alias.aliasname = "unnest"
    if not subselect.alias.colnames:
        subselect.alias.colnames.append(pb.Node(string=pb.String(sval=subselect.alias.aliasname)))
    item.CopyFrom(pb.Node(range_subselect=subselect))
    number = pb.Node()
    number.res_target.val.CopyFrom(_filled("fn_number", ()))
    changed.select_stmt.target_list.append(number)
    return changed


def expand_any(value: AstNode, array: AstNode, operator: str) -> AstNode | None:
    """``value = ANY (array)`` where the array is a list of the catalog, or a parameter for one of its codes.

    None for others.  Such a parameter is the text of an array of letters.
    """
    if operator == "=" and _is_code(value) and kind_of(array) == "param_ref":
        letters = "replace(replace(btrim(CAST($2 AS text), '{}'), '\"', ''), ' ', '')"
        text = f"position(',' || $1 || ',' IN ',' || {letters} || ',') > 0"
        return _filled(text, (value, array))
    if operator != "=" or not _is_list(array):
        return None
    text = f"position(',' || CAST($1 AS text) || ',' IN ',' || {_items(array, '$2')} || ',') > 0"
    return _filled(text, (value, array))


def expand_array(sublink: AstNode) -> AstNode | None:
    """ARRAY(query) over the catalog, as text; None for others."""
    if sublink.sub_link_type != pb.ARRAY_SUBLINK or not _reads_catalog(sublink.subselect):
        return None
    unnesting = _is_unnesting(sublink.subselect)
    order = " ORDER BY fn_order" if unnesting else ""
    node = pb.Node()
    node.ParseFromString(
        _parsed(f"(SELECT '{{' || coalesce(string_agg(CAST(fn_item AS text), ','{order}), '') || '}}' FROM t)")
    )
    source = node.sub_link.subselect.select_stmt.from_clause[0]
    query = _with_items(sublink.subselect) if unnesting else sublink.subselect
    subselect = pb.RangeSubselect(subquery=query)
    subselect.alias.aliasname = "fn_list"
    subselect.alias.colnames.extend(
        pb.Node(string=pb.String(sval=name)) for name in ("fn_item", "fn_order")[: 1 + unnesting]
    )
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
