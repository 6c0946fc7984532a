"""Messages and binary decimals against their twins."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eddyline.kernels.kernel import Kernel
from eddyline.kernels.wire import (
    append_cells,
    append_cells_twin,
    begin_messages,
    begin_messages_twin,
    decimal_binary,
    decimal_binary_sizes,
    decimal_binary_sizes_twin,
    decimal_binary_twin,
    scan_tuples,
    scan_tuples_twin,
)

VALUES = st.lists(st.one_of(st.none(), st.binary(max_size=6)), min_size=1, max_size=5)


def laid_out(values: list[bytes | None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, data and validity; a NULL's bytes may be anything."""
    parts = [b"zz" if v is None else v for v in values]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    valid = np.array([v is not None for v in values], np.uint8)
    return offsets, np.frombuffer(b"".join(parts) or b"\0", np.uint8), valid if None in values else valid[:0]


@pytest.mark.parametrize("short", [False, True])
@given(
    columns=st.integers(1, 5).flatmap(
        lambda rows: st.lists(
            st.lists(st.one_of(st.none(), st.binary(max_size=6)), min_size=rows, max_size=rows), min_size=1, max_size=3
        )
    ),
    tag=st.sampled_from([0, 68, 100]),
    counted=st.booleans(),
    lengths=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_messages_are_what_the_twins_put_together(
    short: bool, columns: list[list[bytes | None]], tag: int, counted: bool, lengths: bool
) -> None:
    def variant(kernel: Kernel) -> Kernel:
        return kernel.short if short else kernel

    rows, count = len(columns[0]), len(columns) if counted else -1
    cells = [append_cells_twin(values, lengths=lengths) for values in columns]
    bodies = [b"".join(c[i] for c in cells) for i in range(rows)]
    header = (5 if tag else 0) + (2 if counted else 0)
    sizes = np.array([header + len(body) for body in bodies], np.int64)
    out, positions = np.empty(int(sizes.sum()), np.uint8), np.empty(rows, np.int64)
    variant(begin_messages)(tag, count, sizes, positions, out)
    for values in columns:
        variant(append_cells)(*laid_out(values), int(lengths), positions, out)
    heads = begin_messages_twin(tag, count, sizes.tolist())
    assert out.tobytes() == b"".join(h + b for h, b in zip(heads, bodies, strict=True))
    assert positions.tolist() == np.cumsum(sizes).tolist()


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=None).map(lambda d: f"{d:f}"), max_size=6))
@example(["0", "0.0000", "-0.00", "10000", "9999", "1.0001", "-123456789.0000123", "0.00001", "100000000", "", "12"])
@settings(max_examples=300, deadline=None)
def test_decimal_text_becomes_the_twins_binary_form(texts: list[str]) -> None:
    texts = [t for t in texts if len(t) < 400]
    expected = [decimal_binary_twin(t) if t else b"" for t in texts]
    data = np.frombuffer("".join(texts).encode() or b"\0", np.uint8)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    sizes = np.empty(len(texts), np.int64)
    decimal_binary_sizes(offsets, data, sizes)
    assert sizes.tolist() == [decimal_binary_sizes_twin(t) if t else 0 for t in texts]
    targets = np.cumsum([0, *sizes.tolist()], dtype=np.int64)
    out = np.empty(int(targets[-1]), np.uint8)
    decimal_binary(offsets, data, targets, out)
    assert [out[a:b].tobytes() for a, b in itertools.pairwise(targets)] == expected


@given(st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: -40 < d.adjusted() < 40))
def test_the_twins_groups_are_the_number(value: Decimal) -> None:
    text = f"{value:f}"
    raw = np.frombuffer(decimal_binary_twin(text), ">i2").tolist()
    groups, weight, sign = raw[4:], raw[1], raw[2]
    total = sum(Fraction(g) * Fraction(10000) ** (weight - i) for i, g in enumerate(groups))
    assert (-total if sign else total) == Fraction(text) and len(groups) == raw[0]


FIELDS = st.one_of(st.none(), st.binary(max_size=4))
ODD = st.sampled_from([b"\xff\xff", b"\0\3", b"\0\2\xff\xff\xff\xfe", b"\0\2\0\0", b""])


@given(rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=5), end=ODD, room=st.integers(1, 7), cut=st.integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_tuples_are_found_as_the_twin_finds_them(
    rows: list[tuple[bytes | None, ...]], end: bytes, room: int, cut: int
) -> None:
    data = b"".join(b"\0\2" + b"".join(append_cells_twin(row, lengths=True)) for row in rows) + end
    data = data[: len(data) - cut] if cut < len(data) else data
    octets = np.frombuffer(data or b"\0", np.uint8)[: len(data)]
    found: list[list[bytes | None]] = []
    at, state = 0, np.zeros(3, np.int64)
    while True:
        starts, lengths = np.zeros((room, 2), np.int64), np.zeros((room, 2), np.int64)
        count = int(scan_tuples(octets, at, starts, lengths, state))
        for r in range(count):
            pairs = zip(starts[r].tolist(), lengths[r].tolist(), strict=True)
            found.append([None if n < 0 else data[s : s + n] for s, n in pairs])
        at = int(state[0])
        if count < room or state[1]:
            break
    assert (found, at, int(state[1])) == scan_tuples_twin(data, 2)
