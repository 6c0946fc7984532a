"""EXPLAIN (FORMAT json) says what the text says, as one document of PostgreSQL's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from eddyline.adapter.engine import Engine
from eddyline.adapter.explain_json import plan_document
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError
from eddyline.repr.types import JSON


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    engine = Engine(interactive=False)
    session = Session(engine)
    session.execute_script("CREATE TABLE t (a int PRIMARY KEY, b int); CREATE INDEX tb ON t (b)")
    yield session
    engine.close()


def explained(session: Session, text: str) -> Any:
    result = session.execute(text).result
    assert result is not None and (result.names, result.types, result.rows) == (("QUERY PLAN",), (JSON,), 1)
    (document,) = json.loads(result.columns[0].to_pylist()[0])
    return document


def words(node: dict[str, Any]) -> list[str]:
    own = f"{node['Node Type']} {node.get('Details', '')}".strip()
    return [own, *(line for below in node.get("Plans", []) for line in words(below))]


def test_each_line_of_the_plan_is_a_node(session: Session) -> None:
    query = "SELECT b, count(*) FROM t WHERE a > 3 GROUP BY b ORDER BY 1 LIMIT 2"
    text = session.execute(f"EXPLAIN {query}").result
    assert text is not None
    document = explained(session, f"EXPLAIN (FORMAT json) {query}")
    lines = [line.strip() for line in text.columns[0].to_pylist()]
    finish = lines.pop(next(i for i, line in enumerate(lines) if line.startswith("Finish:")))
    assert document["Finishing"] == finish.removeprefix("Finish: ")
    used = [line for line in lines if line.startswith("Indexes used")]
    assert words(document["Plan"]) == [line for line in lines if line not in used]


def test_what_a_read_has_cost_stands_beside_the_plan(session: Session) -> None:
    document = explained(session, "EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM t WHERE b = 1")
    assert document["Plan"]["Node Type"] == "Fast path" and document["Rows"] == 0
    assert document["Execution Time"] > 0 and document["Planning Time"] > 0


def test_several_roots_and_lists_of_indexes() -> None:
    (document,) = json.loads(plan_document(["Shared x =", "  Get t", "Get shared x", "Indexes used: i, j"]))
    assert [root["Node Type"] for root in document["Plan"]["Plans"]] == ["Shared", "Get"]
    assert document["Indexes used"] == ["i", "j"]


def test_formats_that_there_are_not_are_refused(session: Session) -> None:
    for name, code in (("yaml", "0A000"), ("xml", "0A000"), ("nothing", "22023")):
        with pytest.raises(DatabaseError) as caught:
            session.execute(f"EXPLAIN (FORMAT {name}) SELECT 1")
        assert caught.value.sqlstate == code
