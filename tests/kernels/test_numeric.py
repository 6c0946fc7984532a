"""Decimal kernels against their twins in Python's integers."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from eddyline.kernels import numeric as k

Decimal128 = tuple[int, int]
ROWS = 3_000
SCALES = (0, 1, 2, 5, 16, 20, 38)
SIZES = (0, 1, 3, 9, 10, 18, 19, 20, 28, 30, 37, 38)


def samples(seed: int, rows: int = ROWS) -> list[Decimal128]:
    rng = Random(seed)
    edges = [10**38 - 1, -(10**38 - 1), 2**64, 2**64 - 1, -(2**63), 5 * 10**18, 10**19]
    values = [(c, rng.choice(SCALES)) for c in edges]
    while len(values) < rows:
        values.append((rng.choice((1, -1)) * rng.randrange(10 ** rng.choice(SIZES)), rng.choice(SCALES)))
    rng.shuffle(values)
    return values


LEFT, RIGHT = samples(1), samples(2)
LEFT_WORDS, RIGHT_WORDS = k.words_twin(LEFT), k.words_twin(RIGHT)


def coefficients(words: npt.NDArray[np.int64]) -> list[int]:
    return [(row[1] << 64) | (row[0] & 2**64 - 1) for row in words.tolist()]


def outcomes(out: npt.NDArray[np.int64], status: npt.NDArray[np.uint8]) -> list[Any]:
    pairs = zip(coefficients(out), out[:, 2].tolist(), strict=True)
    return [pair if s == k.OK else s for pair, s in zip(pairs, status.tolist(), strict=True)]


def fresh(rows: int = ROWS) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    return np.full((rows, 3), -1, np.int64), np.full(rows, 9, np.uint8)


def test_words_hold_coefficient_and_scale() -> None:
    assert coefficients(LEFT_WORDS) == [c for c, _ in LEFT]
    assert LEFT_WORDS[:, 2].tolist() == [s for _, s in LEFT]


@pytest.mark.parametrize("subtract", [False, True])
def test_add(subtract: bool) -> None:
    out, status = fresh()
    k.numeric_add(LEFT_WORDS, k.PER_VALUE, RIGHT_WORDS, k.PER_VALUE, subtract, out, status)
    for left, right, result in zip(LEFT, RIGHT, outcomes(out, status), strict=True):
        expected = k.numeric_add_twin(left, right, subtract)
        if result != expected:
            scale = max(left[1], right[1])
            assert result == k.OVERFLOW
            assert max(abs(c) * 10 ** (scale - s) for c, s in (left, right)) >= 2**255


def test_multiply() -> None:
    out, status = fresh()
    k.numeric_multiply(LEFT_WORDS, k.PER_VALUE, RIGHT_WORDS, k.PER_VALUE, out, status)
    assert outcomes(out, status) == [k.numeric_multiply_twin(*pair) for pair in zip(LEFT, RIGHT, strict=True)]


def test_compare() -> None:
    twice = [(c * 10, s + 1) if abs(c) < 10**37 else (c, s) for c, s in LEFT]  # equal values of other scale
    for other in (RIGHT, twice):
        out = np.full(ROWS, 9, np.int8)
        k.numeric_compare(LEFT_WORDS, k.PER_VALUE, k.words_twin(other), k.PER_VALUE, out)
        assert out.tolist() == [k.numeric_compare_twin(*pair) for pair in zip(LEFT, other, strict=True)]


@pytest.mark.parametrize("mode", [k.HALF_AWAY, k.TRUNCATE, k.FLOOR, k.CEIL])
def test_rescale(mode: int) -> None:
    rng = Random(mode)
    targets = [rng.choice((-40, -19, -3, 0, 2, 7, 20, 30, 60)) for _ in range(ROWS)]
    for digits in (5, 38):
        out, status = fresh()
        k.numeric_rescale(LEFT_WORDS, k.PER_VALUE, np.array(targets), mode, digits, out, status)
        expected = [k.numeric_rescale_twin(v, t, mode, digits) for v, t in zip(LEFT, targets, strict=True)]
        assert outcomes(out, status) == expected


@pytest.mark.parametrize("right", [RIGHT, samples(3), [(v % 1000, 2) for v in range(ROWS)]])
def test_divide(right: list[Decimal128]) -> None:
    out, status = fresh()
    k.numeric_divide(LEFT_WORDS, k.PER_VALUE, k.words_twin(right), k.PER_VALUE, out, status)
    assert outcomes(out, status) == [k.numeric_divide_twin(*pair) for pair in zip(LEFT, right, strict=True)]


def test_remainder() -> None:
    out, status = fresh()
    k.numeric_remainder(LEFT_WORDS, k.PER_VALUE, RIGHT_WORDS, k.PER_VALUE, out, status)
    for left, right, result in zip(LEFT, RIGHT, outcomes(out, status), strict=True):
        if result != k.numeric_remainder_twin(left, right):
            scale = max(left[1], right[1])
            assert result == k.OVERFLOW
            assert (
                abs(right[0]) * 10 ** (scale - right[1]) >= 2**127 or abs(left[0]) * 10 ** (scale - left[1]) >= 2**256
            )


def test_a_column_with_one_scale_gives_what_per_value_scales_give() -> None:
    left = [(c, 2) for c, _ in LEFT]
    right = [(c, 4) for c, _ in RIGHT]
    words, other = k.words_twin(left), k.words_twin(right)
    narrow, narrow_other = (np.ascontiguousarray(w[:, :2]) for w in (words, other))
    for kernel, extra in ((k.numeric_add, (False,)), (k.numeric_multiply, ()), (k.numeric_divide, ())):
        out, status = fresh()
        kernel(words, k.PER_VALUE, other, k.PER_VALUE, *extra, out, status)
        again, again_status = fresh()
        kernel(narrow, 2, narrow_other, 4, *extra, again, again_status)
        assert np.array_equal(out, again) and np.array_equal(status, again_status)
        if kernel is not k.numeric_divide:
            flat = np.full((ROWS, 2), -1, np.int64)
            kernel(narrow, 2, narrow_other, 4, *extra, flat, status)
            scale = 4 if kernel is k.numeric_add else 6
            shown = out[:, 2] == scale  # a row of another scale was rounded, which one scale for all does not allow
            assert 0 < np.count_nonzero(~shown) < ROWS
            assert np.array_equal(status == k.OK, shown & (again_status == k.OK))
            assert np.array_equal(flat, np.where((status == k.OK)[:, None], out[:, :2], 0))


@pytest.mark.parametrize("value", [(1, 0), (-(2**31), 3), (2**63, 0), (10**38 - 1, 20), (0, 2)])
def test_an_operand_of_one_row_stands_for_all(value: Decimal128) -> None:
    one, all_ = k.words_twin([value]), k.words_twin([value] * ROWS)
    for kernel, extra in (
        (k.numeric_add, (False,)), (k.numeric_add, (True,)), (k.numeric_multiply, ()), (k.numeric_divide, ()),
        (k.numeric_remainder, ()),
    ):  # fmt: skip
        for alone, repeated in (((one, LEFT_WORDS), (all_, LEFT_WORDS)), ((LEFT_WORDS, one), (LEFT_WORDS, all_))):
            found, wanted = fresh(), fresh()
            kernel(alone[0], k.PER_VALUE, alone[1], k.PER_VALUE, *extra, *found)
            kernel(repeated[0], k.PER_VALUE, repeated[1], k.PER_VALUE, *extra, *wanted)
            assert np.array_equal(found[0], wanted[0]) and np.array_equal(found[1], wanted[1])


def test_short_coefficients_at_the_limits_of_words_are_added_and_multiplied_exactly() -> None:
    edges = [s * (2**n + d) for n in (31, 32, 62, 63) for d in (-1, 0, 1) for s in (1, -1)]
    edges += [s * ((2**62 - 1) // 10**n + d) for n in (1, 2, 18) for d in (0, 1) for s in (1, -1)]
    pairs = [((a, s), (b, t)) for a in edges for b in edges for s, t in ((0, 0), (2, 0), (0, 18), (19, 0), (1, 3))]
    left, right = (k.words_twin([pair[i] for pair in pairs]) for i in (0, 1))
    for kernel, extra, twin in (
        (k.numeric_add, (False,), lambda a, b: k.numeric_add_twin(a, b, False)),
        (k.numeric_add, (True,), lambda a, b: k.numeric_add_twin(a, b, True)),
        (k.numeric_multiply, (), k.numeric_multiply_twin),
    ):
        out, status = fresh(len(pairs))
        kernel(left, k.PER_VALUE, right, k.PER_VALUE, *extra, out, status)
        assert outcomes(out, status) == [twin(*pair) for pair in pairs]


def test_to_float_is_exact_where_it_says_so() -> None:
    out, exact = np.empty(ROWS), np.empty(ROWS, np.bool_)
    k.numeric_to_float(LEFT_WORDS, k.PER_VALUE, out, exact)
    assert 0 < exact.sum() < ROWS
    for value, result, sure in zip(LEFT, out.tolist(), exact.tolist(), strict=True):
        assert not sure or result == k.numeric_to_float_twin(value)


def texts(values: list[Decimal128]) -> list[str]:
    words = k.words_twin(values)
    sizes = np.empty(len(values), np.int64)
    k.numeric_text_sizes(words, k.PER_VALUE, sizes)
    assert sizes.tolist() == [k.numeric_text_sizes_twin(v) for v in values]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.zeros(offsets[-1], np.uint8)
    k.numeric_format(words, k.PER_VALUE, offsets, data)
    raw = data.tobytes()
    return [raw[a:b].decode() for a, b in pairwise(offsets.tolist())]


def parsed(lines: list[str]) -> list[Any]:
    encoded = [line.encode() for line in lines]
    offsets = np.concatenate([[0], np.cumsum([len(e) for e in encoded])]).astype(np.int64)
    data = np.frombuffer(b"".join(encoded) + b"\0", np.uint8)
    out, status = fresh(len(lines))
    k.numeric_parse(data, offsets, out, status)
    return outcomes(out, status)


def test_format_and_parse_are_inverse() -> None:
    lines = texts(LEFT)
    assert lines == [k.numeric_format_twin(v) for v in LEFT]
    assert parsed(lines) == LEFT


def test_parse_accepts_what_the_twin_accepts() -> None:
    rng = Random(4)
    lines = [
        "",
        " ",
        ".",
        "-",
        "+.5e-3",
        "1e",
        "1e+",
        " 12 ",
        "1 2",
        "9" * 38,
        "9" * 39,
        "1e38",
        "1e37",
        "0e99999",
        "1e-20000",
    ]
    lines += ["".join(rng.choice("0123456789.eE+- x") for _ in range(rng.randrange(1, 9))) for _ in range(3_000)]
    assert parsed(lines) == [k.numeric_parse_twin(line) for line in lines]
