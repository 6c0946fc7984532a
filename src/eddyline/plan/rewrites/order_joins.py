"""Inner joins of three and more inputs: an order without products where there is one, filtered inputs first.

A join in which each row so far meets at most one row of the next input comes before one in which each row of that input
meets at most one so far, and both before joins of many with many, whose result may outgrow both.  Among equals the
order as written stays.

What another input refers to by a unique key is joined first with what it refers to itself, if that is filtered and
linked to nothing else: a supplier with his nation, so that a lineitem meets the suppliers of one nation instead of all,
and their nations afterwards; unless an index has it by that key.  It counts as filtered as what it refers to, so that
the suppliers of one nation come before the orders of one status, if they are written before them.

Only conditions that cannot fail are moved; a join with one that may is an input like any
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

from eddyline.expr.ir import Call, Column, Expr, columns_of, map_columns
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import fallible, is_constant
from eddyline.plan.relation import Filter, Get, Join, JoinKind, Map, Project, Relation
from eddyline.plan.traverse import Steps, rewrite_top_down, run_steps
from eddyline.plan.unique import UniqueKeys, unique_keys

__all__ = ["order_joins"]


#: an input's number, or a join of two
_Shape: TypeAlias = "int | tuple[_Shape, _Shape]"


class _Tree(NamedTuple):
    """A flattened join.  Its columns are those of ``inputs`` side by side; ``output`` picks the result's."""

    inputs: tuple[Relation, ...]
    predicates: tuple[Expr, ...]
    output: tuple[int, ...]
    #: how each input is made of those that flattening found, by their numbers
    shapes: tuple[_Shape, ...] = ()


