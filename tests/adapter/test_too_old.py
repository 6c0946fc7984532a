"""Times that are gone: one error, whoever notices."""

from __future__ import annotations

import pytest

import eddyline
from eddyline.compute.peek_queue import PeekQueue
from eddyline.controller.collection import Role
from eddyline.controller.controller import Controller
from eddyline.errors import DataError, NoLongerReadableError
from eddyline.expr.ir import Mfp
from eddyline.protocol.messages import Peek, PeekResponse
from eddyline.repr.ids import is_transient
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import INTEGER
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from eddyline.trace.publication import PublicationPoint
from eddyline.trace.run import Layout


def test_the_error_says_what_is_gone_and_what_is_left() -> None:
    error = NoLongerReadableError.at(3, 5)
    assert isinstance(error, DataError)
    assert error.sqlstate == "22023"
    assert "3" in error.message
    assert "5" in (error.detail or "")
    assert error.hint


def test_storage_and_controller_raise_it() -> None:
    store = TableStore(Hasher())
    controller = Controller(store)
    controller.create_table("t", (INTEGER,), key=None, names=("a",), table="t", constraint="t_pkey", at=Time(7))
    with pytest.raises(NoLongerReadableError):
        store.hold("t", Frontier(6))
    with pytest.raises(NoLongerReadableError):
        controller.acquire_hold("t", Time(6))
    store.close()


class _Compacted:
    """An index that answers from 5 on."""

    types = (INTEGER,)
    since = Frontier(5)
    view = None
    published_ns = 0
    read = None

    def __init__(self) -> None:
        self.oks = self.errs = PublicationPoint(Layout((INTEGER,), (0,)))

    @property
    def arrangement(self) -> _Compacted:
        return self

    def frontier(self) -> Frontier:
        return Frontier(9)


def test_a_worker_refuses_a_peek_below_since_and_answers_it_once() -> None:
    answers: list[PeekResponse] = []
    queue = PeekQueue("solo", Hasher(), lambda: 0, respond=answers.append, start=lambda task: None)
    assert not queue.take(Peek("i", "u", 4, (), None, Mfp((), (0,), (INTEGER,))), _Compacted())
    (answer,) = answers
    assert answer.error is not None
    assert answer.error[0] == "22023"
    assert answer.hint
    assert not queue.cancel("u"), "it is answered already"


def test_a_read_whose_index_forgot_its_time_is_answered_from_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (a int)")
        db.execute("CREATE INDEX i ON t (a)")
        db.execute("INSERT INTO t VALUES (1), (2)")
        db.wait_hydrated("i")
        original = Controller.since

        def since(self: Controller, id: str) -> Frontier:
            index = self._collections[id].role is Role.INDEX and not is_transient(id)
            return Frontier(2**62) if index else original(self, id)

        db.execute("BEGIN")
        assert db.execute("SELECT a FROM t WHERE a = 1").fetchall() == [(1,)]
        with monkeypatch.context() as patch:
            patch.setattr(Controller, "since", since)
            assert db.execute("SELECT a FROM t WHERE a = 2").fetchall() == [(2,)]
        db.execute("COMMIT")
        with pytest.raises(NoLongerReadableError):
            db.execute("SELECT a FROM t AS OF 5")
