"""Defaults as text: a sequence stands in it by its id, and is shown by the name that it has when somebody looks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from google.protobuf.message import Message
from postgast import pg_query_pb2 as pb

from eddyline.expr.ir import Call, Expr, Literal, walk
from eddyline.sql.ast import AstNode, kind_of, name_list
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ColumnDef
from eddyline.sql.sequence_functions import SEQUENCE_FUNCTIONS, named_sequence
from eddyline.sql.system_functions import oid_of

__all__ = ["default_of_sequence", "default_shown", "sequences_in", "shown_default", "with_sequence_marks"]

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")
_MARK: Final = re.compile(r"'<(u[0-9]+)>'::regclass")


def default_of_sequence(item_id: str) -> str:
    """The text of ``nextval``."""
    return f"nextval('<{item_id}>'::regclass)"


def shown_default(column: ColumnDef, name_of: Callable[[str], str | None]) -> str | None:
    """None without a default.  ``name_of``: how a sequence is called, by its id; None of one that is gone."""
    if column.default_text is None:
        return None

    def named(mark: re.Match[str]) -> str:
        name = name_of(mark[1])
        return mark[0] if name is None else "'" + name.replace("'", "''") + "'::regclass"

    return _MARK.sub(named, column.default_text)


def default_shown(column: ColumnDef, catalog: CatalogView) -> str | None:
    """As ``shown_default``, with the names that the search path finds."""

    def name_of(item_id: str) -> str | None:
        item = catalog.item(item_id)
        if item is None:
            return None
        found = catalog.resolve(None, item.name)
        names = (item.name,) if found is not None and found.id == item.id else (item.schema, item.name)
        return ".".join(name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"' for name in names)

    return shown_default(column, name_of)


def sequences_in(expr: Expr | None) -> frozenset[str]:
    """The ids of the sequences that a default calls by their OIDs."""
    if expr is None:
        return frozenset()
    calls = (e.args[0] for e in walk(expr) if isinstance(e, Call) and e.func in SEQUENCE_FUNCTIONS and e.args)
    first = oid_of("u0")
    return frozenset(f"u{a.value - first}" for a in calls if isinstance(a, Literal) and isinstance(a.value, int))


def with_sequence_marks(node: AstNode, catalog: CatalogView) -> AstNode:
    """``node``, a bound DEFAULT, with the constants that name sequences as ``shown_default`` wants them."""
    marked = pb.Node()
    marked.CopyFrom(node)
    _mark(marked, catalog)
    return marked


def _mark(node: AstNode, catalog: CatalogView) -> None:
    if kind_of(node) == "func_call":
        call = node.func_call
        if name_list(call.funcname)[-1] in SEQUENCE_FUNCTIONS and call.args:
            text = _constant(call.args[0])
            if text is not None:
                call.args[0].CopyFrom(_class_of(named_sequence(text, catalog)))
    for field, value in node.ListFields():
        if isinstance(value, Message):
            _mark(value, catalog)
        elif field.message_type is not None:
            for part in value:
                _mark(part, catalog)


def _constant(node: AstNode) -> str | None:
    """The text of a quoted constant, maybe as a ``regclass``."""
    if kind_of(node) == "type_cast" and name_list(node.type_cast.type_name.names)[-1] in ("regclass", "text"):
        return _constant(node.type_cast.arg)
    if kind_of(node) != "a_const" or node.a_const.WhichOneof("val") != "sval":
        return None
    text = str(node.a_const.sval.sval)
    return None if text.isdigit() else text


def _class_of(sequence: CatalogItem) -> AstNode:
    constant = pb.Node(a_const=pb.A_Const(sval=pb.String(sval=f"<{sequence.id}>")))
    name = pb.TypeName(names=[pb.Node(string=pb.String(sval="regclass"))], typemod=-1)
    return pb.Node(type_cast=pb.TypeCast(arg=constant, type_name=name))
