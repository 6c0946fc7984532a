"""Registry of scalar and aggregate functions: what a name means (overloads) and what runs it (implementations).

Function modules import this module and register at import time; everybody else imports ``eddyline.expr.functions``,
which loads them all.  Invariants:
I1  an implementation id is registered once; every overload's ``impl`` has an implementation (a test checks it);
I2  the registry is written only while modules are imported, and read-only afterwards.

An implementation gets its arguments already evaluated.  Where a strict one has a NULL argument, the evaluator makes
the result NULL and drops its errors, so implementations may compute anything there, as long as they do not crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.types import Kind, SqlType

__all__ = [
    "AggregateOverload",
    "Arguments",
    "Evaluated",
    "Implementation",
    "Overload",
    "ResultRule",
    "RowErrors",
    "aggregate_overloads",
    "declare",
    "declare_aggregate",
    "failures",
    "implementation",
    "implements",
    "merge_errors",
    "overloads",
    "registered_aggregates",
    "registered_names",
    "sql_name",
]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
ResultRule: TypeAlias = SqlType | Callable[[Sequence[SqlType]], SqlType]


class RowErrors(NamedTuple):
    """Failures of single rows.  ``rows``: int64[k], sorted, unique; the lists have length k.

    Implementations leave ``expressions`` empty; the evaluator fills it in.
    """

    rows: Int64s
    sqlstates: list[str]
    messages: list[str]
    expressions: list[str]


class Evaluated(NamedTuple):
    """A column and its failures; where a row failed its value is NULL or undefined."""

    array: pa.Array
    errors: RowErrors | None = None


def failures(where: Bools | Int64s, sqlstate: str, message: str | Sequence[str]) -> RowErrors | None:
    """One kind of failure on the rows of a mask (bool[n]) or a sorted index (int64[k]); None if there are none.

    ``message``: one for all, or one per failing row.
    """
    rows = np.flatnonzero(where) if where.dtype == np.bool_ else where
    count = len(rows)
    if not count:
        return None
    messages = [message] * count if isinstance(message, str) else list(message)
    return RowErrors(rows.astype(np.int64, copy=False), [sqlstate] * count, messages, [])


def merge_errors(*parts: RowErrors | None) -> RowErrors | None:
    """The union; of several failures of one row the earliest part's stays."""
    present = [p for p in parts if p is not None and len(p.rows)]
    if len(present) <= 1:
        return present[0] if present else None
    rows = np.concatenate([p.rows for p in present])
    unique, first = np.unique(rows, return_index=True)
    sqlstates = [s for p in present for s in p.sqlstates]
    messages = [m for p in present for m in p.messages]
    # A part straight from an implementation has no expressions yet, and then none of the parts has.
    expressions = [x for p in present for x in p.expressions]
    positions = first.tolist()
    return RowErrors(
        unique,
        [sqlstates[i] for i in positions],
        [messages[i] for i in positions],
        [expressions[i] for i in positions] if expressions else [],
    )


class Arguments(Sequence[pa.Array]):
    """Evaluated arguments.  ``args[i]`` is a contiguous array of ``rows`` values in the layout of its type.

    A constant argument is kept as a scalar and repeated only when it is indexed: ask ``constant(i)`` or
    ``operand(i)`` first where a scalar is cheaper.
    """

    __slots__ = ("_repeated", "_rows", "_values")

    def __init__(self, values: Sequence[pa.Array | pa.Scalar], rows: int) -> None:
        self._values = list(values)
        self._rows = rows
        self._repeated: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> pa.Array:  # type: ignore[override]  # no slices
        value = self._values[index]
        if isinstance(value, pa.Scalar):
            if index not in self._repeated:
                self._repeated[index] = pa.repeat(value, self._rows)
            return self._repeated[index]
        return value

    def constant(self, index: int) -> pa.Scalar | None:
        """The scalar, if argument ``index`` is a constant (its value may be NULL: ``.is_valid``)."""
        value = self._values[index]
        return value if isinstance(value, pa.Scalar) else None

    def operand(self, index: int) -> pa.Array | pa.Scalar:
        """The scalar of a constant, else the array: what ``pyarrow.compute`` takes."""
        return self._values[index]


