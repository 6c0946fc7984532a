"""Plans as text: a tree with one node a line, inputs indented below."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline.expr.describe import describe
from eddyline.expr.ir import AggregateCall, Expr, FilterStep, Literal, MapStep, Mfp, SortKey
from eddyline.plan import dataflow as df
from eddyline.plan.facts import IndexFacts
from eddyline.plan.fast_path import ConstantPlan, FastPath, PeekPlan, fast_path, linear_over
from eddyline.plan.lookup_join import lookup_join, peeks_of
from eddyline.plan.lower import lower
from eddyline.plan.operators import inputs_of
from eddyline.plan.parameters import has_parameters
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    LocalGet,
    Map,
    Negate,
    Project,
    Recursive,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from eddyline.plan.traverse import children, post_order
from eddyline.repr.ids import is_working
from eddyline.repr.types import SqlType

__all__ = ["Names", "explain_finishing", "explain_operators", "explain_query", "explain_relation", "used_indexes"]

INDENT = "  "


class Names:
    """What ids are called.  ``object_name``: of tables, views and indexes; ``columns``: of an object, or None."""

    def __init__(
        self,
        object_name: Callable[[str], str] = str,
        columns: Callable[[str], Sequence[str] | None] = lambda _: None,
    ) -> None:
        self.object_name = object_name
        self.columns = columns


def explain_query(
    relation: Relation, indexes: Sequence[IndexFacts], names: Names | None = None, stored: Sequence[IndexFacts] = ()
) -> str:
    """How an optimized query is answered: off an index, from constants, or by a dataflow that ends with the read."""
    names = names or Names()
    quick = fast_path(relation, indexes, stored)
    if quick is not None:
        return "\n".join(_fast_path_lines(quick, names))
    at_hand = linear_over(relation)
    if at_hand is not None and is_working(at_hand[0].id):
        columns = names.columns(at_hand[0].id)
        title = f"Rows of {names.object_name(at_hand[0].id)}"
        return "\n".join([title, *_mfp_lines(at_hand[1], len(at_hand[0].types), columns)])
    joined = lookup_join(relation, indexes, stored)
    head = "One-shot dataflow"
    if joined is not None:
        keys = [f"{_index_title(p, names)}" for p in peeks_of(joined)] or ["rows at hand"]
        head = f"Fast path: joined lookups in {', '.join(keys)}, where they find few rows; else a one-shot dataflow"
    lines = [head, *(INDENT + line for line in explain_relation(relation, names).splitlines())]
    return "\n".join([*lines, *_index_lines(relation, indexes, names)])


def explain_relation(relation: Relation, names: Names | None = None) -> str:
    """The tree of a relation."""
    names = names or Names()
    columns = _column_names(relation, names)
    lines: list[str] = []
    stack: list[tuple[Relation, int]] = [(relation, 0)]
    while stack:
        node, depth = stack.pop()
        lines.append(INDENT * depth + _line(node, columns, names))
        if isinstance(node, Let):  # bindings one below the other, the body at the same depth
            stack.append((node.body, depth))
            stack.append((node.value, depth + 1))
        else:
            stack.extend((child, depth + 1) for child in reversed(children(node)))
    return "\n".join(lines)


def explain_operators(operators: Sequence[df.Operator], names: Names | None = None) -> str:
    """The operators of a dataflow, numbered, with their inputs by number."""
    names = names or Names()
    lines = []
    for position, operator in enumerate(operators):
        sources = ", ".join(f"%{i}" for i in inputs_of(operator))
        lines.append(f"%{position} = {type(operator).__name__}({sources}){_operator_details(operator, names)}")
    return "\n".join(lines)


def _fast_path_lines(plan: FastPath, names: Names) -> list[str]:
    match plan:
        case ConstantPlan():
            return [f"Fast path: {len(plan.rows)} constant row(s)", *_mfp_lines(plan.mfp, len(plan.types), None)]
        case PeekPlan():
            columns = names.columns(plan.on)
            title = _index_title(plan, names)
            if plan.keys is None:
                first = f"Fast path: walk of {title}"
            else:
                keys = ", ".join(_key(plan, key) for key in plan.keys)
                first = f"Fast path: lookup in {title}, key {keys}"
            width = len(columns) if columns is not None else None
            return [first, *_mfp_lines(plan.mfp, width, columns)]


def _key(plan: PeekPlan, key: tuple[Expr, ...]) -> str:
    values = (f"ANY ({describe(e)})" if i in plan.each else describe(e) for i, e in enumerate(key))
    return f"({', '.join(values)})"


def _index_title(plan: PeekPlan, names: Names) -> str:
    if plan.from_storage:
        return f"the primary key of {names.object_name(plan.on)}"
    return f"index {names.object_name(plan.index)} on {names.object_name(plan.on)}"


def _mfp_lines(mfp: Mfp, width: int | None, columns: Sequence[str] | None) -> list[str]:
    known = list(columns) if columns is not None else None
    lines = []
    for step in mfp.steps:
        match step:
            case MapStep():
                text = describe(step.expr, known)
                lines.append(f"{INDENT}Map {text}")
                if known is not None:
                    known.append(f"({text})")
            case FilterStep():
                lines.append(f"{INDENT}Filter {describe(step.predicate, known)}")
    if width is None or mfp.projection != tuple(range(width)):
        picked = ", ".join(known[c] if known is not None else f"#{c}" for c in mfp.projection)
        lines.append(f"{INDENT}Project {picked}")
    return lines


def used_indexes(
    relation: Relation, indexes: Sequence[IndexFacts], stored: Sequence[IndexFacts] = ()
) -> tuple[str, ...]:
    """The ids of the indexes that an optimized query reads, as ``explain_query`` tells of them."""
    quick = fast_path(relation, indexes, stored)
    if quick is not None:
        return (quick.index,) if isinstance(quick, PeekPlan) and not quick.from_storage else ()
    joined = lookup_join(relation, indexes, stored)
    looked_up = () if joined is None else tuple(p.index for p in peeks_of(joined) if not p.from_storage)
    return tuple(dict.fromkeys((*looked_up, *_imported(relation, indexes))))


def _imported(relation: Relation, indexes: Sequence[IndexFacts]) -> list[str]:
    """The indexes that a dataflow reads."""
    if has_parameters(relation):  # what is rendered depends on their values; the objects read do not
        read = {node.id for node in post_order(relation) if isinstance(node, Get)}
        return [i.id for i in indexes if i.on in read]
    return [o.id for o in lower(relation, indexes) if isinstance(o, df.ImportIndex)]


def _index_lines(relation: Relation, indexes: Sequence[IndexFacts], names: Names) -> list[str]:
    used = _imported(relation, indexes)
    return ["Indexes used: " + ", ".join(names.object_name(i) for i in used)] if used else []


def _column_names(relation: Relation, names: Names) -> dict[int, list[str]]:
    """Per node object: a name for each of its columns."""
    bound = {node.name: node.value for node in post_order(relation) if isinstance(node, Let)}
    out: dict[int, list[str]] = {}
    for node in post_order(relation):
        out[id(node)] = _names_of(node, out, bound, names)
    return out


def _names_of(node: Relation, out: dict[int, list[str]], bound: dict[str, Relation], names: Names) -> list[str]:
    match node:
        case Get():
            columns = names.columns(node.id)
            return list(columns) if columns is not None else _numbers(node.types)
        case LocalGet():
            value = bound.get(node.name)
            return out[id(value)] if value is not None else _numbers(node.types)
        case Let():
            return out[id(node.body)]
        case Recursive():
            return list(node.columns)
        case Project():
            below = out[id(node.input)]
            return [below[c] for c in node.columns]
        case Map():
            below = list(out[id(node.input)])
            for expr in node.exprs:
                below.append(_short(describe(expr, below)))
            return below
        case FlatMap():
            return [*out[id(node.input)], *(node.func for _ in node.output)]
        case Join():
            left, right = out[id(node.left)], out[id(node.right)]
            return [*left, *right][: len(node.types)]
        case Reduce():
            below = out[id(node.input)]
            keys = [_short(describe(k, below)) for k in node.keys]
            return [*keys, *(_short(_aggregate(a, below)) for a in node.aggregates)]
        case Constant():
            return _numbers(node.types)
        case Filter() | Distinct() | TopK() | Union() | Negate() | Threshold():
            return out[id(children(node)[0])]


def _numbers(types: Sequence[SqlType]) -> list[str]:
    return [f"#{i}" for i in range(len(types))]


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _list(exprs: Sequence[Expr], columns: Sequence[str] | None) -> str:
    return ", ".join(describe(e, columns) for e in exprs)


def _line(node: Relation, columns: dict[int, list[str]], names: Names) -> str:
    match node:
        case Constant():
            return f"Constant {len(node.rows)} row(s)"
        case Get():
            return f"Get {names.object_name(node.id)}"
        case LocalGet():
            return f"Get shared {node.name}"
        case Let():
            return f"Shared {node.name} ="
        case Recursive():
            return f"Recursive union of {node.label}"
        case Project():
            return "Project " + ", ".join(columns[id(node)])
        case Map():
            return "Map " + _list(node.exprs, columns[id(node)])
        case Filter():
            return "Filter " + " AND ".join(describe(p, columns[id(node)]) for p in node.predicates)
        case FlatMap():
            return f"FlatMap {node.func}({_list(node.args, columns[id(node.input)])})"
        case Join():
            both = [*columns[id(node.left)], *columns[id(node.right)]]
            condition = " AND ".join(describe(p, both) for p in node.on)
            return f"{node.kind.value.capitalize()} join" + (f" on {condition}" if condition else "")
        case Reduce():
            below = columns[id(node.input)]
            keys = f" by {_list(node.keys, below)}" if node.keys else ""
            calls = ", ".join(_aggregate(a, below) for a in node.aggregates)
            return f"Reduce{keys}" + (f": {calls}" if calls else "")
        case TopK():
            return "TopK" + _top_k(node, columns[id(node)])
        case Distinct() | Union() | Negate() | Threshold():
            return type(node).__name__


def _top_k(node: TopK, columns: Sequence[str]) -> str:
    parts = []
    if node.group:
        parts.append("by " + ", ".join(columns[c] for c in node.group))
    parts += _limits(node.order, node.limit, node.offset, columns)
    return "".join(" " + p for p in parts)


def explain_finishing(
    order: Sequence[SortKey], limit: Expr | None, offset: Expr | None, columns: Sequence[str]
) -> str | None:
    """How the rows of an answer are ordered and cut once they are there; None if they are not."""
    parts = _limits(order, limit, offset, columns)
    return "Finish:" + "".join(" " + p for p in parts) if parts else None


def _limits(order: Sequence[SortKey], limit: Expr | None, offset: Expr | None, columns: Sequence[str]) -> list[str]:
    parts = []
    if order:
        parts.append("order " + ", ".join(_sort_key(k, columns) for k in order))
    for word, expr in (("limit", limit), ("offset", offset)):
        if expr is not None:
            parts.append(f"{word} {expr.value if isinstance(expr, Literal) else describe(expr)}")
    return parts


def _sort_key(key: SortKey, columns: Sequence[str]) -> str:
    desc = " DESC" if key.desc else ""
    nulls = "" if key.nulls_first == key.desc else " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return columns[key.column] + desc + nulls


def _aggregate(call: AggregateCall, columns: Sequence[str] | None) -> str:
    args = _list(call.args, columns) if call.args else "*"
    order = ", ".join(describe(e, columns) + (" DESC" if desc else "") for e, desc, _ in call.order_by)
    inside = ("DISTINCT " if call.distinct else "") + args + (f" ORDER BY {order}" if order else "")
    condition = "" if call.filter is None else f" FILTER ({describe(call.filter, columns)})"
    return f"{call.func}({inside}){condition}"


def _operator_details(operator: df.Operator, names: Names) -> str:
    match operator:
        case df.ImportSource() | df.ImportIndex() | df.ExportMaterializedView() | df.ExportSubscribe():
            return f" {names.object_name(operator.id)}"
        case df.ExportIndex():
            return f" {names.object_name(operator.id)} on {names.object_name(operator.on)}"
        case df.ConstantSource():
            return f" {len(operator.rows)} row(s)"
        case df.BatchSource():
            return " rows at hand"
        case df.MapFilterProject() | df.Join():
            return _mfp_text(operator.mfp)
        case df.FlatMap():
            return f" {operator.func}" + (_mfp_text(operator.mfp) if operator.mfp is not None else "")
        case df.Arrange():
            return " key (" + ", ".join(f"#{c}" for c in operator.key) + ")"
        case df.Reduce():
            calls = ", ".join(_aggregate(a, None) for a in operator.aggregates)
            return f" {operator.functions.value} by (" + ", ".join(f"#{c}" for c in operator.key) + f"): {calls}"
        case df.TopK():
            return f" group {operator.group} limit {operator.limit} offset {operator.offset}"
        case _:
            return ""


def _mfp_text(mfp: Mfp) -> str:
    steps = [
        f"map {describe(s.expr)}" if isinstance(s, MapStep) else f"filter {describe(s.predicate)}" for s in mfp.steps
    ]
    return " " + "; ".join([*steps, "project (" + ", ".join(f"#{c}" for c in mfp.projection) + ")"])
