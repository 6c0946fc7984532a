"""The golden scripts answer as they are written.

With EDDYLINE_REWRITE=1 in the environment, the answers are written anew instead; read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eddyline.testing.scripts import replay

_SCRIPTS = sorted((Path(__file__).parent / "golden").glob("*.sql"))


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda p: p.stem)
def test_script_answers_as_written(path: Path) -> None:
    written = path.read_text()
    played = replay(written)
    if os.environ.get("EDDYLINE_REWRITE"):
        path.write_text(played)
    else:
        assert played.splitlines() == written.splitlines()
