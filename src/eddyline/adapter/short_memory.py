"""What a statement may do while the server is short of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from eddyline.adapter.read import ReadContext
from eddyline.sql import statements as st

__all__ = ["admitted"]

#: refused then.  A SELECT is where it needs a dataflow over something stored, which ``read`` sees.
_FILLING: Final = (
    st.Insert, st.Update, st.CreateTableAs, st.CreateIndex, st.CreateMaterializedView, st.Subscribe, st.DeclareCursor,
)  # fmt: skip
#: those that make room, and are neither refused nor stopped
_FREEING: Final = (st.Delete, st.Truncate, st.Drop, st.DropSchema)


@contextmanager
def admitted(context: ReadContext, statement: st.Statement | type[st.Insert | st.Delete]) -> Iterator[ReadContext]:
    """While it runs, with what it may do.  53200 if it needs memory and there is too little left for new work.

    ``statement``: a class for a call that does what statements of that class do.
    """
    kind = statement if isinstance(statement, type) else type(statement)
    if issubclass(kind, _FREEING):
        yield replace(context, admitted=True)
        return
    guard = context.engine.memory
    if issubclass(kind, _FILLING) or (isinstance(statement, st.Copy) and statement.query is None):
        guard.admit()
    with guard.under_way(context.interrupt):
        yield context
