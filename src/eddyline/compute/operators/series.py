"""generate_series over the rows of a batch, in bounded pieces, however long the series are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.numeric_accumulators import show_decimals
from eddyline.compute.operators.values import from_words, integers_of, valid_of, words_of
from eddyline.expr.datetime_arithmetic import add_interval
from eddyline.expr.datetime_columns import infinite_timestamp
from eddyline.expr.interval import Intervals, intervals_of
from eddyline.expr.registry import RowErrors, failures, merge_errors
from eddyline.expr.timezone import Zone, zone_of
from eddyline.repr.batch import Int64s
from eddyline.repr.types import Kind, SqlType

__all__ = ["Piece", "Series", "series_of"]

UInt64s = npt.NDArray[np.uint64]

_NUMERIC_PIECE_ROWS = 2000  # Python integers
_DAY_MICROS = 86_400_000_000
_PLAIN_DAYS = 50_000_000  # days that surely fit an int64 of microseconds
_PLAIN_MICROS = 1 << 61


class Piece(NamedTuple):
    """Columns of values, and the row of the batch that each belongs to."""

    rows: Int64s
    columns: tuple[pa.Array, ...]


class Series(NamedTuple):
    """The pieces of all rows' series, and the rows that have none because they fail."""

    pieces: Iterator[Piece]
    errors: RowErrors | None


def series_of(args: Sequence[pa.Array], types: Sequence[SqlType], piece_rows: int) -> Series:
    """``args``: start, stop, and step, of which integers and numerics may leave the step out; timestamptz may have
    the session's time zone as a fourth.  A NULL gives no rows.  22023: a step of zero, an infinite bound."""
    rows = len(args[0])
    valid = np.ones(rows, np.bool_)
    for arg in args:
        valid &= valid_of(arg)
    kind = types[0].kind
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return _timestamps(args, types, valid, piece_rows)
    if kind is Kind.NUMERIC:
        return _numerics(args, types, valid)
    start, stop = integers_of(args[0], types[0]), integers_of(args[1], types[1])
    step = integers_of(args[2], types[2]) if len(args) > 2 else np.ones(rows, np.int64)
    errors = failures(valid & (step == 0), "22023", "step size cannot equal zero")
    wanted = np.flatnonzero(valid & (step != 0))
    return Series(_steps(wanted, start[wanted], stop[wanted], step[wanted], types[0], piece_rows), errors)


def _steps(
    rows: Int64s, start: Int64s, stop: Int64s, step: Int64s, result: SqlType, piece_rows: int
) -> Iterator[Piece]:
    """Arithmetic series; ``step`` is nowhere 0.  Differences are taken modulo 2**64, where they are exact."""
    up = step > 0
    some = np.flatnonzero(np.where(up, start <= stop, start >= stop))
    rows, start, stop, step, up = rows[some], start[some], stop[some], step[some], up[some]
    first, last, stride = start.view(np.uint64), stop.view(np.uint64), step.view(np.uint64)
    zero = np.uint64(0)
    span = np.where(up, last - first, first - last)
    size = np.where(up, stride, zero - stride)
    counts = span // size  # one less than the number of values, which need not fit
    at, offset = 0, 0
    while at < len(rows):
        part = np.minimum(counts[at : at + piece_rows], np.uint64(1 << 40)).astype(np.int64) + 1
        if offset or int(part[0]) > piece_rows:
            left = int(counts[at]) + 1 - offset
            take = min(left, piece_rows)
            source = np.full(take, at)
            place = np.arange(offset, offset + take, dtype=np.uint64)
            offset = 0 if take == left else offset + take
            at += take == left
        else:
            ends = np.cumsum(part)
            whole = max(1, int(np.searchsorted(ends, piece_rows, side="right")))
            source = np.repeat(np.arange(at, at + whole), part[:whole])
            begins = np.repeat(ends[:whole] - part[:whole], part[:whole])
            place = (np.arange(len(source)) - begins).astype(np.uint64)
            at += whole
        values = (first[source] + place * stride[source]).view(np.int64)
        yield Piece(rows[source], (_integer_column(values, result),))


def _integer_column(values: Int64s, result: SqlType) -> pa.Array:
    width = {Kind.SMALLINT: np.int16, Kind.INTEGER: np.int32}.get(result.kind, np.int64)
    return from_words(values.astype(width), np.ones(len(values), np.bool_), result)


def _numerics(args: Sequence[pa.Array], types: Sequence[SqlType], valid: npt.NDArray[np.bool_]) -> Series:
    words = [words_of(arg, sql_type) for arg, sql_type in zip(args, types, strict=True)]
    zero = np.zeros(len(valid), np.bool_)
    if len(words) > 2:
        zero = valid & (words[2][0] == 0) & (words[2][1] == 0)
    errors = failures(zero, "22023", "step size cannot equal zero")
    return Series(_numeric_pieces(np.flatnonzero(valid & ~zero), words, types[0]), errors)


