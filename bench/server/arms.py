"""``python -m bench.server.arms serve …``: as ``eddyline serve``, also in the arm that no option asks for."""

from __future__ import annotations

import functools
import sys
from typing import Final

from bench.isolation.arms import UNSLICED
from eddyline.adapter import engine as engine_module
from eddyline.compute.solo import Solo
from eddyline.frontends.command_line import main

__all__ = ["MODULE", "UNSLICED_OPTION"]

MODULE: Final = "bench.server.arms"
UNSLICED_OPTION: Final = f"--{UNSLICED.lower().replace(' ', '-')}"


def _main() -> int:
    arguments = sys.argv[1:]
    if UNSLICED_OPTION in arguments:
        arguments.remove(UNSLICED_OPTION)
        unsliced = functools.partial(Solo, activation_ns=1 << 60, budget_rows=1 << 30)
        vars(engine_module)["Solo"] = unsliced
    return main(arguments)


if __name__ == "__main__":
    sys.exit(_main())
