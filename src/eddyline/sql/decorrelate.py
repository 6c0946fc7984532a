"""The bound algebra to a positional, decorrelated relation.

*Method.*  A node with correlated references is evaluated for all outer rows at once: it is lowered over a *domain*,
the distinct values of the outer columns that it reads, which travels through its operators as extra columns; the
result joins back to the outer rows null-safely on those columns.  Lowering goes from the outside inwards, so every
relation that a ``Let`` binds is closed.  Subqueries in expressions are ``sql.subqueries``' part.

Invariants:

* I1. ``lower(node, domain)`` has among its columns those of ``domain``, and every free id of ``node`` is one of them.
* I2. A domain holds no row twice, and is cheap to mention several times (a ``LocalGet``).
* I3. A subquery's value is NULL, or an error, only for the outer rows concerned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from eddyline.errors import unsupported
from eddyline.expr.fold import fold
from eddyline.expr.ir import (
    AggregateCall,
    Call,
    Cast,
    Coalesce,
    Column,
    Expr,
    Literal,
    LiteralValue,
    SortKey,
    map_columns,
    walk,
)
from eddyline.plan import relation as plan
from eddyline.plan.relation import JoinKind, Relation
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT, Kind, SqlType, shows_blanks
from eddyline.sql.algebra import (
    Cte,
    CteRef,
    Distinct,
    Filter,
    FlatMap,
    FreeIds,
    Ids,
    Join,
    Leaf,
    Map,
    Node,
    Recursive,
    Reduce,
    Rows,
    SetKind,
    SetOperation,
    TopK,
    Union,
    With,
    WorkingRef,
    aggregate_exprs,
    expressions,
    inputs,
)
from eddyline.sql.comparison import mentions
from eddyline.sql.lets import inline_lets
from eddyline.sql.lowered import Lowered, add_columns, filtered, join_lowered, select_columns, trimmed
from eddyline.sql.peel import is_rowwise, peel
from eddyline.sql.subqueries import Attachment

__all__ = ["Lowering", "decorrelate", "positional"]

_NO_ROWS_LEFT = "a subquery over both sides in the condition of a full join"


def decorrelate(node: Node, columns: Sequence[int], ids: Ids) -> Relation:
    """``node``'s ``columns`` as a closed relation."""
    lowering = Lowering(ids)
    lowering.count_references(node)
    return inline_lets(select_columns(lowering.lower(node, None), columns))


def positional(expr: Expr, layout: dict[int, int], ids: Ids, place: str) -> Expr:
    """``expr`` over positions; 0A000 if it holds a subquery."""
    for part in walk(expr):
        if isinstance(part, Column) and part.index in ids.subqueries:
            raise unsupported(f"a subquery in {place}")
    return map_columns(expr, layout.__getitem__)


