"""Process settings of a replica in processes of its own: the system says what reached them."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import eddyline
from eddyline.adapter.process_parameters import PROCESS_SETTINGS
from eddyline.adapter.system_settings import INTERACTIVE_RUNTIME
from eddyline.compute.layout import RuntimeConfig, WorkerLayout
from eddyline.compute.placement import Role
from eddyline.compute.process_settings import OwnSettings
from eddyline.compute.thread_placement import ThreadPlacement, core_plan
from tests.waiting import wait_until

GB = 1 << 30


def pids(db: eddyline.Connection) -> list[int]:
    processes = db._engine.first_replica.processes
    assert processes is not None
    return processes.pids


def threads_of(db: eddyline.Connection) -> defaultdict[str, list[int]]:
    """The system's ids of the threads of the first process, by name."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for task in Path(f"/proc/{pids(db)[0]}/task").glob("*"):
        try:
            found[(task / "comm").read_text().strip()].append(int(task.name))
        except OSError:
            continue  # it has ended
    return found


@pytest.fixture(scope="module")
def there() -> Iterator[eddyline.Connection]:
    with eddyline.connect(processes=1, interactive=True) as db:
        yield db


def limits(db: eddyline.Connection) -> list[str]:
    """The soft limits of the processes' data, as the system has them."""

    def limit(pid: int) -> str:
        try:
            lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        except OSError:
            return "gone"
        return next((line.split()[3] for line in lines if line.startswith("Max data size")), "gone")

    return [limit(pid) for pid in pids(db)]


def test_every_process_is_told_also_one_that_comes_later() -> None:
    with eddyline.connect(processes=2, process_settings={"process_memory_limit": "64GB"}) as db:
        shown: dict[str, str] = dict(db.execute("SHOW ALL").fetchall())
        assert shown["process_memory_limit"] == "64GB"
        assert shown["gc_policy"] == "freeze"
        wait_until(lambda: limits(db) == [str(64 * GB)] * 2, lambda: limits(db))
        db.execute("ALTER SYSTEM SET process_memory_limit = '32GB'")
        wait_until(lambda: limits(db) == [str(32 * GB)] * 2, lambda: limits(db))
        for name in PROCESS_SETTINGS:
            db.execute(f"ALTER SYSTEM SET {name} = '{shown[name]}'")
        wait_until(lambda: limits(db) == [str(64 * GB)] * 2, lambda: limits(db))

        db.execute("ALTER CLUSTER REPLICA default.r1 SET (process_memory_limit = '48GB')")
        wait_until(lambda: limits(db) == [str(48 * GB)] * 2, lambda: limits(db))
        db.execute("ALTER SYSTEM SET workload_class = 'batch'")
        assert 'eddyline_replica_info{processes="2",workers="1",workload_class="batch"} 1.0' in db.metrics()
        cursor = db.execute("ALTER SYSTEM SET process_memory_limit = '16GB'")
        assert any("value of its own" in notice for notice in cursor.notices)
        before = pids(db)
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(pids(db)) == 2 and not set(pids(db)) & set(before), "both processes are others")
        wait_until(lambda: limits(db) == [str(48 * GB)] * 2, lambda: limits(db))
        db.execute("ALTER CLUSTER REPLICA default.r1 RESET (process_memory_limit)")
        wait_until(lambda: limits(db) == [str(16 * GB)] * 2, lambda: limits(db))
        db.execute("ALTER SYSTEM RESET ALL")
        wait_until(lambda: limits(db) == ["unlimited"] * 2, lambda: limits(db))


def of_replica(db: eddyline.Connection) -> dict[str, tuple[str, str]]:
    """By name: value and source."""
    rows: list[tuple[str, str, str]] = db.execute("SHOW CLUSTER REPLICA default.r1").fetchall()
    return {name: (value, source) for name, value, source in rows}


