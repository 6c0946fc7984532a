"""psql: the simple query protocol."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from eddyline.testing.served import ServedDatabase


def psql(
    served: ServedDatabase, *commands: str, schema: str = "public", stdin: str | None = None
) -> tuple[str, str, int]:
    """Output, errors and exit status."""
    binary = shutil.which("psql")
    assert binary is not None, "psql is needed: apt-get install postgresql-client"
    options = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        [binary, "-XAtq", "-h", served.host, "-p", str(served.port), "-U", "me", "db", *options],
        input=stdin, capture_output=True, text=True, timeout=60, check=False,
        env={"PGOPTIONS": f"-c search_path={schema}", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return done.stdout, done.stderr, done.returncode


def test_statements_and_rows(served: ServedDatabase, schema: str) -> None:
    out, err, _ = psql(
        served,
        "CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(8,2))",
        "INSERT INTO t VALUES (1, 'a', 2.5), (2, NULL, 0)",
        "SELECT * FROM t ORDER BY id; SELECT count(*) FROM t",
        schema=schema,
    )
    assert (out, err) == ("1|a|2.50\n2||0.00\n2\n", "")


def test_errors_show_their_place_and_the_session_goes_on(served: ServedDatabase) -> None:
    out, err, _ = psql(served, "SELECT 1 +* 2", "SELECT nope", "SELECT 7")
    assert out == "7\n"
    assert 'syntax error at or near "*"' not in out and "LINE 1: SELECT 1 +* 2" in err
    assert 'ERROR:  column "nope" does not exist\nLINE 1: SELECT nope\n               ^' in err


def test_statements_of_one_string_are_one_transaction(served: ServedDatabase, schema: str) -> None:
    out, err, _ = psql(
        served,
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); SELECT 1/0",
        "SELECT count(*) FROM t",
        "INSERT INTO t VALUES (3); COMMIT; SELECT 1/0",
        "SELECT count(*) FROM t",
        "INSERT INTO t VALUES (4); BEGIN; INSERT INTO t VALUES (5)",
        "ROLLBACK",
        "SELECT count(*) FROM t",
        schema=schema,
    )
    assert out == "0\n1\n1\n"
    assert err.count("division by zero") == 2 and "WARNING:  there is no transaction in progress" in err


def test_a_definition_among_statements_is_undone_with_them(served: ServedDatabase, schema: str) -> None:
    script = "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT * FROM t"
    out, err, _ = psql(served, f"{script}; SELECT 1/0", script, "SELECT * FROM v", schema=schema)
    assert (out, err.count("ERROR")) == ("1\n", 1)


@pytest.mark.parametrize("text", ["", ";", "-- nothing"])
def test_an_empty_statement_is_none(served: ServedDatabase, text: str) -> None:
    assert psql(served, text, "SELECT 1") == ("1\n", "", 0)


def test_a_script_from_standard_input(served: ServedDatabase, schema: str) -> None:
    script = "\\set x 5\nCREATE TABLE t (a int);\nINSERT INTO t SELECT generate_series(1, :x);\nSELECT sum(a) FROM t;\n"
    assert psql(served, schema=schema, stdin=script)[:2] == ("15\n", "")


def test_settings_are_told_to_the_client(served: ServedDatabase) -> None:
    out, _, _ = psql(
        served, stdin="SET TimeZone = 'Europe/Prague';\nSHOW timezone;\n\\echo :SERVER_VERSION_NUM :ENCODING\n"
    )
    assert out == "Europe/Prague\n150000 UTF8\n"
