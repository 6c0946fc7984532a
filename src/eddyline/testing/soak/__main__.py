"""``python -m eddyline.testing.soak --seconds S --clients N``: status 1 if something was found."""

from __future__ import annotations

import argparse
import sys

from eddyline.testing.soak.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m eddyline.testing.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found = soak(
        arguments.seconds, arguments.clients, arguments.seed, report=lambda line: sys.stderr.write(line + "\n")
    )
    sys.stdout.write(f"{found}\n")
    return 1 if found.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
