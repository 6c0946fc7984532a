"""The house rules that the source text itself shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import eddyline.errors

PACKAGE = Path(eddyline.errors.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

#: lowest first; layers of one set do not see each other
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "_version errors",
        "repr",
        "kernels",
        "expr trace",
        "plan",
        "sql",
        "protocol",
        "compute storage",
        "clusterd",
        "controller",
        "adapter",
        "frontends",
        "__init__ __main__",  # the package's own face
        "testing",
    )
)
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
MAX_LINES = 800
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
#: where kernels are compiled; the registry loads them and nobody else touches Numba
NUMBA_LAYER = "kernels"


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported_modules(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Absolute module names; a relative import is written out as one that no layer has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, "." * node.level + (node.module or "")


def own_layers(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """(statement, layer) for each import of our own package; ``from eddyline import x`` imports layer x."""
    for node, module in imported_modules(tree):
        parts = module.split(".")
        if parts[0] != "eddyline":
            continue
        if len(parts) > 1:
            yield node, parts[1]
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, alias.name) for alias in node.names)
        else:
            yield node, "__init__"


def where(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_the_list_of_layers_is_complete() -> None:
    found = {layer_of(path) for path in FILES}
    assert found <= HEIGHT.keys()


def test_imports_go_downward_only() -> None:
    wrong = []
    for path in FILES:
        layer = layer_of(path)
        for node, target in own_layers(parsed(path)):
            allowed = target == layer or (target in HEIGHT and HEIGHT[target] < HEIGHT[layer])
            if not allowed:
                wrong.append(f"{where(path, node)} imports {target}")
    assert wrong == []


def test_imports_are_absolute() -> None:
    wrong = [
        where(path, node) for path in FILES for node, module in imported_modules(parsed(path)) if module.startswith(".")
    ]
    assert wrong == []


def test_no_function_imports_our_own_package() -> None:
    wrong: list[str] = []
    for path in FILES:
        for function in ast.walk(parsed(path)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                wrong.extend(where(path, node) for node, _ in own_layers(function))
    assert wrong == []


def test_files_stay_below_the_ceiling() -> None:
    lengths = {str(p.relative_to(PACKAGE)): len(p.read_text(encoding="utf-8").splitlines()) for p in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_modules_are_named_by_concept() -> None:
    assert [str(p) for p in FILES if VAGUE_NAMES & set(p.stem.split("_"))] == []


def test_nothing_prints() -> None:
    wrong = [
        where(path, node)
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert wrong == []


def test_no_handler_is_bare_or_swallows_silently() -> None:
    wrong = []
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler):
                silent = all(isinstance(statement, ast.Pass) for statement in node.body)
                if node.type is None or silent:
                    wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert wrong == []


def test_only_kernels_import_numba() -> None:
    wrong = [
        where(path, node)
        for path in FILES
        for node, module in imported_modules(parsed(path))
        if module.split(".")[0] in ("numba", "llvmlite") and layer_of(path) != NUMBA_LAYER
    ]
    assert wrong == []


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_package_files_only_re_export(path: Path) -> None:
    for statement in parsed(path).body:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_names = isinstance(statement, ast.Assign) and all(
            isinstance(t, ast.Name) and t.id.startswith("__") for t in statement.targets
        )
        is_import = isinstance(statement, (ast.Import, ast.ImportFrom))
        assert is_docstring or is_names or is_import, where(path, statement)
