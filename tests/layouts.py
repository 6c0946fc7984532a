"""The layout of the databases and replicas of a test that do not say which they want.

EDDYLINE_INTERACTIVE=0 runs the whole suite with one runtime per replica.  A test about two runtimes says
``interactive=True``, or asks for the fixture ``two_runtimes``; what says its layout keeps it in either run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eddyline.adapter.engine import Engine
from eddyline.frontends.aio import aconnect
from eddyline.frontends.connection import connect

__all__ = ["by_default", "chosen", "interactive_by_default"]

#: what opens a database, as the defaults of its keyword arguments
_DEFAULTS = [opener.__kwdefaults__ or {} for opener in (connect, aconnect, Engine.__init__)]


def chosen() -> bool:
    """Whether this run's layout has an interactive runtime."""
    return os.environ.get("EDDYLINE_INTERACTIVE", "1") != "0"


def interactive_by_default() -> bool:
    """Whether what is opened now, without a word about it, gets an interactive runtime."""
    return bool(_DEFAULTS[0]["interactive"])


@contextmanager
def by_default(*, interactive: bool) -> Iterator[None]:
    """What is opened meanwhile without a word about it is of that layout."""
    with pytest.MonkeyPatch.context() as patch:
        for defaults in _DEFAULTS:
            patch.setitem(defaults, "interactive", interactive)
        yield