def test_a_replica_has_settings_of_its_own() -> None:
    with eddyline.connect(processes=1, interactive=True) as db:
        assert of_replica(db).keys() == {*PROCESS_SETTINGS, INTERACTIVE_RUNTIME}
        assert of_replica(db)[INTERACTIVE_RUNTIME] == ("on", "argument"), "what connect() says is no override"
        assert of_replica(db)["gc_policy"] == ("freeze", "system")
        changed = db.execute(
            "ALTER CLUSTER REPLICA default.r1 "
            "SET (GC_Policy = off, workload_class TO 'a, b', process_memory_limit = '1TB')"
        )
        assert (changed.statusmessage, changed.notices) == ("ALTER CLUSTER REPLICA", ())
        assert of_replica(db)["gc_policy"] == ("off", "replica")
        assert of_replica(db)["workload_class"] == ("a, b", "replica")
        assert db.execute("SHOW gc_policy").fetchall() == [("freeze",)], "the database's is another one"
        assert any("value of its own" in n for n in db.execute("ALTER SYSTEM SET gc_policy = 'default'").notices)
        db.execute("ALTER CLUSTER REPLICA default.r1 RESET (workload_class, gc_policy)")
        assert of_replica(db)["gc_policy"] == ("default", "system")
        wait_until(lambda: limits(db) == [str(1024 * GB)], lambda: limits(db))
        db.execute('ALTER CLUSTER REPLICA "default"."r1" SET (process_memory_limit = DEFAULT)')
        wait_until(lambda: limits(db) == ["unlimited"], lambda: limits(db))
        later = db.execute(f"ALTER CLUSTER REPLICA default.r1 SET ({INTERACTIVE_RUNTIME} = off)")
        assert any("start next" in notice for notice in later.notices)
        assert of_replica(db)[INTERACTIVE_RUNTIME] == ("off", "replica")
        db.execute("ALTER CLUSTER REPLICA default.r1 RESET ALL")
        assert {source for _, source in of_replica(db).values()} == {"system", "argument"}


def test_a_replica_that_is_started_anew_is_what_its_override_says() -> None:
    with eddyline.connect(processes=1, interactive=True) as db:
        db.execute("CREATE TABLE t (a int)")
        db.execute("INSERT INTO t VALUES (1), (2)")
        db.execute(f"ALTER CLUSTER REPLICA default.r1 SET ({INTERACTIVE_RUNTIME} = off)")
        assert threads_of(db)["inter:0"], "a process keeps what it was started with"
        (before,) = pids(db)
        os.kill(before, signal.SIGKILL)
        wait_until(
            lambda: len(pids(db)) == 1 and pids(db) != [before] and bool(threads_of(db)["solo:0"]),
            "another process works",
        )
        assert not threads_of(db)["inter:0"]
        wait_until(lambda: db._engine.first_replica.present.failed is False, "the replica is there")
        assert db.execute("SELECT sum(x.a) FROM t x, t y").fetchall() == [(6,)]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("ALTER CLUSTER REPLICA default.r1 SET (max_result_size = '1kB')", "42704"),
        ("ALTER CLUSTER REPLICA default.r1 SET (no_such_thing = 1)", "42704"),
        ("ALTER CLUSTER REPLICA default.r1 RESET (no_such_thing)", "42704"),
        ("ALTER CLUSTER REPLICA default.r1 SET (workload_class = 'x', gc_policy = 'never')", "22023"),
        (f"ALTER CLUSTER REPLICA default.r1 SET ({INTERACTIVE_RUNTIME} = perhaps)", "22023"),
        ("ALTER CLUSTER REPLICA default.r1 SET (core_affinity = 2)", "22023"),
        ("ALTER CLUSTER REPLICA default.r1 SET (maintenance_nice = 20)", "22023"),
        ("ALTER CLUSTER REPLICA default.r2 SET (gc_policy = off)", "42704"),
        ("ALTER CLUSTER REPLICA other.r1 SET (gc_policy = off)", "42704"),
        ("SHOW CLUSTER REPLICA default.r9", "42704"),
    ],
)
def test_what_a_replica_cannot_be_given_is_refused_and_changes_nothing(
    statement: str, sqlstate: str, there: eddyline.Connection
) -> None:
    before = of_replica(there)
    with pytest.raises(eddyline.DatabaseError) as refused:
        there.execute(statement)
    assert refused.value.sqlstate == sqlstate
    assert of_replica(there) == before
    there.execute("BEGIN")
    with pytest.raises(eddyline.DatabaseError) as refused:
        there.execute("ALTER CLUSTER REPLICA default.r1 RESET ALL")
    assert refused.value.sqlstate == "25001"
    there.rollback()


