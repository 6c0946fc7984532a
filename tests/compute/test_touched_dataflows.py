"""The work of a commit follows the dataflows that it touches: counted in activations and operator steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.imports import ImportSourceOperator
from eddyline.expr.ir import Call, Column, FilterStep, Literal, Mfp
from eddyline.plan.dataflow import Arrange, DataflowDescription, ExportIndex, ImportSource, MapFilterProject
from eddyline.repr.types import BIGINT, BOOLEAN
from tests.compute.runtime_harness import PAIR, Harness, dataflow, indexed, pairs

_CATCHING_UP = 1  # activations that a small commit pays for those it passes by


@pytest.fixture
def activations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Activations and polls of sources since it was cleared."""
    counted: Counter[str] = Counter()
    activate, poll = Dataflow.activate, ImportSourceOperator.step

    def counting(self: Dataflow, expired: object) -> bool:
        counted["activations"] += 1
        return activate(self, expired)  # type: ignore[arg-type]  # passed on as it came

    def counting_polls(self: ImportSourceOperator) -> bool:
        counted["polls"] += 1
        return poll(self)

    monkeypatch.setattr(Dataflow, "activate", counting)
    monkeypatch.setattr(ImportSourceOperator, "step", counting_polls)
    yield counted


def _of_key(id: str, key: int) -> DataflowDescription:
    """``SELECT * FROM t WHERE k = key``, indexed."""
    test = Call("eq", (Column(0, BIGINT), Literal(key, BIGINT)), BOOLEAN)
    mfp = Mfp((FilterStep(test),), (0, 1), PAIR)
    return dataflow(
        id,
        ImportSource("t", PAIR),
        MapFilterProject(0, mfp),
        Arrange(1, (0,), PAIR),
        ExportIndex(id, id, 2, (0,), PAIR),
    )


def _with_views(views: int, workers: int) -> Harness:
    harness = Harness(workers=workers)
    harness.table("t")
    for key in range(views):
        harness.controller.create_dataflow(_of_key(f"v{key}", key))
    harness.settle()
    return harness


@pytest.mark.parametrize("workers", [1, 2])
def test_a_commit_activates_the_views_it_touches_however_many_there_are(
    workers: int, activations: Counter[str]
) -> None:
    counts = []
    for views in (20, 200):
        harness = _with_views(views, workers)
        harness.commit({"t": pairs([(0, 1)])})
        harness.settle()
        activations.clear()
        for number in range(10):
            harness.commit({"t": pairs([(3, number), (11, number)])})
            harness.settle()
        counts.append(activations["activations"])
        assert activations["polls"] <= activations["activations"]
        assert harness.read("v3") == {(3, number): 1 for number in range(10)}
        assert harness.read("v5") == {}
    assert counts[0] == counts[1]
    # With two workers a view is activated a second time for its peer's progress.
    assert counts[1] <= 10 * (2 + _CATCHING_UP) * (1 if workers == 1 else 4)


def test_commits_of_other_tables_activate_nothing(activations: Counter[str]) -> None:
    harness = _with_views(10, 1)
    harness.table("other")
    harness.controller.create_dataflow(indexed("i", "other"))
    harness.settle()
    activations.clear()
    for number in range(10):
        harness.commit({"other": pairs([(number, 0)])})
        harness.settle()
    assert activations["activations"] == 10


def test_what_is_passed_by_falls_behind_by_a_bounded_number_of_commits() -> None:
    views = 8
    harness = _with_views(views, 1)
    for _ in range(3 * views):
        harness.commit({"t": pairs([(0, 0)])})
        harness.settle()
        uppers = [harness.controller.upper(f"v{key}") for key in range(views)]
        assert harness.time - min(uppers) <= views + 1


def test_many_rows_let_as_many_views_catch_up() -> None:
    views = 8
    harness = _with_views(views, 1)
    harness.commit({"t": pairs([(0, number) for number in range(1024 * views)])})
    harness.settle()
    assert [harness.controller.upper(f"v{key}") for key in range(views)] == [harness.time + 1] * views


def test_a_read_of_a_view_that_was_passed_by_is_of_the_newest_commit() -> None:
    harness = _with_views(30, 1)
    for number in range(5):
        harness.commit({"t": pairs([(0, number)])})
        harness.settle()
    assert harness.read("v29", harness.time) == {}
    harness.commit({"t": pairs([(29, 1)])})
    assert harness.read("v29", harness.time) == {(29, 1): 1}
