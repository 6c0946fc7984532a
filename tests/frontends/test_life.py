"""Opening, closing, forking, interrupting, exiting."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import eddyline
from tests.cancelling import cancelling
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
#: ends by being interrupted
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000) AS a (x), generate_series(1, 100000) AS b (y) WHERE x < y"


def run(program: str, *, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )


def test_databases_are_separate_and_sessions_share_one(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int)")
    with eddyline.connect() as other, pytest.raises(eddyline.ProgrammingError):
        other.execute("SELECT * FROM t")
    with db.session() as session:
        session.execute("INSERT INTO t VALUES (1)")
    assert db.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_database_that_nobody_holds_any_more_is_closed() -> None:
    before = set(threading.enumerate())

    def left() -> int:
        return len([t for t in threading.enumerate() if t not in before and not t.name.startswith("Dummy")])

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            eddyline.connect().execute("SELECT 1").fetchall()
        cursor = eddyline.connect().execute("SELECT a FROM (VALUES (1), (2)) AS v (a)")
        session = eddyline.connect().session()
        assert (len(cursor.fetchall()), session.execute("SELECT 1").fetchall()) == (2, [(1,)]), "in use"
        del cursor, session
        wait_until(lambda: gc.collect() >= 0 and not left(), left)
    assert [w.category for w in told if "dropped without close()" in str(w.message)] == [ResourceWarning] * 5


def test_a_session_ends_without_the_database_and_the_owner_ends_both(db: eddyline.Connection) -> None:
    session = db.session()
    session.execute("BEGIN")
    session.close()
    session.close()
    with pytest.raises(eddyline.InterfaceError):
        session.execute("SELECT 1")
    assert db.execute("SELECT 1").fetchall() == [(1,)]
    survivor = db.session()
    db.close()
    db.close()
    calls: list[Callable[[], object]] = [
        lambda: survivor.execute("SELECT 1"),
        lambda: db.execute("SELECT 1"),
        db.cursor,
        db.commit,
        db.rollback,
        db.session,
        lambda: db.append("t", []),
        lambda: db.wait_hydrated("t"),
        lambda: db.subscribe("t"),
    ]
    for call in calls:
        with pytest.raises(eddyline.InterfaceError):
            call()
    survivor.close()


def test_results_outlive_the_database() -> None:
    db = eddyline.connect()
    cursor = db.execute("SELECT * FROM generate_series(1, 3)")
    db.close()
    assert sorted(cursor.fetchall()) == [(1,), (2,), (3,)]


def test_bad_arguments_of_connect() -> None:
    for arguments in ({"workers": 0}, {"memory_limit": 0}):
        with pytest.raises(eddyline.ProgrammingError) as refused:
            eddyline.connect(**arguments)  # type: ignore[arg-type]  # wrong on purpose
        assert refused.value.sqlstate == "22023"


def test_several_workers_and_the_other_switches() -> None:
    with eddyline.connect(workers=2, interactive=False, process_settings=False) as db:
        db.execute("CREATE TABLE t (a int)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS k, count(*) AS n FROM t GROUP BY 1")
        db.append("t", {"a": list(range(1000))})
        assert sorted(db.execute("SELECT * FROM v")) == [(k, 100) for k in range(10)]


def test_the_memory_limit_is_a_typed_error() -> None:
    with eddyline.connect(memory_limit=100_000) as db:
        with pytest.raises(eddyline.OperationalError) as caught:
            db.execute("SELECT * FROM generate_series(1, 1000000)")
        assert caught.value.sqlstate == "53200"
        assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_the_thread_switch_interval_is_put_back() -> None:
    before = sys.getswitchinterval()
    with eddyline.connect(), eddyline.connect():
        pass
    assert sys.getswitchinterval() == before


def test_statement_timeout(db: eddyline.Connection) -> None:
    db.execute("SET statement_timeout = '100ms'")
    with pytest.raises(eddyline.OperationalError) as caught:
        db.execute(ENDLESS)
    assert caught.value.sqlstate == "57014"
    assert "timeout" in caught.value.message
    db.execute("RESET statement_timeout")
    assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_cancel_from_another_thread(db: eddyline.Connection) -> None:
    with cancelling(db), pytest.raises(eddyline.OperationalError) as caught:
        db.execute(ENDLESS)
    assert caught.value.sqlstate == "57014"
    db.cancel()
    assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_closing_the_database_ends_statements_under_way() -> None:
    db = eddyline.connect()
    session = db.session()
    timer = threading.Timer(0.2, db.close)
    timer.start()
    with pytest.raises(eddyline.Error) as caught:
        session.execute(ENDLESS)
    timer.join()
    assert caught.value.sqlstate in ("57P01", "57014", "08003")


def test_control_c_cancels_the_statement_and_the_database_goes_on() -> None:
    done = run(
        f"""
        import os, signal, threading, eddyline
        db = eddyline.connect()
        db.execute("SELECT 1")
        try:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            db.execute({ENDLESS!r})
        except KeyboardInterrupt:
            print("interrupted", db.execute("SELECT 1").fetchall())
        """
    )
    assert done.stdout == "interrupted [(1,)]\n", done.stderr


def test_control_c_ends_a_subscription() -> None:
    done = run(
        """
        import os, signal, threading, eddyline
        db = eddyline.connect()
        db.execute("CREATE TABLE t (a int)")
        try:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            for change in db.subscribe("t"):
                pass
        except KeyboardInterrupt:
            print("interrupted", db.execute("SELECT count(*) FROM t").fetchall())
        """
    )
    assert done.stdout == "interrupted [(0,)]\n", done.stderr


@pytest.mark.parametrize(
    "ending", ["", "raise SystemExit(0)", "db.close()", "import threading; threading.Thread(target=db.close).start()"]
)
def test_the_interpreter_exits_cleanly_and_silently(ending: str) -> None:
    done = run(
        f"""
        import eddyline
        db = eddyline.connect()
        db.execute("CREATE TABLE t (a int)")
        db.execute("CREATE VIEW v AS SELECT count(*) AS n FROM t")
        db.execute("CREATE DEFAULT INDEX ON v")
        db.append("t", [{{"a": 1}}])
        subscription = db.subscribe("v")
        cursor = db.execute("SUBSCRIBE TO t")
        another = db.session()
        another.execute("BEGIN")
        another.execute("INSERT INTO t VALUES (2)")
        {ending}
        """
    )
    # a machine that is slow to load the kernels is told so, once
    said = [line for line in done.stderr.splitlines() if not line.startswith("eddyline: compiling kernels")]
    assert (done.returncode, done.stdout, said) == (0, "", [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_may_not_use_its_parents_database() -> None:
    done = run(
        """
        import os, sys, warnings, eddyline
        warnings.simplefilter("ignore")
        db = eddyline.connect()
        db.execute("CREATE TABLE t (a int)")
        child = os.fork()
        if child == 0:
            try:
                db.execute("SELECT 1")
            except eddyline.InterfaceError as error:
                print("child", error.sqlstate, flush=True)
            db.close()
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", db.execute("SELECT count(*) FROM t").fetchall())
        """
    )
    assert done.stdout == "child 0A000\nparent [(0,)]\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_a_kernel_is_loaded_can_load_it() -> None:
    done = run(
        """
        import os, threading, time, warnings, eddyline
        from eddyline.kernels import kernel
        from eddyline.kernels.registry import KERNELS
        warnings.simplefilter("ignore")
        loading = threading.Event()
        def load():
            with kernel._loading:
                loading.set()
                time.sleep(0.1)
        threading.Thread(target=load).start()
        loading.wait()
        child = os.fork()
        if child == 0:
            KERNELS[0].load()
            print("child", KERNELS[0].loaded, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        KERNELS[0].load()
        print("parent", KERNELS[0].loaded)
        """
    )
    assert done.stdout == "child True\nparent True\n", done.stderr


def test_a_program_may_end_right_after_connect() -> None:
    done = run("import eddyline; db = eddyline.connect(); print(db.execute('SELECT 1').fetchall())")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[(1,)]\n", "")


def test_a_program_that_only_connects_imports_no_event_loop_and_no_file_formats() -> None:
    done = run(
        """
        import sys
        import eddyline
        late = ("asyncio", "pyarrow.parquet", "pyarrow.csv", "pyarrow.json")
        print([name for name in late if name in sys.modules])
        with eddyline.connect() as db:
            db.execute("CREATE TABLE t (a int)")
            print(db.append("t", {"a": [1]}) > 0, [name for name in late if name in sys.modules])
        """
    )
    assert (done.stdout, done.stderr) == ("[]\nTrue []\n", "")


def test_threads_may_share_a_session(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int)")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                db.execute("INSERT INTO t VALUES ($1)", [number])
                db.execute("SELECT count(*) FROM t").fetchall()
        except BaseException as failure:  # noqa: BLE001 - reported by the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(80,)]


def test_nothing_is_printed_and_the_logger_has_the_packages_name(
    db: eddyline.Connection, capfd: pytest.CaptureFixture[str]
) -> None:
    db.execute("CREATE TABLE t (a int)")
    db.execute("SELECT * FROM t")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert any(name.startswith("eddyline") for name in logging.root.manager.loggerDict)


def test_version() -> None:
    assert eddyline.__version__[0].isdigit()
    # of those that Python starts with; a shell's background jobs ignore it
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
