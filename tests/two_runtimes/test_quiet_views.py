"""Reads of materialized views without an index, while other tables than theirs are written."""

from __future__ import annotations

import pytest

import eddyline


@pytest.mark.parametrize("interactive", [True, False])
def test_a_quiet_view_is_read_beside_a_table_written_later(interactive: bool) -> None:
    with eddyline.connect(interactive=interactive) as connection:
        cursor = connection.cursor()
        cursor.execute("SET statement_timeout = '20s'")
        cursor.execute("CREATE TABLE quiet (x int)")
        cursor.execute("CREATE TABLE busy (x int)")
        cursor.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM quiet")
        cursor.execute("INSERT INTO quiet VALUES (1)")
        for written in range(1, 4):
            cursor.execute(f"INSERT INTO busy VALUES ({written})")
            cursor.execute("SELECT n, max(x) FROM counted, busy GROUP BY n")
            assert cursor.fetchall() == [(1, written)]
