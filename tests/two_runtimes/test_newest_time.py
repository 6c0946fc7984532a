"""Reads at the greatest time there is, over indexes of constants, which are complete for ever: in SQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import eddyline
from eddyline.adapter.system_settings import INTERACTIVE_DATAFLOWS
from eddyline.compute.runtime import Runtime
from eddyline.plan.dataflow import DataflowClass, DataflowDescription, ImportIndex
from eddyline.protocol.messages import Command, CreateDataflow, Peek
from eddyline.repr.time import EMPTY

NEWEST = EMPTY - 1


@pytest.fixture(params=[True, False], ids=["two runtimes", "solo"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        connection.execute("CREATE VIEW c AS SELECT * FROM (VALUES (1, 10), (2, 20), (2, 21)) AS x (k, v)")
        connection.execute("CREATE INDEX c_k ON c (k)")
        connection.execute("CREATE VIEW d AS SELECT * FROM (VALUES (2, 'two'), (3, 'three')) AS x (k, name)")
        connection.execute("CREATE INDEX d_k ON d (k)")
        yield connection


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """What each runtime of the replica is sent from now on."""
    commands: list[Command] = []
    original = Runtime.send

    def send(self: Runtime, command: Command) -> None:
        commands.append(command)
        original(self, command)

    monkeypatch.setattr(Runtime, "send", send)
    return commands


def created(sent: list[Command]) -> list[DataflowDescription]:
    return [c.dataflow for c in sent if isinstance(c, CreateDataflow)]


@pytest.mark.parametrize("flag", ["on", "off"])
@pytest.mark.parametrize("here", [True, False], ids=["on this thread", "by the replica"])
def test_a_lookup_is_a_peek(
    db: eddyline.Connection, flag: str, here: bool, sent: list[Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = {flag}")
    db.wait_hydrated("c_k", timeout=10)
    if not here:
        monkeypatch.setattr("eddyline.adapter.clusters.Cluster.answer_now", lambda self, peek, cancelled: None)
    sent.clear()
    found = db.execute(f"SELECT v FROM c WHERE k = 2 AS OF {NEWEST}").fetchall()
    assert sorted(found) == [(20,), (21,)]
    assert created(sent) == [], "no dataflow is needed"
    assert [c.time for c in sent if isinstance(c, Peek)] == ([] if here else [NEWEST])


@pytest.mark.parametrize("flag", ["on", "off"])
def test_a_join_is_maintained_until_it_is_read(db: eddyline.Connection, flag: str, sent: list[Command]) -> None:
    db.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = {flag}")
    sent.clear()
    found = db.execute(f"SELECT v, name FROM c JOIN d ON c.k = d.k AS OF {NEWEST}").fetchall()
    assert sorted(found) == [(20, "two"), (21, "two")]
    assert created(sent)
    for description in created(sent):
        assert description.as_of == NEWEST
        assert description.until == EMPTY
        assert description.dataflow_class is DataflowClass.MAINTAINED, "there is no time past it to end at"
        assert any(isinstance(i, ImportIndex) for i in description.imports)


@pytest.mark.parametrize("flag", ["on", "off"])
def test_a_join_just_below_it_is_read_once(db: eddyline.Connection, flag: str, sent: list[Command]) -> None:
    db.execute(f"ALTER SYSTEM SET {INTERACTIVE_DATAFLOWS} = {flag}")
    sent.clear()
    found = db.execute(f"SELECT v, name FROM c JOIN d ON c.k = d.k AS OF {NEWEST - 1}").fetchall()
    assert sorted(found) == [(20, "two"), (21, "two")]
    expected = DataflowClass.ONE_SHOT_READ if flag == "on" else DataflowClass.MAINTAINED
    assert {d.dataflow_class for d in created(sent)} == {expected}


def test_nothing_is_left_of_a_read_at_the_newest_time(db: eddyline.Connection) -> None:
    for _ in range(3):
        db.execute(f"SELECT v, name FROM c JOIN d ON c.k = d.k AS OF {NEWEST}").fetchall()
    for name in ("c", "d"):
        db.execute(f"DROP VIEW {name} CASCADE")
    with pytest.raises(eddyline.DatabaseError) as refused:
        db.execute(f"SELECT v FROM c AS OF {NEWEST}")
    assert refused.value.sqlstate == "42P01"
