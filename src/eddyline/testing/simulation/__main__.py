"""``python -m eddyline.testing.simulation --seeds N``: prints failing seeds and a tally; exit code 1 on a failure."""

from __future__ import annotations

import argparse
import sys
import time

from eddyline.testing.simulation.coverage import Coverage
from eddyline.testing.simulation.stepper import STEPS, SeedFailedError, run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="eddyline.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--workers", type=int, choices=(1, 2, 4), help="instead of the seed's choice")
    parser.add_argument("--processes", type=int, choices=(1, 2), help="instead of the seed's choice")
    parser.add_argument("--one-runtime", action="store_true", help="Solo in place of the pair")
    parser.add_argument("--tell", action="store_true", help="print all that happens")
    arguments = parser.parse_args()
    coverage, failed, begun = Coverage(), 0, time.perf_counter()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        try:
            told = run_seed(
                seed, arguments.steps, coverage,
                interactive=not arguments.one_runtime, workers=arguments.workers,
                processes=arguments.processes,
            )  # fmt: skip
        except SeedFailedError as failure:
            failed += 1
            sys.stdout.write(f"--- {failure}\n")
            sys.stdout.flush()
        else:
            sys.stdout.writelines(f"{line}\n" for line in told if arguments.tell)
    sys.stdout.write(f"{arguments.seeds} seeds, {failed} failed, {time.perf_counter() - begun:.0f} s\n")
    for situation, count in sorted(coverage.items()):
        sys.stdout.write(f"  {count}: {situation}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