def _numeric_pieces(rows: Int64s, words: Sequence[tuple[Int64s, Int64s, Int64s]], result: SqlType) -> Iterator[Piece]:
    """The first value shows its own scale, later ones the larger of start's and step's, as adding gives it."""
    values: list[tuple[int, int]] = []
    source: list[int] = []
    for row in rows.tolist():
        parts = [(_coefficient(w, row), int(w[2][row])) for w in words]
        (start, start_scale), (stop, stop_scale) = parts[:2]
        step, step_scale = parts[2] if len(parts) > 2 else (1, 0)
        shown = max(start_scale, step_scale)
        common = max(shown, stop_scale)
        unit = 10 ** (common - shown)
        current, end = start * 10 ** (common - start_scale), stop * 10 ** (common - stop_scale)
        stride = step * 10 ** (common - step_scale)
        fresh = True
        while current <= end if stride > 0 else current >= end:
            values.append((start, start_scale) if fresh else (current // unit, shown))
            source.append(row)
            fresh = False
            current += stride
            if len(values) >= _NUMERIC_PIECE_ROWS:
                yield _numeric_piece(source, values, result)
                values, source = [], []
    if values:
        yield _numeric_piece(source, values, result)


def _coefficient(words: tuple[Int64s, Int64s, Int64s], row: int) -> int:
    return (int(words[1][row]) << 64) | (int(words[0][row]) & (2**64 - 1))


def _numeric_piece(source: list[int], values: list[tuple[int, int]], result: SqlType) -> Piece:
    count = len(values)
    shown = show_decimals(values, np.ones(count, np.bool_), np.zeros(count, np.bool_), result)
    return Piece(np.array(source, np.int64), (shown.array,))


def _timestamps(
    args: Sequence[pa.Array], types: Sequence[SqlType], valid: npt.NDArray[np.bool_], piece_rows: int
) -> Series:
    start, stop = (_micros(arg) for arg in args[:2])
    step = intervals_of(args[2])
    zone: Zone | None = None
    if types[0].kind is Kind.TIMESTAMPTZ:
        names = args[3].drop_null().unique().to_pylist() if len(args) > 3 else []
        zone = zone_of(names[0] if names else "UTC")
    sign = np.sign((step.months * 30.0 + step.days) * _DAY_MICROS + step.micros)
    infinite = infinite_timestamp(start) | infinite_timestamp(stop)
    errors = merge_errors(
        failures(valid & (sign == 0), "22023", "step size cannot equal zero"),
        failures(valid & (sign != 0) & infinite, "22023", "start and stop values cannot be infinity"),
    )
    wanted = valid & (sign != 0) & ~infinite
    # Days are 24 hours unless the zone has daylight saving.
    plain = (step.months == 0) & (np.abs(step.days) < _PLAIN_DAYS) & (np.abs(step.micros) < _PLAIN_MICROS)
    if zone is not None and len(args) > 3:
        plain &= step.days == 0
    straight, stepped = np.flatnonzero(wanted & plain), np.flatnonzero(wanted & ~plain)
    stride = step.days * _DAY_MICROS + step.micros

    def pieces() -> Iterator[Piece]:
        yield from _steps(straight, start[straight], stop[straight], stride[straight], types[0], piece_rows)
        if len(stepped):
            chosen = Intervals(step.months[stepped], step.days[stepped], step.micros[stepped])
            ends = stop[stepped]
            yield from _calendar_steps(stepped, start[stepped], ends, chosen, sign[stepped] > 0, zone, types[0])

    return Series(pieces(), errors)


def _calendar_steps(
    rows: Int64s,
    current: Int64s,
    stop: Int64s,
    step: Intervals,
    up: npt.NDArray[np.bool_],
    zone: Zone | None,
    result: SqlType,
) -> Iterator[Piece]:
    """Each value is the one before plus the step, so that a month's end stays clipped; all rows advance together."""
    while True:
        going = np.flatnonzero(np.where(up, current <= stop, current >= stop))
        if not len(going):
            return
        rows, current, stop, up = rows[going], current[going], stop[going], up[going]
        step = Intervals(step.months[going], step.days[going], step.micros[going])
        yield Piece(rows, (_integer_column(current, result),))
        current, bad = add_interval(current, step, zone)
        fine = np.flatnonzero(~bad)
        rows, current, stop, up = rows[fine], current[fine], stop[fine], up[fine]
        step = Intervals(step.months[fine], step.days[fine], step.micros[fine])


def _micros(array: pa.Array) -> Int64s:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), np.int64)
    return np.frombuffer(buffer, np.int64, count=len(array), offset=array.offset * 8)
