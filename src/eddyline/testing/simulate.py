"""``python -m eddyline.testing.simulate [--first N] [--seeds N] [--steps N]``: replicas stepped in random orders."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from collections import Counter

from eddyline.testing.simulation import Simulation


def main() -> int:
    """Exit status 1 if a seed fails; its number replays it."""
    parser = argparse.ArgumentParser(prog="python -m eddyline.testing.simulate", description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # crashes are part of it
    covered: Counter[str] = Counter()
    failed: list[int] = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        simulation = Simulation(seed, workers=(1, 2, 4)[seed % 3])
        try:
            simulation.run(arguments.steps)
        except Exception:  # noqa: BLE001 - whatever it was, the other seeds run too
            failed.append(seed)
            sys.stderr.write(f"seed {seed}\n{traceback.format_exc()}")
        covered += simulation.covered
    for what, count in sorted(covered.items()):
        sys.stdout.write(f"{count:8}  {what}\n")
    sys.stdout.write(f"{len(failed)} of {arguments.seeds} seeds failed: {failed}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
