"""Every text, bytea and date/time function on empty, all-NULL and sliced columns, and on mixed valid and NULL rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from eddyline.expr.evaluate import evaluate
from eddyline.expr.functions import overloads, registered_names
from eddyline.expr.ir import Call, Column
from eddyline.expr.registry import Overload
from eddyline.expr.rowwise import as_storage
from eddyline.repr.types import Kind, SqlType, arrow_type
from tests.expr.harness import column

SAMPLES: dict[Kind, Sequence[str | None]] = {
    Kind.TEXT: ["day", None, "a日b", "", "2024-01-01", "UTC"],
    Kind.VARCHAR: ["a", None, "", "b", "c", "d"],
    Kind.BPCHAR: ["a", None, "", "b", "c", "d"],
    Kind.BYTEA: ["\\x01", None, "\\x", "\\x0203", "\\x04", "\\x05"],
    Kind.SMALLINT: ["1", None, "0", "-1", "2", "3"],
    Kind.INTEGER: ["1", None, "0", "-1", "2", "3"],
    Kind.BIGINT: ["1", None, "0", "-1", "2", "3"],
    Kind.DOUBLE: ["1", None, "0", "-1.5", "NaN", "3"],
    Kind.DATE: ["2024-01-31", None, "infinity", "1999-12-31", "0001-01-01", "2000-02-29"],
    Kind.TIME: ["10:00", None, "00:00", "23:59:59.5", "24:00", "12:34"],
    Kind.TIMESTAMP: ["2024-01-31 10:00", None, "infinity", "-infinity", "0044-03-15 BC", "2000-02-29"],
    Kind.TIMESTAMPTZ: ["2024-01-31 10:00", None, "infinity", "-infinity", "0044-03-15 BC", "2000-02-29"],
    Kind.INTERVAL: ["1 mon", None, "0", "-3 days", "1 day 2 hours", "1 us"],
}
MODULES = ("text", "bytea", "pattern", "regex", "datetime", "interval")


def _cases() -> list[Overload]:
    found: list[Overload] = []
    for name in sorted(registered_names()):
        for overload in overloads(name):
            kinds = overload.evaluated or overload.args
            temporal = any(k in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL) for k in kinds)
            textual = bool({Kind.TEXT, Kind.BYTEA, Kind.BPCHAR} & set(kinds))
            if kinds and overload.variadic is None and (temporal or textual) and all(k in SAMPLES for k in kinds):
                found.append(overload)
    return found


def _call(overload: Overload) -> tuple[Call, list[SqlType]]:
    kinds = overload.evaluated or overload.args
    types = [SqlType(k) for k in kinds]
    return Call(overload.impl, tuple(map(Column, range(len(types)), types)), overload.result_type(types)), types


@pytest.mark.parametrize("overload", _cases(), ids=lambda o: f"{o.name}({','.join(k.name for k in o.args)})")
def test_columns_of_every_shape(overload: Overload) -> None:
    call, types = _call(overload)
    layout = arrow_type(call.type)
    empty, errors = evaluate(call, [pa.array([], arrow_type(t)) for t in types], 0)
    assert (len(empty), empty.type, errors) == (0, layout, None)
    nothing, errors = evaluate(call, [pa.nulls(3, arrow_type(t)) for t in types], 3)
    assert (len(nothing), nothing.type, errors) == (3, layout, None)
    columns = [column(SAMPLES[t.kind], t) for t in types]
    whole, whole_errors = evaluate(call, columns, 6)
    part, part_errors = evaluate(call, [c.slice(2, 3) for c in columns], 3)
    failed = [] if whole_errors is None else whole_errors.rows.tolist()
    part_failed = [] if part_errors is None else part_errors.rows.tolist()
    assert part_failed == [r - 2 for r in failed if 2 <= r < 5]
    assert whole.type == part.type == layout
    views = [as_storage(array) for array in (whole, part)]
    for row in range(3):
        if row not in part_failed:
            assert str(views[0][row + 2]) == str(views[1][row])
