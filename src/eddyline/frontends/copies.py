"""``eddyline backup`` and ``eddyline restore``: copies of directories."""

from __future__ import annotations

import argparse
import os
import sys

from eddyline.adapter.durability import files_of
from eddyline.errors import Error, make_error
from eddyline.storage.backup import copy_database
from eddyline.storage.files import OsFiles

__all__ = ["add_backup_arguments", "add_restore_arguments", "run_copy"]

_BACKUP = """\
Copies a database directory, also while it is in use, to a directory that is empty or not there.

The copy is what the database was at some moment meanwhile, with everything that was acknowledged before.  It is a
database like any other: open it, or copy it back.  All checksums are verified.
"""
_RESTORE = """\
Copies a backup to a directory that is empty or not there, and verifies all checksums.

Nothing else is needed: a backup is a database, and may as well be opened where it is.
"""


def add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser, _BACKUP, "the database", "where the backup goes")


def add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser, _RESTORE, "the backup", "where the database goes")


def _add_arguments(parser: argparse.ArgumentParser, description: str, source: str, target: str) -> None:
    parser.description = description
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", metavar="SOURCE", help=source)
    parser.add_argument("target", metavar="TARGET", help=target)


def run_copy(arguments: argparse.Namespace) -> int:
    """The exit status: 1 with a line on standard error if it failed."""
    try:
        if not os.path.isdir(arguments.source):
            raise make_error("58P01", f'directory "{arguments.source}" does not exist')
        size = copy_database(OsFiles(arguments.source), files_of(arguments.target))
    except Error as problem:
        sys.stderr.write(f"eddyline: {problem}\n")
        return 1
    sys.stdout.write(f"{arguments.target}: {size} bytes\n")
    return 0