class Lowering:
    """One statement's lowering; single-threaded, used once."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.free = FreeIds(ids)
        self._names = 0
        self._references: Counter[int] = Counter()  # id() of a Cte: how often it is mentioned
        # id() of a Cte or a Working: its LocalGet, with the domain's columns if correlated
        self._values: dict[int, Lowered] = {}
        self._images: dict[int, int] = {}  # column id to the id of its text, see _with_images
        self._attachment = Attachment(self)

    def count_references(self, node: Node) -> None:
        """Counts CteRefs everywhere, subqueries included; a WITH query mentioned once is not shared."""
        stack: list[Node] = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, CteRef):
                self._references[id(current.cte)] += 1
            stack.extend(inputs(current))
            for number in {n for e in expressions(current) for n in mentions(e)}:
                self._push_subquery(number, stack)

    def _push_subquery(self, number: int, stack: list[Node]) -> None:
        subquery = self.ids.subqueries.get(number)
        if subquery is None:
            return
        stack.append(subquery.node)
        for test in (*subquery.tests, *((subquery.comparison,) if subquery.comparison is not None else ())):
            for inner in mentions(test):
                self._push_subquery(inner, stack)

    def fresh_name(self) -> str:
        self._names += 1
        return f"l{self._names}"

    def has_subquery(self, expr: Expr) -> bool:
        return any(n in self.ids.subqueries for n in mentions(expr))

    # -- building blocks -------------------------------------------------------------------------------------------

    def shared(self, value: Lowered, build: Callable[[Lowered], Lowered]) -> Lowered:
        """``build`` over a name for ``value``, which is then computed once."""
        name = self.fresh_name()
        local = Lowered(plan.LocalGet(name, value.relation.types), value.layout)
        result = build(local)
        return Lowered(plan.Let(name, value.relation, result.relation), result.layout)

    def over_domain(
        self, outer: Lowered, needed: Iterable[int], build: Callable[[Lowered, Lowered], Lowered]
    ) -> Lowered:
        """``build(outer rows, domain)``: the outer rows shared with the distinct values of their ``needed`` columns."""
        outer, wanted = self._with_images(outer, needed)

        def with_outer(local: Lowered) -> Lowered:
            narrow = trimmed(local, wanted)
            domain = Lowered(plan.Distinct(narrow.relation), narrow.layout)
            return self.shared(domain, lambda d: build(local, d))

        return self.shared(outer, with_outer)

    def _with_images(self, outer: Lowered, needed: Iterable[int]) -> tuple[Lowered, list[int]]:
        """``needed`` and, for columns whose equal values may print differently (1.0 and 1.00), their text: the subquery
        may tell such values apart, so the domain must too."""
        wanted = sorted(needed)
        missing = [n for n in wanted if n not in self._images.values() and _prints_differently(self.ids.types[n])]
        for number in missing:
            self._images.setdefault(number, self.ids.new(TEXT))
        texts = [(self._images[n], Cast(self.ids.column(n), TEXT)) for n in missing]
        wide = add_columns(outer, [(n, e) for n, e in texts if n not in outer.layout])
        return wide, list(dict.fromkeys((*wanted, *(n for n, _ in texts))))

    def restricted(self, domain: Lowered, needed: Iterable[int]) -> Lowered:
        """The domain of fewer columns."""
        columns = set(needed)
        columns |= {text for number, text in self._images.items() if number in columns and text in domain.layout}
        wanted = sorted(columns)
        if len(wanted) == len(domain.layout):
            return domain
        narrow = trimmed(domain, wanted)
        return Lowered(plan.Distinct(narrow.relation), narrow.layout)

    def prepared(self, lowered: Lowered, exprs: Sequence[Expr]) -> tuple[Lowered, list[Expr]]:
        """``exprs`` without subqueries, over ``lowered`` widened by the columns that those need."""
        return self._attachment.prepared(lowered, exprs)

    # -- operators -------------------------------------------------------------------------------------------------

    def lower(self, node: Node, domain: Lowered | None) -> Lowered:
        """I1.  ``domain`` None: ``node`` is closed."""
        if domain is not None and not self.free.of_node(node) & domain.layout.keys():
            return join_lowered(JoinKind.INNER, domain, self.lower(node, None), ())
        match node:
            case Leaf():
                return Lowered(node.relation, {n: i for i, n in enumerate(node.ids)})
            case CteRef():
                return self._cte_reference(node, domain)
            case WorkingRef():
                return self._working_reference(node, domain)
            case Recursive():
                return self._recursive(node, domain)
            case With():
                return self._with(node, domain)
            case Rows():
                return self._rows(node, domain)
            case Map():
                return self.mapped(self.lower(node.input, domain), node.exprs)
            case Filter():
                return self._filter(node, domain)
            case FlatMap():
                return self._flat_map(node, self.lower(node.input, domain))
            case Join():
                return self._join(node, domain)
            case Reduce():
                return self._reduce(node, domain)
            case Distinct():
                below = self.lower(node.input, domain)
                narrow = trimmed(below, (*_domain_ids(domain), *node.ids))
                return Lowered(plan.Distinct(narrow.relation), narrow.layout)
            case TopK():
                return self._top_k(node, domain)
            case Union():
                return self._union(node, domain)
            case SetOperation():
                return self._set_operation(node, domain)

    @staticmethod
    def with_defaults(joined: Lowered, aggregates: Iterable[tuple[int, AggregateCall]]) -> Lowered:
        """Aggregates over no rows, where an outer join found none: count is 0, the others stay NULL."""
        counts = [
            (n, Coalesce((joined.column(n), Literal(0, BIGINT)), BIGINT)) for n, c in aggregates if c.func == "count"
        ]
        if not counts:
            return joined
        width = len(joined.relation.types)
        relation = plan.Map(joined.relation, tuple(e for _, e in counts))
        return Lowered(relation, {**joined.layout, **{n: width + i for i, (n, _) in enumerate(counts)}})

    def mapped(self, below: Lowered, exprs: Sequence[tuple[int, Expr]]) -> Lowered:
        wide, plain = self.prepared(below, [e for _, e in exprs])
        return add_columns(wide, [(n, e) for (n, _), e in zip(exprs, plain, strict=True)])

    def _cte_reference(self, node: CteRef, domain: Lowered | None) -> Lowered:
        value = self._values.get(id(node.cte))
        if value is None:
            inner = self.lower(node.cte.node, domain)
            names = {new: inner.layout[old] for old, new in zip(node.cte.ids, node.ids, strict=True)}
            outer = {n: inner.layout[n] for n in _domain_ids(domain)}
            return Lowered(inner.relation, {**outer, **names})
        names = {new: value.layout[old] for old, new in zip(node.cte.ids, node.ids, strict=True)}
        outer = {n: p for n, p in value.layout.items() if n not in node.cte.ids}
        local = Lowered(value.relation, {**outer, **names})
        return local if domain is None else join_lowered(JoinKind.INNER, domain, local, ())

    def _recursive(self, node: Recursive, domain: Lowered | None) -> Lowered:
        """Correlated: one recursion for all rows of the domain, whose columns its rows carry from round to round."""
        needed = self.free.of_node(node) & frozenset(_domain_ids(domain))
        over = self.restricted(domain, needed) if domain is not None and needed else None
        outer = _domain_ids(over)
        base = select_columns(self.lower(node.base[0], over), (*outer, *node.base[1]))
        name = self.fresh_name()
        layout = {n: i for i, n in enumerate((*outer, *node.working.ids))}
        self._values[id(node.working)] = Lowered(plan.LocalGet(name, base.types), layout)
        step = select_columns(self.lower(node.step[0], over), (*outer, *node.step[1]))
        columns = (*(self.ids.labels.get(n, "outer") for n in outer), *node.names)
        relation = plan.Recursive(name, base, step, node.every, node.working.name, columns)
        result = Lowered(relation, {n: i for i, n in enumerate((*outer, *node.ids))})
        if domain is None or len(outer) == len(domain.layout):
            return result
        return join_lowered(JoinKind.INNER, domain, result, ())

    def _working_reference(self, node: WorkingRef, domain: Lowered | None) -> Lowered:
        value, own = self._values[id(node.working)], node.working.ids
        outer = {n: p for n, p in value.layout.items() if n not in own}
        names = {new: value.layout[old] for old, new in zip(own, node.ids, strict=True)}
        local = Lowered(value.relation, {**outer, **names})
        if domain is None or outer.keys() == domain.layout.keys():
            return local  # whose rows are all the domain's
        return join_lowered(JoinKind.INNER, domain, local, ())

    def _with(self, node: With, domain: Lowered | None) -> Lowered:
        bound: list[tuple[str, Relation]] = []
        for cte in node.ctes:
            if self._references[id(cte)] < 2:
                continue
            bound.append(self._bind_cte(cte, domain))
        body = self.lower(node.body, domain)
        relation = body.relation
        for name, value in reversed(bound):
            relation = plan.Let(name, value, relation)
        return Lowered(relation, body.layout)

    def _bind_cte(self, cte: Cte, domain: Lowered | None) -> tuple[str, Relation]:
        needed = self.free.of_node(cte.node) & frozenset(_domain_ids(domain))
        over = self.restricted(domain, needed) if domain is not None and needed else None
        value = trimmed(self.lower(cte.node, over), (*_domain_ids(over), *cte.ids))
        name = self.fresh_name()
        self._values[id(cte)] = Lowered(plan.LocalGet(name, value.relation.types), value.layout)
        return name, value.relation

    def _rows(self, node: Rows, domain: Lowered | None) -> Lowered:
        """Constant rows in one ``Constant``; a row that needs computing is an arm of its own."""
        outer = _domain_ids(domain)
        base = domain if domain is not None else Lowered(plan.Constant(((),), ()), {})
        constant: list[tuple[LiteralValue, ...]] = []
        arms: list[Relation] = []
        for row in node.rows:
            folded = [fold(e) for e in row]
            values = tuple(e.value for e in folded if isinstance(e, Literal))
            if domain is None and len(values) == len(row):
                constant.append(values)
                continue
            wide = self.mapped(base, tuple(zip(node.ids, folded, strict=True)))
            arms.append(select_columns(wide, (*outer, *node.ids)))
        if constant or not node.rows:
            arms.insert(0, plan.Constant(tuple(constant), node.types))
        relation = arms[0] if len(arms) == 1 else plan.Union(tuple(arms))
        return Lowered(relation, {n: i for i, n in enumerate((*outer, *node.ids))})

    def _filter(self, node: Filter, domain: Lowered | None) -> Lowered:
        plain = [p for p in node.predicates if not self.has_subquery(p)]
        others = [p for p in node.predicates if self.has_subquery(p)]
        if domain is not None and not self.free.of_node(node.input) & domain.layout.keys():
            correlated = [p for p in plain if self.free.of_exprs((p,)) & domain.layout.keys()]
            own = [p for p in plain if p not in correlated]
            below = filtered(self.lower(node.input, None), own)
            lowered = join_lowered(JoinKind.INNER, domain, below, correlated)
        else:
            lowered = filtered(self.lower(node.input, domain), plain)
        return self.filtered(lowered, others)

    def filtered(self, lowered: Lowered, predicates: Iterable[Expr]) -> Lowered:
        """Rows passing ``predicates``, which may hold subqueries: a whole one of those becomes a semi or anti join."""
        for predicate in predicates:
            joined = self._attachment.as_join(lowered, predicate)
            if joined is None:
                wide, (plain,) = self.prepared(lowered, [predicate])
                joined = filtered(wide, (plain,))
            lowered = joined
        return lowered

    def _flat_map(self, node: FlatMap, below: Lowered) -> Lowered:
        wide, args = self.prepared(below, node.args)
        width = len(wide.relation.types)
        relation = plan.FlatMap(wide.relation, node.func, tuple(wide.place(a) for a in args), node.types)
        return Lowered(relation, {**wide.layout, **{n: width + i for i, n in enumerate(node.ids)}})

    def rowwise(self, below: Lowered, node: Node) -> Lowered:
        """``node`` (``is_rowwise``) run on each row of ``below``."""
        match node:
            case Map():
                return self.mapped(self.rowwise(below, node.input), node.exprs)
            case Filter():
                return self.filtered(self.rowwise(below, node.input), node.predicates)
            case FlatMap():
                return self._flat_map(node, self.rowwise(below, node.input))
        return below

    # -- joins -----------------------------------------------------------------------------------------------------

    def _join(self, node: Join, domain: Lowered | None) -> Lowered:
        on = node.on
        if node.kind is JoinKind.RIGHT:
            return self._join(Join(JoinKind.LEFT, node.right, node.left, on), domain)
        outer = frozenset(_domain_ids(domain))
        if node.kind in (JoinKind.INNER, JoinKind.LEFT):
            left_free = self.free.of_node(node.left) & outer
            right_free = self.free.of_node(node.right)
            if right_free - outer:
                left = self.lower(node.left, domain)
                return self._lateral(node.kind, left, node.right, on)
            if node.kind is JoinKind.INNER and domain is not None and not left_free and right_free:
                right = self.lower(node.right, domain)
                return self.joined(JoinKind.INNER, self.lower(node.left, None), right, on)
        left = self.lower(node.left, domain)
        needed = self.free.of_node(node.right) & outer
        if node.kind is JoinKind.FULL and domain is not None:
            needed = outer
        if needed and domain is not None:
            right = self.lower(node.right, self.restricted(domain, needed))
            if node.kind is JoinKind.FULL and not self.free.of_node(node.right) & outer:
                right = self.lower(node.right, None)
                right = join_lowered(JoinKind.INNER, domain, right, ())
        else:
            right = self.lower(node.right, None)
        return self.joined(node.kind, left, right, on)

    def joined(self, kind: JoinKind, left: Lowered, right: Lowered, on: tuple[Expr, ...]) -> Lowered:
        """The join, with subqueries in ``on`` attached to the side that they read."""
        plain = tuple(p for p in on if not self.has_subquery(p))
        others = [p for p in on if self.has_subquery(p)]
        if kind is JoinKind.INNER:
            return self.filtered(join_lowered(kind, left, right, plain), others)
        spanning: list[Expr] = []
        for predicate in others:
            left, right, moved = self._attached_to_side(left, right, predicate)
            if moved is None:
                spanning.append(predicate)
            else:
                plain = (*plain, moved)
        if spanning:
            return self._spanning(kind, left, right, plain, spanning)
        result = join_lowered(kind, left, right, plain)
        shared = left.layout.keys() & right.layout.keys()
        return self._merged(result, left, right, shared) if kind is JoinKind.FULL and shared else result

    def _attached_to_side(self, left: Lowered, right: Lowered, predicate: Expr) -> tuple[Lowered, Lowered, Expr | None]:
        free: set[int] = set()
        for number in mentions(predicate):
            subquery = self.ids.subqueries.get(number)
            if subquery is not None:
                free |= self.free.of_subquery(subquery)
        if free <= left.layout.keys():
            left, (moved,) = self.prepared(left, [predicate])
            return left, right, moved
        if free <= right.layout.keys():
            right, (moved,) = self.prepared(right, [predicate])
            return left, right, moved
        return left, right, None

    def _spanning(
        self, kind: JoinKind, left: Lowered, right: Lowered, plain: tuple[Expr, ...], spanning: list[Expr]
    ) -> Lowered:
        """LEFT JOIN on a subquery over both sides: the matching pairs, and the left rows that no pair mentions."""
        if kind is not JoinKind.LEFT:
            raise unsupported(_NO_ROWS_LEFT)
        missing = [n for n in right.layout if n not in left.layout]
        every = (*left.layout, *missing)

        def over_left(first: Lowered) -> Lowered:
            def over_pairs(pairs: Lowered) -> Lowered:
                matched = trimmed(pairs, left.layout)
                distinct = Lowered(plan.Distinct(matched.relation), matched.layout)
                alone = join_lowered(JoinKind.ANTI, first, distinct, ())
                padded = add_columns(alone, [(n, Literal(None, self.ids.types[n])) for n in missing])
                both = (select_columns(pairs, every), select_columns(padded, every))
                return Lowered(plan.Union(both), {n: i for i, n in enumerate(every)})

            inner = self.filtered(join_lowered(JoinKind.INNER, first, right, plain), spanning)
            return self.shared(inner, over_pairs)

        return self.shared(left, over_left)

    def _merged(self, result: Lowered, left: Lowered, right: Lowered, shared: Iterable[int]) -> Lowered:
        """After a FULL join over a domain, its columns come from whichever side is there."""
        width = len(left.relation.types)
        types = right.relation.types
        merged = []
        for number in sorted(shared):
            position = width + right.layout[number]
            pair = (result.column(number), Column(position, types[right.layout[number]]))
            merged.append((number, Coalesce(pair, pair[0].type)))
        start = len(result.relation.types)
        relation = plan.Map(result.relation, tuple(e for _, e in merged))
        return Lowered(relation, {**result.layout, **{n: start + i for i, (n, _) in enumerate(merged)}})

    def _lateral(self, kind: JoinKind, left: Lowered, right: Node, on: tuple[Expr, ...]) -> Lowered:
        """``left`` joined with ``right``, which reads its columns."""
        if kind is JoinKind.INNER and is_rowwise(right):
            return self.filtered(self.rowwise(left, right), on)
        peeled = peel(right, left.layout, self.ids, self.free)
        if peeled is not None and (kind is JoinKind.INNER or not peeled.computed):
            core = self.lower(peeled.core, None)
            predicates = (*peeled.predicates, *(() if peeled.computed else on))
            result = self.joined(kind, left, core, predicates)
            if peeled.computed:
                result = self.filtered(add_columns(result, tuple(peeled.computed.items())), on)
            return result
        needed = self.free.of_node(right) & left.layout.keys()
        return self.over_domain(left, needed, lambda first, d: self.joined(kind, first, self.lower(right, d), on))

    # -- grouping --------------------------------------------------------------------------------------------------

    def _reduce(self, node: Reduce, domain: Lowered | None) -> Lowered:
        below = self.lower(node.input, domain)
        exprs = [e for _, e in node.keys]
        for _, call in node.aggregates:
            exprs += aggregate_exprs(call)
        wide, plain = self.prepared(below, exprs)
        rest = iter([wide.place(e) for e in plain])
        outer = _domain_ids(domain)
        keys = [wide.column(n) for n in outer] + [next(rest) for _ in node.keys]
        calls = tuple(_placed_call(call, rest) for _, call in node.aggregates)
        names = (*outer, *(n for n, _ in node.keys), *(n for n, _ in node.aggregates))
        layout = {n: i for i, n in enumerate(names)}
        grouped = Lowered(plan.Reduce(wide.relation, tuple(keys), calls, node.global_row and not outer), layout)
        if not (node.global_row and domain is not None):
            return grouped
        return self.with_defaults(join_lowered(JoinKind.LEFT, domain, grouped, ()), node.aggregates)

    def _top_k(self, node: TopK, domain: Lowered | None) -> Lowered:
        below = self.lower(node.input, domain)
        outer = _domain_ids(domain)
        order_ids = tuple(n for n, _, _ in node.order)
        narrow = trimmed(below, (*outer, *node.group, *node.keep, *order_ids))
        group = tuple(narrow.layout[n] for n in (*outer, *node.group))
        order = tuple(SortKey(narrow.layout[n], d, f) for n, d, f in node.order)
        return Lowered(plan.TopK(narrow.relation, group, order, node.limit, node.offset), narrow.layout)

    def _union(self, node: Union, domain: Lowered | None) -> Lowered:
        outer = _domain_ids(domain)
        arms = tuple(select_columns(self.lower(arm, domain), (*outer, *ids)) for arm, ids in node.arms)
        return Lowered(plan.Union(arms), {n: i for i, n in enumerate((*outer, *node.ids))})

    def _set_operation(self, node: SetOperation, domain: Lowered | None) -> Lowered:
        outer = _domain_ids(domain)
        left, right = (select_columns(self.lower(n, domain), (*outer, *ids)) for n, ids in (node.left, node.right))
        layout = {n: i for i, n in enumerate((*outer, *node.ids))}
        if not node.all:
            return Lowered(_distinct_set(node.kind, left, right), layout)
        if node.kind is SetKind.EXCEPT:
            return Lowered(plan.Threshold(plan.Union((left, plan.Negate(right)))), layout)
        name = self.fresh_name()
        local = plan.LocalGet(name, left.types)
        surplus = plan.Threshold(plan.Union((local, plan.Negate(right))))
        common: Relation = plan.Union((local, plan.Negate(surplus)))
        if any(_prints_differently(t) for t in left.types):
            # The surplus may show an equal row in another print, which only counting by equality cancels.
            common = plan.Threshold(common)
        return Lowered(plan.Let(name, left, common), layout)


def _distinct_set(kind: SetKind, left: Relation, right: Relation) -> Relation:
    """EXCEPT and INTERSECT of distinct rows: group both sides' rows, ask which sides a group has.  Grouping follows
    SQL equality, so 1.0 and 1.00 are one row, which cancelling identical rows would miss."""
    width = len(left.types)
    tagged = plan.Union((plan.Map(left, (Literal(True, BOOLEAN),)), plan.Map(right, (Literal(False, BOOLEAN),))))
    tag = Column(width, BOOLEAN)
    keys = tuple(Column(i, t) for i, t in enumerate(left.types))
    any_left = AggregateCall("bool_or", (tag,), BOOLEAN)
    only_left = AggregateCall("bool_and", (tag,), BOOLEAN)
    grouped = plan.Reduce(tagged, keys, (any_left, only_left), global_row=False)
    left_flag, only_flag = Column(width, BOOLEAN), Column(width + 1, BOOLEAN)
    wanted: tuple[Expr, ...] = (only_flag,)
    if kind is SetKind.INTERSECT:
        wanted = (left_flag, Call("not", (only_flag,), BOOLEAN))
    return plan.Project(plan.Filter(grouped, wanted), tuple(range(width)))


def _placed_call(call: AggregateCall, placed: Iterable[Expr]) -> AggregateCall:
    """``call`` with its expressions taken from ``placed``, in the order of arguments, filter, order."""
    rest = iter(placed)
    args = tuple(next(rest) for _ in call.args)
    condition = next(rest) if call.filter is not None else None
    order = tuple((next(rest), desc, nulls_first) for _, desc, nulls_first in call.order_by)
    return AggregateCall(call.func, args, call.type, call.distinct, condition, order)


def _prints_differently(sql_type: SqlType) -> bool:
    """Whether SQL calls values of the type equal that print differently."""
    match sql_type.kind:
        case Kind.NUMERIC:
            return sql_type.scale is None
        case Kind.REAL | Kind.DOUBLE | Kind.INTERVAL:
            return True
    return shows_blanks(sql_type)


def _domain_ids(domain: Lowered | None) -> tuple[int, ...]:
    return tuple(domain.layout) if domain is not None else ()
