"""Arguments of a process and what they mean, by value: from the replica's specification to the process and back."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import eddyline
from eddyline.adapter.provisioning import Provisioning, replica_parameters, replica_spec
from eddyline.adapter.system_settings import INTERACTIVE_RUNTIME, SystemSettings
from eddyline.clusterd.config import ClusterdConfig, clusterd_config
from eddyline.compute.layout import RuntimeConfig, WorkerLayout
from eddyline.compute.placement import Role
from eddyline.compute.process_settings import SWITCH_INTERVAL, GuestSettings, OwnSettings, check_process_settings
from eddyline.compute.thread_placement import core_plan
from eddyline.controller.processes import ReplicaSpec, process_arguments
from eddyline.errors import DatabaseError

TWO = '{"workers": 2, "processes": 2, "addresses": ["/s/m0", "/s/m1"]}'


@pytest.mark.parametrize(
    ("override", "argument", "environment", "interactive"),
    [
        (None, None, None, False),  # the built-in default
        (None, None, "on", True),
        ("on", None, None, True),
        ("off", None, "on", False),
        ("maybe", None, "on", True),  # cannot be read: the environment's value, not the default
        ("maybe", None, None, False),
        ("", None, "on", True),
        (" TRUE ", None, "off", True),
        (None, True, None, True),  # whoever asks for a replica may say it
        (None, False, "on", False),
        ("off", True, "on", False),
        ("maybe", True, "off", True),
    ],
)
def test_a_replica_gets_an_interactive_runtime_as_its_override_its_argument_or_the_environment_says(
    override: str | None, argument: bool | None, environment: str | None, interactive: bool
) -> None:
    system = SystemSettings()
    if environment is not None:
        system.set(INTERACTIVE_RUNTIME, (environment,))
    overrides = {} if override is None else {INTERACTIVE_RUNTIME: override}
    spec = replica_spec(Provisioning(workers=3, interactive=argument, overrides=overrides), system)
    assert spec == ReplicaSpec(workers=3, interactive=interactive)
    arguments = process_arguments(spec, 0, Path("/s"), hash_seed=7)
    assert any(a.startswith("--interactive-compute-timely-config=") for a in arguments) is interactive


def test_what_a_replica_was_made_with_does_not_follow_the_setting() -> None:
    system = SystemSettings()
    before = replica_spec(Provisioning(), system)
    system.set(INTERACTIVE_RUNTIME, ("on",))
    assert (before.interactive, replica_spec(Provisioning(), system).interactive) == (False, True)


@pytest.mark.parametrize(
    ("override", "environment", "limit"),
    [
        (None, None, "0"),
        (None, "1GB", str(1 << 30)),
        ("2GB", "1GB", str(2 << 30)),
        ("much", "1GB", str(1 << 30)),  # cannot be read: the environment's value, not the default
        ("-1", None, "0"),
    ],
)
def test_process_settings_of_a_replica_are_its_overrides_or_what_the_environment_says(
    override: str | None, environment: str | None, limit: str
) -> None:
    system = SystemSettings()
    if environment is not None:
        system.set("process_memory_limit", (environment,))
    overrides = {} if override is None else {"process_memory_limit": override}
    parameters = replica_parameters(Provisioning(overrides=overrides), system)
    assert parameters["memory_limit_bytes"] == limit
    check_process_settings(parameters)
    assert parameters == {
        "switch_interval_us": "500", "arrow_memory_pool": "default", "arrow_cpu_threads": "0", "arrow_io_threads": "0",
        "gc_policy": "freeze", "memory_limit_bytes": limit, "scratch_directory": "", "workload_class": "",
        "core_affinity": "off", "maintenance_nice": "0", "gil_sampling": "off",
    }  # fmt: skip


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_arguments_of_a_process_say_what_the_replica_is(processes: int, interactive: bool) -> None:
    spec = ReplicaSpec(
        workers=2,
        processes=processes,
        interactive=interactive,
        orphan_seconds=5,
    )
    for process in range(processes):
        config = clusterd_config(process_arguments(spec, process, Path("/s"), hash_seed=7))
        layout = WorkerLayout(2, processes)

        def runtime(name: str, process: int = process, layout: WorkerLayout = layout) -> RuntimeConfig:
            addresses = [f"/s/{name}{p}" for p in range(processes)] if processes > 1 else []
            return RuntimeConfig(layout, process, tuple(addresses))

        assert config == ClusterdConfig(
            listen=f"/s/control{process}",
            compute=runtime("compute"),
            interactive=runtime("interactive") if interactive else None,
            hash_seed=7,
            orphan_seconds=5,
        )


def test_workers_alone_are_a_replica_of_one_process_and_one_runtime() -> None:
    config = clusterd_config(["--listen=/s/c", "--workers=4"])
    assert config.compute == RuntimeConfig(WorkerLayout(4, 1), 0, ())
    assert config.interactive is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--workers=0"],
        ["--process=1"],
        ["--compute-timely-config={"],
        ['--compute-timely-config={"workers": 0}'],
        ["--compute-timely-config=" + TWO],  # no seed
        ["--compute-timely-config=" + TWO, "--hash-seed=1", "--process=2"],
        ["--compute-timely-config=" + TWO, "--hash-seed=1", "--workers=3"],
        ['--compute-timely-config={"workers": 1, "processes": 2}', "--hash-seed=1"],
        ["--workers=4", '--interactive-compute-timely-config={"workers": 2, "processes": 2}'],
        ["--workers=4", '--interactive-compute-timely-config={"workers": 4, "extra": 1}'],
        ["--compute-timely-config=" + TWO, "--hash-seed=1", "--interactive-compute-timely-config=" + TWO],
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments: list[str]) -> None:
    with pytest.raises(DatabaseError) as refused:
        clusterd_config(["--listen=/s/c", *arguments])
    assert refused.value.sqlstate == "22023"


def one_of(processes: int, workers: int, process: int = 0) -> RuntimeConfig:
    return RuntimeConfig(WorkerLayout(workers, processes), process, ())


def test_workers_of_every_process_have_cores_of_their_own_and_lanes_what_no_lookup_has() -> None:
    roles = [Role.MAINTENANCE, Role.INTERACTIVE]

    def plan(config: RuntimeConfig, cores: int) -> dict[str, set[int]]:
        return {name: set(found) for name, found in core_plan(config, roles, range(cores)).items()}

    assert plan(one_of(1, 2), 4) == {
        "maint:0": {0}, "inter:0": {1}, "inter:0:heavy": {2},
        "maint:1": {2}, "inter:1": {3}, "inter:1:heavy": {0},
    }  # fmt: skip
    assert plan(one_of(1, 2), 6) == {
        "maint:0": {0}, "inter:0": {1}, "inter:0:heavy": {4, 5},
        "maint:1": {2}, "inter:1": {3}, "inter:1:heavy": {4, 5},
    }  # fmt: skip
    assert plan(one_of(2, 2, process=1), 10) == {
        "maint:2": {4}, "inter:2": {5}, "inter:2:heavy": {8, 9},
        "maint:3": {6}, "inter:3": {7}, "inter:3:heavy": {8, 9},
    }  # fmt: skip
    solo = core_plan(one_of(3, 1, process=2), [Role.SOLO], range(4))
    assert solo == {"solo:2": frozenset((2,))}


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_worker_i_of_the_two_runtimes_never_share_a_core_while_another_is_free(workers: int, cores: int) -> None:
    plan = core_plan(one_of(1, workers), [Role.MAINTENANCE, Role.INTERACTIVE], range(10, 10 + cores))
    assert len(plan) == 3 * workers
    for i in range(workers):
        (maint,), (inter,) = plan[f"maint:{i}"], plan[f"inter:{i}"]
        assert (maint != inter) is (cores > 1)
        heavy = plan[f"inter:{i}:heavy"]
        assert (maint in heavy) is (cores == 1)
        assert (inter in heavy) is (cores < 3)
    if cores >= 2 * workers:
        singles = [c for name, c in plan.items() if not name.endswith("heavy")]
        assert len(frozenset().union(*singles)) == 2 * workers, "while there are enough, nobody shares"


def test_process_settings_are_checked_applied_once_and_survive_a_refusal(tmp_path: Path) -> None:
    program = f"""
