"""What the recorded answers cannot show: NULL rules of concat, slices of shared buffers, size limits, mixed kinds."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.expr.evaluate import evaluate
from eddyline.expr.functions import overloads
from eddyline.expr.ir import Call, Column, Expr, Literal
from eddyline.expr.pattern import escape_regex
from eddyline.expr.text_slices import Characters
from eddyline.repr.types import BOOLEAN, INTEGER, TEXT, Kind, SqlType

ALPHABET = "ab,é日😀 "


def text(*values: str | None) -> pa.Array:
    return pa.array(values, pa.large_string())


def run(func: str, args: tuple[Expr, ...], columns: list[pa.Array], result: SqlType = TEXT) -> list[object]:
    array, errors = evaluate(Call(func, args, result), columns, len(columns[0]))
    assert errors is None
    values: list[object] = array.to_pylist()
    return values


def test_concat_skips_nulls_and_takes_any_kind() -> None:
    columns = [text("a", None), pa.array([1, None], pa.int32()), pa.array([True, None])]
    args = (Column(0, TEXT), Column(1, INTEGER), Column(2, BOOLEAN))
    assert run("concat", args, columns) == ["a1t", ""]


def test_concat_shows_the_blanks_of_char_n() -> None:
    args = (Column(0, SqlType(Kind.BPCHAR, length=3)), Literal("|", TEXT))
    assert run("concat", args, [text("a", "abc")]) == ["a  |", "abc|"]


def test_concat_ws_skips_null_arguments_but_not_a_null_separator() -> None:
    columns = [text(",", ",", None, "-"), text("a", None, "a", ""), text("b", None, "b", "")]
    args = tuple(Column(i, TEXT) for i in range(3))
    assert run("concat_ws", args, columns) == ["a,b", "", None, "-"]


def test_a_repeat_past_one_gigabyte_fails_without_the_memory() -> None:
    call = Call("repeat", (Column(0, TEXT), Column(1, INTEGER)), TEXT)
    _, errors = evaluate(call, [text("ab", "ab"), pa.array([2**31 - 1, 2], pa.int32())], 2)
    assert errors is not None
    assert (errors.rows.tolist(), errors.sqlstates) == ([0], ["54000"])


def test_a_replacement_past_one_gigabyte_fails_without_the_memory() -> None:
    long = "x" * 60_000
    call = Call("replace", (Column(0, TEXT), Literal("x", TEXT), Literal(long, TEXT)), TEXT)
    array, errors = evaluate(call, [text(long, "axb")], 2)
    assert errors is not None
    assert (errors.rows.tolist(), errors.sqlstates) == ([0], ["54000"])
    assert array[1].as_py() == f"a{long}b"


@pytest.mark.parametrize("seed", range(20))
def test_slices_by_characters_equal_slices_of_python_strings(seed: int) -> None:
    rng = random.Random(seed)
    values = [
        None if rng.random() < 0.1 else "".join(rng.choices(ALPHABET[: rng.choice([3, 7])], k=rng.randrange(9)))
        for _ in range(40)
    ]
    offset = rng.randrange(10)
    array = text(*values).slice(offset, 25)
    start = np.array([rng.randrange(-3, 12) for _ in range(25)])
    stop = start + np.array([rng.randrange(0, 9) for _ in range(25)])
    expected = [
        None if v is None else v[max(a, 0) : max(b, 0)]
        for v, a, b in zip(values[offset : offset + 25], start.tolist(), stop.tolist(), strict=True)
    ]
    assert Characters(array).slices(start, stop).to_pylist() == expected


@pytest.mark.parametrize("seed", range(10))
def test_positions_and_splits_equal_those_of_python_strings(seed: int) -> None:
    rng = random.Random(seed)
    values = ["".join(rng.choices(ALPHABET, k=rng.randrange(12))) for _ in range(30)]
    needles = [rng.choice(["a", "日", ",", "ab", "é,"]) for _ in range(30)]
    number = [rng.choice([1, 2, 3, -1, -2]) for _ in range(30)]
    columns = [text(*values), text(*needles), pa.array(number, pa.int32())]
    found = run("strpos", (Column(0, TEXT), Column(1, TEXT)), columns, INTEGER)
    assert found == [v.find(n) + 1 for v, n in zip(values, needles, strict=True)]
    parts = [v.split(n) for v, n in zip(values, needles, strict=True)]
    expected = [
        p[i - 1 if i > 0 else i] if -len(p) <= (i - 1 if i > 0 else i) < len(p) else ""
        for p, i in zip(parts, number, strict=True)
    ]
    assert run("split_part", (Column(0, TEXT), Column(1, TEXT), Column(2, INTEGER)), columns) == expected


def test_any_value_concatenates_with_text() -> None:
    pairs = {o.args for o in overloads("||")}
    assert {(Kind.TEXT, Kind.INTEGER), (Kind.BOOLEAN, Kind.TEXT), (Kind.BYTEA, Kind.BYTEA)} <= pairs
    assert {(Kind.TEXT, Kind.BYTEA), (Kind.BYTEA, Kind.TEXT)} <= pairs


@pytest.mark.parametrize("seed", range(10))
def test_constant_and_varying_bounds_cut_alike(seed: int) -> None:
    rng = random.Random(seed)
    values = [None, *("".join(rng.choices(ALPHABET, k=rng.randrange(9))) for _ in range(20))]
    column = text(*values)
    start, count = rng.randrange(-4, 9), rng.randrange(0, 9)
    for func, numbers in (
        ("substring", (start, count)),
        ("substring", (start,)),
        ("left", (start,)),
        ("right", (start,)),
    ):
        constants = tuple(Literal(n, INTEGER) for n in numbers)
        varying = tuple(Column(i + 1, INTEGER) for i in range(len(numbers)))
        columns = [column, *(pa.array([n] * 21, pa.int32()) for n in numbers)]
        assert run(func, (Column(0, TEXT), *constants), columns) == run(func, (Column(0, TEXT), *varying), columns)


def test_initcap_of_ascii_equals_that_of_mixed_columns() -> None:
    values = ["hello wORLD", "", "a1b 2c_dE-f", None, "x", "'tis 3RD", "A"]
    expected = ["Hello World", "", "A1b 2c_De-F", None, "X", "'Tis 3rd", "A"]
    assert run("initcap", (Column(0, TEXT),), [text("zz", *values).slice(1)]) == expected
    assert run("initcap", (Column(0, TEXT),), [text(*values, "éCOLE élan")]) == [*expected, "École Élan"]


def test_many_distinct_patterns_answer_as_few_do() -> None:
    rng = random.Random(7)
    values = ["".join(rng.choices("aBß日%_,", k=rng.randrange(8))) for _ in range(400)]
    others = ["".join(rng.choices("aBß日%_,\\", k=rng.randrange(1, 6))) for _ in range(400)]
    patterns = [escape_regex(o) + rng.choice(["", "*", "|(a)"]) for o in others]
    for func, second, result in (
        ("like", others, BOOLEAN),
        ("not_like", others, BOOLEAN),
        ("ilike", others, BOOLEAN),
        ("starts_with", others, BOOLEAN),
        ("strpos", others, INTEGER),
        ("btrim", others, TEXT),
        ("ltrim", others, TEXT),
        ("regex_match", patterns, BOOLEAN),
        ("regex_not_imatch", patterns, BOOLEAN),
        ("regex_substring", patterns, TEXT),
    ):
        call = Call(func, (Column(0, TEXT), Column(1, TEXT)), result)
        whole, errors = evaluate(call, [text(*values), text(*second)], 400)
        failed = {} if errors is None else dict(zip(errors.rows.tolist(), errors.messages, strict=True))
        for start in range(0, 400, 40):
            columns = [text(*values[start : start + 40]), text(*second[start : start + 40])]
            part, part_errors = evaluate(call, columns, 40)
            rows = (
                {} if part_errors is None else dict(zip(part_errors.rows.tolist(), part_errors.messages, strict=True))
            )
            assert rows == {r - start: m for r, m in failed.items() if start <= r < start + 40}
            kept = [r for r in range(40) if r not in rows]
            assert [part[r].as_py() for r in kept] == [whole[r + start].as_py() for r in kept], func
