"""What every kernel file keeps to: own-file calls only, no exceptions inside, a tested twin each, few signatures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import eddyline.kernels
from eddyline.kernels import numeric, numeric_twins, registry

FOLDER = Path(eddyline.kernels.__file__).parent
#: no kernels in these: names of layouts, code generators, twins, the decorators, the list
OTHERS = {
    "compiler",
    "numeric_twins",
    "row_twins",
    "__init__",
    "cells",
    "kernel",
    "memory",
    "orders",
    "registry",
    "row_order",
    "signatures",
    "stamp",
    "warm",
}
FILES = sorted(p for p in FOLDER.glob("*.py") if p.stem not in OTHERS)
#: what a jitted function may call besides its own file: Python, NumPy and math as Numba has them, loads and orders
SHARED = {f"eddyline.kernels.{name}" for name in ("memory", "orders", "row_order", "cells", "kernel", "signatures")}


def decorator_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")


def jitted(tree: ast.Module) -> list[ast.FunctionDef]:
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and {decorator_name(d) for d in node.decorator_list} & {"kernel", "subroutine", "njit"}
    ]


def test_kernels_and_twins_of_numerics_have_the_same_constants() -> None:
    names = [n for n in numeric_twins.__all__ if n.isupper()]
    assert len(names) == 10
    assert {n: getattr(numeric, n) for n in names} == {n: getattr(numeric_twins, n) for n in names}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_jitted_function_calls_only_its_own_file(path: Path) -> None:
    tree = ast.parse(path.read_text())
    foreign = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eddyline") and node.module not in SHARED
        for alias in node.names
    }
    kernels = {f.name for f in jitted(tree) if "kernel" in {decorator_name(d) for d in f.decorator_list}}
    for function in jitted(tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                assert node.id not in foreign, f"{function.name} uses {node.id} of another file"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in kernels, f"{function.name} calls the kernel {node.func.id}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_jitted_function_raises_and_catches_nothing(path: Path) -> None:
    for function in jitted(ast.parse(path.read_text())):
        for node in ast.walk(function):
            assert not isinstance(node, (ast.Raise, ast.Try, ast.Assert)), function.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_kernel_has_a_twin_in_its_file_or_its_twins_file_that_a_test_names(path: Path) -> None:
    tree = ast.parse(path.read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("_twins"):
            functions |= {name.name for name in node.names}
    tests = "".join(p.read_text() for p in Path(__file__).parent.parent.rglob("test_*.py"))
    for function in jitted(tree):
        if "kernel" in {decorator_name(d) for d in function.decorator_list}:
            assert f"{function.name}_twin" in functions, f"{function.name} has no twin"
            assert f"{function.name}_twin" in tests, f"no test compares {function.name} with its twin"


def test_every_kernel_file_is_registered() -> None:
    assert {m.__name__.rpartition(".")[2] for m in registry.MODULES} == {p.stem for p in FILES}


def test_numba_is_used_by_kernels_only() -> None:
    package = FOLDER.parent
    for path in package.rglob("*.py"):
        if path.parent != FOLDER:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not any(n.split(".")[0] == "numba" for n in names), path


def test_specialisations_stay_few() -> None:
    assert sum(len(k.signatures) for k in registry.KERNELS) <= 120
