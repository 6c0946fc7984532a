"""The parsers of plain numbers against their twins, and against Python's own reading."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.kernels.plain_numbers import (
    parse_doubles,
    parse_doubles_twin,
    parse_integers,
    parse_integers_twin,
)

MOSTS = [2**15 - 1, 2**31 - 1, 2**63 - 1]
Texts = Sequence[bytes | None]


def laid_out(texts: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Data, starts, stops, flags; a NULL has bytes of its own, which nobody may look at."""
    stored = [b"?" if t is None else t for t in texts]
    offsets = np.cumsum([0, *map(len, stored)]).astype(np.int64)
    valid = np.array([t is not None for t in texts], np.uint8)
    data = np.frombuffer(b"".join(stored) or b"?", np.uint8)
    return data, offsets[:-1], offsets[1:], valid if None in texts else valid[:0]


def integers(texts: Texts, most: int) -> list[int | None]:
    out, hard = np.empty(len(texts), np.int64), np.empty(len(texts), np.uint8)
    count = parse_integers(*laid_out(texts), np.uint64(most), out, hard)
    assert count == int(hard.sum())
    assert not out[hard == 1].any()
    return [None if h else v for v, h in zip(out.tolist(), hard.tolist(), strict=True)]


def doubles(texts: Texts) -> list[float | None]:
    out, hard = np.empty(len(texts), np.float64), np.empty(len(texts), np.uint8)
    count = parse_doubles(*laid_out(texts), out, hard)
    assert count == int(hard.sum())
    return [None if h else v for v, h in zip(out.tolist(), hard.tolist(), strict=True)]


TEXTS = st.lists(st.none() | st.text("0159-+. e", max_size=23).map(str.encode), max_size=6)


@pytest.mark.parametrize("most", MOSTS)
@given(texts=TEXTS)
@settings(max_examples=150, deadline=None)
def test_integers_are_as_the_twin_has_them(most: int, texts: Texts) -> None:
    assert integers(texts, most) == parse_integers_twin(texts, most)


@given(texts=TEXTS)
@settings(max_examples=300, deadline=None)
def test_doubles_are_as_the_twin_has_them(texts: Texts) -> None:
    # the texts tell zeros apart, which are equal
    assert list(map(repr, doubles(texts))) == list(map(repr, parse_doubles_twin(texts)))


@pytest.mark.parametrize("most", MOSTS)
def test_the_last_integers_fit_and_the_next_are_hard(most: int) -> None:
    texts = [str(v).encode() for v in (most, most + 1, -most - 1, -most - 2, 0, -1)]
    assert integers(texts, most) == [most, None, -most - 1, None, 0, -1]


def test_a_double_is_the_nearest_to_its_text() -> None:
    rng = Random(5)
    texts = [b"%d.%0*d" % (rng.randrange(10**7), d, rng.randrange(10**d)) for d in range(1, 9) for _ in range(300)]
    texts += [str(2**53).encode(), b"9007199254740991.", b".1", b"-0", b"-0.000000000000000001"]
    assert list(map(repr, doubles(texts))) == [repr(float(t)) for t in texts]
    assert doubles([str(2**53 + 1).encode(), b".", b"-", b"", b"1e5", b"1..", b"--1", b"NaN"]) == [None] * 8
