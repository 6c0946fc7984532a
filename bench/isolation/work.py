"""The work of maintenance, counted: without threads or clocks, so that every run does the same."""

from __future__ import annotations

from eddyline.testing.counting import Counted, counting
from eddyline.testing.driver import ReplicaDriver, index_on, reexport_of

__all__ = ["maintenance_work"]


def maintenance_work(*, interactive: bool, reads: int = 0, rows: int = 20_000, commits: int = 200) -> Counted:
    """What maintenance does for an index of ``rows`` rows, a re-export of it, and commits that change a row each.

    ``interactive``: whether an interactive runtime is beside it.  ``reads``: lookups of that by key after each commit,
    whose answers are looked at; what maintenance does because of them counts, what the interactive runtime does not.
    """
    d = ReplicaDriver(interactive=interactive)
    at = d.table("t", [(n, n) for n in range(rows)])
    counted = Counted()

    def maintain() -> None:
        with counting() as made:
            d.rest("maintenance" if interactive else "solo")
        counted.add(made)

    d.create(index_on("i", "t", at), reexport_of("j", "i", at))
    maintain()
    for n in range(commits):
        now = d.write("t", [(n, n), (n, -n)], [-1, 1])
        if n % 10 == 9:
            d.compact("i", now)
            d.compact("j", now)
        # The readers come first, and again once maintenance has done what they wait for.
        asked = {key: d.peek("ij"[n % 2], now, (key,)) for key in range(max(0, n - reads + 1), n + 1)} if reads else {}
        for _ in range(2):
            if interactive:
                d.rest("interactive")
            maintain()
        if interactive:
            d.rest("interactive")
        for key, uuid in asked.items():
            if d.rows(uuid) != {(key, -key): 1}:
                raise AssertionError(f"row {key} is read as {d.rows(uuid)}")
    return counted
