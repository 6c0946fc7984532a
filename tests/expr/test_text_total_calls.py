"""Which calls can be moved before their guards: those whose constants rule failures out."""

from __future__ import annotations

import pytest

from eddyline.expr.ir import Call, Column, Literal
from eddyline.expr.properties import can_fail
from eddyline.repr.types import BOOLEAN, DOUBLE, INTEGER, INTERVAL, NUMERIC, TEXT, TIMESTAMP, SqlType

T, S, V = Column(0, TEXT), Column(1, TIMESTAMP), Column(2, INTERVAL)


def text(value: str) -> Literal:
    return Literal(value, TEXT)


CASES: list[tuple[str, tuple[Column | Literal, ...], SqlType, bool]] = [
    ("like", (T, text("a%")), BOOLEAN, False),
    ("like", (T, text("a\\")), BOOLEAN, True),
    ("like", (T, T), BOOLEAN, True),
    ("not_ilike", (T, text("%b")), BOOLEAN, False),
    ("regex_match", (T, text("^a+")), BOOLEAN, False),
    ("regex_imatch", (T, text("(")), BOOLEAN, True),
    ("regex_substring", (T, text("[0-9]+")), TEXT, False),
    ("regex_substring", (T, text("(a|ab)(b*)")), TEXT, True),
    ("substring", (T, Literal(2, INTEGER)), TEXT, False),
    ("substring", (T, Literal(2, INTEGER), Literal(3, INTEGER)), TEXT, False),
    ("substring", (T, Literal(2, INTEGER), Literal(-1, INTEGER)), TEXT, True),
    ("split_part", (T, text(","), Literal(0, INTEGER)), TEXT, True),
    ("split_part", (T, text(","), Literal(-1, INTEGER)), TEXT, False),
    ("date_part", (text("hour"), S), DOUBLE, False),
    ("date_part", (text("timezone"), S), DOUBLE, True),
    ("extract", (text("hour"), S), NUMERIC, True),
    ("extract", (text("hour"), V), NUMERIC, False),
]


@pytest.mark.parametrize(("func", "args", "result", "expected"), CASES)
def test_sound_constants_make_a_call_total(
    func: str, args: tuple[Column | Literal, ...], result: SqlType, expected: bool
) -> None:
    assert can_fail(Call(func, args, result)) is expected
