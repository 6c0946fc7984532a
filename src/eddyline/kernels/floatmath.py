"""Exponentials, logarithms and powers of doubles through the C library, one element at a time.

NumPy's own vary with the machine's vector units in the last digit; the C library's are what PostgreSQL calls.
NaN, infinities and domain errors follow C: no exception is raised.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel
from eddyline.kernels.signatures import F64, I64, VOID, read, write

__all__ = ["EXP", "LN", "LOG10", "float_function", "float_function_twin", "float_power", "float_power_twin"]

EXP, LN, LOG10 = 0, 1, 2
_IN: Final = read(F64)
_OUT: Final = write(F64)

Floats = npt.NDArray[np.float64]


@kernel(VOID(_IN, I64, _OUT))
def float_function(values: Any, function: Any, out: Any) -> None:
    """out: float64[n].  A logarithm of a value that is not positive is NaN or -inf."""
    for i in range(values.shape[0]):
        x = values[i]
        if function == EXP:
            out[i] = math.exp(x)
        elif x <= 0.0:
            out[i] = -math.inf if x == 0.0 else math.nan
        elif function == LN:
            out[i] = math.log(x)
        else:
            out[i] = math.log10(x)


@kernel(VOID(_IN, _IN, _OUT))
def float_power(base: Any, exponent: Any, out: Any) -> None:
    for i in range(base.shape[0]):
        out[i] = math.pow(base[i], exponent[i])


def float_function_twin(value: float, function: int) -> float:
    if function == EXP:
        try:
            return math.exp(value)
        except OverflowError:
            return math.inf
    if value <= 0.0:
        return -math.inf if value == 0.0 else math.nan
    return math.log(value) if function == LN else math.log10(value)


def float_power_twin(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        negative = base < 0 and exponent % 2 == 1
        return -math.inf if negative else math.inf
    except ValueError:
        if base == 0.0:
            return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf
        return math.nan
