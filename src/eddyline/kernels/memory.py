"""Loads, stores and copies at raw addresses: how kernels see Arrow buffers of any type without a specialisation each.

Every address is an int64.  These are code generators (intrinsics), inlined into their callers, not kernels.  What a
name means never changes (add a new name instead): cached kernels hold the old code.  Nothing is checked; it is an error
to pass an address outside a live buffer.  Loads and stores need no alignment.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "copy_bytes",
    "load_f32",
    "load_f64",
    "load_i16",
    "load_i32",
    "load_i64",
    "load_u8",
    "load_u64",
    "store_i64",
    "store_u8",
]

_BYTE = ir.IntType(8)
_SHORT = ir.IntType(16)
_INT = ir.IntType(32)
_LONG = ir.IntType(64)


def _load(llvm_type: Any, extend: str | None, result: Any) -> Any:
    def typed(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], llvm_type.as_pointer())
            value = builder.load(pointer, align=1)
            if extend == "sext":
                return builder.sext(value, _LONG)
            if extend == "zext":
                return builder.zext(value, _LONG)
            if extend == "fpext":
                return builder.fpext(value, ir.DoubleType())
            return value

        return result(types.int64), generate

    return intrinsic(typed)


def _store(llvm_type: Any, value_type: Any) -> Any:
    def typed(typingctx: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], llvm_type.as_pointer())
            value = args[1] if llvm_type is _LONG else builder.trunc(args[1], llvm_type)
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, value_type), generate

    return intrinsic(typed)


load_u8 = _load(_BYTE, "zext", types.uint64)
load_i16 = _load(_SHORT, "sext", types.int64)
load_i32 = _load(_INT, "sext", types.int64)
load_i64 = _load(_LONG, None, types.int64)
load_u64 = _load(_LONG, None, types.uint64)
load_f32 = _load(ir.FloatType(), "fpext", types.float64)
load_f64 = _load(ir.DoubleType(), None, types.float64)
store_u8 = _store(_BYTE, types.uint64)
store_i64 = _store(_LONG, types.int64)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
    """memcpy(target, source, size)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, size = args
        cgutils.raw_memcpy(
            builder,
            builder.inttoptr(target, _BYTE.as_pointer()),
            builder.inttoptr(source, _BYTE.as_pointer()),
            size,
            1,
            align=1,
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate
