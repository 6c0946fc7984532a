"""What the pages promise: the README's program runs, links lead somewhere, named commands exist."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

import eddyline
from eddyline.expr.functions import registered_aggregates, registered_names

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_program_of_the_readme_gives_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    query = re.search(r"^(db\.execute\(\"SELECT.*?)  # (\[.*\])$", program, re.MULTILINE)
    assert query is not None
    names: dict[str, object] = {}
    exec(program, names)
    db = names["db"]
    assert isinstance(db, eddyline.Connection)
    with db:
        assert eval(query[1], names) == eval(query[2], {"Decimal": Decimal}) == [(7, Decimal("10.00"), 2)]
    assert "10.00" in capsys.readouterr().out  # the subscription's snapshot


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [t for t in targets if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_and_commands_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"`((?:docs|tests|demo|bench|examples|scripts)/[\w./-]*)`", text)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
    assert [f for f in files if not (ROOT / f).exists()] == []
    assert set(commands) <= set(targets)


def test_the_page_of_limits_lists_the_functions_that_there_are() -> None:
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    section = text.split("## Functions there are")[1].split("\n## ")[0]
    scalar, aggregates = (set(re.findall(r"`(\w+)`", part)) for part in section.split("\n\n")[1:3])
    operators = {"u+", "u-", "like_escape"}  # of grammars of their own
    assert scalar == {name for name in registered_names() - operators if name[0].isalpha()}
    assert aggregates == registered_aggregates()
