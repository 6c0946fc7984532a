"""Evaluation of casts, modifiers included, between all pairs of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import InternalError
from eddyline.expr.arithmetic import (
    FLOAT_OVERFLOW,
    FLOAT_UNDERFLOW,
    INTEGER_LIMITS,
    float_column,
    int_column,
    out_of_range,
)
from eddyline.expr.array_cells import cells_of
from eddyline.expr.array_layout import flattened, has_tails, joined, retailed
from eddyline.expr.array_text import arrays_from_text
from eddyline.expr.cast_rules import (
    TEXTS,
    CastContext,
    cast_context,
    category,
    coerced_type,
    common_modifiers,
    is_preferred,
)
from eddyline.expr.datetime_casts import DATETIME_CASTS, cast_datetime
from eddyline.expr.datetime_precision import rounded
from eddyline.expr.layout import fixed_array, numeric_words, validity
from eddyline.expr.numeric_casts import (
    floats_to_numeric,
    integers_to_numeric,
    numeric_to_floats,
    numeric_to_integers,
    numeric_to_numeric,
    words_to_numeric,
)
from eddyline.expr.registry import Evaluated, RowErrors, failures, merge_errors
from eddyline.expr.text_input import numeric_words_from_text, values_from_text
from eddyline.expr.text_output import padded, text_of
from eddyline.expr.timezone import UTC, Zone
from eddyline.repr.types import TEXT, Kind, SqlType, element_type, is_array, shows_blanks

__all__ = [
    "CastContext",
    "cast_array",
    "cast_can_fail",
    "cast_context",
    "category",
    "coerced_type",
    "common_modifiers",
    "is_preferred",
]

_TEXT: Final = pa.large_string()
_FLOATS: Final = (Kind.REAL, Kind.DOUBLE)
_WIDENING: Final = frozenset(
    {
        (Kind.SMALLINT, Kind.INTEGER),
        (Kind.SMALLINT, Kind.BIGINT),
        (Kind.INTEGER, Kind.BIGINT),
        (Kind.REAL, Kind.DOUBLE),
        (Kind.BOOLEAN, Kind.INTEGER),
        (Kind.INTEGER, Kind.BOOLEAN),
        (Kind.TIME, Kind.INTERVAL),
        (Kind.INTERVAL, Kind.TIME),
        (Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
        (Kind.TIMESTAMPTZ, Kind.TIMESTAMP),
        (Kind.TIMESTAMP, Kind.TIME),
        (Kind.TIMESTAMPTZ, Kind.TIME),
        (Kind.TIMESTAMP, Kind.DATE),
        (Kind.TIMESTAMPTZ, Kind.DATE),
        *((kind, target) for kind in INTEGER_LIMITS for target in _FLOATS),
    }
)


def cast_can_fail(source: SqlType, target: SqlType, *, explicit: bool) -> bool:
    """Whether some value of ``source`` cannot become a ``target``."""
    if target.kind in TEXTS:
        return target.length is not None and not explicit and source != target
    if is_array(source) and is_array(target):
        return cast_can_fail(element_type(source), element_type(target), explicit=explicit)
    if source.kind is target.kind:
        return source.kind is Kind.NUMERIC and not _only_relabels(source, target)
    if target.kind is Kind.NUMERIC and source.kind in INTEGER_LIMITS:
        return bool(target.scale) or target.precision is not None
    return (source.kind, target.kind) not in _WIDENING


def _only_relabels(source: SqlType, target: SqlType) -> bool:
    """A numeric whose values need no check: wider layout, or the same scale and no tighter precision."""
    if target.scale is None:
        return True
    if source.scale != target.scale:
        return False
    return target.precision is None or (source.precision is not None and source.precision <= target.precision)


def cast_array(
    array: pa.Array, source: SqlType, target: SqlType, *, explicit: bool = True, zone: Zone = UTC
) -> Evaluated:
    """``array`` of type ``source`` as ``target``.  NULL stays NULL, and a NULL's error is the caller's to drop.

    ``zone`` is the session's, for casts from and to timestamptz.
    It is an error to ask for a pair that ``cast_context`` does not know (InternalError).
    """
    if source == target:
        return Evaluated(array)
    made = _converted(array, source, target, explicit=explicit, zone=zone)
    return Evaluated(rounded(made.array, target), made.errors)


def _converted(array: pa.Array, source: SqlType, target: SqlType, *, explicit: bool, zone: Zone) -> Evaluated:
    """As the target's kind; of modifiers all but the precision of times."""
    if is_array(target):
        return _to_array(array, source, target, explicit=explicit, zone=zone)
    if target.kind in TEXTS:
        return _to_text(array, source, target, explicit=explicit, zone=zone)
    if source.kind in TEXTS:
        return _from_text(padded(array, source), target, zone)
    if source.kind is target.kind and source.kind is not Kind.NUMERIC:
        return Evaluated(array)
    cast = _NUMBER_CASTS.get((_family(source.kind), _family(target.kind)))
    if cast is not None:
        return cast(array, source, target)
    if (source.kind, target.kind) not in DATETIME_CASTS:
        raise InternalError(f"there is no cast from {source} to {target}")
    return cast_datetime(array, source.kind, target.kind, zone)


