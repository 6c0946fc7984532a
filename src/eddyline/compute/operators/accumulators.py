"""Accumulators: what an aggregate keeps for each group, how updates change it, and what it shows.

A state is a row of int64 words that updates add to: first plain counters, then wide integers (``kernels.reduce``).
Equal multisets of inputs have equal states, in whatever order and with whatever retractions they came about.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.growable import grown
from eddyline.compute.operators.values import (
    booleans_of,
    coefficients_of,
    from_numbers,
    from_words,
    integers_of,
    valid_of,
    words_of,
)
from eddyline.kernels.loose_sums import MAX_WEIGHT, add_decimal_digits, add_word_digits
from eddyline.kernels.numeric import HALF_AWAY, MAX_DIGITS, PER_VALUE, numeric_divide, numeric_rescale
from eddyline.kernels.reduce import add_integers, add_weights, digits_to_words, running_sums
from eddyline.repr.batch import Int64s
from eddyline.repr.types import Kind, SqlType

__all__ = [
    "Accumulator",
    "BooleanAccumulator",
    "CountAccumulator",
    "Failure",
    "IntegerSum",
    "Shown",
    "add_to_segments",
    "chain_words",
    "light",
    "present_weights",
    "show_numeric",
]

Bools = npt.NDArray[np.bool_]


class Failure(NamedTuple):
    """States that have no value: ``rows`` bool[n]."""

    rows: Bools
    sqlstate: str
    message: str


class Shown(NamedTuple):
    """The aggregate's values for some states; undefined where a failure is named."""

    array: pa.Array
    failures: tuple[Failure, ...] = ()


class Accumulator(ABC):
    """The states of one aggregate, by slot.  ``result``: the type it shows."""

    def __init__(self, result: SqlType, plain: int, chains: Sequence[int] = ()) -> None:
        self.result = result
        self._plain = plain
        self._set_chains(chains)
        self._state = np.zeros((16, self._width), np.int64)

    @abstractmethod
    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        """int64[count, width]: what the rows add to each segment; weights are diffs, 0 where filtered out.

        Digits of wide integers may be loose (``kernels.loose_sums``).
        """

    @abstractmethod
    def show(self, states: Int64s) -> Shown:
        """The values of states: int64[n, width]."""

    def sharing(self) -> Hashable:
        """Accumulators of the same arguments and filter for which this is equal keep the same states, and show those
        of each other; None: with no other's."""
        return None

    def run(self, slots: Int64s, starts: Int64s, delta: Int64s) -> tuple[Int64s, Int64s]:
        """Adds ``delta`` segment by segment; the states before and after each (see ``running_sums``)."""
        before, after = np.empty_like(delta), np.empty_like(delta)
        self._run(slots, starts, delta, before, after)
        return before, after

    def add(self, slots: Int64s, delta: Int64s) -> None:
        """Adds to each slot, without repeats, its row of ``delta``."""
        nobody = np.empty((0, self._width), np.int64)
        self._run(slots, np.arange(len(slots) + 1), delta, nobody, nobody)

    def _run(self, slots: Int64s, starts: Int64s, delta: Int64s, before: Int64s, after: Int64s) -> None:
        if len(slots):
            self._state = grown(self._state, int(slots.max()) + 1)
        running_sums(self._state, slots, starts, delta, self._plain, self._chains, before, after)

    def states(self, slots: Int64s) -> Int64s:
        if len(slots):
            self._state = grown(self._state, int(slots.max()) + 1)
        return self._state[slots]

    @property
    def nbytes(self) -> int:
        """Bytes set aside for states."""
        return self._state.nbytes

    def keep(self, slots: Int64s) -> None:
        """Renumbers: the state of old slot ``slots[i]`` becomes that of slot *i*."""
        rows = max(len(slots), 16)
        state = np.zeros((rows, self._width), np.int64)
        state[: len(slots)] = self.states(slots)
        self._state = state

    def _set_chains(self, chains: Sequence[int]) -> None:
        bounds = [self._plain]
        for width in chains:
            bounds.append(bounds[-1] + width)
        self._width = bounds[-1]
        self._chains = np.array(bounds, np.int64)


class CountAccumulator(Accumulator):
    """count(*) without an argument, count(x) with one."""

    def __init__(self, result: SqlType) -> None:
        super().__init__(result, plain=1)

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        out = np.zeros((count, 1), np.int64)
        add_to_segments(present_weights(args[0], weights) if args else weights, segments, out)
        return out

    def show(self, states: Int64s) -> Shown:
        return Shown(from_numbers(states[:, 0], np.ones(len(states), np.bool_), self.result))