def order_joins(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_top_down(relation, lambda node: _reorder(node, facts))


def _reorder(node: Relation, facts: CatalogFacts) -> Relation:
    if not isinstance(node, Join) or not _opens(node):
        return node
    flat = run_steps(_flatten(node))
    if len(flat.inputs) < 3:
        return node
    flat = flat._replace(shapes=tuple(range(len(flat.inputs))))
    ordering = _Order(flat, facts)
    tree = _reduced(flat, ordering.reductions())
    if tree is not flat:
        ordering = _Order(tree, facts)
    order = ordering.choose() if len(tree.inputs) > 2 else (0, 1)
    if order == tuple(range(len(flat.inputs))):
        return node
    if reduce(lambda a, b: (a, b), [tree.shapes[i] for i in order]) == _shape_of(node):
        return node
    return _build(tree, order)


def _shape_of(relation: Relation) -> _Shape:
    """How the join is nested, its inputs numbered as flattening finds them."""
    found = 0

    def shape(node: Relation) -> Steps[_Shape]:
        nonlocal found
        if not _opens(node):
            found += 1
            return found - 1
        while isinstance(node, (Project, Filter)):
            node = node.input
        assert isinstance(node, Join)
        left: _Shape = yield shape(node.left)
        right: _Shape = yield shape(node.right)
        return (left, right)

    return run_steps(shape(relation))


def _reduced(flat: _Tree, pairs: Sequence[tuple[int, int]]) -> _Tree:
    """The tree with the second input of each pair joined to the first, in its place.  O(pairs × predicates)."""
    if not pairs:
        return flat
    columns: list[list[int]] = [[] for _ in flat.inputs]
    for c, owner in enumerate(_owners(flat)):
        columns[owner].append(c)
    inputs, shapes, waiting = list(flat.inputs), list(flat.shapes), list(flat.predicates)
    for i, j in pairs:
        columns[i] = [*columns[i], *columns[j]]
        inside = {c: at for at, c in enumerate(columns[i])}
        own = [bool(columns_of(p)) and columns_of(p) <= inside.keys() for p in waiting]
        on = tuple(map_columns(p, inside.__getitem__) for p, its in zip(waiting, own, strict=True) if its)
        waiting = [p for p, its in zip(waiting, own, strict=True) if not its]
        inputs[i], shapes[i] = Join(JoinKind.INNER, inputs[i], inputs[j], on), (shapes[i], shapes[j])
    gone = {j for _, j in pairs}
    kept = [i for i in range(len(inputs)) if i not in gone]
    place = {c: at for at, c in enumerate(c for i in kept for c in columns[i])}
    return _Tree(
        tuple(inputs[i] for i in kept),
        tuple(map_columns(p, place.__getitem__) for p in waiting),
        tuple(place[c] for c in flat.output),
        tuple(shapes[i] for i in kept),
    )


def _opens(relation: Relation) -> bool:
    """Whether the relation is an inner join, maybe under projections and filters, that flattening may open."""
    while isinstance(relation, (Project, Filter)):
        if isinstance(relation, Filter) and any(fallible(p) for p in relation.predicates):
            return False
        relation = relation.input
    return isinstance(relation, Join) and relation.kind is JoinKind.INNER and not any(fallible(p) for p in relation.on)


def _flatten(relation: Relation) -> Steps[_Tree]:
    if not _opens(relation):
        return _Tree((relation,), (), tuple(range(len(relation.types))))
    match relation:
        case Project():
            below: _Tree = yield _flatten(relation.input)
            return below._replace(output=tuple(below.output[c] for c in relation.columns))
        case Filter():
            below = yield _flatten(relation.input)
            more = tuple(map_columns(p, below.output.__getitem__) for p in relation.predicates)
            return below._replace(predicates=(*below.predicates, *more))
        case Join():
            left: _Tree = yield _flatten(relation.left)
            right: _Tree = yield _flatten(relation.right)
            shift = sum(len(i.types) for i in left.inputs)
            output = (*left.output, *(c + shift for c in right.output))
            moved = tuple(map_columns(p, lambda c: c + shift) for p in right.predicates)
            own = tuple(map_columns(p, output.__getitem__) for p in relation.on)
            return _Tree((*left.inputs, *right.inputs), (*left.predicates, *moved, *own), output)
        case _:
            raise AssertionError(relation)


def _owners(tree: _Tree) -> tuple[int, ...]:
    """The input that each column belongs to."""
    return tuple(i for i, source in enumerate(tree.inputs) for _ in source.types)


class _Order:
    """The greedy choice.  Cost: inputs² × predicates."""

    def __init__(self, tree: _Tree, facts: CatalogFacts) -> None:
        self._tree = tree
        self._facts = facts
        owners = _owners(tree)
        self._starts = [owners.index(i) if i in owners else 0 for i in range(len(tree.inputs))]
        self._touched = [frozenset(owners[c] for c in columns_of(p)) for p in tree.predicates]
        self._own_filter = [self._filter_rank(i) for i in range(len(tree.inputs))]
        #: unique keys of each input, as columns of the tree
        self._keys = [self._keys_of(i) for i in range(len(tree.inputs))]

    def choose(self) -> tuple[int, ...]:
        rest = list(range(len(self._tree.inputs)))
        first = min(rest, key=lambda i: (not self._linked_at_all(i), self._own_filter[i], self._many_side(i), i))
        order = [first]
        rest.remove(first)
        keys = self._keys[first]
        while rest:
            chosen = frozenset(order)
            known = keys
            following = min(rest, key=lambda i: (*self._link_rank(chosen, known, i), self._own_filter[i], i))
            keys = self._joined_keys(chosen, keys, following)
            order.append(following)
            rest.remove(following)
        return tuple(order)

    def reductions(self) -> list[tuple[int, int]]:
        """Which inputs are joined first, each to the one before it: see the module's text.  O(inputs × predicates)."""
        near = self._neighbours()
        referring: dict[int, list[int]] = {}
        rank = list(self._own_filter)
        pairs: list[tuple[int, int]] = []
        waiting = [j for j in range(len(rank)) if rank[j] < 2 and len(near[j]) == 1]
        while waiting:
            j = waiting.pop()
            (i,) = near[j]
            if i not in referring:
                referring[i] = [k for k in near[i] if self._refers(k, i)]
            others = [k for k in referring[i] if k != j and k in near[i]]
            if not others or not self._refers(i, j) or self._is_indexed(i, others):
                continue
            pairs.append((i, j))
            near[i].remove(j)
            rank[i] = min(rank[i], 1)
            if len(near[i]) == 1:
                waiting.append(i)
        return pairs

    def _is_indexed(self, i: int, others: Sequence[int]) -> bool:
        """Whether an index has input ``i`` by the key of its join with one of the others."""
        return any(self._has_index(i, self._equalities(frozenset({k}), i)) for k in others)

    def _neighbours(self) -> list[set[int]]:
        """The inputs that each has a condition with."""
        near: list[set[int]] = [set() for _ in self._tree.inputs]
        for touched in self._touched:
            for i in touched:
                near[i] |= touched - {i}
        return near

    def _refers(self, i: int, j: int) -> bool:
        """Whether a row of input ``i`` meets at most one of ``j``."""
        return any(key <= self._equated(frozenset({i}), j)[1] for key in self._keys[j] if key)

    def _keys_of(self, i: int) -> UniqueKeys:
        start = self._starts[i]
        found = unique_keys(self._tree.inputs[i], self._facts)
        return frozenset(frozenset(c + start for c in key) for key in found)

    def _equated(self, chosen: frozenset[int], i: int) -> tuple[frozenset[int], frozenset[int]]:
        """(columns of the chosen inputs, columns of input ``i``) that equalities of plain columns link."""
        before: set[int] = set()
        own: set[int] = set()
        for predicate, touched in zip(self._tree.predicates, self._touched, strict=True):
            if i not in touched or len(touched) != 2 or not touched <= chosen | {i} or not self._equates(predicate):
                continue
            columns = [a.index for a in predicate.args if isinstance(a, Column)] if isinstance(predicate, Call) else []
            if len(columns) == 2:
                inside = range(self._starts[i], self._starts[i] + len(self._tree.inputs[i].types))
                own.update(c for c in columns if c in inside)
                before.update(c for c in columns if c not in inside)
        return frozenset(before), frozenset(own)

    def _growth(self, chosen: frozenset[int], keys: UniqueKeys, i: int) -> int:
        """0: a row so far meets at most one of ``i``; 1: a row of ``i`` meets at most one so far; 2: many meet many."""
        before, own = self._equated(chosen, i)
        if any(key <= own for key in self._keys[i]):
            return 0
        return 1 if any(key <= before for key in keys) else 2

    def _joined_keys(self, chosen: frozenset[int], keys: UniqueKeys, i: int) -> UniqueKeys:
        """Unique keys of the join of the chosen inputs, which have ``keys``, with input ``i``."""
        before, own = self._equated(chosen, i)
        found: UniqueKeys = frozenset()
        if any(key <= own for key in self._keys[i]):
            found |= keys
        if any(key <= before for key in keys):
            found |= self._keys[i]
        return found or frozenset(a | b for a in keys for b in self._keys[i])

    def _many_side(self, i: int) -> bool:
        """Whether a filter leaves this input, and no other one refers to it by a unique key: it is likely large."""
        if self._own_filter[i] > 1:
            return False  # without filters the order as written stays
        rest = range(len(self._tree.inputs))
        return not any(
            any(key <= own for key in self._keys[i])
            for j in rest
            if j != i
            for own in [self._equated(frozenset({j}), i)[1]]
        )

    def _filter_rank(self, i: int) -> int:
        """0: an equality with a constant, 1: some filter or semi join, 2: none."""
        predicates = [p for p, t in zip(self._tree.predicates, self._touched, strict=True) if t == {i}]
        source = self._tree.inputs[i]
        shape = self._tree.shapes[i]
        if not isinstance(shape, int):
            # Joined to a filtered one: as rare as that, if it is not filtered through a third one only.
            return _filter_rank(source.right, ()) if isinstance(source, Join) and isinstance(shape[1], int) else 1
        return _filter_rank(source, predicates)

    def _equates(self, predicate: Expr) -> bool:
        return isinstance(predicate, Call) and predicate.func in ("eq", "is_not_distinct_from")

    def _linked_at_all(self, i: int) -> bool:
        pairs = zip(self._tree.predicates, self._touched, strict=True)
        return any(i in t and len(t) == 2 and self._equates(p) for p, t in pairs)

    def _link_rank(self, chosen: frozenset[int], keys: UniqueKeys, i: int) -> tuple[int, int, int]:
        """(0: equality with a chosen input, 1: another condition, 2: a product; ``_growth``; 0: an index has the
        join's key)."""
        equalities = self._equalities(chosen, i)
        if not equalities:
            return (1 if self._linking(chosen, i) else 2, 0, 1)
        return (0, self._growth(chosen, keys, i), 0 if self._has_index(i, equalities) else 1)

    def _linking(self, chosen: frozenset[int], i: int) -> list[Expr]:
        """The conditions of input ``i`` with the chosen ones."""
        pairs = zip(self._tree.predicates, self._touched, strict=True)
        return [p for p, t in pairs if i in t and len(t) > 1 and t <= chosen | {i}]

    def _equalities(self, chosen: frozenset[int], i: int) -> list[Expr]:
        return [p for p in self._linking(chosen, i) if self._equates(p)]

    def _has_index(self, i: int, equalities: list[Expr]) -> bool:
        source, start = self._tree.inputs[i], self._starts[i]
        columns = list(range(len(source.types)))
        while isinstance(source, (Project, Filter)):
            if isinstance(source, Project):
                columns = [source.columns[c] for c in columns]
            source = source.input
        if not isinstance(source, Get):
            return False
        key = {
            columns[a.index - start]
            for p in equalities
            if isinstance(p, Call)
            for a in p.args
            if isinstance(a, Column) and start <= a.index < start + len(columns)
        }
        return any(set(index.key) == key for index in self._facts.indexes_on(source.id))


def _filter_rank(source: Relation, more: Sequence[Expr]) -> int:
    """As ``_Order`` ranks an input that ``more`` filters as well."""
    predicates = list(more)
    while isinstance(source, (Project, Map, Filter)):
        if isinstance(source, Filter):
            predicates.extend(source.predicates)
        source = source.input
    if isinstance(source, Join) and source.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return 1
    if any(isinstance(p, Call) and p.func == "eq" and any(is_constant(a) for a in p.args) for p in predicates):
        return 0
    return 1 if predicates else 2


def _build(tree: _Tree, order: tuple[int, ...]) -> Relation:
    """The left-deep join in that order, columns back in their places."""
    owners = _owners(tree)
    widths = [len(source.types) for source in tree.inputs]
    starts = [sum(widths[:i]) for i in range(len(widths))]
    place: dict[int, int] = {}
    waiting = list(tree.predicates)
    result: Relation | None = None
    present: set[int] = set()
    for i in order:
        offset = len(place)
        place.update((starts[i] + c, offset + c) for c in range(widths[i]))
        present.add(i)
        if result is None:
            result = tree.inputs[i]
            continue
        ready = [p for p in waiting if all(owners[c] in present for c in columns_of(p))]
        waiting = [p for p in waiting if not all(owners[c] in present for c in columns_of(p))]
        on = tuple(map_columns(p, place.__getitem__) for p in ready)
        result = Join(JoinKind.INNER, result, tree.inputs[i], on)
    assert result is not None
    return Project(result, tuple(place[c] for c in tree.output))
