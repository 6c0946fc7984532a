"""COPY: rows between tables or queries and files, in PostgreSQL's text, csv and binary formats and in parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from eddyline.adapter.answer import read_rows
from eddyline.adapter.copy_from import copy_from
from eddyline.adapter.copy_to import copy_to
from eddyline.adapter.finishing import finishing
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.pending_reads import answer_with_pending, reads_pending
from eddyline.adapter.read import ReadContext
from eddyline.adapter.read_plan import plan_read
from eddyline.errors import unsupported
from eddyline.expr.ir import Literal
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.types import Kind
from eddyline.sql.query import BoundQuery
from eddyline.sql.statements import Copy, CopyFormat

__all__ = ["HANDED_OVER", "copy"]


class _HandedOver:
    """In place of a file."""


HANDED_OVER: Final = _HandedOver()


def copy(context: ReadContext, statement: Copy, parameters: Sequence[Literal], file: Any) -> Outcome:
    """``file``: what STDIN reads or STDOUT writes; see ``copy_streams``.  ``HANDED_OVER``: rows for STDOUT are the
    outcome's, for the caller to write."""
    _check_zone(context, statement)
    if statement.query is None:
        rows = copy_from(context, statement, file)
    else:
        result = _result(context, statement.query, parameters)
        if file is HANDED_OVER and statement.filename is None:
            return Outcome(f"COPY {result.rows}", result, affected=result.rows)
        rows = copy_to(context.interrupt, statement, result, file)
    return Outcome(f"COPY {rows}", affected=rows)


def _check_zone(context: ReadContext, statement: Copy) -> None:
    """0A000 for timestamptz as text in a session whose TimeZone is not UTC: files are read and written in UTC."""
    if context.catalog.zone is None or statement.format in (CopyFormat.BINARY, CopyFormat.PARQUET):
        return
    if statement.query is not None:
        types = statement.query.types
    else:
        assert statement.table is not None
        types = tuple(statement.table.columns[c].type for c in statement.columns)
    if any(t.kind in (Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ_ARRAY) for t in types):
        raise unsupported("COPY of timestamp with time zone in a session whose TimeZone is not UTC")


def _result(context: ReadContext, query: BoundQuery, parameters: Sequence[Literal]) -> ResultSet:
    relation = query.relation
    end = finishing(query, parameters)
    if reads_pending(context, relation):
        bounds = ReadBounds(memory=context.bounds.memory)
        answer = answer_with_pending(context, relation, parameters, None, bounds=bounds)
        return end.result(answer.rows, answer.at)
    plan = plan_read(relation, context.catalog)
    return end.result(*read_rows(context, plan, relation, parameters, first=end.first))
