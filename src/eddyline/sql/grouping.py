"""GROUP BY: grouping sets, the check that what is selected is grouped, and the ``Reduce`` itself.

A plain grouping column keeps its id above the ``Reduce``, so that correlated subqueries need no rewriting; other
grouping expressions get an id, and their occurrences above are replaced by it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from eddyline.errors import make_error
from eddyline.expr.ir import AggregateCall, And, Call, Case, Cast, Coalesce, Column, Expr, Literal, Or
from eddyline.repr.types import INTEGER
from eddyline.sql.algebra import Cte, CteRef, FreeIds, Map, Node, Reduce, Union, With, outputs
from eddyline.sql.binding import Binding, Block
from eddyline.sql.scope import Scope

__all__ = ["Grouping", "cross_product"]

MAX_SETS = 4096


def cross_product(items: Sequence[Sequence[tuple[Expr, ...]]], position: int | None) -> list[tuple[Expr, ...]]:
    """The grouping sets of a GROUP BY list: every combination of one set per item; 54001 past 4,096."""
    total = 1
    for item in items:
        total *= len(item)
        if total > MAX_SETS:
            raise make_error("54001", f"too many grouping sets present (maximum {MAX_SETS})", position=position)
    return [tuple(dict.fromkeys(e for part in combination for e in part)) for combination in itertools.product(*items)]


@dataclass
class Grouping:
    """The grouping of one block, built in the order: construct, ``lift`` every expression above, ``build``."""

    binding: Binding
    block: Block
    scope: Scope
    sets: list[tuple[Expr, ...]]
    keys: dict[Expr, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = self.binding.ids
        for expr in dict.fromkeys(e for s in self.sets for e in s):
            plain = isinstance(expr, Column) and expr.index not in ids.subqueries
            self.keys[expr] = expr.index if plain and isinstance(expr, Column) else ids.new(expr.type)
        self._dependent: dict[int, Expr] = {}

    def lift(self, expr: Expr) -> Expr:
        """``expr`` over the grouped rows; 42803 for a column that is neither grouped nor aggregated."""
        known = self.keys.get(expr)
        if known is not None:
            return Column(known, expr.type)
        match expr:
            case Column():
                self._check(expr)
                return expr
            case Call():
                return Call(expr.func, tuple(map(self.lift, expr.args)), expr.type)
            case Cast():
                return Cast(self.lift(expr.input), expr.type, expr.explicit, expr.zone)
            case Case():
                whens = tuple((self.lift(c), self.lift(r)) for c, r in expr.whens)
                return Case(whens, self.lift(expr.otherwise), expr.type)
            case And():
                return And(tuple(map(self.lift, expr.args)))
            case Or():
                return Or(tuple(map(self.lift, expr.args)))
            case Coalesce():
                return Coalesce(tuple(map(self.lift, expr.args)), expr.type)
        return expr

    def _check(self, column: Column) -> None:
        subquery = self.binding.ids.subqueries.get(column.index)
        if subquery is None:
            self._check_id(column.index, "")
            return
        for number in sorted(FreeIds(self.binding.ids).of_subquery(subquery)):
            self._check_id(number, "subquery")

    def _check_id(self, number: int, where: str) -> None:
        block = self.block
        if self.binding.owners.get(number) is not block or number in self._dependent:
            return
        if number in block.aggregates or number in block.groupings or number in self.keys.values():
            return
        if self._depends_on_key(number):
            self._dependent[number] = self.binding.ids.column(number)
            return
        label = self.binding.ids.labels.get(number, "?column?")
        position = block.mentions.get(number)
        if where:
            raise make_error("42803", f'subquery uses ungrouped column "{label}" from outer query', position=position)
        raise make_error(
            "42803",
            f'column "{label}" must appear in the GROUP BY clause or be used in an aggregate function',
            position=position,
        )

    def _depends_on_key(self, number: int) -> bool:
        """Whether the grouping columns include the primary key of the table that ``number`` belongs to."""
        if len(self.sets) != 1:
            return False
        grouped = {e.index for e in self.sets[0] if isinstance(e, Column)}
        return any(
            entry.primary_key and grouped.issuperset(entry.primary_key) and any(c.id == number for c in entry.columns)
            for entry in self.scope.entries
        )

    def build(self, node: Node) -> Node:
        """The grouped rows of ``node``: keys, aggregates, and GROUPING values."""
        for args in self.block.groupings.values():
            for arg in args:
                if arg not in self.keys:
                    raise make_error(
                        "42803",
                        "arguments to GROUPING must be grouping expressions of the associated query level",
                        position=self.block.mentions.get(arg.index) if isinstance(arg, Column) else None,
                    )
        aggregates = tuple(self.block.aggregates.items())
        if len(self.sets) == 1:
            keys = tuple((n, e) for e, n in self.keys.items())
            keys += tuple(self._dependent.items())
            reduced: Node = Reduce(node, keys, aggregates, global_row=not keys)
            return self._with_grouping_values(reduced, self.sets[0])
        return self._build_sets(node, aggregates)

    def _with_grouping_values(self, node: Node, grouped: Sequence[Expr]) -> Node:
        values = tuple((n, self._grouping_value(args, grouped)) for n, args in self.block.groupings.items())
        return Map(node, values) if values else node

    @staticmethod
    def _grouping_value(args: Sequence[Expr], grouped: Sequence[Expr]) -> Literal:
        """One bit per argument, the last the lowest: set where the argument is not grouped."""
        value = 0
        for arg in args:
            value = value * 2 + (arg not in grouped)
        return Literal(value, INTEGER)

    def _build_sets(self, node: Node, aggregates: tuple[tuple[int, AggregateCall], ...]) -> Node:
        """One Reduce per grouping set over the shared input, the missing keys NULL."""
        ids = self.binding.ids
        shared = Cte("grouping", node, tuple(sorted(outputs(node))))
        out = (*self.keys.values(), *(n for n, _ in aggregates), *self.block.groupings)
        arms: list[tuple[Node, tuple[int, ...]]] = []
        for grouped in self.sets:
            fresh = {e: ids.new(e.type) for e in self.keys}
            counted = {n: ids.new(call.type) for n, call in aggregates}
            arm: Node = Reduce(
                CteRef(shared, shared.ids),
                tuple((fresh[e], e) for e in grouped),
                tuple((counted[n], call) for n, call in aggregates),
                global_row=not grouped,
            )
            missing = tuple((fresh[e], Literal(None, e.type)) for e in self.keys if e not in grouped)
            bits = {n: ids.new(INTEGER) for n in self.block.groupings}
            values = tuple((bits[n], self._grouping_value(args, grouped)) for n, args in self.block.groupings.items())
            if missing or values:
                arm = Map(arm, (*missing, *values))
            arms.append((arm, (*fresh.values(), *counted.values(), *bits.values())))
        return With((shared,), Union(tuple(arms), out))
