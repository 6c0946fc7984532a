"""The right answers: what each table held at each time, and every definition computed anew from that."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from eddyline.errors import DatabaseError
from eddyline.protocol.messages import PeekResponse
from eddyline.repr.batch import Batch
from eddyline.testing.interpret import Bag, Row, interpret
from eddyline.testing.simulation.definitions import Definition

__all__ = ["Answer", "Recompute", "answer_of", "bag_of"]

#: rows with multiplicities, or the SQLSTATE of the error
Answer = Bag | str


@dataclass(slots=True)
class _Versions:
    """A table's contents, each from its time on."""

    times: list[int] = field(default_factory=list)
    bags: list[Bag] = field(default_factory=list)


class Recompute:
    """Contents are remembered, so that each state of the tables that matter is computed once."""

    def __init__(self) -> None:
        self._tables: dict[str, _Versions] = {}
        self._answers: dict[tuple[Definition, tuple[int, ...]], Answer] = {}

    def create(self, id: str, at: int) -> None:
        self._tables[id] = _Versions([at], [Counter()])

    def write(self, id: str, rows: Sequence[Row], diffs: Sequence[int], at: int) -> None:
        versions = self._tables[id]
        after = Counter(versions.bags[-1])
        for row, diff in zip(rows, diffs, strict=True):
            after[row] += diff
        versions.times.append(at)
        versions.bags.append(Counter({row: n for row, n in after.items() if n}))

    def latest(self, id: str) -> Bag:
        return self._tables[id].bags[-1]

    def answer(self, definition: Definition, at: int) -> Answer:
        """The content of ``definition`` at time ``at``, or the SQLSTATE with which reading it fails."""
        state = tuple(bisect.bisect_right(self._tables[t].times, at) - 1 for t in definition.tables)
        found = self._answers.get((definition, state))
        if found is None:
            tables = {
                t: self._tables[t].bags[version] if version >= 0 else Counter()
                for t, version in zip(definition.tables, state, strict=True)
            }
            try:
                found = interpret(definition.relation, tables)
            except DatabaseError as error:
                found = error.sqlstate
            self._answers[definition, state] = found
        return found


def bag_of(batches: Sequence[Batch]) -> Bag:
    """The updates, summed by row."""
    bag: Bag = Counter()
    for batch in batches:
        columns = [c.to_pylist() for c in batch.columns]
        for row, diff in zip(zip(*columns, strict=True), batch.diffs.tolist(), strict=True):
            bag[row] += diff
    return Counter({row: n for row, n in bag.items() if n})


def answer_of(response: PeekResponse) -> Answer:
    """What a response that is not a cancellation says."""
    if response.error is not None:
        return response.error[0]
    assert response.rows is not None
    return bag_of(response.rows.pieces())
