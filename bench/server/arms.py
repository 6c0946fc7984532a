"""``python -m bench.server.arms serve …``: as ``eddyline serve``, also in the arm that no option asks for."""

from __future__ import annotations

import sys
from typing import Final

from bench.isolation.arms import UNSLICED, solo_is, unsliced
from eddyline.frontends.command_line import main

__all__ = ["MODULE", "UNSLICED_OPTION"]

MODULE: Final = "bench.server.arms"
UNSLICED_OPTION: Final = f"--{UNSLICED.lower().replace(' ', '-')}"


def _main() -> int:
    arguments = sys.argv[1:]
    if UNSLICED_OPTION in arguments:
        arguments.remove(UNSLICED_OPTION)
        solo_is(unsliced)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(_main())
