"""What the columns of a map-filter-project are called, worked out only when an error is described."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, overload

from eddyline.expr.describe import written
from eddyline.expr.ir import Column, Expr, MapStep, Mfp, columns_of

__all__ = ["MAX_NAME_CHARS", "MfpNames", "name_of_expression"]

#: a computed column's text is cut to so many characters; columns computed from columns would double theirs each time
MAX_NAME_CHARS: Final = 60


def name_of_expression(expr: Expr, names: Sequence[str]) -> str:
    """The text by which other expressions mention the value of ``expr``: in parentheses where they need them."""
    if isinstance(expr, Column):
        return names[expr.index]
    text = written(expr, names, whole=False)
    return text if len(text) <= MAX_NAME_CHARS else text[: MAX_NAME_CHARS - 1] + "…"


class MfpNames(Sequence[str]):
    """``mfp.names``, then a name for each column that its map steps append.  ``len`` is all of them.

    One is made for each batch, so making it costs nothing.
    """

    def __init__(self, mfp: Mfp) -> None:
        self._mfp = mfp

    @property
    def inputs(self) -> int:
        """How many columns the input has."""
        return len(self._mfp.names)

    @cached_property
    def _names(self) -> list[str]:
        """Those that were asked for so far, and all before them."""
        return list(self._mfp.names)

    @cached_property
    def _exprs(self) -> list[Expr]:
        return [step.expr for step in self._mfp.steps if isinstance(step, MapStep)]

    def __len__(self) -> int:
        return self.inputs + len(self._exprs)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        while len(self._names) <= index:
            # In order, since each may read those before it.
            expr = self._exprs[len(self._names) - self.inputs]
            self._names.append(name_of_expression(expr, self._names))
        return self._names[index]

    def read_by(self, expr: Expr) -> frozenset[int]:
        """The input columns that ``expr`` reads, itself or through appended ones."""
        read: set[int] = set()
        pending = list(columns_of(expr))
        while pending:
            column = pending.pop()
            if column not in read:
                read.add(column)
                if column >= self.inputs:
                    pending.extend(columns_of(self._exprs[column - self.inputs]))
        return frozenset(c for c in read if c < self.inputs)
