"""Sums and averages of intervals: months, days and microseconds each summed exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.accumulators import Accumulator, Failure, Shown, chain_words, present_weights
from eddyline.compute.operators.values import from_words
from eddyline.kernels.reduce import add_integers, add_weights
from eddyline.repr.batch import Int64s
from eddyline.repr.types import SqlType

__all__ = ["IntervalSum"]

_PLAIN = 3  # values, months, days
_DIGITS = 4
_DAY_SECONDS = 86_400
_IMAGE = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])


class IntervalSum(Accumulator):
    """sum and avg of intervals; 22008 where a field leaves its range."""

    def __init__(self, result: SqlType, func: str) -> None:
        super().__init__(result, _PLAIN, (_DIGITS,))
        self._average = func == "avg"

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        out = np.zeros((count, self._width), np.int64)
        used = present_weights(args[0], weights)
        rows = len(args[0])
        buffer = args[0].buffers()[1]
        fields = np.zeros(0, _IMAGE)
        if rows and buffer is not None:
            fields = np.frombuffer(buffer, _IMAGE, count=rows, offset=args[0].offset * _IMAGE.itemsize)
        elif rows:
            fields = np.zeros(rows, _IMAGE)
        add_weights(used, segments, 0, out)
        add_weights(fields["months"].astype(np.int64) * used, segments, 1, out)
        add_weights(fields["days"].astype(np.int64) * used, segments, 2, out)
        micros = np.ascontiguousarray(fields["micros"])
        add_integers(micros, micros >> 63, used, np.zeros(rows, np.int64), 0, segments, _PLAIN, _DIGITS, out)
        return out

    def show(self, states: Int64s) -> Shown:
        valid = states[:, 0] > 0
        words, fits = chain_words(states, _PLAIN, _DIGITS)
        months, days, micros = states[:, 1], states[:, 2], words[:, 0]
        wrong = (fits < 2) | _outside(months) | _outside(days)
        if self._average:
            months, days, micros = _divided(months, days, micros, np.where(valid, states[:, 0], 1))
            wrong |= _outside(days)
        image = np.zeros(len(states), _IMAGE)
        image["months"], image["days"], image["micros"] = months, days, micros
        failure = Failure(valid & wrong, "22008", "interval out of range")
        return Shown(from_words(image, valid, self.result), (failure,))


def _outside(values: Int64s) -> npt.NDArray[np.bool_]:
    return np.asarray((values < -(2**31)) | (values >= 2**31))


def _divided(months: Int64s, days: Int64s, micros: Int64s, counts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Each interval over its count, fractions cascading down as PostgreSQL's interval division has them."""
    factor = counts.astype(np.float64)
    month_quotient, day_quotient = months / factor, days / factor
    whole_months, whole_days = np.trunc(month_quotient), np.trunc(day_quotient)
    month_days = _to_micro((month_quotient - whole_months) * 30)
    seconds = _to_micro((day_quotient - whole_days + month_days - np.trunc(month_days)) * _DAY_SECONDS)
    extra = np.where(np.abs(seconds) >= _DAY_SECONDS, np.trunc(seconds / _DAY_SECONDS), 0.0)
    seconds = seconds - extra * _DAY_SECONDS
    all_days = whole_days + extra + np.trunc(month_days)
    time = np.rint(micros / factor + seconds * 1e6)
    return whole_months.astype(np.int64), all_days.astype(np.int64), time.astype(np.int64)


def _to_micro(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.rint(values * 1e6) / 1e6)
