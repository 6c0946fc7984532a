"""TPC-H's measurement: answers are told apart, refreshes do what they say, queries are planned without products."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from bench.tpch.data import SCHEMA, Refresh, split_orders
from bench.tpch.measure import differences
from bench.tpch.queries import KEYS, QUERIES
from eddyline.plan.dataflow import Join
from tests.adapter.planned_database import PlannedDatabase

#: queries that compare with an ungrouped aggregate, or ask with NOT IN whether there is any NULL: products with one row
_WITH_ONE_ROW = {"q11", "q16", "q22"}


def test_answers_differ_by_a_row_a_value_or_a_multiplicity_and_not_by_order() -> None:
    rows = [("a", Decimal("1.50"), date(1995, 1, 2)), ("b", 2, date(1995, 1, 2))]
    assert differences(rows, [("b", 2.0, date(1995, 1, 2)), ("a", 1.5 + 1e-12, date(1995, 1, 2))]) == ""
    assert differences(rows, rows[:1]) == "2 rows for 1"
    assert differences(rows, [rows[0], ("b", 2.001, date(1995, 1, 2))])
    assert differences(rows, [rows[0], rows[0]])
    assert differences(rows, [rows[0], ("b", 2, date(1995, 1, 3))])


def _tables(orders: int) -> dict[str, pa.Table]:
    keys = list(range(orders))
    return {
        "orders": pa.table({"o_orderkey": keys, "o_comment": [f"order {k}" for k in keys]}),
        "lineitem": pa.table({"l_orderkey": [k for k in keys for _ in range(k % 3)]}),
    }


def test_refreshes_bring_what_was_left_out_and_take_what_is_there() -> None:
    whole = _tables(3000)
    first, refreshes = split_orders(whole, 2)
    assert first["orders"].num_rows == 3000 - 2 * 3
    found = first
    for refresh in refreshes:
        before = set(found["orders"]["o_orderkey"].to_pylist())
        new, old = (set(t["orders"]["o_orderkey"].to_pylist()) for t in (refresh.new, refresh.old))
        assert len(new) == len(old) == 3
        assert new.isdisjoint(before) and old <= before
        found = refresh.after(found)
        after = set(found["orders"]["o_orderkey"].to_pylist())
        assert after == (before | new) - old
        items = [k for k in sorted(after) for _ in range(k % 3)]
        assert sorted(found["lineitem"]["l_orderkey"].to_pylist()) == items
    assert Refresh(refreshes[0].new, refreshes[0].old).rows == refreshes[0].rows >= 6


@pytest.mark.parametrize("query", list(QUERIES))
def test_every_query_is_a_view_without_products(query: str) -> None:
    db = PlannedDatabase(SCHEMA)
    db.run(f"CREATE VIEW v AS {QUERIES[query]}; CREATE INDEX v_i ON v ({KEYS[query]})")
    db.rest()
    joins = [o for o in db.operators("v_i") if isinstance(o, Join)]
    products = [j for j in joins if not j.null_safe]
    assert bool(products) == (query in _WITH_ONE_ROW)
