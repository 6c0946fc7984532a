"""Cancels of COPY FROM STDIN at each moment of its beginning."""

from __future__ import annotations

import pytest

from eddyline.adapter.engine import Engine
from eddyline.frontends.pgwire.backend import Backend
from eddyline.frontends.pgwire.steps import Send
from eddyline.kernels.warm import warm
from tests.frontends.pgwire.test_fuzz import STARTUP, FuzzHost, advance, message, text


@pytest.mark.parametrize("moment", ["told to send", "waiting"])
def test_no_cancel_is_lost(moment: str) -> None:
    warm()
    engine = Engine(process_settings=False)
    backend = Backend(FuzzHost(engine), lambda: None)
    advance(backend, STARTUP)
    advance(backend, message("Q", text("CREATE TABLE t (a int)")))
    backend.feed(message("Q", text("COPY t FROM STDIN")))
    said = b""
    for step in backend.advance():
        assert isinstance(step, Send)
        said += step.data
        if moment == "told to send" and said[:1] == b"G":
            backend.cancel()
    if moment == "waiting":
        backend.cancel()
    said += advance(backend, message("d", b"1\n") + message("c", b""))
    assert b"C57014" in said
    assert b"0" in advance(backend, message("Q", text("SELECT count(*) FROM t")))
    backend.close()
    engine.close()
