"""Which dataflow goes next: turns, hydration's share, and what is upstream first."""

from __future__ import annotations

from eddyline.compute.agenda import Agenda
from eddyline.compute.dataflow import Dataflow
from eddyline.plan.dataflow import DataflowDescription


def _dataflow(number: int, *, hydrated: bool = True, upstream: tuple[Dataflow, ...] = ()) -> Dataflow:
    return Dataflow(
        number=number,
        description=DataflowDescription(f"d{number}", (), 0, 1),
        operators=(),
        exports={},
        arrangements=(),
        exchanges={},
        sources=(),
        upstream=frozenset(upstream).union(*(u.upstream for u in upstream)),
        hydrated=hydrated,
    )


def _agenda(*dataflows: Dataflow) -> Agenda:
    agenda = Agenda()
    for dataflow in dataflows:
        agenda.add(dataflow)
    return agenda


def _activate(agenda: Agenda, *, done: bool = True) -> int | None:
    """The number of the dataflow whose turn it was."""
    chosen = agenda.choose()
    if chosen is None:
        return None
    chosen.scheduled = not done
    agenda.activated(chosen)
    return chosen.number


def test_what_is_scheduled_is_activated_once_however_often_it_was_scheduled() -> None:
    first, second = _dataflow(0), _dataflow(1)
    agenda = _agenda(first, second)
    for _ in range(3):
        agenda.schedule(second)
    assert [_activate(agenda), _activate(agenda)] == [1, None]


def test_a_dataflow_that_uses_its_slices_up_does_not_hold_others_back() -> None:
    heavy, light, other = (_dataflow(n) for n in range(3))
    agenda = _agenda(heavy, light, other)
    agenda.schedule(heavy)
    agenda.schedule(light)
    order = []
    for _ in range(4):
        order.append(_activate(agenda, done=False))
        if order[-1] == 1:
            agenda.schedule(other)
    assert order[:2] == [0, 1]
    assert order.index(2) < 4, "one scheduled later waits for a slice of each other, not for their end"


def test_a_light_dataflow_that_is_scheduled_again_and_again_does_not_starve_a_heavy_one() -> None:
    light, heavy = _dataflow(0), _dataflow(1)
    agenda = _agenda(light, heavy)
    agenda.schedule(heavy)
    ran = []
    for _ in range(10):
        agenda.schedule(light)
        chosen = agenda.choose()
        assert chosen is not None
        chosen.scheduled = chosen is heavy
        agenda.activated(chosen)
        ran.append(chosen.number)
    assert ran.count(1) >= 4


def test_upstream_goes_first_although_it_has_had_more_turns() -> None:
    table = _dataflow(0)
    view = _dataflow(1, upstream=(table,))
    agenda = _agenda(table, view)
    for _ in range(5):
        agenda.schedule(table)
        assert _activate(agenda) == 0
    agenda.schedule(view)
    assert [_activate(agenda), _activate(agenda), _activate(agenda)] == [0, 1, None]


def test_what_moved_is_not_looked_at_again_for_what_reads_it() -> None:
    quiet, table = _dataflow(0), _dataflow(1)
    view = _dataflow(2, upstream=(quiet, table))
    agenda = _agenda(quiet, table, view)
    agenda.schedule(table)
    assert _activate(agenda) == 1
    agenda.schedule_after(table, view)
    assert [_activate(agenda), _activate(agenda), _activate(agenda)] == [0, 2, None]


def test_hydration_gets_a_quarter_of_the_activations_and_all_of_them_when_nothing_else_is_to_do() -> None:
    steady, building = _dataflow(0), _dataflow(1, hydrated=False)
    agenda = _agenda(steady, building)
    agenda.schedule(steady)
    agenda.schedule(building)
    ran = [_activate(agenda, done=False) for _ in range(16)]
    assert [ran[i : i + 4].count(1) for i in range(0, 16, 4)] == [1, 1, 1, 1]
    alone = _agenda(only := _dataflow(0, hydrated=False))
    alone.schedule(only)
    assert [_activate(alone, done=False) for _ in range(3)] == [0, 0, 0]


def test_hydration_is_done_one_dataflow_after_another() -> None:
    first, second = _dataflow(0, hydrated=False), _dataflow(1, hydrated=False)
    agenda = _agenda(first, second)
    agenda.schedule(second)
    agenda.schedule(first)
    assert [_activate(agenda, done=False) for _ in range(3)] == [0, 0, 0]
    assert list(agenda.hydrating) == [first, second]
    first.hydrated = True
    assert _activate(agenda, done=True) == 0
    assert list(agenda.hydrating) == [second]
    assert _activate(agenda) == 1


def test_a_dropped_dataflow_is_passed_over() -> None:
    first, second = _dataflow(0), _dataflow(1)
    agenda = _agenda(first, second)
    agenda.schedule(first)
    agenda.schedule(second)
    agenda.remove(first)
    assert [_activate(agenda), _activate(agenda)] == [1, None]
    assert list(agenda) == [second]
