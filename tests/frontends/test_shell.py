"""``eddyline sql``: what it makes of lines, statements, errors, interrupts and pipes."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eddyline.adapter.engine import Engine
from eddyline.adapter.session import Session
from eddyline.frontends.command_line import main
from eddyline.frontends.shell import Shell
from eddyline.frontends.statement_scan import complete_statements
from eddyline.kernels.warm import warm


@pytest.fixture
def engine() -> Iterator[Engine]:
    warm()
    made = Engine(process_settings=False)
    yield made
    made.close()


class Typed:
    """A shell whose lines are given; ``None`` is Ctrl-C, the end is Ctrl-D."""

    def __init__(self, engine: Engine, lines: list[str | None]) -> None:
        self.prompts: list[str] = []
        self.forgotten: list[str | None] = []
        self._lines = iter(lines)
        self._line: str | None = None
        out, err = io.StringIO(), io.StringIO()
        self.status = Shell(Session(engine), out, err).interactive(self._ask, lambda: self.forgotten.append(self._line))
        self.out, self.err = out.getvalue(), err.getvalue()

    def _ask(self, prompt: str) -> str:
        self.prompts.append(prompt)
        self._line = line = next(self._lines, "at the end")
        if line == "at the end":
            raise EOFError
        if line is None:
            raise KeyboardInterrupt
        return line


def script(engine: Engine, text: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = Shell(Session(engine), out, err).script(io.StringIO(text))
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT ';'';'; x", ["SELECT ';'';'"], " x"),
        ('SELECT "a;""b" ;', ['SELECT "a;""b"'], ""),
        ("SELECT $$;$$, $x$;$$;$x$;", ["SELECT $$;$$, $x$;$$;$x$"], ""),
        ("SELECT $1;$2;", ["SELECT $1", "$2"], ""),
        ("SELECT 1 -- ;\n;", ["SELECT 1 -- ;"], ""),
        ("SELECT /* ; /* ; */ ; */ 1;", ["SELECT /* ; /* ; */ ; */ 1"], ""),
        ("SELECT E'\\';';", ["SELECT E'\\';'"], ""),
        ("SELECT '\\';';", ["SELECT '\\'"], "';"),
        (";;", [], ""),
        ("SELECT 'a;", [], "SELECT 'a;"),
        ("SELECT /* ;", [], "SELECT /* ;"),
        ("SELECT $a$ ; $b$;", [], "SELECT $a$ ; $b$;"),
        ('SELECT "a;', [], 'SELECT "a;'),
    ],
)
def test_statements_end_where_they_do(text: str, statements: list[str], rest: str) -> None:
    assert complete_statements(text) == (statements, rest)


def test_results_are_aligned_tables(engine: Engine) -> None:
    status, out, err = script(
        engine, "SELECT a, b FROM (VALUES (1, 'x'), (-20, NULL), (3, E'日\\n') ) v (a, b)\n ORDER BY 1;\nSELECT 1 AS n;"
    )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "  a  |  b", "-----+-----", " -20 |", "   1 | x", "   3 | 日↵", "(3 rows)", " n", "---", " 1", "(1 row)",
    ]  # fmt: skip


def test_a_script_ends_at_its_first_error(engine: Engine) -> None:
    status, out, err = script(engine, "CREATE TABLE t (a int);\nINSERT INTO t VALUES ('x');\nSELECT 7;")
    assert status == 3 and out == "CREATE TABLE\n" and err.startswith("line 2: ERROR: ") and "(22P02)" in err


def test_a_script_needs_no_last_semicolon(engine: Engine) -> None:
    status, out, _ = script(engine, "SELECT 1;\nSELECT 42")
    assert status == 0 and "42" in out.split()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SELECT 1;\n\n-- a comment\nSELECT 1 / 0;\n", 4),
        ("SELECT 1; SELECT\n nothing_there;\nSELECT 2;\n", 2),
        ("\\timing\n/* a\n comment */ SELECT 1,\n\n  nothing_there\n;\n", 5),
        ("SELECT 1;\n\nSELECT 1 +\n", 3),
        ("SELECT 'a\nb'; SELECT 1 / 0", 2),
        ("SELECT 1; SELECT 1; SELECT 1 / 0;", 1),
        ("CREATE TABLE t (a int);\nCOPY t FROM STDIN;\n1\n2\n\\.\nSELECT 1 / 0;\n", 6),
        ("CREATE TABLE t (a int);\n\nCOPY t FROM STDIN;\n1\nx\n\\.\n", 3),
        ("CREATE TABLE t (a int);\nCOPY t FRM STDIN;\n", 2),
    ],
)
def test_an_error_in_a_script_says_its_line(engine: Engine, text: str, line: int) -> None:
    status, _, err = script(engine, text)
    assert status == 3 and err.startswith(f"line {line}: ERROR: ")


def test_a_script_holds_the_data_that_it_copies(engine: Engine) -> None:
    status, out, err = script(
        engine,
        "CREATE TABLE t (a int, b text);\nCOPY t FROM STDIN;\n1\tx;\n\\N\t\\\\.\n\\.\n"
        '-- more\ncopy t FROM STDIN WITH (FORMAT csv, HEADER);\nb,a\n3,"y\n;"\n\\.\n'
        "COPY t (b) FROM STDIN;\n\\.\nSELECT * FROM t ORDER BY a;\nCOPY t FROM STDIN;\n4\tz\n",
    )
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if "COPY" in line] == ["COPY 2", "COPY 1", "COPY 0", "COPY 1"]
    session = Session(engine)
    result = session.execute("SELECT * FROM t ORDER BY a").result
    assert result is not None and [column.to_pylist() for column in result.columns] == [
        [1, 3, 4, None],
        ["x;", "y\n;", "z", "\\."],
    ]
    session.close()


def test_data_go_out_as_they_are_and_come_in_by_the_shell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = str(tmp_path / "d")
    assert main(["sql", directory, "-c", "CREATE TABLE t (a int, b text)"]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("1,x\n2,y\n"))
    assert main(["sql", directory, "-c", "COPY t FROM STDIN (FORMAT csv); SELECT 1/0"]) == 3
    captured = capfd.readouterr()
    assert captured.out == "CREATE TABLE\nCOPY 2\n" and captured.err.startswith("ERROR: ")
    assert main(["sql", directory, "-c", "COPY (SELECT * FROM t ORDER BY a) TO STDOUT (FORMAT csv, HEADER)"]) == 0
    assert capfd.readouterr().out == "a,b\n1,x\n2,y\n"


@pytest.mark.parametrize("word", ["quit", "exit;", " QUIT "])
def test_one_may_quit_in_words(engine: Engine, word: str) -> None:
    typed = Typed(engine, ["help", "SELECT", "1;", word, "SELECT nothing_there;"])
    assert (typed.status, typed.err) == (0, "") and "\\timing" in typed.out and "(1 row)" in typed.out
    begun = Typed(engine, ["SELECT 1 AS", word.rstrip(";"), ";"])
    assert (begun.status, begun.err) == (0, "") and word.strip(" ;").lower() in begun.out.splitlines()[0]


def test_data_may_be_typed(engine: Engine) -> None:
    lines = ["CREATE TABLE t (a int);", "COPY t FROM STDIN;", "1", "2", "\\.", "COPY t FROM STDIN;", "3", None]
    typed = Typed(engine, [*lines, "SELECT sum(a) FROM t;", "COPY t FROM STDIN;", "4"])
    assert typed.status == 0 and typed.err == ""
    assert "COPY 2" in typed.out and "COPY 1" in typed.out and "(1 row)" in typed.out
    session = Session(engine)
    result = session.execute("SELECT a FROM t ORDER BY a").result
    assert result is not None and result.columns[0].to_pylist() == [1, 2, 4]
    session.close()


def test_lines_are_put_together_until_a_semicolon(engine: Engine) -> None:
    typed = Typed(engine, ["SELECT 1,", "2", ";", "oops", None, "BEGIN;", "SELECT 1/0;", "ROLLBACK;"])
    assert typed.status == 0 and "        1 |        2" in typed.out
    marks = [p.removeprefix("eddyline").strip() for p in typed.prompts]
    assert marks == ["=>", "->", "->", "=>", "->", "=>", "*=>", "!=>", "=>"]


def test_lines_that_may_say_a_password_are_forgotten(engine: Engine) -> None:
    lines = ["CREATE ROLE ann;", "alter role ann password", "", "'x'; SELECT 1;", "SELECT 2;", "\\q"]
    typed = Typed(engine, list(lines))
    assert typed.err == "" and typed.forgotten == ["alter role ann password", "'x'; SELECT 1;"]


def test_relations_are_listed_and_described(engine: Engine) -> None:
    lines: list[str | None] = [
        'CREATE TABLE "T" (a int PRIMARY KEY, b varchar(3)); CREATE VIEW v AS SELECT a FROM "T";',
        "\\d", '\\d "T"', "\\d V", "\\d nothing", "\\nonsense", "\\q", "SELECT 'not reached';",
    ]  # fmt: skip
    typed = Typed(engine, lines)
    assert re.search(r"public \| T +\| table", typed.out) and re.search(r"public \| v +\| view", typed.out)
    assert "character varying(3)" in typed.out and "T_pkey" in typed.out and "not reached" not in typed.out
    assert "there is no nothing" in typed.err and "\\?" in typed.err


def test_it_says_how_long_statements_take(engine: Engine) -> None:
    typed = Typed(engine, ["\\timing", "SELECT 1;", "\\timing", "SELECT 2;"])
    assert len(re.findall(r"^Time: \d+\.\d ms$", typed.out, re.MULTILINE)) == 1


def test_a_directory_that_cannot_be_opened_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["sql", str(tmp_path / "file"), "-c", "SELECT 1"]) == 2
    assert "file" in capsys.readouterr().err


def test_a_directory_keeps_what_a_script_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", str(tmp_path / "d"), "-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (5)"]) == 0
    assert main(["sql", str(tmp_path / "d"), "-c", "TABLE t"]) == 0
    assert " 5" in capsys.readouterr().out.splitlines()


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (([], ("eddyline sql", "serve --data", "psql")), (["sql"], ("\\timing", "exit status"))):
        with pytest.raises(SystemExit):
            main([*arguments, "--help"])
        text = capsys.readouterr().out
        assert all(word in text for word in words)


def test_at_a_terminal_ctrl_c_cancels_the_statement(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"EDDYLINE_HISTORY": str(tmp_path / "history"), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "eddyline", "sql"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = ""

    def until(pattern: str) -> None:
        nonlocal seen
        while re.search(pattern, seen) is None:
            assert select.select([ours], [], [], 60)[0], seen
            seen += os.read(ours, 4096).decode()
        seen = seen[re.search(pattern, seen).end() :]  # type: ignore[union-attr]  # just found

    def say(line: str) -> None:
        os.write(ours, f"{line}\n".encode())

    try:
        until("=> ")
        say("CREATE TABLE t (a int); INSERT INTO t VALUES (4);")
        until("INSERT 0 1")
        say("SUBSCRIBE t;")
        until(r"f\t1\t4\r?\n")
        process.send_signal(signal.SIGINT)
        until("57014")
        until("=> ")
        say("SELECT 40 + 2 AS n;")
        until(r"\n +42\r?\n")
        say("\\q")
        assert process.wait(timeout=60) == 0
        assert "SUBSCRIBE t;" in (tmp_path / "history").read_text()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
