"""What a stream job tells about itself, in whatever engine: one line of JSON as the last line of its output.

``seconds``: from the moment the engine is ready to begin with its files to the last answer; ``cpu_seconds``: of all
the process's threads meanwhile; ``process_seconds``: from the start of the process's imports; ``digest``: of the
answer, equal for equal answers.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping

__all__ = ["JobClock"]


class JobClock:
    """Begins where it is made.  ``started``: ``time.perf_counter`` before the imports."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._cpu = time.process_time()
        self._begun = time.perf_counter()

    def report(self, answer: Mapping[str, tuple[int, ...]], **more: int) -> None:
        """Ends the measurement and prints it.  The last number of each entry is a count of input rows."""
        ended, cpu = time.perf_counter(), time.process_time()
        text = "\n".join(f"{key}\t{values}" for key, values in sorted(answer.items()))
        found = {
            "rows": sum(values[-1] for values in answer.values()),
            "digest": hashlib.sha256(text.encode()).hexdigest(),
            "seconds": ended - self._begun,
            "cpu_seconds": cpu - self._cpu,
            "process_seconds": ended - self._started,
            **more,
        }
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
