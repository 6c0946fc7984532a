"""Rules that hold for every file of the repository: waivers say why, and no file knows a machine."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "demo", "bench", "examples", "docs", "scripts", ".ci")
SUFFIXES = {".py", ".md", ".toml", ".sh", ""}
WAIVER = re.compile(r"(?:noqa: [A-Z0-9, ]*[A-Z0-9]|type: ignore\[[a-z, -]+\])")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/\w+")


def files() -> Iterator[Path]:
    yield from (p for p in ROOT.iterdir() if p.is_file() and p.suffix in SUFFIXES and p.name != ".git")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            inner = path.relative_to(ROOT / folder).parts
            hidden = any(part.startswith(".") or part == "__pycache__" for part in inner)
            if path.is_file() and path.suffix in SUFFIXES and not hidden:
                yield path


def comments(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_waivers_are_specific_and_say_why() -> None:
    wrong = []
    for path in files():
        if path.suffix != ".py":
            continue
        for line, comment in comments(path):
            if not re.search(r"\bnoqa\b|type: ignore", comment):
                continue
            if "no-untyped-def" in comment and "kernels" in path.parts:
                continue  # the decorator above states the types
            reason = WAIVER.sub("", comment).strip("# -")
            if not WAIVER.search(comment) or not reason:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {comment}")
    assert wrong == []


def test_no_file_names_a_place_on_some_machine() -> None:
    wrong = []
    for path in files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if MACHINE_PATH.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert wrong == []


def test_tests_mirror_the_layers() -> None:
    """A test file directly under ``tests`` is about the repository; others stand in the folder of what they test."""
    layers = {p.name for p in (ROOT / "src/eddyline").iterdir() if p.is_dir() and not p.name.startswith((".", "_"))}
    others = {"adversarial", "demo", "bench", "examples", "differential", "sql_scripts", "two_runtimes"}
    found = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and not p.name.startswith((".", "_"))}
    assert found <= layers | others