def _family(kind: Kind) -> str:
    if kind in INTEGER_LIMITS:
        return "int"
    return "float" if kind in _FLOATS else kind.value


# --- text -------------------------------------------------------------------------------------------------------


def _to_text(array: pa.Array, source: SqlType, target: SqlType, *, explicit: bool, zone: Zone) -> Evaluated:
    if source.kind is Kind.BOOLEAN:
        text = pc.if_else(array, pa.scalar("true", _TEXT), pa.scalar("false", _TEXT))
    else:
        text = text_of(array, source, zone)
    if shows_blanks(target):
        return Evaluated(padded(text, source))
    if target.kind is Kind.BPCHAR or shows_blanks(source):
        text = pc.utf8_rtrim(text, " ")
    if target.length is None:
        return Evaluated(text)
    too_long = pc.greater(pc.utf8_length(text), target.length)
    if not pc.any(too_long).as_py():
        return Evaluated(text)
    cut = pc.utf8_slice_codeunits(text, 0, target.length)
    if target.kind is Kind.BPCHAR:
        cut = pc.utf8_rtrim(cut, " ")
    if explicit:
        return Evaluated(cut)
    # What is cut off may be blanks only.
    bad = pc.greater(pc.utf8_length(pc.utf8_rtrim(text, " ")), target.length)
    where = pc.fill_null(bad, False).to_numpy(zero_copy_only=False)
    return Evaluated(cut, failures(where, "22001", f"value too long for type {target}"))


def _from_text(array: pa.Array, target: SqlType, zone: Zone) -> Evaluated:
    if target.kind is not Kind.NUMERIC:
        return values_from_text(array, target, zone)
    words, errors = numeric_words_from_text(array)
    made = words_to_numeric(words, target, validity(array))
    return Evaluated(made.array, merge_errors(errors, made.errors))


# --- arrays -----------------------------------------------------------------------------------------------------


def _to_array(array: pa.Array, source: SqlType, target: SqlType, *, explicit: bool, zone: Zone) -> Evaluated:
    """Text read, or an array whose elements are cast; an element's error is its array's."""
    element = element_type(target)
    if not is_array(source):
        texts = padded(array, source)
        return arrays_from_text(
            texts, target, lambda part: cast_array(part, TEXT, element, explicit=explicit, zone=zone)
        )
    before = element_type(source)
    if before.kind is element.kind and element.precision is None and element.length is None:
        return Evaluated(array)  # cells do not say how many digits are shown
    elements, offsets = flattened(array, before)
    made = cast_array(elements, before, element, explicit=explicit, zone=zone)
    arrays = joined(cells_of(made.array, element), offsets, validity(array))
    if has_tails(array).any():
        arrays = retailed(arrays, array, element, before)
    if made.errors is None:
        return Evaluated(arrays)
    rows = np.searchsorted(offsets, made.errors.rows, side="right") - 1
    unique, first = np.unique(rows, return_index=True)
    places = first.tolist()
    states, messages = made.errors.sqlstates, made.errors.messages
    return Evaluated(arrays, RowErrors(unique, [states[i] for i in places], [messages[i] for i in places], []))


