"""The throw-away server of the oracle: it finds a port, whoever else takes one."""

from __future__ import annotations

import socket

import pytest

from eddyline.testing import postgres as module
from eddyline.testing.postgres import PostgresServer


def test_a_port_that_somebody_else_has_by_then_is_given_up_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        taken, usual = other.getsockname()[1], module._free_port
        ports = iter([taken])
        monkeypatch.setattr(module, "_free_port", lambda: next(ports, 0) or usual())
        with PostgresServer() as server:
            assert server.port != taken
            with server.connect() as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
