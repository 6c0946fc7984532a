"""The ``eddyline`` command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from eddyline._version import __version__
from eddyline.clusterd.config import add_arguments
from eddyline.clusterd.main import run_clusterd
from eddyline.frontends.copies import add_backup_arguments, add_restore_arguments, run_copy
from eddyline.frontends.serve import add_serve_arguments, run_serve

__all__ = ["main"]

_DESCRIPTION = """\
Eddyline keeps the answers of SQL queries up to date while the data changes.

It is a library first: ``import eddyline; db = eddyline.connect()`` opens a database in your process.  This command runs
the parts that are processes of their own.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="eddyline", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"eddyline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_serve_arguments(commands.add_parser("serve", help="serve a database to PostgreSQL's clients"))
    add_backup_arguments(commands.add_parser("backup", help="copy a database directory, also while it is in use"))
    add_restore_arguments(commands.add_parser("restore", help="copy a backup to where a database is to be"))
    add_arguments(commands.add_parser("clusterd", help="host a replica's workers: see eddyline clusterd --help"))
    parsed = parser.parse_args(arguments)
    match parsed.command:
        case "serve":
            return run_serve(parsed)
        case "backup" | "restore":
            return run_copy(parsed)
        case _:
            return run_clusterd(parsed)