# --- numbers ----------------------------------------------------------------------------------------------------


def _int_to_int(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    values = int_column(array, source.kind).astype(np.int64)
    low, high = INTEGER_LIMITS[target.kind]
    errors = None
    if (source.kind, target.kind) not in _WIDENING:
        errors = failures((values < low) | (values > high), *out_of_range(target.kind))
    return Evaluated(_integers(values, array, target), errors)


def _integers(values: npt.NDArray[Any], array: pa.Array, target: SqlType) -> pa.Array:
    width = {Kind.SMALLINT: np.int16, Kind.INTEGER: np.int32, Kind.BIGINT: np.int64}[target.kind]
    return fixed_array(values.astype(width), target, validity(array))


def _int_to_float(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    values = int_column(array, source.kind)
    return Evaluated(_floats(values, array, target))


def _floats(values: npt.NDArray[Any], array: pa.Array, target: SqlType) -> pa.Array:
    width = np.float32 if target.kind is Kind.REAL else np.float64
    return fixed_array(values.astype(width), target, validity(array))


def _float_to_int(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    rounded = np.rint(float_column(array, source.kind).astype(np.float64))
    low, high = INTEGER_LIMITS[target.kind]
    # float(high) rounds up to 2**63 for bigint; high + 1 is a power of two, hence exact.
    fits = (rounded >= float(low)) & (rounded < float(high + 1))
    values = np.where(fits, rounded, 0).astype(np.int64)
    return Evaluated(_integers(values, array, target), failures(~fits, *out_of_range(target.kind)))


def _float_to_float(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    values = float_column(array, source.kind)
    with np.errstate(over="ignore", under="ignore"):
        made = values.astype(np.float32 if target.kind is Kind.REAL else np.float64)
    errors = merge_errors(
        failures(np.isinf(made) & ~np.isinf(values), *FLOAT_OVERFLOW),
        failures((made == 0) & (values != 0), *FLOAT_UNDERFLOW),
    )
    return Evaluated(fixed_array(made, target, validity(array)), errors)


def _bool_to_int(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    return Evaluated(array.cast(pa.int32()))


def _int_to_bool(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    return Evaluated(pc.not_equal(array, 0))


def _int_to_numeric(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    return integers_to_numeric(int_column(array, source.kind), target, validity(array))


def _float_to_numeric(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    return floats_to_numeric(array, source, target)


def _numeric_to_int(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    values, fits = numeric_to_integers(numeric_words(array, source))
    low, high = INTEGER_LIMITS[target.kind]
    fits &= (values >= low) & (values <= high)
    return Evaluated(_integers(values, array, target), failures(~fits, *out_of_range(target.kind)))


def _numeric_to_float(array: pa.Array, source: SqlType, target: SqlType) -> Evaluated:
    values = numeric_to_floats(numeric_words(array, source))
    with np.errstate(over="ignore", under="ignore"):
        made = _floats(values, array, target)
    bad = np.abs(values) > np.finfo(np.float32).max if target.kind is Kind.REAL else np.isinf(values)
    return Evaluated(made, failures(bad, *FLOAT_OVERFLOW))


_NUMBER_CASTS: Final[dict[tuple[str, str], Callable[[pa.Array, SqlType, SqlType], Evaluated]]] = {
    ("int", "int"): _int_to_int,
    ("int", "float"): _int_to_float,
    ("int", "numeric"): _int_to_numeric,
    ("int", "boolean"): _int_to_bool,
    ("boolean", "int"): _bool_to_int,
    ("float", "int"): _float_to_int,
    ("float", "float"): _float_to_float,
    ("float", "numeric"): _float_to_numeric,
    ("numeric", "int"): _numeric_to_int,
    ("numeric", "float"): _numeric_to_float,
    ("numeric", "numeric"): numeric_to_numeric,
}
