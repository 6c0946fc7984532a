"""Integer and floating-point arithmetic with PostgreSQL's overflow rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expr.layout import fixed_array, validity, values_of
from eddyline.expr.registry import Arguments, Evaluated, Function, RowErrors, failures, implements, merge_errors
from eddyline.expr.rowwise import map_rows
from eddyline.kernels.floatmath import EXP, LN, LOG10, float_function
from eddyline.kernels.floatmath import float_power as raise_to
from eddyline.repr.types import Kind, SqlType

__all__ = ["INTEGER_LIMITS", "float_column", "int_column", "out_of_range"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[Any]
Ints = npt.NDArray[Any]

INTEGER_LIMITS: dict[Kind, tuple[int, int]] = {
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
_INT_DTYPES: dict[Kind, type[np.signedinteger[Any]]] = {
    Kind.SMALLINT: np.int16,
    Kind.INTEGER: np.int32,
    Kind.BIGINT: np.int64,
}
_FLOAT_DTYPES: dict[Kind, type[np.floating[Any]]] = {Kind.REAL: np.float32, Kind.DOUBLE: np.float64}

ZERO_DIVISION = ("22012", "division by zero")
FLOAT_OVERFLOW = ("22003", "value out of range: overflow")
FLOAT_UNDERFLOW = ("22003", "value out of range: underflow")


def out_of_range(kind: Kind) -> tuple[str, str]:
    """(SQLSTATE, message) of a value that does not fit the type."""
    return "22003", f"{kind.value} out of range"


def int_column(array: pa.Array, kind: Kind) -> Ints:
    """The values of an integer column, read-only; a NULL's value is anything."""
    return values_of(array, _INT_DTYPES[kind])


def float_column(array: pa.Array, kind: Kind) -> Floats:
    """The values of a float column, read-only, with 1.0 for NULLs (which then raise no false alarm)."""
    values = values_of(array, _FLOAT_DTYPES[kind])
    valid = validity(array)
    return values if valid is None else np.where(valid, values, values.dtype.type(1))


# --- integers ---------------------------------------------------------------------------------------------------


def _int_operand(args: Arguments, index: int, kind: Kind) -> Ints:
    """An integer argument; a constant as an array of one value, which broadcasts."""
    scalar = args.constant(index)
    if scalar is not None and len(args) > 1 and args.constant(1 - index) is None:
        return np.full(1, scalar.as_py(), _INT_DTYPES[kind])
    return int_column(args[index], kind)


def _overflow_add(a: Ints, b: Ints, total: Ints) -> Bools:
    return ((a ^ total) & (b ^ total)) < 0


def _overflow_sub(a: Ints, b: Ints, total: Ints) -> Bools:
    return ((a ^ b) & (a ^ total)) < 0


def _int_sum(subtract: bool) -> Function:
    overflow = _overflow_sub if subtract else _overflow_add

    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        kind = result.kind
        a, b = _int_operand(args, 0, kind), _int_operand(args, 1, kind)
        total = a - b if subtract else a + b
        return Evaluated(fixed_array(total, result), failures(overflow(a, b, total), *out_of_range(kind)))

    return apply


implements("int_add", fallible=True)(_int_sum(False))
implements("int_sub", fallible=True)(_int_sum(True))


