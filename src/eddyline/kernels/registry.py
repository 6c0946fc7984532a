"""Every kernel there is."""

from __future__ import annotations

from typing import Final

from eddyline.kernels import (
    build,
    copyscan,
    floatmath,
    floatsum,
    gather,
    groups,
    hashing,
    key_set,
    loose_sums,
    numeric,
    picked,
    plain_numbers,
    prefix,
    reduce,
    rows,
    search,
    wire,
)
from eddyline.kernels.kernel import Kernel

__all__ = ["KERNELS", "MODULES"]

#: the files that hold kernels
MODULES: Final = (
    build, copyscan, floatmath, floatsum, gather, groups, hashing, key_set, loose_sums, numeric, picked, plain_numbers,
    prefix, reduce, rows, search, wire,
)  # fmt: skip

_NAMED: Final = [value for module in MODULES for value in vars(module).values() if isinstance(value, Kernel)]

#: all of them, once each, variants that keep the GIL included
KERNELS: Final[tuple[Kernel, ...]] = tuple(dict.fromkeys(k for named in _NAMED for k in (named, named.short)))