class Function(Protocol):
    """``types``: the arguments' types; ``result``: the call's.  Returns an array of ``rows`` values in the layout of
    ``result``, with the failures if the implementation is fallible."""

    def __call__(
        self, args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int
    ) -> pa.Array | Evaluated: ...


@dataclass(frozen=True, slots=True)
class Implementation:
    """``strict``: NULL in, NULL out.  ``fallible``: may fail on some row, so that it must stay behind its guard."""

    name: str
    function: Function
    strict: bool
    fallible: bool


@dataclass(frozen=True, slots=True)
class Overload:
    """One meaning of a SQL name.

    ``args`` are the kinds that resolution matches; ``variadic`` is the kind of any number (>= 1) of further ones.
    ``evaluated``: the kinds to which the binder casts the arguments, where they differ from ``args`` (``real = double
    precision`` compares as double precision).  ``result``: a type, or a rule over the types of the cast arguments.
    """

    name: str
    args: tuple[Kind, ...]
    result: ResultRule
    impl: str
    variadic: Kind | None = None
    evaluated: tuple[Kind, ...] | None = None

    @property
    def strict(self) -> bool:
        return implementation(self.impl).strict

    @property
    def fallible(self) -> bool:
        return implementation(self.impl).fallible

    def result_type(self, types: Sequence[SqlType]) -> SqlType:
        """The call's type, given the types of its arguments after the casts."""
        return self.result if isinstance(self.result, SqlType) else self.result(types)


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """One meaning of an aggregate's name; ``func`` is ``AggregateCall.func``.  No ``args``: ``count(*)``.
    ``args`` None: one argument of any type."""

    name: str
    args: tuple[Kind, ...] | None
    result: ResultRule
    func: str

    def result_type(self, types: Sequence[SqlType]) -> SqlType:
        return self.result if isinstance(self.result, SqlType) else self.result(types)


_OVERLOADS: dict[str, list[Overload]] = {}
_AGGREGATES: dict[str, list[AggregateOverload]] = {}
_IMPLEMENTATIONS: dict[str, Implementation] = {}
_SQL_NAMES: dict[str, str] = {}


def declare(*entries: Overload) -> None:
    """Adds meanings to their names."""
    for entry in entries:
        _OVERLOADS.setdefault(entry.name, []).append(entry)
        if _SQL_NAMES.setdefault(entry.impl, entry.name) != entry.impl == entry.name:
            _SQL_NAMES[entry.impl] = entry.name


def declare_aggregate(*entries: AggregateOverload) -> None:
    for entry in entries:
        _AGGREGATES.setdefault(entry.name, []).append(entry)


def overloads(name: str) -> tuple[Overload, ...]:
    """All meanings of a function or operator name; empty if there is none.

    Operators go by their PostgreSQL names; prefix minus and plus are ``u-`` and ``u+``.
    """
    return tuple(_OVERLOADS.get(name, ()))


def aggregate_overloads(name: str) -> tuple[AggregateOverload, ...]:
    return tuple(_AGGREGATES.get(name, ()))


def registered_names() -> frozenset[str]:
    """Every function and operator name that has an overload."""
    return frozenset(_OVERLOADS)


def registered_aggregates() -> frozenset[str]:
    """Every aggregate's name."""
    return frozenset(_AGGREGATES)


def sql_name(implementation: str) -> str:
    """What users call it: its own name, if that is one of SQL's, or the first that was declared with it."""
    return _SQL_NAMES.get(implementation, implementation)


def implements(name: str, *, strict: bool = True, fallible: bool = False) -> Callable[[Function], Function]:
    """Registers the decorated function as implementation ``name``; ValueError if it is taken."""

    def register(function: Function) -> Function:
        if name in _IMPLEMENTATIONS:
            raise ValueError(f"implementation {name} is registered twice")
        _IMPLEMENTATIONS[name] = Implementation(name, function, strict, fallible)
        return function

    return register


def implementation(name: str) -> Implementation:
    """The implementation that ``Call.func`` names; KeyError if there is none."""
    return _IMPLEMENTATIONS[name]
