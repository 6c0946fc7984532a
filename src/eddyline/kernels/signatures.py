"""The types that kernels state of their arguments, under the names that Numba has for them.

Numba itself is not asked for them: to import it takes as long as everything else that a start takes, and whoever only
defines kernels has no use for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from eddyline.repr.late_module import LateModule

__all__ = [
    "ADDRESS",
    "BOOL",
    "DESCS",
    "F64",
    "I8",
    "I64",
    "RUNS",
    "U8",
    "U64",
    "VOID",
    "Signature",
    "pair",
    "read",
    "write",
]

_types: Final = LateModule("numba.core.types")


@dataclass(frozen=True, slots=True)
class Scalar:
    """``count``: so many of it in a tuple.  Called with arguments' types it is the signature that gives it."""

    name: str
    count: int = 1

    def __call__(self, *arguments: Argument) -> Signature:
        return Signature(self, arguments)

    def numba(self) -> Any:
        """Numba's own; imports it."""
        one = getattr(_types, self.name)
        return one if self.count == 1 else _types.UniTuple(one, self.count)


@dataclass(frozen=True, slots=True)
class Array:
    """A C-contiguous array; ``readonly``: it may be."""

    dtype: Scalar
    dimensions: int
    readonly: bool

    def numba(self) -> Any:
        """Numba's own; imports it."""
        return _types.Array(self.dtype.numba(), self.dimensions, "C", readonly=self.readonly)


Argument: TypeAlias = Scalar | Array


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel takes and gives."""

    result: Scalar
    arguments: tuple[Argument, ...]

    def numba(self) -> Any:
        """Numba's own; imports it."""
        return self.result.numba()(*[argument.numba() for argument in self.arguments])


def read(dtype: Scalar, dimensions: int = 1) -> Array:
    """A C-contiguous array that the kernel only reads."""
    return Array(dtype, dimensions, readonly=True)


def write(dtype: Scalar, dimensions: int = 1) -> Array:
    """A C-contiguous array that the kernel fills."""
    return Array(dtype, dimensions, readonly=False)


def pair(dtype: Scalar) -> Scalar:
    """Two results of one type."""
    return replace(dtype, count=2)


VOID: Final = Scalar("void")
BOOL: Final = Scalar("boolean")
I8: Final = Scalar("int8")
I64: Final = Scalar("int64")
U64: Final = Scalar("uint64")
U8: Final = Scalar("uint8")
F64: Final = Scalar("float64")
ADDRESS: Final = I64
#: descriptors of the columns of one batch: int64[columns, cells.WIDTH]
DESCS: Final = read(I64, 2)
#: descriptors of the columns of several runs: int64[runs, columns, cells.WIDTH]
RUNS: Final = read(I64, 3)
