"""WITH RECURSIVE as it is written: which queries refer to which, in what order they are bound, and where a query may
refer to itself.

A name stands for a query of the clause unless a WITH further in has the name, or a schema stands before it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from google.protobuf.message import Message
from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error
from eddyline.sql.ast import AstNode, enum_name, kind_of
from eddyline.sql.binding import Locate

__all__ = ["Item", "binding_order", "check_recursion"]


class _Place(enum.Enum):
    """Where a reference stands, as far as it matters; the value says it in the error."""

    ALLOWED = ""
    BASE = "its non-recursive term"
    SUBQUERY = "a subquery"
    OUTER_JOIN = "an outer join"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


_Reference: TypeAlias = tuple[AstNode, _Place]
#: sides of a join whose rows may be padded with NULLs, as fields of the node
_PADDED = {"JOIN_LEFT": ("rarg",), "JOIN_RIGHT": ("larg",), "JOIN_FULL": ("larg", "rarg")}


class Item:
    """One query of the clause; ``recursive``: it refers to itself."""

    def __init__(self, node: AstNode) -> None:
        self.node = node
        self.recursive = False

    @property
    def name(self) -> str:
        return str(self.node.ctename)


def binding_order(ctes: Sequence[AstNode], locate: Locate) -> list[Item]:
    """The queries so that each comes after those it refers to, otherwise as written; 0A000 if they go in circles."""
    items = [Item(node) for node in ctes]
    needs: list[set[str]] = []
    names = {item.name for item in items}
    for item in items:
        found = {name for name in names if any(_references(item.node.ctequery, name, _Place.ALLOWED))}
        item.recursive = item.name in found
        needs.append(found - {item.name})
    waiting = list(zip(items, needs, strict=True))
    order: list[Item] = []
    while waiting:
        ready = next((i for i, (_, need) in enumerate(waiting) if not need), None)
        if ready is None:
            raise make_error(
                "0A000",
                "mutual recursion between WITH items is not implemented",
                position=locate(waiting[0][0].node.location),
                hint="Make one query of them, with a column that says which of them a row belongs to.",
            )
        # As in PostgreSQL, which swaps places: which query of a circle is named depends on it.
        waiting[0], waiting[ready] = waiting[ready], waiting[0]
        (item, _), *waiting = waiting
        order.append(item)
        for _, need in waiting:
            need.discard(item.name)
    return order


def check_recursion(cte: AstNode, locate: Locate) -> None:
    """42P19 unless a query that refers to itself has the form that can be computed; 0A000 for ORDER BY and limits."""
    name, query = str(cte.ctename), cte.ctequery
    if kind_of(query) != "select_stmt":
        raise make_error(
            "42P19",
            f'recursive query "{name}" must not contain data-modifying statements',
            position=locate(cte.location),
        )
    select = query.select_stmt
    if enum_name(select, "op") != "SETOP_UNION":
        raise make_error(
            "42P19",
            f'recursive query "{name}" does not have the form non-recursive-term UNION [ALL] recursive-term',
            position=locate(cte.location),
        )
    _refuse_misplaced(_references(select.larg, name, _Place.BASE), name, locate)
    _refuse_misplaced(_references(select.rarg, name, _Place.ALLOWED), name, locate)
    if select.HasField("with_clause"):
        for inner in select.with_clause.ctes:
            _refuse_misplaced(_references(inner.common_table_expr.ctequery, name, _Place.SUBQUERY), name, locate)
    for field, word in (("sort_clause", "ORDER BY"), ("limit_offset", "OFFSET"), ("limit_count", "LIMIT")):
        value = getattr(select, field)
        present = len(value) > 0 if field == "sort_clause" else select.HasField(field)
        if present:
            node = value[0].sort_by.node if field == "sort_clause" else value
            raise make_error(
                "0A000",
                f"{word} in a recursive query is not implemented",
                position=locate(_location(node)),
                hint="Write it in the query that reads from this one.",
            )


def _refuse_misplaced(references: Iterator[_Reference], name: str, locate: Locate) -> None:
    for number, (node, place) in enumerate(references):
        if place is not _Place.ALLOWED:
            message = f'recursive reference to query "{name}" must not appear within {place.value}'
            raise make_error("42P19", message, position=locate(node.location))
        if number:
            message = f'recursive reference to query "{name}" must not appear more than once'
            raise make_error("42P19", message, position=locate(node.location))


def _location(node: AstNode) -> int:
    inner = getattr(node, node.WhichOneof("node")) if isinstance(node, pb.Node) else node
    return int(getattr(inner, "location", -1))


def _references(node: AstNode, name: str, place: _Place) -> Iterator[_Reference]:
    """Every mention of the query ``name`` at or below ``node``, in the order in which it is written."""
    stack: list[tuple[Message, _Place]] = [(node, place)]
    while stack:
        current, place = stack.pop()
        match current:
            case pb.RangeVar():
                if current.relname == name and not current.schemaname:
                    yield current, place
            case pb.SelectStmt():
                stack.extend(reversed(_of_select(current, name, place)))
            case pb.JoinExpr():
                stack.extend(reversed(_of_join(current, place)))
            case pb.SubLink():
                stack.append((current.testexpr, place))
                stack.append((current.subselect, _Place.SUBQUERY))
            case pb.WithClause():
                continue  # its select has dealt with it
            case _:
                stack.extend((child, place) for child in reversed(_below(current)))


def _below(message: Message, but_not: Sequence[str] = ()) -> list[Message]:
    found: list[Message] = []
    for field, value in message.ListFields():
        if field.message_type is None or field.name in but_not:
            continue
        found.extend([value] if isinstance(value, Message) else value)
    return found


def _of_select(select: AstNode, name: str, place: _Place) -> list[tuple[Message, _Place]]:
    """What of a SELECT may mention the query: nothing from where on a WITH of its own has the name."""
    parts: list[tuple[Message, _Place]] = []
    if select.HasField("with_clause"):
        ctes = [node.common_table_expr for node in select.with_clause.ctes]
        if select.with_clause.recursive and any(cte.ctename == name for cte in ctes):
            return []
        for cte in ctes:
            parts.append((cte.ctequery, place))
            if cte.ctename == name:
                return parts
    operation = enum_name(select, "op")
    if place is not _Place.ALLOWED or operation not in ("SETOP_INTERSECT", "SETOP_EXCEPT"):
        return [*parts, *((child, place) for child in _below(select))]
    left: _Place = place
    right: _Place = place
    if operation == "SETOP_EXCEPT":
        left, right = _Place.EXCEPT if select.all else place, _Place.EXCEPT
    elif select.all:
        left = right = _Place.INTERSECT
    rest = [(child, place) for child in _below(select, ("larg", "rarg"))]
    return [*parts, (select.larg, left), (select.rarg, right), *rest]


def _of_join(join: AstNode, place: _Place) -> list[tuple[Message, _Place]]:
    padded = _PADDED.get(enum_name(join, "jointype"), ()) if place is _Place.ALLOWED else ()
    sides = [(getattr(join, side), _Place.OUTER_JOIN if side in padded else place) for side in ("larg", "rarg")]
    return [*sides, (join.quals, place)]
