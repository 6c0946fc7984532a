"""ORDER BY items: direction and place of NULLs."""

from __future__ import annotations

from eddyline.errors import unsupported
from eddyline.sql.ast import AstNode, enum_name, expect_fields
from eddyline.sql.binding import Locate

__all__ = ["sort_flags"]


def sort_flags(node: AstNode, locate: Locate) -> tuple[bool, bool]:
    """(descending, nulls first) of a SortBy; NULLs are last ascending and first descending unless stated."""
    position = locate(node.location)
    expect_fields(node, ("node", "sortby_dir", "sortby_nulls", "location", "use_op"), position)
    direction = enum_name(node, "sortby_dir")
    if direction == "SORTBY_USING":
        raise unsupported("ORDER BY … USING", position=position)
    desc = direction == "SORTBY_DESC"
    match enum_name(node, "sortby_nulls"):
        case "SORTBY_NULLS_FIRST":
            return desc, True
        case "SORTBY_NULLS_LAST":
            return desc, False
    return desc, desc
