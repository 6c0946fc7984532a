"""``nextval``, ``currval``, ``lastval`` and ``setval``: which sequence a call means.

A sequence that a quoted constant names is known from then on by its OID, as every ``regclass`` is, so that a default
outlives a renaming.  One that is named in another way is looked for when the call is made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from eddyline.errors import make_error
from eddyline.expr.fold import fold
from eddyline.expr.ir import Call, Expr, Literal
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT, Kind
from eddyline.sql.ast import AstNode, start_of
from eddyline.sql.binding import Context
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind
from eddyline.sql.conversion import can_coerce, coerce, is_unknown
from eddyline.sql.resolution import function_error
from eddyline.sql.system_functions import oid_of

__all__ = [
    "SEQUENCE_FUNCTIONS",
    "bind_sequence_call",
    "named_sequence",
    "next_value",
    "parsed_name",
    "sequence_of_oid",
]

#: how many arguments they take
SEQUENCE_FUNCTIONS: Final = {"nextval": (1,), "currval": (1,), "lastval": (0,), "setval": (2, 3)}
_WIDE: Final = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_PART: Final = r'"(?:[^"]|"")+"|[^".\s]+'
_NAME: Final = re.compile(rf"\s*({_PART})(?:\s*\.\s*({_PART}))*\s*")


def bind_sequence_call(
    name: str, nodes: Sequence[AstNode], args: Sequence[Expr], context: Context, position: int | None
) -> Expr:
    """42883 for other arguments; 42P01, 42809 for a constant that names no sequence."""
    kinds = [a.type.kind for a in args]
    if len(args) not in SEQUENCE_FUNCTIONS[name] or not _taken(args):
        raise function_error(name, [a.type for a in args], ambiguous=False, position=position)
    parameters = context.binding.parameters
    context.binding.volatile = context.binding.volatile or name
    if not args:
        return Call(name, (), BIGINT)
    which = fold(args[0])
    if isinstance(which, Literal) and isinstance(which.value, str):
        place = context.binding.locate(start_of(nodes[0]))
        which = Literal(oid_of(named_sequence(which.value, context.binding.catalog, place).id), BIGINT)
    elif kinds[0] in _WIDE:
        which = coerce(which, BIGINT, parameters)
    else:
        which = coerce(which, TEXT, parameters)
    places = [context.binding.locate(start_of(node)) for node in nodes[1:]]
    wanted = zip(args[1:], (BIGINT, BOOLEAN), places, strict=False)
    rest = tuple(coerce(arg, target, parameters, position=place) for arg, target, place in wanted)
    return Call(name, (which, *rest), BIGINT)


def _taken(args: Sequence[Expr]) -> bool:
    wanted = (BIGINT, BOOLEAN)
    if not all(is_unknown(a) or can_coerce(a.type, t) for a, t in zip(args[1:], wanted, strict=False)):
        return False
    return not args or is_unknown(args[0]) or args[0].type.kind in (*_WIDE, Kind.TEXT, Kind.VARCHAR)


def next_value(item_id: str, *, of_identity: bool = False) -> Call:
    """What a column takes by default from a sequence of its own.  Of an identity nobody needs a right on that one."""
    which = Literal(oid_of(item_id), BIGINT)
    return Call("nextval", (which, Literal(True, BOOLEAN)) if of_identity else (which,), BIGINT)


def parsed_name(text: str, position: int | None = None) -> tuple[str, ...]:
    """The parts of what a text names as SQL does, one or two; 42602 for what is no name, 0A000 for three."""
    if _NAME.fullmatch(text) is None:
        raise make_error("42602", "invalid name syntax", position=position)
    parts = tuple(map(_folded, re.findall(_PART, text)))
    if len(parts) > 2:
        shown = ".".join(parts)
        raise make_error("0A000", f'cross-database references are not implemented: "{shown}"', position=position)
    return parts


def _folded(part: str) -> str:
    return part[1:-1].replace('""', '"') if part[0] == '"' else part.lower()


def named_sequence(text: str, catalog: CatalogView, position: int | None = None) -> CatalogItem:
    """42602, 42P01, 42809."""
    parts = parsed_name(text, position)
    item = catalog.resolve(parts[0] if len(parts) > 1 else None, parts[-1])
    if item is None:
        raise make_error("42P01", f'relation "{".".join(parts)}" does not exist', position=position)
    return _sequence(item)


def sequence_of_oid(oid: int, catalog: CatalogView) -> CatalogItem:
    """42P01 if it was dropped."""
    item = catalog.item(f"u{oid - oid_of('u0')}")
    if item is None:
        raise make_error("42P01", f"could not open relation with OID {oid}")
    return _sequence(item)


def _sequence(item: CatalogItem) -> CatalogItem:
    if item.kind is not ItemKind.SEQUENCE:
        raise make_error("42809", f'"{item.name}" is not a sequence')
    return item
