"""Rules that hold for every file of the repository: waivers say why, and no file knows a machine."""

from __future__ import annotations

import ast
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


LOCKS = {"threading.Lock", "threading.RLock", "threading.Condition", "ControlLock"}


def locks(path: Path) -> Iterator[str]:
    """Each lock that is made there, by its class (else its module) and its name; a condition over another is that."""

    def made(node: ast.AST, owner: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Assign, ast.AnnAssign)) and child.value is not None:
                calls = [n for n in ast.walk(child.value) if isinstance(n, ast.Call) and ast.unparse(n.func) in LOCKS]
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                if calls and not ast.unparse(calls[0]).startswith("threading.Condition(self."):
                    yield f"{owner}.{ast.unparse(target).removeprefix('self.')}"
            yield from made(child, child.name if isinstance(child, ast.ClassDef) else owner)

    yield from made(ast.parse(path.read_text(encoding="utf-8")), path.stem)


def test_the_table_of_locks_has_every_lock_and_no_other() -> None:
    package, text = ROOT / "src" / "eddyline", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+\.\w+)`", text.partition("\n## Locks\n")[2].partition("\n## ")[0]))
    paths = (path for path in package.rglob("*.py") if "testing" not in path.relative_to(package).parts)
    made = {name for path in paths for name in locks(path)}
    assert sorted(made - told) == [], "docs/architecture.md, Locks: where does it stand in the order?"
    assert sorted(told - made) == [], "docs/architecture.md, Locks: there is no such lock any more"
