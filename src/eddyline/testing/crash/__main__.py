"""``python -m eddyline.testing.crash --rounds N``: kills writing processes at random instants, checks what is left."""

from __future__ import annotations

import argparse
import sys

from eddyline.testing.crash.run import as_json, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m eddyline.testing.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=0, help="of the replica, which are killed as well (none)")
    arguments = parser.parse_args()
    found = run(
        arguments.rounds,
        arguments.seed,
        processes=arguments.processes,
        report=lambda line: _say(sys.stderr.write, line),
    )
    _say(sys.stdout.write, as_json(found))
    return 0


def _say(write: object, line: str) -> None:
    assert callable(write)
    write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
