"""The ``eddyline`` command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from eddyline._version import __version__
from eddyline.clusterd.config import add_arguments
from eddyline.clusterd.main import run_clusterd
from eddyline.frontends.copies import add_backup_arguments, add_restore_arguments, run_copy
from eddyline.frontends.serve import add_serve_arguments, run_serve
from eddyline.frontends.shell import add_sql_arguments, run_sql

__all__ = ["main"]

_DESCRIPTION = """\
Eddyline keeps the answers of SQL queries up to date while the data changes.

It is a library first: ``import eddyline; db = eddyline.connect()`` opens a database in your process.  This command is a
shell for such a database, and runs the parts that are processes of their own.
"""
_EPILOG = """\
to begin with:
  eddyline sql                                    a scratch database and a prompt
  => CREATE TABLE orders (cust int, amount int);
  => CREATE MATERIALIZED VIEW spend AS SELECT cust, sum(amount) AS total FROM orders GROUP BY cust;
  => INSERT INTO orders VALUES (1, 10), (1, 20);
  => SELECT * FROM spend;                         the view is up to date, whatever was written

  eddyline serve --data ./live.eddy               the same for many clients, and it stays
  psql -h 127.0.0.1 -p 6875                       PostgreSQL's shell; any of its drivers will do
  eddyline backup ./live.eddy ./monday.eddy       a copy, while it is served

Each command says more with --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="eddyline",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"eddyline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_sql_arguments(commands.add_parser("sql", help="a shell for a database in this process"))
    add_serve_arguments(commands.add_parser("serve", help="serve a database to PostgreSQL's clients"))
    add_backup_arguments(commands.add_parser("backup", help="copy a database directory, also while it is in use"))
    add_restore_arguments(commands.add_parser("restore", help="copy a backup to where a database is to be"))
    add_arguments(commands.add_parser("clusterd", help="host a replica's workers: see eddyline clusterd --help"))
    parsed = parser.parse_args(arguments)
    match parsed.command:
        case "sql":
            return run_sql(parsed)
        case "serve":
            return run_serve(parsed)
        case "backup" | "restore":
            return run_copy(parsed)
        case _:
            return run_clusterd(parsed)