import gc, sys, tempfile, pyarrow as pa
found = pa.default_memory_pool().backend_name, pa.cpu_count(), pa.io_thread_count()
from eddyline.compute.process_settings import OwnSettings
s = OwnSettings()
s.apply({{"switch_interval_us": "700", "arrow_memory_pool": "system", "arrow_cpu_threads": "3", "gc_policy": "freeze",
         "arrow_io_threads": "2", "scratch_directory": {str(tmp_path)!r}, "workload_class": "batch",
         "memory_limit_bytes": "{1 << 40}"}})
import resource
print(round(sys.getswitchinterval() * 1e6), pa.default_memory_pool().backend_name, pa.cpu_count(), pa.io_thread_count(),
      gc.get_freeze_count() > 0, tempfile.gettempdir() == {str(tmp_path)!r}, s.workload_class,
      resource.getrlimit(resource.RLIMIT_DATA)[0] == 1 << 40)
s.apply({{"gc_policy": "off", "memory_limit_bytes": "0", "scratch_directory": "", "arrow_memory_pool": "default",
         "arrow_cpu_threads": "0", "arrow_io_threads": "0"}})
print(gc.isenabled(), gc.get_freeze_count(), resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY)
print((pa.default_memory_pool().backend_name, pa.cpu_count(), pa.io_thread_count()) == found)
s.apply({{"gc_policy": "default"}})
print(gc.isenabled())
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["700 system 3 2 True True batch True", "False 0 True", "True", "True"]


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("switch_interval", "1", "42704"),
        ("switch_interval_us", "0", "22023"),
        ("switch_interval_us", "1.5", "22023"),
        ("arrow_memory_pool", "none", "22023"),
        ("gc_policy", "sometimes", "22023"),
        ("memory_limit_bytes", "-1", "22023"),
        ("scratch_directory", "here", "22023"),
        ("workload_class", "a\nb", "22023"),
    ],
)
def test_process_settings_that_cannot_be_are_refused(name: str, value: str, sqlstate: str) -> None:
    settings = OwnSettings()
    with pytest.raises(DatabaseError) as refused:
        check_process_settings({name: value})
    assert refused.value.sqlstate == sqlstate
    with pytest.raises(DatabaseError):
        settings.apply({name: value})
    assert settings.values == {}


