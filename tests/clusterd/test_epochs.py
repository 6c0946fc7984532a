"""A replica obeys the latest opener of its database's directory, and nobody who has lost it."""

from __future__ import annotations

import threading

import pytest

from eddyline.controller.processes import ReplicaSpec
from eddyline.errors import DatabaseError
from eddyline.protocol.codec import encode
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose, greet
from eddyline.protocol.messages import CreateDataflow, Peek, PeekResponse, Schedule, Status
from eddyline.protocol.sockets import connect_to
from eddyline.protocol.storage_messages import StorageUpdate, TimesClosed, Unfollow
from eddyline.testing.driver import PAIR, index_on
from tests.clusterd.harness import WAIT_SECONDS, Controller, Hosts
from tests.compute.runtime_harness import identity
from tests.waiting import wait_until


def ask(controller: Controller, uuid: str) -> list[int]:
    controller.replica.send(Peek("u2", uuid, 1, (), None, identity(PAIR)))
    found = controller.wait(lambda r: isinstance(r, PeekResponse) and r.uuid == uuid)
    assert isinstance(found, PeekResponse)
    assert found.rows is not None
    return sorted(found.rows.batch().columns[1].to_pylist())


@pytest.mark.parametrize("processes", [1, 2])
def test_a_controller_of_an_earlier_epoch_is_hung_up_on_and_refused(processes: int) -> None:
    with Hosts(ReplicaSpec(processes=processes, interactive=False)) as hosts:
        old = Controller(hosts.addresses, epoch=3)
        old.begin("old")
        old.replica.send(CreateDataflow(index_on("u2", "u1", 1)))
        old.replica.send(Schedule("u2"))
        assert ask(old, "before") == [10, 20]
        new = Controller(hosts.addresses, epoch=4)
        try:
            status = old.first(Status)
            assert isinstance(status, Status)
            assert status.fatal
            new.begin("new")
            new.replica.send(CreateDataflow(index_on("u2", "u1", 1)))
            new.replica.send(Schedule("u2"))
            assert ask(new, "after") == [10, 20]
            for epoch in (0, 3):
                with pytest.raises(DatabaseError, match="opened by somebody else") as refused:
                    Controller(hosts.addresses, epoch=epoch)
                assert refused.value.sqlstate == "55006"
            assert ask(new, "still") == [10, 20], "who is refused disturbs nobody"
            assert not [r for r in new.responses if isinstance(r, Status) and r.fatal]
        finally:
            old.replica.close()
            new.replica.close()


def test_the_first_connection_of_a_higher_epoch_ends_all_of_the_earlier_ones() -> None:
    """Whichever it is: the old controller commands nothing until the other one comes."""
    for purpose in (Purpose.STORAGE, Purpose.COMMANDS):
        with Hosts(ReplicaSpec(interactive=False)) as hosts:
            old = Controller(hosts.addresses, epoch=3)
            old.begin("old")
            frames = Frames(connect_to(hosts.addresses[0]))
            greet(frames, purpose, epoch=4)
            status = old.first(Status)
            assert isinstance(status, Status)
            assert status.fatal
            assert {w for w in (hosts.hosts[0]._commands, hosts.hosts[0]._storage) if w is not None}, purpose
            assert (hosts.hosts[0]._commands is None) == (purpose is Purpose.STORAGE)
            assert (hosts.hosts[0]._storage is None) == (purpose is Purpose.COMMANDS)
            frames.close()
            old.replica.close()


def test_a_connection_of_the_same_epoch_takes_the_place_of_one_that_was_lost() -> None:
    with Hosts(ReplicaSpec(interactive=False)) as hosts:
        for nonce in ("one", "two"):
            controller = Controller(hosts.addresses, epoch=5)
            controller.begin(nonce)
            controller.replica.send(CreateDataflow(index_on("u2", "u1", 1)))
            controller.replica.send(Schedule("u2"))
            assert ask(controller, nonce) == [10, 20]
            controller.replica.close()


def test_who_takes_the_place_of_a_connection_waits_for_what_that_one_is_at() -> None:
    """Also where it has ended: what it had received is done before anybody hears what the mirrors have seen."""
    with Hosts(ReplicaSpec(interactive=False)) as hosts:
        host = hosts.hosts[0]
        reached, go_on, greeted = threading.Event(), threading.Event(), threading.Event()

        def slow(_update: StorageUpdate) -> None:
            reached.set()
            go_on.wait(WAIT_SECONDS)

        host.mirrors.receive = slow  # type: ignore[method-assign, assignment]  # it stands in for it
        first = Frames(connect_to(hosts.addresses[0]))
        greet(first, Purpose.STORAGE, epoch=3)
        first.send([encode(TimesClosed(5))])
        assert reached.wait(WAIT_SECONDS)
        first.close()
        ended = host._storage
        assert ended is not None

        def seen() -> bool:
            """The thread that sends sees the end; the other one is at the message."""
            ended.send(Unfollow(1))
            return host._storage is None

        wait_until(seen, "the end is seen")
        second = Frames(connect_to(hosts.addresses[0]))

        def next_one() -> None:
            greet(second, Purpose.STORAGE, epoch=4)
            greeted.set()

        greeting = threading.Thread(target=next_one)
        greeting.start()
        assert not greeted.wait(0.3)
        go_on.set()
        assert greeted.wait(WAIT_SECONDS)
        greeting.join()
        second.close()
