"""What columns a statement's rows will have, known before it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from eddyline.adapter.prepare import Prepared
from eddyline.adapter.setting_statements import REPLICA_COLUMNS
from eddyline.adapter.setting_values import shown_name
from eddyline.adapter.subscription_rows import SUBSCRIPTION_COLUMNS
from eddyline.repr.types import JSON, TEXT, SqlType
from eddyline.sql import statements as st
from eddyline.sql.cluster_statements import ShowReplica

__all__ = ["Columns", "CopyShape", "copy_shape", "result_columns"]

Columns: TypeAlias = tuple[tuple[str, SqlType], ...]


def result_columns(
    statement: st.Statement, named: Callable[[str], Prepared], cursor: Callable[[str], Columns]
) -> Columns | None:
    """Names and types; None for a statement that gives no rows.

    ``named``: a prepared statement by its name; ``cursor``: a cursor's columns by its name.
    """
    match statement:
        case st.Select():
            return _pairs(statement.query.names, statement.types)
        case st.Subscribe():
            return (*SUBSCRIPTION_COLUMNS, *_pairs(statement.query.names, statement.query.types))
        case st.Insert() | st.Update() | st.Delete():
            found = statement.returning
            return None if found is None else _pairs(found.names, found.types)
        case st.Explain():
            return (("QUERY PLAN", JSON if statement.as_json else TEXT),)
        case st.ShowObjects():
            return _pairs(statement.names, statement.types)
        case st.Show(name="all"):
            return (("name", TEXT), ("setting", TEXT))
        case st.Show():
            return ((shown_name(statement.name), TEXT),)
        case ShowReplica():
            return tuple((name, TEXT) for name in REPLICA_COLUMNS)
        case st.Execute():
            return result_columns(named(statement.name).statement, named, cursor)
        case st.Fetch(move=False):
            return cursor(statement.name)
        case _:
            return None


class CopyShape(NamedTuple):
    """A COPY between the database and its client.  ``inwards``: the client sends; ``columns``: how many."""

    inwards: bool
    columns: int
    binary: bool


def copy_shape(statement: st.Statement) -> CopyShape | None:
    """None for anything but a COPY FROM STDIN or TO STDOUT."""
    if not isinstance(statement, st.Copy) or statement.filename is not None:
        return None
    binary = statement.format in (st.CopyFormat.BINARY, st.CopyFormat.PARQUET)
    if statement.subscribe is not None:
        return CopyShape(False, len(SUBSCRIPTION_COLUMNS) + len(statement.subscribe.query.types), binary)
    if statement.query is None:
        return CopyShape(True, len(statement.columns), binary)
    return CopyShape(False, len(statement.query.types), binary)


def _pairs(names: Sequence[str], types: Sequence[SqlType]) -> Columns:
    return tuple(zip(names, types, strict=True))