@implements("int_mul", fallible=True)
def int_mul(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    kind = result.kind
    a, b = _int_operand(args, 0, kind), _int_operand(args, 1, kind)
    if kind is not Kind.BIGINT:
        wide = a.astype(np.int64) * b
        low, high = INTEGER_LIMITS[kind]
        bad = (wide < low) | (wide > high)
        return Evaluated(fixed_array(wide.astype(_INT_DTYPES[kind]), result), failures(bad, *out_of_range(kind)))
    product = a * b
    bad = _overflow_mul(a, b, product)
    return Evaluated(fixed_array(product, result), failures(bad, *out_of_range(kind)))


def _overflow_mul(a: Ints, b: Ints, product: Ints) -> Bools:
    """Where the true product leaves int64: far from the limits a float estimate tells, near them a division does."""
    estimate = np.abs(a.astype(np.float64) * b.astype(np.float64))
    bad = estimate > 9.3e18
    near = np.flatnonzero((estimate >= 9.1e18) & ~bad)
    if len(near):
        a, b = np.broadcast_to(a, product.shape)[near], np.broadcast_to(b, product.shape)[near]
        bad[near] = [not -(2**63) <= x * y < 2**63 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return bad


@implements("int_div", fallible=True)
def int_div(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """Truncates toward zero."""
    kind = result.kind
    a, b = _int_operand(args, 0, kind), _int_operand(args, 1, kind)
    zero = b == 0
    lowest = (a == INTEGER_LIMITS[kind][0]) & (b == -1)
    divisor = np.where(zero | (b == -1), 1, b).astype(b.dtype)
    quotient = a // divisor
    quotient = quotient + ((quotient < 0) & (quotient * divisor != a))
    with np.errstate(over="ignore"):
        quotient = np.where(b == -1, -a, quotient).astype(a.dtype)
    zero = np.broadcast_to(zero, quotient.shape)
    errors = merge_errors(failures(zero, *ZERO_DIVISION), failures(lowest, *out_of_range(kind)))
    return Evaluated(fixed_array(quotient, result), errors)


@implements("int_mod", fallible=True)
def int_mod(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The sign is the dividend's."""
    kind = result.kind
    a, b = _int_operand(args, 0, kind), _int_operand(args, 1, kind)
    zero = b == 0
    rest = np.fmod(a, np.where(zero | (b == -1), 1, b).astype(b.dtype))
    return Evaluated(fixed_array(rest, result), failures(np.broadcast_to(zero, rest.shape), *ZERO_DIVISION))


@implements("int_neg", fallible=True)
def int_neg(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    values = int_column(args[0], result.kind)
    bad = values == INTEGER_LIMITS[result.kind][0]
    return Evaluated(fixed_array(-values, result), failures(bad, *out_of_range(result.kind)))


@implements("int_abs", fallible=True)
def int_abs(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    values = int_column(args[0], result.kind)
    bad = values == INTEGER_LIMITS[result.kind][0]
    return Evaluated(fixed_array(np.abs(values), result), failures(bad, *out_of_range(result.kind)))


def _identity(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return args[0]


for _kind in ("int", "float", "numeric"):
    implements(f"{_kind}_plus")(_identity)


def _bitwise(operation: Callable[[Ints, Ints], Ints]) -> Function:
    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        a, b = int_column(args[0], result.kind), int_column(args[1], result.kind)
        return fixed_array(operation(a, b), result)

    return apply


implements("bit_and")(_bitwise(np.bitwise_and))
implements("bit_or")(_bitwise(np.bitwise_or))
implements("bit_xor")(_bitwise(np.bitwise_xor))


@implements("bit_not")
def bit_not(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return fixed_array(~int_column(args[0], result.kind), result)


def _shift(left: bool) -> Function:
    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        values = int_column(args[0], result.kind)
        bits = values.dtype.itemsize * 8
        # As C does it on a machine that masks shift counts; smallint is shifted as an int.
        count = int_column(args[1], Kind.INTEGER) & (max(bits, 32) - 1)
        wide = values.astype(np.int64)
        shifted = wide << count if left else wide >> count
        return fixed_array(shifted.astype(values.dtype), result)

    return apply


implements("bit_shift_left")(_shift(True))
implements("bit_shift_right")(_shift(False))


# --- floats -----------------------------------------------------------------------------------------------------


def _float_result(
    values: Floats, result: SqlType, overflow: Bools | None = None, underflow: Bools | None = None
) -> Evaluated:
    errors: RowErrors | None = None
    if overflow is not None:
        errors = failures(overflow, *FLOAT_OVERFLOW)
    if underflow is not None:
        errors = merge_errors(errors, failures(underflow, *FLOAT_UNDERFLOW))
    return Evaluated(fixed_array(values, result), errors)


def _pair(args: Arguments, types: Sequence[SqlType]) -> tuple[Floats, Floats]:
    return float_column(args[0], types[0].kind), float_column(args[1], types[1].kind)


def _float_sum(operation: Callable[[Floats, Floats], Floats]) -> Function:
    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        a, b = _pair(args, types)
        with np.errstate(all="ignore"):
            total = operation(a, b)
        return _float_result(total, result, np.isinf(total) & ~np.isinf(a) & ~np.isinf(b))

    return apply


implements("float_add", fallible=True)(_float_sum(np.add))
implements("float_sub", fallible=True)(_float_sum(np.subtract))


@implements("float_mul", fallible=True)
def float_mul(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    a, b = _pair(args, types)
    with np.errstate(all="ignore"):
        product = a * b
    overflow = np.isinf(product) & ~np.isinf(a) & ~np.isinf(b)
    return _float_result(product, result, overflow, (product == 0) & (a != 0) & (b != 0))


@implements("float_div", fallible=True)
def float_div(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    a, b = _pair(args, types)
    zero = (b == 0) & ~np.isnan(a)
    with np.errstate(all="ignore"):
        quotient = a / b
    overflow = np.isinf(quotient) & ~np.isinf(a) & ~zero
    underflow = (quotient == 0) & (a != 0) & ~np.isinf(b)
    made = _float_result(quotient, result, overflow, underflow)
    return Evaluated(made.array, merge_errors(failures(zero, *ZERO_DIVISION), made.errors))


def _float_map(operation: Callable[[Floats], Floats]) -> Function:
    """A function that cannot fail."""

    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        with np.errstate(all="ignore"):
            return fixed_array(operation(float_column(args[0], types[0].kind)), result)

    return apply


implements("float_neg")(_float_map(np.negative))
implements("float_abs")(_float_map(np.abs))
implements("float_ceil")(_float_map(np.ceil))
implements("float_floor")(_float_map(np.floor))
implements("float_round")(_float_map(np.rint))
implements("float_trunc")(_float_map(np.trunc))
implements("float_sign")(_float_map(lambda x: np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))))


@implements("float_cbrt")
def float_cbrt(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return map_rows([args[0]], math.cbrt, pa.float64()).array


def _elementwise(values: Floats, function: int) -> Floats:
    out = np.empty(len(values), np.float64)
    float_function(np.ascontiguousarray(values), function, out)
    return out


@implements("float_sqrt", fallible=True)
def float_sqrt(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    values = float_column(args[0], types[0].kind)
    with np.errstate(all="ignore"):
        root = np.sqrt(values)
    return Evaluated(
        fixed_array(root, result), failures(values < 0, "2201F", "cannot take square root of a negative number")
    )


@implements("float_exp", fallible=True)
def float_exp(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    values = float_column(args[0], types[0].kind)
    power = _elementwise(values, EXP)
    finite = np.isfinite(values)
    return _float_result(power, result, np.isinf(power) & finite, (power == 0) & finite)


def log_errors(values: Floats) -> RowErrors | None:
    """Of ln and log over the arguments' signs."""
    return merge_errors(
        failures(values == 0, "2201E", "cannot take logarithm of zero"),
        failures(values < 0, "2201E", "cannot take logarithm of a negative number"),
    )


def _float_log(function: int) -> Function:
    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        values = float_column(args[0], types[0].kind)
        return Evaluated(fixed_array(_elementwise(values, function), result), log_errors(values))

    return apply


implements("float_ln", fallible=True)(_float_log(LN))
implements("float_log10", fallible=True)(_float_log(LOG10))


@implements("float_power", fallible=True)
def float_power(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    a, b = _pair(args, types)
    power = np.empty(rows, np.float64)
    raise_to(np.ascontiguousarray(a), np.ascontiguousarray(b), power)
    whole = np.floor(b) == b
    zero = (a == 0) & (b < 0)
    complex_result = (a < 0) & ~whole & ~np.isnan(b)
    finite = np.isfinite(a) & np.isfinite(b) & ~zero
    errors = merge_errors(
        failures(zero, "2201F", "zero raised to a negative power is undefined"),
        failures(complex_result, "2201F", "a negative number raised to a non-integer power yields a complex result"),
        failures(np.isinf(power) & finite, *FLOAT_OVERFLOW),
        failures((power == 0) & (a != 0) & finite, *FLOAT_UNDERFLOW),
    )
    return Evaluated(fixed_array(power, result), errors)
