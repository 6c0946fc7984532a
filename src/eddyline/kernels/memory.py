"""Loads, stores and copies at raw addresses: how kernels see Arrow buffers of any type without a specialisation each.

Every address is an int64.  These are code generators (intrinsics), inlined into their callers, not kernels.  What a
name means never changes (add a new name instead): cached kernels hold the old code.  Nothing is checked; it is an error
to pass an address outside a live buffer.  Loads and stores need no alignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eddyline.kernels.kernel import Late
from eddyline.repr.late_module import LateModule

__all__ = [
    "copy_bytes",
    "load_f32",
    "load_f64",
    "load_i16",
    "load_i32",
    "load_i64",
    "load_u8",
    "load_u64",
    "prefetch",
    "store_i64",
    "store_u8",
]

_ir: Final = LateModule("llvmlite.ir")
_cgutils: Final = LateModule("numba.core.cgutils")
_extending: Final = LateModule("numba.extending")
_types: Final = LateModule("numba.core.types")


def _integer(bits: int) -> Any:
    return _ir.IntType(bits)


def _float() -> Any:
    return _ir.FloatType()


def _double() -> Any:
    return _ir.DoubleType()


def _intrinsic(typed: Callable[..., Any]) -> Any:
    return Late(lambda: _extending.intrinsic(typed))


def _load(llvm_type: Callable[[], Any], extend: str | None, result: str) -> Any:
    def typed(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], llvm_type().as_pointer())
            value = builder.load(pointer, align=1)
            if extend == "sext":
                return builder.sext(value, _integer(64))
            if extend == "zext":
                return builder.zext(value, _integer(64))
            if extend == "fpext":
                return builder.fpext(value, _double())
            return value

        return getattr(_types, result)(_types.int64), generate

    return _intrinsic(typed)


def _store(bits: int, value_type: str) -> Any:
    def typed(typingctx: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], _integer(bits).as_pointer())
            value = args[1] if bits == 64 else builder.trunc(args[1], _integer(bits))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return _types.void(_types.int64, getattr(_types, value_type)), generate

    return _intrinsic(typed)


load_u8 = _load(lambda: _integer(8), "zext", "uint64")
load_i16 = _load(lambda: _integer(16), "sext", "int64")
load_i32 = _load(lambda: _integer(32), "sext", "int64")
load_i64 = _load(lambda: _integer(64), None, "int64")
load_u64 = _load(lambda: _integer(64), None, "uint64")
load_f32 = _load(_float, "fpext", "float64")
load_f64 = _load(_double, None, "float64")
store_u8 = _store(8, "uint64")
store_i64 = _store(64, "int64")


def _copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, size = args
        byte = _integer(8).as_pointer()
        _cgutils.raw_memcpy(builder, builder.inttoptr(target, byte), builder.inttoptr(source, byte), size, 1, align=1)
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), generate


#: memcpy(target, source, size)
copy_bytes = _intrinsic(_copy_bytes)


def _prefetch(typingctx: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, word = _integer(8).as_pointer(), _integer(32)
        wanted = _ir.FunctionType(_ir.VoidType(), (pointer, word, word, word))
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), wanted)
        # To be read, to be kept in all caches, as data.
        builder.call(function, (builder.inttoptr(args[0], pointer), word(0), word(3), word(1)))
        return context.get_dummy_value()

    return _types.void(_types.int64), generate


#: asks for the cache line at an address, which may be outside a live buffer: nothing waits for it
prefetch = _intrinsic(_prefetch)
