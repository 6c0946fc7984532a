"""A growing list of dataflow operators, and streams over it that carry a map-filter-project not yet rendered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from eddyline.expr.ir import Expr
from eddyline.plan.dataflow import (
    Arrange,
    BatchSource,
    ConstantSource,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
    Negate,
    Operator,
    Union,
)
from eddyline.plan.mfp import MfpBuilder
from eddyline.repr.types import SqlType

__all__ = ["OperatorList", "Stream", "inputs_of"]

_encode = msgspec.msgpack.Encoder().encode


class OperatorList:
    """Operators in topological order; one that is there already is not added again, so that equal arrangements, and
    everything else that is equal, are rendered once."""

    def __init__(self) -> None:
        self.operators: list[Operator] = []
        self._positions: dict[bytes, int] = {}

    def add(self, operator: Operator) -> int:
        """The position of an operator equal to ``operator``."""
        key = _encode(operator)
        found = self._positions.get(key)
        if found is None:
            found = self._positions[key] = len(self.operators)
            self.operators.append(operator)
        return found

    def reachable(self, root: int) -> tuple[Operator, ...]:
        """The operators that ``root`` needs, renumbered; ``root`` is the last."""
        needed = {root}
        for position in range(root, -1, -1):
            if position in needed:
                needed.update(inputs_of(self.operators[position]))
        place = {old: new for new, old in enumerate(sorted(needed))}
        return tuple(_renumbered(self.operators[old], place) for old in sorted(needed))

    def stream(self, operator: Operator) -> Stream:
        return Stream(self, self.add(operator), MfpBuilder(operator.types))

    def union(self, *inputs: Stream) -> Stream:
        if len(inputs) == 1:
            return inputs[0]
        positions = tuple(i.position() for i in inputs)
        return self.stream(Union(positions, inputs[0].types))

    def negate(self, source: Stream) -> Stream:
        return self.stream(Negate(source.position(), source.types))


def inputs_of(operator: Operator) -> tuple[int, ...]:
    """The positions that an operator reads."""
    match operator:
        case ImportSource() | ImportIndex() | ConstantSource() | BatchSource():
            return ()
        case Join():
            return (operator.left, operator.right)
        case Union():
            return operator.inputs
        case _:
            return (operator.input,)


def _renumbered(operator: Operator, place: dict[int, int]) -> Operator:
    match operator:
        case ImportSource() | ImportIndex() | ConstantSource() | BatchSource():
            return operator
        case Join():
            return msgspec.structs.replace(operator, left=place[operator.left], right=place[operator.right])
        case Union():
            return msgspec.structs.replace(operator, inputs=tuple(place[i] for i in operator.inputs))
        case _:
            return msgspec.structs.replace(operator, input=place[operator.input])


@dataclass
class Stream:
    """The output of ``base`` through ``mfp``.

    ``base`` is the position of an operator, or a Join that is not added yet, and takes the mfp in.
    """

    into: OperatorList
    base: int | Join
    mfp: MfpBuilder

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.mfp.types

    def map(self, exprs: Iterable[Expr]) -> Stream:
        out = self.mfp.copy()
        out.map(exprs)
        return Stream(self.into, self.base, out)

    def filter(self, predicates: Iterable[Expr]) -> Stream:
        out = self.mfp.copy()
        out.filter(predicates)
        return Stream(self.into, self.base, out)

    def project(self, columns: Iterable[int]) -> Stream:
        out = self.mfp.copy()
        out.project(columns)
        return Stream(self.into, self.base, out)

    def position(self) -> int:
        """The position of an operator whose output this is."""
        match self.base:
            case int():
                if self.mfp.is_identity:
                    return self.base
                return self.into.add(MapFilterProject(self.base, self.mfp.build()))
            case Join():
                return self.into.add(msgspec.structs.replace(self.base, mfp=self.mfp.build()))

    def rendered(self) -> Stream:
        """The same with nothing pending: for a stream that several operators read."""
        position = self.position()
        return Stream(self.into, position, MfpBuilder(self.types))

    def shared(self) -> Stream:
        """For several readers: rendered, unless it reads an index, which a join may then use itself."""
        if isinstance(self.base, int) and isinstance(self.into.operators[self.base], ImportIndex):
            return self
        return self.rendered()

    def arranged(self, key: tuple[int, ...]) -> int:
        """The position of an arrangement of this stream by ``key``; an imported one if it is just that."""
        if isinstance(self.base, int) and self.mfp.is_identity:
            operator = self.into.operators[self.base]
            if isinstance(operator, (ImportIndex, Arrange)) and operator.key == key:
                return self.base
        return self.into.add(Arrange(self.position(), key, self.types))
