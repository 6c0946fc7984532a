"""Process settings in SQL: their values, and whose they are where the database is a guest in the program's process."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import eddyline
from eddyline.adapter.process_parameters import PROCESS_SETTINGS, encoded
from eddyline.adapter.result_columns import result_columns
from eddyline.adapter.system_settings import SystemSettings
from eddyline.sql.bind_statement import bind_statement
from eddyline.sql.parse import parse
from tests.waiting import wait_until


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection


def refused(db: eddyline.Connection, statement: str) -> eddyline.DatabaseError:
    with pytest.raises(eddyline.DatabaseError) as error:
        db.execute(statement)
    return error.value


def becomes(seconds: float) -> None:
    """The worker comes to the command soon."""
    wait_until(lambda: sys.getswitchinterval() == pytest.approx(seconds), sys.getswitchinterval)


@pytest.mark.parametrize(
    ("name", "text", "shown", "parameter"),
    [
        ("thread_switch_interval", "200", "200us", ("switch_interval_us", "200")),
        ("thread_switch_interval", "1.5 ms", "1500us", ("switch_interval_us", "1500")),
        ("thread_switch_interval", "2000us", "2ms", ("switch_interval_us", "2000")),
        ("thread_switch_interval", "10s", "10s", ("switch_interval_us", "10000000")),
        ("arrow_memory_pool", " System ", "system", ("arrow_memory_pool", "system")),
        ("arrow_memory_pool", "default", "default", ("arrow_memory_pool", "default")),
        ("arrow_cpu_threads", "04", "4", ("arrow_cpu_threads", "4")),
        ("arrow_io_threads", "0", "0", ("arrow_io_threads", "0")),
        ("gc_policy", "OFF", "off", ("gc_policy", "off")),
        ("process_memory_limit", "2048MB", "2GB", ("memory_limit_bytes", str(2 << 30))),
        ("process_memory_limit", "0", "0", ("memory_limit_bytes", "0")),
        ("scratch_directory", "/var/tmp", "/var/tmp", ("scratch_directory", "/var/tmp")),
        ("scratch_directory", "", "", ("scratch_directory", "")),
        ("workload_class", "batch", "batch", ("workload_class", "batch")),
        ("core_affinity", "TRUE", "on", ("core_affinity", "on")),
        ("maintenance_nice", "07", "7", ("maintenance_nice", "7")),
    ],
)
def test_values_have_units_and_one_form(name: str, text: str, shown: str, parameter: tuple[str, str]) -> None:
    system = SystemSettings()
    system.set(name, (text,))
    assert system.show(name) == shown
    assert encoded(name, shown) == parameter
    system.set(name, (shown,))
    assert system.show(name) == shown, "what is shown can be set"
    system.reset(name)
    assert system.show(name) == PROCESS_SETTINGS[name].default


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thread_switch_interval", "0"),
        ("thread_switch_interval", "11s"),
        ("thread_switch_interval", "1min"),
        ("thread_switch_interval", "-1"),
        ("arrow_memory_pool", "none"),
        ("arrow_cpu_threads", "1025"),
        ("arrow_cpu_threads", "²"),
        ("arrow_io_threads", "-1"),
        ("gc_policy", "sometimes"),
        ("process_memory_limit", "1 byte"),
        ("scratch_directory", "here"),
        ("workload_class", "x" * 65),
        ("core_affinity", "2"),
        ("maintenance_nice", "20"),
        ("maintenance_nice", "-1"),
    ],
)
def test_values_that_are_none_are_refused_and_change_nothing(name: str, text: str) -> None:
    system = SystemSettings()
    with pytest.raises(eddyline.DatabaseError) as error:
        system.set(name, (text,))
    assert error.value.sqlstate == "22023"
    assert name in str(error.value)
    assert system.show(name) == PROCESS_SETTINGS[name].default


def test_the_thread_switch_interval_is_the_databases_while_it_is_open() -> None:
    before = sys.getswitchinterval()
    with eddyline.connect() as db:
        assert db.execute("SHOW thread_switch_interval").fetchall() == [("500us",)]
        becomes(500e-6)
        db.execute("ALTER SYSTEM SET thread_switch_interval = '0.2ms'")
        becomes(200e-6)
        assert ("thread_switch_interval", "200us") in db.execute("SHOW ALL").fetchall()
        db.execute("ALTER SYSTEM RESET ALL")
        becomes(500e-6)
        assert refused(db, "ALTER SYSTEM SET thread_switch_interval = 0").sqlstate == "22023"
    assert sys.getswitchinterval() == before
    with eddyline.connect(process_settings={"thread_switch_interval": "300us"}):
        becomes(300e-6)
    assert sys.getswitchinterval() == before


def test_the_settings_of_a_replica_have_the_columns_that_are_announced(db: eddyline.Connection) -> None:
    shown = db.execute("SHOW CLUSTER REPLICA default.r1")
    (statement,) = parse("SHOW CLUSTER REPLICA default.r1")
    bound = bind_statement(statement, db._engine.catalog.snapshot().view())
    announced = result_columns(bound, pytest.fail, pytest.fail)
    assert announced is not None
    assert [column[0] for column in shown.description or ()] == [name for name, _ in announced]
    assert ("thread_switch_interval", "500us", "system") in shown.fetchall()


def test_other_process_settings_are_the_programs(db: eddyline.Connection) -> None:
    others = set(PROCESS_SETTINGS) - {"thread_switch_interval"}
    shown: dict[str, str] = dict(db.execute("SHOW ALL").fetchall())
    assert set(PROCESS_SETTINGS) <= set(shown)
    assert shown["gc_policy"] == "default", "nothing was set"
    for name in sorted(others):
        error = refused(db, f"ALTER SYSTEM SET {name} = '1'")
        assert error.sqlstate == "0A000"
        assert "processes" in str(error.hint)
        db.execute(f"ALTER SYSTEM RESET {name}")
    assert dict(db.execute("SHOW ALL").fetchall()) == shown
    for settings, sqlstate in (
        ({"workload_class": "batch"}, "0A000"),
        ({"no_such": "1"}, "42704"),
        ({"max_result_size": "1kB"}, "42704"),
        ({"thread_switch_interval": "soon"}, "22023"),
    ):
        with pytest.raises(eddyline.Error) as no:
            eddyline.connect(process_settings=settings)
        assert no.value.sqlstate == sqlstate


def test_a_program_may_keep_its_interval_to_itself() -> None:
    before = sys.getswitchinterval()
    with eddyline.connect(process_settings=False) as db:
        error = refused(db, "ALTER SYSTEM SET thread_switch_interval = '1ms'")
        assert error.sqlstate == "0A000"
        assert "process_settings" in str(error.hint)
        assert db.execute("SHOW thread_switch_interval").fetchall() == [(f"{round(before * 1e3)}ms",)]
        db.execute("ALTER SYSTEM RESET ALL")
        db.execute("CREATE TABLE t (a int)")
        assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        assert sys.getswitchinterval() == before
