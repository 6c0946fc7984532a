"""A program is killed at each point of a write: its replicas go on under the next one, with what the directory has."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import eddyline
from eddyline.controller.survivors import process_start
from tests.frontends.kill_points import KILL_POINTS
from tests.frontends.test_survival import WAIT_SECONDS, Program, connect, noted, program, wait_until_gone
from tests.waiting import wait_until

_PROGRAM = """
import sys
from pathlib import Path
from tests.frontends.kill_points import kill_at
from tests.frontends.test_killed_while_writing import counts, went_on
from tests.frontends.test_survival import connect

connection = connect(Path(sys.argv[1]), int(sys.argv[2]))
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "SELECT":
        print(connection.execute(line).fetchall(), flush=True)
    elif word == "COUNTS":
        print(counts(connection, int(rest)), flush=True)
    elif word == "REPLICAS":
        print(went_on(connection), flush=True)
    elif word == "KILL":
        kill_at(connection, rest)
        print("done", flush=True)
    else:
        connection.executescript(line)
        print("done", flush=True)
"""
SETUP = (
    "CREATE TABLE t (k bigint, v bigint)",
    "CREATE TABLE u (k bigint, w bigint)",
    "CREATE VIEW sums AS SELECT k, sum(v)::bigint AS s FROM t GROUP BY k",
    "CREATE INDEX sums_k ON sums (k)",
    "CREATE VIEW joined AS SELECT t.k, v, w FROM t JOIN u ON t.k = u.k",
    "CREATE INDEX joined_k ON joined (k)",
    "CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM t GROUP BY k",
    "CREATE INDEX m_k ON m (k)",
)
#: dataflows that go on; that are built anew with the rows of a materialized view, which were the program's
INDEXES, BUILT_ANEW = 2, 2
KEYS = 10


def write(number: int) -> str:
    """One transaction over two tables, with rows for every process of both."""
    t, u = (", ".join(f"({k}, {number})" for k in range(KEYS) for _ in range(times)) for times in (5, 1))
    gone = f"DELETE FROM t WHERE v = {number - 2}; DELETE FROM u WHERE w = {number - 2}"
    return f"BEGIN; INSERT INTO t VALUES {t}; {gone}; INSERT INTO u VALUES {u}; COMMIT"


class Model:
    """What the tables have, and the views computed from it."""

    def __init__(self) -> None:
        self.t: list[tuple[int, int]] = []
        self.u: list[tuple[int, int]] = []

    def write(self, number: int) -> None:
        self.t, self.u = (
            [(k, n) for k, n in rows if n != number - 2] + [(k, number) for k in range(KEYS) for _ in range(times)]
            for rows, times in ((self.t, 5), (self.u, 1))
        )

    def check(self, of: Program) -> None:
        sums, counted = Counter[int](), Counter(k for k, _ in self.t)
        for k, v in self.t:
            sums[k] += v
        joined = sorted((k, v, w) for k, v in self.t for other, w in self.u if other == k)
        for query, expected in (
            ("SELECT k, v FROM t ORDER BY k, v", sorted(self.t)),
            ("SELECT k, w FROM u ORDER BY k, w", sorted(self.u)),
            ("SELECT k, s FROM sums ORDER BY k", sorted(sums.items())),
            ("SELECT k, v, w FROM joined ORDER BY k, v, w", joined),
            ("SELECT k, n FROM m ORDER BY k", sorted(counted.items())),
        ):
            assert ast.literal_eval(of.run(query)[0]) == expected, query


def of_replicas(connection: eddyline.Connection, name: str) -> dict[str, int]:
    """By replica: what its maintenance counts."""
    return {
        ".".join((sample.labels.get("cluster", "default"), sample.labels.get("replica", "r1"))): int(sample.value)
        for family in text_string_to_metric_families(connection.metrics())
        for sample in family.samples
        if sample.name == name and "role" not in sample.labels
    }


def counts(connection: eddyline.Connection, built: int) -> tuple[int, int]:
    """Dataflows that the first replica has built, once these are so many, and that went on."""
    name = "eddyline_dataflows_{}_total".format
    wait_until(lambda: of_replicas(connection, name("built"))["default.r1"] >= built, "it is built anew")
    return of_replicas(connection, name("built"))["default.r1"], of_replicas(connection, name("retained"))["default.r1"]


def went_on(connection: eddyline.Connection) -> dict[str, int]:
    """By replica, dataflows that went on, once all replicas are there."""
    for cluster in connection._engine.clusters.values():
        for replica in cluster.replicas.values():
            assert cluster.wait_for(lambda _, its=replica: its.client is not None, WAIT_SECONDS)  # type: ignore[misc]  # mypy cannot infer it
    return of_replicas(connection, "eddyline_dataflows_retained_total")


@contextmanager
def writing(path: Path, processes: int) -> Iterator[Program]:
    with program(path, processes, _PROGRAM) as started:
        yield started


def kill(of: Program, point: str, number: int) -> None:
    told, answer = of.run(f"KILL {point}", write(number))
    assert (told, of.process.wait(WAIT_SECONDS)) == ("done", -9)
    # What replicas are told is no part of a commit: it may have been acknowledged before.
    assert not answer or point.endswith("_told")


def test_wherever_a_write_is_cut_off_nothing_but_materialized_views_is_built_anew(tmp_path: Path) -> None:
    """Two processes, a transaction over two tables, and one program after the other that goes on and is killed."""
    path, model = tmp_path / "db", Model()
    with writing(path, 2) as first:
        first.run(*SETUP, write(0), write(1))
        model.write(0)
        model.write(1)
        model.check(first)
        processes = noted(path)
        number, built, retained = 1, INDEXES + BUILT_ANEW, 0
        assert first.run(f"COUNTS {built}") == [str((built, retained))]
        first.kill()
    for point, (_, durable) in KILL_POINTS.items():
        with writing(path, 2) as next_one:
            built, retained = built + BUILT_ANEW, retained + INDEXES
            model.check(next_one)
            assert next_one.run(f"COUNTS {built}") == [str((built, retained))], f"before {point}"
            number += 1
            kill(next_one, point, number)
            if durable:
                model.write(number)
    with writing(path, 2) as last:
        model.check(last)
        assert last.run(write(number + 1)) == ["done"]
        model.write(number + 1)
        model.check(last)
        assert last.run(f"COUNTS {built + BUILT_ANEW}") == [str((built + BUILT_ANEW, retained + INDEXES))]
        assert noted(path) == processes
        last.kill()
    with connect(path, 2):
        assert noted(path) == processes
    wait_until_gone([pid for pids in processes.values() for pid in pids])


def test_replicas_that_were_told_and_others_that_were_not_go_on_together(tmp_path: Path) -> None:
    """Two of a cluster, and one of another cluster, each with a process of its own."""
    path, model = tmp_path / "db", Model()
    with writing(path, 1) as first:
        first.run("CREATE CLUSTER REPLICA default.r2 (PROCESSES = 1)", "CREATE CLUSTER c REPLICAS (r1 (PROCESSES = 1))")
        first.run(*SETUP, "CREATE INDEX sums_s IN CLUSTER c ON sums (s)", "CREATE INDEX m_n IN CLUSTER c ON m (n)")
        first.run(write(0), write(1))
        assert ast.literal_eval(first.run("REPLICAS")[0]) == {"default.r1": 0, "default.r2": 0, "c.r1": 0}
        model.write(0)
        model.write(1)
        model.check(first)
        first.run("SET cluster = c", "SELECT count(*) FROM sums WHERE s = 5", "SET cluster = default")
        processes = noted(path)
        assert len(processes) == 3
        kill(first, "one_process_told", 2)
        model.write(2)
    with writing(path, 1) as next_one:
        model.check(next_one)
        gone_on = {"default.r1": INDEXES, "default.r2": INDEXES, "c.r1": 1}
        wait_until(lambda: ast.literal_eval(next_one.run("REPLICAS")[0]) == gone_on, "it goes on")
        assert next_one.run(write(3)) == ["done"]
        model.write(3)
        model.check(next_one)
        for query in (f"SELECT count(*) FROM sums WHERE s = {5 * (2 + 3)}", "SELECT count(*) FROM m WHERE n = 10"):
            assert next_one.run("SET cluster = c", query)[1] == f"[({KEYS},)]", "also of another cluster's view"
        assert noted(path) == processes
        next_one.kill()
    found = [pid for pids in processes.values() for pid in pids]
    assert all(map(process_start, found))
    with connect(path):
        assert noted(path) == processes
    wait_until_gone(found)
