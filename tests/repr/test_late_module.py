"""Modules that are imported when they are used."""

from __future__ import annotations

import pytest

from eddyline.repr.late_module import LateModule


def test_it_has_what_the_module_has() -> None:
    assert LateModule("base64").b64encode(b"a") == b"YQ=="
    with pytest.raises(AttributeError, match="nothing_like_it"):
        LateModule("base64").nothing_like_it  # noqa: B018 - looking is the test


def test_a_module_that_there_is_not_is_told_when_it_is_used() -> None:
    missing = LateModule("there_is_no_such_module")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            missing.anything()
