"""``python -m eddyline.testing.fuzz --seeds N``: prints a line per mismatch and a tally; exit code 1 on a mismatch."""

from __future__ import annotations

import argparse
import sys
import time

from eddyline.testing.fuzz.oracles import prepare_postgres
from eddyline.testing.fuzz.run import Mismatch, Tally, run_seed
from eddyline.testing.postgres import PostgresServer


def main() -> int:
    parser = argparse.ArgumentParser(prog="eddyline.testing.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    layout = parser.add_mutually_exclusive_group()
    layout.add_argument("--one-runtime", action="store_true", help="every seed; otherwise odd ones only")
    layout.add_argument("--two-runtimes", action="store_true", help="every seed; otherwise even ones only")
    parser.add_argument("--rare", action="store_true", help="list the constructs that occurred fewer than 20 times")
    arguments = parser.parse_args()
    fixed = arguments.one_runtime or arguments.two_runtimes
    interactive = arguments.two_runtimes if fixed else None
    tally, failed, begun = Tally(), 0, time.perf_counter()
    with PostgresServer() as server, server.connect() as postgres:
        prepare_postgres(postgres)
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            try:
                run_seed(seed, arguments.steps, postgres, tally, workers=arguments.workers, interactive=interactive)
            except Mismatch as mismatch:
                failed += 1
                sys.stdout.write(f"--- seed {seed}\n{mismatch}\n")
                sys.stdout.flush()
    rejected = sum(tally.rejected.values())
    sys.stdout.write(
        f"{arguments.seeds} seeds, {failed} failed, {tally.queries} views, {rejected} rejected, "
        f"{time.perf_counter() - begun:.0f} s\n"
    )
    for kind, count in tally.checks.most_common():
        sys.stdout.write(f"  compared {count}: {kind}\n")
    for difference in tally.duck_differences:
        sys.stdout.write(f"  DuckDB: {difference}\n")
    for construct, count in tally.used.items() if arguments.rare else ():
        if count < 20:
            sys.stdout.write(f"  used {count}: {construct}\n")
    for reason, count in tally.rejected.most_common(20):
        sys.stdout.write(f"  rejected {count}: {reason}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
