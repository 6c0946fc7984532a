"""Tests run in both layouts, or say in which one they run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import eddyline
from tests.layouts import by_default, chosen, interactive_by_default

ROOT = Path(__file__).parent.parent
#: what opens a database or a replica, and takes ``interactive=``
_OPENING = {"connect", "aconnect", "Engine", "Harness"}


def repeated() -> set[str]:
    """The folders and files that `make test` runs once more with one runtime."""
    found = re.search(r"^LAYOUTS := \$\(addprefix tests/,([^)]*)\)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return set(found[1].split())


def silent(path: Path) -> Iterator[int]:
    """Lines that open something and do not say its layout."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="eddyline"), attr=name) | ast.Name(id=name)):
                if name in _OPENING and not any(k.arg in ("interactive", None) for k in node.keywords):
                    yield node.lineno


def test_what_does_not_say_its_layout_is_run_in_both() -> None:
    names = repeated()
    assert all((ROOT / "tests" / name).exists() for name in names)
    once = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        place = path.relative_to(ROOT / "tests")
        if place.parts[0] not in names:
            once += [f"{place}:{line}" for line in silent(path)]
    assert once == []


def test_lines_that_do_not_say_their_layout_are_found(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    path.write_text("eddyline.connect(workers=2)\nconnect(interactive=True)\nHarness()\npostgres.connect()\nf(**x)\n")
    assert list(silent(path)) == [1, 3]


@pytest.mark.parametrize("interactive", [True, False])
def test_the_default_is_what_the_run_says(interactive: bool) -> None:
    with by_default(interactive=interactive):
        assert interactive_by_default() is interactive
        with eddyline.connect() as db, eddyline.connect(interactive=not interactive) as other:
            assert [bool(d._engine.default.reader) for d in (db, other)] == [interactive, not interactive]
    assert interactive_by_default() is chosen()


def test_a_test_of_two_runtimes_has_them_in_either_run(two_runtimes: None) -> None:
    with eddyline.connect() as db:
        assert db._engine.default.reader
