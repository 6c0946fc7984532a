"""Plans whose every lookup has one key and whose rows come as they are: what ``quick_lookup`` runs.

A *point* is one such lookup; a *point join* looks the rows of its right side up by values of each row of its left
side, or by keys of its own.  Joins are only compiled where ON says no more than that the keys are equal: then what
the probe finds is what ON lets through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from eddyline.adapter.clusters import Cluster
from eddyline.adapter.engine import Engine
from eddyline.expr.arithmetic import INTEGER_LIMITS
from eddyline.expr.ir import Call, Column, Expr, FilterStep, Literal, LiteralValue, Mfp, Parameter
from eddyline.expr.literals import scalar_literal
from eddyline.plan.fast_path import PeekPlan
from eddyline.plan.lookup_join import LookupJoin, LookupNode, key_number
from eddyline.repr.ids import is_log
from eddyline.repr.time import Time
from eddyline.repr.types import Kind, SqlType
from eddyline.trace.point_probe import Found, PointProbe, point_probe

__all__ = ["AS_THEY_ARE", "PointNode", "Row", "point_node"]

#: the row's values as literals, and how often it is there
Row = tuple[tuple[LiteralValue, ...], int]

_LookUp: TypeAlias = Callable[[str, Time, PointProbe], list[Found] | None]
#: rows of a left side that are looked up one by one
_FEW_ROWS: Final = 16
#: kinds whose literals are the values of the Arrow arrays, and Python's
AS_THEY_ARE: Final = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE, Kind.TEXT, Kind.VARCHAR}
)
_TEXTS: Final = frozenset({Kind.TEXT, Kind.VARCHAR})


class PointNode(Protocol):
    """``parameters``: the numbers of those that it reads.  ``indexes``, ``stored``: what it looks up, and who keeps
    that.  ``types``: of its rows.
    """

    @property
    def parameters(self) -> frozenset[int]: ...
    @property
    def indexes(self) -> tuple[str, ...]: ...
    @property
    def stored(self) -> tuple[str, ...]: ...
    @property
    def types(self) -> tuple[SqlType, ...]: ...

    def rows(self, at: Time, parameters: Sequence[LiteralValue], given: Sequence[LiteralValue]) -> list[Row] | None:
        """The rows at ``at``; None: it takes more than this to tell.  ``given``: of the row that asks, if one does."""
        ...


class _Source(NamedTuple):
    """Where a value of a key comes from: a literal, else a parameter or the row that asks, by position.

    ``limits``: of the key column; a value outside equals nothing, and is not looked up here.
    """

    value: LiteralValue
    parameter: int | None
    given: int | None
    limits: tuple[int, int] | None


class _Cell(NamedTuple):
    column: int
    read: Callable[[pa.Array, int], LiteralValue]


class Point:
    """One lookup; see ``PointNode``."""

    def __init__(self, plan: PeekPlan, look_up: _LookUp, probe: PointProbe, sources: Sequence[_Source]) -> None:
        self._id = plan.index
        self._look_up = look_up
        self._probe = probe
        self._sources = sources
        self._cells = [_Cell(c, _reader(t)) for c, t in zip(plan.mfp.projection, plan.mfp.types, strict=True)]
        self.parameters = frozenset(s.parameter + 1 for s in sources if s.parameter is not None)
        self.indexes = () if plan.from_storage else (plan.index,)
        self.stored = (plan.index,) if plan.from_storage else ()
        self.types = plan.mfp.types

    def rows(self, at: Time, parameters: Sequence[LiteralValue], given: Sequence[LiteralValue]) -> list[Row] | None:
        key = []
        for literal, parameter, place, limits in self._sources:
            value = parameters[parameter] if parameter is not None else given[place] if place is not None else literal
            # NULL, or what the column cannot hold, equals nothing; but an index that is not looked up may have errors.
            if value is None or not (limits is None or (isinstance(value, int) and limits[0] <= value <= limits[1])):
                return None
            key.append(value)
        probe = self._probe
        if not probe.set_key(key):
            return None
        found = self._look_up(self._id, at, probe)
        if found is None:
            return None
        rows: list[Row] = []
        for run, row, diff in found:
            columns = run.columns
            rows.append((tuple([read(columns[column], row) for column, read in self._cells]), diff))
        return rows


class PointJoin:
    """The rows of ``left``, each with those that ``right`` finds for it; see ``PointNode``."""

    def __init__(self, plan: LookupJoin, left: PointNode, right: PointNode) -> None:
        self._left = left
        self._right = right
        self._alone = plan.keys is None
        self._keys = [k.index for k in plan.keys or () if isinstance(k, Column)]
        self._projection = plan.mfp.projection
        self._unmatched: list[Row] = [((None,) * len(right.types), 1)] if plan.outer else []
        self.parameters = left.parameters | right.parameters
        self.indexes = (*left.indexes, *right.indexes)
        self.stored = (*left.stored, *right.stored)
        self.types = plan.mfp.types

    def rows(self, at: Time, parameters: Sequence[LiteralValue], given: Sequence[LiteralValue]) -> list[Row] | None:
        lefts = self._left.rows(at, parameters, given)
        if not lefts or len(lefts) > _FEW_ROWS:  # without a row the right side would not be looked at
            return None
        rows: list[Row] = []
        for values, diff in lefts:
            rights = self._right.rows(at, parameters, [values[k] for k in self._keys])
            if rights is None:
                return None
            for others, times in rights or self._unmatched:
                both = values + others
                rows.append((tuple([both[c] for c in self._projection]), diff * times))
        return rows


def point_node(
    engine: Engine, cluster: Cluster | None, plan: LookupNode, key_columns: Mapping[str, tuple[int, ...]]
) -> PointNode | None:
    """The plan as points; None if it is more than that.

    ``cluster``: which keeps the plan's indexes.  ``key_columns``: of indexes and stored keys, by id.
    """
    if isinstance(plan, PeekPlan):
        return _point(engine, cluster, plan, ())
    if plan.mfp.steps or not isinstance(plan.right, PeekPlan):
        return None
    if not all(isinstance(k, Column) for k in plan.keys or ()) or not _only_keys(plan, key_columns):
        return None
    left = point_node(engine, cluster, plan.left, key_columns)
    right = _point(engine, cluster, plan.right, [k.type for k in plan.keys or () if isinstance(k, Column)])
    return None if left is None or right is None else PointJoin(plan, left, right)


def _point(engine: Engine, cluster: Cluster | None, plan: PeekPlan, given: Sequence[SqlType]) -> Point | None:
    """``given``: types of what a row that asks gives."""
    if plan.keys is None or len(plan.keys) != 1 or plan.each or plan.mfp.steps or is_log(plan.index):
        return None
    probe = point_probe(plan.key_types, engine.hasher)
    sources = [_source(e, t, given) for e, t in zip(plan.keys[0], plan.key_types, strict=True)]
    if probe is None or None in sources:
        return None
    look_up: _LookUp
    if plan.from_storage:
        look_up = engine.store.look_up
    elif cluster is not None:
        look_up = cluster.look_up
    else:
        return None
    return Point(plan, look_up, probe, [s for s in sources if s is not None])


def _source(expr: Expr, column: SqlType, given: Sequence[SqlType]) -> _Source | None:
    limits = INTEGER_LIMITS.get(column.kind)
    number = key_number(expr)
    if number is not None:
        return _Source(None, None, number, limits) if _alike(given[number], column) else None
    if isinstance(expr, Parameter) and _alike(expr.type, column):
        return _Source(None, expr.index - 1, None, limits)
    if isinstance(expr, Literal) and expr.value is not None and _alike(expr.type, column):
        return _Source(expr.value, None, None, limits)
    return None


def _alike(value: SqlType, column: SqlType) -> bool:
    """Whether literals of the one are literals of the other."""
    families = (INTEGER_LIMITS.keys(), _TEXTS)
    return value.kind is column.kind or any(value.kind in f and column.kind in f for f in families)


def _only_keys(plan: LookupJoin, key_columns: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether ON says no more than the right side's keys do."""
    width = len(_types(plan.left))
    on: Mfp = plan.on
    if on.projection != tuple(range(len(on.types))):
        return False
    assert isinstance(plan.right, PeekPlan), "the caller has looked"
    of_right = _bound(plan.right, key_columns)
    of_left = _bound(plan.left, key_columns) if isinstance(plan.left, PeekPlan) else {}
    for step in on.steps:
        predicate = step.predicate if isinstance(step, FilterStep) else None
        if not isinstance(predicate, Call) or predicate.func != "eq":
            return False
        columns = sorted(a.index for a in predicate.args if isinstance(a, Column))
        if len(columns) != 2 or not columns[0] < width <= columns[1]:
            return False
        value = of_right.get(columns[1] - width)
        number = None if value is None else key_number(value)
        if number is not None:
            key = plan.keys[number] if plan.keys is not None else None
            if not isinstance(key, Column) or key.index != columns[0]:
                return False
        elif value is None or of_left.get(columns[0]) != value:
            return False
    return True


def _types(plan: LookupNode) -> tuple[SqlType, ...]:
    return plan.mfp.types


def _bound(plan: PeekPlan, key_columns: Mapping[str, tuple[int, ...]]) -> dict[int, Expr]:
    """What the lookup makes its output columns equal to."""
    columns = key_columns.get(plan.index)
    if columns is None or plan.keys is None or len(plan.keys) != 1 or plan.each:
        return {}
    by_column = dict(zip(columns, plan.keys[0], strict=True))
    return {out: by_column[c] for out, c in enumerate(plan.mfp.projection) if c in by_column}


def _reader(sql_type: SqlType) -> Callable[[pa.Array, int], LiteralValue]:
    if sql_type.kind in AS_THEY_ARE:
        return _native
    return lambda array, row: scalar_literal(array[row], sql_type)


def _native(array: pa.Array, row: int) -> LiteralValue:
    value: LiteralValue = array[row].as_py()
    return value