def test_a_replica_of_another_cluster_has_settings_of_its_own() -> None:
    """Also beside a first one in the program's own process."""

    def shown() -> dict[str, tuple[str, str]]:
        rows: list[tuple[str, str, str]] = db.execute("SHOW CLUSTER REPLICA apart.r1").fetchall()
        return {name: (value, source) for name, value, source in rows}

    with eddyline.connect(interactive=False) as db:
        db.execute("CREATE TABLE t (k int, v int)")
        db.execute("INSERT INTO t VALUES (1, 10)")
        db.execute(f"CREATE CLUSTER apart (PROCESSES = 1, gc_policy = off, {INTERACTIVE_RUNTIME} = on)")
        assert shown()["gc_policy"] == ("off", "replica")
        assert shown()["workload_class"] == ("", "system")
        changed = db.execute("ALTER CLUSTER apart SET (workload_class = 'batch')")
        assert (changed.statusmessage, changed.notices) == ("ALTER CLUSTER", ())
        later = db.execute(f"ALTER CLUSTER apart RESET (gc_policy, {INTERACTIVE_RUNTIME})")
        assert any("start next" in notice for notice in later.notices)
        assert {name for name, (_, source) in shown().items() if source == "replica"} == {"workload_class"}
        for text, sqlstate in (
            ("ALTER CLUSTER apart SET (no_such = 1)", "42704"),
            ("ALTER CLUSTER apart SET (gc_policy = never)", "22023"),
            ("CREATE CLUSTER REPLICA apart.r2 (PROCESSES = 1, max_result_size = '1kB')", "42704"),
            ("CREATE CLUSTER REPLICA apart.r2 (gc_policy = off)", "0A000"),
        ):
            with pytest.raises(eddyline.DatabaseError) as refused:
                db.execute(text)
            assert refused.value.sqlstate == sqlstate
        assert db.execute("SHOW CLUSTER REPLICAS").fetchall() == [("apart", "r1", 1, 1), ("default", "r1", 1, 0)]
        db.execute("SET statement_timeout = '60s'")
        db.execute("SET cluster = apart")
        db.execute("CREATE INDEX t_k ON t (k)")
        assert db.execute("SELECT v FROM t WHERE k = 1").fetchall() == [(10,)]
        assert db.execute("SELECT count(*) FROM t x, t y").fetchall() == [(1,)]
        replica = db._engine.cluster(db._engine.catalog.snapshot().view(cluster="apart").cluster_id or "")
        (hosted,) = replica.replicas.values()
        assert hosted.processes is not None
        (pid,) = hosted.processes.pids
        db.execute("DROP CLUSTER apart CASCADE")
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the process is gone")


def test_the_programs_own_process_has_no_settings_of_a_replica() -> None:
    with eddyline.connect(interactive=True) as db:
        for statement in (
            "ALTER CLUSTER REPLICA default.r1 SET (workload_class = 'x')",
            "ALTER SYSTEM SET core_affinity = on",
            "ALTER SYSTEM SET maintenance_nice = 1",
        ):
            with pytest.raises(eddyline.NotSupportedError) as refused:
                db.execute(statement)
            assert refused.value.hint
        assert of_replica(db)[INTERACTIVE_RUNTIME] == ("on", "argument")


@pytest.mark.skipif(sys.platform != "linux", reason="threads are placed on Linux only")
def test_threads_have_their_names_and_cores_and_priority_as_settings_say() -> None:
    names = ["maint:0", "maint:1", "inter:0", "inter:1", "inter:0:heavy", "inter:1:heavy"]
    usable = sorted(os.sched_getaffinity(0))
    plan = core_plan(RuntimeConfig(WorkerLayout(2, 1), 0, ()), [Role.MAINTENANCE, Role.INTERACTIVE], usable)
    with eddyline.connect(processes=1, workers=2, interactive=True, process_settings={"core_affinity": "on"}) as db:

        def cores() -> dict[str, set[int]]:
            return {name: set(os.sched_getaffinity(threads_of(db)[name][0])) for name in names}

        def nice() -> list[int]:
            usual = os.getpriority(os.PRIO_PROCESS, pids(db)[0])
            return [os.getpriority(os.PRIO_PROCESS, threads_of(db)[name][0]) - usual for name in names]

        assert set(names) <= threads_of(db).keys()
        wait_until(lambda: cores() == {name: set(plan[name]) for name in names}, cores)
        assert nice() == [0] * 6
        db.execute("ALTER SYSTEM SET maintenance_nice = 3")
        wait_until(lambda: nice() == [3, 3, 0, 0, 0, 0], nice)
        db.execute("ALTER CLUSTER REPLICA default.r1 SET (maintenance_nice = 5, core_affinity = off)")
        wait_until(lambda: nice() == [5, 5, 0, 0, 0, 0], nice)
        wait_until(lambda: cores() == {name: set(usable) for name in names}, cores)
        db.execute("ALTER CLUSTER REPLICA default.r1 RESET ALL")
        wait_until(lambda: cores() == {name: set(plan[name]) for name in names}, cores)


def test_a_thread_that_the_system_does_not_place_stays_where_it_is_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "not permitted")

    placement = ThreadPlacement({"maint:0": frozenset(os.sched_getaffinity(0))})
    settings = OwnSettings()
    settings.place(placement)
    found: list[set[int]] = []

    def work() -> None:
        placement("maint:0")
        monkeypatch.setattr(os, "sched_setaffinity", refused)
        monkeypatch.setattr(os, "setpriority", refused)
        settings.apply({"core_affinity": "on", "maintenance_nice": "4"})
        found.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [os.sched_getaffinity(0)]
    assert caplog.text.count("thread maint:0 stays where it is") == 2
