"""PostgreSQL's functions about the catalog and the session, as expressions over the catalog's relations.

A call is replaced by the expression that it stands for, which is bound in its place.  What such a function says of an
object is in one relation, ``mz_internal.mz_catalog_texts``, whose columns have names that no argument has.
Objects are known by OIDs, which are bigint here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.message import Message
from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error
from eddyline.sql.ast import AstNode, kind_of, name_list
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.grammar import parse_nodes
from eddyline.sql.quoting_functions import (
    format_template,
    parse_ident_template,
    quote_ident_template,
)

__all__ = [
    "DATABASE",
    "ROLE",
    "SERVER_VERSION",
    "expand_call",
    "expand_cast",
    "expand_procedure",
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


def _has_privilege(kind: str, count: int) -> Template:
    """``count``: of arguments; of two, the current user is meant.  An object goes by name or OID; of several rights,
    with commas between them, one is enough."""
    given, right = ("$1", "$2") if count == 2 else ("$2", "$3")

    def template(catalog: CatalogView) -> str:
        role = _quoted(catalog.users[0]) if count == 2 else "$1"
        return (
            "(SELECT count(*) > 0 FROM mz_internal.mz_role_rights "
            f"WHERE object_kind = '{kind}' AND {_asked_right(right)} "
            f"AND CAST({role} AS text) IN (role_name, role_oid) "
            f"AND CAST({given} AS text) IN (object_name, qualified_name, quoted_name, object_oid))"
        )

    return template


def _has_column_privilege(count: int, *, any_column: bool) -> Template:
    """``count``: of arguments; the first one may be left out, where the current user is meant.  Columns go by name or
    number."""
    alone = count == (2 if any_column else 3)
    given, right = ("$1" if alone else "$2"), f"${count}"
    column = "" if any_column else f"AND CAST(${count - 1} AS text) IN (column_name, column_number) "

    def template(catalog: CatalogView) -> str:
        role = _quoted(catalog.users[0]) if alone else "$1"
        return (
            f"(SELECT count(*) > 0 FROM mz_internal.mz_column_rights WHERE {_asked_right(right)} {column}"
            f"AND CAST({role} AS text) IN (role_name, role_oid) "
            f"AND CAST({given} AS text) IN (object_name, qualified_name, quoted_name, object_oid))"
        )

    return template


def _asked_right(right: str) -> str:
    """Rights are kept without blanks: ``SELECTWITHGRANTOPTION``."""
    return f"right_name = ANY (string_to_array(replace(upper({right}), ' ', ''), ','))"


def _current_user(catalog: CatalogView) -> str:
    return _quoted(catalog.users[0])


def _text(kind: str, condition: str = "") -> str:
    """What the catalog says of object ``$1`` under ``kind``."""
    return f"(SELECT fn_text FROM mz_internal.mz_catalog_texts WHERE fn_kind = '{kind}' AND fn_oid = $1{condition})"


def _doubled(text: str) -> str:
    return text.replace("'", "''")


def _quoted(text: str) -> str:
    return f"'{_doubled(text)}'"


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


def _schemas(catalog: CatalogView) -> str:
    """``current_schemas``: those of the path that there are, and before them, if asked for, what is implied."""
    path = [s for s in dict.fromkeys(catalog.search_path) if catalog.has_schema(s)]
    implied = path if "pg_catalog" in path else ["pg_catalog", *path]
    implicit, plain = (f"CAST(ARRAY[{', '.join(map(_quoted, names))}] AS text[])" for names in (implied, path))
    return f"CASE WHEN $1 THEN {implicit} WHEN NOT $1 THEN {plain} END"


_NOTHING: Final = _same("CAST(NULL AS text)")
_TRUE: Final = _same("true")
_FALSE: Final = _same("false")
#: nothing is counted per object yet
_UNKNOWN_SIZE: Final = _same("CASE WHEN $1 IS NULL THEN CAST(NULL AS bigint) END")
_COUNTED: Final = ("numscans", "live_tuples", "dead_tuples", "tuples_inserted", "tuples_updated", "tuples_deleted")
_PLAIN_NAME: Final = re.compile("[a-z_][a-z0-9_]*")
_SIZED: Final = ("table", "relation", "indexes", "total_relation", "database", "tablespace")


def _expression(catalog: CatalogView) -> str:
    """An expression is kept as text, in which sequences have their schemas: taken off where the path finds them."""
    text = "CAST($1 AS text)"
    for schema in dict.fromkeys(catalog.search_path):
        name = schema if _PLAIN_NAME.fullmatch(schema) else '"' + schema.replace('"', '""') + '"'
        text = f"replace({text}, '(''{_doubled(name)}.', '(''')"
    return text


#: by name and number of arguments, which are ``$1`` …
_CALLS: Final[dict[tuple[str, int], Template]] = {
    ("pg_my_temp_schema", 0): _same("CAST(0 AS bigint)"),  # no temporary objects, and so no schema of theirs
    ("pg_size_pretty", 1): _same(_pretty_size()),
    **{(f"pg_{what}_size", 1): _UNKNOWN_SIZE for what in _SIZED},
    **{(f"pg_stat_get_{what}", 1): _UNKNOWN_SIZE for what in _COUNTED},
    ("pg_has_role", 2): _TRUE,
    ("pg_has_role", 3): _TRUE,
    ("current_database", 0): _same(_quoted(DATABASE)),
    ("current_schema", 0): _schema,
    ("current_schemas", 1): _schemas,
    ("version", 0): _same(_quoted(SERVER_VERSION)),
    ("pg_backend_pid", 0): lambda catalog: str(catalog.process),
    ("pg_advisory_unlock_all", 0): _same("''"),  # there are no advisory locks; pools ask before they lend anew
    ("pg_is_in_recovery", 0): _FALSE,
    ("pg_get_userbyid", 1): _same(_text("role")),
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
    ("pg_get_expr", 2): _expression,
    ("pg_get_expr", 3): _expression,
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
    ("pg_get_partkeydef", 1): _NOTHING,
    ("pg_get_ruledef", 1): _NOTHING,
    ("pg_get_ruledef", 2): _NOTHING,
    ("pg_get_triggerdef", 1): _NOTHING,
    ("pg_get_triggerdef", 2): _NOTHING,
    ("pg_get_functiondef", 1): _NOTHING,
    ("pg_get_function_identity_arguments", 1): _NOTHING,
    ("pg_is_wal_replay_paused", 0): _FALSE,
    ("pg_blocking_pids", 1): _same("CASE WHEN $1 IS NOT NULL THEN CAST(ARRAY[] AS integer[]) END"),
    ("quote_ident", 1): lambda catalog: quote_ident_template("$1"),
    ("quote_nullable", 1): _same("coalesce(quote_literal($1), 'NULL')"),
    ("parse_ident", 1): lambda catalog: parse_ident_template("$1"),
    ("pg_tablespace_location", 1): _same("CASE WHEN $1 IS NOT NULL THEN '' END"),
    **{(f"has_{what}_privilege", count): _TRUE for what in ("tablespace", "type") for count in (2, 3)},
    **{("has_column_privilege", count): _has_column_privilege(count, any_column=False) for count in (3, 4)},
    **{("has_any_column_privilege", count): _has_column_privilege(count, any_column=True) for count in (2, 3)},
    **{
        (f"has_{what}_privilege", count): _has_privilege(what, count)
        for what in ("table", "schema", "database", "sequence")
        for count in (2, 3)
    },
}
#: what programs ask for that is no setting here
_SETTINGS: Final = {"default_table_access_method": "heap", "max_index_keys": "32"}
_VALUES: Final[dict[str, Template]] = {
    "SVFOP_CURRENT_USER": _current_user,
    "SVFOP_CURRENT_ROLE": _current_user,
    "SVFOP_USER": _current_user,
    "SVFOP_SESSION_USER": lambda catalog: _quoted(catalog.users[1]),
    "SVFOP_CURRENT_CATALOG": _same(_quoted(DATABASE)),
    "SVFOP_CURRENT_SCHEMA": _schema,
}
#: of object identifiers: shown by name
_NAMED_BY: Final[dict[str, Template]] = {
    "regclass": _class_name,
    "regtype": _same(
        "CASE WHEN CAST($1 AS text) = '0' THEN '-' ELSE " + _text("type", " AND fn_modifier = -1") + " END"
    ),
    "regnamespace": _same(_text("namespace")),
    "regproc": _same("CASE WHEN CAST($1 AS text) = '0' THEN '-' ELSE CAST($1 AS text) END"),
    "regrole": _same(_text("role")),
}
#: which clients compare with ``classid`` and its like
_OWN_OIDS: Final = {"pg_class": 1259, "pg_attrdef": 2604, "pg_type": 1247, "pg_namespace": 2615, "pg_proc": 1255}
#: what the catalog calls objects whose names stand for their OIDs
_NAMED_OIDS: Final = {"regnamespace": "namespace", "regrole": "role"}
_PROCEDURES: Final = frozenset(["typinput", "typoutput", "typreceive", "typsend"])
_OIDS: Final = frozenset(["oid", "int8", "int4"])
_TEXT_FUNCTIONS: Final = frozenset(["pg_get_serial_sequence", "concat", "format", "quote_ident"])
_TEXTS: Final = frozenset(["text", "varchar", "bpchar", "name"])


def expand_call(name: str, arguments: Sequence[AstNode], catalog: CatalogView) -> AstNode | None:
    """The expression that a call stands for; None if it stands for itself."""
    if name == "current_setting" and 1 <= len(arguments) <= 2:
        return _setting(arguments[0], catalog, missing_ok=len(arguments) == 2 and not _is_false(arguments[1]))
    if name == "pg_get_serial_sequence" and len(arguments) == 2:
        return _serial("min(fn_text)", arguments, catalog)
    if name == "set_config" and len(arguments) == 3:
        return _kept_setting(arguments[0], arguments[1], catalog)
    if name == "format" and arguments and _text_of(arguments[0]) is not None:
        return _filled(format_template(_text_of(arguments[0]) or "", len(arguments)), arguments)
    template = _CALLS.get((name, len(arguments)))
    return None if template is None else _filled(template(catalog), arguments)


def _serial(wanted: str, arguments: Sequence[AstNode], catalog: CatalogView) -> AstNode:
    """What is known of the sequence of a relation's column, both of which are named by texts.

    42P01, 42703 for constants that name nothing.
    """
    table, column = (_text_of(node) for node in arguments)
    if table is not None:
        parts = [p[1:-1].replace('""', '"') if p.startswith('"') else p.lower() for p in table.split(".")]
        item = catalog.resolve(parts[0] if len(parts) > 1 else None, parts[-1])
        if item is None:
            raise make_error("42P01", f'relation "{table}" does not exist')
        if column is not None and all(c.name != column for c in item.columns):
            raise make_error("42703", f'column "{column}" of relation "{item.name}" does not exist')
        oid = str(oid_of(item.id))
    else:
        shown = _shown_class(arguments[0])
        oid = _oid_of_name(catalog) if shown is None else "CAST($1 AS bigint)"
        arguments = arguments if shown is None else (shown, arguments[1])
    where = f"fn_kind = 'serial ' || CAST($2 AS text) AND fn_oid = {oid}"
    return _filled(f"(SELECT {wanted} FROM mz_internal.mz_catalog_texts WHERE {where})", arguments)


def _text_of(node: AstNode) -> str | None:
    """Of a quoted constant, maybe under a cast to text."""
    if kind_of(node) == "type_cast" and name_list(node.type_cast.type_name.names)[-1] in _TEXTS:
        return _text_of(node.type_cast.arg)
    constant = kind_of(node) == "a_const" and node.a_const.WhichOneof("val") == "sval"
    return str(node.a_const.sval.sval) if constant else None


def _is_false(node: AstNode) -> bool:
    if kind_of(node) != "a_const" or node.a_const.WhichOneof("val") != "boolval":
        return False
    return not node.a_const.boolval.boolval


def _setting(name: AstNode, catalog: CatalogView, *, missing_ok: bool) -> AstNode | None:
    """The value of a setting, NULL of one that there is not; 42704 for a constant name of none."""
    known = {**_SETTINGS, **{s.name.lower(): s.value for s in catalog.settings}}
    asked = name.a_const.sval.sval.lower() if kind_of(name) == "a_const" else None
    if asked is not None and asked not in known and not missing_ok:
        raise make_error("42704", f'unrecognized configuration parameter "{name.a_const.sval.sval}"')
    arms = " ".join(f"WHEN {_quoted(n)} THEN {_quoted(value)}" for n, value in known.items() if asked in (None, n))
    return _filled(f"CASE lower($1) {arms} END" if arms else "CAST(NULL AS text)", (name,))


def _kept_setting(name: AstNode, value: AstNode, catalog: CatalogView) -> AstNode | None:
    """The value, where the setting has it already: drivers make sure of it so.  None where something would change."""
    asked, wanted = (n.a_const.sval.sval if kind_of(n) == "a_const" else None for n in (name, value))
    if not asked or wanted is None:
        return None
    kept = any(s.name.lower() == asked.lower() and s.value == wanted for s in catalog.settings)
    return _filled("CAST($1 AS text)", (value,)) if kept else None


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
    name = names[-1]
    if node.type_name.array_bounds or (len(names) > 1 and names[-2] != "pg_catalog"):
        return None
    if name in _OIDS and kind_of(node.arg) == "type_cast":
        return _oid_of_cast(node.arg.type_cast, catalog)
    if name not in _NAMED_BY:
        return None
    named = _named(node.arg)
    if name in _NAMED_OIDS and named is not None and kind_of(named) == "a_const":
        text = str(named.a_const.sval.sval)
        return _filled(f"CAST({text} AS bigint)" if text.isdigit() else _oid_named(name, text, catalog, position), ())
    if name == "regclass" and named is not None:
        literal = named.a_const if kind_of(named) == "a_const" else None
        if literal is None and _is_serial(named):
            return _serial("CAST(min(fn_modifier) AS bigint)", named.func_call.args, catalog)
        if literal is None:
            return _filled(_oid_of_name(catalog), (named,))
        return _relation_oid(str(literal.sval.sval), catalog, position)
    return _filled(_NAMED_BY[name](catalog), (node.arg,))


def _oid_named(kind: str, text: str, catalog: CatalogView, position: int | None) -> str:
    """The OID of a schema or a role; 3F000 for a schema that there is not."""
    name = text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()
    if kind == "regnamespace" and not catalog.has_schema(name):
        raise make_error("3F000", f'schema "{name}" does not exist', position=position)
    return (
        "(SELECT fn_oid FROM mz_internal.mz_catalog_texts "
        f"WHERE fn_kind = '{_NAMED_OIDS[kind]}' AND replace(fn_text, '\"', '') = {_quoted(name)})"
    )


def _oid_of_cast(inner: AstNode, catalog: CatalogView) -> AstNode | None:
    """``x::regclass::oid`` and its kin: the OID itself, which the inner cast would show by its name; None for others.

    Names are left to the inner cast.
    """
    if name_list(inner.type_name.names)[-1] not in _NAMED_BY or _named(inner.arg) is not None:
        return None
    return _filled("CAST($1 AS bigint)", (inner.arg,))


def _named(node: AstNode) -> AstNode | None:
    """What gives the text of a name: a quoted constant, a parameter or a function of texts, maybe under a cast to text;
    None for others."""
    if kind_of(node) == "type_cast" and name_list(node.type_cast.type_name.names)[-1] in _TEXTS:
        return _named(node.type_cast.arg)
    if kind_of(node) == "param_ref":
        return node
    if kind_of(node) == "func_call" and name_list(node.func_call.funcname)[-1] in _TEXT_FUNCTIONS:
        return node
    return node if kind_of(node) == "a_const" and node.a_const.WhichOneof("val") == "sval" else None


def _is_serial(node: AstNode) -> bool:
    if kind_of(node) != "func_call" or len(node.func_call.args) != 2:
        return False
    return name_list(node.func_call.funcname)[-1] == "pg_get_serial_sequence"


def _shown_class(node: AstNode) -> AstNode | None:
    """Of ``x::regclass::text``, which shows an OID by name, the OID ``x``; None for others."""
    casts: list[str] = []
    while kind_of(node) == "type_cast" and len(casts) < 2:
        casts.append(name_list(node.type_cast.type_name.names)[-1])
        node = node.type_cast.arg
    is_shown = len(casts) == 2 and casts[0] in _TEXTS and casts[1] == "regclass"
    return node if is_shown and _named(node) is None else None


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
    oid = oid_of(item.id) if item.schema != "pg_catalog" else _OWN_OIDS.get(item.name, oid_of(item.id))
    return _filled(f"CAST({oid} AS bigint)", ())


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