class BooleanAccumulator(Accumulator):
    """bool_and, bool_or: how many are true, how many false."""

    def __init__(self, result: SqlType, func: str) -> None:
        super().__init__(result, plain=2)
        self._and = func == "bool_and"

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        out = np.zeros((count, 2), np.int64)
        true, valid = booleans_of(args[0]), valid_of(args[0])
        add_weights(np.where(true, weights, 0), segments, 0, out)
        add_weights(np.where(valid & ~true, weights, 0), segments, 1, out)
        return out

    def show(self, states: Int64s) -> Shown:
        value = states[:, 1] == 0 if self._and else states[:, 0] > 0
        return Shown(from_numbers(value, (states[:, 0] > 0) | (states[:, 1] > 0), self.result))


class IntegerSum(Accumulator):
    """sum and avg of integers and of numerics with one scale: exact in 192 bits."""

    _DIGITS = 6

    def __init__(self, result: SqlType, argument: SqlType, func: str) -> None:
        super().__init__(result, plain=1, chains=(self._DIGITS,))
        self._argument = argument
        self._average = func == "avg"
        self._scale = argument.scale or 0

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        out = np.zeros((count, self._width), np.int64)
        used = present_weights(args[0], weights)
        add_to_segments(used, segments, out)
        if light(used):
            if self._argument.kind is not Kind.NUMERIC:
                add_word_digits(integers_of(args[0], self._argument), used, segments, 1, out)
                return out
            if add_decimal_digits(coefficients_of(args[0]), used, segments, 1, out):
                return out
        low, high = words_of(args[0], self._argument)[:2]
        add_integers(low, high, used, np.zeros(len(low), np.int64), 0, segments, 1, self._DIGITS, out)
        return out

    def sharing(self) -> Hashable:
        return IntegerSum

    def show(self, states: Int64s) -> Shown:
        valid = states[:, 0] > 0
        words, fits = chain_words(states, 1, self._DIGITS)
        if self.result.kind is Kind.BIGINT:
            failure = Failure(valid & (fits < 2), "22003", "bigint out of range")
            return Shown(from_numbers(words[:, 0], valid, self.result), (failure,))
        scale = self._scale
        return show_numeric(words, fits > 0, np.full(len(words), scale), states[:, 0], self._average, self.result)


def add_to_segments(weights: Int64s, segments: Int64s, out: Int64s) -> None:
    """``add_weights`` into the first column."""
    if len(out) == 1:
        out[0, 0] += weights.sum()
    else:
        add_weights(weights, segments, 0, out)


def light(weights: Int64s) -> bool:
    """Whether a loose sum holds values with these weights."""
    heaviest = max(int(weights.max(initial=0)), -int(weights.min(initial=0)))
    return len(weights) * heaviest <= MAX_WEIGHT


def present_weights(array: pa.Array, weights: Int64s) -> Int64s:
    """``weights``, 0 where the argument is NULL."""
    return weights if array.null_count == 0 else np.where(valid_of(array), weights, 0)


def chain_words(states: Int64s, column: int, width: int) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """(low and high word: int64[n, 2], how far they fit: uint8[n]) of a wide integer; see ``digits_to_words``."""
    rows = len(states)
    low, high = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    fits = np.zeros(rows, np.uint8)
    digits_to_words(np.ascontiguousarray(states), column, width, low, high, fits)
    return np.stack((low, high), axis=1), fits


def show_numeric(words: Int64s, fits: Bools, scales: Int64s, counts: Int64s, average: bool, result: SqlType) -> Shown:
    """Sums ``words / 10**scales`` (or their averages over ``counts``) as ``result``; NULL where the count is 0."""
    rows = len(words)
    valid = counts > 0
    sums = np.column_stack((words, scales)).astype(np.int64)
    status = np.zeros(rows, np.uint8)
    out = np.zeros((rows, 3), np.int64)
    if average:
        divisor = np.where(valid, counts, 1)
        pairs = np.column_stack((divisor, np.zeros(rows, np.int64)))
        numeric_divide(sums, PER_VALUE, pairs, 0, out, status)
    else:
        # An identity, but for the check of 38 digits.
        target = scales if result.scale is None else np.array([result.scale], np.int64)
        numeric_rescale(sums, PER_VALUE, target, HALF_AWAY, MAX_DIGITS, out, status)
    failure = Failure(valid & (~fits | (status != 0)), "22003", "value overflows numeric format")
    image = out if result.scale is None else out[:, :2]
    return Shown(from_words(image, valid, result), (failure,))
