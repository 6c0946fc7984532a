"""``python -m bench.tpch [--scale SF] [--pairs N] [--rounds N] [QUERY …]``: this part alone, to the terminal."""

from __future__ import annotations

import argparse
import sys

from bench.tpch.measure import measure_tpch
from bench.tpch.page import tpch_lines
from bench.tpch.queries import QUERIES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tpch", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="1 is a gigabyte")
    parser.add_argument("--pairs", type=int, default=3, help="turns of each query")
    parser.add_argument("--at-most", type=float, default=60.0, help="seconds of a query's turns")
    parser.add_argument("--rounds", type=int, default=0, help="refreshes of all views together")
    parser.add_argument("queries", nargs="*", choices=[*QUERIES, []], help="default: all")
    arguments = parser.parse_args()
    figures = measure_tpch(
        arguments.scale,
        pairs=arguments.pairs,
        at_most_s=arguments.at_most,
        rounds=arguments.rounds,
        queries=arguments.queries or tuple(QUERIES),
    )
    sys.stdout.write("\n".join(tpch_lines(figures)) + "\n")


if __name__ == "__main__":
    main()
