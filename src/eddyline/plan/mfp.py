"""Building a fused map-filter-project, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eddyline.expr.ir import Column, Expr, columns_of, map_columns
from eddyline.plan.dataflow import FilterStep, MapStep, Mfp
from eddyline.repr.types import SqlType

__all__ = ["MfpBuilder"]


class MfpBuilder:
    """A growing Mfp.  ``columns[i]``: where visible column *i* stands among input and appended columns."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._width = len(types)
        self._all_types = list(types)
        self._steps: list[MapStep | FilterStep] = []
        self.columns: list[int] = list(range(len(types)))

    @property
    def types(self) -> tuple[SqlType, ...]:
        """Of the visible columns."""
        return tuple(self._all_types[c] for c in self.columns)

    @property
    def base_width(self) -> int:
        """Of the input row."""
        return self._width

    @property
    def is_identity(self) -> bool:
        return not self._steps and self.columns == list(range(self._width))

    def copy(self) -> MfpBuilder:
        other = MfpBuilder(())
        other._width = self._width
        other._all_types = list(self._all_types)
        other._steps = list(self._steps)
        other.columns = list(self.columns)
        return other

    def resolve(self, expr: Expr) -> Expr:
        """An expression over visible columns as one over input and appended columns."""
        return map_columns(expr, self.columns.__getitem__)

    def map(self, exprs: Iterable[Expr]) -> None:
        """Appends visible columns; a plain column costs nothing."""
        for expr in exprs:
            self.columns.append(self._place(self.resolve(expr)))

    def _place(self, expr: Expr) -> int:
        if isinstance(expr, Column) and expr.type == self._all_types[expr.index]:
            return expr.index
        self._steps.append(MapStep(expr))
        self._all_types.append(expr.type)
        return len(self._all_types) - 1

    def filter(self, predicates: Iterable[Expr]) -> None:
        self._steps.extend(FilterStep(self.resolve(p)) for p in predicates)

    def project(self, columns: Iterable[int]) -> None:
        self.columns = [self.columns[c] for c in columns]

    def extend(self, mfp: MfpBuilder) -> None:
        """Another builder, over this one's visible columns, on top."""
        place = list(self.columns)
        for step in mfp._steps:
            match step:
                case MapStep():
                    place.append(self._place(map_columns(step.expr, place.__getitem__)))
                case FilterStep():
                    self._steps.append(FilterStep(map_columns(step.predicate, place.__getitem__)))
        self.columns = [place[c] for c in mfp.columns]

    def beside(self, left: MfpBuilder, right: MfpBuilder) -> None:
        """Two builders, over this one's visible columns side by side; visible are left's outputs, then right's."""
        inputs = list(self.columns)
        self.columns = inputs[: left.base_width]
        self.extend(left)
        outputs = self.columns
        self.columns = inputs[left.base_width :]
        self.extend(right)
        self.columns = [*outputs, *self.columns]

    def build(self) -> Mfp:
        """The Mfp, without the maps that nothing reads."""
        read = set(self.columns)
        kept: list[tuple[int, MapStep | FilterStep]] = []
        position = len(self._all_types)
        for step in reversed(self._steps):
            match step:
                case FilterStep():
                    read |= columns_of(step.predicate)
                    kept.append((-1, step))
                case MapStep():
                    position -= 1
                    if position in read:
                        read |= columns_of(step.expr)
                        kept.append((position, step))
        place = {c: c for c in range(self._width)}
        steps: list[MapStep | FilterStep] = []
        for position, step in reversed(kept):
            match step:
                case FilterStep():
                    steps.append(FilterStep(map_columns(step.predicate, place.__getitem__)))
                case MapStep():
                    place_here = self._width + sum(isinstance(s, MapStep) for s in steps)
                    steps.append(MapStep(map_columns(step.expr, place.__getitem__)))
                    place[position] = place_here
        return Mfp(tuple(steps), tuple(place[c] for c in self.columns), self.types)
