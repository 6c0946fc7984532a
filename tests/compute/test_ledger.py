"""Which dataflows go on under a new connection, by what the commands alone say."""

from __future__ import annotations

import pytest

from eddyline.compute.ledger import Ledger
from eddyline.plan.dataflow import DataflowDescription, ExportMaterializedView, ImportSource
from eddyline.protocol.messages import Command, CreateDataflow, Hello
from eddyline.repr.time import EMPTY, Frontier
from eddyline.testing.driver import PAIR, index_on


def view_of(id: str, source: str, as_of: int) -> DataflowDescription:
    return DataflowDescription(id, (ImportSource(source, PAIR), ExportMaterializedView(id, 0, PAIR)), as_of, EMPTY)


@pytest.mark.parametrize(
    ("storage", "retained"),
    [pytest.param("one", {"i", "m", "of_m", "of_other"}, id="the same"), pytest.param("two", {"i"}, id="another one")],
)
def test_under_another_storage_only_what_reads_tables_goes_on(storage: str, retained: set[str]) -> None:
    """Views are written to it anew, this cluster's and those that another one writes."""
    ledger = Ledger()
    ledger.hello(Hello("a", "one"))
    dataflows = [index_on("i", "t", 5), view_of("m", "t", 5), index_on("of_m", "m", 5), index_on("of_other", "n", 5)]
    for dataflow in dataflows:
        ledger.create(dataflow)
    ledger.hello(Hello("b", storage, ("m", "n")))
    history: list[Command] = [CreateDataflow(dataflow) for dataflow in dataflows]
    assert ledger.reconcile(history).retained.keys() == retained


def test_a_dataflow_goes_on_from_a_time_that_it_has_not_forgotten() -> None:
    for as_of, retained in ((7, {}), (8, {"i": 8}), (9, {"i": 9})):
        ledger = Ledger()
        ledger.hello(Hello("a"))
        ledger.create(index_on("i", "t", 5))
        ledger.allow_compaction("i", Frontier(8))
        ledger.hello(Hello("b"))
        assert ledger.reconcile([CreateDataflow(index_on("i", "t", as_of))]).retained == retained
