"""A replica of several processes: what each connection between them carries."""

from __future__ import annotations

import threading

from eddyline.compute.exchange import Message
from eddyline.compute.placement import Role
from eddyline.controller.processes import ReplicaSpec
from eddyline.protocol.messages import CreateDataflow, Frontiers, Peek, PeekResponse, Response, Schedule
from eddyline.testing.driver import PAIR, index_on
from tests.clusterd.harness import WAIT_SECONDS, Controller, Hosts
from tests.compute.runtime_harness import identity

#: how long an answer may take that waits for nothing
_SOON_SECONDS = 5.0


def _values(response: Response | None) -> list[int]:
    assert isinstance(response, PeekResponse)
    assert response.error is None, response.error
    assert response.rows is not None
    return sorted(response.rows.batch().columns[1].to_pylist())


def test_p22_a_lookup_does_not_wait_for_rows_that_maintenance_exchanges() -> None:
    """The second process takes nothing from maintenance's connection, and still takes a peek, and answers it."""
    with Hosts(ReplicaSpec(processes=2)) as replica:
        controller = Controller(replica.addresses)
        mailboxes = replica.hosts[1]._meshes[Role.MAINTENANCE].mailboxes
        deliver, stuffed, drained = mailboxes.send, threading.Event(), threading.Event()

        def send(worker: int, message: Message) -> None:
            if threading.current_thread().name == "maintenance:0:in":
                stuffed.set()
                drained.wait()
            deliver(worker, message)

        def answered(uuid: str, timeout: float) -> Response | None:
            return controller.wait(lambda r: isinstance(r, PeekResponse) and r.uuid == uuid, timeout)

        try:
            controller.begin("one")
            for command in (CreateDataflow(index_on("u2", "u1", 1)), Schedule("u2")):
                controller.replica.send(command)
            assert controller.wait(lambda r: isinstance(r, Frontiers) and r.id == "u2" and r.upper > 1) is not None
            mailboxes.send = send  # type: ignore[method-assign]  # of this one process
            for command in (CreateDataflow(index_on("u3", "u1", 1)), Schedule("u3")):
                controller.replica.send(command)
            assert stuffed.wait(WAIT_SECONDS), "maintenance exchanges rows"
            controller.replica.send(Peek("u3", "hydrates", 1, (), None, identity(PAIR)))
            controller.replica.send(Peek("u2", "steady", 1, (), None, identity(PAIR)))
            answer = answered("steady", _SOON_SECONDS)
            assert answer is not None, "the lookup waits for what maintenance exchanges"
            assert _values(answer) == [10, 20]
            assert answered("hydrates", 0) is None, "that one has to wait"
            drained.set()
            assert _values(answered("hydrates", WAIT_SECONDS)) == [10, 20]
        finally:
            drained.set()
            controller.replica.close()
