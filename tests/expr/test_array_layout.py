"""Arrays as bytes: both ways of writing them agree, and their order is that of the values."""

from __future__ import annotations

import functools
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.expr.array_cells import cell_of, cell_width, cells_of, elements_of, literal_of
from eddyline.expr.array_layout import arrays_of, flattened, literal_from_nested, nested_of, split_parts
from eddyline.expr.literals import literal_scalar, scalar_literal
from eddyline.repr.types import ARRAY_KINDS, Kind, SqlType, arrow_type, numeric

ELEMENTS = [SqlType(kind) for kind in ARRAY_KINDS] + [numeric(2, 10)]


def some_values(element: SqlType, rng: random.Random) -> list[Any]:
    """Literals, in ascending order but for NULL at the end."""
    match element.kind:
        case Kind.BOOLEAN:
            values: list[Any] = [False, True]
        case Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR:
            values = sorted(
                {"", "\x01", "\x02a", "a", "ab", "b", "é", "😀", *(chr(rng.randrange(1, 900)) for _ in range(9))}
            )
            values = sorted({v.rstrip(" ") for v in values})
        case Kind.BYTEA | Kind.UUID:
            width = 16 if element.kind is Kind.UUID else 0
            raw = {bytes(rng.choice((0, 1, 2, 255)) for _ in range(width or rng.randrange(5))) for _ in range(20)}
            values = [v.hex() for v in sorted(raw)]
        case Kind.NUMERIC:
            cents = sorted({0, 1, -1, 150, 10**9, -(10**9), *(rng.randrange(-(10**8), 10**8) for _ in range(9))})
            values = [format(Decimal(c).scaleb(-2), "f") for c in cents]
        case Kind.REAL | Kind.DOUBLE:
            values = [-math.inf, -1.5, -(2.0**-20), 0.0, 2.0**-20, 1.5, 2.0**30, math.inf, math.nan]
        case _:
            bits = 8 * (cell_width(element) or 1)
            values = sorted(
                {-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1, *(rng.randrange(-999, 999) for _ in range(5))}
            )
            if element.kind is Kind.TIME:
                values = [abs(v) for v in values if v >= 0 and v <= 86_400_000_000]
    return [*values, None]


def column(values: list[Any], element: SqlType) -> pa.Array:
    return pa.array([literal_scalar(v, element) for v in values], arrow_type(element))


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_cells_of_columns_are_those_of_single_values(element: SqlType) -> None:
    values = some_values(element, random.Random(7))
    cells = cells_of(column(values, element), element)
    raw = cells.data.tobytes()
    single = [cell_of(v, element) for v in values]
    assert [raw[a:b] for a, b in zip(cells.offsets[:-1], cells.offsets[1:], strict=True)] == single
    assert single == sorted(single), "bytes are in the order of the values"
    assert len(set(single)) == len(single)
    back = elements_of(cells, element)
    assert back.type == arrow_type(element)
    shown = [Decimal(v) if element.kind is Kind.NUMERIC and v is not None else v for v in values]
    read = [scalar_literal(s, element) for s in back]
    assert str([Decimal(str(v)) if element.kind is Kind.NUMERIC and v is not None else v for v in read]) == str(
        shown
        if element.scale is not None
        else [v if v is None else Decimal(format(v.normalize(), "f")) for v in shown]
        if element.kind is Kind.NUMERIC
        else shown
    )
    assert [v is None for v in read] == [v is None for v in (literal_of(c, element) for c in single)]


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_arrays_are_ordered_as_their_elements(element: SqlType) -> None:
    rng = random.Random(11)
    values = some_values(element, rng)
    place = dict(enumerate(values))
    lists = [[rng.randrange(len(values)) for _ in range(rng.randrange(4))] for _ in range(60)] + [[], [0], [0, 0]]
    flat = [place[i] for numbers in lists for i in numbers]
    offsets = np.concatenate([[0], np.cumsum([len(numbers) for numbers in lists])])
    arrays = arrays_of(column(flat, element), offsets, element).to_pylist()

    def order(a: tuple[list[int], bytes], b: tuple[list[int], bytes]) -> int:
        return (a[0] > b[0]) - (a[0] < b[0])  # as lists of places in the order of the elements, NULL last

    pairs = list(zip(lists, arrays, strict=True))
    assert [b for _, b in sorted(pairs, key=functools.cmp_to_key(order))] == sorted(arrays)
    elements, found = flattened(pa.array(arrays, pa.large_binary()), element)
    assert found.tolist() == offsets.tolist() and len(elements) == len(flat)


def test_dimensions_are_kept() -> None:
    array = SqlType(Kind.INTEGER_ARRAY)
    for nested in ([], [1], [[1, 2], [3, None]], [[[1]], [[2]]]):
        literal = literal_from_nested(nested, array)
        assert nested_of(literal, array) == nested
    assert split_parts(bytes.fromhex(literal_from_nested([[1, 2]], array)), 4).lengths == (1, 2)