def test_the_command_teaches_how_it_is_used() -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "eddyline", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "clusterd" in run("--help")
    text = run("clusterd", "--help")
    for part in ("--interactive-compute-timely-config", "--process", "--workers", "examples:", "exit status:"):
        assert part in text


def test_a_guest_shortens_the_switch_interval_together_with_others_and_gives_it_back() -> None:
    before = sys.getswitchinterval()
    one, other = GuestSettings(), GuestSettings()
    one.apply({SWITCH_INTERVAL: "700", "gc_policy": "off"})
    assert gc.isenabled(), "the rest is the host's"
    other.apply({SWITCH_INTERVAL: "900"})
    assert sys.getswitchinterval() == pytest.approx(700e-6), "never longer than another one needs"
    one.close()
    one.close()
    assert sys.getswitchinterval() == pytest.approx(900e-6), "what the other one asked for"
    other.close()
    assert sys.getswitchinterval() == before
    third = GuestSettings()
    third.apply({SWITCH_INTERVAL: "300"})
    third.apply({SWITCH_INTERVAL: "800"})
    assert sys.getswitchinterval() == pytest.approx(800e-6), "what one asked for before no longer counts"
    third.apply({SWITCH_INTERVAL: "9000000"})
    assert sys.getswitchinterval() == before, "never longer than the host has it"
    sys.setswitchinterval(0.004)
    third.apply({SWITCH_INTERVAL: "4500"})
    assert sys.getswitchinterval() == pytest.approx(0.004), "what the host sets in between is its own"
    third.close()
    assert sys.getswitchinterval() == pytest.approx(0.004)
    sys.setswitchinterval(before)
    one.apply({SWITCH_INTERVAL: "700"})
    assert sys.getswitchinterval() == before, "a command that comes after the end changes nothing"


def test_a_database_may_leave_the_process_as_it_is() -> None:
    before = sys.getswitchinterval()
    with eddyline.connect(process_settings=False) as db:
        db.executescript("CREATE TABLE t (a int); CREATE VIEW v AS SELECT count(*) FROM t; CREATE INDEX i ON v (count)")
        db.wait_hydrated("i")
        assert sys.getswitchinterval() == before
    with eddyline.connect() as db:
        db.executescript("CREATE TABLE t (a int); CREATE VIEW v AS SELECT count(*) FROM t; CREATE INDEX i ON v (count)")
        db.wait_hydrated("i")
        assert sys.getswitchinterval() == pytest.approx(500e-6)
    assert sys.getswitchinterval() == before


def test_the_first_full_collection_is_over_before_a_process_serves() -> None:
    program = """
import gc
from eddyline.clusterd import main
from eddyline.errors import make_error
left_out = []
class Serving:
    def __init__(self, config, settings):
        gc.callbacks.append(lambda phase, info: phase == "start" and left_out.append(gc.get_freeze_count()))
        settings.apply({"gc_policy": "freeze"})
        raise make_error("58000", "that was all")
main.Host = Serving
main.clusterd_config = lambda arguments: None
main.run_clusterd(None)
print(len(left_out) > 0, min(left_out) > 0.9 * len(gc.get_objects()), min(left_out) > 10_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True True True"]
